//! People's orders, and signals.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use evoxo_games::{board::score_four, player::Player};
use evoxo_proto::v1::{
    CancelRequest, Champion, FetchChampionRequest, FetchRequest, ListRequest, ListWorkersRequest, PauseRequest,
    ResumeRequest, RunState,
};
use evoxo_tests::{
    live::{PATIENCE, Site, relay},
    person::{Person, digest_of_one_thread},
    registry,
};
use tokio::{
    io::{AsyncReadExt as _, copy},
    net::TcpStream,
};
use tonic::Code;

use crate::{DISPATCH, INVINCIBLE, lasting};

#[tokio::test]
async fn sigterm_saves_everything_and_exits_with_0() {
    let site = Site::new();
    let config = lasting(3, 40);
    // The checkpoint interval is long, so the only checkpoint is the last one, on SIGTERM.
    let mut coordinator = site.coordinator(&["--checkpoint-interval", "3600"]);
    let address = coordinator.address;
    let mut worker = site.worker(address, &[]);
    let mut person = Person::of(address);
    person.submit("run", &config).await;
    let before = person.wait("run", |run| run.rounds_done >= 20).await;
    coordinator.process.signal("TERM");
    assert_eq!(coordinator.process.end().await.code(), Some(0), "{}", coordinator.process.log());
    let coordinator = site.coordinator_on(&address.to_string(), &[]);
    let after = person.wait("run", |_| true).await;
    assert!(after.rounds_done >= before.rounds_done, "{before:?} {after:?}");
    let done = person.finished("run").await;
    assert_eq!(done.digest, digest_of_one_thread(&config));
    assert!(done.tasks_done <= (done.rounds_total - before.rounds_done) * 10, "something was lost: {done:?}");
    worker.signal("TERM");
    assert_eq!(worker.end().await.code(), Some(0), "{}", worker.log());
    assert!(!coordinator.process.log().contains("is lost with"), "{}", coordinator.process.log());
}

#[tokio::test]
async fn a_worker_asked_to_leave_finishes_its_tasks() {
    let site = Site::new();
    let config = lasting(3, 30);
    let coordinator = site.coordinator(&["--batch", "4"]);
    let mut leaver = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 30).await;
    leaver.signal("TERM");
    assert_eq!(leaver.end().await.code(), Some(0), "{}", leaver.log());
    // The worker does not wait long for the coordinator to notice.
    let start = Instant::now();
    while !coordinator.process.log().contains(" left (session") {
        assert!(start.elapsed() < PATIENCE, "{}", coordinator.process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!coordinator.process.log().contains("is lost"), "{}", coordinator.process.log());
    let _other = site.worker(coordinator.address, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

#[tokio::test]
async fn submitting_twice_gives_one_run_and_more_replicas_extend_it() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    let (two, four) = (lasting(2, 5), lasting(4, 5));
    assert!(person.submit("run", &two).await, "it is new");
    assert!(!person.submit("run", &two).await, "the run is not new");
    let first = person.finished("run").await;
    assert!(!person.submit("run", &two).await, "the run is finished");
    assert_eq!(person.client.list(ListRequest::default()).await.expect("a list").into_inner().runs.len(), 1);
    assert_eq!(first.digest, digest_of_one_thread(&two));
    let other = person.try_submit("run", INVINCIBLE).await.expect_err("another configuration");
    assert_eq!(other.code(), Code::FailedPrecondition);
    assert!(other.message().contains("choose another name"), "{other}");

    assert!(person.submit("run", &four).await, "the run has more to compute");
    let extended = person.finished("run").await;
    assert_eq!(extended.digest, digest_of_one_thread(&four));
    assert_eq!(
        (first.tasks_done, extended.tasks_done),
        (2 * 2 * 5 * 10, 2 * 4 * 5 * 10),
        "only the new replicas are computed"
    );
    assert!(!person.submit("run", &two).await, "the run already has more replicas");
    assert_eq!(person.get("run").await.expect("the run is there").digest, extended.digest);
}

#[tokio::test]
async fn paused_runs_stay_paused_if_the_coordinator_is_killed() {
    let site = Site::new();
    // The run lasts longer than this test.
    let config = lasting(1, 50_000);
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address;
    let _worker = site.worker(address, &[]);
    let mut person = Person::of(address);
    let name = || "run".to_owned();
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 20).await;
    let paused = person.client.pause(PauseRequest { name: name() }).await.expect("the run is paused").into_inner();
    assert_eq!(paused.state(), RunState::Paused);
    let rest = person.wait("run", |run| run.tasks_assigned == 0).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(person.wait("run", |_| true).await.tasks_done, rest.tasks_done);
    drop(coordinator);
    let _coordinator = site.coordinator_on(&address.to_string(), &[]);
    let rest = person.wait("run", |_| true).await;
    assert_eq!((rest.state(), rest.tasks_done), (RunState::Paused, 0));
    assert!(rest.rounds_done > 0, "a pause saves the run: {rest:?}");
    assert!(!person.submit("run", &config).await, "submitting it again does not resume it");
    person.client.resume(ResumeRequest { name: name() }).await.expect("the run continues");
    person.wait("run", |run| run.rounds_done > rest.rounds_done).await;
}

