//! The process: store, core, services, signals. It alternates between standby and leader as often as necessary; see
//! [`crate::standby`].

mod eyes;
mod log;
mod services;
mod turn;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use evoxo_common::experiment::Registry;
use evoxo_process::{Address, EndRequests, host_name};
use evoxo_proto::{
    Led, MESSAGE_BYTES_MAX,
    v1::{
        access_service_server::AccessServiceServer, run_service_server::RunServiceServer,
        worker_service_server::WorkerServiceServer,
    },
};
use log::Keeper;
use services::{Looking, Services, listen, reflection};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tower_layer::{Identity, Stack};
use tracing::{info, warn};
use turn::Loaded;

use crate::{
    access::Access,
    core::{self, Coordinator, Event},
    grpc::{
        accept::{Connection, accept, connections_max},
        access::AccessCalls,
        gate::{GateLayer, Role},
        run::Runs,
        secure::Handshakes,
        worker::Workers,
    },
    limits::peers::Peers,
    metrics,
    metrics::meters::Meters,
    page::{self, Away, Hosts, Page, Shown},
    recall,
    shell::own,
    shell::{self, Handle},
    standby::Patience,
    store::{Cluster, Epoch, Lock, Store, StoreError},
    trust::DrawKey,
};

/// Settings of a coordinator process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The access directory. With one, the coordinator speaks TLS and everybody needs a certificate.
    pub access: Option<PathBuf>,
    /// How long the certificates of workers are valid.
    pub worker_certificate_life: Duration,
    /// Allows an address that other hosts can reach without an access directory.
    pub insecure: bool,
    /// The store: a directory, or a bucket's address.
    pub store: String,
    /// The core's settings.
    pub core: core::Settings,
    /// What runs recall.
    pub recall: recall::Options,
    /// Shows the page on this host, and under these host names to others; `None` for no page.
    pub page_hosts: Option<Vec<String>>,
    /// The address of the page of a coordinator with an access directory; `None` for no page. Without an access directory the
    /// page is at `listen`.
    pub page: Option<SocketAddr>,
    /// How long a login on that page lasts.
    pub session_life: Duration,
    /// The address for figures; `None` for no figures. Whoever can reach it can read them.
    pub metrics: Option<SocketAddr>,
    /// Prints the address as the first line on standard output.
    pub announce: bool,
    /// Stops when standard input ends: for children of `evoxo run`.
    pub exit_with_stdin: bool,
    /// Waits until nobody leads in the store.
    pub standby: bool,
    /// How long a standby waits for a leader that does not answer.
    pub takeover_after: Duration,
    /// The address under which others reach this coordinator, if it differs from `listen`.
    pub advertise: Option<Address>,
}

impl Settings {
    /// Checks that the settings fit together, and refuses an address that other hosts can reach unless that is allowed.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.access.is_some() && self.insecure {
            return Err(
                "--access and --insecure exclude each other: with an access directory every connection is secure"
                    .into(),
            );
        }
        if self.access.is_some() && self.page.is_none() && self.page_hosts.iter().flatten().next().is_some() {
            return Err(
                "with --access there is no page unless --page gives its address: add --page ADDRESS:PORT".into()
            );
        }
        if self.session_life > SESSION_LIFE_MAX {
            return Err("a login lasts at most 30 days: give a shorter --session-life".into());
        }
        let weighed: BTreeSet<&String> = self.core.weights.iter().map(|(submitter, _)| submitter).collect();
        if weighed.len() < self.core.weights.len() {
            return Err("a submitter has one weight: give --weight once for each".into());
        }
        if self.listen.ip().is_loopback() || self.insecure || self.access.is_some() {
            return Ok(());
        }
        Err(format!(
            "{} can be reached from other hosts: give --access DIR, a directory made by `evoxo-coordinator init`, so \
             that only invited workers and people can join and nobody can eavesdrop; or listen on 127.0.0.1; or add \
             --insecure if you trust every host of that network",
            self.listen
        ))
    }
}

