//! The service for people: the calls of `run.proto`.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use evoxo_common::{
    envelope,
    experiment::{Replica, champion_stem},
};
use evoxo_proto::v1::{self, RunState, run_service_server::RunService};
use prost::Message as _;
use tokio::{
    sync::{Semaphore, mpsc},
    task::spawn_blocking,
};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Code, Request, Response, Status};
use tracing::info;

use super::{Failure, accept::ConnectionInfo, cut, gate::Rooms, status_of};
use crate::{
    core::{Rejection, ReplicaAt, Request as CoreRequest, Response as CoreResponse, View},
    limits::places::Places,
    prepared::Prepared,
    replicas::ReplicaKey,
    saved::replica_of_checkpoint,
    shell::{Handle, news::unix_seconds},
    trust::Level,
};

/// The greatest age of a cached list of workers.
const WORKERS_AGE_MAX: Duration = Duration::from_millis(500);
/// How many files are parsed at once, each on its own thread.
const PARSED_MAX: usize = 2;
/// The most workers that a line of the audit log names.
const NAMED_SHOWN_MAX: usize = 20;
/// How many replicas are read at once for `fetch`.
const FETCHED_MAX: usize = 4;
/// How many runs are fetched at once. A client that reads slowly keeps a replica and a checkpoint of the run in memory.
const FETCHES_MAX: usize = 64;

/// See `run.proto`.
pub(crate) struct Runs {
    core: Handle,
    /// The list of workers, cached for a moment.
    workers: Mutex<Option<(Instant, v1::ListWorkersResponse)>>,
    parsing: Semaphore,
    fetching: Arc<Semaphore>,
    fetches: Places,
    checkpoints: Arc<Checkpoints>,
}

/// Checkpoints that are being fetched from, by run and object. Each is in memory only once.
type Checkpoints = tokio::sync::Mutex<BTreeMap<(String, String), Weak<Bytes>>>;

/// The core answered with a response of the wrong kind, which is a bug.
fn mismatch() -> Status {
    Status::internal("the coordinator gave a response of the wrong kind: please report this")
}

fn unknown(name: &str) -> Status {
    let shown: String = name.chars().take(100).collect();
    status_of(Rejection::NotFound(format!("there is no run {shown:?} here: `evoxo runs` lists them")))
}

/// The run with its configuration.
fn whole(view: &View) -> v1::Run {
    let config = view.prepared.as_ref().map(|prepared| prepared.toml.clone()).unwrap_or_default();
    v1::Run { config, ..view.run.clone() }
}

/// The connection that a request comes from.
fn origin<T>(request: &Request<T>) -> Result<ConnectionInfo, Status> {
    let info = request.extensions().get::<ConnectionInfo>().cloned();
    info.ok_or_else(|| Status::internal("a call without a connection: please report this"))
}

/// The requested level of verification. Any level but the plain one needs workers with certificates.
fn level(wanted: i32, millionths: u32, origin: &ConnectionInfo) -> Result<Level, Status> {
    let level = Level::of(wanted, millionths).ok_or_else(|| {
        Status::invalid_argument(
            "this coordinator does not know that level of verification, or the share of samples is not from 1 to \
             1,000,000 millionths: use the same version of client and coordinator",
        )
    })?;
    match level != Level::Plain && !origin.knows_workers() {
        true => Err(Status::failed_precondition(
            "this coordinator has no access directory, so it cannot identify workers by certificates and cannot verify \
             outputs: start it with --access, or submit without --verify",
        )),
        false => Ok(level),
    }
}

impl Runs {
    pub(crate) fn new(core: Handle) -> Self {
        let (parsing, fetching) = (Semaphore::new(PARSED_MAX), Arc::new(Semaphore::new(FETCHED_MAX)));
        let (fetches, checkpoints) = (Places::new(FETCHES_MAX, true), Arc::default());
        Self { core, workers: Mutex::default(), parsing, fetching, fetches, checkpoints }
    }

    /// Passes an order about a run to the core, and logs who gave it.
    async fn act(
        &self,
        verb: &str,
        origin: &ConnectionInfo,
        name: &str,
        ask: CoreRequest,
    ) -> Result<Response<v1::Run>, Status> {
        let answer = self.core.ask(origin.permitted(ask)).await;
        origin.audit(verb, name, &answer).wait().await;
        match answer.map_err(status_of)? {
            CoreResponse::Run(run) => {
                info!(run = name, "run {name}: {verb} by {}", origin.submitter());
                let config = self.core.views.get(name).map(|view| whole(&view.borrow()).config).unwrap_or_default();
                Ok(Response::new(v1::Run { config, ..*run }))
            }
            _ => Err(mismatch()),
        }
    }

