//! Limits on incoming calls, applied before the services: who may make them, how many there are at once, the total size of
//! large messages, and the time to receive them.
//!
//! The first five bytes of a gRPC message give its length. A large message first reserves room, from the shares of its sender
//! and its address and from the total, until it has been handled. While it waits, HTTP/2 flow control stops the sender. Small
//! messages are bounded by the number of calls. So are a worker's sessions until their first message; after that the core
//! counts them.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use evoxo_proto::{LEADER_HEADER, MESSAGE_BYTES_MAX, STANDBY_HEADER};
use http_body::Frame;
use tokio::{sync::watch, time::Sleep};
use tonic::{Status, body::Body};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    accept::{CallOnConnection, ConnectionInfo},
    rights::{check, is_stream, may_stand_by},
};
use crate::{limits::peers::Room, limits::places::Place, standby::Asked};

/// Messages up to this many bytes need no reservation...
const SMALL_BYTES: u32 = 64 << 10;
/// ... and the first one of a worker's session, when the worker is not known yet, up to this many.
const FIRST_BYTES: u32 = 4 << 10;
/// A message, and the whole request of a call with a single message, must be received within this time...
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// ... plus the time that its bytes take at this rate, in bytes per second.
const RATE_MIN: u32 = 64 << 10;
/// The message when a call is refused...
const TOO_MANY: &str =
    "too many calls are in progress, from you, from your address or in total: end some and try again";
/// ... or ended.
const MAKES_ROOM: &str = "this call was ended to make room for others: you have most of the calls from your address";
/// The call whose stream of messages has no end: a worker's session.
const SESSION: &str = "/evoxo.v1.WorkerService/Work";

/// The reserved room of a call's messages, in order. The code that handles a message releases its room with [`Rooms::take`].
#[derive(Clone, Default)]
pub(crate) struct Rooms(Arc<Mutex<VecDeque<(u64, Room)>>>);

impl Rooms {
    /// The room of the messages up to this number, counted from 1.
    pub(crate) fn take(&self, number: u64) -> Vec<Room> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rooms.iter().take_while(|(of, _)| *of <= number).count();
        rooms.drain(..count).map(|(_, room)| room).collect()
    }

    fn put(&self, number: u64, room: Room) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((number, room));
    }
}

/// Whether this coordinator answers calls.
#[derive(Clone)]
pub(crate) enum Role {
    /// It leads. The header of its responses names its epoch and cluster, until another coordinator leads, which the sentence
    /// then says. It notes when a standby asks for its health.
    Leader(Option<http::HeaderValue>, watch::Receiver<Option<String>>, Asked),
    /// It does not lead, for this reason. Only its health can be queried.
    Standby(watch::Receiver<String>),
}

impl Role {
    /// The header of responses, and the reason if there are none.
    fn now(&self) -> (Option<http::HeaderValue>, Option<String>) {
        match self {
            Self::Leader(leader, superseded, _) => match superseded.borrow().clone() {
                None => (leader.clone(), None),
                away => (None, away),
            },
            Self::Standby(why) => (None, Some(why.borrow().clone())),
        }
    }
}

/// The calls that a standby answers.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Puts the gate before the services.
#[derive(Clone)]
pub(crate) struct GateLayer(pub(crate) Role);

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, role: self.0.clone() }
    }
}

/// The audit log's name of a call, the same whether the call is admitted or not.
fn verb(call: &str) -> &str {
    match call {
        "Submit" => "submit",
        "Pause" => "paused",
        "Resume" => "resumed",
        "Cancel" => "cancelled",
        "DrainWorkers" => "drained",
        "CordonWorkers" => "cordoned",
        "CreateToken" => "create token",
        "Revoke" => "revoke",
        other => other,
    }
}

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    role: Role,
}

