//! The process: store, core, services, signals.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, bail};
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{run_service_server::RunServiceServer, worker_service_server::WorkerServiceServer},
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tonic::transport::Server;
use tracing::{info, warn};

use crate::{
    core::{self, Coordinator, Event},
    grpc::{accept::accept, run::Runs, worker::Workers},
    shell::{self, Handle},
    store::Store,
};

/// What a coordinator process is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Allow an address that other hosts can reach, although nothing is encrypted or authenticated yet.
    pub insecure: bool,
    /// A directory, or a bucket's address.
    pub store: String,
    /// For the core.
    pub core: core::Settings,
    /// Print the address as the first line on standard output.
    pub announce: bool,
    /// Stop when standard input ends: for children of `evoxo run`.
    pub exit_with_stdin: bool,
}

impl Settings {
    /// Refuses what would let strangers in.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.ip().is_loopback() || self.insecure {
            return Ok(());
        }
        Err(format!(
            "{} can be reached from other hosts, and nothing is encrypted or authenticated yet: listen on 127.0.0.1, or add \
             --insecure if you trust everybody on that network",
            self.listen
        ))
    }
}

/// How long a stopping coordinator waits for its store.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest message of a person, in bytes: an experiment file of 1 MiB, and its name.
const REQUEST_BYTES_MAX: usize = (1 << 20) + 4096;
/// A peer that does not answer a ping for so long is gone.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Streams of one connection.
const STREAMS_MAX: u32 = 256;
/// How long the last messages may take to leave.
const FLUSH: Duration = Duration::from_millis(30);

/// Runs a coordinator until it is told to stop.
///
/// # Errors
/// A sentence that says what could not be done, and what to do.
pub fn daemon(settings: &Settings) -> anyhow::Result<()> {
    settings.check().map_err(anyhow::Error::msg)?;
    shell::end_process_on_panic();
    // The port comes first: a second coordinator started by mistake ends here, before it takes the runs from the first.
    let listener = listen(settings.listen)?;
    let address = listener.local_addr().context("the listener has no address")?;
    let mut store = Store::open(&settings.store)?;
    let (saved, notices) = store.load()?;
    notices.iter().for_each(|notice| warn!("{notice}"));
    let known = saved.len();
    let core = Coordinator::recover(settings.core, saved);
    for run in core.unfinished() {
        // A run that cannot be led now is told about when it is written.
        if let Err(core::StoreFault::Failed(why) | core::StoreFault::Fenced(why)) = store.take_over(&run) {
            warn!("run {run}: {why}");
        }
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let listener =
        runtime.block_on(async { TcpListener::from_std(listener) }).context("cannot wait for connections")?;
    info!("listening on {address}, store {}, {known} runs known", settings.store);
    if settings.announce {
        announce(address)?;
    }
    runtime.block_on(async {
        let (handle, stopped) = shell::start(core, store);
        tokio::select! {
            served = serve(listener, handle.clone()) => served.context("the gRPC server ended")?,
            () = stop_asked(settings.exit_with_stdin) => {}
        }
        info!("stopping: saving what is not saved yet");
        handle.tell(Event::Stop).await;
        tokio::select! {
            ended = tokio::time::timeout(STOP_TIMEOUT, stopped) => {
                ended.context("the store did not take the last checkpoints in time; the ones before are good")?.ok();
                tokio::time::sleep(FLUSH).await;
                Ok(())
            }
            () = signalled() => bail!("stopped at once: what was not saved is computed again after a restart"),
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

/// The parent process reads the address there.
fn announce(address: SocketAddr) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut output = std::io::stdout();
    writeln!(output, "{address}")
        .and_then(|()| output.flush())
        .context("cannot announce the address on standard output")
}

async fn serve(listener: TcpListener, core: Handle) -> Result<(), tonic::transport::Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let workers = WorkerServiceServer::new(Workers { core: core.clone() })
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let runs = RunServiceServer::new(Runs { core }).max_decoding_message_size(REQUEST_BYTES_MAX);
    health.set_serving::<WorkerServiceServer<Workers>>().await;
    health.set_serving::<RunServiceServer<Runs>>().await;
    Server::builder()
        .http2_keepalive_interval(Some(PING_TIMEOUT / 2))
        .http2_keepalive_timeout(Some(PING_TIMEOUT / 2))
        .max_concurrent_streams(STREAMS_MAX)
        .add_service(health_service)
        .add_service(workers)
        .add_service(runs)
        .serve_with_incoming(accept(listener))
        .await
}

async fn stop_asked(exit_with_stdin: bool) {
    tokio::select! {
        () = signalled() => {}
        () = stdin_ended(), if exit_with_stdin => {}
    }
}

/// SIGTERM or SIGINT.
async fn signalled() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// The parent is gone when nobody holds the other end of standard input.
async fn stdin_ended() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        drop(std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
        let _ = sender.send(());
    });
    drop(receiver.await);
}
