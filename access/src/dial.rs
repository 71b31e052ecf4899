//! Connections of clients to a coordinator, in plain text or with TLS.

use std::{
    error::Error as _,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use evoxo_process::innermost;
use hyper_util::rt::TokioIo;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, pki_types::ServerName},
};
use tonic::{
    Status,
    transport::{Channel, Endpoint, Error, Uri},
};
use tower_service::Service;

use crate::{
    certificate::{Pin as KeyPin, SERVER_NAME},
    file::AccessFile,
    now_s,
    tls::{self, Refusal},
};

/// How many bytes may wait in the system to be sent, in addition to those in flight. On a slow connection, answers to pings
/// wait behind them.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 << 10;

/// How a client connects. Clones share the certificate and what is known of its refusal.
#[derive(Clone, Debug, Default)]
pub struct Dialer(Option<Connector>);

impl Dialer {
    /// Connects in plain text.
    #[must_use]
    pub fn plain() -> Self {
        Self(None)
    }

    /// Connects with the certificate of an access file.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn with(file: &AccessFile) -> anyhow::Result<Self> {
        let connector = Connector::new(tls::client(file)?);
        connector.good_until_s.store(good_until_s(file), Ordering::Relaxed);
        Ok(Self(Some(connector)))
    }

    /// Connects without a certificate, to a coordinator identified by the hash of its authority.
    pub(crate) fn newcomer(pin: KeyPin) -> anyhow::Result<Self> {
        Ok(Self(Some(Connector::new(tls::newcomer(pin)?))))
    }

    /// Uses a renewed certificate for connections from now on.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn replace(&self, file: &AccessFile) -> anyhow::Result<()> {
        let config = Arc::new(tls::client(file)?);
        if let Self(Some(connector)) = self {
            *connector.config.write().unwrap_or_else(PoisonError::into_inner) = config;
            connector.good_until_s.store(good_until_s(file), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Connects. The innermost source of an error is a sentence.
    ///
    /// # Errors
    /// If the connection fails. A refusal of the certificate does not appear here, but at the first call.
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, Error> {
        match &self.0 {
            None => endpoint.connect().await,
            Some(connector) => endpoint.connect_with_connector(connector.clone()).await,
        }
    }

    /// A dialer with the same certificate, for an attempt made in parallel with others.
    #[must_use]
    pub fn attempt(&self) -> Self {
        Self(self.0.as_ref().map(|connector| Connector { failed: Arc::default(), ..connector.clone() }))
    }

    /// Connects when there is something to send, and reconnects whenever the connection was lost.
    #[must_use]
    pub fn connect_lazy(&self, endpoint: &Endpoint) -> Channel {
        match &self.0 {
            None => endpoint.connect_lazy(),
            Some(connector) => endpoint.connect_with_connector_lazy(connector.clone()),
        }
    }

    /// Why the coordinator refused the certificate in the last attempt, if it did. Retrying is then of no use.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match self.failure()? {
            // If only the coordinator's clock says that the certificate has expired, the refusal will pass.
            Refusal::Expired(_) if !self.has_expired() => None,
            Refusal::Final(sentence) | Refusal::Revoked(sentence) | Refusal::Expired(sentence) => Some(sentence),
            Refusal::Clock(_) | Refusal::Other(_) => None,
        }
    }

    /// Whether, by the local clock, the certificate can no longer even be renewed.
    fn has_expired(&self) -> bool {
        let until_s = |connector: &Connector| connector.good_until_s.load(Ordering::Relaxed);
        self.0.as_ref().is_some_and(|connector| until_s(connector) <= now_s())
    }

    /// What is wrong if the first call of a connection was not answered by a coordinator, as the end of a sentence that
    /// starts with the address. `None` if a coordinator answered, or if TLS failed, which has its own sentence.
    #[must_use]
    pub fn stranger(&self, status: &Status) -> Option<String> {
        let why = match status.source() {
            Some(_) if self.failure().is_some() => return None,
            Some(source) => innermost(source),
            // How tonic describes an answer that is plain HTTP.
            None if status.message().starts_with("grpc-status header missing") => status.message().to_owned(),
            None => return None,
        };
        Some(format!(
            "does not answer like a coordinator ({why}): check the address, unless a coordinator is starting or stopping \
             there, or accepts no more connections from this host"
        ))
    }

    /// Whether the certificate was refused because it was revoked. Then every other coordinator would refuse it too.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        matches!(self.failure(), Some(Refusal::Revoked(_)))
    }

    /// Records how TLS failed.
    #[cfg(test)]
    pub(crate) fn fail(&self, refusal: Refusal) {
        if let Self(Some(connector)) = self {
            *connector.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        }
    }

    /// How TLS failed in the last attempt, if it did. TLS can fail only if something answers at the address.
    #[must_use]
    pub fn failure(&self) -> Option<Refusal> {
        self.0.as_ref()?.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Opens connections with TLS.
#[derive(Clone, Debug)]
struct Connector {
    config: Arc<RwLock<Arc<ClientConfig>>>,
    /// Until when the certificate is valid or can be renewed, in seconds since 1970.
    good_until_s: Arc<AtomicU64>,
    failed: Arc<Mutex<Option<Refusal>>>,
}

/// Until when a certificate is valid or can be renewed, in seconds since 1970.
fn good_until_s(file: &AccessFile) -> u64 {
    file.certificate().map_or(0, |facts| facts.renewable_until_s())
}

impl Connector {
    fn new(config: ClientConfig) -> Self {
        Self { config: Arc::new(RwLock::new(Arc::new(config))), good_until_s: Arc::default(), failed: Arc::default() }
    }

    /// Replaces an error by a sentence and remembers it. During the handshake the other side is not known yet, and anyone in
    /// between could claim that a certificate is refused. Such a claim is believed only after the handshake.
    fn explain(&self, error: io::Error, handshake: bool) -> io::Error {
        let refusal = match Refusal::of(&error) {
            None => return error,
            Some(Refusal::Final(why) | Refusal::Revoked(why) | Refusal::Expired(why)) if handshake => Refusal::Other(
                format!("the peer ended the connection before it had proved its identity, and said: {why}"),
            ),
            Some(refusal) => refusal,
        };
        let explained = io::Error::new(error.kind(), refusal.sentence());
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        explained
    }

    async fn open(self, uri: Uri) -> io::Result<TokioIo<Watched>> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
        stream.set_nodelay(true)?;
        #[cfg(target_os = "linux")]
        SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES)?;
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        let name = ServerName::try_from(SERVER_NAME).expect("a name of letters");
        let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset if Refusal::of(&error).is_none() => {
                io::Error::new(error.kind(), "the connection was closed during the TLS handshake")
            }
            _ => self.explain(error, true),
        })?;
        Ok(TokioIo::new(Watched { stream, connector: self }))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Watched>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().open(uri))
    }
}

/// A stream whose errors are sentences. In TLS 1.3, a refused certificate shows only when the client first reads.
struct Watched {
    stream: TlsStream<TcpStream>,
    connector: Connector,
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        polled.map_err(|error| self.connector.explain(error, false))
    }
}

impl AsyncWrite for Watched {
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
