//! How long a run takes on many hosts, on the virtual clock. The core, the replicas and the workers' state machines are real;
//! each host has its own processor, behind a network card of a given speed. Nothing fails.
//!
//! In a [`Model::measured`] model, computation takes as long on the virtual clock as this simulation's thread takes for it,
//! in processor time: tasks, the coordinator's events and jobs, and the encoding of messages. The clock adds the time of the
//! network, extra time per task, and [`CARRY`]. TLS and other work of the hosts are left out.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use cpu_time::ThreadTime;
use evoxo_common::{
    digest::Digest,
    experiment::Config,
    task::{Encoded, NoPrograms},
    time::Millis,
};
use evoxo_coordinator::{
    core::{Coordinator, Effect, Event, Request, RequestId, SessionId, Settings, ThreadId},
    prepared::Prepared,
    replicas::{Job, Lanes, ReplicaKey, Replicas, Report},
    store::Store,
    trust::Level,
};
use evoxo_proto::v1::{self, RunState, from_worker, task_result::Outcome};
use evoxo_tests::{person::digest_of_one_thread, programs::workspace, registry};
use evoxo_worker::core as worker_core;
use object_store::memory::InMemory;
use prost::Message as _;

use super::{
    draw,
    worker::{Character, core},
};

/// Nanoseconds.
type Nanos = u64;

const MS: Nanos = 1_000_000;
/// The time that HTTP/2 and the system take for each byte at each end. With 1 ns, the simulation of one process on the same
/// host is 1.0 to 1.2 times as fast as a real one (docs/many-workers.md).
const CARRY: Nanos = 1;
/// The time of a write to the store, about that of a local disk.
const WRITE: Nanos = 2 * MS;

/// How long everything takes.
#[derive(Clone, Copy)]
struct Model {
    /// The speed of each host's network card, in each direction; 0 means unlimited.
    gigabits: u64,
    /// The latency from one host to another.
    latency: Nanos,
    /// How much longer each task takes than it takes here.
    more: Nanos,
    /// Whether computation takes time.
    measured: bool,
    /// The cores of the coordinator's host that work on the replicas.
    lanes: usize,
    /// How much longer each job of the replicas takes than it takes here.
    job: Nanos,
    /// A task takes so many times as long as here: it stands for one of a larger experiment.
    times: u64,
}

impl Model {
    /// How long so many bytes occupy a card.
    fn on_card(&self, bytes: usize) -> Nanos {
        (8 * bytes as u64).checked_div(self.gigabits).unwrap_or(0)
    }

    /// How long one end works on so many bytes.
    fn at_end(&self, bytes: usize) -> Nanos {
        if self.measured { CARRY * bytes as u64 } else { 0 }
    }

    /// Does some work, and returns how long it took.
    fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, Nanos) {
        let began = ThreadTime::now();
        let done = work();
        (done, if self.measured { began.elapsed().as_nanos() as u64 } else { 0 })
    }
}

/// A resource that does one thing after another.
#[derive(Default)]
struct Queue {
    free: Nanos,
    /// How long it was occupied.
    busy: Nanos,
}

impl Queue {
    /// Occupies the resource for this long, once it is free; returns when that ends.
    fn take(&mut self, from: Nanos, how_long: Nanos) -> Nanos {
        self.busy += how_long;
        self.free = self.free.max(from) + how_long;
        self.free
    }
}

enum Happening {
    ToCore(Event),
    /// A worker's bytes reach the coordinator's card.
    AtCard(usize, Vec<u8>),
    ToWorker(usize, Vec<u8>),
    LinkUp(usize),
    Wake,
    WakeWorker(usize),
    Computed(usize, usize, Outcome, Nanos),
}

/// A worker's host, with one slot.
struct Host {
    worker: worker_core::Worker,
    tasks: VecDeque<Encoded>,
    thread: Queue,
    card: Queue,
    wake_at: Option<Millis>,
}

/// Tasks that an earlier simulation of the same run has computed: the output, and how long it took.
type Known = BTreeMap<Digest, (Bytes, Nanos)>;

