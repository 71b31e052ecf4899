//! The process: store, core, services, signals.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use evoxo_common::experiment::Registry;
use evoxo_process::EndRequests;
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{
        access_service_server::AccessServiceServer, run_service_server::RunServiceServer,
        worker_service_server::WorkerServiceServer,
    },
};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

use crate::{
    access::Access,
    core::{self, Coordinator, Event},
    grpc::{
        accept::{accept, connections_max},
        access::AccessCalls,
        gate::GateLayer,
        run::Runs,
        secure::Handshakes,
        worker::Workers,
    },
    page::{Hosts, Page},
    peers::Peers,
    shell::{self, Handle},
    store::Store,
};

/// Settings of a coordinator process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The access directory: with it, TLS is spoken and everybody needs a certificate.
    pub access: Option<PathBuf>,
    /// How long the certificates of workers are valid.
    pub worker_certificate_life: Duration,
    /// Allow an address that other hosts can reach without an access directory.
    pub insecure: bool,
    /// A directory, or a bucket's address.
    pub store: String,
    /// For the core.
    pub core: core::Settings,
    /// Show the page, on this host and to those who call it by one of these names; `None` for no page.
    pub page_hosts: Option<Vec<String>>,
    /// Print the address as the first line on standard output.
    pub announce: bool,
    /// Stop when standard input ends: for children of `evoxo run`.
    pub exit_with_stdin: bool,
}

impl Settings {
    /// Refuses an address that other hosts can reach, unless that is allowed.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.access.is_some() && self.insecure {
            return Err(
                "--access and --insecure exclude each other: with an access directory nothing is insecure".into()
            );
        }
        if self.listen.ip().is_loopback() || self.insecure || self.access.is_some() {
            return Ok(());
        }
        Err(format!(
            "{} can be reached from other hosts: give --access DIR, a directory that `evoxo-coordinator init` makes, so \
             that only who was invited can join and nobody can listen; or listen on 127.0.0.1; or add --insecure if \
             you trust every host of that network",
            self.listen
        ))
    }
}

/// How long a stopping coordinator waits for its store.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest request message, in bytes: an experiment file of 1 MiB, and its name.
const REQUEST_BYTES_MAX: usize = (1 << 20) + 4096;
/// The longest request about access, in bytes: a signing request and a name.
const ACCESS_BYTES_MAX: usize = 16 << 10;
/// The interval of pings to a peer, and the time it has to reply.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Streams per connection.
const STREAMS_MAX: u32 = 256;
/// Bytes that a connection may send before any of them is read.
const WINDOW_BYTES: u32 = 128 << 10;
/// The time for the last messages to be sent.
const FLUSH: Duration = Duration::from_millis(30);

/// Runs a coordinator until it is asked to stop.
///
/// # Errors
/// A sentence that says what could not be done, and what to do.
pub fn daemon(settings: &Settings, registry: Registry) -> anyhow::Result<()> {
    settings.check().map_err(anyhow::Error::msg)?;
    shell::end_process_on_panic();
    // The port comes first: if a second coordinator is started by mistake, it ends here, before it touches the store.
    let listener = listen(settings.listen)?;
    let access = settings.access.as_deref().map(|directory| open_access(directory, settings)).transpose()?;
    let address = listener.local_addr().context("the listener has no address")?;
    let (mut store, trouble) = Store::open(&settings.store, registry.clone())?;
    trouble.iter().for_each(|sentence| warn!("{sentence}"));
    let (saved, notices) = store.load()?;
    notices.iter().for_each(|notice| warn!("{notice}"));
    let known = saved.len();
    let core = Coordinator::recover(settings.core, registry.clone(), saved);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let listener =
        runtime.block_on(async { TcpListener::from_std(listener) }).context("cannot wait for connections")?;
    let mib = settings.core.memory_bytes_max >> 20;
    let how = if access.is_some() { "with TLS" } else { "in plain text" };
    info!("listening on {address} {how}, store {}, {known} runs known, {mib} MiB of memory for runs", settings.store);
    if settings.announce {
        announce(address)?;
    }
    runtime.block_on(async {
        let mut requests = EndRequests::listen(settings.exit_with_stdin)?;
        let (handle, stopped) = shell::start(core, store, registry);
        tokio::select! {
            served = serve(listener, handle.clone(), access, settings.page_hosts.as_deref()) => served?,
            _ = requests.next() => {}
        }
        info!("stopping: saving what is not saved yet");
        handle.tell(Event::Stop, None).await;
        tokio::select! {
            ended = tokio::time::timeout(STOP_TIMEOUT, stopped) => {
                ended.context("the last checkpoints were not stored in time; the previous ones are valid")?.ok();
                tokio::time::sleep(FLUSH).await;
                Ok(())
            }
            _ = requests.next() => bail!("stopped at once: work that was not saved is computed again after a restart"),
        }
    })
}

