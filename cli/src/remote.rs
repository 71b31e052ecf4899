//! Connections to a coordinator.

use std::{
    error::Error as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use evoxo_access::{AccessFile, Dialer, now_s, renew};
use evoxo_process::{Address, innermost};
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{self, RunState, run_service_client::RunServiceClient},
};
use serde_json::{Value, json};
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

/// A run as JSON.
pub(crate) fn run_to_json(run: &v1::Run) -> Value {
    let arm = |arm: &v1::ArmProgress| {
        json!({
            "name": arm.name,
            "replicas_total": arm.replicas_total,
            "replicas_finished": arm.replicas_finished,
            "rounds_done": arm.rounds_done,
            "rounds_total": arm.rounds_total,
            "primary_metric": arm.primary_metric_name,
            "value": arm.primary_metric,
        })
    };
    json!({
        "name": run.name,
        "experiment": run.kind,
        "state": state(run),
        "message": run.message,
        "config_hash": run.config_hash,
        "replicas_total": run.replicas_total,
        "replicas_finished": run.replicas_finished,
        "rounds_done": run.rounds_done,
        "rounds_total": run.rounds_total,
        "tasks_done": run.tasks_done,
        "tasks_assigned": run.tasks_assigned,
        "workers": run.workers,
        "slots": run.slots,
        "digest": run.digest,
        "notices": run.notices,
        "doubts": run.doubts.iter().map(doubt_to_json).collect::<Value>(),
        "arms": run.arms.iter().map(arm).collect::<Value>(),
    })
}

/// A task whose copies differed, as JSON.
pub(crate) fn doubt_to_json(doubt: &v1::Doubt) -> Value {
    json!({
        "task": doubt.task,
        "arm": doubt.arm,
        "replica": doubt.replica,
        "round": doubt.round,
        "worker": doubt.worker,
        "other_worker": doubt.other_worker,
        "output": doubt.output,
        "other_output": doubt.other_output,
    })
}

/// A run's state in a word or two.
pub(crate) fn state(run: &v1::Run) -> &'static str {
    match run.state() {
        RunState::Running => "running",
        RunState::Paused => "paused",
        RunState::Finished => "finished",
        RunState::Cancelled => "cancelled",
        RunState::Failed => "failed",
        RunState::Blocked => "blocked",
        RunState::InDoubt => "in doubt",
        RunState::Unspecified => "unknown",
    }
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