/// What a simulation found.
struct Simulated {
    /// From the submission of the run to its end.
    time: Nanos,
    digest: String,
    /// The time that all hosts together computed tasks; a second copy does not count.
    busy: Nanos,
    /// Computed tasks; a second copy counts.
    tasks: u64,
    /// The least time that the dependencies between rounds allow: the longest replica's, with a host for each task.
    chain: Nanos,
    /// The time that all lanes together planned, checked, absorbed and sealed.
    jobs: Nanos,
    /// How long the coordinator's thread, its busiest lane, and its card in its busier direction were occupied.
    core: Nanos,
    lane: Nanos,
    card: Nanos,
}

impl Simulated {
    /// The share of the hosts' time in which they computed no task, or one that another host computed before.
    fn idle(&self, hosts: usize) -> f64 {
        1.0 - self.busy as f64 / (hosts as f64 * self.time as f64)
    }
}

struct Hosts<'a> {
    model: Model,
    known: &'a mut Known,
    computed: BTreeSet<Digest>,
    busy: Nanos,
    tasks: u64,
    /// The tasks of each round.
    rounds: BTreeMap<(ReplicaKey, u64), Vec<Digest>>,
    jobs: Nanos,
    lane: Nanos,
    now: Nanos,
    queue: BTreeMap<(Nanos, u64), Happening>,
    counter: u64,
    core: Coordinator,
    core_thread: Queue,
    /// The lanes of each run, each with its own processor.
    replicas: BTreeMap<ThreadId, (Lanes, Vec<(Replicas, Queue)>)>,
    store: Store,
    card_in: Queue,
    card_out: Queue,
    wake_at: Option<Millis>,
    hosts: Vec<Host>,
    finished: Option<(Nanos, String)>,
}

fn millis(at: Nanos) -> Millis {
    Millis(at / MS)
}

/// The time from the submission of a run to its end with this many hosts, and the digest of the result.
fn simulate(prepared: &Arc<Prepared>, hosts: usize, model: Model) -> (Nanos, String) {
    let Simulated { time, digest, .. } = simulate_knowing(prepared, hosts, model, &mut Known::new());
    (time, digest)
}

/// The same, with the tasks that are known. Those that are not are computed, and known afterwards.
fn simulate_knowing(prepared: &Arc<Prepared>, hosts: usize, model: Model, known: &mut Known) -> Simulated {
    let mut store = Store::over(Arc::new(InMemory::new()), "the simulation", registry().clone());
    store.lead().expect("memory can be written");
    let settings = Settings { lanes_max: model.lanes, ..Settings::default() };
    let coordinator = Coordinator::recover(settings, registry().clone(), Vec::new());
    let host = |number| Host {
        worker: core(Millis(0), number, Character::Honest, 1, 0),
        tasks: VecDeque::new(),
        thread: Queue::default(),
        card: Queue::default(),
        wake_at: None,
    };
    let mut all = Hosts {
        model,
        known,
        computed: BTreeSet::new(),
        busy: 0,
        tasks: 0,
        rounds: BTreeMap::new(),
        jobs: 0,
        lane: 0,
        now: 0,
        queue: BTreeMap::new(),
        counter: 0,
        core: coordinator,
        core_thread: Queue::default(),
        replicas: BTreeMap::new(),
        store,
        card_in: Queue::default(),
        card_out: Queue::default(),
        wake_at: None,
        hosts: (0..hosts).map(host).collect(),
        finished: None,
    };
    (0..hosts).for_each(|host| all.plan(0, Happening::WakeWorker(host)));
    // All workers have joined by this time.
    let begin = 5000 * MS;
    let request = Request::Submit {
        name: "run".into(),
        prepared: Arc::clone(prepared),
        level: Level::Plain,
        submitter: "me".into(),
        terms: Vec::new(),
    };
    all.plan(begin, Happening::ToCore(Event::Request { id: RequestId(0), request }));
    loop {
        if let Some((end, digest)) = all.finished.take() {
            return Simulated {
                time: end - begin,
                digest,
                busy: all.busy,
                tasks: all.tasks,
                chain: all.chain(),
                jobs: all.jobs,
                core: all.core_thread.busy,
                lane: all.lane,
                card: all.card_in.busy.max(all.card_out.busy),
            };
        }
        let ((at, _), next) = all.queue.pop_first().expect("something happens until the end");
        all.now = at;
        all.happen(next);
    }
}

