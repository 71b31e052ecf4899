//! A newcomer joins but does not get the answer: the coordinator has used the token, and must not use it again.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use evoxo_access::Role;
use evoxo_tests::{
    live::{Site, relay},
    secure::Secure,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::TcpStream,
};

/// Forwards connections to the coordinator. After a newcomer has joined, one connection ends before the answer arrives. The
/// coordinator answers when the line is in the audit log.
fn answer_lost(secure: &Secure<'_>, coordinator: SocketAddr) -> SocketAddr {
    let (log, lost) = (secure.directory.join("audit.jsonl"), Arc::new(AtomicBool::new(false)));
    let before = joins(&log);
    relay(move |near| {
        let (log, lost) = (log.clone(), Arc::clone(&lost));
        async move {
            let far = TcpStream::connect(coordinator).await.expect("the server listens");
            let ((mut requests, mut answers), (mut from_far, mut to_far)) = (near.into_split(), far.into_split());
            let carrying = tokio::spawn(async move { copy(&mut requests, &mut to_far).await });
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from_far.read(&mut bytes).await {
                let loses = joins(&log) > before && !lost.swap(true, Ordering::Relaxed);
                if loses || answers.write_all(&bytes[..count]).await.is_err() {
                    break;
                }
            }
            carrying.abort();
        }
    })
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
    let worker = secure.worker(answer_lost(&secure, coordinator.address), &token, "one");
    secure.person(coordinator.address).worker("one").await;
    assert_eq!(joins(&secure.directory.join("audit.jsonl")), 2, "{}", worker.log());
    let identities = secure.identities(coordinator.address).await;
    assert_eq!(identities.iter().filter(|known| known.role == "worker").count(), 1, "{identities:?}");
    assert!(!site.path("one.access.joining").exists(), "the key is in the access file now");
}

/// The command-line client does not retry by itself. It keeps the key for the next start, and that works even after the
/// coordinator was restarted.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_whose_answer_is_lost_joins_with_the_same_token() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let token = secure.token(address, Role::Viewer, 3600, 1).await;
    let relay = answer_lost(&secure, address);
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
