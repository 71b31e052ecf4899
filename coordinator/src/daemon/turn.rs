//! Becoming the leader. The store is opened; a standby watches the leader, takes over the store, and only then loads it. A
//! coordinator that was not started as a standby takes over at once. Meanwhile clients learn what the coordinator is waiting
//! for.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use evoxo_proto::v1;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use tonic_health::{ServingStatus, server::HealthReporter};
use tracing::{info, warn};

use super::{
    Place, Services, Settings,
    eyes::{Eyes, LOOK_INTERVAL, STORE_TIMEOUT, service_of},
};
use crate::{
    access::Access,
    core::{StoreFault, Write},
    metrics,
    page::{self, Away, Shown},
    saved::{SavedRun, seal_conviction, seal_revocation},
    shell::Handle,
    standby::Watch,
    store::{
        Epoch, Leader, Lock, Outlook, Refused, Security, Store, StoreError, record_lost, superseded_by,
        superseded_by_somebody,
    },
};

/// How long a coordinator that has taken over retries to read the store.
const LOAD_PATIENCE: Duration = Duration::from_secs(30);
/// The fewest missed looks after which a standby takes over.
const MISSES_MIN: u32 = 2;

/// Opens the store, waits, takes over and loads; `None` if the process was asked to end.
pub(super) fn wait(place: &mut Place, at_once: bool) -> anyhow::Result<Option<(Store, Loaded)>> {
    let begins = if at_once { STARTING.to_owned() } else { away_sentence(None, None) };
    let (say, said) = watch::channel(begins.clone());
    let (loads, loading) = watch::channel(None);
    let (access, connections, shown) = (place.access.clone(), place.connections, place.settings.store.clone());
    // With an access directory the page has its own port.
    let with_page = place.access.is_none() && place.settings.page_hosts.is_some();
    let mut figures = place.figures.as_ref().map(metrics::Endpoint::again).transpose()?;
    let mut page = place.page.as_ref().map(page::Endpoint::again).transpose()?;
    let mut services = Services::start(&place.listener, move |listener| async move {
        if let Some(figures) = figures.take() {
            figures.serve(None)?;
        }
        if let (Some(page), Some(access)) = (page.take(), access.clone()) {
            page.serve(Shown::Away(Away::new(said.clone())), access)?;
        }
        super::serve_standby(listener, connections, access, said, with_page, loading).await
    })?;
    let Some(mut store) = open(place, &mut services, |why| drop(say.send_replace(format!("{begins}, {why}"))))? else {
        return Ok(None);
    };
    say.send_replace(begins);
    if at_once {
        place.lock = Lock::take(&shown)?;
    } else {
        info!("this coordinator is a standby of the store {shown} and takes over when nobody leads there");
        let (patience, usual) = (place.patience.time(), place.settings.takeover_after);
        if patience > usual {
            let seconds = patience.as_secs();
            info!(
                "this coordinator was superseded soon after it took over, so this time it waits {seconds} s for an \
                 answer of the leader"
            );
        }
        if !stand_by(place, &mut store, &mut services, &say)? {
            return Ok(None);
        }
        place.lock.take_if_free(&place.settings.store);
    }
    Ok(load_in_time(place, &mut store, at_once, &say, &loads)?.map(|loaded| (store, loaded)))
}

/// What clients learn from a coordinator that leads as soon as it can.
const STARTING: &str = "this coordinator is starting";

