//! `evoxo submit --autoscale slurm`: starts and ends worker jobs as a run's open tasks require, until the run or the command
//! ends. `scale` decides how many jobs are needed; this module asks the coordinator and Slurm, and decides how often.

mod scale;
mod slurm;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use evoxo_process::duration;
use evoxo_proto::v1::{self, RunState};
use tokio::time::timeout;

use crate::{
    progress::Progress,
    remote::{Client, Coordinator, connect, converse, is_lost, refused},
    say::{tell, usage, whole},
    stop::Stop,
    verb::watch::verdict,
};
use scale::{Action, FAILURES_MAX, Scale, Seen, Stage};
use slurm::{Queued, Slurm};

/// The shortest and the longest time between two looks. A look happens at least four times within `--idle`, unless `--idle`
/// is very short.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(200);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(5);
const LOOKS_UNTIL_IDLE: u32 = 4;
/// Between two looks, a request to stop is checked this often.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// The coordinator must answer within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// After `sbatch` refuses, no job is started for this long.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// If the coordinator or Slurm does not answer for this long, the command ends.
const PATIENCE: Duration = Duration::from_secs(600);

/// Options of `sbatch` that this command sets itself, because it recognizes its jobs by them.
const OWN_OPTIONS: [&str; 4] = ["--array", "-a", "--job-name", "-J"];

/// The scheduler that starts the jobs.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Scheduler {
    /// `sbatch`, `squeue` and `scancel` on this machine
    Slurm,
}

/// The options of autoscaling.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Autoscale {
    /// Start worker jobs while tasks are left over, end jobs that are of no use, and stay until the run ends. All jobs end
    /// with this command
    #[arg(long, value_name = "SCHEDULER", value_enum, requires = "sbatch")]
    autoscale: Option<Scheduler>,
    /// With --autoscale: the most jobs at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = whole::<u32>(1, 1000), requires = "autoscale")]
    max_jobs: u32,
    /// With --autoscale: end a job after it has been of no use for this long: 90s, 2m, 1h
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration, requires = "autoscale")]
    idle: Duration,
    /// With --autoscale: arguments for `sbatch`, which are its options and a worker's script, without --array and --job-name
    #[arg(last = true, value_name = "SBATCH", requires = "autoscale")]
    sbatch: Vec<String>,
}

impl Autoscale {
    /// Whether autoscaling is requested. It is an error if the arguments for `sbatch` contain an option that this command
    /// sets itself.
    pub(crate) fn is_wanted(&self) -> anyhow::Result<bool> {
        let own = |word: &&String| OWN_OPTIONS.iter().any(|option| word.starts_with(option));
        match self.sbatch.iter().find(own) {
            Some(word) => Err(usage(format!(
                "{word} cannot be used with --autoscale, which sets --array and --job-name itself: leave it out"
            ))),
            None => Ok(self.autoscale.is_some()),
        }
    }

    fn slurm(&self, coordinator: &Coordinator, run: &str) -> Slurm {
        Slurm::new(run, coordinator.address.to_string(), self.sbatch.clone())
    }

    /// Asks the scheduler once, so that nothing is submitted if this machine has no scheduler.
    pub(crate) fn try_scheduler(&self, coordinator: &Coordinator, run: &str) -> anyhow::Result<()> {
        self.slurm(coordinator, run).jobs().map(drop)
    }

