//! Tasks that the coordinator computes in a separate process because every worker fails them: real coordinators, and workers
//! that fail every task.

use std::{fs, net::SocketAddr, path::Path, time::Instant};

use evoxo_proto::v1::{CancelRequest, Run, RunState, task_result::Outcome};
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread},
    programs::{example, program},
    script::{Session, spawn_worker},
};
use tokio::task::JoinHandle;

/// A run of three tasks.
const THREE: &str =
    "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 1\ntasks = 3\npayload_bytes = 16\nreply_bytes = 8\n";

/// A worker on which every task fails. It comes back when it may.
fn broken(coordinator: SocketAddr, name: &'static str) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let mut session = Session::join(coordinator, name).await;
            while let Some(assigned) = session.next_tasks().await {
                session.answer(assigned.id, &assigned.tasks, |_| Outcome::Failure("a library is missing".into())).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    })
}

fn all_broken(coordinator: SocketAddr) -> [JoinHandle<()>; 3] {
    ["w1", "w2", "w3"].map(|name| broken(coordinator, name))
}

/// The running child processes of this process.
fn children_of(process: u32) -> Vec<u32> {
    let children = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_thread = children.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    of_thread.flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

async fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waiting takes too long: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn is_over(process: u32) -> bool {
    !Path::new(&format!("/proc/{process}")).exists()
}

/// Every program that contains a coordinator, and one worker after the other that fails every task.
#[tokio::test]
async fn a_run_succeeds_although_every_worker_fails() {
    for site in [Site::new(), Site::of_tool(program("evoxo"))] {
        let coordinator = site.coordinator(&[]);
        let workers = all_broken(coordinator.address);
        let mut person = Person::of(coordinator.address);
        person.submit("run", THREE).await;
        let run = person.finished("run").await;
        assert_eq!(run.digest, digest_of_one_thread(THREE));
        assert!(run.notices.iter().any(|notice| notice.contains("computed these tasks itself")), "{:?}", run.notices);
        let log = coordinator.process.log();
        assert_eq!(log.matches("the coordinator has computed task ").count(), 3, "{log}");
        assert!(children_of(coordinator.process.id()).is_empty());
        workers.iter().for_each(JoinHandle::abort);
    }
}

/// The run after it has failed.
async fn failed(person: &mut Person, name: &str) -> Run {
    person.wait(name, |run| run.state() == RunState::Failed).await
}

/// A crash, an end without a result, a panic, an endless stack or endless memory: each ends the process, and the coordinator
/// continues.
#[tokio::test]
async fn a_harmful_task_ends_only_its_own_process() {
    let cases = [
        ("abort", "its process was ended by signal 6"),
        ("exit", "its process ended without a result"),
        ("panic", "a task that panics"),
        ("stack", "its process was ended by signal 6: thread 'main'"),
        ("memory", "its process was ended by signal 6: memory allocation of 67108864 bytes failed"),
        ("length", "its process ended without a result"),
    ];
    for (harm, wanted) in cases {
        let site = Site::of_tool(example("hostile")).with_variable("HARM", harm);
        let mut coordinator = site.coordinator(&[]);
        let workers = all_broken(coordinator.address);
        let mut person = Person::of(coordinator.address);
        person.submit("run", THREE).await;
        let run = failed(&mut person, "run").await;
        assert!(run.message.contains("failed 3 times, last on worker "), "{harm}: {}", run.message);
        let said = run.message.split("the coordinator could not compute it either: ").nth(1).unwrap_or_default();
        assert!(said.contains(wanted), "{harm}: {}", run.message);
        workers.iter().for_each(JoinHandle::abort);
        // Runs that workers can compute end as usual.
        let good = spawn_worker(coordinator.address, "good");
        person.submit("after", &THREE.replace("tasks = 3", "tasks = 50")).await;
        person.finished("after").await;
        good.abort();
        assert!(!coordinator.process.has_ended() && children_of(coordinator.process.id()).is_empty(), "{harm}");
    }
}

/// An endless loop: the process ends with its run, with the coordinator, or when it is killed. Then others no longer wait for
/// it.
#[tokio::test]
async fn an_endless_process_ends_with_its_run_or_coordinator() {
    let site = Site::of_tool(example("hostile")).with_variable("HARM", "loop");
    let mut coordinator = site.coordinator(&[]);
    let id = coordinator.process.id();
    let workers = all_broken(coordinator.address);
    let mut person = Person::of(coordinator.address);
    person.submit("cancelled", THREE).await;
    let own = until("a process", || children_of(id).first().copied()).await;
    person.submit("killed", &THREE.replace("replicas = 1", "replicas = 1\nseed = 2")).await;
    person.client.cancel(CancelRequest { name: "cancelled".into(), delete: false }).await.expect("the run exists");
    until("it ends with its run", || is_over(own).then_some(())).await;
    // The next run gets its turn. Killing its process does not end the coordinator.
    let next = until("the next one", || children_of(id).first().copied()).await;
    let killed = std::process::Command::new("kill").args(["-KILL", &next.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let run = failed(&mut person, "killed").await;
    assert!(run.message.contains("could not compute it either: its process was ended by signal 9"), "{}", run.message);
    person.submit("orphaned", &THREE.replace("replicas = 1", "replicas = 1\nseed = 3")).await;
    let last = until("one more", || children_of(id).first().copied()).await;
    coordinator.process.kill();
    until("it ends with the coordinator", || is_over(last).then_some(())).await;
    workers.iter().for_each(JoinHandle::abort);
}

/// The process is ended after the time that any worker has for such a task.
#[tokio::test]
async fn an_endless_process_is_ended_after_a_minute() {
    if std::env::var_os("THOROUGH").is_none() {
        return;
    }
    let site = Site::of_tool(example("hostile")).with_variable("HARM", "loop");
    let coordinator = site.coordinator(&["--batch", "1"]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &THREE.replace("rounds = 1", "rounds = 50")).await;
    // The coordinator knows how long such tasks take.
    let mut good = Session::join(coordinator.address, "good").await;
    good.work(5).await;
    drop(good);
    let workers = all_broken(coordinator.address);
    let run = failed(&mut person, "run").await;
    assert!(run.message.contains("its process did not end within 60 s"), "{}", run.message);
    workers.iter().for_each(JoinHandle::abort);
}
