//! Computes replicas again on this machine's cores, without a cluster, and compares them with the claims round by round.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use evoxo_common::{
    experiment::{Config, Link, Registry, Replica},
    task::Task,
};
use evoxo_proto::v1::{self, RunState};
use evoxo_worker::{Processes, Program};

use crate::{
    claims::{Claims, Difference, Key},
    progress::Progress,
    say::{usage, whole},
    stop,
};

/// How often progress is shown.
const SHOW_INTERVAL: Duration = Duration::from_millis(200);

/// A replica that was computed again to its end, or the first difference.
type Outcome = anyhow::Result<Result<Replica, Difference>>;

/// The results of computing again.
pub(crate) struct Recomputed {
    /// The replicas that match the claims, in order.
    pub(crate) replicas: Vec<Replica>,
    /// The first difference of each replica that does not match, in order.
    pub(crate) differences: Vec<Difference>,
    pub(crate) rounds: u64,
}

/// Computes these replicas with this number of threads. `seen` is called with each replica after each of its rounds.
pub(crate) fn recompute(
    claims: &Claims,
    keys: &[Key],
    threads: usize,
    programs: &Arc<[Program]>,
    progress: &mut Progress,
    seen: &(dyn Fn(Key, &Replica) + Sync),
) -> anyhow::Result<Recomputed> {
    let rounds = AtomicU64::new(0);
    let job = |place: usize, programs: &mut [Processes]| one_replica(claims, keys[place], programs, &rounds, seen);
    let config = &claims.config;
    let name = format!("verifying {}", config.kind.name);
    let most = |key: &Key| (config.kind.rounds)(&config.arms[key.0].settings);
    let total = keys.iter().map(most).fold(0, u64::saturating_add);
    let show = |done: usize| {
        progress.show(&as_run(config, &name, [done, keys.len()], [rounds.load(Ordering::Relaxed), total]));
    };
    let found = in_lanes(keys.len(), threads, programs, &job, show)?;
    let mut recomputed =
        Recomputed { replicas: Vec::new(), differences: Vec::new(), rounds: rounds.load(Ordering::Relaxed) };
    for outcome in found {
        match outcome {
            Ok(replica) => recomputed.replicas.push(replica),
            Err(difference) => recomputed.differences.push(difference),
        }
    }
    Ok(recomputed)
}

