//! Clients that break off, and workers that are not what they should be.

use std::time::Duration;

use evoxo_common::task;
use evoxo_proto::{
    PROTOCOL,
    v1::{
        Beat, CloseKind, FromWorker, Hello, Outputs, RunState, TaskResult, WatchRequest, from_worker, to_worker,
        worker_service_client::WorkerServiceClient,
    },
};
use evoxo_tests::{
    live::{Coordinator, Site},
    person::{Person, digest_of_one_thread},
};
use tokio_stream::StreamExt as _;

use crate::{DISPATCH, lasting};

#[tokio::test]
async fn watchers_that_break_off_never_hurt_a_run() {
    let site = Site::new();
    let config = lasting(3, 30);
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let watch = || WatchRequest { name: "run".into() };
    let mut silent = Vec::new();
    for number in 0..40 {
        // Each its own connection: some break off at once, some after a word, some never read.
        let mut watcher = Person::of(coordinator.address);
        let mut words = watcher.client.watch(watch()).await.expect("a stream").into_inner();
        match number % 3 {
            0 => {}
            1 => assert_eq!(words.message().await.expect("a word").expect("the run").name, "run"),
            _ => silent.push((watcher, words)),
        }
    }
    let mut words = person.client.watch(watch()).await.expect("a stream").into_inner();
    let mut last = None;
    while let Some(run) = words.message().await.expect("the stream is whole") {
        last = Some(run);
    }
    let last = last.expect("at least one word");
    assert_eq!((last.state(), last.digest), (RunState::Finished, digest_of_one_thread(&config)));
    drop(silent);
}

fn hello() -> Hello {
    let (name, build) = ("stranger".to_owned(), "by hand".to_owned());
    Hello { protocol: PROTOCOL, slots: 1, name, signature: task::signature(), build }
}

/// Says these messages on one stream, which stays open, and hears until the coordinator ends it: its sentence.
async fn ends(coordinator: &Coordinator, messages: Vec<from_worker::Message>) -> (Option<CloseKind>, String) {
    let url = format!("http://{}", coordinator.address);
    let mut client = WorkerServiceClient::connect(url).await.expect("it listens");
    let messages = messages.into_iter().map(|message| FromWorker { message: Some(message) });
    let stream = tokio_stream::iter(messages).chain(tokio_stream::pending());
    let mut words = client.work(stream).await.expect("a stream").into_inner();
    loop {
        let word = tokio::time::timeout(Duration::from_secs(30), words.message()).await.expect("in time");
        match word.map(|word| word.and_then(|word| word.message)) {
            Ok(Some(to_worker::Message::Close(close))) => return (Some(close.kind()), close.reason),
            Ok(Some(_)) => {}
            Ok(None) => return (None, String::new()),
            Err(status) => return (None, status.message().to_owned()),
        }
    }
}

#[tokio::test]
async fn workers_that_compute_something_else_are_refused_by_name_of_the_kind() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut other = hello();
    let last = other.signature.last_mut().expect("a kind");
    let kind = last.kind.clone();
    last.sha256 = vec![0; 32].into();
    let mut without = hello();
    without.signature.pop();
    let old = Hello { protocol: PROTOCOL + 1, ..hello() };
    let greedy = Hello { slots: 1_000_000, ..hello() };
    for (hello, part) in [
        (other, format!("computes other results for tasks of kind {kind}: use the coordinator's build")),
        (without, format!("does not know tasks of kind {kind}")),
        (old, "speaks protocol 2 and this coordinator 1".to_owned()),
        (greedy, "1000000 slots".to_owned()),
    ] {
        let (kind, reason) = ends(&coordinator, vec![from_worker::Message::Hello(hello)]).await;
        assert_eq!(kind, Some(CloseKind::Refused), "{reason}");
        assert!(reason.contains(&part), "{reason}");
    }
}

#[tokio::test]
async fn nonsense_ends_its_session_and_nothing_else() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", DISPATCH).await;
    let hello = || from_worker::Message::Hello(hello());
    let result = TaskResult { hash: vec![1; 7].into(), ..TaskResult::default() };
    let nonsense = from_worker::Message::Outputs(Outputs { results: vec![result] });
    let stranger = TaskResult { hash: vec![1; 32].into(), elapsed_us: u64::MAX, ..TaskResult::default() };
    let empty = from_worker::Message::Outputs(Outputs { results: vec![stranger] });
    for (messages, kind, part) in [
        (vec![hello(), hello()], Some(CloseKind::Refused), "makes no sense"),
        (vec![hello(), nonsense], Some(CloseKind::Refused), "a result without a task or an outcome"),
        (vec![hello(), empty], Some(CloseKind::Refused), "a result without a task or an outcome"),
        (vec![from_worker::Message::Beat(Beat {})], None, "a session begins with Hello"),
    ] {
        let (found, reason) = ends(&coordinator, messages).await;
        assert_eq!(found, kind, "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
}
