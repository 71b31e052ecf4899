//! Work and pauses that last longer than the limit of silence.

use std::{net::SocketAddr, time::Duration};

use evoxo_access::Role;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    secure::Secure,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpSocket, TcpStream},
};

use crate::some_seconds;

/// A task of about 15 seconds, in release, on the fastest machine that we had; on the slowest it takes 70.
const LONG_TASK: &str = "experiment = \"td3d\"\nreplicas = 1\n[settings]\nnetwork = \"deep\"\ngames = 160000\n\
    test_every = 160000\ntest_games = 20\nsegment_games = 160000\n";

/// A worker that computes for a long time is not lost, neither as a process nor on one thread.
#[tokio::test]
async fn a_task_of_fifteen_seconds_does_not_lose_its_worker() {
    if std::env::var_os("THOROUGH").is_none() {
        println!("left out: it takes a minute, or without optimisation many; the variable THOROUGH includes it");
        return;
    }
    let site = Site::new();
    std::fs::write(site.path("long.toml"), LONG_TASK).expect("a file");
    let mut digests = Vec::new();
    for workers in ["0", "1"] {
        let out = format!("out-{workers}");
        let mut run = site.program("evoxo", &["run", "long.toml", "--workers", workers, "--out", &out]);
        assert!(run.end().await.success(), "{workers} workers: {}", run.log());
        let result = std::fs::read_to_string(site.path(&out).join("result.json")).expect("a result");
        let result: serde_json::Value = serde_json::from_str(&result).expect("JSON");
        digests.push(result["digest"].clone());
    }
    assert!(digests[0].is_string() && digests[0] == digests[1], "{digests:?}");
}

/// A worker that is stopped for longer than the coordinator waits counts as lost and comes back, and no task becomes a
/// suspect.
#[tokio::test]
async fn a_worker_that_is_stopped_for_fifteen_seconds_comes_back() {
    let site = Site::new();
    let config = some_seconds(4, 100);
    let coordinator = site.coordinator(&["--silence", "10s"]);
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 20).await;
    worker.signal("STOP");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(person.get("run").await.expect("the coordinator answers").state(), RunState::Running);
    assert!(coordinator.process.log().contains("it sent nothing for 10000 ms"), "{}", coordinator.process.log());
    worker.signal("CONT");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

/// The same for the coordinator: its own pause does not count as silence of workers.
#[tokio::test]
async fn a_coordinator_that_is_stopped_for_fifteen_seconds_loses_no_worker() {
    let site = Site::new();
    let config = some_seconds(4, 100);
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 20).await;
    coordinator.process.signal("STOP");
    tokio::time::sleep(Duration::from_secs(15)).await;
    coordinator.process.signal("CONT");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert!(!coordinator.process.log().contains("it sent nothing for"), "{}", coordinator.process.log());
}

/// How many bytes a slow line carries at a time, and how long that takes: 50 kB per second.
const PIECE_BYTES: usize = 2048;
const PIECE_TIME: Duration = Duration::from_millis(41);

/// The near end of a line to `coordinator` that is slow only in this direction. It buffers as little as the system allows.
fn slow_line(coordinator: SocketAddr) -> SocketAddr {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(PIECE_BYTES as u32).expect("the system takes any size");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let listener = socket.listen(8).expect("the socket is bound");
    let near = listener.local_addr().expect("the socket is bound");
    tokio::spawn(async move {
        while let Ok((worker, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(coordinator).await else { continue };
            far.set_nodelay(true).expect("the socket is connected");
            let ((mut from_worker, mut to_worker), (mut from_far, mut to_far)) =
                (worker.into_split(), far.into_split());
            tokio::spawn(async move { copy(&mut from_far, &mut to_worker).await });
            tokio::spawn(async move {
                let mut piece = [0; PIECE_BYTES];
                while let Ok(length @ 1..) = from_worker.read(&mut piece).await {
                    tokio::time::sleep(PIECE_TIME).await;
                    if to_far.write_all(&piece[..length]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    near
}

/// A message of a megabyte takes twenty seconds to a coordinator that waits ten for a sign of life. Heartbeats and answers to
/// pings wait behind it.
#[tokio::test]
async fn a_worker_on_a_slow_line_is_not_lost_while_its_outputs_arrive() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let token = secure.token(coordinator.address, Role::Worker, 3600, 1).await;
    let _worker = secure.worker(slow_line(coordinator.address), &token, "far");
    let config = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 1\ntasks = 24\npayload_bytes = 16\nreply_bytes = 65536\n";
    let mut person = secure.person(coordinator.address);
    person.submit("run", config).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(config));
    assert!(!coordinator.process.log().contains(" is lost "), "{}", coordinator.process.log());
}
