//! Invalid connections and messages: a peer can lose only its own connection.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use evoxo_common::rng::{Stream, below};
use evoxo_proto::{
    MESSAGE_BYTES_MAX, PROTOCOL,
    v1::{
        CloseKind, Heartbeat, Hello, Outputs, RunState, TaskResult, WatchRequest, from_worker::Message as Outgoing,
        task_result::Outcome,
    },
};
use evoxo_tests::{
    live::{Coordinator, PATIENCE, Site},
    person::{Person, digest_of_one_thread, is_absence},
    script::{Session, hello, spawn_worker},
};
use tonic::Code;

use crate::{DISPATCH, echoes, lasting};

#[tokio::test]
async fn broken_watches_do_not_affect_a_run() {
    let site = Site::new();
    let config = lasting(3, 30);
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let watch = || WatchRequest { name: "run".into() };
    let mut silent = Vec::new();
    for number in 0..40 {
        // Each on its own connection: some end at once, some after a message, some never read.
        let mut watcher = Person::of(coordinator.address);
        let mut seen = watcher.client.watch(watch()).await.expect("a stream").into_inner();
        match number % 3 {
            0 => {}
            1 => assert_eq!(seen.message().await.expect("a word").expect("the run").name, "run"),
            _ => silent.push((watcher, seen)),
        }
    }
    let mut seen = person.client.watch(watch()).await.expect("a stream").into_inner();
    let mut last = None;
    while let Some(run) = seen.message().await.expect("the stream is whole") {
        last = Some(run);
    }
    let last = last.expect("at least one word");
    assert_eq!((last.state(), last.digest), (RunState::Finished, digest_of_one_thread(&config)));
    drop(silent);
}

/// Sends these messages on one stream. Returns how the coordinator ends it.
async fn ends(coordinator: &Coordinator, messages: Vec<Outgoing>) -> (Option<CloseKind>, String) {
    let session = Session::open(coordinator.address).await;
    for message in messages {
        session.send(message).await;
    }
    match session.end().await {
        Ok(close) => (Some(close.kind()), close.reason),
        Err(status) => (None, status.message().to_owned()),
    }
}

#[tokio::test]
async fn unsuitable_workers_are_rejected() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let hello = || hello("stranger");
    let mut other = hello();
    other.kinds.iter_mut().for_each(|kind| kind.sha256 = vec![0; 32].into());
    let without = Hello { kinds: Vec::new(), ..hello() };
    let old = Hello { protocol: PROTOCOL + 1, ..hello() };
    let greedy = Hello { slots: 1_000_000, ..hello() };
    for (hello, part) in [
        (other, "computes different results"),
        (without, "kind"),
        (old, "has wire format 4 and this coordinator 3: `--version` shows it"),
        (greedy, "1000000 slots"),
    ] {
        let (kind, reason) = ends(&coordinator, vec![Outgoing::Hello(hello)]).await;
        assert_eq!(kind, Some(CloseKind::Refused), "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn invalid_messages_end_only_their_session() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", DISPATCH).await;
    let hello = || Outgoing::Hello(hello("stranger"));
    let outputs = |hash: usize, outcome: Option<Outcome>| {
        let result =
            TaskResult { hash: vec![1; hash].into(), elapsed_us: u64::MAX, outcome, assignment: 0, timed_out: false };
        Outgoing::Outputs(Outputs { results: vec![result] })
    };
    for (messages, kind, part) in [
        (vec![hello(), hello()], Some(CloseKind::Refused), "an invalid message"),
        (vec![hello(), outputs(7, None)], Some(CloseKind::Refused), "a result without a task or an outcome"),
        (vec![hello(), outputs(32, None)], Some(CloseKind::Refused), "a result without a task or an outcome"),
        (vec![Outgoing::Heartbeat(Heartbeat {})], None, "a session must begin with Hello"),
    ] {
        let (found, reason) = ends(&coordinator, messages).await;
        assert_eq!(found, kind, "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
}

/// Checks that the coordinator still works.
async fn works(coordinator: &Coordinator) {
    let mut person = Person::of(coordinator.address);
    let start = Instant::now();
    while let Err(status) = person.try_submit("works", &echoes(3)).await {
        // For a while there may be no room.
        assert!(is_absence(&status) && start.elapsed() < PATIENCE, "{status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let worker = spawn_worker(coordinator.address, "good");
    person.finished("works").await;
    worker.abort();
}

#[tokio::test]
async fn a_session_without_hello_ends() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let empty = Session::open(coordinator.address).await;
    empty.outgoing.send(evoxo_proto::v1::FromWorker { message: None }).await.expect("it is open");
    assert_eq!(empty.end().await.expect_err("no word").code(), Code::InvalidArgument);
    let silent = Session::open(coordinator.address).await;
    assert_eq!(silent.end().await.expect_err("no word").code(), Code::DeadlineExceeded);
    works(&coordinator).await;
}

#[tokio::test]
async fn an_oversized_message_ends_its_session_and_a_name_cannot_colour_the_log() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let oversized = Session::join(coordinator.address, "w").await;
    let failure = Outcome::Failure("x".repeat(MESSAGE_BYTES_MAX));
    let result =
        TaskResult { hash: vec![1; 32].into(), outcome: Some(failure), elapsed_us: 1, assignment: 0, timed_out: true };
    oversized.send(Outgoing::Outputs(Outputs { results: vec![result] })).await;
    assert_eq!(oversized.end().await.expect_err("no word").code(), Code::OutOfRange);
    let strange = Session::open(coordinator.address).await;
    strange.send(Outgoing::Hello(Hello { slots: u32::MAX, name: "\u{1b}[31m".repeat(1000), ..hello("w") })).await;
    assert_eq!(strange.end().await.expect("a last word").kind(), CloseKind::Refused);
    works(&coordinator).await;
    assert!(!coordinator.process.log().contains('\u{1b}'), "a worker's name cannot colour the log");
}

/// Sends bytes and waits until the other side closes.
fn is_dropped(coordinator: &Coordinator, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(coordinator.address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    // The coordinator may close the connection before everything is written.
    drop(stream.write_all(bytes));
    let start = Instant::now();
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) if start.elapsed() < PATIENCE => {}
            Ok(_) => return false,
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[tokio::test]
async fn random_bytes_on_the_port_only_drop_their_connection() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut rng = Stream::root(7).rng();
    let noise: Vec<u8> = (0..65_536).map(|_| below(&mut rng, 256) as u8).collect();
    let behind_preface = [PREFACE, &noise].concat();
    for bytes in [&noise[..], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0", &behind_preface] {
        assert!(is_dropped(&coordinator, bytes), "a connection with {} bytes of noise stays open", bytes.len());
    }
    works(&coordinator).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_and_the_log_stays_short() {
    let site = Site::new();
    let coordinator = site.limited_coordinator("ulimit -n 96", &[]);
    let connect = |_| {
        let mut stream = TcpStream::connect(coordinator.address).expect("the server listens");
        stream.write_all(PREFACE).expect("it is written");
        stream
    };
    let crowd: Vec<TcpStream> = (0..60).map(connect).collect();
    works(&coordinator).await;
    drop(crowd);
    let log = coordinator.process.log();
    assert_eq!(log.matches("only 32 connections are possible at once").count(), 1, "{log}");
    assert!(!log.contains("could not be accepted"), "{log}");
}

#[tokio::test]
async fn many_idle_connections_do_not_lock_a_worker_out() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let idle: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(coordinator.address).expect("the server listens")).collect();
    works(&coordinator).await;
    drop(idle);
}
