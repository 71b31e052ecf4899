//! The thin shell around the core: one thread owns the core, one the store; everything else sends them messages.
//!
//! Time is stamped when an event enters the inbox, and [`Event::Wake`] is sent only when the inbox is empty, so a long
//! `absorb` cannot make workers look silent whose words are waiting to be read.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use evoxo_common::time::Millis;
use evoxo_proto::v1;
use tokio::sync::{broadcast, mpsc, oneshot};
use tonic::Status;
use tracing::{error, info, warn};

use crate::{
    core::{Answer, Ask, Coordinator, Effect, Event, Rejection, SessionId, StoreFault, Ticket, Write, WriteId},
    store::Store,
};

/// Events that may wait for the core before their senders must: a worker's message can be large.
const INBOX_MAX: usize = 512;
/// Messages that may wait for a worker. One that leaves so many unread for so long does not read, and is given up.
const OUTBOX_MAX: usize = 4096;
/// A store that cannot be written is not asked more often than this.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// Changes that a slow watcher may miss before it is told to look again.
const CHANGES_MAX: usize = 1024;

/// Messages on their way to a worker.
pub(crate) type Outbox = mpsc::Sender<Result<v1::ToWorker, Status>>;

enum Letter {
    Event(Event),
    Open(SessionId, Outbox),
    Ask(Ask, oneshot::Sender<Result<Answer, Rejection>>),
}

/// How the rest of the process talks to the core. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    inbox: mpsc::Sender<(Millis, Letter)>,
    changes: broadcast::Sender<Arc<str>>,
    start: Instant,
    sessions: Arc<AtomicU64>,
}

impl Handle {
    async fn post(&self, letter: Letter) {
        // The core outlives all who could post; after it only the end of the process comes.
        if let Ok(room) = self.inbox.reserve().await {
            room.send((now(self.start), letter));
        }
    }

    /// Opens a session whose messages go into `outbox`.
    pub(crate) async fn open(&self, outbox: Outbox) -> SessionId {
        let session = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed) + 1);
        self.post(Letter::Open(session, outbox)).await;
        session
    }

    /// Tells the core what happened.
    pub(crate) async fn tell(&self, event: Event) {
        self.post(Letter::Event(event)).await;
    }

    /// Asks the core for somebody.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answer, Rejection> {
        let (sender, receiver) = oneshot::channel();
        self.post(Letter::Ask(ask, sender)).await;
        receiver.await.unwrap_or_else(|_| Err(Rejection::Unavailable("the coordinator is stopping".into())))
    }

    /// Names of runs that have changed, from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.changes.subscribe()
    }
}

/// How a [`Letter`] travels to a worker's stream.
pub(crate) fn outbox() -> (Outbox, mpsc::Receiver<Result<v1::ToWorker, Status>>) {
    mpsc::channel(OUTBOX_MAX)
}

fn now(start: Instant) -> Millis {
    Millis(start.elapsed().as_millis() as u64)
}

/// Starts the two threads. The receiver hears once when the core has stopped.
pub(crate) fn start(core: Coordinator, store: Store) -> (Handle, oneshot::Receiver<()>) {
    let (inbox, letters) = mpsc::channel(INBOX_MAX);
    let (changes, _) = broadcast::channel(CHANGES_MAX);
    let handle = Handle { inbox, changes, start: Instant::now(), sessions: Arc::default() };
    let (writes, orders) = std::sync::mpsc::channel();
    let (stopped, stop) = oneshot::channel();
    let back = handle.clone();
    spawn("store", move || keep(store, &orders, &back));
    let shell = Shell {
        core,
        changes: handle.changes.clone(),
        writes,
        outboxes: BTreeMap::new(),
        askers: BTreeMap::new(),
        ticket: 0,
        stopped: Some(stopped),
        given_up: Vec::new(),
    };
    let start = handle.start;
    spawn("core", move || shell.run(letters, start));
    (handle, stop)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    thread.expect("the system has a thread for the coordinator");
}

