//! The shell around the core: one thread owns the core, one the store, and each loaded run has its own. All other code sends
//! them messages.

mod clock;
pub(crate) mod dated;
pub(crate) mod news;
pub(crate) mod outbox;
pub(crate) mod own;
mod threads;
mod verify;
mod views;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cpu_time::ThreadTime;
use evoxo_common::experiment::Registry;
use evoxo_proto::v1;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, info, warn};

use crate::{
    access::Access,
    core::{About, Coordinator, Effect, Event, Rejection, Request, RequestId, Response, SessionId, Topic},
    metrics::meters::Meters,
    replicas::Recall,
    standby::Asked,
    store::{Cluster, Epoch, Reader, Store},
};
use clock::Clock;
use dated::Dated;
use news::News;
use outbox::{Outbox, Unsendable};
use own::{Asked as Own, Computing};
use threads::{Note, RunThreads, StoreOrders};
use views::Views;

/// The most events that may wait for the core. Further senders wait. ([`crate::grpc::gate`] limits the total size of the
/// events.)
const INBOX_MAX: usize = 512;
/// The core should handle an event in less processor time than this. Otherwise a warning is logged.
const HANDLE_MAX: Duration = Duration::from_millis(10);

/// The reserved room of a received message, released when the core has handled it.
pub(crate) type Room = Option<Box<dyn Send>>;

enum InboxMessage {
    Event(Event, Room),
    Open(SessionId, Outbox),
    Request(Request, oneshot::Sender<Result<Response, Rejection>>),
    /// Another coordinator leads, as this sentence says.
    GiveUp(String),
}

/// The core's inbox. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::Sender<InboxMessage>);

impl Inbox {
    /// Sends an event from a blocking thread. An error if the core has ended.
    fn post_blocking(&self, event: Event) -> Result<(), ()> {
        self.0.blocking_send(InboxMessage::Event(event, None)).map_err(drop)
    }

    /// Sends a request from a blocking thread, and waits for the response.
    fn ask_blocking(&self, request: Request) -> Result<Response, Rejection> {
        let (sender, receiver) = oneshot::channel();
        // If the core has ended, the receiver reports it.
        let _ = self.0.blocking_send(InboxMessage::Request(request, sender));
        receiver.blocking_recv().unwrap_or_else(|_| Err(stopping()))
    }

    async fn post(&self, message: InboxMessage) {
        // If the core has ended, the process ends too, and nothing is left to do.
        let _ = self.0.send(message).await;
    }
}

/// The interface to the core for the rest of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    inbox: Inbox,
    sessions: Arc<AtomicU64>,
    /// Runs as people see them.
    pub(crate) views: Views,
    /// The newest warnings.
    pub(crate) news: News,
    /// Meters of everything outside the core.
    pub(crate) meters: Arc<Meters>,
    /// Reads the store.
    pub(crate) reader: Reader,
    /// When runs began and ended.
    pub(crate) dated: Dated,
    /// The kinds of experiments.
    pub(crate) registry: Registry,
    /// Whether every run that should advance is in the store.
    pub(crate) healthy: watch::Receiver<bool>,
    /// The epoch in which this coordinator leads, and the cluster, once it can write its store.
    pub(crate) led: watch::Receiver<Option<(Epoch, Cluster)>>,
    /// Once another coordinator leads, the sentence that says so.
    pub(crate) superseded: watch::Receiver<Option<String>>,
    /// Notes when a standby asks for the health.
    pub(crate) standby: Asked,
}

impl Handle {
    /// Opens a session whose messages go into `outbox`.
    pub(crate) async fn open(&self, outbox: Outbox) -> SessionId {
        let session = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed) + 1);
        self.inbox.post(InboxMessage::Open(session, outbox)).await;
        session
    }

    /// Sends an event to the core. The room is released when the core has handled it.
    pub(crate) async fn tell(&self, event: Event, room: Room) {
        self.inbox.post(InboxMessage::Event(event, room)).await;
    }

    /// Ends everything at once, because another coordinator leads: sessions, so that their workers reconnect, and requests,
    /// so that they can be made elsewhere. Nothing more is written.
    pub(crate) async fn give_up(&self, why: String) {
        self.inbox.post(InboxMessage::GiveUp(why)).await;
    }

    /// Sends a request to the core and waits for the response.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, Rejection> {
        let (sender, receiver) = oneshot::channel();
        self.inbox.post(InboxMessage::Request(request, sender)).await;
        receiver.await.unwrap_or_else(|_| Err(stopping()))
    }
}

/// The answer to requests after the core has ended.
fn stopping() -> Rejection {
    Rejection::Interrupted("the coordinator is stopping".into())
}