/// The longest life of a login.
const SESSION_LIFE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a stopping coordinator waits for its store.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest request message, in bytes: an experiment file of 1 MiB, and its name.
const REQUEST_BYTES_MAX: usize = (1 << 20) + 4096;
/// The longest request about access, in bytes: a signing request and a name.
const ACCESS_BYTES_MAX: usize = 16 << 10;
/// The interval of pings to a peer.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How long a peer may take to reply to a ping: as long as the longest `--silence`, because workers are watched more closely by
/// their heartbeats.
const PING_TIMEOUT: Duration = Duration::from_secs(60);
/// The most streams per connection.
const STREAMS_MAX: u32 = 256;
/// The most bytes that a connection may send before any of them is read.
const WINDOW_BYTES: u32 = 128 << 10;
/// How long the last messages may take to be sent.
const FLUSH: Duration = Duration::from_millis(30);
/// How long workers may take to read that another coordinator leads, and to leave.
const PARTING: Duration = Duration::from_millis(300);

/// What the process keeps, whether it leads or not.
struct Place {
    settings: Settings,
    registry: Registry,
    listener: std::net::TcpListener,
    /// The listener for figures.
    figures: Option<metrics::Endpoint>,
    /// The listener for the page, for people who log in.
    page: Option<page::Endpoint>,
    address: SocketAddr,
    access: Option<Access>,
    /// The most connections at once.
    connections: usize,
    lock: Lock,
    /// Runs the waiting for signals and the looks at the leader. The services have runtimes of their own.
    runtime: Looking,
    requests: EndRequests,
    /// Whether this process has led in the store.
    has_led: bool,
    /// The epoch in which it last led, and the cluster.
    led: Option<(u64, Cluster)>,
    patience: Patience,
}

/// How a period as leader ended.
enum Ended {
    Asked,
    /// Another coordinator leads.
    Superseded,
}

/// Runs a coordinator until it is asked to stop. In a process that a coordinator has started to compute one task, computes
/// that task.
///
/// # Errors
/// A sentence that says what failed, and what to do.
pub fn daemon(settings: &Settings, registry: Registry) -> anyhow::Result<()> {
    own::compute_if_asked(&registry);
    settings.check().map_err(anyhow::Error::msg)?;
    shell::end_process_on_panic();
    // The port comes first: a second coordinator that was started by mistake ends here, before it touches the store.
    let listener = listen(settings.listen)?;
    let store = PathBuf::from(&settings.store);
    let access = settings.access.as_deref().map(|directory| open_access(directory, settings)).transpose()?;
    let figures =
        settings.metrics.map(|address| metrics::Endpoint::listen(address, store, access.clone())).transpose()?;
    let page = settings.page.map(page::Endpoint::listen).transpose()?;
    // Dropped after everything else has ended.
    let _last_lines = access.as_ref().map(Access::last_lines);
    let address = listener.local_addr().context("the listener has no address")?;
    let runtime = Looking::start()?;
    let requests = runtime.block_on(async { EndRequests::listen(settings.exit_with_stdin) })?;
    let (settings, patience) = (settings.clone(), Patience::new(settings.takeover_after));
    let mut at_once = !settings.standby;
    let connections = connections_max(if page.is_some() { page::CONNECTIONS_MAX } else { 0 });
    let mut place = Place {
        settings,
        registry,
        listener,
        figures,
        page,
        address,
        access,
        connections,
        lock: Lock::default(),
        runtime,
        requests,
        has_led: false,
        led: None,
        patience,
    };
    let mut announced = place.settings.announce && !at_once;
    if announced {
        announce(address)?;
    }
    loop {
        let Some((led, loaded)) = turn::wait(&mut place, at_once)? else { return Ok(()) };
        let since = Instant::now();
        match lead(&mut place, led, loaded, &mut announced)? {
            Ended::Asked => return Ok(()),
            Ended::Superseded => place.patience.superseded(since.elapsed()),
        }
        (place.lock, place.has_led, at_once) = (Lock::default(), true, false);
    }
}

