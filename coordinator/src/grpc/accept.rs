//! Who may connect: so many at once, and only those who speak HTTP/2. Anything else that reaches the port is dropped with
//! its connection and touches nothing else.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Connections at once: as many workers as the core takes, and some room for people.
const CONNECTIONS_MAX: usize = 4096 + 256;
/// Open files beside connections, at most: the store's, the runtimes', standard streams.
const FILES: usize = 64;
/// Who connects and says nothing is shown out after so long.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait when the system has no file descriptor for another connection.
const RETRY: Duration = Duration::from_millis(100);
/// What HTTP/2 begins with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that counts until it is closed.
pub(crate) struct Connection {
    stream: TcpStream,
    _counted: OwnedSemaphorePermit,
}

/// How many connections the system has files for: as many as are allowed at once, if this process may ask for that.
fn room() -> usize {
    let wanted = CONNECTIONS_MAX + FILES;
    let allowed = rlimit::increase_nofile_limit(wanted as u64).map_or(wanted, |files| files as usize);
    let room = allowed.saturating_sub(FILES).clamp(1, CONNECTIONS_MAX);
    if room < CONNECTIONS_MAX {
        tracing::warn!(
            "only {room} connections at once, others wait: the system allows {allowed} open files; raise that with \
             `ulimit -Hn {wanted}` or LimitNOFILE={wanted}"
        );
    }
    room
}

/// Accepts connections for as long as somebody takes them.
pub(crate) fn accept(listener: TcpListener) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let room = Arc::new(Semaphore::new(room()));
    tokio::spawn(async move {
        // The semaphore is never closed. While there is no room, new connections wait in the system's queue.
        while let Ok(counted) = Arc::clone(&room).acquire_owned().await {
            tokio::select! {
                () = sender.closed() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(tokio::spawn(admit(stream, counted, sender.clone()))),
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

async fn admit(stream: TcpStream, counted: OwnedSemaphorePermit, sender: mpsc::Sender<io::Result<Connection>>) {
    let spoken = tokio::time::timeout(PREFACE_TIMEOUT, speaks(&stream)).await;
    if spoken == Ok(true) && stream.set_nodelay(true).is_ok() {
        drop(sender.send(Ok(Connection { stream, _counted: counted })).await);
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

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
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