/// Computes jobs with this number of threads, and returns their results in order. Each job gets a set of programs for each
/// thread that it may use. `show` is called from time to time, with the number of finished jobs.
pub(crate) fn in_lanes<T: Send>(
    jobs: usize,
    threads: usize,
    programs: &Arc<[Program]>,
    job: &(dyn Fn(usize, &mut [Processes]) -> anyhow::Result<T> + Sync),
    mut show: impl FnMut(usize),
) -> anyhow::Result<Vec<T>> {
    // Each job has one thread. If there are fewer jobs than threads, the other threads help with the tasks of a round.
    let lanes = threads.min(jobs).max(1);
    let helpers = (threads / lanes).max(1);
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = mpsc::channel::<(usize, anyhow::Result<T>)>();
    let mut found: Vec<Option<T>> = (0..jobs).map(|_| None).collect();
    let mut failed = None;
    thread::scope(|scope| {
        let lane = |sender: mpsc::Sender<(usize, anyhow::Result<T>)>| {
            let next = &next;
            scope.spawn(move || {
                let mut programs: Vec<Processes> = (0..helpers).map(|_| Processes::new(Arc::clone(programs))).collect();
                while let Some(place) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|place| *place < jobs) {
                    if sender.send((place, job(place, &mut programs))).is_err() {
                        return;
                    }
                }
            })
        };
        let lanes: Vec<_> = (0..lanes).map(|_| lane(sender.clone())).collect();
        drop(sender);
        let mut done = 0;
        loop {
            match outcomes.recv_timeout(SHOW_INTERVAL) {
                Ok((place, Ok(outcome))) => (done, found[place]) = (done + 1, Some(outcome)),
                Ok((_, Err(error))) => {
                    // The other threads end after the job that they are computing.
                    next.store(jobs, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            show(done);
        }
        // If a thread panics, its result is missing, which is noticed below.
        lanes.into_iter().for_each(|lane| drop(lane.join()));
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let all: Option<Vec<T>> = found.into_iter().collect();
    all.context("a thread ended before its replica was computed: the experiment's code panicked")
}

/// The progress of jobs that compute replicas again, in the form of a run's progress.
pub(crate) fn as_run(config: &Config, name: &str, jobs: [usize; 2], rounds: [u64; 2]) -> v1::Run {
    let ([done, of], [rounds_done, rounds_total]) = (jobs, rounds);
    v1::Run {
        name: name.into(),
        kind: config.kind.name.into(),
        state: RunState::Running.into(),
        replicas_total: of as u32,
        replicas_finished: done as u32,
        rounds_done,
        rounds_total,
        workers: 1,
        slots: 1,
        ..v1::Run::default()
    }
}

/// Computes a replica from its beginning to its end, or to the first difference.
fn one_replica(
    claims: &Claims,
    key: Key,
    programs: &mut [Processes],
    rounds: &AtomicU64,
    seen: &(dyn Fn(Key, &Replica) + Sync),
) -> Outcome {
    let config = &claims.config;
    let mut replica = Replica::start(config, &config.arms[key.0], key.1);
    while !replica.is_finished() {
        let (before, round) = (replica.history().len(), replica.rounds() + 1);
        advance(&mut replica, programs)?;
        rounds.fetch_add(1, Ordering::Relaxed);
        if let Some(difference) = claims.check_rows(key, &replica, before, round) {
            return Ok(Err(difference));
        }
        seen(key, &replica);
    }
    Ok(claims.check_replica(key, &replica).map_or(Ok(replica), Err))
}

/// The digests of a replica after each of these rounds, which must be in ascending order. The replica is computed from its
/// beginning. Rounds after its end have no digest.
pub(crate) fn links(config: &Config, (arm, index): Key, rounds: &[u64], threads: usize) -> anyhow::Result<Vec<Link>> {
    let mut programs: Vec<Processes> = (0..threads).map(|_| Processes::new(Arc::default())).collect();
    let mut replica = Replica::start(config, &config.arms[arm], index);
    let mut links = Vec::new();
    for round in rounds {
        while replica.rounds() < *round && !replica.is_finished() {
            advance(&mut replica, &mut programs)?;
        }
        if replica.rounds() == *round {
            links.push(Link { round: *round, rows: replica.history().len() as u64, digest: replica.digest() });
        }
    }
    Ok(links)
}

/// Computes the next round of an unfinished replica, with as many threads as there are sets of programs.
pub(crate) fn advance(replica: &mut Replica, programs: &mut [Processes]) -> anyhow::Result<()> {
    let outputs = outputs(&replica.plan(0..replica.needed()), programs).map_err(|why| {
        let (index, arm, round) = (replica.index(), replica.arm(), replica.rounds() + 1);
        anyhow!("a task of replica {index} of arm {arm:?} in round {round} failed: {why}")
    })?;
    replica.absorb(&outputs);
    Ok(())
}

/// What computes replicas again: threads, and the programs that they ask.
#[derive(clap::Args)]
pub(crate) struct Recomputing {
    /// Threads that compute [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1024))]
    threads: Option<u32>,
    /// A program that the experiment asks, for example rosen="python3 rosen.py"; may be repeated
    #[arg(long = "program", value_name = "NAME=COMMAND")]
    programs: Vec<Program>,
}

impl Recomputing {
    /// The number of threads that compute: the given number, or one for each core.
    pub(crate) fn threads(&self) -> anyhow::Result<usize> {
        match self.threads {
            Some(threads) => Ok(threads as usize),
            None => Ok(thread::available_parallelism().context("cannot determine the cores; give --threads")?.get()),
        }
    }

    /// See [`programs`].
    pub(crate) fn programs(&self, registry: &Registry, config: &Config) -> anyhow::Result<Arc<[Program]>> {
        programs(&self.programs, registry, config)
    }
}

/// The programs that a run asks. All of them must be given, and must be the same ones that the run asked.
pub(crate) fn programs(given: &[Program], registry: &Registry, config: &Config) -> anyhow::Result<Arc<[Program]>> {
    if !given.is_empty() {
        stop::with_programs()?;
    }
    let programs: Arc<[Program]> = given.into();
    let mut processes = Processes::new(Arc::clone(&programs));
    for asked in config.programs() {
        let name = &asked.name;
        if !programs.iter().any(|program| program.name == *name) {
            return Err(usage(format_args!(
                "the run asked the program {name}: give its command, for example --program {name}=\"python3 {name}.py\""
            )));
        }
        let introduced = registry.introduce(name, &mut processes).map_err(|refusal| anyhow!("{}", refusal.0))?;
        if !introduced.iter().any(|(kind, id)| kind.name == config.kind.name && *id == asked) {
            bail!("the program {name} differs from the one that the run asked: give the same program");
        }
    }
    Ok(programs)
}

/// The outputs of a round's tasks, computed by as many threads as there are sets of programs.
fn outputs(tasks: &[Task], programs: &mut [Processes]) -> Result<Vec<Bytes>, String> {
    let next = AtomicUsize::new(0);
    let some = |programs: &mut Processes| {
        let mut outputs = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(place) else { return Ok(outputs) };
            outputs.push((place, task.run_asking(programs).map_err(|refusal| refusal.0)?));
        }
    };
    let (first, others) = programs.split_first_mut().ok_or("no thread is left for it")?;
    let parts: Vec<Result<Vec<(usize, Bytes)>, String>> = match tasks.len() {
        0 | 1 => vec![some(first)],
        _ => thread::scope(|scope| {
            let helpers: Vec<_> = others.iter_mut().map(|programs| scope.spawn(|| some(programs))).collect();
            let own = some(first);
            let joined = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|_| Err("it panicked".into())));
            [own].into_iter().chain(joined).collect()
        }),
    };
    let mut outputs: Vec<(usize, Bytes)> = Vec::with_capacity(tasks.len());
    for part in parts {
        outputs.extend(part?);
    }
    outputs.sort_unstable_by_key(|(place, _)| *place);
    Ok(outputs.into_iter().map(|(_, output)| output).collect())
}
