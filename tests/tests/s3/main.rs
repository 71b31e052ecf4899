//! Stores in buckets, through the real client: over an S3 server in this process that loses answers, refuses, conflicts with
//! itself, is slow, or lets two clients create one name.

mod recovery;

use std::{
    net::SocketAddr,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use evoxo_common::envelope::{Kind, seal};
use evoxo_coordinator::{
    core::{StoreFault, Stored, Write},
    store::{Store, bucket, check_objects},
};
use evoxo_proto::v1::{self, Run};
use evoxo_tests::{
    live::{PATIENCE, Site, relay},
    person::{Person, digest_of_one_thread},
    programs::program,
    registry,
    s3::{BUCKET, S3, Trouble},
};
use object_store::ObjectStore;
use prost::Message as _;
use tokio::{io::copy_bidirectional, net::TcpStream, sync::watch};

/// The address of the stores in these tests.
fn spec() -> String {
    format!("s3://{BUCKET}/lab/a")
}

fn objects(s3: &S3) -> Arc<dyn ObjectStore> {
    bucket(&spec(), s3.variables()).expect("a good address")
}

fn store(s3: &S3) -> Store {
    Store::over(objects(s3), &spec(), registry().clone())
}

fn order(number: u64) -> Write {
    let config = "experiment = \"dispatch\"\n".into();
    let order = v1::Order { config, wanted: 1, rounds_done: number, ..v1::Order::default() };
    Write::Order { bytes: seal(Kind::Order, &order.encode_to_vec()) }
}

fn checkpoint(number: u64) -> Write {
    let replica = v1::ReplicaState { arm: "main".into(), rounds: number, ..Default::default() };
    let checkpoint = v1::Checkpoint { replicas: vec![replica], ..Default::default() };
    Write::Checkpoint { number, bytes: seal(Kind::Checkpoint, &checkpoint.encode_to_vec()), keep: 0 }
}

fn finished(number: u32) -> Write {
    let replica = v1::ReplicaState { arm: "main".into(), replica: number, ..Default::default() };
    let finished = v1::Finished { replica: Some(replica), ..Default::default() };
    Write::Finished { bytes: seal(Kind::Finished, &finished.encode_to_vec()) }
}

/// Repeats a write until it succeeds, as the core does.
fn insist(store: &mut Store, write: &Write) -> Stored {
    for _ in 0..100 {
        match store.write("demo", write) {
            Ok(stored) => return stored,
            Err(StoreFault::Failed(_)) => {}
            Err(fault) => panic!("{fault:?}"),
        }
    }
    panic!("it cannot be written: {write:?}")
}

#[test]
fn objects_in_a_bucket_are_written_loaded_and_removed() {
    let s3 = S3::new();
    let mut first = store(&s3);
    first.lead().expect("a new bucket");
    first.write("demo", &order(1)).expect("an order");
    for number in 1..=7 {
        first.write("demo", &checkpoint(number)).expect("a checkpoint");
    }
    // More objects than fit on one page of a list.
    for number in 0..12 {
        first.write("demo", &finished(number)).expect("a replica");
    }
    let together: Vec<Write> = (12..20).map(finished).collect();
    for (write, outcome) in together.iter().zip(first.write_all_finished("demo", &together)) {
        let (Write::Finished { bytes }, Ok(Stored::Finished(place))) = (write, outcome) else { panic!("{write:?}") };
        assert_eq!(first.read_finished("demo", &place), Ok(bytes.clone()), "a part of an object");
    }
    assert!(s3.names().iter().all(|name| name.starts_with("lab/a/")), "{:?}", s3.names());
    let mut second = store(&s3);
    second.lead().expect("the next epoch");
    let (runs, notices) = second.load().expect("a list");
    assert_eq!((runs.len(), notices), (1, vec![]));
    assert_eq!((runs[0].order_number, runs[0].checkpoint_number, runs[0].finished.len()), (1, 7, 20));
    assert!(matches!(first.write("demo", &checkpoint(8)), Err(StoreFault::Superseded(_))));
    assert!(second.read("demo", "order/000001-000001").is_ok());
    second.write("demo", &Write::Delete).expect("a run");
    assert_eq!(s3.names(), ["lab/a/leader/000002"]);
}

/// Each way in which an answer can go wrong, for each kind of object: nothing is created twice, and nothing is lost.
#[test]
fn a_failed_answer_changes_nothing() {
    for trouble in [Trouble::Lost, Trouble::Slow, Trouble::Unavailable, Trouble::Conflict] {
        let s3 = S3::new();
        let mut store = store(&s3);
        s3.next_creations(&[trouble]);
        store.lead().expect("the store finds that it leads");
        for write in [order(1), order(2), checkpoint(1), finished(3)] {
            s3.next_creations(&[trouble, trouble]);
            store.write("demo", &write).unwrap_or_else(|fault| panic!("{trouble:?}, {write:?}: {fault:?}"));
        }
        let names = s3.names();
        assert_eq!(names.len(), 9, "the orders, the replica and the checkpoint have copies: {trouble:?}: {names:?}");
        assert!(names.contains(&"lab/a/runs/demo/order/000001-000002".to_owned()), "{trouble:?}: {names:?}");
        assert!(s3.counted().1 >= 5, "{trouble:?}: each creation has run into it");
    }
}

/// The client gives up and finds nothing, and the object appears later.
#[test]
fn a_late_write_is_found_by_the_next_one() {
    let s3 = S3::new();
    let mut store = store(&s3);
    store.lead().expect("a new bucket");
    store.write("demo", &order(1)).expect("an order");
    s3.next_creations(&[Trouble::Late]);
    assert!(matches!(store.write("demo", &order(2)), Err(StoreFault::Failed(_))));
    let late = "lab/a/runs/demo/order/000001-000002".to_owned();
    let start = Instant::now();
    while !s3.names().contains(&late) {
        assert!(start.elapsed() < PATIENCE, "the late write does not arrive");
        thread::sleep(Duration::from_millis(20));
    }
    // Another order must not take the same number and hide the late one.
    store.write("demo", &order(3)).expect("an order");
    let run = store.load().expect("a list").0.remove(0);
    assert_eq!((run.order_number, run.order.rounds_done), (3, 3));
}

#[test]
fn a_store_works_through_a_storm() {
    let s3 = S3::new();
    s3.storm(20);
    let mut first = store(&s3);
    while first.lead().is_err() {}
    insist(&mut first, &order(1));
    for number in 1..=10 {
        insist(&mut first, &checkpoint(number));
    }
    let mut second = store(&s3);
    while second.lead().is_err() {}
    let run = second.load().expect("a list").0.remove(0);
    // If an order is repeated after an unclear outcome, it gets the next number.
    assert!(run.order_number >= 1 && run.checkpoint_number == 10, "{} {}", run.order_number, run.checkpoint_number);
    let (requests, troubles) = s3.counted();
    assert!(troubles > 10, "{troubles} of {requests}");
}

/// Eight coordinators want to be the first leader, while answers are lost.
#[test]
fn one_of_many_simultaneous_takeovers_leads() {
    for storm in [0, 20] {
        let s3 = S3::new();
        s3.storm(storm);
        let led = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| store(&s3).lead_after(None) == Ok(true))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|led| *led).count()
        });
        assert!(led <= 1 && (led == 1 || storm > 0), "{led} lead");
        assert_eq!(s3.names(), ["lab/a/leader/000001"]);
    }
}

