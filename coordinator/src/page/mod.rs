//! The page: what happens on this coordinator, in a browser. HTTP/1.1 on the port that also speaks gRPC; on a
//! coordinator with an access directory on a [listener of its own](endpoint), for those who log in at the [door].
//!
//! It cannot hurt a run. It reads what the core publishes and what the store has; the core's thread only names objects and
//! workers for it, a few times a second however many look. Bytes, connections and times of a stranger have limits.

mod allowance;
mod away;
mod comparison;
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
    places::{Owner, Places},
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

/// Connections of browsers at once. Of these and of the next ones an address gets three quarters, and a session three quarters of that;
/// if an address has no more, [whoever has most makes room](crate::places).
pub(crate) const CONNECTIONS_MAX: usize = 512;
/// Those among them that have shown no session yet where one is needed.
const STRANGERS_MAX: usize = 128;
/// Those that get events: whoever watches must leave connections to others.
const STREAMS_MAX: usize = 384;
/// The time for the lines of a request, and between two requests.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// A browser that reads nothing for this time is disconnected.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// The most bytes of the lines of a request, and of what waits to be sent besides the files and answers themselves.
const BUFFER_BYTES_MAX: usize = 16 << 10;
/// The most header lines of a request.
const HEADERS_MAX: usize = 64;
/// The interval at which histories and reports that nobody looks at are looked for.
const CLEANING_INTERVAL: Duration = Duration::from_secs(10);

/// What browsers get on a port.
#[derive(Clone)]
pub(crate) enum Shown {
    /// The connection is closed.
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
    /// Where one must log in.
    door: Option<Door>,
    live: Live,
    history: History,
    players: Players,
    reports: Reports,
    connections: Places,
    strangers: Places,
    streams: Places,
    viewers: Arc<Viewers>,
    /// Connections so far.
    visits: AtomicU64,
}

impl Page {
    /// Starts what the page needs. With an access directory one must log in, for this time.
    pub(crate) fn start(core: Handle, hosts: Hosts, access: Option<(Access, Duration)>) -> Self {
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

    /// Counts a connection; `None` for one over the limits, which is to be dropped.
    pub(crate) fn visit(&self, peer: IpAddr) -> Option<Visit> {
        let place = self.0.connections.take(peer, Owner::Unknown, None)?;
        let stranger = match &self.0.door {
            Some(_) => Some(self.0.strangers.take(peer, Owner::Unknown, None)?),
            None => None,
        };
        Some(Visit::new(peer, self.0.visits.fetch_add(1, Ordering::Relaxed), place, stranger))
    }

    /// Answers the requests of a connection, until it ends. `misled` is one in plain text where TLS is spoken.
    pub(crate) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, visit: Visit, misled: bool) {
        let leave = visit.left();
        let visit = &Arc::new(visit);
        let answer = service_fn(|request: http::Request<Incoming>| async move {
            let (page, visit) = (Arc::clone(&self.0), Arc::clone(visit));
            let posted = *request.method() == http::Method::POST;
            let answered = async move { route::answer(&page, &visit, &request).await };
            Ok::<_, Infallible>(match (misled, posted) {
                (true, _) => route::misled(),
                // Whoever gives an order may be gone before it is carried out. Then it is, and the audit log has it.
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
        // Whatever ended it: the other side has gone, or broke a rule, or must make room for others.
        tokio::select! {
            ended = served => drop(ended),
            () = leave => {}
        }
    }
}
