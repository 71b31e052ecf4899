//! `evoxo run FILE`: everything on this machine.

use std::{
    io::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use evoxo_common::config::{Config, FILE_BYTES_MAX, REPLICAS_MAX};
use evoxo_proto::v1::{self, RunState};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    arguments::{notice, whole},
    children::{Children, Plan},
    directory::Directory,
    file,
    inline::{Inline, not_saved},
    json,
    progress::Progress,
    remote::{self, connect, converse, refused},
    results::{Results, written},
    tell, usage,
};

/// An experiment file and what goes before it.
#[derive(clap::Args, Clone)]
pub(crate) struct Experiment {
    /// The experiment file (`evoxo new KIND` prints one to begin with)
    file: PathBuf,
    /// Override a setting for all arms, or for one as arms.NAME.SETTING; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    overrides: Vec<(String, String)>,
    /// Only this arm of the file; may be repeated. Its results are those that it has among all arms
    #[arg(long = "arm", value_name = "NAME")]
    arms: Vec<String>,
    /// The seed, instead of the file's
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX >> 1))]
    seed: Option<u64>,
    /// Replicas of each arm, instead of the file's; more on a finished run computes only the new ones
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = whole::<u32>(1, REPLICAS_MAX.into())
    )]
    replicas: Option<u32>,
}

/// As the coordinator reads it, checked before one is started.
fn batch(text: &str) -> Result<String, String> {
    evoxo_coordinator::cli::batch(text).map(|_| text.to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE, for example penalty=6.5")?;
    Ok((key.trim().into(), value.trim().into()))
}

impl Experiment {
    /// The configuration that is meant.
    pub(crate) fn read(&self) -> anyhow::Result<Config> {
        let name = self.file.display().to_string();
        let bytes = file::read(&self.file, FILE_BYTES_MAX, ", or begin with one that `evoxo new KIND` prints")?;
        let text = String::from_utf8(bytes).ok().with_context(|| format!("{name} is not a text in UTF-8"))?;
        let mut overrides = self.overrides.clone();
        overrides.extend(self.seed.map(|seed| ("seed".into(), seed.to_string())));
        overrides.extend(self.replicas.map(|replicas| ("replicas".into(), replicas.to_string())));
        Config::overruled(&text, &self.overrides, &self.arms).iter().for_each(|sentence| notice(sentence));
        let mut config = Config::parse(&name, &text, &overrides).map_err(|problems| {
            let typed = problems.list.iter().any(|problem| problem.typed);
            if typed { usage(told(&problems)) } else { anyhow!(told(&problems)) }
        })?;
        for arm in &self.arms {
            if !config.arms.iter().any(|there| there.name == *arm) {
                let there: Vec<String> = config.arms.iter().map(|arm| format!("\"{}\"", arm.name)).collect();
                return Err(usage(format_args!("{name} has no arm \"{arm}\": it has {}", there.join(", "))));
            }
        }
        config.arms.retain(|arm| self.arms.is_empty() || self.arms.contains(&arm.name));
        let left_out = |key| Config::arm_of(key).is_some_and(|name| config.arms.iter().all(|arm| arm.name != name));
        match self.overrides.iter().find(|(key, _)| left_out(key)) {
            Some((key, _)) => Err(usage(format_args!("--set {key} is of an arm that --arm leaves out"))),
            None => Ok(config),
        }
    }

    /// The file's name as a run's name.
    pub(crate) fn run_name(&self) -> String {
        let stem = self.file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c) { c } else { '-' };
        let name: String = stem.chars().map(plain).take(64).collect();
        let name = name.trim_start_matches(['-', '_', '.']);
        if name.is_empty() { "run".into() } else { name.into() }
    }
}

/// One problem on the line of the error, several below it.
fn told(problems: &evoxo_common::config::Problems) -> String {
    match problems.list.len() {
        1 => problems.to_string(),
        count => format!("{count} problems in {}\n{problems}", problems.file),
    }
}

/// How to run it.
#[derive(clap::Args)]
#[command(after_help = "Ctrl-C stops cleanly; the same command goes on from there, after kill -9 too.
The directory then holds result.json, history.csv, champions/, plots/, config.toml, and the checkpoints in store/.

