//! One connection to the leading coordinator: a task that speaks gRPC, and channels to and from it.

use std::{
    error::Error as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use evoxo_access::Dialer;
use evoxo_process::{Address, Addresses, innermost};
use evoxo_proto::{
    LEADER_HEADER, Led, MESSAGE_BYTES_MAX, SEEN_HEADER, Seen,
    v1::{FromWorker, ToWorker, worker_service_client::WorkerServiceClient},
};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Request, Status, Streaming,
    transport::{Endpoint, Uri},
};

use crate::core::Event;

/// The time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How much longer the other addresses may take once one address has answered that it does not lead.
const OTHERS_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval of HTTP/2 pings to a silent coordinator.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The time limit for the reply to a ping. After that, the link counts as down. A coordinator waits for a worker at most as
/// long, so no shorter cut of the network ends a session.
const PING_TIMEOUT: Duration = Duration::from_secs(60);
/// The same if there are several coordinators: another one may lead by now. TCP sends again 13 s after the beginning of a cut.
const PING_TIMEOUT_OF_SEVERAL: Duration = Duration::from_secs(15);
/// The HTTP/2 window: how many bytes the coordinator may send ahead.
const WINDOW_BYTES: u32 = 8 << 20;
/// The maximum number of messages that wait to be written. If there are more, the coordinator has not read for a long time.
const UNWRITTEN_MAX: usize = 4_096;
/// The maximum number of messages that were taken from the queue and are not sent yet.
const UNSENT_MAX: usize = 1;
/// The maximum number of messages that were read and wait to be handled. Beyond that, HTTP/2 flow control stops the
/// coordinator.
const UNHANDLED_MAX: usize = 16;

/// The endpoint of a coordinator, which must reply to a ping within this time.
fn endpoint(coordinator: &Address, ping_timeout: Duration) -> Endpoint {
    Endpoint::from(coordinator.uri())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(ping_timeout)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
}

/// How to reach the leading coordinator. Clones share what is known of its epoch.
#[derive(Clone)]
pub(crate) struct Dial {
    endpoints: Arc<[Endpoint]>,
    dialer: Dialer,
    seen: Arc<Mutex<Seen>>,
}

impl Dial {
    /// Prepares connections to these addresses.
    pub(crate) fn new(coordinators: &Addresses, dialer: Dialer) -> Self {
        let ping_timeout = if coordinators.all().len() > 1 { PING_TIMEOUT_OF_SEVERAL } else { PING_TIMEOUT };
        let endpoints = coordinators.all().iter().map(|it| endpoint(it, ping_timeout)).collect();
        Self { endpoints, dialer, seen: Arc::default() }
    }

    /// The value of [`SEEN_HEADER`].
    fn seen(&self) -> String {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).header()
    }

    /// Whether the coordinator of this session may be used, judged by the epoch in its response.
    fn accepts(&self, session: &Session) -> bool {
        let led = session.led.as_ref();
        led.is_none_or(|led| self.seen.lock().unwrap_or_else(PoisonError::into_inner).accepts(led))
    }

    /// Connects to all coordinators at once, and takes the first one that leads. If none does, the result says why.
    async fn open(&self) -> Result<Session, Event> {
        let mut attempts = JoinSet::new();
        for endpoint in self.endpoints.iter().cloned() {
            let dialer = self.dialer.attempt();
            let seen = self.seen();
            attempts.spawn(async move { (open(endpoint, &dialer, &seen).await, dialer.is_revoked()) });
        }
        let (mut down, mut refused, mut is_away) = (Vec::new(), Vec::new(), false);
        // A host that is down does not answer at all. Once another address has answered, wait only a short time for it.
        let mut wait = Duration::MAX;
        while let Ok(Some(attempt)) = timeout(wait, attempts.join_next()).await {
            wait = OTHERS_TIMEOUT;
            match attempt {
                Ok((Ok(session), _)) if self.accepts(&session) => return Ok(session),
                Ok((Ok(session), _)) => down.push(format!(
                    "{} no longer leads, because this worker has seen a later epoch of its store (if the store was restored \
                     from an older copy, its operator has to run `evoxo-coordinator restored`)",
                    session.uri
                )),
                // No other coordinator would admit this worker either, not even one that is away now.
                Ok((Err(Event::LinkRefused(why)), true)) => return Err(Event::LinkRefused(why)),
                Ok((Err(Event::LinkRefused(why)), false)) => refused.push(why),
                Ok((Err(Event::LinkDown(why)), _)) => down.push(why),
                Ok((Err(Event::LinkAway(why)), _)) => {
                    is_away = true;
                    down.push(why);
                }
                Ok((Err(_), _)) | Err(_) => down.push("the attempt to connect ended early".into()),
            }
        }
        down.extend((!attempts.is_empty()).then(|| "another address does not answer".to_owned()));
        // An address that refuses may belong to a stranger while its coordinator is away.
        Err(match down.is_empty() {
            true => Event::LinkRefused(refused.join("; ")),
            false if is_away => Event::LinkAway([down, refused].concat().join("; ")),
            false => Event::LinkDown([down, refused].concat().join("; ")),
        })
    }
}

/// A stream that a coordinator has accepted.
struct Session {
    uri: Uri,
    /// The epoch that the coordinator reports; `None` if it reports none.
    led: Option<Led>,
    outgoing: mpsc::Sender<FromWorker>,
    incoming: Streaming<ToWorker>,
}

