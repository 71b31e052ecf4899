//! A bucket misbehaves in one way for a while and then recovers. Work continues soon, even with a coordinator that was killed
//! and restarted meanwhile. `TRIALS` sets the number of trials of each kind.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use evoxo_tests::{
    live::{Coordinator, PATIENCE, Process, Site},
    person::Person,
    s3::{Fault, S3},
};
use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How long a bucket misbehaves, and how soon after that work must continue.
const MISBEHAVES: Duration = Duration::from_secs(12);
const GOES_ON: Duration = Duration::from_secs(10);
/// How soon work must continue on a machine that is busy with other tests.
const ENDS: Duration = Duration::from_secs(100);
/// When the coordinator is killed.
const KILLED: Duration = Duration::from_secs(3);

const FAULTS: [Fault; 7] =
    [Fault::Error, Fault::Unavailable, Fault::Forbidden, Fault::Hang, Fault::Truncate, Fault::Reset, Fault::Mix];

/// Runs every trial of each fault, the faults of one trial in parallel. A single trial, which may run together with other
/// tests, only has to end.
#[expect(clippy::print_stdout, reason = "what was measured")]
async fn trials(restarts: bool) {
    let trials = std::env::var("TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(1);
    let limit = if trials > 1 { GOES_ON } else { ENDS };
    let mut late = Vec::new();
    for trial in 0..trials {
        let took = join_all(FAULTS.map(|fault| recovery(fault, restarts))).await;
        for (fault, took) in FAULTS.into_iter().zip(took) {
            println!("trial {trial}, restarted {restarts}, {fault:?}: {:.2} s", took.as_secs_f64());
            late.extend((took >= limit).then(|| format!("trial {trial}, {fault:?}: {took:.1?}")));
        }
    }
    assert!(late.is_empty(), "restarted {restarts}: {late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_continues_soon_after_a_bucket_recovers() {
    trials(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_a_misbehaving_bucket() {
    trials(true).await;
}

/// After how long the store has a new checkpoint.
async fn recovery(fault: Fault, restarts: bool) -> Duration {
    let config = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 100000\ntasks = 20\n";
    let (site, s3) = (Site::new(), S3::new().patient());
    let mut one = site.coordinator_of_bucket(&s3, "127.0.0.1:0", &["--checkpoint-interval", "0.5"]);
    let _worker = site.program("evoxo-worker", &["--coordinator", &one.address.to_string(), "--slots", "1"]);
    let mut person = Person::of(one.address);
    person.submit("run", config).await;
    person.wait("run", |run| run.rounds_done >= 5).await;
    s3.fault(Some(fault));
    let start = Instant::now();
    let mut again = None;
    if restarts {
        tokio::time::sleep(KILLED).await;
        one.process.kill();
        again = Some(restarted(&site, &s3, &one, fault).await);
    }
    tokio::time::sleep(MISBEHAVES.saturating_sub(start.elapsed())).await;
    let before = checkpoints(&s3);
    s3.fault(None);
    let start = Instant::now();
    while checkpoints(&s3) == before && start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = start.elapsed();
    assert!(!again.as_mut().is_some_and(Process::has_ended), "{fault:?}");
    took
}

/// Restarts a coordinator where one was killed. The new one answers every client.
async fn restarted(site: &Site, s3: &S3, killed: &Coordinator, fault: Fault) -> Process {
    let mut process = site.coordinator_of_bucket_again(s3, killed);
    let start = Instant::now();
    let mut person = Person::of(killed.address);
    loop {
        let told = person.get("run").await.err().map(|status| status.message().to_owned()).unwrap_or_default();
        // Before the server's first answer there is nothing to report about it.
        let is_refused = fault != Fault::Forbidden || told.contains("403 Forbidden");
        if told.contains("this coordinator is starting") && is_refused {
            if fault == Fault::Forbidden {
                assert_eq!(process.log().matches("403 Forbidden").count(), 1, "{}", process.log());
                assert!(told.contains("the keys in AWS_ACCESS_KEY_ID"), "{told}");
            }
            // With a mix, the coordinator may lead at any time.
            if fault != Fault::Mix {
                let page = page(killed.address).await;
                assert!(page.starts_with("HTTP/1.1 503 ") && page.contains("this coordinator is starting"), "{page}");
                assert!(page.contains("\r\nrefresh: 2\r\n"), "the browser does not reload the page: {page}");
            }
            return process;
        }
        // A mix lets some requests succeed.
        let leads = fault == Fault::Mix && told.is_empty();
        if leads {
            return process;
        }
        assert!(start.elapsed() < GOES_ON && !process.has_ended(), "{fault:?}: {told:?}: {}", process.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The answer that a browser gets here.
async fn page(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the server answers and closes");
    answer
}

/// The checkpoints in a bucket.
fn checkpoints(s3: &S3) -> Vec<String> {
    s3.names().into_iter().filter(|name| name.contains("/checkpoint/")).collect()
}
