//! Runs an experiment on a local cluster: submits it, follows it to the end, fetches it, and keeps its page open afterwards.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::bail;
use evoxo_common::experiment::Config;
use evoxo_proto::v1::{self, RunState};

use crate::{
    children::{Children, Plan},
    directory::Directory,
    legs::Spending,
    page,
    progress::Progress,
    remote::{self, Client, Coordinator, connect, converse, is_lost, refused},
    say::{program, tell},
    stop::Stop,
};

/// A run that has ended, and its replicas if it is finished.
pub(crate) type Computed = (v1::Run, Vec<v1::Replica>);

/// How often the child processes are checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often the coordinator is asked whether somebody has the page open.
const PAGE_INTERVAL: Duration = Duration::from_millis(300);
/// How long a browser may take to open the page.
const OPENING: Duration = Duration::from_secs(10);
/// If the coordinator does not take the run for this long, a note says so.
const AWAY_MAX: Duration = Duration::from_secs(5);

/// Computes a run with its own processes. All of them have ended when this returns, except for the coordinator of a finished
/// run whose page stays open.
pub(crate) fn compute(
    directory: &Directory,
    plan: Plan,
    name: &str,
    config: &Config,
    stop: &Stop,
    progress: &mut Progress,
    opens: bool,
) -> anyhow::Result<(Computed, Option<Children>)> {
    let stays = plan.stays;
    let mut children = Children::start(directory.store(), directory.log(), plan)?;
    let followed = converse(follow(&mut children, name, config, stop, progress, opens));
    let followed = match followed {
        // A run has replicas here only if it came to its end.
        Ok(computed) if stays && !computed.1.is_empty() => {
            children.dismiss_workers()?;
            return Ok((computed, Some(children)));
        }
        followed => followed,
    };
    let unsaved = children.stop()?;
    let (run, replicas) = followed?;
    match unsaved {
        Some(why) if stop.is_asked() && replicas.is_empty() => Err(not_saved(&why)),
        _ => Ok(((run, replicas), None)),
    }
}

/// Keeps the page of a finished run available while somebody has it open, or until a stop is requested.
pub(crate) fn stay(
    mut children: Children,
    run: &str,
    directory: &Path,
    opened: bool,
    stop: &Stop,
) -> anyhow::Result<()> {
    let (began, mut told) = (Instant::now(), false);
    while !stop.is_asked() && (children.is_seen()? || opened && began.elapsed() < OPENING) {
        if !std::mem::replace(&mut told, true) {
            let address = children.page(run).unwrap_or_default();
            tell(format_args!("the page stays available at {address} while somebody has it open; Ctrl-C ends it"));
        }
        sleep(PAGE_INTERVAL);
    }
    // Everything is stored and printed, so it does not matter how the coordinator ends.
    children.stop()?;
    tell(format_args!("`{} view {}` opens the page again", program(), directory.display()));
    Ok(())
}

/// The error for a stop at which something could not be saved, on a cluster or on one thread.
pub(crate) fn not_saved(why: &str) -> anyhow::Error {
    anyhow::anyhow!("the last rounds could not be saved ({why}): the same command continues from the last checkpoint")
}