/// Starts the threads. The receiver gets one message when the core has stopped.
pub(crate) fn start(
    core: Coordinator,
    store: Store,
    registry: Registry,
    access: Option<Access>,
    recall: Option<Arc<Recall>>,
) -> (Handle, oneshot::Receiver<()>) {
    let (inbox, messages) = mpsc::channel(INBOX_MAX);
    let inbox = Inbox(inbox);
    let (stopped, stop) = oneshot::channel();
    let (healthy_sender, healthy) = watch::channel(true);
    let (superseded_sender, superseded) = watch::channel(None);
    let (led_sender, led) = watch::channel(store.epoch().cloned().zip(store.cluster()));
    let superseded_sender = Arc::new(superseded_sender);
    let (views, news, meters) = (Views::default(), News::default(), Meters::new());
    let meters = Arc::new(match &access {
        Some(access) => meters.with_lost_lines(access.lost_lines()),
        None => meters,
    });
    let handle = Handle {
        inbox: inbox.clone(),
        sessions: Arc::default(),
        views: views.clone(),
        news: news.clone(),
        meters: Arc::clone(&meters),
        reader: store.reader(),
        dated: Dated::new(store.reader()),
        registry: registry.clone(),
        healthy,
        led,
        superseded,
        standby: Asked::default(),
    };
    let verifying = verify::start(store.reader(), views.clone(), inbox.clone(), Arc::clone(&meters));
    let mut shell = Shell {
        core,
        clock: Clock::start(),
        views,
        news,
        store: threads::start_store(
            store,
            inbox.clone(),
            led_sender,
            Arc::clone(&superseded_sender),
            Arc::clone(&meters),
        ),
        runs: RunThreads::new(registry, inbox.clone(), Arc::clone(&meters), recall),
        inbox: inbox.clone(),
        own: None,
        meters,
        healthy: healthy_sender,
        notes: access.map(|access| threads::start_access(access, inbox)),
        outboxes: BTreeMap::new(),
        responders: BTreeMap::new(),
        request: 0,
        stopped: Some(stopped),
        given_up: Vec::new(),
        superseded: superseded_sender,
        _verifying: verifying,
    };
    // Publishes the runs found in the store before the first request.
    shell.handle(Event::Wake);
    threads::spawn("core", move || shell.run(messages));
    (handle, stop)
}

struct Shell {
    core: Coordinator,
    clock: Clock,
    views: Views,
    news: News,
    store: StoreOrders,
    runs: RunThreads,
    /// For the threads that are started here.
    inbox: Inbox,
    own: Option<Computing>,
    meters: Arc<Meters>,
    healthy: watch::Sender<bool>,
    /// Notes for the thread that writes to the access directory; `None` without an access directory.
    notes: Option<std::sync::mpsc::Sender<Note>>,
    outboxes: BTreeMap<SessionId, Outbox>,
    responders: BTreeMap<RequestId, oneshot::Sender<Result<Response, Rejection>>>,
    request: u64,
    stopped: Option<oneshot::Sender<()>>,
    /// Sessions of workers that do not read their messages.
    given_up: Vec<SessionId>,
    /// Set when another coordinator leads, with the reason why nothing is answered any more. This is the end.
    superseded: Arc<watch::Sender<Option<String>>>,
    /// Dropping this ends the thread that verifies finished replicas.
    _verifying: std::sync::mpsc::Sender<()>,
}

impl Shell {
    fn run(mut self, mut messages: mpsc::Receiver<InboxMessage>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime without I/O cannot fail to start");
        runtime.block_on(async {
            loop {
                let due = self.core.next_wake().map(|wake| Duration::from_millis(wake - self.clock.now()));
                let message = match (messages.try_recv(), due) {
                    (Ok(message), _) => Some(message),
                    (Err(_), None) => messages.recv().await,
                    (Err(_), Some(due)) => match tokio::time::timeout(due, messages.recv()).await {
                        Ok(message) => message,
                        Err(_) => Some(InboxMessage::Event(Event::Wake, None)),
                    },
                };
                let Some(message) = message else { return };
                self.clock.look(due);
                self.take(message);
                let superseded = self.superseded.borrow().clone();
                if let Some(why) = superseded {
                    return self.give_up(&why);
                }
                while let Some(session) = self.given_up.pop() {
                    self.handle(Event::Left { session });
                }
            }
        });
    }

    /// Ends everything without asking the core: all its remaining work belongs to the new leader.
    fn give_up(&mut self, why: &str) {
        // Nobody listens if the process is ending.
        self.healthy.send_replace(false);
        for outbox in std::mem::take(&mut self.outboxes).into_values() {
            let close = v1::Close { kind: v1::CloseKind::Retry.into(), reason: why.to_owned(), retry_after_ms: 0 };
            // A worker that does not read sees the end of its connection.
            drop(outbox.send(Ok(v1::ToWorker { message: Some(v1::to_worker::Message::Close(close)) })));
        }
        for responder in std::mem::take(&mut self.responders).into_values() {
            drop(responder.send(Err(Rejection::Interrupted(why.to_owned()))));
        }
    }

