//! HTTP/2 by hand, for peers that may break its rules (RFC 9113).

use std::{io::Write as _, net::SocketAddr, net::TcpStream};

/// The first bytes of a connection.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames.
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// The flag of the last frame with headers.
pub(super) const END_HEADERS: u8 = 4;

/// A frame (RFC 9113, section 4.1).
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call, each as a literal without indexing (RFC 7541, section 6.2.2).
pub(super) fn headers(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The first frame of a call.
pub(super) fn call(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &headers(path))
}

/// A connection that has sent only the start of HTTP/2.
pub(super) fn quiet(coordinator: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(coordinator).ok()?;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).ok()?;
    Some(stream)
}