#[tokio::test]
async fn cancelled_runs_can_be_continued_or_deleted() {
    let site = Site::new();
    let config = lasting(2, 10);
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let cancel = |delete| CancelRequest { name: "run".into(), delete };
    let cancelled = person.client.cancel(cancel(false)).await.expect("the run is cancelled").into_inner();
    assert_eq!(cancelled.state(), RunState::Cancelled);
    let _worker = site.worker(coordinator.address, &[]);
    let refused = person.client.resume(ResumeRequest { name: "run".into() }).await.expect_err("the run is cancelled");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(person.submit("run", &config).await, "submitting it again continues it");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));

    person.client.cancel(cancel(true)).await.expect("the run is deleted");
    assert_eq!(person.get("run").await.expect_err("the run is gone").code(), Code::NotFound);
    assert!(["order", "finished", "checkpoint"].iter().all(|kind| site.objects("run", kind).is_empty()));
    assert!(person.submit("run", DISPATCH).await, "the run's name is free");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
}

#[tokio::test]
async fn states_and_champions_can_be_fetched_and_workers_listed() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &["--name", "lab7"]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", INVINCIBLE).await;
    person.finished("run").await;
    let mut fetched = person.client.fetch(FetchRequest { name: "run".into() }).await.expect("replicas").into_inner();
    let mut replicas = Vec::new();
    while let Some(replica) = fetched.message().await.expect("a whole stream") {
        replicas.push((replica.arm, replica.replica, replica.finished));
    }
    let expected = ["X", "O", "O exact"].iter().flat_map(|arm| (0..3).map(|index| ((*arm).to_owned(), index, true)));
    assert_eq!(replicas, expected.collect::<Vec<_>>());
    let champion = |arm: &str| FetchChampionRequest { name: "run".into(), arm: arm.into(), replica: 2 };
    let card = person.client.fetch_champion(champion("O exact")).await.expect("a champion").into_inner().card;
    let card: serde_json::Value = serde_json::from_str(&card).expect("JSON");
    assert_eq!((&card["kind"], &card["side"], &card["replica"]), (&"table".into(), &"O".into(), &2.into()));
    // A network's card comes with its weights.
    person.submit("net", "experiment = \"td3d\"\nreplicas = 3\n[settings]\ngames = 20\ntest_every = 10\ntest_games = 2\n[arms.small]\nnetwork = \"small\"\n").await;
    person.finished("net").await;
    let request = FetchChampionRequest { name: "net".into(), ..champion("small") };
    let Champion { card, file } = person.client.fetch_champion(request).await.expect("a champion").into_inner();
    let mut load = |name: &str| (name == "small-2.safetensors").then(|| file.to_vec()).ok_or_else(|| name.to_owned());
    let card = registry().read_card(&card, &mut load).expect("a whole card");
    let player = card.capability::<Player>().expect("a valid card").expect("a player");
    assert!(std::ptr::eq(player.geometry, score_four()));
    let none = person.client.fetch_champion(champion("Z")).await.expect_err("there is no such arm");
    assert_eq!(none.code(), Code::NotFound);
    let workers = person.client.list_workers(ListWorkersRequest {}).await.expect("workers").into_inner().workers;
    assert_eq!((workers.len(), workers[0].name.as_str(), workers[0].slots), (1, "lab7", 1));
    assert!(workers[0].tasks_done > 0 && workers[0].tasks_assigned == 0);
}

/// Forwards connections to the coordinator. The first one that carries this many bytes from it ends there.
fn broken_once(coordinator: SocketAddr, bytes: u64) -> SocketAddr {
    let broken = Arc::new(AtomicBool::new(false));
    relay(move |near| {
        let broken = Arc::clone(&broken);
        async move {
            let far = TcpStream::connect(coordinator).await.expect("the server listens");
            let ((mut requests, mut answers), (from_far, mut to_far)) = (near.into_split(), far.into_split());
            let carrying = tokio::spawn(async move { copy(&mut requests, &mut to_far).await });
            let mut beginning = from_far.take(bytes);
            let whole = copy(&mut beginning, &mut answers).await.is_ok_and(|count| count < bytes);
            if !whole && broken.swap(true, Ordering::Relaxed) {
                drop(copy(&mut beginning.into_inner(), &mut answers).await);
            }
            carrying.abort();
        }
    })
}

/// The connection breaks as it does at a takeover.
#[tokio::test]
async fn fetched_results_are_complete_despite_a_broken_connection() {
    let site = Site::new();
    let config = lasting(3, 3);
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    person.finished("run").await;
    let relay = broken_once(coordinator.address, 4_000).to_string();
    let out = site.path("fetched");
    let to = out.to_str().expect("a path");
    let mut fetch = site.program("evoxo", &["fetch", "run", "--coordinator", &relay, "--out", to]);
    assert!(fetch.end().await.success(), "{}", fetch.log());
    assert!(fetch.log().contains("; trying to reach run again, for up to a minute"), "{}", fetch.log());
    let result = std::fs::read_to_string(out.join("result.json")).expect("a result");
    assert!(result.contains(&digest_of_one_thread(&config)), "{result}");
}