Examples:
  evoxo run experiments/invincible.toml
  evoxo run experiments/invincible.toml --replicas 40     (on the finished 20: only the new ones are computed)
  evoxo run experiments/invincible.toml --workers 0 --out out/one-thread    (the same digest)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// Worker processes of one slot each; 0 computes on one thread without a cluster [default: the cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(0, 1024))]
    workers: Option<u32>,
    /// Directory for results and checkpoints [default: out/ and the file's name]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Also write the cards of all players of the last population into populations/
    #[arg(long)]
    populations: bool,
    /// Print the results as JSON (the content of result.json)
    #[arg(long)]
    json: bool,
    /// Tasks sent to a worker at once: a number, or "auto"; results do not depend on it
    #[arg(long, value_name = "TASKS", default_value = "auto", value_parser = batch)]
    batch: String,
    /// Instructions the kernels may use: auto, avx2 or baseline; results do not depend on it
    #[arg(long, value_name = "LEVEL", default_value = "auto", value_parser = ["auto", "avx2", "baseline"])]
    simd: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let config = arguments.experiment.read()?;
    let name = arguments.experiment.run_name();
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(&name));
    let directory = Directory::open(&out, &config)?;
    let name = directory.run().unwrap_or(name);
    let mut inline = Inline::open(&directory.store(), &name)?;
    let workers = match arguments.workers {
        Some(workers) => workers,
        None => std::thread::available_parallelism()
            .context("cannot tell how many cores there are; give --workers")?
            .get() as u32,
    };
    if let Some((view, replicas)) = inline.finished(&name, &config)? {
        let results = Results::new(resolved(&view)?, &replicas)?;
        let mut result = results.to_json(start.elapsed().as_secs_f64(), workers);
        if let Some(provenance) = directory.provenance() {
            result["provenance"] = provenance;
        }
        return finish(arguments, &directory, &results, &result);
    }
    directory.write_config(&config)?;
    let stop = stop_on_signal()?;
    let mut progress = Progress::new();
    let computed = if workers == 0 {
        set_simd(&arguments.simd);
        compute_inline(&mut inline, &name, &config, &stop, &mut progress)
    } else {
        drop(inline);
        let plan = Plan { workers, batch: arguments.batch.clone(), simd: arguments.simd.clone() };
        compute_with_cluster(&directory, plan, &name, &config, &stop, &mut progress)
    };
    progress.end();
    let (view, replicas) = computed?;
    match view.state() {
        RunState::Finished => {}
        _ if stop.load(Ordering::Relaxed) => return interrupted(&view),
        RunState::Cancelled => bail!("the run was cancelled"),
        RunState::Held | RunState::Failed => bail!("{}", view.message),
        _ => bail!("the run stopped in the middle: the same command goes on from its last checkpoint"),
    }
    let results = Results::new(resolved(&view)?, &replicas)?;
    let result = results.to_json(start.elapsed().as_secs_f64(), workers);
    finish(arguments, &directory, &results, &result)
}

/// Writes and prints the results.
fn finish(arguments: &Arguments, directory: &Directory, results: &Results, result: &Value) -> anyhow::Result<ExitCode> {
    directory.write_results(results, result)?;
    if arguments.populations {
        directory.write_populations(results)?;
    }
    print(results, result, directory, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration as the run has it: perhaps with more replicas than asked for this time.
fn resolved(view: &v1::Run) -> anyhow::Result<Config> {
    Config::parse("the stored configuration", &view.config, &[]).context("the stored configuration cannot be read")
}

/// Prints results where a person looks for them.
pub(crate) fn print(results: &Results, result: &Value, directory: &Directory, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        write!(out, "{}", json::text(result))?;
        return Ok(());
    }
    writeln!(out, "{}", written(&results.finale))?;
    match results.digest {
        Some(digest) => writeln!(out, "digest {digest}")?,
        None => writeln!(out, "not all replicas are finished yet")?,
    }
    writeln!(out, "results are in {}", directory.path().display())?;
    Ok(())
}

/// Set by Ctrl-C or SIGTERM; the second one ends the process at once.
fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let (Ok(mut terminate), Ok(mut interrupt)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if asked.swap(true, Ordering::Relaxed) {
                    std::process::exit(1);
                }
            }
        });
    });
    Ok(stop)
}