impl<S> Service<http::Request<Body>> for Gate<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        // The clone may not be ready, so this call uses the ready one.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let Some(info) = request.extensions().get::<ConnectionInfo>().cloned() else {
            let refused = Status::internal("a call without a connection: please report this").into_http();
            return Box::pin(async { Ok(refused) });
        };
        if let Err(refused) = check(&info.caller, request.uri().path()) {
            let call = request.uri().path().rsplit('/').next().unwrap_or_default();
            info.audit(verb(call), "", Err(refused.message()));
            let refused = refused.into_http();
            return Box::pin(async { Ok(refused) });
        }
        if let Role::Leader(.., standby) = &self.role
            && request.headers().contains_key(STANDBY_HEADER)
            && may_stand_by(&info.caller, request.uri().path())
        {
            standby.note();
        }
        let (leader, away) = self.role.now();
        if let Some(why) = away.filter(|_| !request.uri().path().starts_with(HEALTH)) {
            let refused = Status::unavailable(why).into_http();
            return Box::pin(async { Ok(refused) });
        }
        let session = request.uri().path() == SESSION;
        let rooms = Rooms::default();
        let places = match () {
            () if session => info.peers.beginnings(),
            () if is_stream(request.uri().path()) => info.peers.streams(),
            () => info.peers.calls(),
        };
        let Some(place) = places.take(info.address, info.owner(), Some(&info.leave)) else {
            let refused = Status::resource_exhausted(TOO_MANY).into_http();
            return Box::pin(async { Ok(refused) });
        };
        let left: Left = Box::pin(place.notice().given());
        let place = match session {
            true => {
                rooms.put(1, Room::Session(place));
                None
            }
            false => Some(place),
        };
        let in_progress = InProgress { _call: info.begin_call(), _place: place };
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(rooms.clone());
        let timer = (!session).then(|| Box::pin(tokio::time::sleep(MESSAGE_TIMEOUT)));
        let (unknown, left) = if session { (Some(left), None) } else { (None, Some(left)) };
        let messages = Messages::default();
        let body = Incoming { body, info, rooms, messages, blocked: None, waiting: None, timer, session, unknown };
        let request = http::Request::from_parts(parts, Body::new(body));
        // A client that gives an order may disconnect before the order is carried out. The order is carried out all the same,
        // and the audit log has it.
        let answered = tokio::spawn(async move {
            let mut response = inner.call(request).await?;
            if let Some(leader) = leader {
                response.headers_mut().insert(LEADER_HEADER, leader);
            }
            Ok(response.map(|body| Body::new(Outgoing { body, left, ended: false, _in_progress: in_progress })))
        });
        Box::pin(async {
            let panicked = |_| Ok(Status::internal("this call panicked: please report this").into_http());
            answered.await.unwrap_or_else(panicked)
        })
    }
}

/// Completes when a call must make room for others.
type Left = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Marks a call as in progress until its response has been sent or dropped.
struct InProgress {
    _call: CallOnConnection,
    _place: Option<Place>,
}