fn open_store(settings: &Settings, address: SocketAddr, registry: &Registry) -> Result<Store, StoreError> {
    let (mut store, trouble) = Store::open(&settings.store, registry.clone())?;
    trouble.iter().for_each(|sentence| warn!("{sentence}"));
    let advertised = match &settings.advertise {
        Some(address) => address.to_string(),
        None if address.ip().is_unspecified() => format!("{}:{}", host_name(), address.port()),
        None => address.to_string(),
    };
    store.advertise(advertised);
    Ok(store)
}

/// Leads until the process is asked to stop or another coordinator leads.
fn lead(place: &mut Place, store: Store, loaded: Loaded, announced: &mut bool) -> anyhow::Result<Ended> {
    let Loaded { saved, convicted, cordons } = loaded;
    let (settings, registry, known) = (&place.settings, place.registry.clone(), saved.len());
    let reader = store.reader();
    let secret = <[u8; 32]>::try_from(evoxo_access::Secret::draw().bytes()).context("a secret has 32 bytes")?;
    let core_settings = core::Settings { draw_key: DrawKey(secret), ..settings.core };
    let core = Coordinator::recover_knowing(core_settings, registry.clone(), saved, convicted).with_cordons(cordons);
    let recall = settings.recall.begin(&settings.store, |why| warn!("{why}"));
    // What is learnt is kept as long as this coordinator leads.
    let (recall, _keeper) = recall.unzip();
    let (handle, mut stopped) = shell::start(core, store, registry, place.access.clone(), recall);
    let mib = settings.core.memory_bytes_max >> 20;
    let how = if place.access.is_some() { "with TLS" } else { "in plain text" };
    let (address, spec) = (place.address, settings.store.clone());
    let mut led = handle.led.borrow().clone();
    let mut begun = false;
    loop {
        place.led = led.as_ref().map(|(epoch, cluster)| (epoch.number, *cluster)).or(place.led);
        let log =
            Keeper::begin(place.access.as_ref(), reader.clone(), led.as_ref().map(|(epoch, _)| epoch.number), address);
        let mut services = serve_as_leader(place, &handle, led.as_ref(), log.clone())?;
        if !std::mem::replace(&mut begun, true) {
            info!("listening on {address} {how}, store {spec}, {known} runs known, {mib} MiB of memory for runs");
        }
        if place.settings.announce && !std::mem::replace(announced, true) {
            announce(address)?;
        }
        match attend(place, &handle, &mut stopped, &mut services, led.map(|(epoch, _)| epoch), log.as_ref())? {
            Some(ended) => return Ok(ended),
            // The services restart, because they announce the epoch in which this coordinator leads.
            None => led = handle.led.borrow().clone(),
        }
        info!("the store {spec} can be written: this coordinator leads from now on");
    }
}

/// Starts everything that a leader serves, in this epoch if it can write the store.
fn serve_as_leader(
    place: &Place,
    core: &Handle,
    led: Option<&(Epoch, Cluster)>,
    keeper: Option<Keeper>,
) -> anyhow::Result<Services> {
    let (core, access, page_hosts) = (core.clone(), place.access.clone(), place.settings.page_hosts.clone());
    let (life, owned) = (place.settings.session_life, place.settings.exit_with_stdin);
    let said = led.map(|(epoch, cluster)| Led::new(*cluster, epoch.number));
    let (connections, epoch) = (place.connections, led.map(|(epoch, _)| epoch.number));
    let mut figures = place.figures.as_ref().map(metrics::Endpoint::again).transpose()?;
    let mut page = place.page.as_ref().map(page::Endpoint::again).transpose()?;
    Services::start(&place.listener, move |listener| async move {
        if let Some(figures) = figures.take() {
            figures.serve(Some((core.clone(), epoch)))?;
        }
        if let Some(keeper) = keeper {
            tokio::spawn(keeper.keep());
        }
        let page = show(&core, access.clone(), page_hosts.as_deref(), page.take().map(|own| (own, life)), owned)?;
        serve(listener, connections, core, access, page, said).await
    })
}

