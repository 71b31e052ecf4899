//! Who may connect: a number at once, of all and of each address, and only those who speak HTTP/2. Anything else that reaches the
//! port is dropped with its connection and touches nothing else. A connection on which nothing is asked for a while ends.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Sleep,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::peers::{Counted, Peers};

/// Connections at once: as many workers as the core takes, and some room for people.
const CONNECTIONS_MAX: usize = 4096 + 256;
/// Open files beside connections, at most: the store's, the runtimes', standard streams.
const FILES: usize = 64;
/// Who connects and says nothing is shown out after so long.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection without a call ends after so long...
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// ... and after so long if its address has many.
const IDLE_TIMEOUT_CROWDED: Duration = Duration::from_secs(5);
/// How long to wait when the system has no file descriptor for another connection.
const RETRY: Duration = Duration::from_millis(100);
/// What HTTP/2 begins with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many connections the system has files for: as many as are allowed at once, if this process may ask for that.
pub(crate) fn connections_max() -> usize {
    let wanted = CONNECTIONS_MAX + FILES;
    let allowed = rlimit::increase_nofile_limit(wanted as u64).map_or(wanted, |files| files as usize);
    let most = allowed.saturating_sub(FILES).clamp(1, CONNECTIONS_MAX);
    if most < CONNECTIONS_MAX {
        tracing::warn!(
            "only {most} connections at once, others wait: the system allows {allowed} open files; raise that with \
             `ulimit -Hn {wanted}` or LimitNOFILE={wanted}"
        );
    }
    most
}

/// Accepts connections for as long as somebody takes them.
pub(crate) fn accept(
    listener: TcpListener,
    connections_max: usize,
    peers: Peers,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let room = Arc::new(Semaphore::new(connections_max));
    tokio::spawn(async move {
        // The semaphore is never closed. While there is no room, new connections wait in the system's queue.
        while let Ok(counted) = Arc::clone(&room).acquire_owned().await {
            tokio::select! {
                () = sender.closed() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        // One too many of an address is dropped here.
                        let Some(of_peer) = peers.connect(from.ip()) else { continue };
                        let counted = (counted, of_peer);
                        drop(tokio::spawn(admit(stream, from, counted, peers.clone(), sender.clone())));
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

async fn admit(
    stream: TcpStream,
    from: SocketAddr,
    counted: (OwnedSemaphorePermit, Counted),
    peers: Peers,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    let spoken = tokio::time::timeout(PREFACE_TIMEOUT, speaks(&stream)).await;
    if spoken == Ok(true) && stream.set_nodelay(true).is_ok() {
        let info = ConnectionInfo { address: from.ip(), calls: Arc::default(), peers };
        let idle = Box::pin(tokio::time::sleep(IDLE_TIMEOUT_CROWDED));
        drop(sender.send(Ok(Connection { stream, info, idle, asked: Instant::now(), _counted: counted })).await);
    }
}

/// Whether the whole preface comes.
async fn speaks(stream: &TcpStream) -> bool {
    let mut first = [0; PREFACE.len()];
    while let Ok(length @ 1..) = stream.peek(&mut first).await {
        if !PREFACE.starts_with(&first[..length]) {
            return false;
        }
        if length == first.len() {
            return true;
        }
        // What is there already is there at once again.
        tokio::time::sleep(RETRY).await;
    }
    false
}

/// What calls know of their connection.
#[derive(Clone)]
pub(crate) struct ConnectionInfo {
    /// Where it comes from.
    pub(crate) address: IpAddr,
    /// Calls that are going on.
    calls: Arc<AtomicUsize>,
    pub(crate) peers: Peers,
}

impl ConnectionInfo {
    /// A call begins on this connection; it ends when the guard is dropped.
    pub(crate) fn begin_call(&self) -> CallOnConnection {
        self.calls.fetch_add(1, Ordering::Relaxed);
        CallOnConnection(Arc::clone(&self.calls))
    }
}

/// A call that is going on.
pub(crate) struct CallOnConnection(Arc<AtomicUsize>);

impl Drop for CallOnConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that counts until it is closed.
pub(crate) struct Connection {
    stream: TcpStream,
    info: ConnectionInfo,
    /// When it is looked at next whether anything is asked.
    idle: Pin<Box<Sleep>>,
    /// When something was asked last, as far as that was looked at.
    asked: Instant,
    _counted: (OwnedSemaphorePermit, Counted),
}

impl Connection {
    /// Whether nothing was asked for too long.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        while self.idle.as_mut().poll(cx).is_ready() {
            if self.info.calls.load(Ordering::Relaxed) > 0 {
                self.asked = Instant::now();
            }
            let crowded = self.info.peers.has_many_connections(self.info.address);
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
        if self.is_idle(cx) {
            // As if the peer had closed it.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
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
