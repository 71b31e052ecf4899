//! The loop that connects the core, the link, the slots, the clock and the signals.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    pin::pin,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use evoxo_access::{Dialer, Keeper, Refusal, Source};
use evoxo_common::{experiment::Registry, task::Encoded, time::Millis};
use evoxo_process::{Addresses, EndRequest, EndRequests};
use tokio::{sync::mpsc, task::spawn_blocking, time::sleep_until};
use tracing::Level;

use crate::{
    core::{self, Effect, Event, STATUS_REFUSED, Worker},
    link::{Dial, Link},
    pool::{Compute, Pool},
    programs::{Processes, Program, end_programs, introduce},
    who::Who,
};

/// The maximum number of results that are handled before the link and the signals are checked again.
const COMPUTED_BATCH_MAX: usize = 256;
/// How long the worker gives the coordinator to notice the end of the stream.
const END_WITHIN: Duration = Duration::from_millis(500);

/// Settings of a worker process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses of the coordinator and its standbys.
    pub coordinators: Addresses,
    /// The source of the worker's access; `None` for a coordinator without access control.
    pub access: Option<Source>,
    /// Settings of the worker's core. The programs' signatures are filled in here.
    pub worker: core::Settings,
    /// The programs that tasks may call.
    pub programs: Arc<[Program]>,
    /// Whether the process ends with its standard input, so that it cannot outlive the process that started it.
    pub exit_with_stdin: bool,
}

/// Starts the programs to get their introductions, then works for the coordinator until the process is asked to shut down,
/// was idle for too long or is refused.
///
/// # Errors
/// If the system denies threads, timers or signals, or if a program cannot be used.
pub fn run(mut settings: Settings, registry: Registry) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop; is the limit of open files too low?")?;
    let name = settings.worker.name.clone();
    let who = |identity| Who { worker: name.clone(), identity, session: None };
    let ended = runtime.block_on(async {
        let mut requests = EndRequests::listen(settings.exit_with_stdin)?;
        let (asked, programs) = (registry.clone(), Arc::clone(&settings.programs));
        settings.worker.programs = tokio::select! {
            introduced = spawn_blocking(move || introduce(&asked, &programs)) => introduced?.map_err(anyhow::Error::msg)?,
            _ = requests.next() => {
                return Ok(((0, "shut down (on request) while its programs were starting".to_owned()), who(None)));
            }
        };
        let (dialer, identity) = tokio::select! {
            opened = open(&settings) => match opened {
                Ok(opened) => opened,
                Err(Refusal::Final(why)) => {
                    return Ok(((STATUS_REFUSED, format!("this worker was refused: {why}")), who(None)));
                }
                Err(refusal) => bail!("{}", refusal.sentence()),
            },
            _ = requests.next() => {
                return Ok(((0, "shut down (on request) before it had joined".to_owned()), who(None)));
            }
        };
        anyhow::Ok(Shell::new(settings, dialer, who(identity), registry)?.serve(requests).await)
    });
    // A thread may still be waiting for a program or for a name server.
    end_programs();
    runtime.shutdown_background();
    let ((status, sentence), who) = ended?;
    who.log(if status == 0 { Level::INFO } else { Level::ERROR }, None, &sentence);
    Ok(ExitCode::from(status))
}

/// Prepares connections. With a source of access, they use a certificate, which is renewed from then on, and its number is
/// returned.
async fn open(settings: &Settings) -> Result<(Dialer, Option<String>), Refusal> {
    let Some(source) = settings.access.clone() else { return Ok((Dialer::plain(), None)) };
    let keeper = Keeper::open(source, &settings.coordinators, &settings.worker.name).await?;
    let (dialer, identity) = (keeper.dialer(), keeper.identity());
    tokio::spawn(keeper.keep());
    Ok((dialer, identity))
}

/// The exit status, and the reason for the log.
type Exit = (u8, String);

