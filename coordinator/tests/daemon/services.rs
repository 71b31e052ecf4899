//! What people and workers get.

use std::time::Duration;

use evoxo_proto::v1::{self, CloseKind, RunState, from_worker::Message as Said, to_worker::Message as Heard};
use tonic::Code;

use crate::support::{Daemon, PATIENCE, Session, config, get, hello, place, result, spawn_worker, submit, until};

#[tokio::test]
async fn a_run_is_computed_and_can_be_fetched() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    assert!(submit(&mut client, "demo", &config(5)).await.unwrap().created);
    let worker = spawn_worker(daemon.address);
    let run = until(&mut client, "demo", RunState::Finished).await;
    assert_eq!((run.replicas_finished, run.rounds_done, run.digest.len()), (2, 10, 64));
    let mut replicas = client.fetch(v1::FetchRequest { name: "demo".into() }).await.unwrap().into_inner();
    for number in 0..2 {
        let replica = replicas.message().await.unwrap().unwrap();
        assert!(replica.finished && replica.replica == number && !replica.state.is_empty());
    }
    assert!(replicas.message().await.unwrap().is_none());
    let workers = client.list_workers(v1::ListWorkersRequest {}).await.unwrap().into_inner().workers;
    assert_eq!((workers.len(), workers[0].name.as_str()), (1, "script"));
    worker.abort();
}