/// Opens the store, with as many attempts as it takes; `None` if the process was asked to end. It waits for a bucket whose
/// server answers, even if the server refuses the key: the key may be right, and unknown to the server for a while. If only a
/// person can repair the fault, the process ends, unless it has led in this store before.
fn open(place: &mut Place, services: &mut Services, say: impl Fn(&str)) -> anyhow::Result<Option<Store>> {
    let (mut waits, mut told) = (place.has_led, false);
    loop {
        // The receiver outlives the future below: a store that nobody takes must not be dropped within a runtime.
        let (opened, mut opening) = oneshot::channel();
        let (settings, address, registry) = (place.settings.clone(), place.address, place.registry.clone());
        // On a separate thread, because a store that hangs must not keep the process alive.
        let body = move || drop(opened.send(super::open_store(&settings, address, &registry)));
        std::thread::Builder::new()
            .name("opening".into())
            .spawn(body)
            .context("cannot start a thread for the store")?;
        let outcome = place.runtime.block_on(async {
            tokio::select! {
                outcome = &mut opening => outcome.map(Some).context("the store could not be opened"),
                _ = place.requests.next() => Ok(None),
                error = services.failed() => Err(error),
            }
        })?;
        let error = match outcome {
            None => return Ok(None),
            Some(Ok(store)) => {
                if told {
                    info!("the store {} can be used now", place.settings.store);
                }
                return Ok(Some(store));
            }
            Some(Err(error)) => error,
        };
        waits |= error.outlook() != Outlook::Stays;
        if !waits {
            return Err(error.into());
        }
        if !std::mem::replace(&mut told, true) {
            warn!("{error}; opening it is retried until that succeeds");
        }
        say(&format!("and cannot use its store yet: {error}"));
        if place.is_asked_within(LOOK_INTERVAL) {
            return Ok(None);
        }
    }
}

/// Takes over the store, whoever leads. The error says why that is not possible yet.
fn lead_at_once(place: &Place, store: &mut Store) -> Result<(), String> {
    let own = place.security();
    if let Ok(Some(Leader { security: Some(before), epoch, .. })) = store.leader()
        && before != own
    {
        let (shown, number) = (store.shown(), epoch.number);
        warn!("the store {shown} was led {before} in epoch {number}, and this coordinator leads it {own} from now on");
    }
    store.speak(own);
    let led = store.lead();
    led.map_err(|(StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why))| why)
}

/// Looks for the leader until it takes over the store; false if the process was asked to end.
fn stand_by(
    place: &mut Place,
    store: &mut Store,
    services: &mut Services,
    say: &watch::Sender<String>,
) -> anyhow::Result<bool> {
    let led = place.led;
    if let Some((_, cluster)) = led {
        store.remember(cluster);
    }
    let mut eyes = Eyes::new(store.reader(), place.has_led, led.map(|(epoch, _)| epoch));
    let mut watch = Watch::new(misses_max(place.patience.time()));
    let mut unwritable = None;
    loop {
        let next = Instant::now() + LOOK_INTERVAL;
        let own = place.security();
        let seen = place.runtime.block_on(async {
            tokio::select! {
                seen = eyes.look(own, place.access.as_ref()) => Ok(Some(seen)),
                _ = place.requests.next() => Ok(None),
                error = services.failed() => Err(error),
            }
        })?;
        let Some((look, leader)) = seen else { return Ok(false) };
        say.send_replace(away_sentence(leader.as_ref(), eyes.trouble()));
        if !watch.look(&look) {
            unwritable = None;
            if watch.is_sure() && place.patience.calm_down() {
                watch = Watch::new(misses_max(place.patience.time()));
                let seconds = place.patience.time().as_secs_f64();
                info!(
                    "the leader has answered for long enough: from now on it counts as gone after {seconds} s \
                       without an answer"
                );
            }
        } else {
            store.speak(own);
            match take_over(store, leader.as_ref(), watch.misses()) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // It is retried twice a second, and only a new reason is logged.
                Err(why) => {
                    if unwritable.as_ref() != Some(&why) {
                        warn!("{why}");
                    }
                    unwritable = Some(why);
                }
            }
        }
        if place.is_asked_within(next.saturating_duration_since(Instant::now())) {
            return Ok(false);
        }
    }
}

impl Place {
    /// How this coordinator's connections are secured now.
    fn security(&self) -> Security {
        self.access.as_ref().map_or(Security::PlainText, |access| Security::Authority(access.pin()))
    }

    /// Waits for this time, or until the process is asked to end; returns whether it was asked.
    pub(super) fn is_asked_within(&mut self, time: Duration) -> bool {
        self.runtime.block_on(async { timeout(time, self.requests.next()).await }).is_ok()
    }
}

/// The runs and convictions that a new leader loads.
pub(super) struct Loaded {
    pub(super) saved: Vec<SavedRun>,
    pub(super) convicted: BTreeSet<Arc<str>>,
    pub(super) cordons: Vec<v1::Cordon>,
}