    /// Parses a file, neither on the core's thread nor on the one that serves connections.
    async fn prepare(&self, config: String) -> Result<Arc<Prepared>, Status> {
        let _turn = self.parsing.acquire().await;
        let registry = self.core.registry.clone();
        let parse = move || Prepared::read(&registry, "the submitted file", &config);
        let parsed = spawn_blocking(parse)
            .await
            .map_err(|_| Status::internal("the parser panicked on this file: please report this"))?;
        parsed.map_err(|problems| status_of(Rejection::Invalid(problems)))
    }

    /// Accepts a submitted file.
    async fn take(
        &self,
        name: &str,
        config: String,
        level: Level,
        origin: &ConnectionInfo,
        terms: Vec<v1::Term>,
    ) -> Result<v1::SubmitResponse, Failure> {
        crate::names::check_run_name(name).map_err(Rejection::Invalid)?;
        let prepared = self.prepare(config).await?;
        let toml = prepared.toml.clone();
        let (name, submitter) = (name.to_owned(), origin.submitter());
        let submit = CoreRequest::Submit { name, prepared, level, submitter, terms };
        match self.core.ask(origin.permitted(submit)).await? {
            CoreResponse::Submitted { run, created } => {
                Ok(v1::SubmitResponse { run: Some(v1::Run { config: toml, ..*run }), created })
            }
            _ => Err(mismatch().into()),
        }
    }

    fn fetcher(&self, name: String) -> Fetcher {
        let (core, turns) = (self.core.clone(), Arc::clone(&self.fetching));
        Fetcher { core, turns, name, checkpoints: Arc::clone(&self.checkpoints), last: None }
    }
}

