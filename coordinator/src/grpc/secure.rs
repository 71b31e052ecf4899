//! The start of a connection: TLS if this coordinator has an access directory, and the identity of the caller.
//!
//! Handshakes need much processor time, so they run on a separate thread. Afterwards the connection moves to the thread that
//! serves all others. The places for unfinished handshakes are few. When none is left, the oldest handshake of the address
//! with the most makes room. So clients that never finish a handshake do not keep out those that do.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Context as _;
use evoxo_access::{Certificate, Pin as KeyPin};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};

use crate::access::Access;

/// The time limit for a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most unfinished handshakes of one address, and in total.
const PENDING_MAX_OF_ADDRESS: usize = 128;
const PENDING_MAX: usize = 512;
/// How long a refused peer may take to read the reason, and the most bytes that are read from it in that time.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 64 << 10;
/// The first byte of TLS (RFC 8446, section 5.1: a handshake record).
const TLS_FIRST: u8 = 0x16;
/// HTTP/2's empty SETTINGS: the answer to TLS on a port in plain text, from which a client recognises the mistake.
const EMPTY_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Anybody: this coordinator has no access directory, so it asks for no certificate.
    Anybody,
    /// A caller that does not speak TLS, although this coordinator does.
    PlainText,
    /// A caller without a certificate.
    Stranger,
    /// A caller with a certificate of this cluster.
    Known(Certificate),
}

impl Caller {
    /// The certificate of this cluster, if there is one.
    pub(crate) fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Known(certificate) => Some(certificate),
            Self::Anybody | Self::PlainText | Self::Stranger => None,
        }
    }
}

/// An open connection from which nothing has been consumed yet.
pub(crate) struct Stream {
    /// Bytes that were read to look at them.
    peeked: VecDeque<u8>,
    socket: Socket,
    /// The authority at the start of the connection, if it uses TLS.
    pub(crate) authority: Option<KeyPin>,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<Movable>>),
}

impl Stream {
    /// The first bytes, which can still be read afterwards. Returns their number: at least one, or zero at the end.
    pub(crate) async fn peek(&mut self, first: &mut [u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Plain(stream) => stream.peek(first).await,
            Socket::Tls(stream) => {
                let mut more = vec![0; first.len().saturating_sub(self.peeked.len())];
                if !more.is_empty() {
                    let length = stream.read(&mut more).await?;
                    if length == 0 {
                        return Ok(0);
                    }
                    self.peeked.extend(&more[..length]);
                }
                let length = first.len().min(self.peeked.len());
                first.iter_mut().zip(&self.peeked).for_each(|(to, from)| *to = *from);
                Ok(length)
            }
        }
    }
}

/// The thread for handshakes, and their places. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handshakes {
    pub(crate) access: Access,
    /// Gives the TLS configuration for the next handshake.
    config: fn(&Access) -> Arc<ServerConfig>,
    orders: mpsc::UnboundedSender<Order>,
    places: Places,
}

/// A connection whose handshake is to be done.
struct Order {
    stream: std::net::TcpStream,
    config: Arc<ServerConfig>,
    done: oneshot::Sender<TlsStream<Movable>>,
}

impl Handshakes {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread or runtime for it.
    pub(crate) fn start(access: Access, config: fn(&Access) -> Arc<ServerConfig>) -> anyhow::Result<Self> {
        let (orders, mut received) = mpsc::unbounded_channel::<Order>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start a runtime for TLS")?;
        let serve = move || {
            runtime.block_on(async {
                while let Some(order) = received.recv().await {
                    tokio::spawn(shake(order));
                }
            });
        };
        std::thread::Builder::new().name("tls".into()).spawn(serve).context("cannot start a thread for TLS")?;
        Ok(Self { access, config, orders, places: Places::default() })
    }

    /// Does the handshake; `None` if it fails or takes too long.
    async fn shake(&self, stream: TcpStream, from: IpAddr) -> Option<(Stream, Caller)> {
        let (_place, lost) = self.places.take(from);
        let (done, shaken) = oneshot::channel();
        let stream = stream.into_std().ok()?;
        // The pin comes first: if the authority changes now, the connection counts as one of the old authority, and ends.
        let authority = Some(self.access.pin());
        self.orders.send(Order { stream, config: (self.config)(&self.access), done }).ok()?;
        let mut stream = tokio::select! {
            shaken = shaken => shaken.ok()?,
            _ = lost => return None,
        };
        let caller = match stream.get_ref().1.peer_certificates() {
            None => Caller::Stranger,
            // The certificate could be read when it was verified, so it can be read again.
            Some(chain) => Caller::Known(Certificate::read(chain.first()?).ok()?),
        };
        stream.get_mut().0.move_here().ok()?;
        Some((Stream { peeked: VecDeque::new(), socket: Socket::Tls(Box::new(stream)), authority }, caller))
    }
}

/// Opens a connection, with TLS if there is an access directory. `None` if the connection ends here.
pub(crate) async fn open(
    mut stream: TcpStream,
    from: IpAddr,
    handshakes: Option<&Handshakes>,
    within: Duration,
) -> Option<(Stream, Caller)> {
    let mut first = [0];
    let is_tls = timeout(within, stream.peek(&mut first)).await.ok()?.ok()? == 1 && first[0] == TLS_FIRST;
    stream.set_nodelay(true).ok()?;
    match handshakes {
        Some(handshakes) if is_tls => handshakes.shake(stream, from).await,
        None if is_tls => {
            // If the peer is gone, nobody needs the answer.
            let _ = stream.write_all(&EMPTY_SETTINGS).await;
            linger(stream).await;
            None
        }
        // A caller that does not speak TLS gets an error from the services, which every client understands.
        handshakes => {
            let caller = if handshakes.is_some() { Caller::PlainText } else { Caller::Anybody };
            Some((Stream { peeked: VecDeque::new(), socket: Socket::Plain(stream), authority: None }, caller))
        }
    }
}

