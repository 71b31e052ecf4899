//! One connection to the coordinator: a task that speaks gRPC, and channels to and from it.

use std::{error::Error as _, time::Duration};

use evoxo_process::{Address, innermost};
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{FromWorker, worker_service_client::WorkerServiceClient},
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, transport::Endpoint};

use crate::core::Event;

/// A connection that does not stand after so long has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often HTTP/2 asks a silent coordinator whether it is there...
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// ... and how long it may take to answer before the link is down.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// What may be on its way from the coordinator, in bytes.
const WINDOW_BYTES: u32 = 8 << 20;
/// Messages that wait to be written; more than that, and the coordinator has not read for a long time.
const UNWRITTEN_MAX: usize = 4_096;
/// Messages that were read and wait to be handled; beyond that, HTTP/2 holds the coordinator back.
const UNHANDLED_MAX: usize = 16;

/// How to reach the coordinator.
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

/// A connection, or an attempt at one. It is cut when dropped.
pub(crate) struct Link {
    said: mpsc::Sender<FromWorker>,
    heard: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Link {
    /// Begins to connect.
    pub(crate) fn connect(endpoint: Endpoint) -> Self {
        let (said, to_write) = mpsc::channel(UNWRITTEN_MAX);
        let (to_handle, heard) = mpsc::channel(UNHANDLED_MAX);
        let task = tokio::spawn(async move {
            let end = converse(endpoint, to_write, &to_handle).await;
            // Nobody hears it if the link was dropped meanwhile.
            let _ = to_handle.send(end).await;
        });
        Self { said, heard, task }
    }

    /// Says something. False if the coordinator has not read for so long that the link is as good as down.
    pub(crate) fn say(&self, message: FromWorker) -> bool {
        // On a link that is down already the message is lost, as it is on a link that goes down a moment later.
        !matches!(self.said.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// What happens next; `None` after [`Event::LinkDown`] or [`Event::LinkRefused`].
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.heard.recv().await
    }

    /// Ends the stream properly, if the coordinator lets that happen `within` so long.
    pub(crate) async fn end(mut self, within: Duration) {
        let (closed, _) = mpsc::channel(1);
        self.said = closed;
        let ended = async { while self.heard.recv().await.is_some() {} };
        // Whether it was in time or not, the link is gone afterwards.
        let _ = timeout(within, ended).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One session, from the connection to its loss; the last event says why it was lost.
async fn converse(endpoint: Endpoint, to_write: mpsc::Receiver<FromWorker>, heard: &mpsc::Sender<Event>) -> Event {
    let channel = match timeout(CONNECT_TIMEOUT, endpoint.connect()).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => {
            return Event::LinkDown(format!("cannot reach {}: {}", endpoint.uri(), innermost(&error)));
        }
        Err(_) => {
            let seconds = CONNECT_TIMEOUT.as_secs();
            return Event::LinkDown(format!("cannot reach {} within {seconds} s", endpoint.uri()));
        }
    };
    // If nobody hears, the link was dropped and this task is about to be cut.
    let _ = heard.send(Event::LinkUp).await;
    let mut client = WorkerServiceClient::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut stream = match client.work(ReceiverStream::new(to_write)).await {
        Ok(response) => response.into_inner(),
        Err(status) => return lost(&status),
    };
    loop {
        match stream.message().await {
            Ok(Some(message)) => drop(heard.send(Event::Message(message)).await),
            Ok(None) => return Event::LinkDown("it ended the stream".to_owned()),
            Err(status) => return lost(&status),
        }
    }
}

/// What a failed call means: some answers will be the same however often one asks.
fn lost(status: &Status) -> Event {
    let why = match status.source() {
        Some(source) => innermost(source),
        None => format!("{} ({:?})", status.message().escape_debug(), status.code()),
    };
    match status.code() {
        Code::Unimplemented => Event::LinkRefused(format!("no coordinator of evoxo answers there: {why}")),
        Code::InvalidArgument | Code::OutOfRange | Code::PermissionDenied | Code::Unauthenticated => {
            Event::LinkRefused(why)
        }
        _ => Event::LinkDown(why),
    }
}