/// Waits for the end of this period; `None` if this coordinator has just become the leader.
fn attend(
    place: &mut Place,
    core: &Handle,
    stopped: &mut tokio::sync::oneshot::Receiver<()>,
    services: &mut Services,
    own: Option<Epoch>,
    log: Option<&Keeper>,
) -> anyhow::Result<Option<Ended>> {
    let (lock, requests, settings) = (&mut place.lock, &mut place.requests, &place.settings);
    let (leads, mut led) = (own.is_some(), core.led.clone());
    place.runtime.block_on(async {
        let why = tokio::select! {
            error = services.failed() => return Err(error),
            why = turn::superseded(core, own, lock, settings) => Some(why),
            Ok(_) = led.wait_for(Option::is_some), if !leads => return Ok(None),
            _ = requests.next() => None,
        };
        if let Some(why) = why {
            warn!("{why}: it is a standby from now on");
            core.give_up(why.clone()).await;
            // The receiver completes when the core ends.
            drop(stopped.await);
            if let Some(log) = log {
                log.end("superseded", &why).await;
            }
            tokio::time::sleep(PARTING).await;
            return Ok(Some(Ended::Superseded));
        }
        info!("stopping: saving unsaved work");
        core.tell(Event::Stop, None).await;
        tokio::select! {
            ended = timeout(STOP_TIMEOUT, stopped) => {
                ended.context("the last checkpoints were not stored in time; the previous ones are valid")?.ok();
                tokio::time::sleep(FLUSH).await;
                if let Some(log) = log {
                    log.end("step down", "this coordinator was asked to stop").await;
                }
                Ok(Some(Ended::Asked))
            }
            _ = requests.next() => bail!("stopped at once: work that was not saved is computed again after a restart"),
        }
    })
}

/// Opens the access directory, which must not be inside the store.
fn open_access(directory: &Path, settings: &Settings) -> anyhow::Result<Access> {
    let access = Access::open(directory, settings.worker_certificate_life)?;
    if let (Ok(directory), Ok(store)) = (directory.canonicalize(), Path::new(&settings.store).canonicalize())
        && directory.starts_with(&store)
    {
        bail!(
            "the access directory {} is in the store {}: whoever gets a copy of the store could grant themselves \
             access; move it",
            directory.display(),
            store.display()
        );
    }
    Ok(access)
}

/// Prints the address for the parent process.
fn announce(address: SocketAddr) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut output = evoxo_process::stdout();
    writeln!(output, "{address}")
        .and_then(|()| output.flush())
        .context("cannot announce the address on standard output")
}

/// The page for the shared port, if it is shown there. With an access directory the page is on its own listener instead, if
/// there is one. A coordinator that ends with its standard input is `owned` by the program at the other end.
fn show(
    core: &Handle,
    access: Option<Access>,
    hosts: Option<&[String]>,
    own: Option<(page::Endpoint, Duration)>,
    owned: bool,
) -> anyhow::Result<Option<Page>> {
    let Some(hosts) = hosts else { return Ok(None) };
    match (access, own) {
        (Some(access), Some((own, life))) => {
            // Under a name in the certificate, browsers can verify that this is the right coordinator.
            let hosts = Hosts::of_tls(&[hosts, &access.names()].concat());
            own.serve(Shown::Page(Page::start(core.clone(), hosts, Some((access.clone(), life)), false)), access)?;
            Ok(None)
        }
        (Some(_), None) => Ok(None),
        (None, _) => Ok(Some(Page::start(core.clone(), Hosts::new(hosts), None, owned))),
    }
}

