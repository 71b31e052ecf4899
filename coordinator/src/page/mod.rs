//! The page: what happens on this coordinator, in a browser. It is served over HTTP/1.1 on the port that also speaks gRPC. A
//! coordinator with an access directory serves it on a [listener of its own](endpoint), to people who log in at the [door].
//!
//! The page cannot hurt a run. It reads what the core publishes and what the store has. The core's thread only names objects
//! and workers for it, a few times a second however many people look. The bytes, connections and times of a stranger are
//! limited.

mod allowance;
mod away;
mod best;
mod curves;
mod door;
mod endpoint;
mod files;
mod guard;
mod history;
mod live;
mod play;
mod report;
mod route;
mod sessions;
mod timed;
mod told;
mod viewers;
mod visit;

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use away::Away;
pub(crate) use endpoint::Endpoint;
pub(crate) use guard::Hosts;

use crate::{
    access::Access,
    limits::places::{Owner, Places},
    shell::Handle,
};
use door::Door;
use history::History;
use live::Live;
use play::Players;
use report::Reports;
use timed::Timed;
use viewers::Viewers;
use visit::Visit;

/// The most connections of browsers at once. An address gets at most three quarters of these, and of the limits below, and a
/// session at most three quarters of that. When an address has no place left, [whoever has most makes
/// room](crate::limits::places).
pub(crate) const CONNECTIONS_MAX: usize = 512;
/// The most connections that have not shown a session yet, if a session is needed.
const STRANGERS_MAX: usize = 128;
/// The most connections that receive events. Viewers must leave connections to others.
const STREAMS_MAX: usize = 384;
/// The time limit for the header of a request, and for the pause between two requests.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// A browser that reads nothing for so long is disconnected.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// The most bytes of a request's header, and of the send buffer, which does not count the files and answers themselves.
const BUFFER_BYTES_MAX: usize = 16 << 10;
/// The most header lines of a request.
const HEADERS_MAX: usize = 64;
/// The interval at which histories and reports that nobody looks at any more are removed.
const CLEANING_INTERVAL: Duration = Duration::from_secs(10);

/// What a port serves to browsers.
#[derive(Clone)]
pub(crate) enum Shown {
    /// Nothing: the connection is closed.
    Nothing,
    Away(Away),
    Page(Page),
}

/// The page. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Page(Arc<Inner>);

struct Inner {
    core: Handle,
    hosts: Hosts,
    /// The login, if people must log in.
    door: Option<Door>,
    live: Live,
    history: History,
    players: Players,
    reports: Reports,
    connections: Places,
    strangers: Places,
    streams: Places,
    viewers: Arc<Viewers>,
    /// Whether another program started the coordinator for runs of its own.
    owned: bool,
    /// How many connections there have been.
    visits: AtomicU64,
}

impl Page {
    /// Starts the page and its background tasks. With an access directory people must log in, and a session lasts this long.
    /// The runs are `owned` by the program that started the coordinator, if there is one: nobody deletes them here.
    pub(crate) fn start(core: Handle, hosts: Hosts, access: Option<(Access, Duration)>, owned: bool) -> Self {
        let page = Self(Arc::new(Inner {
            hosts,
            door: access.map(|(access, life)| Door::new(access, life)),
            live: Live::start(core.clone()),
            history: History::new(core.clone()),
            players: Players::start(core.clone()),
            reports: Reports::new(core.clone()),
            connections: Places::new(CONNECTIONS_MAX, true),
            strangers: Places::new(STRANGERS_MAX, true),
            streams: Places::new(STREAMS_MAX, true),
            viewers: Arc::default(),
            owned,
            visits: AtomicU64::new(0),
            core,
        }));
        let cleaned = Arc::downgrade(&page.0);
        tokio::spawn(async move {
            while let Some(inner) = cleaned.upgrade() {
                inner.history.forget_unused();
                inner.reports.forget_unused();
                drop(inner);
                tokio::time::sleep(CLEANING_INTERVAL).await;
            }
        });
        page
    }

    /// Counts a connection; `None` if it exceeds the limits and must be dropped.
    pub(crate) fn visit(&self, peer: IpAddr) -> Option<Visit> {
        let place = self.0.connections.take(peer, Owner::Unknown, None)?;
        let stranger = match &self.0.door {
            Some(_) => Some(self.0.strangers.take(peer, Owner::Unknown, None)?),
            None => None,
        };
        Some(Visit::new(peer, self.0.visits.fetch_add(1, Ordering::Relaxed), place, stranger))
    }

    /// Answers the requests of a connection until it ends. `misled` marks a connection in plain text to a port that speaks
    /// TLS.
    pub(crate) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, visit: Visit, misled: bool) {
        let leave = visit.left();
        let visit = &Arc::new(visit);
        let answer = service_fn(|request: http::Request<Incoming>| async move {
            let (page, visit) = (Arc::clone(&self.0), Arc::clone(visit));
            let posted = *request.method() == http::Method::POST;
            let answered = async move { route::answer(&page, &visit, &request).await };
            Ok::<_, Infallible>(match (misled, posted) {
                (true, _) => route::misled(),
                // A browser that gives an order may disconnect before the order is carried out. The order is carried out all
                // the same, and the audit log has it.
                (false, true) => tokio::spawn(answered).await.unwrap_or_else(|_| route::panicked()),
                (false, false) => answered.await,
            })
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .max_buf_size(BUFFER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(Timed::new(stream, STALLED_MAX)), answer);
        // The reason does not matter: the peer has disconnected, has broken a rule, or must make room for others.
        tokio::select! {
            ended = served => drop(ended),
            () = leave => {}
        }
    }
}
