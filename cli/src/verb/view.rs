//! `evoxo view DIR...`: shows the page of runs that are stored in directories, without a coordinator to start first.
//!
//! The coordinator that serves the page has its own store, with the objects of all these runs. Objects never change, so
//! nothing is written into the runs' directories and a run that goes on is not disturbed.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread::sleep,
    time::Duration,
};

use anyhow::{Context as _, bail};
use evoxo_coordinator::{cli::memory_by_default, recall};
use evoxo_proto::v1::{self, RunState};
use evoxo_worker::cli::Simd;

use crate::{
    children::{Children, Plan},
    directory,
    numbered::{NUMBER_MAX, numbered},
    page,
    remote::{Coordinator, connect, converse, refused},
    say::{notice, tell, usage},
    source::plain_name,
    stop::Stop,
};

/// The runs.
#[derive(clap::Args)]
#[command(
    after_help = "The page shows what is in the directories now, and has boards on which you can play against the \
champions. Nothing is computed, and nothing is written into the directories. Ctrl-C ends it.

Examples:
  evoxo view out/invincible
  evoxo view out                 all runs in a directory"
)]
pub(crate) struct Arguments {
    /// A run's directory, or a directory that contains such directories
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

/// How often the program checks whether to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The most directories of killed processes that may be in the way.
const DESKS_MAX: u32 = 100;
/// Entries of a store: the one that says who led, and the directory that holds the objects of runs.
const LEADER: &str = "leader";
const RUNS: &str = "runs";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runs = runs(&arguments.directories)?;
    let stop = Stop::listen()?;
    let desk = Desk::new()?;
    let mut names = BTreeSet::new();
    for (directory, store, run) in &runs {
        let name = free_name(&directory::name(directory), &mut names)?;
        let store = Path::new(store);
        let copied = link(&store.join(RUNS).join(run), &desk.0.join("store").join(RUNS).join(&name))
            .and_then(|()| link(&store.join(LEADER), &desk.0.join("store").join(LEADER)));
        copied.with_context(|| format!("cannot read the store in {}", directory.display()))?;
    }
    let plan = Plan {
        workers: 0,
        batch: "auto".into(),
        simd: Simd::default(),
        programs: Arc::default(),
        memory_bytes: memory_by_default(),
        recall: recall::Options::nothing(),
        page: true,
        stays: true,
    };
    let mut children = Children::start(desk.0.join("store").display().to_string(), desk.0.join("cluster.log"), plan)?;
    let coordinator = Coordinator::local(children.address());
    converse(rest(&coordinator))?;
    let only = names.first().filter(|_| names.len() == 1);
    let address = only.and_then(|only| children.page(only)).unwrap_or_else(|| children.pages());
    tell(format_args!("the page is at {address}; Ctrl-C ends it"));
    if arguments.open
        && let Err(why) = page::open(&address)
    {
        notice(format_args!("{why:#}"));
    }
    while !stop.is_asked() {
        if !children.is_there()? {
            bail!("the local coordinator has ended: the same command starts it again");
        }
        sleep(LOOK_INTERVAL);
    }
    children.stop()?;
    Ok(ExitCode::SUCCESS)
}

/// The runs in these directories: each with its directory, its store, and its name in that store.
fn runs(directories: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, String, String)>> {
    let mut found = Vec::new();
    for directory in directories {
        if !directory.is_dir() {
            let why = if directory.exists() { "is not a directory" } else { "does not exist" };
            return Err(usage(format!("{} {why}: give a directory that `evoxo run` wrote", directory.display())));
        }
        if let Some((store, run)) = directory::stored(directory)? {
            found.push((directory.clone(), store, run));
            continue;
        }
        let entries =
            fs::read_dir(directory).with_context(|| format!("cannot read the directory {}", directory.display()))?;
        let mut below: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        below.sort();
        let before = found.len();
        for path in below {
            found.extend(directory::stored(&path)?.map(|(store, run)| (path, store, run)));
        }
        if found.len() == before {
            let report = directory.join(crate::results::REPORT);
            return Err(usage(match report.is_file() {
                true => {
                    format!("{} was fetched, and has no store: its report is {}", directory.display(), report.display())
                }
                false => format!("{} contains no run: give a directory that `evoxo run` wrote", directory.display()),
            }));
        }
    }
    Ok(found)
}

/// The name of a run on the page, made from its directory's name. No two runs get the same name.
fn free_name(directory: &str, taken: &mut BTreeSet<String>) -> anyhow::Result<String> {
    let name = plain_name(directory);
    let free = (1..=NUMBER_MAX).map(|number| numbered(&name, number)).find(|name| !taken.contains(name));
    let free =
        free.with_context(|| format!("there are too many runs that are called {name}: give fewer directories"))?;
    taken.insert(free.clone());
    Ok(free)
}

/// Pauses runs that are not finished, so that the page does not show them as running.
async fn rest(coordinator: &Coordinator) -> anyhow::Result<()> {
    let mut client = connect(coordinator).await?;
    let listed = client.list(v1::ListRequest::default()).await.map_err(refused)?.into_inner();
    for run in listed.runs.into_iter().filter(|run| run.state() == RunState::Running) {
        // The run may have ended in the meantime; then there is nothing to pause.
        drop(client.pause(v1::PauseRequest { name: run.name }).await);
    }
    Ok(())
}

/// A directory of this process, which is removed when the process ends.
struct Desk(PathBuf);

impl Desk {
    fn new() -> anyhow::Result<Self> {
        let base = std::env::temp_dir().join(format!("evoxo-view-{}", std::process::id()));
        // The directory holds a copy of the runs, so it must not be readable to more people than the runs themselves.
        let make = |path: &PathBuf| fs::DirBuilder::new().mode(0o700).create(path);
        // A killed process with the same number may have left such a directory.
        let mut paths = (1..=DESKS_MAX).map(|number| base.with_extension(number.to_string()));
        let last = base.with_extension(DESKS_MAX.to_string());
        let made = paths.find(|path| make(path).is_ok());
        made.map(Self).with_context(|| format!("cannot make the directory {}", last.display()))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Anything that remains is in a directory for temporary files.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Makes the files below one directory appear below another: as links, or as copies on another disk. An existing file stays.
/// An object of a run that goes on may disappear before it is linked.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let linked = match entry.file_type()?.is_dir() {
            true => link(&from, &to),
            false if to.exists() => Ok(()),
            false => fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)),
        };
        match linked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_name_get_numbers() {
        let mut taken = BTreeSet::new();
        let names = ["rosen", "Rosen", "rosen-2", "rosen"].map(|name| free_name(name, &mut taken).unwrap());
        assert_eq!(names, ["rosen", "rosen-2", "rosen-2-2", "rosen-3"]);
    }

    #[test]
    fn a_directory_without_a_run_is_rejected() {
        let desk = tempfile::tempdir().unwrap();
        let why = runs(&[desk.path().to_owned()]).unwrap_err().to_string();
        assert!(why.contains("contains no run"), "{why}");
        fs::write(desk.path().join("report.html"), "").unwrap();
        let why = runs(&[desk.path().to_owned()]).unwrap_err().to_string();
        assert!(why.contains("was fetched") && why.contains("report.html"), "{why}");
        let file = runs(&[desk.path().join("report.html")]).unwrap_err().to_string();
        assert!(file.contains("report.html is not a directory"), "{file}");
        let gone = runs(&[desk.path().join("gone")]).unwrap_err().to_string();
        assert!(gone.contains("gone does not exist"), "{gone}");
    }
}
