//! The services on the port, as leader or as standby, on a thread with its own runtime. When the process changes from one to
//! the other, all connections and everything that was started for them end.

use std::{net::SocketAddr, ops::Deref, thread::JoinHandle};

use anyhow::{Context as _, anyhow};
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot};

/// A runtime for the code that waits for signals and looks at the store. Dropping it waits for nothing: a store that hangs
/// must not keep the process alive.
pub(super) struct Looking(Option<Runtime>);

impl Looking {
    /// Starts the runtime.
    ///
    /// # Errors
    /// If the system denies it.
    pub(super) fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self(Some(runtime.context("cannot start a runtime")?)))
    }
}

impl Deref for Looking {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Services that run until this is dropped.
pub(super) struct Services {
    end: Option<oneshot::Sender<()>>,
    failed: oneshot::Receiver<anyhow::Error>,
    thread: Option<JoinHandle<()>>,
}

impl Services {
    /// Starts the services that `serve` makes of the listener.
    ///
    /// # Errors
    /// If the system denies a runtime or a thread.
    pub(super) fn start<S, F>(listener: &std::net::TcpListener, serve: S) -> anyhow::Result<Self>
    where
        S: FnOnce(TcpListener) -> F + Send + 'static,
        F: Future<Output = anyhow::Result<()>>,
    {
        let (end, ending) = oneshot::channel();
        let (fail, failed) = oneshot::channel();
        let listener = listener.try_clone().context("cannot wait for connections")?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
        let body = move || {
            let ended = runtime.block_on(async {
                let listener = TcpListener::from_std(listener).context("cannot wait for connections")?;
                tokio::select! {
                    served = serve(listener) => served,
                    _ = ending => Ok(()),
                }
            });
            // Reading and parsing on other threads is not waited for.
            runtime.shutdown_background();
            if let Err(error) = ended {
                // Nobody waits for the error if the process is ending.
                drop(fail.send(error));
            }
        };
        let thread = std::thread::Builder::new().name("grpc".into()).spawn(body);
        let thread = Some(thread.context("cannot start a thread for connections")?);
        Ok(Self { end: Some(end), failed, thread })
    }

    /// Waits until the services fail, and returns why.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        (&mut self.failed).await.unwrap_or_else(|_| anyhow!("the gRPC server ended"))
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            drop(thread.join());
        }
    }
}

/// Listens at this address.
pub(super) fn listen(address: SocketAddr) -> anyhow::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address}: is another coordinator running there? choose another port with --listen")
    })?;
    listener.set_nonblocking(true).context("cannot wait for connections")?;
    Ok(listener)
}

/// Describes the protocol, for callers who may look at runs.
pub(super) fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(evoxo_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