    /// Starts and ends jobs until the run ends or a stop is requested.
    pub(crate) fn follow(&self, coordinator: &Coordinator, run: &str, json: bool) -> anyhow::Result<ExitCode> {
        let stop = Stop::listen()?;
        let slurm = self.slurm(coordinator, run);
        let mut looks = Looks { run, coordinator, slurm: &slurm, client: None, progress: Progress::new() };
        let followed = converse(self.rounds(&mut looks, &stop));
        looks.progress.end();
        let ended = slurm.end_all();
        if let (Err(_), Err(why)) = (&followed, &ended) {
            tell(format_args!("note: {why:#}"));
        }
        let Some(last) = followed? else {
            ended?;
            tell(format_args!(
                "stopped: {run} continues with other workers, if there are any; the same command starts jobs again"
            ));
            return Ok(ExitCode::FAILURE);
        };
        ended?;
        verdict(&last, &coordinator.address, json)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Looks and acts in turn. Returns the run when it has ended, or `None` if a stop was requested.
    async fn rounds(&self, looks: &mut Looks<'_>, stop: &Stop) -> anyhow::Result<Option<v1::Run>> {
        let interval = (self.idle / LOOKS_UNTIL_IDLE).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX);
        let (start, mut scale) = (Instant::now(), Scale::new(self.max_jobs, self.idle));
        let (mut said, mut answered) = (String::new(), None);
        while !stop.is_asked() {
            let looked = Instant::now();
            let news = match looks.look().await? {
                Looked::Ended(run) => return Ok(Some(*run)),
                Looked::Seen(seen) => {
                    answered = Some(looked);
                    looks.act(&mut scale, start.elapsed(), &seen)?;
                    describe(&seen)
                }
                // If the first look gets no answer, later ones will not either.
                Looked::Unanswered(why) if answered.is_none_or(|at| at.elapsed() > PATIENCE) => bail!("{why}"),
                Looked::Unanswered(why) => why,
            };
            if news != said {
                looks.progress.say(&news);
                said = news;
            }
            while looked.elapsed() < interval && !stop.is_asked() {
                tokio::time::sleep(STOP_INTERVAL).await;
            }
        }
        Ok(None)
    }
}

/// The result of one look.
enum Looked {
    Ended(Box<v1::Run>),
    Seen(Seen),
    /// The coordinator or Slurm did not answer, for this reason.
    Unanswered(String),
}

/// The coordinator and the scheduler that are asked.
struct Looks<'a> {
    run: &'a str,
    coordinator: &'a Coordinator,
    slurm: &'a Slurm,
    client: Option<Client>,
    progress: Progress,
}

impl Looks<'_> {
    /// Asks the coordinator, then Slurm.
    async fn look(&mut self) -> anyhow::Result<Looked> {
        let answers = timeout(ANSWER_TIMEOUT, self.ask()).await;
        let (run, workers) = match answers.map_err(|_| "the coordinator does not answer".to_owned()) {
            Ok(Ok(Ok(answers))) => answers,
            Ok(Ok(Err(why))) | Err(why) => {
                self.client = None;
                return Ok(Looked::Unanswered(why));
            }
            Ok(Err(error)) => return Err(error),
        };
        self.progress.show(&run);
        if !matches!(run.state(), RunState::Running | RunState::Paused) {
            return Ok(Looked::Ended(Box::new(run)));
        }
        Ok(match self.slurm.jobs() {
            Ok(jobs) => Looked::Seen(seen(&run, &workers, &jobs)),
            Err(why) => Looked::Unanswered(format!("{why:#}")),
        })
    }

    /// The run and the workers, or the reason why the coordinator cannot be asked now.
    async fn ask(&mut self) -> anyhow::Result<Result<(v1::Run, Vec<v1::Worker>), String>> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => match connect(self.coordinator).await {
                Ok(client) => client,
                Err(why) => return Ok(Err(format!("{why:#}"))),
            },
        };
        let answers = async {
            let run = client.get(v1::GetRequest { name: self.run.into() }).await?.into_inner();
            let workers = client.list_workers(v1::ListWorkersRequest {}).await?.into_inner().workers;
            Ok((run, workers))
        };
        match answers.await {
            Ok(answers) => {
                self.client = Some(client);
                Ok(Ok(answers))
            }
            Err(status) if is_lost(&status) => Ok(Err(format!("{:#}", refused(status)))),
            Err(status) => Err(refused(status)),
        }
    }

    /// Carries out what [`Scale`] decides.
    fn act(&self, scale: &mut Scale, now: Duration, seen: &Seen) -> anyhow::Result<()> {
        for action in scale.decide(now, seen) {
            match action {
                Action::Start(jobs) => match self.slurm.start(jobs) {
                    Ok(()) => scale.started(jobs),
                    // If `sbatch` refuses the first jobs, it will refuse later ones too.
                    Err(why) if !scale.has_started() => return Err(why),
                    Err(why) => {
                        self.progress.say(&format!("note: {why:#}"));
                        scale.pause(now + REFUSED_PAUSE);
                    }
                },
                Action::End(jobs) => {
                    if let Err(why) = self.slurm.end(&jobs) {
                        self.progress.say(&format!("note: {why:#}"));
                    }
                }
                Action::Failed(jobs) => {
                    let jobs = if jobs == 1 { "a job".to_owned() } else { format!("{jobs} jobs") };
                    self.progress
                        .say(&format!("note: {jobs} ended before a worker joined: the output of the job says why"));
                }
                Action::GiveUp => bail!(
                    "{FAILURES_MAX} jobs in a row ended before their workers joined: their output says why (with \
                    deploy/slurm/worker.sbatch, see evoxo-worker-*.log in the directory where they started)"
                ),
            }
        }
        Ok(())
    }
}