impl Hosts<'_> {
    /// The longest replica's time, if each task had its own host and nothing else took time.
    fn chain(&self) -> Nanos {
        let mut chains = BTreeMap::<ReplicaKey, Nanos>::new();
        for ((replica, _), tasks) in &self.rounds {
            let took = tasks.iter().map(|hash| self.known[hash].1 + self.model.more);
            *chains.entry(*replica).or_default() += took.max().unwrap_or(0);
        }
        chains.into_values().max().unwrap_or(0)
    }

    fn plan(&mut self, at: Nanos, what: Happening) {
        self.counter += 1;
        self.queue.insert((at, self.counter), what);
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::ToCore(event) => self.tell(event),
            Happening::AtCard(host, bytes) => {
                let at = self.card_in.take(self.now, self.model.on_card(bytes.len()));
                let (message, decoding) =
                    self.model.timed(|| v1::FromWorker::decode(&bytes[..]).expect("a worker's message"));
                let session = SessionId(host as u64);
                let event = match message.message {
                    Some(from_worker::Message::Hello(hello)) => {
                        Event::Hello { session, address: format!("10.0.0.{host}"), holder: None, hello }
                    }
                    message => Event::Message { session, message: v1::FromWorker { message } },
                };
                self.plan(at + self.model.at_end(bytes.len()) + decoding, Happening::ToCore(event));
            }
            Happening::ToWorker(host, bytes) => {
                let (carried, bytes) = (self.model.at_end(bytes.len()), Bytes::from(bytes));
                let (message, decoding) =
                    self.model.timed(|| v1::ToWorker::decode(bytes).expect("a coordinator's message"));
                self.tell_worker(host, worker_core::Event::Message(message), carried + decoding);
            }
            Happening::LinkUp(host) => self.tell_worker(host, worker_core::Event::LinkUp, 0),
            Happening::Wake => {
                self.wake_at = None;
                self.tell(Event::Wake);
            }
            Happening::WakeWorker(host) => {
                self.hosts[host].wake_at = None;
                self.tell_worker(host, worker_core::Event::Wake, 0);
            }
            Happening::Computed(host, slot, outcome, took) => {
                self.compute(self.now, host, slot);
                let (elapsed_us, timed_out) = (took / 1000, false);
                let event = worker_core::Event::Computed { slot, outcome, elapsed_us, timed_out };
                self.tell_worker(host, event, 0);
            }
        }
    }

    fn tell(&mut self, event: Event) {
        let at = self.core_thread.take(self.now, 0);
        let (effects, took) = self.model.timed(|| self.core.handle(millis(at), event));
        let at = self.core_thread.take(at, took);
        effects.into_iter().for_each(|effect| self.carry_out(at, effect));
        if let Some(wake) = self.core.next_wake().filter(|wake| self.wake_at.is_none_or(|planned| *wake < planned)) {
            self.wake_at = Some(wake);
            self.plan((wake.0 * MS).max(at), Happening::Wake);
        }
    }

    fn carry_out(&mut self, at: Nanos, effect: Effect) {
        match effect {
            Effect::Send { session, message } => {
                let (bytes, encoding) = self.model.timed(|| message.encode_to_vec());
                let ready = at + encoding + self.model.at_end(bytes.len());
                let at = self.card_out.take(ready, self.model.on_card(bytes.len()));
                self.plan(at + self.model.latency, Happening::ToWorker(session.0 as usize, bytes));
            }
            Effect::Start { thread, prepared, draw, states, lanes, .. } => {
                let all = Replicas::in_lanes(registry(), &prepared, draw, states, lanes).into_iter();
                self.replicas.insert(thread, (lanes, all.map(|lane| (lane, Queue::default())).collect()));
            }
            Effect::Job { thread, job } => {
                let Some((division, lanes)) = self.replicas.get_mut(&thread) else { return };
                let (of_all, mut done) = (matches!(job, Job::Checkpoint { .. }), Vec::new());
                for (lane, job) in job.for_lanes(*division) {
                    let (replicas, queue) = &mut lanes[lane];
                    let (reports, took) = self.model.timed(|| replicas.run(job));
                    let took = took + self.model.job;
                    let at = queue.take(at, took);
                    (self.jobs, self.lane) = (self.jobs + took, self.lane.max(queue.busy));
                    for report in &reports {
                        if let Report::Planned { replica, round, tasks, .. } = report {
                            let hashes = tasks.iter().map(|task| task.encoded.hash);
                            self.rounds.entry((*replica, *round)).or_default().extend(hashes);
                        }
                    }
                    done.push((at, reports, took));
                }
                // The lane that is ready last completes a checkpoint.
                let last = done.iter().map(|(at, ..)| *at).max().filter(|_| of_all);
                for (at, reports, took) in done.into_iter().filter(|(_, reports, _)| !reports.is_empty()) {
                    let at = last.unwrap_or(at);
                    self.plan(at, Happening::ToCore(Event::Done { thread, reports, took_us: took / 1000 }));
                }
            }
            Effect::Drop { thread } => drop(self.replicas.remove(&thread)),
            Effect::Store { write, run, what } => {
                let outcome = self.store.write(&run, &what);
                self.plan(at + WRITE, Happening::ToCore(Event::Stored { write, outcome, took_us: WRITE / 1000 }));
            }
            Effect::Publish(view) if view.run.state() == RunState::Finished => {
                self.finished.get_or_insert((at, view.run.digest.clone()));
            }
            Effect::End { .. }
            | Effect::Convict { .. }
            | Effect::ForgetRecalled
            | Effect::Unpublish { .. }
            | Effect::Stopped => {
                panic!("nothing fails here: {effect:?}")
            }
            Effect::Publish(_)
            | Effect::Respond { .. }
            | Effect::Audit { .. }
            | Effect::Healthy(_)
            | Effect::Log { .. } => {}
            Effect::ComputeHere { .. } | Effect::StopComputing => panic!("no task fails here"),
        }
    }

    /// Gives a worker an event after this time.
    fn tell_worker(&mut self, host: usize, event: worker_core::Event, after: Nanos) {
        let (model, at) = (self.model, self.hosts[host].thread.take(self.now, after));
        let (effects, took) = model.timed(|| self.hosts[host].worker.handle(millis(at), event));
        let at = self.hosts[host].thread.take(at, took);
        for effect in effects {
            match effect {
                worker_core::Effect::Connect => self.plan(at + 2 * model.latency, Happening::LinkUp(host)),
                worker_core::Effect::Send(message) => {
                    let (bytes, encoding) = model.timed(|| message.encode_to_vec());
                    // The coordinator's card starts to receive the bytes when the first one arrives.
                    let begins = self.hosts[host].card.free.max(at + encoding + model.at_end(bytes.len()));
                    self.hosts[host].card.take(begins, model.on_card(bytes.len()));
                    self.plan(begins + model.latency, Happening::AtCard(host, bytes));
                }
                worker_core::Effect::Start { slot, tasks } => {
                    self.hosts[host].tasks.extend(tasks);
                    self.compute(at, host, slot);
                }
                worker_core::Effect::Log(..) => {}
                other => panic!("nothing fails here: {other:?}"),
            }
        }
        let host_of = &mut self.hosts[host];
        let wake = host_of.worker.next_wake().filter(|wake| host_of.wake_at.is_none_or(|planned| *wake < planned));
        if let Some(wake) = wake {
            host_of.wake_at = Some(wake);
            self.plan((wake.0 * MS).max(at), Happening::WakeWorker(host));
        }
    }

    /// Lets the slot compute its next task, if there is one.
    fn compute(&mut self, at: Nanos, host: usize, slot: usize) {
        let Some(task) = self.hosts[host].tasks.pop_front() else { return };
        let run = || registry().run(&task, &mut NoPrograms).expect("planned tasks are good");
        let model = self.model;
        let compute = || {
            let (output, took) = model.timed(run);
            (output, model.times * took)
        };
        let (output, took) = self.known.entry(task.hash).or_insert_with(compute).clone();
        let took = took + model.more;
        self.busy += if self.computed.insert(task.hash) { took } else { 0 };
        self.tasks += 1;
        self.plan(at + took, Happening::Computed(host, slot, Outcome::Output(output), took));
    }
}