#[test]
fn a_bucket_is_checked_through_a_storm() {
    let s3 = S3::new();
    for (storm, races) in [(0, 20), (20, 5)] {
        s3.storm(storm);
        check_objects(&objects(&s3), &spec(), races).unwrap_or_else(|why| panic!("{storm}: {why}"));
    }
    s3.storm(0);
    assert_eq!(s3.names(), [""; 0]);
}

#[test]
fn a_bucket_that_lets_two_create_one_name_is_rejected() {
    let s3 = S3::new();
    s3.look_first();
    let why = check_objects(&objects(&s3), &spec(), 5).expect_err("several win");
    assert!(why.contains("creators were told that they created") && why.contains(&spec()), "{why}");
}

/// A server's text about a request is not repeated, because it contains parts of keys.
#[test]
fn a_rejection_is_one_line_without_keys() {
    let s3 = S3::new();
    let wrong = s3.variables().into_iter().map(|(name, value)| match name.as_str() {
        "AWS_ACCESS_KEY_ID" => (name, "AKWRONG".to_owned()),
        _ => (name, value),
    });
    let mut store = Store::over(bucket(&spec(), wrong).expect("a good address"), &spec(), registry().clone());
    let Err(StoreFault::Failed(why)) = store.write("demo", &order(1)) else { panic!("it is let in") };
    assert!(why.contains("it answers 403 Forbidden, InvalidAccessKeyId: In the words of a server."), "{why}");
    assert!(!why.contains('\n') && !why.contains("SESSION") && !why.contains("AKEXAMPLE"), "{why}");
}