fn listen(address: SocketAddr) -> anyhow::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address}: is another coordinator running there? choose another port with --listen")
    })?;
    listener.set_nonblocking(true).context("cannot wait for connections")?;
    Ok(listener)
}

/// Opens the access directory, which must not be in the store.
fn open_access(directory: &Path, settings: &Settings) -> anyhow::Result<Access> {
    let access = Access::open(directory, settings.worker_certificate_life)?;
    if let (Ok(directory), Ok(store)) = (directory.canonicalize(), Path::new(&settings.store).canonicalize())
        && directory.starts_with(&store)
    {
        bail!(
            "the access directory {} is in the store {}: whoever gets a copy of the store could let himself in; \
             move it",
            directory.display(),
            store.display()
        );
    }
    Ok(access)
}

/// Prints the address for the parent process.
fn announce(address: SocketAddr) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut output = std::io::stdout();
    writeln!(output, "{address}")
        .and_then(|()| output.flush())
        .context("cannot announce the address on standard output")
}

async fn serve(
    listener: TcpListener,
    core: Handle,
    access: Option<Access>,
    page_hosts: Option<&[String]>,
) -> anyhow::Result<()> {
    // Browsers have no certificate of the cluster.
    let page_hosts = page_hosts.filter(|_| access.is_none());
    let page = page_hosts.map(|hosts| Page::start(core.clone(), Hosts::new(hosts)));
    let (health, health_service) = tonic_health::server::health_reporter();
    tokio::spawn(tell_health(health, core.healthy.clone()));
    let workers = WorkerServiceServer::new(Workers { core: core.clone() })
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let calls = AccessServiceServer::new(AccessCalls::new(access.clone())).max_decoding_message_size(ACCESS_BYTES_MAX);
    let runs = RunServiceServer::new(Runs::new(core)).max_decoding_message_size(REQUEST_BYTES_MAX);
    let connections = connections_max();
    let peers = Peers::new(connections);
    if let Some(access) = access.clone() {
        tokio::spawn(access.keep_up());
    }
    let handshakes = access.map(Handshakes::start).transpose()?;
    Server::builder()
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_INTERVAL))
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .layer(GateLayer)
        .add_service(health_service)
        .add_service(workers)
        .add_service(runs)
        .add_service(calls)
        .serve_with_incoming(accept(listener, connections, peers, handshakes, page))
        .await
        .context("the gRPC server ended")
}

/// Keeps the health service up to date.
async fn tell_health(health: HealthReporter, mut healthy: tokio::sync::watch::Receiver<bool>) {
    loop {
        if *healthy.borrow_and_update() {
            health.set_serving::<WorkerServiceServer<Workers>>().await;
            health.set_serving::<RunServiceServer<Runs>>().await;
            health.set_service_status("", tonic_health::ServingStatus::Serving).await;
        } else {
            health.set_not_serving::<WorkerServiceServer<Workers>>().await;
            health.set_not_serving::<RunServiceServer<Runs>>().await;
            health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
        }
        if healthy.changed().await.is_err() {
            return;
        }
    }
}