/// Serves everybody, as the leader.
async fn serve(
    listener: TcpListener,
    connections: usize,
    core: Handle,
    access: Option<Access>,
    page: Option<Page>,
    led: Option<Led>,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    if let Some(led) = &led {
        health.set_service_status(eyes::service_of(led.epoch), tonic_health::ServingStatus::Serving).await;
    }
    tokio::spawn(tell_health(health, core.healthy.clone()));
    let meters = Arc::clone(&core.meters);
    let workers = WorkerServiceServer::new(Workers::new(core.clone(), led.clone()))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let calls = AccessServiceServer::new(AccessCalls::new(access.clone(), core.clone()))
        .max_decoding_message_size(ACCESS_BYTES_MAX);
    let (superseded, standby) = (core.superseded.clone(), core.standby.clone());
    let runs = RunServiceServer::new(Runs::new(core)).max_decoding_message_size(REQUEST_BYTES_MAX);
    let header = led.and_then(|led| http::HeaderValue::from_str(&led.to_string()).ok());
    let shown = page.map_or(Shown::Nothing, Shown::Page);
    let incoming = incoming(listener, connections, access, shown, meters)?;
    server(Role::Leader(header, superseded, standby))
        .add_service(health_service)
        .add_service(workers)
        .add_service(runs)
        .add_service(calls)
        .add_service(reflection().build_v1().context("the protocol cannot be described")?)
        .add_service(reflection().build_v1alpha().context("the protocol cannot be described")?)
        .serve_with_incoming(incoming)
        .await
        .context("the gRPC server ended")
}

/// Serves only the health, as a standby, and tells browsers why there is no page.
async fn serve_standby(
    listener: TcpListener,
    connections: usize,
    access: Option<Access>,
    why: watch::Receiver<String>,
    with_page: bool,
    loading: watch::Receiver<Option<turn::Loading>>,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    tokio::spawn(turn::tell_health(health, loading));
    let shown = if with_page { Shown::Away(Away::new(why.clone())) } else { Shown::Nothing };
    let incoming = incoming(listener, connections, access, shown, Arc::new(Meters::new()))?;
    let server = server(Role::Standby(why)).add_service(health_service);
    server.serve_with_incoming(incoming).await.context("the gRPC server ended")
}

/// Accepts connections within their limits.
fn incoming(
    listener: TcpListener,
    connections: usize,
    access: Option<Access>,
    shown: Shown,
    meters: Arc<Meters>,
) -> anyhow::Result<ReceiverStream<std::io::Result<Connection>>> {
    if let Some(access) = access.clone() {
        tokio::spawn(access.keep_up());
    }
    let handshakes = access.map(|access| Handshakes::start(access, Access::config)).transpose()?;
    Ok(accept(listener, connections, Peers::new(connections, handshakes.is_some()), handshakes, shown, meters))
}

fn server(role: Role) -> Server<Stack<GateLayer, Identity>> {
    Server::builder()
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .layer(GateLayer(role))
}

/// Keeps the health service up to date.
async fn tell_health(health: HealthReporter, mut healthy: tokio::sync::watch::Receiver<bool>) {
    loop {
        if *healthy.borrow_and_update() {
            health.set_serving::<WorkerServiceServer<Workers>>().await;
            health.set_serving::<RunServiceServer<Runs>>().await;
            health.set_serving::<AccessServiceServer<AccessCalls>>().await;
            health.set_service_status("", tonic_health::ServingStatus::Serving).await;
        } else {
            health.set_not_serving::<WorkerServiceServer<Workers>>().await;
            health.set_not_serving::<RunServiceServer<Runs>>().await;
            health.set_not_serving::<AccessServiceServer<AccessCalls>>().await;
            health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
        }
        if healthy.changed().await.is_err() {
            return;
        }
    }
}