fn interrupted(view: &v1::Run) -> anyhow::Result<ExitCode> {
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    tell(format_args!(
        "stopped after {} of {} rounds; everything is saved. Go on with\n  {}",
        view.rounds_done,
        view.rounds_total,
        shell_words(&command)
    ));
    Ok(ExitCode::FAILURE)
}

/// A command as a shell reads it.
fn shell_words(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn set_simd(level: &str) {
    use evoxo_common::simd::{Level, set_level};
    set_level(match level {
        "baseline" => Level::Baseline,
        "avx2" => Level::Avx2,
        _ => Level::Best,
    });
}

type Computed = (v1::Run, Vec<v1::Replica>);

fn compute_inline(
    inline: &mut Inline,
    name: &str,
    config: &Config,
    stop: &AtomicBool,
    progress: &mut Progress,
) -> anyhow::Result<Computed> {
    let view = inline.compute(name, config, stop, |view| progress.show(view))?;
    let replicas = inline.fetch(name)?;
    Ok((view, replicas))
}

fn compute_with_cluster(
    directory: &Directory,
    plan: Plan,
    name: &str,
    config: &Config,
    stop: &AtomicBool,
    progress: &mut Progress,
) -> anyhow::Result<Computed> {
    let mut children = Children::start(directory, plan)?;
    let followed = converse(follow(&mut children, name, config, stop, progress));
    let unsaved = children.stop()?;
    let (view, replicas) = followed?;
    match unsaved {
        Some(why) if stop.load(Ordering::Relaxed) && view.state() != RunState::Finished => Err(not_saved(&why)),
        _ => Ok((view, replicas)),
    }
}

/// How often children are looked after.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Submits the run and follows it to its end. If the coordinator is killed on the way, another takes its place.
async fn follow(
    children: &mut Children,
    name: &str,
    config: &Config,
    stop: &AtomicBool,
    progress: &mut Progress,
) -> anyhow::Result<Computed> {
    let address = children.address().to_string();
    let mut last = v1::Run { name: name.into(), ..v1::Run::default() };
    'connected: loop {
        children.replace_lost()?;
        if stop.load(Ordering::Relaxed) {
            return Ok((last, Vec::new()));
        }
        let Ok(mut client) = connect(&address).await else {
            tokio::time::sleep(LOOK_INTERVAL).await;
            continue;
        };
        let request = v1::SubmitRequest { name: name.into(), config: config.to_toml() };
        match client.submit(request).await {
            // Whoever runs it wants it to go on.
            Ok(answer) if answer.get_ref().run.as_ref().is_some_and(|run| run.state() == RunState::Paused) => {
                drop(client.resume(v1::ResumeRequest { name: name.into() }).await);
            }
            Ok(_) => {}
            Err(status) if lost(&status) => continue,
            Err(status) => return Err(refused(status)),
        }
        let Ok(changes) = client.watch(v1::WatchRequest { name: name.into() }).await else { continue };
        let mut changes = changes.into_inner();
        loop {
            let change = tokio::time::timeout(LOOK_INTERVAL, changes.message()).await;
            children.replace_lost()?;
            if stop.load(Ordering::Relaxed) {
                return Ok((last, Vec::new()));
            }
            match change {
                Err(_) => continue,
                Ok(Ok(Some(run))) => last = run,
                Ok(_) => continue 'connected,
            }
            progress.show(&last);
            match last.state() {
                RunState::Finished => match remote::fetch(&mut client, name).await {
                    Ok(replicas) => return Ok((last, replicas)),
                    Err(status) if lost(&status) => continue 'connected,
                    Err(status) => return Err(refused(status)),
                },
                RunState::Failed | RunState::Cancelled | RunState::Held => return Ok((last, Vec::new())),
                _ => {}
            }
        }
    }
}

/// The coordinator did not refuse: it is gone.
fn lost(status: &tonic::Status) -> bool {
    matches!(status.code(), tonic::Code::Unavailable | tonic::Code::Unknown | tonic::Code::Cancelled)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let command = ["evoxo", "run", "a.toml", "--arm", "deep, self", "--out", "o'clock", ""].map(String::from);
        assert_eq!(super::shell_words(&command), r"evoxo run a.toml --arm 'deep, self' --out 'o'\''clock' ''");
    }
}