/// Loads the store; `None` if the process was asked to end. If the fault may pass by itself, loading is retried until it
/// succeeds. After [`LOAD_PATIENCE`] another standby may take its turn, because perhaps only this host cannot read the store.
/// A lasting fault ends a process that was to lead at once. A standby that has taken over retries for a while, because nobody
/// else leads now.
fn load_in_time(
    place: &mut Place,
    store: &mut Store,
    at_once: bool,
    say: &watch::Sender<String>,
    loads: &watch::Sender<Option<Loading>>,
) -> anyhow::Result<Option<Loaded>> {
    let (start, mut told) = (Instant::now(), false);
    let doing = if at_once { STARTING } else { "this coordinator takes over" };
    loop {
        let leads = match at_once && store.epoch().is_none() {
            true => lead_at_once(place, store),
            false => Ok(()),
        };
        // Another standby must see that somebody leads, however long loading takes.
        let (ended, fails) = (store.ended(), start.elapsed() > LOAD_PATIENCE);
        loads.send_replace(store.epoch().map(|epoch| Loading { epoch: epoch.number, ended, fails }));
        match load(store, place.access.as_ref()) {
            Ok(loaded) => {
                // Without the lead, the runs can still be shown. The coordinator leads as soon as the store can be written.
                leads.err().iter().for_each(|why| warn!("{why}"));
                return Ok(Some(loaded));
            }
            Err(error) if error.outlook() == Outlook::Stays && (at_once || fails) => return Err(error.into()),
            Err(error) => {
                say.send_replace(format!("{doing}, and cannot read its store yet: {error}"));
                if !std::mem::replace(&mut told, true) {
                    warn!("{error}; retrying");
                }
            }
        }
        if place.is_asked_within(LOOK_INTERVAL) {
            return Ok(None);
        }
    }
}

fn load(store: &mut Store, access: Option<&Access>) -> Result<Loaded, StoreError> {
    let (Refused { mut convicted, revoked }, notices) = store.load_refused()?;
    if let Some(access) = access {
        let own = access.take_over(&Refused { convicted: convicted.clone(), revoked });
        share(store, &own);
        convicted.extend(own.convicted);
    }
    let (cordons, damaged) = store.load_cordons()?;
    let (saved, more) = store.load()?;
    notices.iter().chain(&damaged).chain(&more).for_each(|notice| warn!("{notice}"));
    Ok(Loaded { saved, convicted, cordons })
}

/// Writes to the store the refusals that only this coordinator's access directory has. They come from a build that kept them
/// there, or from a time when the store could not be written or was a different one.
fn share(store: &mut Store, own: &Refused) {
    let convicted = own.convicted.iter().map(|identity| Write::Convict {
        identity: Arc::clone(identity),
        bytes: seal_conviction(identity, "it was known to a coordinator before"),
    });
    let revoked =
        own.revoked.iter().map(|id| Write::Revoke { id: id.to_string(), bytes: seal_revocation(&id.to_string(), "") });
    for write in convicted.chain(revoked) {
        let Err(fault) = store.write("", &write) else { continue };
        let (StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why)) = fault;
        return warn!(
            "the store does not have all refusals of this coordinator yet, so a standby does not know which \
                      workers to refuse: {why}"
        );
    }
}

/// The number of looks in this time.
fn misses_max(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(LOOK_INTERVAL.as_millis())).unwrap_or(u32::MAX).max(MISSES_MIN)
}

/// Creates the next epoch; false if another coordinator was faster.
///
/// # Errors
/// A sentence if the store cannot be written.
fn take_over(store: &mut Store, leader: Option<&Leader>, misses: u32) -> Result<bool, String> {
    match store.lead_after(leader) {
        Ok(true) => {
            match leader {
                Some(leader) => {
                    let Leader { epoch, who, address, .. } = leader;
                    warn!(
                        "this coordinator takes over: {who} at {address:?}, epoch {}, did not answer {misses} times",
                        epoch.number
                    );
                }
                None => info!("this coordinator takes over: nobody leads in this store"),
            }
            Ok(true)
        }
        Ok(false) => {
            info!("another standby was faster");
            Ok(false)
        }
        Err(StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why)) => Err(why),
    }
}

