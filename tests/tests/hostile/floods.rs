//! Floods of HTTP/2 frames. Whatever a peer sends as fast as it can, and however often it reconnects, others are served, and
//! memory and log stay small.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use evoxo_tests::{
    live::{Coordinator, Site},
    person::{Person, digest_of_one_thread},
    script::spawn_worker,
};

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, call, frame,
    headers, quiet,
};
use crate::{echoes, pause};

/// Another address of this machine, from which no flood comes.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// How many connections flood at once.
const PEERS: usize = 4;
/// How long a flood lasts before others send requests, with THOROUGH and without.
const LASTS_MS: [u64; 2] = [20_000, 1000];
/// The longest that others may wait for an answer, on a machine of two cores that the floods use too.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The most memory that the coordinator may use.
const MEMORY_BYTES_MAX: u64 = 150 << 20;
/// The most lines that all floods together may leave in the log.
const LOG_LINES_MAX: usize = 400;

const SUBMIT: &str = "/evoxo.v1.RunService/Submit";
const WATCH: &str = "/evoxo.v1.RunService/Watch";

/// A flood: the first bytes of a connection, and its n-th piece after that.
struct Flood {
    name: &'static str,
    first: fn() -> Vec<u8>,
    piece: fn(u32) -> Vec<u8>,
}

/// The stream of the n-th call.
fn nth(number: u32) -> u32 {
    2 * (number % (1 << 29)) + 1
}

/// A header of 4,000 bytes that the peer must keep (RFC 7541, section 6.2.1), and then its index, 16,000 times.
fn bomb(number: u32) -> Vec<u8> {
    let mut block = headers(SUBMIT);
    block.extend([0x40, 1, b'x', 0x7f]);
    // 4,000 = 127 + 3,873, in groups of seven bits.
    block.extend([0xa1, 0x1e]);
    block.extend([b'a'; 4000]);
    block.extend(std::iter::repeat_n(0xbe, 12_000));
    frame(HEADERS, END_HEADERS, nth(number), &block)
}

const FLOODS: [Flood; 11] = [
    Flood { name: "pings", first: Vec::new, piece: |_| frame(PING, 0, 0, b"evoxoevo").repeat(64) },
    Flood { name: "settings", first: Vec::new, piece: |_| frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]).repeat(64) },
    Flood {
        name: "calls that are reset at once",
        first: Vec::new,
        piece: |number| [call(nth(number), SUBMIT), frame(RST_STREAM, 0, nth(number), &8_u32.to_be_bytes())].concat(),
    },
    Flood { name: "calls without an end", first: Vec::new, piece: |number| call(nth(number), WATCH) },
    Flood {
        name: "headers without an end",
        first: || frame(HEADERS, 0, 1, &headers(SUBMIT)),
        piece: |_| frame(CONTINUATION, 0, 1, &[&[0, 1, b'x', 100][..], &[b'y'; 100]].concat()).repeat(16),
    },
    Flood {
        name: "empty continuations",
        first: || frame(HEADERS, 0, 1, &headers(SUBMIT)),
        piece: |_| frame(CONTINUATION, 0, 1, &[]).repeat(64),
    },
    Flood { name: "headers that unfold", first: Vec::new, piece: bomb },
    Flood { name: "empty data", first: || call(1, SUBMIT), piece: |_| frame(DATA, 0, 1, &[]).repeat(64) },
    Flood {
        name: "windows",
        first: || call(1, WATCH),
        piece: |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()).repeat(64),
    },
    Flood {
        name: "priorities",
        first: Vec::new,
        piece: |number| {
            let frames = (0..64).map(|more| frame(PRIORITY, 0, nth(64 * number + more), &[0, 0, 0, 0, 16]));
            frames.flatten().collect()
        },
    },
    Flood { name: "unknown frames", first: Vec::new, piece: |_| frame(0xee, 0, 0, &[7; 16_000]) },
];

/// Sends a flood from one connection after the other until it is told to stop. Half of the connections read nothing.
fn send(flood: &Flood, coordinator: SocketAddr, reads: bool, over: &AtomicBool, sent: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        let Some(mut stream) = quiet(coordinator) else { continue };
        let wait = Some(Duration::from_millis(50));
        stream.set_write_timeout(wait).and_then(|()| stream.set_nonblocking(reads)).expect("a socket has timeouts");
        let mut next = (flood.first)();
        let mut number = 0;
        while !over.load(Ordering::Relaxed) {
            match stream.write(&next) {
                Ok(length) => {
                    sent.fetch_add(length as u64, Ordering::Relaxed);
                    drop(next.drain(..length));
                }
                // A peer that is not read has to wait.
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => break,
            }
            if next.is_empty() {
                next = (flood.piece)(number);
                number += 1;
            }
            if reads && matches!(stream.read(&mut [0; 65_536]), Ok(0)) {
                break;
            }
        }
    }
}

/// While this flood lasts, a person at another address submits a run, a worker computes it, and everybody is answered
/// quickly.
async fn endure(flood: &'static Flood, coordinator: &Coordinator) {
    let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let floods: Vec<_> = (0..PEERS)
        .map(|peer| {
            let (over, sent, address) = (Arc::clone(&over), Arc::clone(&sent), coordinator.address);
            thread::spawn(move || send(flood, address, peer % 2 == 0, &over, &sent))
        })
        .collect();
    pause(LASTS_MS[usize::from(std::env::var_os("THOROUGH").is_none())]).await;
    let mut elsewhere = Person::at(coordinator.address, ELSEWHERE);
    let name = flood.name.replace(' ', "-");
    let config = echoes(1, 3, 4, 16);
    for answer in 0..5 {
        let start = Instant::now();
        match answer {
            0 => drop(elsewhere.submit(&name, &config).await),
            _ => drop(elsewhere.get(&name).await.expect("the coordinator answers")),
        }
        assert!(start.elapsed() < ANSWER_WITHIN, "{name}: an answer took {:?}", start.elapsed());
    }
    assert_eq!(elsewhere.finished(&name).await.digest, digest_of_one_thread(&config), "{name}");
    over.store(true, Ordering::Relaxed);
    floods.into_iter().for_each(|flood| flood.join().expect("it ends"));
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent > 100_000, "{name}: {sent} bytes are not a flood");
    if let Some(bytes) = coordinator.process.memory_bytes("VmHWM") {
        assert!(bytes < MEMORY_BYTES_MAX, "{name}: {} MiB", bytes >> 20);
    }
}

#[tokio::test]
async fn floods_of_every_kind_of_frame_lock_no_one_out() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let worker = spawn_worker(coordinator.address, "good");
    for flood in &FLOODS {
        endure(flood, &coordinator).await;
        assert!(!coordinator.process.has_ended(), "{}: {}", flood.name, coordinator.process.log());
    }
    worker.abort();
    let lines = coordinator.process.log().lines().count();
    assert!(lines < LOG_LINES_MAX, "{lines} lines");
    let slow = coordinator.process.log().lines().filter(|line| line.contains("the core took ")).count();
    assert!(slow < 5, "{}", coordinator.process.log());
}
