//! Figures for Prometheus, in the OpenMetrics text format, on their own listener: `GET /metrics`.
//!
//! However often figures are requested, the core is asked at most once a second. Nothing can be changed here, and apart from
//! numbers only names of runs and workers are shown.

pub(crate) mod meters;
mod snapshot;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::AbortHandle,
    time::timeout,
};
use tracing::{info, warn};

use crate::{
    access::Access,
    core::{Request as CoreRequest, Response as CoreResponse},
    metrics::meters::Meters,
    page::Hosts,
    shell::Handle,
    shell::news::unix_seconds,
};
use snapshot::{Process, Snapshot};

/// The most connections at once. A further one ends the oldest connection of the address that has the most.
const CONNECTIONS_MAX: usize = 32;
/// The longest life of a connection, which has one request and its answer.
const CONNECTION_MAX: Duration = Duration::from_secs(30);
/// The time limit for the header of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of the header of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The most header lines of a request.
const HEADERS_MAX: usize = 64;
/// The age at which figures are collected again.
const AGE_MAX: Duration = Duration::from_secs(1);
/// How long the system may take to say how much room the store has.
const FREE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait when the system has no file descriptor for another connection.
const RETRY: Duration = Duration::from_millis(100);
/// The OpenMetrics text format.
const MEDIA: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The listener for figures, used in turn as a leader and as a standby.
pub(crate) struct Endpoint {
    listener: std::net::TcpListener,
    /// The directory of the store. If the store is a bucket, there is no such directory.
    store: PathBuf,
    /// The access directory, if there is one.
    access: Option<Access>,
    /// When the process started, in seconds since 1970.
    started_s: u64,
}

impl Endpoint {
    /// Listens at this address.
    ///
    /// # Errors
    /// If the system does not allow listening there.
    pub(crate) fn listen(address: SocketAddr, store: PathBuf, access: Option<Access>) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind(address)
            .with_context(|| format!("cannot listen on {address} for figures: choose another port with --metrics"))?;
        listener.set_nonblocking(true).context("cannot wait for connections")?;
        let address = listener.local_addr().context("the listener for figures has no address")?;
        info!("figures for Prometheus at http://{address}/metrics");
        Ok(Self { listener, store, access, started_s: unix_seconds() })
    }

    /// Another handle of the same listener, for another runtime.
    ///
    /// # Errors
    /// If the system denies it.
    pub(crate) fn again(&self) -> anyhow::Result<Self> {
        let listener = self.listener.try_clone().context("cannot wait for connections")?;
        let (store, access) = (self.store.clone(), self.access.clone());
        Ok(Self { listener, store, access, started_s: self.started_s })
    }

    /// Serves figures until the runtime ends: those of a leader, with its epoch if it has one, or else of a standby.
    ///
    /// # Errors
    /// If the system denies it.
    pub(crate) fn serve(self, leads: Option<(Handle, Option<u64>)>) -> anyhow::Result<()> {
        let here = self.listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let listener = TcpListener::from_std(self.listener).context("cannot wait for connections")?;
        let Self { store, access, started_s, .. } = self;
        let figures = Served { leads, here, store, access, started_s, last: Mutex::default() };
        tokio::spawn(converse(listener, Arc::new(figures)));
        Ok(())
    }
}

