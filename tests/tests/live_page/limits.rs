//! Whatever strangers send, and however much: they only lose their own connection, and a run continues.

use std::time::{Duration, Instant};

use evoxo_common::rng::{Stream, below};
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::http::{Answer, Events, exchange, get, send};
use crate::RUN;

#[tokio::test]
async fn requests_that_are_too_large_are_rejected() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let to = coordinator.address;
    let head = format!("GET / HTTP/1.1\r\nHost: {to}\r\n");
    let many: String = (0..100).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert_eq!(send(to, &format!("{head}{many}\r\n")).await.status, 431);
    assert_eq!(send(to, &format!("{head}x: {}\r\n\r\n", "a".repeat(20_000))).await.status, 431);
    let long = format!("GET /{} HTTP/1.1\r\nHost: {to}\r\n\r\n", "a".repeat(2000));
    assert_eq!(send(to, &long).await.status, 414);
    for length in ["Content-Length: 1000000000", "Transfer-Encoding: chunked"] {
        let body =
            format!("POST /api/runs/x/pause HTTP/1.1\r\nHost: {to}\r\nOrigin: http://{to}\r\n{length}\r\n\r\nabc");
        assert_eq!(send(to, &body).await.status, 413, "{length}");
    }
    // Two lengths, or a length together with chunks, can smuggle one request inside another.
    for twice in ["Content-Length: 0\r\nContent-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked"] {
        let smuggled =
            format!("GET / HTTP/1.1\r\nHost: {to}\r\n{twice}\r\n\r\nGET /api/runs HTTP/1.1\r\nHost: {to}\r\n\r\n");
        let answers = String::from_utf8_lossy(&exchange(to, smuggled.as_bytes()).await).matches("HTTP/1.1").count();
        assert!(answers <= 1, "{twice}: {answers} answers");
    }
    assert_eq!(get(to, "/").await.status, 200);
}

#[tokio::test]
async fn slow_and_silent_senders_are_disconnected() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let begun = Instant::now();
    let mut open = Vec::new();
    for beginning in ["G", "GET / HTTP/1.1\r\nHost: ", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut stream = TcpStream::connect(coordinator.address).await.expect("the server listens");
        stream.write_all(beginning.as_bytes()).await.expect("the server reads");
        open.push((beginning, stream));
    }
    for (beginning, mut stream) in open {
        // A byte from time to time does not help.
        let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match tokio::time::timeout(Duration::from_secs(1), stream.read(&mut buffer)).await {
                Ok(Ok(0) | Err(_)) => break,
                Ok(Ok(count)) => received.extend(&buffer[..count]),
                Err(_) if beginning.ends_with(": ") => drop(stream.write_all(b"a").await),
                Err(_) => {}
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{beginning:?} is still connected");
        }
        let answered = String::from_utf8_lossy(&received).starts_with("HTTP/1.1 200");
        assert_eq!(answered, beginning.ends_with("\r\n\r\n"), "{beginning:?}");
    }
}

#[tokio::test]
async fn garbage_is_dropped() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut rng = Stream::root(7).rng();
    for round in 0..200 {
        let mut bytes: Vec<u8> = (0..below(&mut rng, 300)).map(|_| below(&mut rng, 256) as u8).collect();
        if round % 2 == 0 {
            bytes.splice(0..0, *b"GET /api/");
        }
        bytes.extend(b"\r\n\r\n");
        let answer = exchange(coordinator.address, &bytes).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(get(coordinator.address, "/").await.status, 200);
    assert!(!coordinator.process.log().contains("panicked"), "{}", coordinator.process.log());
}

/// One address gets three quarters of a page's connections, and three quarters of the places for events. The oldest make
/// room, so every newcomer is answered. gRPC continues.
#[tokio::test]
async fn pages_get_a_share_of_the_connections() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut held = Vec::new();
    for _ in 0..600 {
        let mut stream = TcpStream::connect(coordinator.address).await.expect("the server listens");
        stream.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("the server reads");
        held.push(stream);
    }
    for stream in held.iter_mut().skip(200) {
        let mut first = [0; 12];
        assert!(stream.read_exact(&mut first).await.is_ok() && &first == b"HTTP/1.1 200");
    }
    assert_eq!(get(coordinator.address, "/api/runs").await.status, 200);
    drop(Events::open(coordinator.address).await.next().await);
    // Connections whose streams had to end may stay for a while, and send other requests.
    let mut open = 0;
    for stream in &mut held {
        let ended = async {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        };
        open += usize::from(tokio::time::timeout(Duration::from_millis(2), ended).await.is_err());
    }
    assert!((200..=384).contains(&open), "{open}");
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    let _worker = site.worker(coordinator.address, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(RUN));
    drop(held);
    // Their connections are free again.
    let begun = Instant::now();
    while send(coordinator.address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the page does not come back");
    }
}

/// Two hundred viewers, half of whom read nothing and half of whom also ask for curves and reports. The run's result is the
/// same, and nothing piles up.
#[tokio::test]
async fn viewers_that_do_not_read_cost_nothing() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let config = RUN.replace("generations = 12", "generations = 60");
    let mut readers = Vec::new();
    let mut stalled = Vec::new();
    for _ in 0..100 {
        let mut events = Events::open(coordinator.address).await;
        let address = coordinator.address;
        readers.push(tokio::spawn(async move {
            for number in 0.. {
                let event = events.next().await;
                if number % 2 == 1 {
                    let what = if number % 4 == 1 { "curves?column=1" } else { "report" };
                    let answer = get(address, &format!("/api/runs/run/{what}")).await;
                    // Too many requests at once are refused, and a run that does not exist yet has no curves or report.
                    assert!(matches!(answer.status, 200 | 404 | 429 | 503), "{}", answer.text());
                }
                let runs = event["runs"].as_array().into_iter().flatten();
                if runs.into_iter().any(|run| run["state"] == "finished") {
                    return;
                }
            }
        }));
        stalled.push(Events::open(coordinator.address).await);
    }
    let most = || coordinator.process.memory_bytes("VmHWM");
    let before = most();
    let mut person = Person::of(coordinator.address);
    let _worker = site.worker(coordinator.address, &[]);
    person.submit("run", &config).await;
    for reader in readers {
        reader.await.expect("the reader saw the end");
    }
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    let grown = most().zip(before).map(|(after, before)| after.saturating_sub(before));
    assert!(grown.is_none_or(|bytes| bytes < 100 << 20), "{grown:?} bytes more");
    drop(stalled);
    let _: Answer = get(coordinator.address, "/").await;
}