/// Finds each job's stage. A job's worker has a name that ends with the job's number, as in `deploy/slurm/worker.sbatch`.
fn seen(run: &v1::Run, workers: &[v1::Worker], jobs: &[Queued]) -> Seen {
    let computes = |worker: &&v1::Worker| worker.kinds.contains(&run.kind);
    let stage = |job: &Queued| {
        let suffix = format!("-{}", job.id.replace('_', "-"));
        match workers.iter().filter(computes).find(|worker| worker.name.ends_with(&suffix)) {
            // The worker computes the kind, but the run asks a program that no worker has.
            Some(_) if run.slots == 0 => Stage::Started,
            Some(worker) => Stage::Joined { busy: worker.slots_busy > 0, tasks_done: worker.tasks_done },
            None if job.runs => Stage::Started,
            None => Stage::Queued,
        }
    };
    let tasks = u64::from(run.tasks_waiting) + u64::from(run.tasks_assigned);
    let open = match run.state() {
        // In a quorum, two identities compute each task, so one job is too few, however many slots it has.
        RunState::Running if run.verification() == v1::Verification::Quorum && run.workers < 2 && tasks > 0 => {
            tasks.max(u64::from(run.slots) + 1)
        }
        RunState::Running => tasks,
        _ => 0,
    };
    let jobs: BTreeMap<String, Stage> = jobs.iter().map(|job| (job.id.clone(), stage(job))).collect();
    Seen { open, slots: run.slots.into(), jobs }
}

/// "3 jobs: 1 queued, 0 starting, 2 at work".
fn describe(seen: &Seen) -> String {
    let of = |wanted: fn(&Stage) -> bool| seen.jobs.values().filter(|stage| wanted(stage)).count();
    let [queued, starting] = [of(|stage| *stage == Stage::Queued), of(|stage| *stage == Stage::Started)];
    let joined = of(|stage| matches!(stage, Stage::Joined { .. }));
    format!("{} jobs: {queued} queued, {starting} starting, {joined} at work", seen.jobs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str, kinds: &[&str], slots_busy: u32) -> v1::Worker {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        v1::Worker { name: name.into(), kinds, slots_busy, tasks_done: 5, ..v1::Worker::default() }
    }

    #[test]
    fn workers_are_matched_to_their_jobs() {
        let state = RunState::Running.into();
        let run = v1::Run {
            kind: "rules".into(),
            state,
            tasks_waiting: 3,
            tasks_assigned: 2,
            slots: 4,
            ..v1::Run::default()
        };
        let jobs = [("12_1", true), ("12_2", true), ("12_3", true), ("12_11", true), ("13_1", false)];
        let jobs = jobs.map(|(id, runs)| Queued { id: id.into(), runs });
        let workers =
            [worker("lab-12-1", &["rules"], 1), worker("lab-12-2", &["rules"], 0), worker("lab-12-3", &["nndtf"], 0)];
        let seen_now = seen(&run, &workers, &jobs);
        let stages: Vec<(&str, Stage)> = seen_now.jobs.iter().map(|(id, stage)| (id.as_str(), *stage)).collect();
        let expected = [
            ("12_1", Stage::Joined { busy: true, tasks_done: 5 }),
            ("12_11", Stage::Started),
            ("12_2", Stage::Joined { busy: false, tasks_done: 5 }),
            ("12_3", Stage::Started),
            ("13_1", Stage::Queued),
        ];
        assert_eq!(stages, expected);
        assert_eq!((seen_now.open, seen_now.slots), (5, 4));
        assert_eq!(describe(&seen_now), "5 jobs: 1 queued, 2 starting, 2 at work");
        let quorum = v1::Run { verification: v1::Verification::Quorum.into(), slots: 64, workers: 1, ..run.clone() };
        assert_eq!(seen(&quorum, &workers, &jobs).open, 65, "one identity is not enough");
        assert_eq!(seen(&v1::Run { workers: 2, ..quorum }, &workers, &jobs).open, 5);
        let paused = v1::Run { state: RunState::Paused.into(), ..run };
        assert_eq!(seen(&paused, &workers, &jobs).open, 0, "a paused run needs no workers");
    }
}