/// Does a handshake, on the thread for handshakes.
async fn shake(order: Order) {
    let Order { stream, config, mut done } = order;
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let accept = TlsAcceptor::from(config).accept(Movable(Some(stream))).into_fallible();
    let shaken = tokio::select! {
        shaken = timeout(HANDSHAKE_TIMEOUT, accept) => shaken,
        () = done.closed() => return,
    };
    match shaken {
        // If nobody waits any more, the connection is dropped here.
        Ok(Ok(stream)) => drop(done.send(stream)),
        // The peer has been sent the reason. If the socket were closed at once, the system could discard it.
        Ok(Err((_, Movable(Some(stream))))) => linger(stream).await,
        _ => {}
    }
}

/// Ends a connection so that the peer can still read what was sent last.
async fn linger(mut stream: TcpStream) {
    let ended = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // Whether by timeout or not, the connection is closed afterwards.
    let _ = timeout(LINGER_TIMEOUT, ended).await;
}

/// Unfinished handshakes: those of each address, the oldest first. A message to one takes its place away.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<BTreeMap<IpAddr, VecDeque<Pending>>>>);

struct Pending {
    number: Arc<()>,
    lost: oneshot::Sender<()>,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, VecDeque<Pending>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, which is held until dropped. The receiver gets a message if the place is taken away for a newer
    /// handshake.
    fn take(&self, address: IpAddr) -> (Place, oneshot::Receiver<()>) {
        let (lost, receiver) = oneshot::channel();
        let number = Arc::new(());
        let mut places = self.lock();
        let all: usize = places.values().map(VecDeque::len).sum();
        if places.get(&address).is_some_and(|pending| pending.len() >= PENDING_MAX_OF_ADDRESS) {
            end_oldest(places.get_mut(&address));
        } else if all >= PENDING_MAX {
            end_oldest(places.values_mut().max_by_key(|pending| pending.len()));
        }
        places.entry(address).or_default().push_back(Pending { number: Arc::clone(&number), lost });
        (Place { places: self.clone(), address, number }, receiver)
    }
}

fn end_oldest(pending: Option<&mut VecDeque<Pending>>) {
    if let Some(oldest) = pending.and_then(VecDeque::pop_front) {
        // If the receiver is gone, so is the handshake.
        let _ = oldest.lost.send(());
    }
}

/// A place for a handshake, given back on drop.
struct Place {
    places: Places,
    address: IpAddr,
    number: Arc<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        if let Some(pending) = places.get_mut(&self.address) {
            pending.retain(|pending| !Arc::ptr_eq(&pending.number, &self.number));
            if pending.is_empty() {
                places.remove(&self.address);
            }
        }
    }
}

/// A socket that can be moved from the handshake thread to the present one.
struct Movable(Option<TcpStream>);

impl Movable {
    fn move_here(&mut self) -> io::Result<()> {
        let stream = self.0.take().ok_or_else(gone)?.into_std()?;
        self.0 = Some(TcpStream::from_std(stream)?);
        Ok(())
    }

    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        self.get_mut().0.as_mut().map(Pin::new).ok_or_else(gone)
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the connection could not be moved")
}

impl AsyncRead for Movable {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for Movable {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}

/// Evaluates the same expression for either kind of socket.
macro_rules! socket {
    ($self:ident, $stream:ident => $does:expr) => {
        match &mut $self.socket {
            Socket::Plain($stream) => {
                let $stream = Pin::new($stream);
                $does
            }
            Socket::Tls($stream) => {
                let $stream = Pin::new($stream.as_mut());
                $does
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.peeked.is_empty() {
            return socket!(self, stream => stream.poll_read(cx, buffer));
        }
        let length = self.peeked.len().min(buffer.remaining());
        self.peeked.drain(..length).for_each(|byte| buffer.put_slice(&[byte]));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        socket!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        socket!(self, stream => stream.poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.socket {
            Socket::Plain(stream) => stream.is_write_vectored(),
            Socket::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        socket!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        socket!(self, stream => stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_largest_holder_makes_room() {
        let places = Places::default();
        let [greedy, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let honest = places.take(other);
        let mut held: Vec<_> = (0..PENDING_MAX_OF_ADDRESS).map(|_| places.take(greedy)).collect();
        assert!(held.iter_mut().all(|(_, lost)| lost.try_recv().is_err()));
        let another = places.take(greedy);
        assert!(held[0].1.try_recv().is_ok() && held[1].1.try_recv().is_err());
        // Many addresses: those with one place each keep it as long as another address has more.
        let one_each = (0..PENDING_MAX - PENDING_MAX_OF_ADDRESS - 1)
            .map(|number| places.take(IpAddr::from([10, 1, (number >> 8) as u8, number as u8])));
        let mut one_each: Vec<_> = one_each.collect();
        let _last = places.take(IpAddr::from([10, 2, 0, 0]));
        assert!(one_each.iter_mut().all(|(_, lost)| lost.try_recv().is_err()));
        assert!(held[1].1.try_recv().is_ok() && held[2].1.try_recv().is_err());
        drop((honest, held, another, one_each, _last));
        assert!(places.lock().is_empty());
    }
}
