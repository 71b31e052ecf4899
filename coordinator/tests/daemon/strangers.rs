//! What strangers can do: nothing but lose their own connection.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use evoxo_proto::v1::{self, RunState, from_worker::Message as Said};
use tonic::Code;

use crate::support::{Daemon, Session, config, hello, place, spawn_worker, submit, until};

/// Sends bytes and waits until the other side closes.
fn is_dropped(daemon: &Daemon, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may be closed before all is written.
    drop(stream.write_all(bytes));
    let start = Instant::now();
    let mut answer = [0; 4096];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => return true,
            Ok(_) if start.elapsed() < Duration::from_secs(20) => {}
            Ok(_) => return false,
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// The coordinator still works.
async fn works(daemon: &Daemon, name: &str) {
    let mut client = daemon.people().await;
    submit(&mut client, name, &config(3)).await.unwrap();
    let worker = spawn_worker(daemon.address);
    until(&mut client, name, RunState::Finished).await;
    worker.abort();
}

#[tokio::test]
async fn random_bytes_on_the_port_only_drop_their_connection() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut noise = Vec::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..8192 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend(state.to_le_bytes());
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let behind_preface = [&preface[..], &noise].concat();
    for bytes in [&noise[..], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0", &behind_preface] {
        assert!(is_dropped(&daemon, bytes), "a connection with {} bytes of noise stays open", bytes.len());
    }
    works(&daemon, "demo").await;
}

#[tokio::test]
async fn who_finds_no_room_waits_and_the_log_stays_short() {
    let (_directory, store) = place();
    let daemon = Daemon::start_with_few_files(&store, 96);
    let connect = |_| {
        let mut stream = TcpStream::connect(daemon.address).unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream
    };
    let crowd: Vec<TcpStream> = (0..60).map(connect).collect();
    let late = tokio::time::timeout(Duration::from_secs(1), Session::open(daemon.address)).await;
    assert!(late.is_err(), "there was room for all");
    drop(crowd);
    works(&daemon, "demo").await;
    let log = daemon.log();
    assert_eq!(log.matches("only 32 connections at once").count(), 1, "{log}");
    assert!(!log.contains("could not be accepted"), "{log}");
}

#[tokio::test]
async fn a_session_without_hello_ends() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut rude = Session::open(daemon.address).await;
    rude.say(Said::Beat(v1::Beat {})).await;
    assert_eq!(rude.hear().await.unwrap_err().code(), Code::InvalidArgument);
    let mut empty = Session::open(daemon.address).await;
    empty.said.send(v1::FromWorker { message: None }).await.unwrap();
    assert_eq!(empty.hear().await.unwrap_err().code(), Code::InvalidArgument);
    let mut silent = Session::open(daemon.address).await;
    assert_eq!(silent.hear().await.unwrap_err().code(), Code::DeadlineExceeded);
    works(&daemon, "demo").await;
}

#[tokio::test]
async fn an_oversized_or_senseless_message_ends_its_session_only() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut oversized = Session::open(daemon.address).await;
    oversized.say(Said::Hello(hello())).await;
    assert!(oversized.hear().await.unwrap().is_some(), "Welcome");
    let failure = "x".repeat(evoxo_proto::MESSAGE_BYTES_MAX);
    let result = v1::TaskResult {
        hash: vec![1; 32].into(),
        outcome: Some(v1::task_result::Outcome::Failure(failure)),
        ..Default::default()
    };
    oversized.say(Said::Outputs(v1::Outputs { results: vec![result] })).await;
    assert_eq!(oversized.hear().await.unwrap_err().code(), Code::OutOfRange);

    let mut senseless = Session::open(daemon.address).await;
    senseless.say(Said::Hello(hello())).await;
    let result = v1::TaskResult { hash: vec![1; 5].into(), ..Default::default() };
    senseless.say(Said::Outputs(v1::Outputs { results: vec![result] })).await;
    while senseless.hear().await.unwrap().is_some() {}

    let mut many = hello();
    many.slots = u32::MAX;
    many.name = "\u{1b}[31m".repeat(1000);
    let mut strange = Session::open(daemon.address).await;
    strange.say(Said::Hello(many)).await;
    while strange.hear().await.unwrap().is_some() {}
    works(&daemon, "demo").await;
    assert!(!daemon.log().contains('\u{1b}'), "a worker's name can not colour the log");
}

#[tokio::test]
async fn a_storm_of_strangers_does_not_keep_a_worker_out() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(daemon.address).unwrap()).collect();
    works(&daemon, "demo").await;
    drop(idle);
}
