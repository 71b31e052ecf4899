//! Whoever joins and does not get the answer: the coordinator has used the token, and must not use it once more.

use std::{fs, net::SocketAddr, path::Path};

use evoxo_access::Role;
use evoxo_tests::{live::Site, secure::Secure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// Carries connections to the coordinator. The first one ends when somebody has joined, before the answer is carried: the
/// coordinator answers when the line is in the audit log.
async fn answer_lost(secure: &Secure<'_>, coordinator: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let log = secure.directory.join("audit.jsonl");
    let before = joins(&log);
    tokio::spawn(async move {
        let mut lost = false;
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(coordinator).await.expect("it listens");
            if lost {
                tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
                continue;
            }
            let (mut requests, mut answers) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let carrying = tokio::spawn(async move { copy(&mut requests, &mut to_server).await });
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                lost = joins(&log) > before;
                if lost || answers.write_all(&bytes[..count]).await.is_err() {
                    break;
                }
            }
            carrying.abort();
        }
    });
    address
}

fn joins(log: &Path) -> usize {
    fs::read_to_string(log).map_or(0, |text| text.matches("\"join\"").count())
}

#[tokio::test]
async fn a_worker_whose_answer_is_lost_joins_with_the_same_token() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let token = secure.token(coordinator.address, Role::Worker, 3600, 1).await;
    let worker = secure.worker(answer_lost(&secure, coordinator.address).await, &token, "one");
    secure.person(coordinator.address).worker("one").await;
    assert_eq!(joins(&secure.directory.join("audit.jsonl")), 2, "{}", worker.log());
    let identities = secure.identities(coordinator.address).await;
    assert_eq!(identities.iter().filter(|known| known.role == "worker").count(), 1, "{identities:?}");
    assert!(!site.path("one.access.joining").exists(), "the key is in the access file now");
}

/// A person's tool does not try again by itself; it keeps the key for the next start, also of a coordinator that was restarted.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_whose_answer_is_lost_joins_with_the_same_token() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let token = secure.token(address, Role::Viewer, 3600, 1).await;
    let relay = answer_lost(&secure, address).await;
    let join = |through: SocketAddr, name: &str| secure.evoxo(through, Some(site.path(name)), &["join", &token]);
    let first = join(relay, "mine");
    assert!(!first.status.success() && !site.path("mine").exists(), "{first:?}");
    coordinator.process.kill();
    coordinator = secure.coordinator(&address.to_string(), &[]);
    let other = join(address, "other");
    assert!(String::from_utf8_lossy(&other.stderr).contains("the token is not known here"), "{other:?}");
    let second = join(address, "mine");
    assert!(second.status.success() && site.path("mine").exists(), "{second:?}");
    assert!(secure.evoxo(address, Some(site.path("mine")), &["runs"]).status.success());
    drop(coordinator);
}