/// Rounds of 16 tasks of 10 ms. No host waits for another one longer than the network takes.
#[test]
fn rounds_are_shared_by_all_hosts() {
    let prepared = draw::prepared(
        "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 200\ntasks = 16\npayload_bytes = 40\n\
         reply_bytes = 9\n",
    );
    let digest = digest_of_one_thread(&prepared.toml);
    let model = Model { gigabits: 10, latency: MS / 10, more: 10 * MS, measured: false, lanes: 16, job: 0, times: 1 };
    for hosts in [1, 2, 3, 4, 8, 16, 20] {
        let (time, found) = simulate(&prepared, hosts, model);
        assert_eq!(found, digest, "{hosts} hosts");
        let least = 200 * 16_u64.div_ceil(hosts as u64) * 10 * MS;
        assert!(time < least + least / 20, "{hosts} hosts took {} ms where {} are needed", time / MS, least / MS);
    }
}

/// Jobs of the replicas, 2 ms each, take longer than the hosts compute, but several cores work on them.
#[test]
fn the_replicas_of_a_run_are_absorbed_by_several_cores() {
    let prepared = draw::prepared(
        "experiment = \"dispatch\"\nreplicas = 64\n[settings]\nrounds = 20\ntasks = 1\npayload_bytes = 40\n\
         reply_bytes = 9\n",
    );
    let model =
        Model { gigabits: 10, latency: MS / 10, more: 10 * MS, measured: false, lanes: 1, job: 2 * MS, times: 1 };
    let one = simulate_knowing(&prepared, 16, model, &mut Known::new());
    assert!(one.time > 64 * 20 * 2 * MS, "one core cannot absorb so fast: {} ms", one.time / MS);
    let several = simulate_knowing(&prepared, 16, Model { lanes: 16, ..model }, &mut Known::new());
    assert_eq!(one.digest, several.digest);
    assert!(several.idle(16) < 0.05, "the hosts have no task for {:.1} % of the time", 100.0 * several.idle(16));
}

