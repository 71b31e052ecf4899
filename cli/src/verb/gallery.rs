//! `evoxo gallery RUN... --out DIRECTORY`: writes the reports of many runs as pages, and a front page.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use evoxo_common::experiment::Registry;

use crate::{
    html::gallery::{self, Entry},
    kept::Kept,
    say::{notice, stdout},
};

/// The runs, and the directory for the pages.
#[derive(clap::Args)]
#[command(
    after_help = "Each page is the file that `evoxo report --html` writes. The pages are in reports/, and index.html \
shows all of them. They need no network and no server. A run that cannot be read is left out and named, and the exit \
status is 1. Files that do not end in .json are skipped.

Examples:
  evoxo gallery out/* --out pages
  evoxo gallery docs/reproduction/*/*.json --out pages --title \"What we found\""
)]
pub(crate) struct Arguments {
    /// Directories of runs, or their result.json files
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The directory for the pages, which is created if it does not exist
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// The title of the front page
    #[arg(long, default_value = "Runs")]
    title: String,
}

/// The most runs in a gallery.
const RUNS_MAX: usize = 1000;
/// The most letters of a file name.
const NAME_MAX: usize = 80;
/// The directory for the pages of the runs.
const REPORTS: &str = "reports";

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let Arguments { runs, out, title } = arguments;
    if runs.len() > RUNS_MAX {
        bail!("there are {} runs: give at most {RUNS_MAX}, or make several galleries", runs.len());
    }
    let unwritable = |path: &Path| format!("cannot write {}: give another directory with --out", path.display());
    let write = |name: &str, text: String| {
        let path = out.join(name);
        fs::write(&path, text).with_context(|| unwritable(&path))
    };
    let reports = out.join(REPORTS);
    fs::create_dir_all(&reports).with_context(|| unwritable(&reports))?;
    let (mut entries, mut taken, mut left_out) = (Vec::new(), BTreeSet::new(), 0);
    // One run at a time, because results may be large.
    for path in runs.iter().filter(|path| !is_passed_over(path)) {
        match Kept::read(registry, path).and_then(|kept| Ok((kept.html(registry)?, kept))) {
            Ok((html, kept)) => {
                let name = kept.name();
                let file = format!("{REPORTS}/{}.html", free(&mut taken, &file_name(kept.config.kind.name, &name)));
                write(&file, html)?;
                let told = (&kept.config, &kept.result, &kept.report);
                entries.push(Entry::new(entries.len(), (&name, &file), told, kept.conclusion()));
            }
            Err(error) => {
                left_out += 1;
                writeln!(std::io::stderr().lock(), "left out: {error:#}")?;
            }
        }
    }
    if entries.is_empty() {
        bail!("none of these is a run that can be shown");
    }
    let count = entries.len();
    write("index.html", gallery::document(title, entries))?;
    let s = if count == 1 { "" } else { "s" };
    writeln!(stdout(), "{count} report{s}; the front page is {}", out.join("index.html").display())?;
    if left_out > 0 {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether this is a file that is not a result, such as those next to the directories of runs. Experiment files are skipped
/// silently, because the Python package writes them there; other files are named in a notice.
fn is_passed_over(path: &Path) -> bool {
    let ends_in = |ending| path.extension().is_some_and(|it| it == ending);
    let passed_over = path.is_file() && !ends_in("json");
    if passed_over && !ends_in("toml") {
        notice(format_args!("{} is skipped: a run is a directory, or a file that ends in .json", path.display()));
    }
    passed_over
}

/// A file name that needs no escaping anywhere. It begins with the kind, which is added if the name does not begin with it.
fn file_name(kind: &str, name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().take(NAME_MAX).map(plain).collect();
    if name.starts_with(kind) { name } else { format!("{kind}-{name}") }
}

/// The name, with a number appended if the name is already taken.
fn free(taken: &mut BTreeSet<String>, name: &str) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    let found = std::iter::once(name.to_owned()).chain(numbered).find(|name| taken.insert(name.clone()));
    found.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_in_the_directory_are_ignored() {
        let desk = tempfile::tempdir().unwrap();
        let names = ["mine.toml", "dye.journal", "result.json", "run.toml", "none.journal"];
        let paths = names.map(|name| desk.path().join(name));
        paths[..3].iter().for_each(|file| fs::write(file, "").unwrap());
        fs::create_dir(&paths[3]).unwrap();
        let passed_over = paths.each_ref().map(|path| is_passed_over(path));
        assert_eq!(passed_over, [true, true, false, false, false], "a path that does not exist is a mistake");
    }

    #[test]
    fn every_run_has_its_own_file() {
        let mut taken = BTreeSet::new();
        let names = [("td3d", "best"), ("rules", "best"), ("td3d", "best"), ("td3d", "td3d-best"), ("a", "../Ü/x")];
        let files = names.map(|(kind, name)| free(&mut taken, &file_name(kind, name)));
        assert_eq!(files, ["td3d-best", "rules-best", "td3d-best-2", "td3d-best-3", "a------x"]);
    }
}
