//! The service for workers. Each stream is a session.

use std::{
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use evoxo_proto::{
    Led, SEEN_HEADER, Seen,
    v1::{FromWorker, ToWorker, from_worker, worker_service_server::WorkerService},
};
use tokio::{sync::oneshot, time::timeout};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

use super::{accept::ConnectionInfo, gate::Rooms};
use crate::{
    core::{Event, SessionId},
    shell::outbox::{Outbox, Unread, outbox},
    shell::{Handle, Room},
};

/// A stream without Hello is closed after so long.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that has sent no message for so long, which exceeds the interval of heartbeats, may be in the middle of a large
/// one.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(3);

/// After this time it is logged again that workers stay away.
const WARNED_AGAIN: Duration = Duration::from_secs(60);

/// See `worker.proto`.
pub(crate) struct Workers {
    pub(crate) core: Handle,
    /// What this coordinator leads; `None` while the store cannot be written.
    led: Option<Led>,
    /// When it was last logged that workers have seen a later epoch.
    warned: Mutex<Option<Instant>>,
}

impl Workers {
    pub(crate) fn new(core: Handle, led: Option<Led>) -> Self {
        Self { core, led, warned: Mutex::default() }
    }

    /// Counts and logs that a worker has seen a later epoch than the one in which this coordinator leads. The worker then takes
    /// it for one that was superseded, and stays away.
    fn look_at(&self, seen: &str, info: Option<&ConnectionInfo>) {
        let Some((led, later)) = self.led.as_ref().and_then(|led| Some((led, Seen::later(seen, led)?))) else { return };
        self.core.meters.kept_away();
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARNED_AGAIN) {
            *warned = Some(Instant::now());
            let from = info.map_or_else(|| "an unknown address".into(), |info| info.address.to_string());
            warn!(
                "workers stay away: one at {from} has seen epoch {later} of this store, and this coordinator leads in epoch {}. \
                 If the store was restored from an older copy, stop this coordinator, run `evoxo-coordinator restored STORE` and \
                 start it again",
                led.epoch
            );
        }
    }
}

/// The messages for a worker. When the session has ended or the worker is gone, this is dropped, which notifies the task that
/// reads the worker's messages.
pub(crate) struct SessionStream {
    unread: Unread,
    _gone: oneshot::Sender<()>,
}

impl Stream for SessionStream {
    type Item = Result<ToWorker, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.unread).poll_next(cx)
    }
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type WorkStream = SessionStream;

    async fn work(&self, request: Request<Streaming<FromWorker>>) -> Result<Response<SessionStream>, Status> {
        let (sender, unread) = outbox();
        let (_gone, gone) = oneshot::channel();
        let core = self.core.clone();
        let rooms = request.extensions().get::<Rooms>().cloned().unwrap_or_default();
        let info = request.extensions().get::<ConnectionInfo>().cloned();
        if let Some(seen) = request.metadata().get(SEEN_HEADER).and_then(|seen| seen.to_str().ok()) {
            self.look_at(seen, info.as_ref());
        }
        let incoming = Incoming { messages: request.into_inner(), rooms, number: 0 };
        tokio::spawn(async move {
            tokio::select! {
                () = serve(core, sender, incoming, info) => {}
                _ = gone => {}
            }
        });
        Ok(Response::new(SessionStream { unread, _gone }))
    }
}

/// A worker's messages, each with the room that it takes.
struct Incoming {
    messages: Streaming<FromWorker>,
    rooms: Rooms,
    /// The number of the last message.
    number: u64,
}

impl Incoming {
    async fn next(&mut self) -> Result<Option<(FromWorker, Room)>, Status> {
        let Some(message) = self.messages.message().await? else { return Ok(None) };
        self.number += 1;
        let permits = self.rooms.take(self.number);
        Ok(Some((message, (!permits.is_empty()).then(|| Box::new(permits) as Box<dyn Send>))))
    }
}

/// Serves a session from Hello to its end.
async fn serve(core: Handle, outbox: Outbox, mut incoming: Incoming, info: Option<ConnectionInfo>) {
    let hello = timeout(HELLO_TIMEOUT, incoming.next()).await;
    let hello = hello
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("a session must begin with Hello, but none was received")));
    let hello = match hello {
        Ok(Some((FromWorker { message: Some(from_worker::Message::Hello(hello)) }, room))) => {
            // From here on the core counts the session.
            drop(room);
            hello
        }
        Ok(Some(_)) => return drop(outbox.send(Err(Status::invalid_argument("a session must begin with Hello")))),
        Ok(None) => return,
        Err(status) => return drop(outbox.send(Err(status))),
    };
    // From here on only the core holds the outbox. When the core drops it, the stream ends.
    let weak = outbox.downgrade();
    let session = core.open(outbox).await;
    let _left = Left { core: core.clone(), session, info: info.clone() };
    let address = info.as_ref().map(|info| info.address.to_string()).unwrap_or_default();
    let holder = info.as_ref().and_then(ConnectionInfo::holder);
    core.tell(Event::Hello { session, address, holder, hello }, None).await;
    let received = || info.as_ref().map_or(0, ConnectionInfo::received);
    loop {
        // The session ends in order before the connection is cut. The worker has its next certificate by then, and its
        // computation continues.
        if info.as_ref().is_some_and(ConnectionInfo::has_expired) {
            core.tell(Event::Expired { session }, None).await;
        }
        let before = received();
        match timeout(MESSAGE_TIMEOUT, incoming.next()).await {
            Ok(Ok(Some((message, room)))) => core.tell(Event::Message { session, message }, room).await,
            Ok(Ok(None)) => return,
            Ok(Err(status)) => {
                // If the worker still reads, it learns why its session ends.
                return drop(weak.upgrade().map(|outbox| outbox.try_send(Err(status))));
            }
            Err(_) if received() > before => core.tell(Event::Heard { session }, None).await,
            Err(_) => {}
        }
    }
}

/// Tells the core that a session has ended, whatever the reason.
struct Left {
    core: Handle,
    session: SessionId,
    info: Option<ConnectionInfo>,
}

impl Drop for Left {
    fn drop(&mut self) {
        let (core, session) = (self.core.clone(), self.session);
        let revoked = self.info.as_ref().is_some_and(ConnectionInfo::is_revoked);
        let event = if revoked { Event::Revoked { session } } else { Event::Left { session } };
        tokio::spawn(async move { core.tell(event, None).await });
    }
}
