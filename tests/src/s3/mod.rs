//! A small S3 in this process, with one bucket: create if absent, read, remove, list in pages. It misbehaves as asked: it loses
//! answers, conflicts with itself, refuses, is slow, writes late, or lets several create one name. It is no model of
//! AWS's signatures: whoever has the right key is let in.

mod objects;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use evoxo_common::rng::{Stream, below};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    header,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use objects::{Created, Objects, Query, decoded};

/// The bucket's name.
pub const BUCKET: &str = "evoxo-test";
/// The only key that is known.
const KEY: &str = "AKEXAMPLE";
/// What a client has when it gives an answer up.
const CLIENT_TIMEOUT: &str = "1s";
/// When an answer comes that is too late for it.
const TOO_LATE: Duration = Duration::from_secs(3);
/// Requests for one name that go wrong in a row in a storm: fewer than a client's attempts.
const STORM_IN_A_ROW: u32 = 2;

/// How a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is done, and the connection ends without an answer.
    Lost,
    /// It is done, and the answer comes when nobody waits for it any more.
    Slow,
    /// It is done when nobody waits for the answer any more.
    Late,
    /// 503, and nothing is done.
    Unavailable,
    /// 409 for a creation, and nothing is done.
    Conflict,
}

/// How every request goes wrong for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 500.
    Error,
    /// 503.
    Unavailable,
    /// 403, to whoever has the right key.
    Forbidden,
    /// It never answers.
    Hang,
    /// It is done, and the answer ends in its middle.
    Truncate,
    /// The connection ends with the request.
    Reset,
    /// One of these, by chance.
    Mix,
}

/// What a mix has.
const MIX: [Fault; 6] =
    [Fault::Error, Fault::Unavailable, Fault::Forbidden, Fault::Hang, Fault::Truncate, Fault::Reset];

/// What a storm has. What comes late could come when a test is over.
const STORM: [Trouble; 4] = [Trouble::Lost, Trouble::Slow, Trouble::Unavailable, Trouble::Conflict];

#[derive(Default)]
struct State {
    objects: Objects,
    /// For the next creations.
    script: VecDeque<Trouble>,
    /// Of a hundred requests, how many go wrong.
    storm: u64,
    /// How many did so in a row, by request.
    in_a_row: BTreeMap<String, u32>,
    requests: u64,
    troubles: u64,
    /// It is not there at all.
    outage: bool,
    /// Every request goes wrong in this way.
    fault: Option<Fault>,
    /// It looks whether a name is there, and writes it later.
    looks_first: bool,
}

/// A running server; it ends with the process.
pub struct S3 {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Its clients are not told how long to wait.
    patient: bool,
}

fn held(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl S3 {
    /// One with an empty bucket, on loopback.
    ///
    /// # Panics
    /// If the system has no port or no thread for it.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket for a runtime");
        let address = listener.local_addr().expect("an address");
        let served = Arc::clone(&state);
        // A test may have a runtime of its own, which could not wait for this one.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { serve(TcpListener::from_std(listener).expect("a socket"), served).await });
        });
        Self { address, state, patient: false }
    }

    /// The same with the time for an answer that clients have without being told.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same server, at the near end of a line to it.
    #[must_use]
    pub fn through(&self, line: SocketAddr) -> Self {
        Self { address: line, state: Arc::clone(&self.state), patient: self.patient }
    }

    /// The variables with which a client finds it.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.address);
        let variables = [
            ("AWS_ENDPOINT", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", "a secret that nobody says"),
            ("AWS_TIMEOUT", if self.patient { "" } else { CLIENT_TIMEOUT }),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// The next creations go wrong in these ways, one after the other.
    pub fn next_creations(&self, troubles: &[Trouble]) {
        held(&self.state).script.extend(troubles);
    }

    /// From now on this share of requests, in percent, goes wrong in some way.
    pub fn storm(&self, percent: u64) {
        held(&self.state).storm = percent;
    }

    /// Whether it is gone: every request is refused.
    pub fn outage(&self, gone: bool) {
        held(&self.state).outage = gone;
    }

    /// From now on every request goes wrong in this way, or none.
    pub fn fault(&self, fault: Option<Fault>) {
        held(&self.state).fault = fault;
    }

    /// From now on it looks whether a name is there, and then writes: several win.
    pub fn look_first(&self) {
        held(&self.state).looks_first = true;
    }

    /// The names of all objects.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        held(&self.state).objects.names()
    }

    /// Requests that have come, and of them those that went wrong.
    #[must_use]
    pub fn counted(&self) -> (u64, u64) {
        let state = held(&self.state);
        (state.requests, state.troubles)
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let state = Arc::clone(&state);
                async move {
                    let came = Came::from(request).await?;
                    // It is done even if the client goes away.
                    let answered = tokio::spawn(answer(state, came)).await;
                    answered.map_err(io::Error::other)?.ok_or_else(|| io::Error::other("the answer is lost"))
                }
            });
            // The client has ended it, or its answer was to be lost.
            drop(http1::Builder::new().serve_connection(TokioIo::new(socket), service).await);
        });
    }
}

