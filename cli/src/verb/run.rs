//! `evoxo run FILE`: computes a run on this machine.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context as _, bail};
use evoxo_common::{
    experiment::{Config, Registry},
    parallel, simd,
};
use evoxo_coordinator::{
    cli::{memory, memory_by_default},
    recall,
};
use evoxo_proto::v1::{self, RunState};
use evoxo_worker::{Program, cli::Simd};

use crate::{
    children::Plan,
    cluster,
    directory::{CONFIG, Directory},
    inline::Inline,
    legs::{Leg, Legs, Phases},
    longer::lengthen,
    numbered::{RunDirectory, numbered},
    progress::Progress,
    results::{Provenance, REPORT, Results},
    say::{notice, printed, program, stdout, tell, whole},
    source::Experiment,
    stop::Stop,
};

/// The options of a run.
#[derive(clap::Args)]
#[command(
    after_help = "Ctrl-C stops cleanly and keeps the results so far; a second Ctrl-C ends the program immediately. \
The same command continues the run, even after kill -9.

The directory then contains result.json, report.html, history.csv, digests.csv, champions/, plots/, config.toml, and the checkpoints in \
store/. `report`, `show` and `best` show what is in store/ while the run goes on, and after kill -9.

Examples:
  evoxo run experiments/invincible.toml
  evoxo run experiments/invincible.toml --workers 0 --out out/one-thread
      On one thread: the same digest.
  evoxo run experiments/invincible.toml --replicas 40
      After a finished run of 20 replicas, computes only the new ones.
  evoxo run experiments/invincible.toml --set generations=40
      Likewise for generations."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// Directory for results and checkpoints [default: out/ and the file's name, with a number appended if a run with other
    /// settings is there]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// How a run is computed and shown.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Worker processes with one slot each; 0 computes on one thread, without a cluster [default: the number of cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(0, 1024))]
    workers: Option<u32>,
    /// Also write the cards of all players in the last population into populations/; after Ctrl-C, of the players at that
    /// point
    #[arg(long)]
    populations: bool,
    /// Print the results as JSON (the content of result.json)
    #[arg(long)]
    json: bool,
    /// Tasks sent to a worker at once: a number, or "auto"; results do not depend on it
    #[arg(long, value_name = "TASKS", default_value = "auto", value_parser = batch)]
    batch: String,
    /// Instructions that the kernels may use; results do not depend on them
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    simd: Simd,
    /// Do not show the run's page. On a terminal, the page stays available after the run while somebody has it open
    #[arg(long)]
    no_page: bool,
    /// Open the page in a browser
    #[arg(long, conflicts_with = "no_page")]
    open: bool,
    /// Memory for states and tasks: 512MiB, 8GiB; a run may use half of it [default: a quarter of what this process may use]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    #[command(flatten)]
    recall: recall::Options,
}

impl Options {
    /// Whether results are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// The memory for states and tasks.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.unwrap_or_else(memory_by_default)
    }
}

/// Checks the value with the coordinator's parser, before a coordinator is started.
fn batch(text: &str) -> Result<String, String> {
    evoxo_coordinator::cli::batch(text).map(|_| text.to_owned())
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let config = arguments.experiment.read_to_compute(registry)?;
    let programs = arguments.experiment.programs_of(&config)?;
    let name = arguments.experiment.run_name();
    let place = arguments.out.is_none().then(|| RunDirectory::of(registry, &name, &config, true));
    place.iter().for_each(RunDirectory::tell);
    let name = place.as_ref().map_or(name.clone(), |place| numbered(&name, place.number));
    let out = place.as_ref().map(|place| place.path.clone()).or(arguments.out.clone()).unwrap_or_default();
    let directory = Directory::open(registry, &out, &config, true)?;
    let options = &arguments.options;
    let name = lengthen(registry, &directory, name, &config, options.memory_bytes())?;
    let file = Some(arguments.experiment.file());
    compute(Begun { start, config, programs, name, directory, place, file }, options, registry)
}

/// A run whose directory is prepared.
pub(crate) struct Begun<'a> {
    pub(crate) start: Instant,
    pub(crate) config: Config,
    pub(crate) programs: Arc<[Program]>,
    /// The run's name in the store.
    pub(crate) name: String,
    pub(crate) directory: Directory,
    /// The directory, if it was chosen for the run.
    pub(crate) place: Option<RunDirectory>,
    /// The experiment file in the command, in whose place the run's own configuration continues it. `None` if the same command
    /// does.
    pub(crate) file: Option<&'a Path>,
}

