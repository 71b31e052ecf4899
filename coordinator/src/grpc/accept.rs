//! Admission of connections. Their number is limited in total, per address and per identity; they use TLS if this coordinator
//! has an access directory. Connections that speak HTTP/2 reach the services. Those that speak HTTP/1.1 get the page, or a
//! sentence that says why there is none. All others are dropped. A connection that has had no calls for a while is closed.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use evoxo_access::{Role, now_s};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::Sleep,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::secure::{Caller, Handshakes, Stream, open};
use crate::{
    access::{Access, Asker, Outcome, Written},
    core::Request as CoreRequest,
    limits::peers::{Peer, Peers},
    limits::places::{Notice, Owner, Place},
    metrics::meters::Meters,
    page::Shown,
    trust::Holder,
};

/// The most connections at once: the core's maximum of workers, and some for people.
const CONNECTIONS_MAX: usize = 4096 + 256;
/// The most open files that are not connections: those of the store and the runtimes, and the standard streams.
const FILES: usize = 64;
/// A connection that sends nothing is closed after so long.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection without calls is closed after so long...
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// ... or after this shorter time, if its address has many connections, or it has no certificate although one is needed.
const IDLE_TIMEOUT_CROWDED: Duration = Duration::from_secs(5);
/// How long a connection outlives its certificate, in seconds. In that time its session ends in order, and the certificate
/// can be renewed.
const PARTING_S: u64 = 10;
/// How long to wait when the system has no file descriptor for another connection.
const RETRY: Duration = Duration::from_millis(100);
/// The first bytes of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many open files a coordinator needs for this many connections.
#[must_use]
pub const fn files_for(connections: usize) -> usize {
    connections + FILES
}

/// How many connections the system's limit on open files allows. That is [`CONNECTIONS_MAX`] if this process can raise the
/// limit. `others` is the number of connections of other listeners.
pub(crate) fn connections_max(others: usize) -> usize {
    let wanted = files_for(CONNECTIONS_MAX + others);
    let allowed = rlimit::increase_nofile_limit(wanted as u64).map_or(wanted, |files| files as usize);
    let most = allowed.saturating_sub(FILES + others).clamp(1, CONNECTIONS_MAX);
    if most < CONNECTIONS_MAX {
        tracing::warn!(
            "only {most} connections are possible at once, and others wait: the system allows {allowed} open files; \
             raise the limit with `ulimit -Hn {wanted}` or LimitNOFILE={wanted}"
        );
    }
    most
}