/// Rounds are planned in pieces of 15 tasks. One after the other, the jobs that plan all pieces but the first of each round would
/// take longer than the hosts compute.
#[test]
fn pieces_of_rounds_are_planned_by_several_cores() {
    let prepared = draw::prepared(
        "experiment = \"dispatch\"\nreplicas = 64\n[settings]\nrounds = 1\ntasks = 60\npayload_bytes = 65536\n\
         reply_bytes = 9\n",
    );
    let model =
        Model { gigabits: 0, latency: MS / 10, more: 3 * MS, measured: false, lanes: 64, job: 8 * MS, times: 1 };
    let found = simulate_knowing(&prepared, 16, model, &mut Known::new());
    assert_eq!(found.digest, digest_of_one_thread(&prepared.toml));
    let one_by_one = 64 * 3 * model.job;
    assert!(found.time < one_by_one, "{} ms, and the plans take {} ms", found.time / MS, one_by_one / MS);
}

/// Tasks of 1 ms with 64 KB each. Four hosts need a fifth of the coordinator's card, and always have a task. For 64 the card is
/// too slow, but it is never idle while they wait.
#[test]
fn tasks_with_many_bytes_are_limited_by_nothing_but_the_card() {
    let prepared = draw::prepared(
        "experiment = \"dispatch\"\nreplicas = 64\n[settings]\nrounds = 40\ntasks = 2\npayload_bytes = 65536\n\
         reply_bytes = 9\n",
    );
    let model = Model { gigabits: 10, latency: MS / 10, more: MS, measured: false, lanes: 16, job: 0, times: 1 };
    let [few, many] = [4, 64].map(|hosts| simulate_knowing(&prepared, hosts, model, &mut Known::new()));
    assert_eq!(few.digest, many.digest);
    assert!(few.idle(4) < 0.05, "four hosts have no task for {:.1} % of the time", 100.0 * few.idle(4));
    assert!(20 * many.card > 19 * many.time, "{} of {} ms", many.card / MS, many.time / MS);
}