#[tonic::async_trait]
impl RunService for Runs {
    type WatchStream = ReceiverStream<Result<v1::Run, Status>>;
    type FetchStream = Pin<Box<dyn Stream<Item = Result<v1::Replica, Status>> + Send>>;

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitResponse>, Status> {
        let origin = origin(&request)?;
        // The room for the file's message is held until the file is parsed.
        let _room = request.extensions().get::<Rooms>().map(|rooms| rooms.take(u64::MAX));
        let v1::SubmitRequest { name, config, verification, sampled_millionths, terms } = request.into_inner();
        let submitted = match level(verification, sampled_millionths, &origin) {
            Ok(level) => self.take(&name, config, level, &origin, terms).await,
            Err(status) => Err(status.into()),
        };
        origin.audit("submit", &name, Failure::outcome(&submitted)).wait().await;
        let submitted = submitted?;
        if submitted.created {
            info!(run = name, "run {name}: submitted by {}", origin.submitter());
        }
        Ok(Response::new(submitted))
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        let views = self.core.views.list();
        let runs = match request.get_ref().dates {
            true => self.core.dated.with_dates(&views).await,
            false => views.iter().map(|view| view.run.clone()).collect(),
        };
        Ok(Response::new(v1::ListResponse { runs }))
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::Run>, Status> {
        let name = request.into_inner().name;
        let view = self.core.views.get(&name).ok_or_else(|| unknown(&name))?;
        let run = whole(&view.borrow());
        Ok(Response::new(run))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let name = request.into_inner().name;
        let mut view = self.core.views.get(&name).ok_or_else(|| unknown(&name))?;
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut run = whole(&view.borrow_and_update());
            loop {
                let ended = has_ended(&run);
                if sender.send(Ok(run)).await.is_err() || ended {
                    return;
                }
                let changed = tokio::select! {
                    () = sender.closed() => return,
                    changed = view.changed() => changed,
                };
                if changed.is_err() {
                    return drop(sender.send(Err(unknown(&name))).await);
                }
                run = view.borrow_and_update().run.clone();
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Result<Response<v1::Run>, Status> {
        let (origin, name) = (origin(&request)?, request.into_inner().name);
        self.act("paused", &origin, &name, CoreRequest::Pause { name: name.clone() }).await
    }

    async fn resume(&self, request: Request<v1::ResumeRequest>) -> Result<Response<v1::Run>, Status> {
        let (origin, name) = (origin(&request)?, request.into_inner().name);
        self.act("resumed", &origin, &name, CoreRequest::Resume { name: name.clone() }).await
    }

    async fn cancel(&self, request: Request<v1::CancelRequest>) -> Result<Response<v1::Run>, Status> {
        let origin = origin(&request)?;
        let v1::CancelRequest { name, delete } = request.into_inner();
        let verb = if delete { "cancelled and deleted" } else { "cancelled" };
        self.act(verb, &origin, &name, CoreRequest::Cancel { name: name.clone(), delete }).await
    }

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let (origin, name) = (origin(&request)?, request.into_inner().name);
        let CoreResponse::Replicas(prepared, replicas) =
            self.core.ask(CoreRequest::Replicas { name: name.clone() }).await.map_err(status_of)?
        else {
            return Err(mismatch());
        };
        let Some(counted) = self.fetches.take(origin.address, origin.owner(), Some(&origin.leave)) else {
            return Err(Status::resource_exhausted("too many runs are being fetched at once: try again later"));
        };
        // The next replica is read when the client has room for it.
        let begin = (self.fetcher(name), replicas.into_iter(), counted);
        let stream = futures_util::stream::try_unfold(begin, move |(mut fetcher, mut replicas, counted)| {
            let prepared = Arc::clone(&prepared);
            async move {
                let Some((key, finished)) = replicas.next() else { return Ok(None) };
                let arm = prepared.config.arms[key.arm as usize].name.clone();
                // A stream is not polled while its client does not read. A separate task always finishes its turn, for which
                // others wait.
                let fetched = tokio::spawn(async move {
                    let state = fetcher.fetch(&arm, key).await;
                    (fetcher, state.map(|state| v1::Replica { arm, replica: key.index, finished, state }))
                });
                let (fetcher, replica) = fetched.await.map_err(|_| mismatch())?;
                Ok(Some((replica?, (fetcher, replicas, counted))))
            }
        });
        Ok(Response::new(Box::pin(stream)))
    }

    async fn fetch_champion(
        &self,
        request: Request<v1::FetchChampionRequest>,
    ) -> Result<Response<v1::Champion>, Status> {
        let v1::FetchChampionRequest { name, arm, replica } = request.into_inner();
        let CoreResponse::Replicas(prepared, _) =
            self.core.ask(CoreRequest::Replicas { name: name.clone() }).await.map_err(status_of)?
        else {
            return Err(mismatch());
        };
        let missing = || {
            let sentence = format!("run {name:?} has no champion of replica {replica} of arm {arm:?} yet");
            Status::not_found(cut(sentence))
        };
        let place = prepared.config.arms.iter().position(|other| other.name == arm).ok_or_else(missing)?;
        let mut fetcher = self.fetcher(name.clone());
        let sealed = fetcher.fetch(&arm, ReplicaKey { arm: place as u32, index: replica }).await;
        let sealed = sealed.map_err(|status| if status.code() == Code::NotFound { missing() } else { status })?;
        let champion = spawn_blocking(move || champion(&prepared, place, replica, &sealed)).await;
        champion.ok().flatten().map(Response::new).ok_or_else(missing)
    }

    async fn list_tasks(
        &self,
        request: Request<v1::ListTasksRequest>,
    ) -> Result<Response<v1::ListTasksResponse>, Status> {
        let v1::ListTasksRequest { name, limit } = request.into_inner();
        match self.core.ask(CoreRequest::Tasks { name, limit }).await.map_err(status_of)? {
            CoreResponse::Tasks(tasks) => Ok(Response::new(tasks)),
            _ => Err(mismatch()),
        }
    }

    async fn list_workers(
        &self,
        _: Request<v1::ListWorkersRequest>,
    ) -> Result<Response<v1::ListWorkersResponse>, Status> {
        let known = || {
            let known = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
            known.as_ref().filter(|(at, _)| at.elapsed() < WORKERS_AGE_MAX).map(|(_, workers)| workers.clone())
        };
        if let Some(workers) = known() {
            return Ok(Response::new(workers));
        }
        let CoreResponse::Lost(lost) = self.core.ask(CoreRequest::Lost).await.map_err(status_of)? else {
            return Err(mismatch());
        };
        let CoreResponse::Cordons(cordons) = self.core.ask(CoreRequest::Cordons).await.map_err(status_of)? else {
            return Err(mismatch());
        };
        match self.core.ask(CoreRequest::Workers).await.map_err(status_of)? {
            CoreResponse::Workers(workers) => {
                let workers = v1::ListWorkersResponse { workers, lost, cordons };
                let now = (Instant::now(), workers.clone());
                *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                Ok(Response::new(workers))
            }
            _ => Err(mismatch()),
        }
    }

    async fn drain_workers(
        &self,
        request: Request<v1::DrainWorkersRequest>,
    ) -> Result<Response<v1::DrainWorkersResponse>, Status> {
        let (origin, named) = (origin(&request)?, request.into_inner());
        let object = named_for_audit(&named.names, &named.sessions, std::slice::from_ref(&named.host));
        let answer = self.core.ask(CoreRequest::Drain(named)).await;
        origin.audit("drained", &object, &answer).wait().await;
        match answer.map_err(status_of)? {
            CoreResponse::Workers(workers) => Ok(Response::new(v1::DrainWorkersResponse { workers })),
            _ => Err(mismatch()),
        }
    }

    async fn cordon_workers(
        &self,
        request: Request<v1::CordonWorkersRequest>,
    ) -> Result<Response<v1::CordonWorkersResponse>, Status> {
        let (origin, named) = (origin(&request)?, request.into_inner());
        let v1::CordonWorkersRequest { workers, hosts, end } = &named;
        let object = named_for_audit(workers, &[], hosts);
        let verb = if *end { "uncordoned" } else { "cordoned" };
        let (by, at_s) = (origin.submitter(), unix_seconds());
        let answer = self.core.ask(CoreRequest::Cordon { named, by, at_s }).await;
        origin.audit(verb, &object, &answer).wait().await;
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match answer.map_err(status_of)? {
            CoreResponse::Cordoned(cordoned) => Ok(Response::new(cordoned)),
            _ => Err(mismatch()),
        }
    }
}

/// Workers that a request names, for the audit log.
fn named_for_audit(names: &[String], sessions: &[u64], hosts: &[String]) -> String {
    let names = names.iter().map(|name| format!("worker {name}"));
    let sessions = sessions.iter().map(|session| format!("session {session}"));
    let hosts = hosts.iter().filter(|host| !host.is_empty()).map(|host| format!("host {host}"));
    names.chain(sessions).chain(hosts).take(NAMED_SHOWN_MAX).collect::<Vec<String>>().join(", ")
}

/// The champion of a sealed replica, if it has one.
fn champion(prepared: &Prepared, arm: usize, replica: u32, sealed: &Bytes) -> Option<v1::Champion> {
    let body = envelope::open(envelope::Kind::Finished, sealed).ok()?;
    let state = v1::Finished::decode(body).ok()?.replica?;
    let card = Replica::restore(&prepared.config, &state).ok()?.champion()?;
    let (card, file) = card.write(&champion_stem(&prepared.config, arm, replica));
    Some(v1::Champion { card, file: file.map(|(_, bytes)| bytes.into()).unwrap_or_default() })
}

/// Fetches replicas of a run one by one, from memory or from the store.
struct Fetcher {
    core: Handle,
    /// Limits the replicas in memory at once, however many clients fetch.
    turns: Arc<Semaphore>,
    name: String,
    checkpoints: Arc<Checkpoints>,
    /// The checkpoint that was read last. It has many replicas.
    last: Option<(String, Arc<Bytes>)>,
}

impl Fetcher {
    /// The sealed bytes of a replica.
    async fn fetch(&mut self, arm: &str, replica: ReplicaKey) -> Result<Bytes, Status> {
        let turns = Arc::clone(&self.turns);
        let _turn = turns.acquire().await;
        let answer = self.core.ask(CoreRequest::Replica { name: self.name.clone(), replica }).await;
        let CoreResponse::Replica(at) = answer.map_err(status_of)? else {
            return Err(mismatch());
        };
        let unreadable = |why: String| Status::failed_precondition(cut(why));
        match at {
            ReplicaAt::Bytes(bytes) => Ok(bytes),
            ReplicaAt::Stored(place) => self.core.reader.finished(&self.name, &place).await.map_err(unreadable),
            ReplicaAt::Checkpoint(object) => {
                let bytes = self.checkpoint(&object).await.map_err(unreadable)?;
                let arm = arm.to_owned();
                // A checkpoint has the states of many replicas, so decoding it takes time.
                let found = spawn_blocking(move || replica_of_checkpoint(&bytes, &arm, replica.index));
                let found = found.await.map_err(|_| Status::internal("the checkpoint could not be read"))?;
                found.map_err(|why| unreadable(format!("the object {object} of run {} {why}", self.name)))
            }
        }
    }

    async fn checkpoint(&mut self, object: &str) -> Result<Arc<Bytes>, String> {
        if let Some((_, bytes)) = self.last.as_ref().filter(|(known, _)| known == object) {
            return Ok(Arc::clone(bytes));
        }
        self.last = None;
        let mut known = self.checkpoints.lock().await;
        known.retain(|_, bytes| bytes.strong_count() > 0);
        let key = (self.name.clone(), object.to_owned());
        let bytes = match known.get(&key).and_then(Weak::upgrade) {
            Some(bytes) => bytes,
            None => Arc::new(self.core.reader.get(&self.name, object).await?),
        };
        known.insert(key, Arc::downgrade(&bytes));
        self.last = Some((object.to_owned(), Arc::clone(&bytes)));
        Ok(bytes)
    }
}

fn has_ended(run: &v1::Run) -> bool {
    matches!(
        run.state(),
        RunState::Finished | RunState::InDoubt | RunState::Cancelled | RunState::Failed | RunState::Blocked
    )
}