/// Accepts connections until their receiver is dropped.
pub(crate) fn accept(
    listener: TcpListener,
    connections_max: usize,
    peers: Peers,
    handshakes: Option<Handshakes>,
    shown: Shown,
    meters: Arc<Meters>,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let room = Arc::new(Semaphore::new(connections_max));
    tokio::spawn(async move {
        // The semaphore is never closed. When it is exhausted, new connections wait in the system's queue.
        while let Ok(counted) = Arc::clone(&room).acquire_owned().await {
            tokio::select! {
                () = sender.closed() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        let from = canonical(from);
                        let number = peers.number();
                        let owner = if handshakes.is_some() { Owner::Unknown } else { Owner::Connection(number) };
                        // A connection that exceeds its address's limit is dropped here.
                        let Some(place) = peers.connections().take(from.ip(), owner, None) else { continue };
                        let leave = place.notice().given();
                        let info = (peers.clone(), handshakes.clone(), shown.clone(), Arc::clone(&meters));
                        let admitted = admit(stream, from, number, (counted, place), info, sender.clone());
                        drop(tokio::spawn(async move {
                            tokio::select! {
                                () = admitted => {}
                                () = leave => {}
                            }
                        }));
                    }
                    Err(error) => {
                        tracing::warn!("a connection could not be accepted: {error}");
                        tokio::time::sleep(RETRY).await;
                    }
                },
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// The address of a peer. A socket for IPv6 that also accepts IPv4 shows an IPv4 address as ::ffff:10.0.0.1.
pub(crate) fn canonical(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

async fn admit(
    stream: TcpStream,
    from: SocketAddr,
    number: u64,
    mut counted: (OwnedSemaphorePermit, Place),
    (peers, handshakes, shown, meters): (Peers, Option<Handshakes>, Shown, Arc<Meters>),
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    let opened = open(stream, from.ip(), handshakes.as_ref(), PREFACE_TIMEOUT).await;
    let Some((mut stream, caller)) = opened else { return };
    if let Some(certificate) = caller.certificate()
        && !counted.1.belongs_to(Owner::Identity(certificate.identity.id.clone()))
    {
        return;
    }
    // The protocol is detected inside TLS.
    let Ok(Some(spoken)) = tokio::time::timeout(PREFACE_TIMEOUT, speaks(&mut stream)).await else { return };
    if spoken == Spoken::Http1 {
        match shown {
            Shown::Nothing => {}
            Shown::Away(away) => away.serve(stream, from.ip()).await,
            Shown::Page(page) => {
                if let Some(visit) = page.visit(from.ip()) {
                    page.serve(stream, visit, false).await;
                }
            }
        }
    } else {
        let known = handshakes.as_ref().zip(caller.certificate()).zip(stream.authority);
        let ended = known.map(|((handshakes, certificate), authority)| {
            handshakes.access.connected(certificate, authority, &from.ip().to_string())
        });
        let access = handshakes.map(|handshakes| handshakes.access);
        let info = ConnectionInfo {
            address: from.ip(),
            caller,
            access,
            calls: Arc::default(),
            received: Arc::default(),
            peers,
            number,
            leave: counted.1.notice().clone(),
        };
        let leave = Box::pin(info.leave.given());
        let idle = Box::pin(tokio::time::sleep(IDLE_TIMEOUT_CROWDED));
        let connection =
            Connection { stream, info, idle, asked: Instant::now(), ended, leave, meters, _counted: counted };
        drop(sender.send(Ok(connection)).await);
    }
}

/// The protocol that the other side speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
}

/// Reads the preface; `None` if the protocol is not supported here.
async fn speaks(stream: &mut Stream) -> Option<Spoken> {
    let mut first = [0; PREFACE.len()];
    while let Ok(length @ 1..) = stream.peek(&mut first).await {
        if !PREFACE.starts_with(&first[..length]) {
            // An HTTP/1.1 request starts with the name of a method.
            return first[0].is_ascii_uppercase().then_some(Spoken::Http1);
        }
        if length == first.len() {
            return Some(Spoken::Http2);
        }
        // Bytes that were peeked at stay readable, so peeking again would not wait for new ones.
        tokio::time::sleep(RETRY).await;
    }
    None
}

/// What a call knows about its connection.
#[derive(Clone)]
pub(crate) struct ConnectionInfo {
    /// The address of the peer.
    pub(crate) address: IpAddr,
    /// Who the peer is.
    pub(crate) caller: Caller,
    access: Option<Access>,
    /// Calls in progress.
    calls: Arc<AtomicUsize>,
    /// The number of bytes of the connection's messages, including incomplete ones.
    received: Arc<AtomicU64>,
    pub(crate) peers: Peers,
    number: u64,
    /// The notice that ends the connection when it must make room.
    pub(crate) leave: Notice,
}

impl ConnectionInfo {
    /// Whose places the connection's calls take.
    pub(crate) fn owner(&self) -> Owner {
        match self.caller.certificate() {
            Some(certificate) => Owner::Identity(certificate.identity.id.clone()),
            None => Owner::Connection(self.number),
        }
    }

    /// The number of the identity in its certificate; empty without one.
    pub(crate) fn identity(&self) -> String {
        self.caller.certificate().map(|certificate| certificate.identity.id.to_string()).unwrap_or_default()
    }

    /// The peers whose shares its messages use: its identity, if it has one, and its address.
    pub(crate) fn shares(&self) -> Vec<Peer> {
        let identity = self.caller.certificate().map(|certificate| Peer::Identity(certificate.identity.id.clone()));
        identity.into_iter().chain([Peer::Address(self.address)]).collect()
    }

    /// Whose quota a run counts against: that of its certificate's identity or, without a certificate, of its address.
    pub(crate) fn submitter(&self) -> String {
        match self.caller.certificate() {
            Some(_) => self.identity(),
            None => self.address.to_string(),
        }
    }

    /// The request with the caller's rights: a submitter may change only its own runs.
    pub(crate) fn permitted(&self, request: CoreRequest) -> CoreRequest {
        match self.caller.certificate().map(|certificate| certificate.identity.role) {
            Some(Role::Submitter) => CoreRequest::Own { submitter: self.submitter(), request: Box::new(request) },
            _ => request,
        }
    }

    /// Adds a line to the audit log, if there is one: this was requested, with this outcome.
    pub(crate) fn audit<'a>(&self, what: &str, object: &str, outcome: impl Into<Outcome<'a>>) -> Written {
        self.audit_as(&self.asker(), what, object, outcome.into())
    }

    /// Adds a line about an asker of whom more is known.
    pub(crate) fn audit_as(&self, asker: &Asker, what: &str, object: &str, outcome: Outcome<'_>) -> Written {
        self.access.as_ref().map_or_else(Written::default, |access| access.audit(asker, what, object, outcome))
    }

    /// The caller as the audit log names it.
    pub(crate) fn asker(&self) -> Asker {
        let identity = self.caller.certificate().map(|certificate| &certificate.identity);
        self.access.as_ref().map_or_else(Asker::default, |access| access.asker(identity, self.address.to_string()))
    }

    /// Whether this coordinator knows its workers by certificates.
    pub(crate) fn knows_workers(&self) -> bool {
        self.access.is_some()
    }

    /// The holder of the certificate.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let identity = &self.caller.certificate()?.identity;
        Some(Holder { id: identity.id.to_string().into(), trusted: identity.role == Role::TrustedWorker })
    }

    /// Whether the connection's identity was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        let known = self.access.as_ref().zip(self.caller.certificate());
        known.is_some_and(|(access, certificate)| access.is_revoked(&certificate.identity.id))
    }

    /// Whether the connection's certificate has expired.
    pub(crate) fn has_expired(&self) -> bool {
        self.expired_before(now_s())
    }

    fn expired_before(&self, time_s: u64) -> bool {
        self.caller.certificate().is_some_and(|certificate| certificate.expires_s <= time_s)
    }

    /// Counts bytes of the connection's messages.
    pub(crate) fn count(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// How many bytes of the connection's messages were received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Notes a call on this connection. The call ends when the guard is dropped.
    pub(crate) fn begin_call(&self) -> CallOnConnection {
        self.calls.fetch_add(1, Ordering::Relaxed);
        CallOnConnection(Arc::clone(&self.calls))
    }
}

/// A call in progress.
pub(crate) struct CallOnConnection(Arc<AtomicUsize>);

impl Drop for CallOnConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection, counted until it is closed.
pub(crate) struct Connection {
    stream: Stream,
    info: ConnectionInfo,
    /// When to look for calls next.
    idle: Pin<Box<Sleep>>,
    /// When a call was last seen in progress.
    asked: Instant,
    /// Gets a message when its certificate is revoked.
    ended: Option<oneshot::Receiver<()>>,
    /// Completes when it must make room for another connection.
    leave: Pin<Box<dyn Future<Output = ()> + Send>>,
    meters: Arc<Meters>,
    _counted: (OwnedSemaphorePermit, Place),
}

impl Connection {
    /// Whether its certificate was revoked.
    fn is_revoked(&mut self, cx: &mut Context<'_>) -> bool {
        self.ended.as_mut().is_some_and(|ended| Pin::new(ended).poll(cx) == Poll::Ready(Ok(())))
    }

    /// Whether it has had no call for too long, or its certificate has expired and its calls did not end.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        while self.idle.as_mut().poll(cx).is_ready() {
            if self.info.calls.load(Ordering::Relaxed) > 0 {
                self.asked = Instant::now();
            }
            if self.info.expired_before(now_s().saturating_sub(PARTING_S)) {
                return true;
            }
            let stranger = matches!(self.info.caller, Caller::Stranger | Caller::PlainText);
            let connections = self.info.peers.connections();
            let crowded = stranger || connections.are_crowded(&self.info.address, &self.info.owner());
            if self.asked.elapsed() >= if crowded { IDLE_TIMEOUT_CROWDED } else { IDLE_TIMEOUT } {
                return true;
            }
            self.idle.as_mut().reset(tokio::time::Instant::now() + IDLE_TIMEOUT_CROWDED);
        }
        false
    }
}

impl Connected for Connection {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_revoked(cx) || self.is_idle(cx) || self.leave.as_mut().poll(cx).is_ready() {
            // This looks as if the peer had closed the connection.
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.meters.received((buffer.filled().len() - before) as u64);
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.meters.sent(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.meters.sent(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
