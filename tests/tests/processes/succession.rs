//! The leader is killed, or stopped for longer than its standby waits, again and again. Each run continues under the other
//! coordinator, and ends with the bytes of one thread. On files, and on a bucket.

use std::{net::SocketAddr, time::Instant};

use evoxo_proto::v1::{Run, RunState};
use evoxo_tests::{
    live::{Coordinator, PATIENCE, Process, Site},
    person::{Person, digest_of_one_thread},
    s3::S3,
};
use tonic_health::pb::health_check_response::ServingStatus;

use super::{
    leaders::health,
    standby::{STANDBY, serves},
};

/// Some seconds of work for one worker.
fn config() -> String {
    crate::lasting(1, 60)
}

/// How often the leader is interrupted, with THOROUGH and without.
fn interruptions() -> usize {
    if std::env::var_os("THOROUGH").is_some() { 28 } else { 4 }
}

/// Two coordinators on one store, one of which leads.
struct Pair<'a> {
    start: &'a dyn Fn(&str, &[&str]) -> Coordinator,
    leads: Coordinator,
    waits: Coordinator,
}

impl Pair<'_> {
    fn begin(start: &dyn Fn(&str, &[&str]) -> Coordinator) -> Pair<'_> {
        let leads = start("127.0.0.1:0", &STANDBY[1..]);
        let waits = start("127.0.0.1:0", &STANDBY);
        Pair { start, leads, waits }
    }

    /// Kills the leader, which comes back as a standby when the other one leads.
    async fn kill(&mut self) {
        self.leads.process.kill();
        serves(self.waits.address, ServingStatus::Serving).await;
        let again = (self.start)(&self.leads.address.to_string(), &STANDBY);
        self.leads = std::mem::replace(&mut self.waits, again);
    }

    /// Stops the leader until the other one leads. The old leader learns that when it resumes: for a moment both believe that
    /// they lead.
    async fn split(&mut self) {
        self.leads.process.signal("STOP");
        serves(self.waits.address, ServingStatus::Serving).await;
        self.leads.process.signal("CONT");
        serves(self.leads.address, ServingStatus::NotServing).await;
        assert_eq!(health(self.waits.address).await, ServingStatus::Serving, "the later coordinator leads");
        // A coordinator that is superseded again and again is more patient each time.
        self.kill().await;
    }
}

/// The run, as soon as a coordinator leads and `is_so` returns true.
async fn until(asked: &[SocketAddr; 2], name: &str, is_so: impl Fn(&Run) -> bool) -> Run {
    let (start, mut persons) = (Instant::now(), asked.map(Person::of));
    loop {
        for person in &mut persons {
            let run = tokio::time::timeout(std::time::Duration::from_secs(2), person.get(name)).await;
            if let Ok(Ok(run)) = run
                && is_so(&run)
            {
                return run;
            }
        }
        assert!(start.elapsed() < PATIENCE, "{name} does not continue");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn leaders_fall(start: &dyn Fn(&str, &[&str]) -> Coordinator, worker: impl Fn(&str) -> Process) {
    let (config, mut pair) = (config(), Pair::begin(start));
    let both = [pair.leads.address, pair.waits.address];
    let _worker = worker(&both.map(|address| address.to_string()).join(","));
    let right = digest_of_one_thread(&config);
    let mut amid = 0;
    for number in 0..interruptions() {
        serves(pair.leads.address, ServingStatus::Serving).await;
        let name = format!("run-{number}");
        Person::of(pair.leads.address).submit(&name, &config).await;
        let before = until(&both, &name, |run| run.rounds_done >= 5).await;
        amid += usize::from(before.state() == RunState::Running);
        match number % 2 {
            0 => pair.kill().await,
            _ => pair.split().await,
        }
        let run = until(&both, &name, |run| run.state() != RunState::Running).await;
        assert_eq!((run.state(), &run.digest), (RunState::Finished, &right), "{name}: {}", run.message);
    }
    assert!(amid > interruptions() / 2, "only {amid} runs were interrupted");
}

#[tokio::test]
async fn runs_survive_changes_of_leader_on_files() {
    let site = Site::new();
    let start = |listen: &str, arguments: &[&str]| site.coordinator_on(listen, arguments);
    leaders_fall(&start, |both| site.program("evoxo-worker", &["--coordinator", both, "--slots", "1"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_survive_changes_of_leader_on_a_bucket() {
    let (site, s3) = (Site::new(), S3::new());
    let start = |listen: &str, arguments: &[&str]| site.coordinator_of_bucket(&s3, listen, arguments);
    leaders_fall(&start, |both| site.program("evoxo-worker", &["--coordinator", both, "--slots", "1"])).await;
}