/// A connection, or an attempt at one. Dropping it closes it.
pub(crate) struct Link {
    outgoing: mpsc::Sender<FromWorker>,
    events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Link {
    /// Starts to connect.
    pub(crate) fn connect(dial: Dial) -> Self {
        let (outgoing, to_write) = mpsc::channel(UNWRITTEN_MAX);
        let (to_handle, events) = mpsc::channel(UNHANDLED_MAX);
        let task = tokio::spawn(async move {
            let end = converse(&dial, to_write, &to_handle).await;
            // The receiver is gone if the link was dropped in the meantime.
            let _ = to_handle.send(end).await;
        });
        Self { outgoing, events, task }
    }

    /// Sends a message. Returns false if the coordinator has not read for so long that the link counts as down.
    pub(crate) fn send(&self, message: FromWorker) -> bool {
        // If the link is already down, the message is lost, as it would be if the link went down a moment later.
        !matches!(self.outgoing.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// The next event; `None` after [`Event::LinkDown`], [`Event::LinkAway`] or [`Event::LinkRefused`].
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Closes the stream properly, if the coordinator allows that within this time.
    pub(crate) async fn end(mut self, within: Duration) {
        let (closed, _) = mpsc::channel(1);
        self.outgoing = closed;
        let ended = async { while self.events.recv().await.is_some() {} };
        // The link is closed afterwards, whether the stream ended in time or not.
        let _ = timeout(within, ended).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One session, from the connection to its loss. The last event says why the session was lost.
async fn converse(dial: &Dial, mut to_write: mpsc::Receiver<FromWorker>, events: &mpsc::Sender<Event>) -> Event {
    let Session { outgoing, mut incoming, .. } = match dial.open().await {
        Ok(session) => session,
        Err(end) => return end,
    };
    // If the receiver is gone, the link was dropped and this task is about to be aborted.
    let _ = events.send(Event::LinkUp).await;
    let write = async move {
        while let Some(message) = to_write.recv().await {
            if outgoing.send(message).await.is_err() {
                break;
            }
        }
        // The worker has ended its side of the stream. The coordinator may still have something to send.
        drop(outgoing);
        std::future::pending::<Event>().await
    };
    let read = async {
        loop {
            match incoming.message().await {
                Ok(Some(message)) => drop(events.send(Event::Message(message)).await),
                Ok(None) => return Event::LinkDown("it ended the stream".to_owned()),
                Err(status) => return lost(&status, &dial.dialer),
            }
        }
    };
    tokio::select! {
        end = read => end,
        end = write => end,
    }
}

/// Opens a stream, with this value of [`SEEN_HEADER`]. A standby does not accept it.
async fn open(endpoint: Endpoint, dialer: &Dialer, seen: &str) -> Result<Session, Event> {
    let uri = endpoint.uri().clone();
    // The scheme does not matter, because the dialer handles TLS.
    let address = uri.authority().map(ToString::to_string).unwrap_or_default();
    let in_time = async {
        let channel = match dialer.connect(&endpoint).await {
            Ok(channel) => channel,
            Err(error) => {
                return Err(match dialer.refusal() {
                    Some(why) => Event::LinkRefused(why),
                    None => Event::LinkDown(format!("cannot reach {address}: {}", innermost(&error))),
                });
            }
        };
        let (outgoing, to_send) = mpsc::channel(UNSENT_MAX);
        let mut client = WorkerServiceClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let mut request = Request::new(ReceiverStream::new(to_send));
        if let Ok(seen) = seen.parse() {
            request.metadata_mut().insert(SEEN_HEADER, seen);
        }
        let response = client.work(request).await;
        let response = response.map_err(|status| match (lost(&status, dialer), dialer.stranger(&status)) {
            (Event::LinkDown(_) | Event::LinkAway(_), Some(why)) => Event::LinkDown(format!("{address} {why}")),
            (end, _) => end,
        })?;
        let led = response.metadata().get(LEADER_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Session { uri: uri.clone(), led, outgoing, incoming: response.into_inner() })
    };
    timeout(CONNECT_TIMEOUT, in_time).await.unwrap_or_else(|_| {
        let seconds = CONNECT_TIMEOUT.as_secs();
        Err(Event::LinkDown(format!("cannot reach {address} within {seconds} s")))
    })
}

/// Interprets a failed call. Some failures would be the same however often the call is repeated.
fn lost(status: &Status, dialer: &Dialer) -> Event {
    if let Some(why) = dialer.refusal() {
        return Event::LinkRefused(why);
    }
    let why = match status.source() {
        Some(source) => innermost(source),
        None => format!("{} ({:?})", status.message().escape_debug(), status.code()),
    };
    match status.code() {
        Code::Unimplemented => Event::LinkRefused(format!("there is no evoxo coordinator at this address: {why}")),
        Code::InvalidArgument | Code::OutOfRange | Code::PermissionDenied | Code::Unauthenticated => {
            Event::LinkRefused(why)
        }
        // A coordinator answers this while it starts, waits as a standby, or has just been superseded.
        Code::Unavailable if status.source().is_none() => Event::LinkAway(why),
        _ => Event::LinkDown(why),
    }
}
