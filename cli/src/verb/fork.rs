//! `evoxo fork RUN --at ROUND --set KEY=VALUE`: computes a run that begins as another one and goes on with other settings.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, bail};
use evoxo_common::experiment::{Config, REPLICAS_MAX, Registry, Replica};
use evoxo_coordinator::{
    prepared::Prepared,
    saved::{origin_of, seal_checkpoint},
};
use evoxo_proto::v1;
use evoxo_worker::Program;

use crate::{
    digests,
    directory::Directory,
    inline::Inline,
    kept::Kept,
    numbered::{RunDirectory, numbered},
    recompute::programs,
    remote::{Coordinator, connect, converse, refused},
    say::{notice, program, stdout, usage, whole},
    side::same,
    source::{pair, plain_name},
    stored,
    verb::{
        run::{Begun, Options, compute},
        submit::submit,
    },
};

/// The run, the round, and the settings from then on.
#[derive(clap::Args)]
#[command(
    after_help = "The new run computes the first rounds as RUN did, with the same digests, and goes on with the other settings. \
Stored states of RUN that are early enough are not computed again: those of a run with `keep = \"64 MiB\"` at the top of its \
file, or of one that is still computed. Its configuration says so in a table [[fork]], so it is an \
ordinary run: `run`, `submit`, `verify`, `diff` and `fork` itself take it. Without a change it is RUN itself.

Each kind of experiment says which settings may change; an attempt with another one names them.