/// Submits the run, or says why the coordinator does not take it now.
async fn take_up(
    coordinator: &Coordinator,
    name: &str,
    config: &Config,
) -> anyhow::Result<Result<(Client, v1::Run), String>> {
    let mut client = match connect(coordinator).await {
        Ok(client) => client,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    let request = v1::SubmitRequest { name: name.into(), config: config.to_toml(), ..Default::default() };
    match client.submit(request).await {
        Ok(answer) => Ok(Ok((client, answer.into_inner().run.unwrap_or_default()))),
        Err(status) if is_lost(&status) => Ok(Err(status.message().to_owned())),
        Err(status) => Err(refused(status)),
    }
}

/// How long the coordinator has not accepted the run: it is starting again, its store was removed, or another coordinator
/// uses the store.
#[derive(Default)]
struct Away {
    since: Option<Instant>,
    told: bool,
}

impl Away {
    /// Notes that an attempt begins.
    fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Waits before the next attempt. If the coordinator has been away for long, says why, once.
    async fn wait(&mut self, progress: &Progress, why: &str) {
        let long = self.since.is_some_and(|since| since.elapsed() > AWAY_MAX);
        if long && !std::mem::replace(&mut self.told, true) {
            progress.say(&format!("note: the local coordinator does not accept the run: {why}"));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Prints the notice that a failed run is tried again.
pub(crate) fn say_retry(progress: &Progress, run: &v1::Run) {
    progress.say(&format!("note: the run had failed and is tried again: {}", run.message));
}

/// Prints the address of an accepted run's page, if there is a page, and opens it in a browser if requested.
fn say_page(children: &Children, name: &str, open: bool, progress: &Progress) {
    let Some(address) = children.page(name) else { return };
    progress.say(&format!("watch it at {address}"));
    if open && let Err(why) = page::open(&address) {
        progress.say(&format!("note: {why:#}"));
    }
}

/// Submits the run and follows it to its end. A coordinator that is killed is replaced.
async fn follow(
    children: &mut Children,
    name: &str,
    config: &Config,
    stop: &Stop,
    progress: &mut Progress,
    open: bool,
) -> anyhow::Result<Computed> {
    let coordinator = Coordinator::local(children.address());
    let mut last = v1::Run { name: name.into(), ..v1::Run::default() };
    let (mut first, mut away, mut spending) = (true, Away::default(), Spending::default());
    'connected: loop {
        children.replace_lost()?;
        if stop.is_asked() {
            return Ok((last, Vec::new()));
        }
        away.begin();
        let (mut client, run) = match take_up(&coordinator, name, config).await? {
            Ok(taken) => taken,
            Err(why) => {
                away.wait(progress, &why).await;
                if away.told && !children.has_store() {
                    bail!(
                        "the store of this run was removed or moved away while it was computed: move it back, if it is still \
                         there, and run the same command again"
                    );
                }
                continue;
            }
        };
        away = Away::default();
        // Whoever started this command wants the run to continue; but a failure during this command is final.
        let failed = run.state() == RunState::Failed;
        if run.state() == RunState::Paused || failed && first {
            if failed {
                say_retry(progress, &run);
            }
            match client.resume(v1::ResumeRequest { name: name.into() }).await {
                Err(status) if is_lost(&status) => continue,
                resumed => drop(resumed.map_err(refused)?),
            }
        }
        if std::mem::take(&mut first) {
            say_page(children, name, open, progress);
        }
        let Ok(changes) = client.watch(v1::WatchRequest { name: name.into() }).await else { continue };
        let mut changes = changes.into_inner();
        loop {
            let change = tokio::time::timeout(LOOK_INTERVAL, changes.message()).await;
            children.replace_lost()?;
            if stop.is_asked() {
                return Ok((last, Vec::new()));
            }
            match change {
                Err(_) => {
                    // Nothing changes while nobody computes, so without a terminal the reason would never be printed.
                    if last.state() == RunState::Running && last.workers == 0 {
                        progress.show(&last);
                    }
                    continue;
                }
                Ok(Ok(Some(mut run))) => {
                    spending.add_earlier(&mut run);
                    last = run;
                }
                Ok(_) => continue 'connected,
            }
            progress.show(&last);
            match last.state() {
                RunState::Finished | RunState::InDoubt => match remote::fetch(&mut client, name, |_| {}).await {
                    Ok(replicas) => return Ok((last, replicas)),
                    Err(status) if is_lost(&status) => continue 'connected,
                    Err(status) => return Err(refused(status)),
                },
                RunState::Failed | RunState::Cancelled | RunState::Blocked => return Ok((last, Vec::new())),
                _ => {}
            }
        }
    }
}