/// Carries out the effects of the core.
struct Shell {
    dial: Dial,
    worker: Worker,
    pool: Pool,
    computed: mpsc::UnboundedReceiver<Event>,
    link: Option<Link>,
    inbox: VecDeque<Event>,
    start: Instant,
    who: Who,
}

impl Shell {
    fn new(settings: Settings, dialer: Dialer, who: Who, registry: Registry) -> anyhow::Result<Self> {
        let (sender, computed) = mpsc::unbounded_channel();
        let slots = settings.worker.slots;
        let compute = || -> Compute {
            let (registry, mut processes) = (registry.clone(), Processes::new(Arc::clone(&settings.programs)));
            Box::new(move |task: &Encoded| {
                let computed = registry.run(task, &mut processes);
                processes.outcome(computed)
            })
        };
        let pool = Pool::new(slots, compute, &sender)
            .with_context(|| format!("cannot start {slots} threads; try a smaller --slots"))?;
        // The seed only spreads reconnections in time; results do not depend on it.
        let seed = RandomState::new().build_hasher().finish();
        Ok(Self {
            dial: Dial::new(&settings.coordinators, dialer),
            worker: Worker::new(Millis(0), settings.worker, seed),
            pool,
            computed,
            link: None,
            inbox: VecDeque::new(),
            start: Instant::now(),
            who,
        })
    }

    async fn serve(mut self, mut requests: EndRequests) -> (Exit, Who) {
        let mut batch = Vec::with_capacity(COMPUTED_BATCH_MAX);
        let mut alarm = pin!(sleep_until(self.start.into()));
        loop {
            let wake = self.worker.next_wake().map(|wake| self.start + Duration::from_millis(wake.0));
            if let Some(wake) = wake.filter(|wake| *wake != alarm.deadline().into_std()) {
                alarm.as_mut().reset(wake.into());
            }
            tokio::select! {
                _ = self.computed.recv_many(&mut batch, COMPUTED_BATCH_MAX) => self.inbox.extend(batch.drain(..)),
                event = next_link_event(&mut self.link) => self.inbox.push_back(event),
                request = requests.next() => match request {
                    EndRequest::Signal => self.inbox.push_back(Event::DrainAsked),
                    EndRequest::StandardInput => {
                        return ((0, "shut down at once: standard input has ended".to_owned()), self.who);
                    }
                },
                () = &mut alarm, if wake.is_some() => self.inbox.push_back(Event::Wake),
            }
            while let Some(event) = self.inbox.pop_front() {
                self.who.note(&event);
                let now = Millis(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX));
                for effect in self.worker.handle(now, event) {
                    if let Some(exit) = self.carry_out(effect) {
                        if let Some(link) = self.link {
                            link.end(END_WITHIN).await;
                        }
                        return (exit, self.who);
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Exit> {
        match effect {
            Effect::Connect => self.link = Some(Link::connect(self.dial.clone())),
            Effect::Disconnect => self.link = None,
            Effect::Send(message) => {
                if self.link.as_ref().is_some_and(|link| !link.send(message)) {
                    self.link = None;
                    self.inbox.push_back(Event::LinkDown("it has not read for a long time".to_owned()));
                }
            }
            Effect::Start { slot, tasks } => self.pool.start(slot, tasks),
            Effect::Log(level, sentence) => self.who.log(level, None, &sentence),
            Effect::TaskFailed { task, why } => {
                let sentence = format!("task {} failed: {}", task.short(), why.escape_debug());
                self.who.log(Level::WARN, Some(&task), &sentence);
            }
            Effect::Exit { status, sentence } => return Some((status, sentence)),
        }
        None
    }
}

/// The next event of the link. Without a link, it waits forever. A link is removed after its last event.
async fn next_link_event(link: &mut Option<Link>) -> Event {
    let Some(present) = link else { return std::future::pending().await };
    let event = present.next().await.unwrap_or_else(|| Event::LinkDown("the connection's task ended".to_owned()));
    if let Event::LinkDown(_) | Event::LinkAway(_) | Event::LinkRefused(_) = event {
        *link = None;
    }
    event
}