type Variables<'a> = &'a [(&'a str, &'a str)];

/// Environment variables with which a bucket cannot be opened, and parts of the resulting message.
#[tokio::test]
async fn unusable_buckets_are_rejected_in_one_sentence() {
    const NOWHERE: (&str, &str) = ("AWS_ENDPOINT", "http://127.0.0.1:1");
    const PLAIN: (&str, &str) = ("AWS_ALLOW_HTTP", "true");
    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "NEVERSAID")];
    const WHAT: &str = "check the bucket's name, AWS_ENDPOINT, AWS_REGION, and the keys in AWS_ACCESS_KEY_ID";
    const REFUSED: &[&str] = &["403 Forbidden, InvalidAccessKeyId", WHAT];
    let (site, s3) = (Site::new(), S3::new());
    let mut foreign = s3.variables();
    foreign.iter_mut().filter(|(name, _)| name.ends_with("KEY_ID")).for_each(|(_, value)| *value = "AKWRONG".into());
    let foreign: Vec<(&str, &str)> = foreign.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let cases: [(Variables<'_>, &[&str]); 6] = [
        (&[NOWHERE, PLAIN, KEYS[0], KEYS[1]], &["at http://127.0.0.1:1: ", "Connection refused", WHAT]),
        (&[NOWHERE, KEYS[0], KEYS[1]], &["http://127.0.0.1:1 is not encrypted", "AWS_ALLOW_HTTP=true"]),
        (&[("AWS_ENDPOINT", "minio:9000")], &["\"minio:9000\" is not the address of a server", "AWS_ENDPOINT"]),
        (&[NOWHERE, PLAIN, KEYS[1]], &["at http://127.0.0.1:1: ", WHAT]),
        // Without keys, the client asks the metadata server of an AWS host for its role's keys.
        (&[NOWHERE, PLAIN, ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")], &["Connection refused", WHAT]),
        (&foreign, REFUSED),
    ];
    for (variables, says) in cases {
        for arguments in [&["--listen", "127.0.0.1:0", "--store"][..], &["check-store"]] {
            let mut command = Command::new(program("evoxo-coordinator"));
            command.args(arguments).arg(format!("s3://{BUCKET}/a")).envs(variables.iter().copied());
            let mut process = site.start("evoxo-coordinator", &mut command);
            let waits = says == REFUSED && arguments.len() > 1;
            while waits && !process.log().contains("403") && !process.has_ended() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if waits {
                // The server may know the key again later, so opening is retried several times, but reported once.
                tokio::time::sleep(Duration::from_secs(3)).await;
                assert!(!process.has_ended() && process.log().contains("opening it is retried until that succeeds"));
                process.signal("TERM");
            }
            let (status, log) = (process.end().await, process.log());
            let lines = log.lines().filter(|line| line.contains("s3://")).count();
            assert_eq!((status.code(), lines), (Some(i32::from(!waits)), 1), "{variables:?}: {log}");
            assert!(waits || log.lines().count() == 1, "{variables:?}: {log}");
            assert!(log.contains(&format!("s3://{BUCKET}/a")), "{log}");
            says.iter().for_each(|part| assert!(log.contains(part), "{variables:?}: {part} is not in {log}"));
            assert!(!log.contains("NEVERSAID") && !log.contains("SESSION"), "{log}");
        }
    }
}

/// A coordinator is killed in the middle of a run, and its standby takes over, is killed and restarted, while the bucket is
/// in a storm and down for a while.
#[tokio::test]
async fn a_run_on_a_bucket_outlives_its_coordinators() {
    const STANDBY: [&str; 3] = ["--standby", "--takeover-after", "2s"];
    let (site, s3) = (Site::new(), S3::new());
    s3.storm(5);
    let config = "experiment = \"invincible\"\nseed = 11\nreplicas = 3\n[settings]\npopulation = 200\ngenerations = 120\n\
                  games = 3000\nslice = 20\n";
    let mut one = site.coordinator_of_bucket(&s3, "127.0.0.1:0", &[]);
    let mut two = site.coordinator_of_bucket(&s3, "127.0.0.1:0", &STANDBY);
    let both = format!("{},{}", one.address, two.address);
    let _worker = site.program("evoxo-worker", &["--coordinator", &both, "--slots", "2"]);
    let mut person = Person::of(one.address);
    while person.try_submit("run", config).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let done = person.wait("run", |run| run.rounds_done >= 20).await.rounds_done;
    one.process.kill();
    let mut person = Person::of(two.address);
    // Near the end there are fewer than 20 rounds left.
    let advanced = |run: &Run, done: u64| run.rounds_done >= (done + 20).min(run.rounds_total);
    let done = person.wait("run", |run| advanced(run, done)).await.rounds_done;
    s3.outage(true);
    tokio::time::sleep(Duration::from_secs(1)).await;
    s3.outage(false);
    person.wait("run", |run| advanced(run, done)).await;
    two.process.kill();
    let again = site.coordinator_of_bucket(&s3, &two.address.to_string(), &[]);
    let run = person.finished("run").await;
    assert_eq!(run.digest, digest_of_one_thread(config));
    assert!(s3.names().iter().all(|name| name.starts_with("site/")), "{:?}", s3.names());
    drop(again);
}

/// The near end of a line to the bucket, and a sender that says whether the line works.
fn line(s3: SocketAddr) -> (SocketAddr, watch::Sender<bool>) {
    let (whole, is_whole) = watch::channel(true);
    let near = relay(move |mut from| {
        let mut is_whole = is_whole.clone();
        async move {
            if !*is_whole.borrow() {
                return;
            }
            let Ok(mut to) = TcpStream::connect(s3).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut from, &mut to) => {}
                _ = is_whole.wait_for(|whole| !whole) => {}
            }
        }
    });
    (near, whole)
}