/// A request that was read.
struct Came {
    method: Method,
    /// The name of an object; empty for the bucket.
    name: String,
    query: Query,
    only_if_absent: bool,
    known: bool,
    body: Bytes,
}

impl Came {
    async fn from(request: Request<Incoming>) -> io::Result<Self> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let value =
            |name: header::HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let signed = format!("AWS4-HMAC-SHA256 Credential={KEY}/");
        let path = decoded(head.uri.path());
        let in_bucket = path.strip_prefix('/').and_then(|path| path.strip_prefix(BUCKET));
        Ok(Self {
            name: in_bucket.unwrap_or_default().trim_start_matches('/').to_owned(),
            query: Query::of(head.uri.query().unwrap_or_default()),
            only_if_absent: value(header::IF_NONE_MATCH) == "*",
            known: in_bucket.is_some() && value(header::AUTHORIZATION).starts_with(&signed),
            method: head.method,
            body,
        })
    }
}

type Answer = Response<BoxBody<Bytes, io::Error>>;

/// None: the connection ends without an answer.
async fn answer(state: Arc<Mutex<State>>, came: Came) -> Option<Answer> {
    let fault = fault(&mut held(&state));
    match fault {
        Some(Fault::Error) => return Some(failed(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
        Some(Fault::Unavailable) => return Some(failed(StatusCode::SERVICE_UNAVAILABLE, "SlowDown")),
        Some(Fault::Forbidden) => return Some(failed(StatusCode::FORBIDDEN, "AccessDenied")),
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Reset) => return None,
        Some(Fault::Truncate) => return Some(halved(done(&state, &came).await).await),
        Some(Fault::Mix) | None => {}
    }
    let trouble = trouble(&mut held(&state), &came);
    match trouble {
        Some(Trouble::Unavailable) => return Some(failed(StatusCode::SERVICE_UNAVAILABLE, "SlowDown")),
        Some(Trouble::Conflict) => return Some(failed(StatusCode::CONFLICT, "ConditionalRequestConflict")),
        Some(Trouble::Late) => tokio::time::sleep(TOO_LATE).await,
        Some(Trouble::Lost | Trouble::Slow) | None => {}
    }
    let done = done(&state, &came).await;
    match trouble {
        Some(Trouble::Lost) => None,
        Some(Trouble::Slow) => {
            tokio::time::sleep(TOO_LATE).await;
            Some(done)
        }
        _ => Some(done),
    }
}

/// How every request goes wrong now.
fn fault(state: &mut State) -> Option<Fault> {
    let fault = state.fault?;
    state.requests += 1;
    let mut rng = Stream::root(state.requests).text("mix").rng();
    Some(if fault == Fault::Mix { MIX[below(&mut rng, MIX.len() as u64) as usize] } else { fault })
}

/// An answer that ends in its middle: its head says how long it would be, and the connection ends.
async fn halved(answer: Answer) -> Answer {
    let (mut head, body) = answer.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    head.headers.insert(header::CONTENT_LENGTH, bytes.len().max(1).into());
    let half = Ok(Frame::data(bytes.slice(..bytes.len() / 2)));
    let end = Err(io::Error::other("the answer ends"));
    Response::from_parts(head, BodyExt::boxed(StreamBody::new(futures_util::stream::iter([half, end]))))
}

fn full(bytes: Bytes) -> BoxBody<Bytes, io::Error> {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

/// How this request goes wrong, if it does.
fn trouble(state: &mut State, came: &Came) -> Option<Trouble> {
    state.requests += 1;
    if state.outage {
        return Some(Trouble::Unavailable);
    }
    let scripted = if came.only_if_absent { state.script.pop_front() } else { None };
    let request = format!("{} {}?{:?}", came.method, came.name, came.query);
    let in_a_row = state.in_a_row.entry(request).or_default();
    let mut rng = Stream::root(state.requests).text("storm").rng();
    let stormy = below(&mut rng, 100) < state.storm && *in_a_row < STORM_IN_A_ROW;
    let drawn = STORM[below(&mut rng, STORM.len() as u64) as usize];
    let drawn = if drawn == Trouble::Conflict && !came.only_if_absent { Trouble::Unavailable } else { drawn };
    let trouble = scripted.or_else(|| stormy.then_some(drawn));
    *in_a_row = if trouble.is_some() { *in_a_row + 1 } else { 0 };
    state.troubles += u64::from(trouble.is_some());
    trouble
}

async fn done(state: &Mutex<State>, came: &Came) -> Answer {
    if !came.known {
        return failed(StatusCode::FORBIDDEN, "InvalidAccessKeyId");
    }
    let looks_first = held(state).looks_first && came.only_if_absent;
    if looks_first && !held(state).objects.has(&came.name) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        return tagged(&held(state).objects.write(&came.name, &came.body));
    }
    let mut state = held(state);
    let objects = &mut state.objects;
    match (&came.method, came.name.is_empty()) {
        (&Method::GET, true) => whole(StatusCode::OK, objects.list(&came.query).into()),
        (&Method::GET | &Method::HEAD, false) => match objects.read(&came.name) {
            Some(object) => {
                let answer = Response::builder()
                    .header(header::ETAG, &object.tag)
                    .header(header::LAST_MODIFIED, object.modified_http());
                answer.body(full(object.bytes.clone())).expect("headers of plain letters")
            }
            None => failed(StatusCode::NOT_FOUND, "NoSuchKey"),
        },
        (&Method::PUT, false) if came.only_if_absent => match objects.create(&came.name, &came.body) {
            Created::New(tag) => tagged(&tag),
            Created::Exists => failed(StatusCode::PRECONDITION_FAILED, "PreconditionFailed"),
        },
        (&Method::DELETE, false) => {
            objects.remove(&came.name);
            whole(StatusCode::NO_CONTENT, Bytes::new())
        }
        _ => failed(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
    }
}

fn whole(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(full(body));
    *answer.status_mut() = status;
    answer
}

fn tagged(tag: &str) -> Answer {
    let answer = Response::builder().header(header::ETAG, tag).body(full(Bytes::new()));
    answer.expect("headers of plain letters")
}

/// As AWS answers: on several lines, with what was signed, which may have a session's key.
fn failed(status: StatusCode, code: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\n<Message>In the words of a server.</Message>\
         <AWSAccessKeyId>{KEY}</AWSAccessKeyId>\n<CanonicalRequest>GET\nx-amz-security-token:SESSION</CanonicalRequest></Error>"
    );
    whole(status, body.into())
}