Examples:
  evoxo fork out/invincible --at 10 --set penalty=100 --out out/careful
  evoxo diff out/invincible out/careful
      Names the round in which they part.
  evoxo fork out/td3d --at 50 --set alpha=0.001
  evoxo fork out/td3d --at 50 --set alpha=0.001 --config > drop.toml
      Only the experiment file, for `evoxo submit`.
  evoxo fork td3d --at 50 --set alpha=0.001 --submit --coordinator lab7:7600
      A fork of a run on a coordinator, computed there."
)]
pub(crate) struct Arguments {
    /// The run: its directory, or its result.json alone; with --submit also the name of a run on the coordinator
    run: PathBuf,
    /// The last round with RUN's settings, counted from 1
    #[arg(long, value_name = "ROUND", value_parser = whole::<u64>(1, u64::MAX >> 1))]
    at: u64,
    /// A setting after that round, for all arms, or for one as arms.NAME.SETTING; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    overrides: Vec<(String, String)>,
    /// Replicas of each arm, instead of RUN's number
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, REPLICAS_MAX.into()))]
    replicas: Option<u32>,
    /// Print the new run's experiment file, and compute nothing
    #[arg(long)]
    config: bool,
    /// Directory for results and checkpoints [default: out/RUN-fork, with a number appended if a run with other settings is
    /// there]
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "config")]
    out: Option<PathBuf>,
    /// Compute the new run on a coordinator
    #[arg(long, conflicts_with_all = ["config", "out", "programs"])]
    submit: bool,
    /// The new run's name on the coordinator [default: RUN-fork]
    #[arg(long, requires = "submit")]
    name: Option<String>,
    #[command(flatten)]
    coordinator: Coordinator,
    /// A program that the experiment asks, for example rosen="python3 rosen.py"; may be repeated
    #[arg(long = "program", value_name = "NAME=COMMAND")]
    programs: Vec<Program>,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    if arguments.submit {
        return submitted(arguments, registry);
    }
    let parent = Kept::read(registry, &arguments.run)?;
    let config = forked(arguments, registry, &parent.config)?;
    if arguments.config {
        stdout().write_all(config.to_toml().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    check_build(arguments, &parent)?;
    if config.forks.is_empty() {
        notice(format_args!("no setting changes, so this is the run in {} itself", arguments.run.display()));
    }
    config.forks_text().iter().for_each(notice);
    let programs = programs(&arguments.programs, registry, &config)?;
    let name = plain_name(&format!("{}-fork", parent.name()));
    let place = arguments.out.is_none().then(|| RunDirectory::of(registry, &name, &config, false));
    place.iter().for_each(RunDirectory::tell);
    let name = place.as_ref().map_or(name.clone(), |place| numbered(&name, place.number));
    let out = place.as_ref().map(|place| place.path.clone()).or(arguments.out.clone()).unwrap_or_default();
    let directory = Directory::open(registry, &out, &config, false)?;
    let name = match directory.run()? {
        Some(begun) => begun,
        None => {
            begin(arguments, registry, &directory, &name, [&parent.config, &config])?;
            name
        }
    };
    let begun = Begun { start, config, programs, name, directory, place, file: None };
    let status = compute(begun, &arguments.options, registry)?;
    check_past(arguments, &parent, &out)?;
    Ok(status)
}

/// Submits the new run.
fn submitted(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (parent, config) = if arguments.run.exists() {
        let parent = Kept::read(registry, &arguments.run)?;
        check_build(arguments, &parent)?;
        (parent.name(), parent.config)
    } else {
        let name = arguments.run.display().to_string();
        let request = v1::GetRequest { name: name.clone() };
        let run = converse(async {
            Ok(connect(&arguments.coordinator).await?.get(request).await.map_err(refused)?.into_inner())
        })?;
        let config = Config::parse(registry, "the coordinator's configuration", &run.config, &[])
            .context("this build cannot read the run: use the coordinator's version")?;
        (name, config)
    };
    let config = forked(arguments, registry, &config)?;
    config.forks_text().iter().for_each(notice);
    let name = arguments.name.clone().unwrap_or_else(|| plain_name(&format!("{parent}-fork")));
    let request = v1::SubmitRequest { name, ..Default::default() };
    submit(&arguments.coordinator, request, &config, arguments.options.json())?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration of the new run.
fn forked(arguments: &Arguments, registry: &Registry, parent: &Config) -> anyhow::Result<Config> {
    let mut overrides = arguments.overrides.clone();
    overrides.extend(arguments.replicas.map(|replicas| ("replicas".into(), replicas.to_string())));
    parent.forked(registry, arguments.at, &overrides).map_err(|problems| {
        let sentences: Vec<&str> = problems.list.iter().map(|problem| problem.sentence.as_str()).collect();
        usage(format_args!("{} cannot be forked: {}", arguments.run.display(), sentences.join("; ")))
    })
}

/// Checks that this build computes what the run's build computed.
fn check_build(arguments: &Arguments, parent: &Kept) -> anyhow::Result<()> {
    let kind = parent.config.kind;
    let of_run = parent.result["provenance"]["signature"].as_str();
    if of_run.is_none_or(|of_run| of_run == kind.signature().to_string()) {
        return Ok(());
    }
    Err(usage(format_args!(
        "{} was computed by a build whose tasks of {} have other results, so a fork of it would not have its past: compute it \
         again with this build, or fork it with that one",
        arguments.run.display(),
        kind.name
    )))
}

/// Begins the run from those states of the parent that it can use, if there are any.
fn begin(
    arguments: &Arguments,
    registry: &Registry,
    directory: &Directory,
    name: &str,
    [parent, config]: [&Config; 2],
) -> anyhow::Result<()> {
    if !arguments.run.is_dir() {
        return Ok(());
    }
    let origin = origin_of(registry, &Prepared::new(config.clone()));
    let memory_bytes = arguments.options.memory_bytes();
    // A run gets at most half of the memory, and needs some of that for its tasks.
    let early = stored::early(registry, &arguments.run, parent, arguments.at, memory_bytes / 4)?;
    let early = early.into_iter().filter(|state| state.replica < config.replicas);
    let states: Vec<v1::ReplicaState> = early.filter_map(|state| Replica::lengthened(config, state).ok()).collect();
    if states.is_empty() {
        return Ok(());
    }
    let mut store = Inline::open(registry, &directory.store(), memory_bytes)?;
    store.begin(name, config, seal_checkpoint(&origin, states))
}

/// Checks that the digests up to the fork are those that the parent keeps.
fn check_past(arguments: &Arguments, parent: &Kept, out: &Path) -> anyhow::Result<()> {
    if !digests::path(out).exists() {
        return Ok(());
    }
    let before: Vec<digests::Line> =
        parent.digests()?.into_iter().filter(|line| line.link.round <= arguments.at).collect();
    for line in digests::read(out)? {
        let twin = before.iter().find(|it| {
            let place = |it: &digests::Line| (it.replica, it.link.round, it.link.rows);
            it.arm == line.arm && place(it) == place(&line)
        });
        if twin.is_some_and(|twin| !same(&twin.link.digest.to_string(), &line.link.digest.to_string())) {
            let (run, program) = (arguments.run.display(), program());
            bail!(
                "replica {} of arm {:?} differs from the one in {run} after round {}, before the fork, so {run} is not what this \
                 build computes: `{program} verify {run}` shows the first difference",
                line.replica,
                line.arm,
                line.link.round
            );
        }
    }
    Ok(())
}
