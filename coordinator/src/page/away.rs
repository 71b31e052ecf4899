//! What a coordinator that does not lead serves to browsers: a sentence, and the page as soon as it leads.

use std::{convert::Infallible, net::IpAddr};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use super::{BUFFER_BYTES_MAX, HEADERS_MAX, REQUEST_TIMEOUT, STALLED_MAX, timed::Timed};

/// The sentence for strangers. The full one may name the store and the leader.
const IN_SHORT: &str = "this coordinator does not lead yet: it is starting, or another one leads";

/// Tells browsers why there is no page. They reload by themselves. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Away(watch::Receiver<String>);

impl Away {
    /// `why` has the sentence for people on this host.
    pub(crate) fn new(why: watch::Receiver<String>) -> Self {
        Self(why)
    }

    /// Answers one request of the connection.
    pub(crate) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: IpAddr) {
        let sentence = if peer.to_canonical().is_loopback() { self.0.borrow().clone() } else { IN_SHORT.to_owned() };
        let answer = service_fn(|_: http::Request<Incoming>| {
            let answered = response(sentence.clone());
            async move { Ok::<_, Infallible>(answered) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .keep_alive(false)
            .max_buf_size(BUFFER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(Timed::new(stream, STALLED_MAX)), answer);
        // The reason does not matter: the peer has disconnected or has broken a rule.
        drop(served.await);
    }
}

fn response(sentence: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new((sentence + "\n").into()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // An open window shows the page as soon as there is one.
    headers.insert("refresh", HeaderValue::from_static("2"));
    response
}