/// The body of a response.
struct Outgoing {
    body: Body,
    /// `None` for a session.
    left: Option<Left>,
    /// The call has made room for others.
    ended: bool,
    _in_progress: InProgress,
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.left.as_mut().is_some_and(|left| left.as_mut().poll(cx).is_ready()) {
            self.ended = true;
            let mut trailers = http::HeaderMap::new();
            // The sentence is valid in a header.
            let added = Status::resource_exhausted(MAKES_ROOM).add_header(&mut trailers);
            return Poll::Ready(Some(added.map(|()| Frame::trailers(trailers))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// A position in a stream of messages, each after its length.
#[derive(Default)]
struct Messages {
    /// The part received so far of the five bytes before a message.
    prefix: Vec<u8>,
    /// Bytes of the current message still to be received.
    remaining: u32,
    /// How many messages have begun.
    begun: u64,
}

impl Messages {
    /// Reads data; returns the number and length of each message that begins in it.
    fn read(&mut self, mut data: &[u8]) -> Vec<(u64, u32)> {
        let mut begun = Vec::new();
        while !data.is_empty() {
            if self.remaining > 0 {
                let of_message = data.len().min(self.remaining as usize);
                self.remaining -= of_message as u32;
                data = &data[of_message..];
                continue;
            }
            let missing = 5 - self.prefix.len();
            let (prefix, rest) = data.split_at(missing.min(data.len()));
            self.prefix.extend_from_slice(prefix);
            data = rest;
            if let [_, length @ ..] = self.prefix.as_slice()
                && let Ok(length) = <[u8; 4]>::try_from(length)
            {
                self.remaining = u32::from_be_bytes(length);
                self.begun += 1;
                begun.push((self.begun, self.remaining));
                self.prefix.clear();
            }
        }
        begun
    }

    fn is_between(&self) -> bool {
        self.remaining == 0 && self.prefix.is_empty()
    }
}

type Waiting = Pin<Box<dyn Future<Output = Option<Room>> + Send>>;

/// A frame, and the numbers and lengths of the messages that begin in it.
type BlockedFrame = (Frame<Bytes>, VecDeque<(u64, u32)>);

/// The body of a request.
struct Incoming {
    body: Body,
    info: ConnectionInfo,
    rooms: Rooms,
    messages: Messages,
    /// The frame that waits for room for its messages.
    blocked: Option<BlockedFrame>,
    waiting: Option<Waiting>,
    /// Runs out when the current message has not been received in time; `None` between the messages of a session.
    timer: Option<Pin<Box<Sleep>>>,
    session: bool,
    /// The notice of a session, until its first message.
    unknown: Option<Left>,
}

impl Incoming {
    /// Waits for room for the messages that begin in the blocked frame, then returns the frame.
    fn poll_blocked(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        while let Some((_, begun)) = &mut self.blocked {
            let Some((number, length)) = begun.front().copied() else { break };
            let small = if self.session && number == 1 { FIRST_BYTES } else { SMALL_BYTES };
            if length > small {
                let info = &self.info;
                let wait = || -> Waiting {
                    let (peers, shares) = (info.peers.clone(), info.shares());
                    Box::pin(async move { peers.room(shares, length).await })
                };
                let room = ready!(self.waiting.get_or_insert_with(wait).as_mut().poll(cx));
                self.waiting = None;
                if let Some(room) = room {
                    self.rooms.put(number, room);
                }
            }
            begun.pop_front();
        }
        Poll::Ready(self.blocked.take().map(|(frame, _)| frame))
    }

    /// Starts the timer within which a message of this length must be received.
    fn set_timer(&mut self, length: u32) {
        let within = MESSAGE_TIMEOUT + Duration::from_secs(u64::from(length / RATE_MIN));
        self.timer = Some(Box::pin(tokio::time::sleep(within)));
    }

    fn take_frame(&mut self, frame: Frame<Bytes>) -> Result<(), Status> {
        self.info.count(frame.data_ref().map_or(0, Bytes::len));
        let begun = frame.data_ref().map(|data| self.messages.read(data)).unwrap_or_default();
        if let Some((_, length)) = begun.iter().find(|(_, length)| *length as usize > MESSAGE_BYTES_MAX) {
            return Err(Status::out_of_range(format!(
                "a message has {length} bytes, but at most {MESSAGE_BYTES_MAX} are allowed"
            )));
        }
        match begun.last() {
            Some((_, length)) if !self.messages.is_between() => self.set_timer(*length),
            _ if self.session && self.messages.is_between() => self.timer = None,
            _ => {}
        }
        if self.messages.begun > 0 {
            self.unknown = None;
        }
        self.blocked = Some((frame, begun.into()));
        Ok(())
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some(timer) = &mut this.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(Status::deadline_exceeded("the request was not received in time"))));
        }
        if this.unknown.as_mut().is_some_and(|left| left.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Some(Err(Status::resource_exhausted(MAKES_ROOM))));
        }
        if this.blocked.is_none() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Err(status) = this.take_frame(frame) {
                        return Poll::Ready(Some(Err(status)));
                    }
                }
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => {
                    this.timer = None;
                    return Poll::Ready(None);
                }
            }
        }
        // The sender cannot shorten the wait for room, but the wait must end too.
        this.poll_blocked(cx).map(|frame| frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.blocked.is_none() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of messages of these lengths, as they are sent.
    fn stream(lengths: &[u32]) -> Vec<u8> {
        let message = |length: &u32| [&[0], &length.to_be_bytes()[..], &vec![7; *length as usize]].concat();
        lengths.iter().flat_map(message).collect()
    }

    proptest! {
        /// However the bytes are divided, every message is counted once, when it begins.
        #[test]
        fn messages_are_counted_however_they_are_split(
            lengths in prop::collection::vec(0..300_u32, 0..20),
            cuts in prop::collection::vec(1..50_usize, 1..200),
        ) {
            let bytes = stream(&lengths);
            let (mut rest, mut messages, mut begun) = (&bytes[..], Messages::default(), Vec::new());
            for cut in cuts.iter().cycle() {
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                begun.extend(messages.read(piece));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let expected: Vec<(u64, u32)> = (1..).zip(lengths).collect();
            prop_assert_eq!(begun, expected);
            prop_assert!(messages.is_between());
        }
    }
}
