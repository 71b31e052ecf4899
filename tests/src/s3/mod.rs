//! A small S3 server in this process, with one bucket: create if absent, read, remove, list in pages. It misbehaves on
//! request: it loses answers, conflicts with itself, refuses, is slow, writes late, or lets several clients create one name.
//! It does not check AWS's signatures: every client with the right key is admitted.

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
/// The only key that the server knows.
const KEY: &str = "AKEXAMPLE";
/// After how long clients give up waiting for an answer.
const CLIENT_TIMEOUT: &str = "1s";
/// How long the server waits to give an answer that is too late for its client.
const TOO_LATE: Duration = Duration::from_secs(3);
/// How many requests for one name fail in a row during a storm: fewer than a client's attempts.
const STORM_IN_A_ROW: u32 = 2;

/// How one request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The request is carried out, and the connection ends without an answer.
    Lost,
    /// The request is carried out, but the answer comes when the client no longer waits.
    Slow,
    /// The request is carried out when the client no longer waits for the answer.
    Late,
    /// 503, and nothing is carried out.
    Unavailable,
    /// 409 for a creation, and nothing is carried out.
    Conflict,
}

/// How every request goes wrong for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 500.
    Error,
    /// 503.
    Unavailable,
    /// 403, even with the right key.
    Forbidden,
    /// The server never answers.
    Hang,
    /// The request is carried out, but the answer is cut in the middle.
    Truncate,
    /// The connection ends with the request.
    Reset,
    /// One of these at random.
    Mix,
}

/// The faults of a mix.
const MIX: [Fault; 6] =
    [Fault::Error, Fault::Unavailable, Fault::Forbidden, Fault::Hang, Fault::Truncate, Fault::Reset];

/// The troubles of a storm. `Late` is not among them, because it could take effect after the test.
const STORM: [Trouble; 4] = [Trouble::Lost, Trouble::Slow, Trouble::Unavailable, Trouble::Conflict];

#[derive(Default)]
struct State {
    objects: Objects,
    /// Troubles for the next creations.
    script: VecDeque<Trouble>,
    /// How many of a hundred requests go wrong.
    storm: u64,
    /// How many times each request has gone wrong in a row.
    in_a_row: BTreeMap<String, u32>,
    requests: u64,
    troubles: u64,
    /// Whether the server is down.
    outage: bool,
    /// The way in which every request goes wrong.
    fault: Option<Fault>,
    /// Whether the server checks if a name exists, and writes it later.
    looks_first: bool,
}

/// A running server. It ends with the process.
pub struct S3 {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Whether clients use their own timeout.
    patient: bool,
}

fn held(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl S3 {
    /// Starts a server with an empty bucket, on loopback.
    ///
    /// # Panics
    /// If the system has no port or thread for it.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket for a runtime");
        let address = listener.local_addr().expect("an address");
        let served = Arc::clone(&state);
        // A test may have its own runtime, which cannot wait for this one.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { serve(TcpListener::from_std(listener).expect("a socket"), served).await });
        });
        Self { address, state, patient: false }
    }

    /// Lets clients use their own default timeout.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// The address where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same server, reached through a proxy at this address.
    #[must_use]
    pub fn through(&self, line: SocketAddr) -> Self {
        Self { address: line, state: Arc::clone(&self.state), patient: self.patient }
    }

    /// The environment variables with which a client finds the server.
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

    /// Makes the next creations go wrong in these ways, one after the other.
    pub fn next_creations(&self, troubles: &[Trouble]) {
        held(&self.state).script.extend(troubles);
    }

    /// Makes this share of all further requests go wrong in some way, in percent.
    pub fn storm(&self, percent: u64) {
        held(&self.state).storm = percent;
    }

    /// Takes the server down, or up again. While it is down it refuses every request.
    pub fn outage(&self, gone: bool) {
        held(&self.state).outage = gone;
    }

    /// Makes every further request go wrong in this way, or none.
    pub fn fault(&self, fault: Option<Fault>) {
        held(&self.state).fault = fault;
    }

    /// Makes the server check from now on whether a name exists, and then write, so that several clients succeed.
    pub fn look_first(&self) {
        held(&self.state).looks_first = true;
    }

    /// The names of all objects.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        held(&self.state).objects.names()
    }

    /// How many requests have come, and how many of them went wrong.
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
                    // The request is carried out even if the client disconnects.
                    let answered = tokio::spawn(answer(state, came)).await;
                    answered.map_err(io::Error::other)?.ok_or_else(|| io::Error::other("the answer is lost"))
                }
            });
            // The client has ended the connection, or its answer was to be lost.
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

/// Answers a request. For `None` the connection ends without an answer.
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

/// How every request goes wrong now; `None` if none does.
fn fault(state: &mut State) -> Option<Fault> {
    let fault = state.fault?;
    state.requests += 1;
    let mut rng = Stream::root(state.requests).text("mix").rng();
    Some(if fault == Fault::Mix { MIX[below(&mut rng, MIX.len() as u64) as usize] } else { fault })
}

/// An answer that is cut in the middle: its header states the full length, and then the connection ends.
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

/// How this request goes wrong; `None` if it does not.
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

/// An error as AWS answers it, on several lines, with the text that was signed, which may contain a session's key.
fn failed(status: StatusCode, code: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\n<Message>In the words of a server.</Message>\
         <AWSAccessKeyId>{KEY}</AWSAccessKeyId>\n<CanonicalRequest>GET\nx-amz-security-token:SESSION</CanonicalRequest></Error>"
    );
    whole(status, body.into())
}
