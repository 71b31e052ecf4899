//! The audit log on a disk that hangs: its file is a pipe that nobody reads.

use std::{io::ErrorKind, process::Command, time::Duration};

use evoxo_access::Role;
use evoxo_proto::v1::PauseRequest;
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::digest_of_one_thread,
    secure::Secure,
};
use tokio::{
    net::unix::pipe::{OpenOptions, Receiver, Sender},
    time::timeout,
};

use crate::DISPATCH;

/// Fills a pipe with empty lines until nothing more can be written into it.
async fn fill(pipe: &Sender) {
    while let Ok(ready) = timeout(Duration::from_millis(300), pipe.writable()).await {
        ready.expect("a pipe");
        if let Err(error) = pipe.try_write(&[b'\n'; 4096]) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
    }
}

/// Reads a pipe until all of these texts have come. Returns the position of each.
async fn read(pipe: &Receiver, texts: &[&str]) -> Vec<usize> {
    let (mut all, mut buffer) = (Vec::new(), vec![0_u8; 1 << 16]);
    let reading = async {
        loop {
            pipe.readable().await.expect("a pipe");
            match pipe.try_read(&mut buffer) {
                Ok(bytes) => all.extend_from_slice(&buffer[..bytes]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let text = String::from_utf8_lossy(&all);
            let places: Vec<usize> = texts.iter().filter_map(|wanted| text.find(wanted)).collect();
            if places.len() == texts.len() {
                return places;
            }
        }
    };
    timeout(PATIENCE, reading).await.expect("the lines come when the pipe is read")
}

/// While no line can be written, orders are carried out and answered, and a worker joins and computes. When the pipe is read,
/// all lines come in order. A coordinator that is stopped while the pipe is full ends, and says which lines are missing.
#[tokio::test]
async fn a_disk_that_takes_no_line_of_the_audit_log_blocks_no_call() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let file = secure.directory.join("audit-rights.jsonl");
    assert!(Command::new("mkfifo").arg(&file).status().is_ok_and(|status| status.success()));
    let receiver = OpenOptions::new().open_receiver(&file).expect("a pipe");
    let sender = OpenOptions::new().open_sender(&file).expect("a pipe with a reader");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    read(&receiver, &["\"what\":\"lead\""]).await;
    fill(&sender).await;
    let mut person = secure.person(address);
    let asked = async {
        person.submit("run", DISPATCH).await;
        person.client.pause(PauseRequest { name: "none".into() }).await.expect_err("there is no such run");
        let token = secure.token(address, Role::Worker, 3600, 1).await;
        let worker = secure.worker(address, &token, "one");
        person.worker("one").await;
        let unread = secure.audit_log(address, 9).await;
        assert!(unread.missing.starts_with("the audit log on the coordinator's host cannot be read"));
        worker
    };
    let worker = timeout(PATIENCE, asked).await.expect("requests are answered");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
    let log = coordinator.process.log();
    assert!(log.contains("the disk does not take the lines of"), "{log}");

    let lines = ["\"what\":\"submit\"", "\"object\":\"none\"", "\"create token\""];
    let places = read(&receiver, &lines).await;
    assert!(places.is_sorted(), "{places:?}");

    fill(&sender).await;
    coordinator.process.signal("TERM");
    assert!(coordinator.process.end().await.success(), "{}", coordinator.process.log());
    let log = coordinator.process.log();
    assert!(log.contains("the last lines of the audit log could not be written on this host"), "{log}");
    drop(worker);
}
