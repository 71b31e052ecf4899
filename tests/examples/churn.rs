//! `cargo churn [TIME [SEED]]`: a cluster of real programs in which something breaks every two seconds, for as long as given
//! (default: a minute). Runs of all kinds follow each other, and each must end with the digest of one thread.
//!
//! The faults are drawn at random: a worker is killed with SIGKILL and restarted, or stopped for up to 16 s, or its
//! connection is reset; sometimes the coordinator is killed and restarted. No worker is spared.

use std::{
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use evoxo_common::rng::{Generator, Stream, below};
use evoxo_process::duration;
use evoxo_proto::v1::{Run, RunState};
use evoxo_tests::{
    live::{Coordinator, Process, Site, relay},
    person::{Person, digest_of_one_thread},
};
use tokio::{
    io::copy_bidirectional,
    net::TcpStream,
    sync::{Notify, watch},
};

const WORKERS: usize = 4;
const BREAK_EVERY: Duration = Duration::from_secs(2);
/// A worker is silent for longer than the coordinator waits, or for a shorter time.
const STOPPED_MAX_MS: u64 = 16_000;
/// A run that takes longer than this, broken or not, has stalled.
const RUN_TIME_MAX: Duration = Duration::from_secs(900);

/// Arguments of the coordinator: realistic times, and a limit so that ended runs do not pile up.
const COORDINATOR: [&str; 4] = ["--checkpoint-interval", "3", "--keep-finished", "10"];

/// Five to ten seconds of work each on two cores.
const CONFIGS: [&str; 4] = [
    "experiment = \"invincible\"\nreplicas = 14\n[settings]\npopulation = 200\ngenerations = 200\ngames = 3000\nslice = 20\n",
    "experiment = \"td3d\"\nreplicas = 4\n[settings]\nnetwork = \"small\"\ngames = 150000\ntest_every = 50000\n\
     test_games = 2000\nsegment_games = 10000\n",
    "experiment = \"rules\"\nreplicas = 12\n[settings]\nagents = 20\ncycles = 20000\n",
    "experiment = \"dispatch\"\nreplicas = 3\n[settings]\nrounds = 3000\ntasks = 50\npayload_bytes = 2000\nreply_bytes = 500\n",
];

/// Forwards one worker's connections to the coordinator, and resets them on demand.
struct Proxy {
    address: SocketAddr,
    reset: Arc<Notify>,
}

impl Proxy {
    fn start(coordinator: SocketAddr) -> Self {
        let reset = Arc::new(Notify::new());
        let resets = Arc::clone(&reset);
        Self { address: relay(move |near| carry(near, coordinator, Arc::clone(&resets))), reset }
    }
}

async fn carry(mut near: TcpStream, coordinator: SocketAddr, reset: Arc<Notify>) {
    let Ok(mut far) = TcpStream::connect(coordinator).await else { return };
    for side in [&near, &far] {
        // The programs do the same, because messages are small and somebody waits for each.
        drop(side.set_nodelay(true));
    }
    tokio::select! {
        // Either side may end as it likes.
        _ = copy_bidirectional(&mut near, &mut far) => {}
        () = reset.notified() => {
            // A connection closed in this way ends with RST instead of FIN.
            for side in [&near, &far] {
                drop(side.set_zero_linger());
            }
        }
    }
}

struct Member {
    proxy: Proxy,
    name: String,
    process: Process,
    /// When a stopped worker continues.
    stopped_until: Option<Instant>,
}

/// How many times each thing broke.
#[derive(Clone, Copy, Default)]
struct Counts {
    killed: u32,
    stopped: u32,
    reset: u32,
    coordinator: u32,
}

impl Counts {
    fn total(self) -> u32 {
        self.killed + self.stopped + self.reset + self.coordinator
    }
}

struct Churn {
    site: Site,
    coordinator: Option<Coordinator>,
    address: SocketAddr,
    members: Vec<Member>,
    rng: Generator,
    counts: Counts,
    /// The most memory that any of the coordinators used, in bytes.
    memory: u64,
}

impl Churn {
    fn start(seed: u64) -> Self {
        let site = Site::new();
        let coordinator = site.coordinator(&COORDINATOR);
        let address = coordinator.address;
        let mut members = Vec::new();
        for number in 0..WORKERS {
            let (proxy, name) = (Proxy::start(address), format!("worker-{number}"));
            let process = site.worker(proxy.address, &["--name", &name]);
            members.push(Member { proxy, name, process, stopped_until: None });
        }
        let rng = Stream::root(seed).text("churn").rng();
        Self { site, coordinator: Some(coordinator), address, members, rng, counts: Counts::default(), memory: 0 }
    }

    /// Breaks one thing.
    fn break_something(&mut self) {
        if below(&mut self.rng, 10) == 0 {
            // The coordinator's port must be free before the next one listens.
            drop(self.coordinator.take());
            let address = self.address.to_string();
            self.coordinator = Some(self.site.coordinator_on(&address, &COORDINATOR));
            self.counts.coordinator += 1;
            return;
        }
        let member = &mut self.members[below(&mut self.rng, WORKERS as u64) as usize];
        match below(&mut self.rng, 3) {
            0 => {
                member.process.kill();
                member.process = self.site.worker(member.proxy.address, &["--name", &member.name]);
                member.stopped_until = None;
                self.counts.killed += 1;
            }
            1 => {
                member.process.signal("STOP");
                let ms = below(&mut self.rng, STOPPED_MAX_MS);
                member.stopped_until = Some(Instant::now() + Duration::from_millis(ms));
                self.counts.stopped += 1;
            }
            _ => {
                member.proxy.reset.notify_waiters();
                self.counts.reset += 1;
            }
        }
    }

    /// Lets workers continue that were stopped for long enough, and notes the coordinator's memory.
    fn tick(&mut self) {
        for member in &mut self.members {
            if member.stopped_until.is_some_and(|until| until <= Instant::now()) {
                member.process.signal("CONT");
                member.stopped_until = None;
            }
        }
        let memory = self.coordinator.as_ref().and_then(|coordinator| coordinator.process.memory_bytes("VmRSS"));
        self.memory = self.memory.max(memory.unwrap_or(0));
    }
}

/// Submits one run after the other, and reports how each ended. Returns only when something is wrong, with a sentence.
async fn keep_computing(address: SocketAddr, breaks: watch::Receiver<u32>, started: Instant) -> String {
    let expected = CONFIGS.map(digest_of_one_thread);
    let mut person = Person::of(address);
    for number in 0.. {
        let (start, before) = (Instant::now(), *breaks.borrow());
        let (config, digest) = (CONFIGS[number % CONFIGS.len()], &expected[number % CONFIGS.len()]);
        let name = format!("run-{number}");
        while let Err(status) = person.try_submit(&name, config).await {
            if start.elapsed() > RUN_TIME_MAX {
                return format!("{name} cannot be submitted: {status}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let run = match until_over(&mut person, &name, start).await {
            Ok(run) => run,
            Err(why) => return why,
        };
        if run.state() != RunState::Finished || run.digest != *digest {
            return format!("{name} should have finished with {digest}: {run:?}");
        }
        let (all, kind) = (started.elapsed().as_secs(), run.kind);
        let (seconds, broken) = (start.elapsed().as_secs_f64(), *breaks.borrow() - before);
        say(&format!("{all:>6} s  {name} ({kind}): {seconds:.1} s while {broken} things broke; its digest is right"));
    }
    unreachable!("numbers do not end")
}

async fn until_over(person: &mut Person, name: &str, start: Instant) -> Result<Run, String> {
    loop {
        let seen = person.get(name).await;
        match &seen {
            Ok(run) if !matches!(run.state(), RunState::Running) => return Ok(run.clone()),
            _ if start.elapsed() > RUN_TIME_MAX => return Err(format!("{name} has stalled: {seen:?}")),
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

#[expect(clippy::print_stdout, reason = "a report for the person who typed the command")]
fn say(line: &str) {
    println!("{line}");
}

async fn churn(length: Duration, seed: u64) -> Result<String, String> {
    let mut churn = Churn::start(seed);
    let started = Instant::now();
    let (broken, breaks) = watch::channel(0);
    let mut computing = tokio::spawn(keep_computing(churn.address, breaks, started));
    let mut next = started + BREAK_EVERY;
    while started.elapsed() < length {
        tokio::select! {
            why = &mut computing => return Err(why.unwrap_or_else(|error| error.to_string())),
            () = tokio::time::sleep(Duration::from_millis(100)) => churn.tick(),
        }
        if Instant::now() >= next {
            churn.break_something();
            broken.send_replace(churn.counts.total());
            next += BREAK_EVERY;
        }
    }
    computing.abort();
    let Counts { killed, stopped, reset, coordinator } = churn.counts;
    Ok(format!(
        "{} things broke in {} s: {killed} workers killed, {stopped} stopped, {reset} reset, {coordinator} coordinators killed; \
         a coordinator held {} MiB at most",
        churn.counts.total(),
        started.elapsed().as_secs(),
        churn.memory >> 20
    ))
}

/// The duration and the seed.
fn arguments() -> Result<(Duration, u64), String> {
    let mut arguments = std::env::args().skip(1);
    let length = arguments.next().map_or(Ok(Duration::from_secs(60)), |text| duration(&text))?;
    let seed = arguments
        .next()
        .map_or(Ok(1), |text| text.parse().map_err(|_| "the seed must be a whole number".to_owned()))?;
    arguments.next().map_or(Ok((length, seed)), |more| Err(format!("{more}: give only a time and a seed")))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let ended = match arguments() {
        Ok((length, seed)) => churn(length, seed).await,
        Err(why) => Err(why),
    };
    let (line, code) = match ended {
        Ok(line) => (line, ExitCode::SUCCESS),
        Err(why) => (format!("FAILED: {why}"), ExitCode::FAILURE),
    };
    say(&line);
    code
}