/// Only the leader is cut off from the store, and gets back to it later. Its workers go to the standby, and nobody is served
/// by both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_cannot_read_the_store_makes_room_for_its_standby() {
    const QUICK: [&str; 2] = ["--takeover-after", "2s"];
    let (site, s3) = (Site::new(), S3::new());
    let (near, whole) = line(s3.address());
    let one = site.coordinator_of_bucket(&s3.through(near), "127.0.0.1:0", &QUICK);
    let two = site.coordinator_of_bucket(&s3, "127.0.0.1:0", &[&QUICK[..], &["--standby"]].concat());
    let both = format!("{},{}", one.address, two.address);
    let _worker = site.program("evoxo-worker", &["--coordinator", &both, "--slots", "2"]);
    let config = "experiment = \"invincible\"\nseed = 11\nreplicas = 3\n[settings]\npopulation = 200\ngenerations = 120\n\
                  games = 3000\nslice = 20\n";
    let mut person = Person::of(one.address);
    person.submit("run", config).await;
    person.wait("run", |run| run.rounds_done >= 20).await;
    whole.send_replace(false);
    assert_eq!(Person::of(two.address).finished("run").await.digest, digest_of_one_thread(config));
    assert!(person.get("run").await.is_err(), "the coordinator that was cut off still answers: {}", one.process.log());
    whole.send_replace(true);
    let watches = async {
        while !person.get("run").await.is_err_and(|status| status.message().contains("leads in epoch 2")) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, watches).await.expect("it is the standby");
}
