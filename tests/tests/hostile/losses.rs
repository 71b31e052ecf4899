//! Workers that are lost again and again, in every way: runs neither fail nor wait for them.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use evoxo_common::digest::Digest;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    programs::example,
    script::{Session, honest},
};

use crate::{pause, some_seconds};

/// During the whole run, one of three workers is killed as soon as it has tasks, and restarted.
#[tokio::test]
async fn one_worker_of_three_is_killed_repeatedly() {
    let site = Site::new();
    // The run is long enough for three kills on a fast machine.
    let config = some_seconds(6, 360);
    let coordinator = site.coordinator(&[]);
    let _healthy = [0, 1].map(|_| site.worker(coordinator.address, &[]));
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let mut kills = 0;
    loop {
        let mut victim = site.worker(coordinator.address, &["--name", "victim"]);
        pause(400).await;
        victim.kill();
        kills += 1;
        let run = person.get("run").await.expect("the coordinator answers");
        assert_ne!(run.state(), RunState::Failed, "after {kills} kills: {run:?}");
        if run.state() == RunState::Finished {
            assert_eq!(run.digest, digest_of_one_thread(&config));
            break;
        }
    }
    assert!(kills >= 3, "the run was over after {kills} kills");
}

/// All workers but one are killed at once, each with a task. The run continues at once, with the bytes of one thread.
#[tokio::test]
async fn all_workers_but_one_are_killed_at_once() {
    let count = if std::env::var_os("THOROUGH").is_some() { 300 } else { 12 };
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let config = some_seconds(8, 100);
    let mut crowd: Vec<_> = (0..count)
        .map(|number| site.worker(coordinator.address, &["--name", &format!("w{number}"), "--log", "error"]))
        .collect();
    let start = std::time::Instant::now();
    loop {
        let request = evoxo_proto::v1::ListWorkersRequest {};
        let there =
            person.client.list_workers(request).await.expect("the coordinator answers").into_inner().workers.len();
        if there == count {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(600), "{there} of {count} workers are there");
        pause(100).await;
    }
    let _last = site.worker(coordinator.address, &["--name", "last"]);
    person.worker("last").await;
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 2 * count as u64).await;
    // All are killed with one command. If each kill were waited for, they would die one after the other, and a suspect would
    // be lost with several of them.
    let numbers = crowd.iter().map(|worker| worker.id().to_string());
    let killed = std::process::Command::new("kill").arg("-KILL").args(numbers).status();
    assert!(killed.is_ok_and(|status| status.success()), "all workers can be killed");
    crowd.iter_mut().for_each(|worker| worker.kill());
    let run = person.finished("run").await;
    assert_eq!(run.digest, digest_of_one_thread(&config));
    assert!(run.doubts.is_empty(), "{run:?}");
    // Hundreds die one after the other, so a suspect may be lost ten times meanwhile. Then the coordinator computes it.
    let itself = coordinator.process.log().contains("computes it itself");
    assert!(!itself || count > 12, "a dozen losses convict no task: {run:?}");
    assert!(coordinator.process.log().contains("is lost with "), "the run was over before");
}

/// Sessions that take tasks and vanish, as fast as possible.
#[tokio::test]
async fn workers_that_join_and_vanish_convict_no_task() {
    let site = Site::new();
    let config = some_seconds(2, 20);
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    for number in 0..40 {
        let mut session = Session::join(coordinator.address, &format!("ghost-{}", number % 5)).await;
        // The session gets tasks, or must wait.
        let _ = tokio::time::timeout(Duration::from_millis(300), session.next_tasks()).await;
    }
    let run = person.get("run").await.expect("the coordinator answers");
    assert_eq!(run.state(), RunState::Running, "{run:?}");
    let _worker = site.worker(coordinator.address, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

/// Computes honestly. Once armed, the first task that any of these workers gets kills its worker from then on.
async fn work_until_killed(address: SocketAddr, name: &str, armed: &AtomicBool, poison: &Mutex<Option<Digest>>) {
    let mut session = Session::join(address, name).await;
    while let Some(assigned) = session.next_tasks().await {
        if armed.load(Ordering::Relaxed) {
            let poison = *poison.lock().expect("no panic has held it").get_or_insert(assigned.tasks[0].hash);
            if assigned.tasks.iter().any(|task| task.hash == poison) {
                return;
            }
        }
        session.answer(assigned.id, &assigned.tasks, honest).await;
    }
}

/// Three proven workers that vanish with the same task convict it, because a real killer must be found. It also kills the
/// coordinator's separate process.
#[tokio::test]
async fn a_task_that_kills_proven_workers_fails_its_run_and_resume_tries_again() {
    let site = Site::of_tool(example("hostile")).with_variable("HARM", "abort");
    let coordinator = site.coordinator(&["--batch", "1"]);
    let mut person = Person::of(coordinator.address);
    // The duration of the tasks is unknown, so a worker has proved itself after some seconds of work.
    person.submit("run", &crate::echoes(1, 100_000, 10, 16)).await;
    let (armed, poison) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
    let victims = ["a", "b", "c", "d"].map(|name| {
        let (armed, poison, address) = (Arc::clone(&armed), Arc::clone(&poison), coordinator.address);
        tokio::spawn(async move { work_until_killed(address, name, &armed, &poison).await })
    });
    pause(8000).await;
    armed.store(true, Ordering::Relaxed);
    let mut killed = 0;
    for victim in victims {
        // When the run has failed, the last worker is still there.
        killed += u32::from(tokio::time::timeout(Duration::from_secs(15), victim).await.is_ok());
    }
    assert!(killed >= 3, "only {killed} workers met the task");
    let failed = person.wait("run", |run| run.state() == RunState::Failed).await;
    assert!(failed.message.contains("was the only task of 3 reliable workers"), "{failed:?}");
    assert!(failed.message.contains("its process was ended by signal 6"), "{failed:?}");
    // Only a person's request restarts the run.
    let address = coordinator.address.to_string();
    drop(coordinator);
    let coordinator = site.coordinator_on(&address, &[]);
    let restored = person.wait("run", |run| run.state() == RunState::Failed).await;
    assert_eq!(restored.message, failed.message);
    let resume = evoxo_proto::v1::ResumeRequest { name: "run".into() };
    let resumed = person.client.resume(resume).await.expect("the run is retried").into_inner();
    assert_eq!(resumed.state(), RunState::Running);
    assert!(
        resumed.message.contains("it had failed") || resumed.notices.iter().any(|n| n.contains(&failed.message)),
        "{resumed:?}"
    );
    drop(coordinator);
}
