//! A minimal browser for these tests: HTTP/1.1 and streams of events.

use std::net::SocketAddr;

use evoxo_tests::live::PATIENCE;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

/// An answer. The status is 0 if there was none.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else { return Self { status: 0, headers: Vec::new(), body: Vec::new() } };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let pair = |line: &str| line.split_once(": ").map(|(key, value)| (key.to_lowercase(), value.to_owned()));
        Self { status, headers: lines.filter_map(pair).collect(), body: bytes[end + 4..].to_vec() }
    }
}

/// Sends a request, whose head ends with an empty line, on a new connection, and reads to the end.
pub(crate) async fn send(to: SocketAddr, request: &str) -> Answer {
    let request = request.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
    Answer::of(&exchange(to, request.as_bytes()).await)
}

/// Sends bytes, and returns everything received until the other side closes the connection.
pub(crate) async fn exchange(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).await.expect("the server listens");
    let mut received = Vec::new();
    let all = async {
        // The server may refuse the request before everything is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.read_to_end(&mut received).await;
    };
    timeout(PATIENCE, all).await.expect("an answer, or an end");
    received
}

/// Sends a request as the page itself would.
pub(crate) async fn own(to: SocketAddr, method: &str, path: &str) -> Answer {
    send(to, &format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\nOrigin: http://{to}\r\n\r\n")).await
}

pub(crate) async fn get(to: SocketAddr, path: &str) -> Answer {
    own(to, "GET", path).await
}

pub(crate) async fn post(to: SocketAddr, path: &str) -> Answer {
    own(to, "POST", path).await
}

/// A stream of events.
pub(crate) struct Events {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Events {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(to).await.expect("the server listens");
        let request = format!("GET /api/events HTTP/1.1\r\nHost: {to}\r\nAccept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        Self { stream, received: Vec::new() }
    }

    /// The next message. (The transfer's chunk headers are not part of the line that starts with `data: `.)
    pub(crate) async fn next(&mut self) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = String::from_utf8_lossy(&self.received).into_owned();
            if let Some(begin) = text.find("data: ")
                && let Some(length) = text[begin..].find("\n\n")
            {
                let message = serde_json::from_str(&text[begin + 6..begin + length]).expect("JSON");
                self.received.drain(..begin + length);
                return message;
            }
            let mut more = [0; 4096];
            let count = timeout_at(end, self.stream.read(&mut more)).await.expect("an event").expect("a stream");
            assert!(count > 0, "the stream has ended: {text}");
            self.received.extend(&more[..count]);
        }
    }
}
