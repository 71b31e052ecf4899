//! The page: what happens on this coordinator, in a browser. HTTP/1.1 on the port that also speaks gRPC.
//!
//! It cannot hurt a run. It reads what the core publishes and what the store has; the core's thread only names objects and
//! workers for it, a few times a second however many look. Bytes, connections and times of a stranger have limits.

mod comparison;
mod curves;
mod files;
mod guard;
mod history;
mod live;
mod play;
mod report;
mod route;
mod timed;
mod told;

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};

pub(crate) use guard::Hosts;

use crate::{peers::Peers, shell::Handle};
use history::History;
use live::Live;
use play::Players;
use report::Reports;
use timed::Timed;

/// Connections of browsers at once; one address gets three quarters of them.
const CONNECTIONS_MAX: usize = 512;
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

/// The page. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Page(Arc<Inner>);

struct Inner {
    core: Handle,
    hosts: Hosts,
    live: Live,
    history: History,
    players: Players,
    reports: Reports,
    connections: Arc<Semaphore>,
    peers: Peers,
}

impl Page {
    /// Starts what the page needs.
    pub(crate) fn start(core: Handle, hosts: Hosts) -> Self {
        let (live, history) = (Live::start(core.clone()), History::new(core.clone()));
        let (connections, peers) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Peers::new(CONNECTIONS_MAX));
        let (players, reports) = (Players::start(core.clone()), Reports::new(core.clone()));
        let page = Self(Arc::new(Inner { core, hosts, live, history, players, reports, connections, peers }));
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

    /// Answers the requests of a connection, until it ends. One over the limits is dropped.
    pub(crate) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: IpAddr) {
        let Ok(_counted) = Arc::clone(&self.0.connections).try_acquire_owned() else { return };
        let Some(_of_peer) = self.0.peers.connect(peer) else { return };
        let answer = service_fn(|request: http::Request<Incoming>| async move {
            Ok::<_, Infallible>(route::answer(&self.0, peer, &request).await)
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .max_buf_size(BUFFER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(Timed::new(stream, STALLED_MAX)), answer);
        // Whatever ended it: the other side has gone, or broke a rule.
        drop(served.await);
    }
}