/// Computes a run to its end, or until it is interrupted, and writes and prints the results.
pub(crate) fn compute(begun: Begun<'_>, options: &Options, registry: &Registry) -> anyhow::Result<ExitCode> {
    let Begun { start, config, programs, name, directory, place, file } = begun;
    let compared = || place.as_ref().and_then(|place| place.compared(registry));
    let memory_bytes = options.memory_bytes();
    let mut inline = Inline::open(registry, &directory.store(), memory_bytes)?;
    let cores = std::thread::available_parallelism().map(|cores| cores.get() as u32);
    let workers = match options.workers {
        Some(workers) => workers,
        None => *cores.as_ref().ok().context("cannot determine the number of cores; give --workers")?,
    };
    if let Some(many) = cores.as_ref().ok().and_then(|cores| too_many(workers, *cores)) {
        notice(many);
    }
    // A run with one worker, or without a cluster, is for one core, from its first task to its report.
    parallel::set_threads(cores.as_ref().map_or(1, |cores| workers.clamp(1, *cores) as usize));
    let (leg, before) = (Leg::begin(start, workers, inline.known(&name)), directory.provenance());
    if let Some((run, replicas)) = inline.finished(&name, &config)? {
        let results = Results::new(config, &run, &replicas)?;
        let computed = || Provenance::Computed(leg.end(&run, &leg.phases(&run), None));
        let provenance = before.map_or_else(computed, Provenance::Known);
        return finish(options, &directory, &results, (provenance, None), compared());
    }
    directory.write_config(&config)?;
    let stop = Stop::listen()?;
    let mut progress = Progress::new();
    // Without a terminal nobody can press Ctrl-C, so nothing waits for a browser.
    let stays = !options.no_page && io::stdout().is_terminal() && io::stderr().is_terminal();
    let outcome = if workers == 0 {
        simd::set_level(options.simd.level());
        let outcome = inline.compute(&name, &config, &programs, &options.recall, &stop, &mut progress);
        drop(inline);
        outcome.map(|computed| (computed, None))
    } else {
        // The coordinator needs the store, which the inline cluster has open.
        drop(inline);
        let (batch, simd) = (options.batch.clone(), options.simd);
        let (recall, page) = (options.recall.clone(), !options.no_page);
        let plan = Plan { workers, batch, simd, programs, memory_bytes, recall, page, stays };
        cluster::compute(&directory, plan, &name, &config, &stop, &mut progress, options.open)
    };
    progress.end();
    let ((mut run, mut replicas), page) = outcome?;
    let phases = leg.phases(&run);
    let ended = |run: &v1::Run| matches!(run.state(), RunState::Finished | RunState::InDoubt);
    if stop.is_asked() && !ended(&run) {
        // More may be saved than this process heard of, perhaps all of the run; nobody has the store open any more.
        match Inline::open(registry, &directory.store(), memory_bytes)?.saved(&name)? {
            Some(saved) => (run, replicas) = saved,
            // Somebody has removed the store.
            None => run.rounds_done = 0,
        }
    }
    match run.state() {
        RunState::Finished | RunState::InDoubt => {}
        _ if stop.is_asked() => {
            let legs = leg.end(&run, &phases, before.as_ref());
            write_unfinished(options, &directory, &Results::new(config, &run, &replicas)?, legs)?;
            return interrupted(file, directory.path(), &run);
        }
        RunState::Cancelled => bail!("the run was cancelled"),
        RunState::Blocked | RunState::Failed => bail!("{}", run.message),
        _ => bail!("the run stopped before its end: the same command continues from its last checkpoint"),
    }
    let results = Results::new(config, &run, &replicas)?;
    let provenance = Provenance::Computed(leg.end(&run, &phases, before.as_ref()));
    let status = finish(options, &directory, &results, (provenance, Some(phases)), compared())?;
    if let Some(page) = page {
        printed(stdout().flush())?;
        cluster::stay(page, &name, directory.path(), options.open, &stop)?;
    }
    Ok(status)
}

/// More workers than this per core cause a notice.
const WORKERS_OF_A_CORE: u32 = 4;