/// One replica has four times the rounds of the seven others. If all took turns, one host would compute its last thirty rounds
/// alone.
#[test]
fn the_replica_with_the_most_work_left_comes_first() {
    let prepared = draw::prepared(
        "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 20\ntasks = 1\npayload_bytes = 40\n\
         reply_bytes = 9\n[arms.a]\n[arms.b]\n[arms.c]\n[arms.d]\n[arms.e]\n[arms.f]\n[arms.g]\n\
         [arms.long]\nrounds = 80\n",
    );
    let model = Model { gigabits: 10, latency: MS / 10, more: 1100 * MS, measured: false, lanes: 1, job: 0, times: 1 };
    let found = simulate_knowing(&prepared, 2, model, &mut Known::new());
    assert_eq!(found.digest, digest_of_one_thread(&prepared.toml));
    assert!(found.idle(2) < 0.1, "the hosts have no task for {:.1} % of the time", 100.0 * found.idle(2));
}

/// Four hosts have 16 open replicas of 18. If the open ones took turns, they would end together, and two hosts would compute the
/// last two replicas alone.
#[test]
fn replicas_end_one_after_another_while_others_have_not_begun() {
    let prepared = draw::prepared(
        "experiment = \"dispatch\"\nreplicas = 18\n[settings]\nrounds = 20\ntasks = 1\npayload_bytes = 40\n\
         reply_bytes = 9\n",
    );
    let model = Model { gigabits: 10, latency: MS / 10, more: 100 * MS, measured: false, lanes: 1, job: 0, times: 1 };
    let found = simulate_knowing(&prepared, 4, model, &mut Known::new());
    assert_eq!(found.digest, digest_of_one_thread(&prepared.toml));
    assert!(found.idle(4) < 0.05, "the hosts have no task for {:.1} % of the time", 100.0 * found.idle(4));
}

/// A trial of so many games by so many learners, or by the serial learner for 0. The settings are those of
/// experiments/td3d-many-workers.toml, with a single test.
fn trial(learners: usize, games: usize) -> Arc<Prepared> {
    let join = match learners {
        0 => "learners = 1\nouter_rate = 1\nmomentum = 0".to_owned(),
        _ => format!("learners = {learners}\nouter_rate = 0.7\nmomentum = 0.9"),
    };
    draw::prepared(&format!(
        "experiment = \"td3d\"\nreplicas = 1\n[settings]\nnetwork = \"tuples\"\nshared = \"yes\"\nalpha = 0.01\n\
         first_move = \"alternating\"\ngames = {games}\ntest_every = {games}\ntest_games = 400\nepisodes = 4\n{join}\n"
    ))
}

