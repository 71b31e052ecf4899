//! One connection to the coordinator: a task that speaks gRPC, and channels to and from it.

use std::{error::Error as _, time::Duration};

use evoxo_access::Dialer;
use evoxo_process::{Address, innermost};
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{FromWorker, worker_service_client::WorkerServiceClient},
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, transport::Endpoint};

use crate::core::Event;

/// The time in which a connection must be open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of HTTP/2 pings to a silent coordinator...
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// ... and the time for their reply before the link counts as down.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The HTTP/2 window: bytes that the coordinator may send ahead.
const WINDOW_BYTES: u32 = 8 << 20;
/// The most messages that wait to be written; with more, the coordinator has not read for a long time.
const UNWRITTEN_MAX: usize = 4_096;
/// The most messages that were read and wait to be handled; beyond that, HTTP/2 flow control stops the coordinator.
const UNHANDLED_MAX: usize = 16;

/// The coordinator's endpoint.
pub(crate) fn endpoint(coordinator: &Address) -> Endpoint {
    Endpoint::from(coordinator.uri())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
}

/// A connection, or an attempt at one. Dropping it closes it.
pub(crate) struct Link {
    outgoing: mpsc::Sender<FromWorker>,
    events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Link {
    /// Begins to connect.
    pub(crate) fn connect(endpoint: Endpoint, dialer: Dialer) -> Self {
        let (outgoing, to_write) = mpsc::channel(UNWRITTEN_MAX);
        let (to_handle, events) = mpsc::channel(UNHANDLED_MAX);
        let task = tokio::spawn(async move {
            let end = converse(endpoint, &dialer, to_write, &to_handle).await;
            // The receiver is gone if the link was dropped meanwhile.
            let _ = to_handle.send(end).await;
        });
        Self { outgoing, events, task }
    }

    /// Sends a message. False if the coordinator has not read for so long that the link counts as down.
    pub(crate) fn send(&self, message: FromWorker) -> bool {
        // On a link that is already down the message is lost, as on a link that goes down a moment later.
        !matches!(self.outgoing.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// The next event; `None` after [`Event::LinkDown`] or [`Event::LinkRefused`].
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Closes the stream properly, if the coordinator lets that happen within this time.
    pub(crate) async fn end(mut self, within: Duration) {
        let (closed, _) = mpsc::channel(1);
        self.outgoing = closed;
        let ended = async { while self.events.recv().await.is_some() {} };
        // In time or not, the link is closed afterwards.
        let _ = timeout(within, ended).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One session, from the connection to its loss; the last event says why it was lost.
async fn converse(
    endpoint: Endpoint,
    dialer: &Dialer,
    to_write: mpsc::Receiver<FromWorker>,
    events: &mpsc::Sender<Event>,
) -> Event {
    let channel = match timeout(CONNECT_TIMEOUT, dialer.connect(&endpoint)).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => {
            if let Some(why) = dialer.refusal() {
                return Event::LinkRefused(why);
            }
            return Event::LinkDown(format!("cannot reach {}: {}", endpoint.uri(), innermost(&error)));
        }
        Err(_) => {
            let seconds = CONNECT_TIMEOUT.as_secs();
            return Event::LinkDown(format!("cannot reach {} within {seconds} s", endpoint.uri()));
        }
    };
    // If the receiver is gone, the link was dropped and this task is about to be aborted.
    let _ = events.send(Event::LinkUp).await;
    let mut client = WorkerServiceClient::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut stream = match client.work(ReceiverStream::new(to_write)).await {
        Ok(response) => response.into_inner(),
        Err(status) => return lost(&status, dialer),
    };
    loop {
        match stream.message().await {
            Ok(Some(message)) => drop(events.send(Event::Message(message)).await),
            Ok(None) => return Event::LinkDown("it ended the stream".to_owned()),
            Err(status) => return lost(&status, dialer),
        }
    }
}

/// Interprets a failed call: some failures will be the same however often it is repeated.
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
        _ => Event::LinkDown(why),
    }
}