#[tokio::test]
async fn the_health_service_answers() {
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let channel =
        tonic::transport::Endpoint::new(format!("http://{}", daemon.address)).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    for service in ["", "evoxo.v1.WorkerService", "evoxo.v1.RunService"] {
        let answer = health.check(HealthCheckRequest { service: service.into() }).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn submitting_twice_is_one_run_and_another_configuration_is_refused() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    assert!(submit(&mut client, "demo", &config(5)).await.unwrap().created);
    assert!(!submit(&mut client, "demo", &config(5)).await.unwrap().created);
    assert_eq!(submit(&mut client, "demo", &config(6)).await.unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(client.list(v1::ListRequest {}).await.unwrap().into_inner().runs.len(), 1);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_sentence() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    let get = |name: &str| v1::GetRequest { name: name.into() };
    assert_eq!(client.get(get("nobody")).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(client.get(get("\0../..")).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(client.watch(v1::WatchRequest { name: "nobody".into() }).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(client.pause(v1::PauseRequest { name: "nobody".into() }).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(submit(&mut client, "../up", &config(1)).await.unwrap_err().code(), Code::InvalidArgument);
    let typo = submit(&mut client, "demo", "experiment = \"dispach\"").await.unwrap_err();
    assert_eq!(typo.code(), Code::InvalidArgument);
    assert!(typo.message().contains("dispatch"), "{typo}");
    let huge = submit(&mut client, "demo", &"#".repeat(2 << 20)).await.unwrap_err();
    assert_eq!(huge.code(), Code::OutOfRange);
    assert!(client.list(v1::ListRequest {}).await.unwrap().into_inner().runs.is_empty());
}

#[tokio::test]
async fn watchers_see_the_run_to_its_end_and_one_who_leaves_hurts_nobody() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    submit(&mut client, "demo", &config(200)).await.unwrap();
    let watch = v1::WatchRequest { name: "demo".into() };
    let mut seen = client.watch(watch.clone()).await.unwrap().into_inner();
    let mut other = daemon.people().await;
    let mut leaving = other.watch(watch.clone()).await.unwrap().into_inner();
    assert_eq!(leaving.message().await.unwrap().unwrap().state(), RunState::Running);
    drop((leaving, other));
    let worker = spawn_worker(daemon.address);
    let start = std::time::Instant::now();
    let mut count = 0;
    let mut last = v1::Run::default();
    while let Some(run) = tokio::time::timeout(PATIENCE, seen.message()).await.unwrap().unwrap() {
        assert!(run.rounds_done >= last.rounds_done, "a run goes forward");
        last = run;
        count += 1;
    }
    assert_eq!(last.state(), RunState::Finished, "the stream ends with the run");
    assert!(count as f64 <= 2.0 + start.elapsed().as_secs_f64() * 5.0, "{count} messages are more than five a second");
    // Of a finished run there is one message.
    let mut after = client.watch(watch).await.unwrap().into_inner();
    assert_eq!(after.message().await.unwrap().unwrap().digest, last.digest);
    assert!(after.message().await.unwrap().is_none());
    worker.abort();
}

#[tokio::test]
async fn pause_resume_cancel_and_delete() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    submit(&mut client, "demo", &config(5)).await.unwrap();
    let name = || "demo".to_owned();
    let paused = client.pause(v1::PauseRequest { name: name() }).await.unwrap().into_inner();
    assert_eq!(paused.state(), RunState::Paused);
    let resumed = client.resume(v1::ResumeRequest { name: name() }).await.unwrap().into_inner();
    assert_eq!(resumed.state(), RunState::Running);
    let cancelled = client.cancel(v1::CancelRequest { name: name(), delete: false }).await.unwrap().into_inner();
    assert_eq!(cancelled.state(), RunState::Cancelled);
    assert!(store.join("runs/demo").exists());
    client.cancel(v1::CancelRequest { name: name(), delete: true }).await.unwrap();
    assert!(!store.join("runs/demo").exists());
    assert_eq!(client.get(v1::GetRequest { name: name() }).await.unwrap_err().code(), Code::NotFound);
    assert!(submit(&mut client, "demo", &config(7)).await.unwrap().created, "the name is free again");
}

#[tokio::test]
async fn a_lost_worker_is_replaced_and_its_late_results_are_welcome() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    submit(&mut client, "demo", &config(5)).await.unwrap();
    let mut first = Session::open(daemon.address).await;
    first.say(Said::Hello(hello())).await;
    let assignment = loop {
        if let Some(Heard::Assignment(assignment)) = first.hear().await.unwrap() {
            break assignment;
        }
    };
    drop(first);
    // The same worker, back in a new session, offers what it computed in the old one.
    let mut second = Session::open(daemon.address).await;
    second.say(Said::Hello(hello())).await;
    let offers = assignment.tasks.iter().map(|task| result(0, task)).collect();
    second.say(Said::Outputs(v1::Outputs { results: offers })).await;
    loop {
        if let Some(Heard::Accepted(accepted)) = second.hear().await.unwrap() {
            assert_eq!(accepted.hashes.len(), assignment.tasks.len());
            break;
        }
    }
    drop(second);
    let worker = spawn_worker(daemon.address);
    until(&mut client, "demo", RunState::Finished).await;
    worker.abort();
}

#[tokio::test]
async fn a_worker_of_another_build_is_refused_with_the_task_that_differs() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut other = hello();
    other.signature[0].sha256 = vec![7; 32].into();
    let mut session = Session::open(daemon.address).await;
    session.say(Said::Hello(other.clone())).await;
    let Some(Heard::Close(close)) = session.hear().await.unwrap() else { panic!("no Close") };
    assert_eq!(close.kind(), CloseKind::Refused);
    assert!(close.reason.contains(&other.signature[0].kind), "{}", close.reason);
    assert_eq!(session.hear().await.unwrap(), None, "the stream ends");
}

#[tokio::test]
async fn a_stopped_coordinator_tells_its_workers_to_come_back() {
    let (_directory, store) = place();
    let mut daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    submit(&mut client, "demo", &config(1_000_000)).await.unwrap();
    let mut session = Session::open(daemon.address).await;
    session.work(500).await;
    daemon.close_stdin();
    let close = loop {
        if let Some(Heard::Close(close)) = session.hear().await.unwrap() {
            break close;
        }
    };
    assert_eq!(close.kind(), CloseKind::Retry);
    assert!(daemon.wait().success(), "{}", daemon.log());
    // What was absorbed is saved.
    let again = Daemon::start(&store);
    let run = get(&mut again.people().await, "demo").await;
    assert!(run.rounds_done > 0 && run.state() == RunState::Running, "{run:?}");
}

#[tokio::test]
async fn a_killed_coordinator_goes_on_and_the_digest_is_the_same() {
    let (_directory, store) = place();
    let (_directory_two, undisturbed) = place();
    let calm = Daemon::start(&undisturbed);
    let mut client = calm.people().await;
    submit(&mut client, "demo", &config(300)).await.unwrap();
    let worker = spawn_worker(calm.address);
    let digest = until(&mut client, "demo", RunState::Finished).await.digest;
    worker.abort();

    let mut daemon = Daemon::start(&store);
    submit(&mut daemon.people().await, "demo", &config(300)).await.unwrap();
    for _ in 0..3 {
        let mut session = Session::open(daemon.address).await;
        session.work(100).await;
        tokio::time::sleep(Duration::from_millis(120)).await;
        daemon.kill();
        daemon = Daemon::start(&store);
    }
    let worker = spawn_worker(daemon.address);
    let run = until(&mut daemon.people().await, "demo", RunState::Finished).await;
    assert_eq!(run.digest, digest);
    worker.abort();
}