/// The sentence for clients of a standby.
fn away_sentence(leader: Option<&Leader>, trouble: Option<&str>) -> String {
    match (leader, trouble) {
        (Some(Leader { address, epoch, .. }), trouble) if !address.is_empty() => {
            let trouble = trouble.map(|why| format!("; {why}")).unwrap_or_default();
            format!("this coordinator is a standby: {address} leads in epoch {}, or did so last{trouble}", epoch.number)
        }
        (_, Some(why)) => format!("this coordinator is a standby, and cannot tell whether somebody leads: {why}"),
        (_, None) => "this coordinator is a standby".to_owned(),
    }
}

/// Waits until another coordinator leads, or until this one must step down because a standby may be able to read the store
/// when this one cannot. Returns the reason.
pub(super) async fn superseded(core: &Handle, own: Option<Epoch>, lock: &mut Lock, settings: &Settings) -> String {
    let spec = &settings.store;
    let mut refused = core.superseded.clone();
    // The last time the store could be read.
    let mut read = Instant::now();
    loop {
        let pause = timeout(LOOK_INTERVAL, refused.wait_for(Option::is_some)).await;
        if let Ok(Ok(why)) = pause
            && let Some(why) = why.as_ref()
        {
            return why.clone();
        }
        lock.take_if_free(spec);
        let Some(own) = &own else { continue };
        match timeout(STORE_TIMEOUT, core.reader.highest_epoch()).await {
            Ok(Ok(Some(epoch))) if epoch == *own => read = Instant::now(),
            Ok(Ok(Some(_))) => {
                return match timeout(STORE_TIMEOUT, core.reader.leader()).await {
                    Ok(Ok(Some(leader))) => superseded_by(&leader, spec),
                    _ => superseded_by_somebody(spec),
                };
            }
            Ok(Ok(None)) => {
                return record_lost(spec);
            }
            // Nobody can tell who leads. Without a standby, this coordinator continues in memory.
            Ok(Err(_)) | Err(_) => {
                let gone = read.elapsed();
                if gone >= settings.takeover_after && core.standby.is_there(read) {
                    let seconds = gone.as_secs();
                    return format!(
                        "the store {spec} could not be read for {seconds} s, and a standby may be able to \
                                    read it"
                    );
                }
            }
        }
    }
}

/// A coordinator that has taken over and is loading.
#[derive(Clone, Debug)]
pub(super) struct Loading {
    epoch: u64,
    /// How many operations of the store have ended.
    ended: Arc<AtomicU64>,
    /// They have failed for [`LOAD_PATIENCE`].
    fails: bool,
}

/// Keeps a standby's health service up to date. The standby serves nobody, but reports that it leads while it loads. It stops
/// reporting so while the store is slow to answer or has failed for long. Then another standby must have its turn, because a
/// caller blocked in the store cannot be interrupted.
pub(super) async fn tell_health(health: HealthReporter, mut loading: watch::Receiver<Option<Loading>>) {
    health.set_service_status("", ServingStatus::NotServing).await;
    let (mut before, mut waits) = (None, false);
    loop {
        // The loader sends this before each attempt.
        let Ok(Some(Loading { epoch, ended, fails })) =
            loading.wait_for(Option::is_some).await.map(|loading| loading.clone())
        else {
            return;
        };
        let now = ended.load(Ordering::Relaxed);
        let still = fails || before == Some(now);
        if still && !waits {
            let (seconds, does) = (LOAD_PATIENCE.as_secs(), if fails { "been readable" } else { "answered" });
            warn!("the store has not {does} for {seconds} s: a standby may take over");
        }
        (before, waits) = (Some(now), still);
        let status = if still { ServingStatus::NotServing } else { ServingStatus::Serving };
        health.set_service_status(service_of(epoch), status).await;
        let failing = async { drop(loading.wait_for(|loading| loading.as_ref().is_some_and(|it| it.fails)).await) };
        tokio::select! {
            () = failing, if !fails => {}
            () = tokio::time::sleep(LOAD_PATIENCE) => {}
        }
    }
}