/// Prints the content of docs/benchmarks/many-hosts.csv.
#[test]
#[ignore = "it computes for some minutes"]
fn one_learner_on_many_hosts() {
    const GAMES: usize = 1024;
    // First all learners on one host, next to a real process, and then each on its own host.
    let mut rows: Vec<(usize, usize, u64, u64)> = [0, 1, 2, 4, 8, 16].map(|learners| (learners, 1, 0, 0)).to_vec();
    for learners in [1, 2, 4, 8, 16] {
        let networks = [1, 10, 0].into_iter();
        rows.extend(
            networks.flat_map(|gigabits| [0, 1, 10, 100].map(|game_ms| (learners, learners, gigabits, game_ms))),
        );
    }
    rows.extend([1, 2, 4, 8].map(|hosts| (16, hosts, 10, 0)));
    let mut digests = BTreeMap::new();
    println!("learners,hosts,gigabits,more_ms_a_game,games_a_second");
    for _ in 0..3 {
        for (learners, hosts, gigabits, game_ms) in rows.iter().copied() {
            let latency = if gigabits == 0 { 0 } else { MS / 10 };
            // A task is four games.
            let model =
                Model { gigabits, latency, more: 4 * game_ms * MS, measured: true, lanes: 16, job: 0, times: 1 };
            // The difference between a longer and a shorter run, which excludes the test, the start and the end.
            let [half, whole] = [GAMES, 2 * GAMES].map(|games| {
                let (time, digest) = simulate(&trial(learners, games), hosts, model);
                assert_eq!(*digests.entry((learners, games)).or_insert_with(|| digest.clone()), digest);
                time
            });
            let rate = GAMES as f64 * 1e9 / whole.saturating_sub(half) as f64;
            println!("{learners},{hosts},{gigabits},{game_ms},{rate:.1}");
        }
    }
}

/// The hosts for which the time without a task is counted.
const COUNTED: [usize; 4] = [2, 8, 16, 64];

/// The configuration of a file of `experiments/`, with what it reads from other files. A smaller copy is named with its changes:
/// `nndtf:iterations=2000:segment=100:times=25`, in which each task stands for one of 25 times its length.
fn configuration(named: &str) -> (Config, u64) {
    let mut parts = named.split(':');
    let path = workspace().join("experiments").join(format!("{}.toml", parts.next().expect("a name")));
    let mut overrides: Vec<(String, String)> =
        parts.filter_map(|part| part.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect();
    let times = overrides.extract_if(.., |(key, _)| key == "times").last();
    let times = times.map_or(1, |(_, text)| text.parse().expect("a whole number"));
    let text = std::fs::read_to_string(&path).expect("an experiment file");
    loop {
        let config = Config::parse(registry(), named, &text, &overrides).unwrap_or_else(|all| panic!("{all}"));
        let Some(missing) = config.missing_file() else { return (config, times) };
        let bytes = std::fs::read(path.with_file_name(missing)).expect("a file next to the experiment file");
        let reads = config.kind.reads.expect("its kind reads files");
        let said = (reads.settings)(&config.arms[0].settings, &bytes).unwrap_or_else(|why| panic!("{why}"));
        overrides.extend(said.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
}

/// Prints the share of the hosts' time in which they compute nothing, for each file of `FILES` (see [`configuration`], separated
/// by commas), with the measured durations of its tasks, and what may limit it: the dependencies between rounds (`chain_s`), the
/// coordinator's thread, its busiest lane, or its card of `GIGABITS` (10, or 0 for no limit).
#[test]
#[ignore = "it computes whole experiments"]
fn idle_time_of_experiments() {
    let files = std::env::var("FILES").expect("FILES=menace,rules");
    let gigabits = std::env::var("GIGABITS").map_or(10, |text| text.parse().expect("a number"));
    let model = Model { gigabits, latency: MS / 10, more: 0, measured: true, lanes: 16, job: 0, times: 1 };
    println!("file,hosts,tasks,busy_s,seconds,idle_percent,chain_s,jobs_s,core_s,lane_s,card_s");
    for file in files.split(',') {
        let (config, times) = configuration(file);
        let (prepared, model) = (Prepared::new(config), Model { times, ..model });
        let mut known = Known::new();
        let mut digests = Vec::new();
        for hosts in COUNTED {
            let found = simulate_knowing(&prepared, hosts, model, &mut known);
            let [busy, seconds, chain, jobs, core, lane, card] =
                [found.busy, found.time, found.chain, found.jobs, found.core, found.lane, found.card]
                    .map(|time| time as f64 / 1e9);
            let (tasks, idle) = (found.tasks, 100.0 * found.idle(hosts));
            println!(
                "{file},{hosts},{tasks},{busy:.2},{seconds:.2},{idle:.1},{chain:.2},{jobs:.2},{core:.2},{lane:.2},{card:.2}"
            );
            digests.push(found.digest);
        }
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{file}: {digests:?}");
    }
}