/// A sentence, if there are many more workers than cores.
fn too_many(workers: u32, cores: u32) -> Option<String> {
    let s = if cores == 1 { "" } else { "s" };
    (workers > cores.saturating_mul(WORKERS_OF_A_CORE)).then(|| {
        format!(
            "{workers} workers share {cores} core{s}: that is slower than --workers {cores}, and takes more memory, unless they ask programs \
             that mostly wait"
        )
    })
}

/// Writes and prints the results, and where the time of this process went if it computed them.
fn finish(
    options: &Options,
    directory: &Directory,
    results: &Results,
    (provenance, phases): (Provenance, Option<Phases>),
    compared: Option<String>,
) -> anyhow::Result<ExitCode> {
    let mut result = results.to_json(provenance);
    directory.write_files(results, &result)?;
    if options.populations {
        directory.write_populations(results)?;
    }
    if let Some(phases) = phases {
        phases.add_report(&mut result);
    }
    directory.write_result(&result)?;
    let status = results.print(&result, directory.path(), compared, options.json)?;
    if let Some(phases) = phases {
        phases.tell();
    }
    Ok(status)
}

/// Writes the results so far of a run that was stopped.
fn write_unfinished(options: &Options, directory: &Directory, results: &Results, legs: Legs) -> anyhow::Result<()> {
    directory.write_results(results, &results.to_json(Provenance::Computed(legs)))?;
    let (out, program) = (directory.path().display(), program());
    tell(format_args!("the results so far are in {out}: `{program} report {out}` shows them"));
    tell(format_args!("a report of it to send to others is {}", directory.path().join(REPORT).display()));
    if options.populations {
        directory.write_populations(results)?;
        tell(format_args!("the players at this point are in {out}/champions and {out}/populations"));
    }
    Ok(())
}

fn interrupted(file: Option<&Path>, directory: &Path, run: &v1::Run) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let words = match file {
        Some(file) => continuing(words, &file.display().to_string(), directory),
        None => words,
    };
    let command = shlex::try_join(words.iter().map(String::as_str)).context("this command cannot be written down")?;
    let (done, total) = (run.rounds_done, run.rounds_total);
    tell(format_args!("stopped after {done} of {total} rounds, which are saved. Continue with\n  {command}"));
    Ok(ExitCode::FAILURE)
}

/// Options with a value that override the experiment file.
const OVERRIDES: [&str; 4] = ["--set", "--arm", "--seed", "--replicas"];

/// The command that continues a run which was started with these words. The experiment file may change in the meantime and
/// would then start another run, so the command names the configuration in the run's directory.
fn continuing(words: Vec<String>, file: &str, directory: &Path) -> Vec<String> {
    let (mut all, mut named, mut placed) = (Vec::new(), false, false);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let option = word.split('=').next().unwrap_or_default();
        if OVERRIDES.contains(&option) {
            if option == word {
                words.next();
            }
        } else if word == file && !named {
            named = true;
            all.push(directory.join(CONFIG).display().to_string());
        } else {
            placed |= option == "--out";
            all.push(word);
        }
    }
    if !placed {
        all.extend(["--out".into(), directory.display().to_string()]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_workers_for_few_cores_are_noted() {
        assert_eq!([too_many(8, 2), too_many(0, 1)], [None, None]);
        assert!(too_many(200, 2).unwrap().starts_with("200 workers share 2 cores: that is slower than --workers 2"));
        assert!(too_many(5, 1).unwrap().contains("share 1 core:"));
    }

    #[test]
    fn a_run_is_continued_from_its_own_configuration() {
        let after = |text: &str| {
            let words = shlex::split(text).expect("words");
            shlex::try_join(continuing(words, "a.toml", Path::new("out/a")).iter().map(String::as_str)).expect("words")
        };
        assert_eq!(after("evoxo run a.toml --workers 2"), "evoxo run out/a/config.toml --workers 2 --out out/a");
        assert_eq!(
            after(
                "evoxo run --set penalty=3 a.toml --seed=7 --replicas 5 --arm X --out out/a --program 'p=python3 a.toml'"
            ),
            "evoxo run out/a/config.toml --out out/a --program 'p=python3 a.toml'"
        );
        assert_eq!(after("evoxo run a.toml --out=out/a"), "evoxo run out/a/config.toml '--out=out/a'");
    }
}