/// The store's thread: writes in order, each reported.
fn keep(mut store: Store, orders: &std::sync::mpsc::Receiver<(WriteId, String, Write)>, handle: &Handle) {
    while let Ok((write, run, what)) = orders.recv() {
        let outcome = store.write(&run, &what);
        if matches!(outcome, Err(StoreFault::Failed(_))) {
            std::thread::sleep(FAILURE_PAUSE);
        }
        let letter = Letter::Event(Event::Stored { write, outcome });
        if handle.inbox.blocking_send((now(handle.start), letter)).is_err() {
            return;
        }
    }
}

struct Shell {
    core: Coordinator,
    changes: broadcast::Sender<Arc<str>>,
    writes: std::sync::mpsc::Sender<(WriteId, String, Write)>,
    outboxes: BTreeMap<SessionId, Outbox>,
    askers: BTreeMap<Ticket, oneshot::Sender<Result<Answer, Rejection>>>,
    ticket: u64,
    stopped: Option<oneshot::Sender<()>>,
    /// Workers that do not read what they are sent.
    given_up: Vec<SessionId>,
}

impl Shell {
    fn run(mut self, mut letters: mpsc::Receiver<(Millis, Letter)>, start: Instant) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime without I/O cannot fail to start");
        runtime.block_on(async {
            loop {
                let wait = self.core.next_wake().map(|wake| Duration::from_millis(wake - now(start)));
                let letter = match (letters.try_recv(), wait) {
                    (Ok(letter), _) => Some(letter),
                    (Err(_), None) => letters.recv().await,
                    (Err(_), Some(wait)) => match tokio::time::timeout(wait, letters.recv()).await {
                        Ok(letter) => letter,
                        Err(_) => Some((now(start), Letter::Event(Event::Wake))),
                    },
                };
                let Some((at, letter)) = letter else { return };
                self.take(at, letter);
                while let Some(session) = self.given_up.pop() {
                    self.take(at, Letter::Event(Event::Left { session }));
                }
            }
        });
    }

    fn take(&mut self, at: Millis, letter: Letter) {
        let event = match letter {
            Letter::Event(event) => event,
            Letter::Open(session, outbox) => {
                self.outboxes.insert(session, outbox);
                return;
            }
            Letter::Ask(ask, asker) => {
                self.ticket += 1;
                self.askers.insert(Ticket(self.ticket), asker);
                Event::Ask { ticket: Ticket(self.ticket), ask }
            }
        };
        if let Event::Left { session } = event {
            self.outboxes.remove(&session);
        }
        for effect in self.core.handle(at, event) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { session, message } => {
                let Some(outbox) = self.outboxes.get(&session) else { return };
                if let Err(error) = outbox.try_send(Ok(message)) {
                    if matches!(error, mpsc::error::TrySendError::Full(_)) {
                        warn!("session {session} leaves {OUTBOX_MAX} messages unread: it is ended");
                    }
                    self.outboxes.remove(&session);
                    self.given_up.push(session);
                }
            }
            Effect::End { session } => drop(self.outboxes.remove(&session)),
            Effect::Answer { ticket, answer } => {
                if let Some(asker) = self.askers.remove(&ticket) {
                    // Who has gone away needs no answer.
                    drop(asker.send(answer));
                }
            }
            Effect::Store { write, run, what } => drop(self.writes.send((write, run, what))),
            Effect::Changed { run } => drop(self.changes.send(run.into())),
            Effect::Log { warn: true, sentence } => warn!("{sentence}"),
            Effect::Log { warn: false, sentence } => info!("{sentence}"),
            Effect::Stopped => {
                if let Some(stopped) = self.stopped.take() {
                    let _ = stopped.send(());
                }
            }
        }
    }
}

/// A panic on one of the threads that own state must end the process: a restart recovers, a zombie does not.
pub(crate) fn end_process_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        if matches!(std::thread::current().name(), Some("core" | "store")) {
            error!("the coordinator ends: a restart takes its runs up from their checkpoints");
            std::process::exit(1);
        }
    }));
}
