//! `evoxo run FILE`: everything on this machine.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, bail};
use evoxo_common::{experiment::Registry, simd};
use evoxo_coordinator::cli::{memory, memory_by_default};
use evoxo_proto::v1::{self, RunState};
use evoxo_worker::cli::Simd;

use crate::{
    children::Plan,
    cluster,
    directory::Directory,
    inline::Inline,
    legs::{Leg, Legs},
    longer::lengthen,
    numbered::{RunDirectory, numbered},
    progress::Progress,
    results::{Provenance, REPORT, Results},
    say::{printed, program, stdout, tell, whole},
    source::Experiment,
    stop::Stop,
};

/// The options of a run.
#[derive(clap::Args)]
#[command(
    after_help = "Ctrl-C stops cleanly, and keeps what there is; a second one ends at once. The same command goes on, also after kill -9.

The directory then contains result.json, report.html, history.csv, digests.csv, champions/, plots/, config.toml, and the checkpoints in \
store/. `report`, `show` and `best` show what is in store/ while the run goes on, and after kill -9.

Examples:
  evoxo run experiments/invincible.toml
  evoxo run experiments/invincible.toml --workers 0 --out out/one-thread
      On one thread: the same digest.
  evoxo run experiments/invincible.toml --replicas 40
      After a finished run of 20 only the new ones are computed.
  evoxo run experiments/invincible.toml --set generations=40
      The same of generations."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// Worker processes of one slot each; 0 computes on one thread without a cluster [default: the cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(0, 1024))]
    workers: Option<u32>,
    /// Directory for results and checkpoints [default: out/ and the file's name; with a number if a run with other settings is there]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Also write the cards of the players of the last population into populations/; after Ctrl-C of those that are left
    #[arg(long)]
    populations: bool,
    /// Print the results as JSON (the content of result.json)
    #[arg(long)]
    json: bool,
    /// Tasks sent to a worker at once: a number, or "auto"; results do not depend on it
    #[arg(long, value_name = "TASKS", default_value = "auto", value_parser = batch)]
    batch: String,
    /// Instructions the kernels may use; results do not depend on it
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    simd: Simd,
    /// Show no page; with one, on a terminal, it stays at the end while somebody has it open
    #[arg(long)]
    no_page: bool,
    /// Open the page in a browser
    #[arg(long, conflicts_with = "no_page")]
    open: bool,
    /// Memory for states and tasks: 512MiB, 8GiB; a run may take half of it [default: a quarter of what this process may use]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
}

/// Checks the value with the coordinator's parser before a coordinator is started.
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
    let compared = || place.as_ref().and_then(|place| place.compared(registry));
    let directory = Directory::open(registry, &out, &config, true)?;
    let memory_bytes = arguments.memory.unwrap_or_else(memory_by_default);
    let name = lengthen(registry, &directory, name, &config, memory_bytes)?;
    let mut inline = Inline::open(registry, &directory.store(), memory_bytes)?;
    let workers = match arguments.workers {
        Some(workers) => workers,
        None => std::thread::available_parallelism()
            .context("cannot determine the number of cores; give --workers")?
            .get() as u32,
    };
    let (leg, before) = (Leg::begin(start, workers, inline.known(&name)), directory.provenance());
    if let Some((run, replicas)) = inline.finished(&name, &config)? {
        let results = Results::new(config, &run, &replicas)?;
        let provenance = before.map_or_else(|| Provenance::Computed(leg.end(&run, None)), Provenance::Known);
        return finish(arguments, &directory, &results, provenance, compared());
    }
    directory.write_config(&config)?;
    let stop = Stop::listen()?;
    let mut progress = Progress::new();
    // Where nobody can press Ctrl-C, nothing waits for a browser.
    let stays = !arguments.no_page && io::stdout().is_terminal() && io::stderr().is_terminal();
    let outcome = if workers == 0 {
        simd::set_level(arguments.simd.level());
        let outcome = inline.compute(&name, &config, &programs, &stop, &mut progress);
        drop(inline);
        outcome.map(|computed| (computed, None))
    } else {
        // The inline cluster has the store open, which the coordinator needs.
        drop(inline);
        let (batch, simd) = (arguments.batch.clone(), arguments.simd);
        let plan = Plan { workers, batch, simd, programs, memory_bytes, page: !arguments.no_page, stays };
        cluster::compute(&directory, plan, &name, &config, &stop, &mut progress, arguments.open)
    };
    progress.end();
    let ((mut run, mut replicas), page) = outcome?;
    let ended = |run: &v1::Run| matches!(run.state(), RunState::Finished | RunState::InDoubt);
    if stop.is_asked() && !ended(&run) {
        // What is saved may be more than this process was told, even all; nobody has the store open any more.
        match Inline::open(registry, &directory.store(), memory_bytes)?.saved(&name)? {
            Some(saved) => (run, replicas) = saved,
            // Somebody has removed the store.
            None => run.rounds_done = 0,
        }
    }
    match run.state() {
        RunState::Finished | RunState::InDoubt => {}
        _ if stop.is_asked() => {
            let legs = leg.end(&run, before.as_ref());
            write_unfinished(arguments, &directory, &Results::new(config, &run, &replicas)?, legs)?;
            return interrupted(&run);
        }
        RunState::Cancelled => bail!("the run was cancelled"),
        RunState::Blocked | RunState::Failed => bail!("{}", run.message),
        _ => bail!("the run stopped before its end: the same command continues from its last checkpoint"),
    }
    let results = Results::new(config, &run, &replicas)?;
    let provenance = Provenance::Computed(leg.end(&run, before.as_ref()));
    let status = finish(arguments, &directory, &results, provenance, compared())?;
    if let Some(page) = page {
        printed(stdout().flush())?;
        cluster::stay(page, &name, directory.path(), arguments.open, &stop)?;
    }
    Ok(status)
}

/// Writes and prints the results.
fn finish(
    arguments: &Arguments,
    directory: &Directory,
    results: &Results,
    provenance: Provenance,
    compared: Option<String>,
) -> anyhow::Result<ExitCode> {
    let result = results.to_json(provenance);
    directory.write_results(results, &result)?;
    if arguments.populations {
        directory.write_populations(results)?;
    }
    results.print(&result, directory.path(), compared, arguments.json)
}

/// Writes what there is of a run that was stopped.
fn write_unfinished(arguments: &Arguments, directory: &Directory, results: &Results, legs: Legs) -> anyhow::Result<()> {
    directory.write_results(results, &results.to_json(Provenance::Computed(legs)))?;
    let (out, program) = (directory.path().display(), program());
    tell(format_args!("what there is so far is in {out}: `{program} report {out}` shows it"));
    tell(format_args!("a report of it to send to others is {}", directory.path().join(REPORT).display()));
    if arguments.populations {
        directory.write_populations(results)?;
        tell(format_args!("the players that are left are in {out}/champions and {out}/populations"));
    }
    Ok(())
}

fn interrupted(run: &v1::Run) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = shlex::try_join(words.iter().map(String::as_str)).context("this command cannot be written down")?;
    let (done, total) = (run.rounds_done, run.rounds_total);
    tell(format_args!("stopped after {done} of {total} rounds, which are saved. Continue with\n  {command}"));
    Ok(ExitCode::FAILURE)
}