    fn take(&mut self, message: InboxMessage) {
        match message {
            InboxMessage::Event(event, _room) => {
                if let Event::Left { session } | Event::Revoked { session } = event {
                    self.outboxes.remove(&session);
                }
                self.handle(event);
            }
            InboxMessage::Open(session, outbox) => drop(self.outboxes.insert(session, outbox)),
            InboxMessage::GiveUp(why) => drop(self.superseded.send_replace(Some(why))),
            InboxMessage::Request(request, responder) => {
                self.request += 1;
                let id = RequestId(self.request);
                self.responders.insert(id, responder);
                self.handle(Event::Request { id, request });
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let what = name_of(&event);
        let began = ThreadTime::now();
        let effects = self.core.handle(self.clock.now(), event);
        let took = began.elapsed();
        self.meters.handled(took);
        if took > HANDLE_MAX {
            warn!("the core took {} ms over {what}: please report this", took.as_millis());
        }
        effects.into_iter().for_each(|effect| self.carry_out(effect));
    }

    fn note(&self, note: Note) {
        if let Some(notes) = &self.notes {
            // That thread ends together with this one.
            let _ = notes.send(note);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { session, message } => {
                let Some(outbox) = self.outboxes.get(&session) else { return };
                if let Err(why) = outbox.send(Ok(message)) {
                    self.outboxes.remove(&session);
                    // If the stream has ended already, its end is reported elsewhere with the cause.
                    if why == Unsendable::Full {
                        warn!(session = session.0, "session {session} does not read its messages, so it is ended");
                        self.given_up.push(session);
                    }
                }
            }
            Effect::End { session } => drop(self.outboxes.remove(&session)),
            Effect::Respond { id, response } => {
                if let Some(responder) = self.responders.remove(&id) {
                    // If the requester is gone, the response is dropped.
                    drop(responder.send(response));
                }
            }
            Effect::Start { thread, prepared, draw, states, lanes, scope } => {
                self.runs.start(thread, prepared, draw, states, lanes, scope);
            }
            Effect::Job { thread, job } => self.runs.send(thread, job),
            Effect::Drop { thread } => self.runs.end(thread),
            Effect::ForgetRecalled => self.runs.forget_recalled(),
            Effect::ComputeHere { task, limit_ms, output_bytes_max } => {
                let (limit, inbox) = (Duration::from_millis(limit_ms), self.inbox.clone());
                let own = Own { task, limit, output_bytes_max };
                // If the core has ended, nobody waits for the output.
                self.own = Some(own.start(move |outcome| _ = inbox.post_blocking(Event::ComputedHere(outcome))));
            }
            Effect::StopComputing => self.own = None,
            Effect::Store { write, run, what } => drop(self.store.send((write, run, what))),
            Effect::Publish(view) => self.views.publish(view),
            Effect::Unpublish { run } => self.views.remove(&run),
            Effect::Convict { identity, what } => self.note(Note::Convicted { identity, what }),
            Effect::Audit { what, object } => self.note(Note::Done { what, object }),
            Effect::Healthy(healthy) => drop(self.healthy.send_replace(healthy)),
            Effect::Log { topic, about, sentence } => {
                if topic.is_warning() {
                    self.news.add(topic, &sentence);
                }
                write_line(topic, &about, &sentence);
            }
            Effect::Stopped => {
                if let Some(stopped) = self.stopped.take() {
                    let _ = stopped.send(());
                }
            }
        }
    }
}

/// Writes a line of the log.
fn write_line(topic: Topic, about: &About, sentence: &str) {
    let About { run, arm, replica, task, worker, identity, session } = about;
    let (run, arm, worker, identity) = (run.as_deref(), arm.as_deref(), worker.as_deref(), identity.as_deref());
    let (task, session) = (task.map(|task| task.to_string()), session.map(|session| session.0));
    let task = task.as_deref();
    match topic.is_warning() {
        true => warn!(run, arm, replica, task, worker, identity, session, "{sentence}"),
        false => info!(run, arm, replica, task, worker, identity, session, "{sentence}"),
    }
}

/// The name of an event, for the log.
fn name_of(event: &Event) -> &'static str {
    match event {
        Event::Hello { .. } => "a worker's Hello",
        Event::Message { .. } => "a worker's message",
        Event::Heard { .. } => "a part of a worker's message",
        Event::Expired { .. } => "the end of a certificate",
        Event::Revoked { .. } => "the end of a revoked worker's session",
        Event::Left { .. } => "the end of a session",
        Event::Request { .. } => "a request",
        Event::Done { .. } => "a run's reports",
        Event::Stored { .. } => "a report of the store",
        Event::Damaged { .. } => "a damaged object",
        Event::ComputedHere(_) => "a task that was computed here",
        Event::Stop => "the request to stop",
        Event::Wake => "a timer",
    }
}

/// Makes a panic on a thread that owns state end the process, because a restart recovers the state. A run's thread reports
/// its own panics.
pub(crate) fn end_process_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        if matches!(std::thread::current().name(), Some("core" | "store")) {
            error!("the coordinator ends: after a restart its runs continue from their checkpoints");
            std::process::exit(1);
        }
    }));
}
