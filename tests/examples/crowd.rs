//! `cargo crowd [STREAMS]`: what many connected workers (default: 3,000) cost a coordinator and the workers that compute.
//!
//! All connections are real ones with TLS and certificates, from one program on the same machine. Two real workers compute
//! `dispatch`, tasks that do nothing, first alone and then next to the crowd. Then the whole crowd loses its connections at
//! once and comes back while they compute. The crowd computes another kind of experiment, so it gets no tasks. In addition, a
//! crowd of 500 that computes is compared with a crowd of two.

use std::{
    env, fs,
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use evoxo_access::{AccessFile, Role};
use evoxo_common::rng::{Generator, Stream, below};
use evoxo_proto::v1::{Heartbeat, from_worker::Message, to_worker::Message as Incoming};
use evoxo_tests::{
    live::{Coordinator, Process, Site},
    person::{Person, digest_of_one_thread},
    script::{Session, hello, honest},
    secure::{Secure, channel},
};
use tokio::{sync::Semaphore, task::JoinSet};

const STREAMS: usize = 3_000;
/// The number of workers of a medium-sized cluster.
const MANY: usize = 500;
const TASKS: u32 = 200_000;
/// The tasks of a round, in each of four replicas.
const ROUND: u32 = 1000;
/// Fewer tasks for 500 workers that all compute, because they take much longer.
const TASKS_OF_BUSY: u32 = 20_000;
/// Each value is the median of this many runs.
const PASSES: usize = 5;
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How many handshakes of the crowd are in progress at once: fewer than one address may have.
const HANDSHAKES: usize = 100;

fn dispatch(seed: usize, tasks: u32) -> String {
    format!(
        "experiment = \"dispatch\"\nseed = {seed}\nreplicas = 4\n[settings]\nrounds = {}\ntasks = {ROUND}\npayload_bytes = 1000\n\
         reply_bytes = 100\n",
        tasks / 4 / ROUND
    )
}

/// A cluster with two real workers.
struct Cluster {
    coordinator: Coordinator,
    person: Person,
    /// The certificate of one of the real workers, which the crowd uses as well.
    worker: Option<Arc<AccessFile>>,
    runs: usize,
    /// The tasks of each run.
    tasks: u32,
    _workers: Vec<Process>,
}

impl Cluster {
    async fn secure(site: &Site) -> Self {
        let secure = Secure::init(site, "access");
        let coordinator = secure.coordinator("127.0.0.1:0", &["--checkpoint-interval", "3"]);
        let token = secure.token(coordinator.address, Role::Worker, 3600, 2).await;
        let workers = ["one", "two"].map(|name| secure.worker(coordinator.address, &token, name)).into();
        let person = secure.person(coordinator.address);
        let mut cluster = Self { coordinator, person, worker: None, runs: 0, tasks: TASKS, _workers: workers };
        cluster.await_workers().await;
        let worker = AccessFile::load(&site.path("one.access")).expect("the worker has joined");
        cluster.worker = Some(Arc::new(worker));
        cluster
    }

    /// A cluster without real workers. A crowd computes instead.
    async fn empty(site: &Site) -> Self {
        let secure = Secure::init(site, "access");
        let coordinator = secure.coordinator("127.0.0.1:0", &["--checkpoint-interval", "3"]);
        let joined = secure.newcomer(coordinator.address, Role::Worker, "crowd").await;
        let person = secure.person(coordinator.address);
        let (worker, tasks) = (Some(Arc::new(joined)), TASKS_OF_BUSY);
        Self { coordinator, person, worker, runs: 0, tasks, _workers: Vec::new() }
    }

    async fn plain(site: &Site) -> Self {
        let coordinator = site.coordinator(&["--checkpoint-interval", "3"]);
        let workers = ["one", "two"].map(|name| site.worker(coordinator.address, &["--name", name])).into();
        let person = Person::of(coordinator.address);
        let mut cluster = Self { coordinator, person, worker: None, runs: 0, tasks: TASKS, _workers: workers };
        cluster.await_workers().await;
        cluster
    }

    async fn await_workers(&mut self) {
        for name in ["one", "two"] {
            self.person.worker(name).await;
        }
    }

    /// Computes one run, whose digest must be right; returns its tasks per second.
    async fn rate(&mut self) -> f64 {
        self.runs += 1;
        let (name, config) = (format!("run-{}", self.runs), dispatch(self.runs, self.tasks));
        let began = Instant::now();
        self.person.submit(&name, &config).await;
        let run = self.person.finished(&name).await;
        let rate = f64::from(self.tasks) / began.elapsed().as_secs_f64();
        assert_eq!(run.digest, digest_of_one_thread(&config));
        rate
    }

    fn memory(&self) -> u64 {
        self.coordinator.process.memory_bytes("VmRSS").unwrap_or_default()
    }
}

/// Compares 500 workers that all compute with two.
#[expect(clippy::print_stdout, reason = "what was measured")]
async fn compare_busy(streams: usize) {
    let sites = [Site::new(), Site::new()];
    let (mut few, mut many) = (Cluster::empty(&sites[0]).await, Cluster::empty(&sites[1]).await);
    let mut crowds = [Crowd::of(&few, "dispatch"), Crowd::of(&many, "dispatch")];
    let wanted = MANY.min(streams);
    crowds[0].join(2).await;
    crowds[1].join(wanted).await;
    let [two, all] = in_turns(&mut few, &mut many).await;
    println!("{two:.0} tasks/s of two that compute, {all:.0} of {wanted}: {:.0} %", 100.0 * all / two);
}

/// The median of an odd number of rates.
fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Connected workers in this program, which compute tasks of one kind.
struct Crowd {
    kind: &'static str,
    coordinator: SocketAddr,
    access: Arc<AccessFile>,
    members: JoinSet<()>,
}

impl Crowd {
    fn of(cluster: &Cluster, kind: &'static str) -> Self {
        let access = cluster.worker.clone().expect("the cluster is a secure one");
        Self { kind, coordinator: cluster.coordinator.address, access, members: JoinSet::new() }
    }

    /// Adds so many members. Returns when the coordinator has welcomed each.
    async fn join(&mut self, more: usize) {
        let welcomed = Arc::new(Semaphore::new(0));
        let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
        for number in self.members.len()..self.members.len() + more {
            let (coordinator, access, kind) = (self.coordinator, Arc::clone(&self.access), self.kind);
            let (welcomed, handshakes) = (Arc::clone(&welcomed), Arc::clone(&handshakes));
            self.members.spawn(async move {
                let mut rng = Stream::root(1).word(number as u64).rng();
                let mut session = loop {
                    let turn = handshakes.acquire().await;
                    match enter(coordinator, &access, number, kind).await {
                        Some(session) => break session,
                        None => drop(turn),
                    }
                    tokio::time::sleep(wait(&mut rng)).await;
                };
                welcomed.add_permits(1);
                stay(&mut session).await;
            });
        }
        let all = u32::try_from(more).expect("the number is small");
        drop(welcomed.acquire_many(all).await);
    }

    /// Ends all connections at once.
    async fn vanish(&mut self) -> usize {
        let members = self.members.len();
        self.members.shutdown().await;
        members
    }
}

/// How long a worker that must come back later waits: up to a second.
fn wait(rng: &mut Generator) -> Duration {
    Duration::from_millis(below(rng, 1000))
}

/// A session that was welcomed; `None` if the coordinator is busy.
async fn enter(coordinator: SocketAddr, access: &AccessFile, number: usize, kind: &str) -> Option<Session> {
    let mut hello = hello(&format!("crowd-{number}"));
    hello.kinds.retain(|known| known.kind == kind);
    let mut session = Session::open_over(channel(coordinator, Some(access))).await.ok()?;
    session.send(Message::Hello(hello)).await;
    matches!(session.receive().await, Ok(Some(Incoming::Welcome(_)))).then_some(session)
}

/// Sends heartbeats and outputs, until the coordinator ends the session.
async fn stay(session: &mut Session) {
    let mut beat = tokio::time::interval(HEARTBEAT);
    loop {
        tokio::select! {
            _ = beat.tick() => session.send(Message::Heartbeat(Heartbeat {})).await,
            assigned = session.next_tasks() => {
                let Some(assigned) = assigned else { return };
                session.answer(assigned.id, &assigned.tasks, honest).await;
            }
        }
    }
}

fn own_memory() -> u64 {
    let status = fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

/// Measures two clusters in turns, because the machine may be busier at one time than at another.
async fn in_turns(one: &mut Cluster, other: &mut Cluster) -> [f64; 2] {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..PASSES {
        rates[0].push(one.rate().await);
        rates[1].push(other.rate().await);
    }
    rates.map(median)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "what was measured")]
async fn main() -> ExitCode {
    let streams = env::args().nth(1).map_or(Ok(STREAMS), |text| text.parse());
    let Ok(streams) = streams else {
        println!("usage: cargo crowd [STREAMS]");
        return ExitCode::FAILURE;
    };
    compare_busy(streams).await;
    let sites = [Site::new(), Site::new(), Site::new()];
    let (mut plain, mut quiet) = (Cluster::plain(&sites[0]).await, Cluster::secure(&sites[1]).await);
    let mut crowded = Cluster::secure(&sites[2]).await;
    let [without, with] = in_turns(&mut plain, &mut quiet).await;
    println!("{without:.0} tasks/s without TLS, {with:.0} with: {:.0} %", 100.0 * with / without);
    drop(plain);

    let mut crowd = Crowd::of(&crowded, "menace");
    crowded.rate().await;
    let (before, own_before) = (crowded.memory(), own_memory());
    for wanted in [MANY.min(streams), streams] {
        crowd.join(wanted - crowd.members.len()).await;
        let (memory, own) = (crowded.memory() - before, own_memory() - own_before);
        let each = |bytes: u64| (bytes / wanted as u64) >> 10;
        println!("{wanted} streams: {} KiB each in the coordinator, {} KiB in the crowd", each(memory), each(own));
        let [alone, beside] = in_turns(&mut quiet, &mut crowded).await;
        println!(
            "{alone:.0} tasks/s of two workers alone, {beside:.0} beside {wanted}: {:.0} %",
            100.0 * beside / alone
        );
    }

    let members = crowd.vanish().await;
    let began = Instant::now();
    let storm = async {
        crowd.join(members).await;
        began.elapsed()
    };
    let computing = async {
        let mut rates = Vec::new();
        while rates.len() < 3 {
            rates.push(crowded.rate().await);
        }
        median(rates)
    };
    let (storm, rate) = tokio::join!(storm, computing);
    println!("{members} came back within {:.0} s, while two computed {rate:.0} tasks/s", storm.as_secs_f64());
    let log = crowded.coordinator.process.log();
    let lost: Vec<&str> = log.lines().filter(|line| line.contains("is lost") && !line.contains("crowd-")).collect();
    assert!(lost.is_empty(), "{lost:?}");
    ExitCode::SUCCESS
}
