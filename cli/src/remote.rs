//! Connections to a coordinator.

use std::{
    error::Error as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use evoxo_access::{AccessFile, Dialer, now_s, renew};
use evoxo_coordinator::shown::state;
pub(crate) use evoxo_coordinator::shown::{doubt_to_json, run_to_json};
use evoxo_process::{Address, innermost};
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{self, RunState, run_service_client::RunServiceClient},
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::say::usage;

/// The option for the coordinator's address.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Coordinator {
    /// The coordinator's address
    #[arg(
        long = "coordinator",
        value_name = "HOST:PORT",
        env = "EVOXO_COORDINATOR",
        hide_env_values = true,
        default_value_t
    )]
    pub(crate) address: Address,
    /// The access file, for a coordinator with TLS: `evoxo join` makes one of a token
    #[arg(long, value_name = "FILE", env = "EVOXO_ACCESS", hide_env_values = true)]
    pub(crate) access: Option<PathBuf>,
}

impl Coordinator {
    /// A coordinator of our own, on this machine.
    pub(crate) fn local(address: Address) -> Self {
        Self { address, access: None }
    }
}

/// A connection for requests.
pub(crate) type Client = RunServiceClient<Channel>;

/// The longest response of a coordinator, in bytes: one replica with a history of ten million rows.
const RESPONSE_BYTES_MAX: usize = 1 << 30;

/// The time in which a connection must be open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects.
pub(crate) async fn connect(coordinator: &Coordinator) -> anyhow::Result<Client> {
    let channel = channel(coordinator).await?;
    Ok(RunServiceClient::new(channel)
        .max_decoding_message_size(RESPONSE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX))
}

/// A connection for any service.
pub(crate) async fn channel(coordinator: &Coordinator) -> anyhow::Result<Channel> {
    let address = &coordinator.address;
    let dialer = match &coordinator.access {
        None => Dialer::plain(),
        Some(path) => Dialer::with(&access_file(path, address).await?)?,
    };
    let endpoint = Endpoint::from(address.uri())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    dialer.connect(&endpoint).await.map_err(|error| {
        let why = innermost(&error);
        if why.contains("failed to lookup address") {
            return anyhow!("the host of {address} is not known ({why}): check its name");
        }
        anyhow!("no coordinator answers at {address} ({why}): is evoxo-coordinator running there?")
    })
}

/// The access file, renewed if it is time and the coordinator can be reached.
async fn access_file(path: &Path, address: &Address) -> anyhow::Result<AccessFile> {
    let file = AccessFile::load(path)?;
    let due = file.certificate().is_ok_and(|facts| (facts.renew_at_s()..facts.expires_s).contains(&now_s()));
    match due {
        // If that fails, the old one is still good; who is refused gets the reason from the request itself.
        true => match renew(&file, address).await {
            Ok(renewed) => {
                // If it cannot be kept, the next command renews the old one again.
                drop(renewed.store(path));
                Ok(renewed)
            }
            Err(_) => Ok(file),
        },
        false => Ok(file),
    }
}

/// An error in one sentence: the coordinator's own message, if it responded.
pub(crate) fn refused(status: Status) -> anyhow::Error {
    match status.source() {
        Some(error) => anyhow!("the connection to the coordinator was lost: {}", innermost(error)),
        None if status.code() == Code::InvalidArgument => usage(status.message()),
        None => anyhow!("{}", status.message()),
    }
}

/// Whether the request may be repeated: the connection was lost, or the coordinator is about to stop.
pub(crate) fn is_lost(status: &Status) -> bool {
    status.source().is_some() || matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
}

/// Runs requests to a coordinator.
pub(crate) fn converse<T>(conversation: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    runtime.block_on(conversation)
}

/// All replicas of a run that have begun.
pub(crate) async fn fetch(client: &mut Client, name: &str) -> Result<Vec<v1::Replica>, Status> {
    let request = v1::FetchRequest { name: name.into() };
    let mut stream = client.fetch(request).await?.into_inner();
    let mut replicas = Vec::new();
    while let Some(replica) = stream.message().await? {
        replicas.push(replica);
    }
    Ok(replicas)
}

/// Why a run does not advance, as the end of a sentence.
pub(crate) fn standstill(run: &v1::Run) -> String {
    match run.state() {
        RunState::Finished => String::new(),
        RunState::Running if run.workers == 0 => format!("; no worker computes {:?} yet", run.kind),
        RunState::Running if run.message.is_empty() => String::new(),
        RunState::Running => format!("; {}", run.message),
        _ if run.message.is_empty() => format!("; {}", state(run)),
        _ => format!("; {}: {}", state(run), run.message),
    }
}