/// Accepts connections forever.
async fn converse(listener: TcpListener, figures: Arc<Served>) {
    let mut open = Open::default();
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let figures = Arc::clone(&figures);
                let served = tokio::spawn(async move { figures.converse(stream, from.ip()).await });
                open.add(from.ip(), served.abort_handle());
            }
            Err(error) => {
                warn!("a connection for figures could not be accepted: {error}");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Open connections with their addresses, the oldest first.
#[derive(Default)]
struct Open(VecDeque<(IpAddr, AbortHandle)>);

impl Open {
    /// Adds a connection. When there are too many, the address with the most loses its oldest, so nobody can keep others out.
    fn add(&mut self, peer: IpAddr, served: AbortHandle) {
        self.0.retain(|(_, served)| !served.is_finished());
        if self.0.len() >= CONNECTIONS_MAX {
            let of_peer = |place: &usize| self.0.iter().filter(|(other, _)| *other == self.0[*place].0).count();
            // `max_by_key` returns the last maximum, so the search runs from the newest to the oldest.
            let oldest = (0..self.0.len()).rev().max_by_key(of_peer);
            if let Some((_, served)) = oldest.and_then(|oldest| self.0.remove(oldest)) {
                served.abort();
            }
        }
        self.0.push_back((peer, served));
    }
}

/// The source of the figures.
struct Served {
    /// The core and its epoch, if it leads.
    leads: Option<(Handle, Option<u64>)>,
    /// Whether only this host can reach the listener.
    here: bool,
    /// The directory of the store. If the store is a bucket, there is no such directory.
    store: PathBuf,
    access: Option<Access>,
    started_s: u64,
    /// The last text, and when it was written.
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl Served {
    /// Answers the one request of a connection, and ends it.
    async fn converse(&self, stream: TcpStream, peer: IpAddr) {
        let answer =
            service_fn(
                |request: Request<Incoming>| async move { Ok::<_, Infallible>(self.answer(peer, &request).await) },
            );
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(false)
            .header_read_timeout(REQUEST_TIMEOUT)
            .max_buf_size(REQUEST_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        // The reason does not matter: the peer has disconnected or has broken a rule.
        drop(timeout(CONNECTION_MAX, served).await);
    }

    async fn answer(&self, peer: IpAddr, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let plain = |status: StatusCode, sentence: &'static str| {
            let mut response = Response::new(Full::from(sentence));
            *response.status_mut() = status;
            response
        };
        // A page under a foreign name that leads to this host must not read the figures in somebody's browser.
        if self.here && Hosts::default().check(peer, &Method::GET, request.uri(), request.headers()).is_err() {
            return plain(StatusCode::MISDIRECTED_REQUEST, "use the host name localhost\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n");
        }
        if request.uri().path() != "/metrics" {
            return plain(StatusCode::NOT_FOUND, "figures are at /metrics\n");
        }
        match self.text().await {
            Some(text) => {
                let mut response = Response::new(Full::new(text));
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
                response
            }
            None => plain(StatusCode::SERVICE_UNAVAILABLE, "the coordinator is stopping\n"),
        }
    }

    /// All figures, at most one second old. `None` if the core has ended.
    async fn text(&self) -> Option<Bytes> {
        let mut last = self.last.lock().await;
        if let Some((_, text)) = last.as_ref().filter(|(at, _)| at.elapsed() < AGE_MAX) {
            return Some(text.clone());
        }
        let leads = self.leads.as_ref().is_some_and(|(_, epoch)| epoch.is_some());
        let process = Process::new(self.started_s, leads, free_bytes(self.store.clone()).await);
        let process = process.with_expiries(self.access.as_ref().map(Access::expiries));
        let text = match &self.leads {
            None => write(process, None, None)?,
            Some((core, epoch)) => {
                let Ok(CoreResponse::Figures(figures)) = core.ask(CoreRequest::Figures).await else { return None };
                let (runs, healthy) = (core.views.list(), *core.healthy.borrow());
                let snapshot = Snapshot { figures: *figures, runs, epoch: *epoch, healthy };
                write(process, Some(&core.meters), Some(snapshot))?
            }
        };
        let text = Bytes::from(text);
        *last = Some((Instant::now(), text.clone()));
        Some(text)
    }
}

/// The free bytes of the file system of a directory, if the system says so in time: a network file system may hang.
async fn free_bytes(directory: PathBuf) -> Option<u64> {
    let asked = tokio::task::spawn_blocking(move || rustix::fs::statvfs(&directory));
    let about = timeout(FREE_TIMEOUT, asked).await.ok()?.ok()?.ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

/// All figures as text.
fn write(process: Process, meters: Option<&Meters>, snapshot: Option<Snapshot>) -> Option<String> {
    let mut registry = Registry::with_prefix("evoxo");
    registry.register_collector(Box::new(process));
    if let Some(snapshot) = snapshot {
        registry.register_collector(Box::new(snapshot));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    if let Some(meters) = meters {
        text::encode_registry(&mut text, meters.registry()).ok()?;
    }
    text::encode(&mut text, &registry).ok()?;
    Some(text)
}
