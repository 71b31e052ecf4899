//! Talking to a coordinator.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use evoxo_proto::{
    MESSAGE_BYTES_MAX,
    v1::{self, run_service_client::RunServiceClient},
};
use tonic::{
    Status,
    transport::{Channel, Endpoint, Uri},
};

/// Where the coordinator is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Coordinator {
    /// The coordinator's address
    #[arg(long = "coordinator", value_name = "HOST:PORT", default_value = "127.0.0.1:7600")]
    pub(crate) address: String,
}

/// A connection for questions.
pub(crate) type Client = RunServiceClient<Channel>;

/// The longest answer of a coordinator, in bytes: one replica with a history of ten million rows.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects.
pub(crate) async fn connect(address: &str) -> anyhow::Result<Client> {
    let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let wrong = |what: &str| crate::usage(format_args!("{address:?} {what}: give HOST:PORT, as in 127.0.0.1:7600"));
    let uri: Uri = url.parse().map_err(|_| wrong("is not an address"))?;
    if uri.scheme_str() != Some("http") || !["", "/"].contains(&uri.path()) {
        return Err(wrong("is no http:// address without a path"));
    }
    uri.port_u16().ok_or_else(|| wrong("has no port from 0 to 65535"))?;
    let endpoint = Endpoint::from(uri)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    let channel = endpoint.connect().await.map_err(|error| {
        let why = root_cause(&error);
        if why.contains("failed to lookup address") {
            return anyhow!("the host of {address} is not known ({why}): look at its name");
        }
        anyhow!("no coordinator answers at {address} ({why}): is evoxo-coordinator running there?")
    })?;
    Ok(RunServiceClient::new(channel)
        .max_decoding_message_size(ANSWER_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX))
}

/// What the system said, without the layers around it.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// A coordinator's refusal as one sentence.
pub(crate) fn refused(status: Status) -> anyhow::Error {
    match status.code() {
        tonic::Code::InvalidArgument => crate::usage(status.message()),
        tonic::Code::Unavailable | tonic::Code::Unknown | tonic::Code::Internal => {
            anyhow!("the coordinator does not answer any more: {}", status.message())
        }
        _ => anyhow!("{}", status.message()),
    }
}

/// Runs one conversation with a coordinator.
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
pub(crate) fn run_to_json(run: &v1::Run) -> serde_json::Value {
    serde_json::json!({
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
        "digest": run.digest,
        "notices": run.notices,
    })
}

/// A run's state in a word.
pub(crate) fn state(run: &v1::Run) -> &'static str {
    match run.state() {
        v1::RunState::Running => "running",
        v1::RunState::Paused => "paused",
        v1::RunState::Finished => "finished",
        v1::RunState::Cancelled => "cancelled",
        v1::RunState::Failed => "failed",
        v1::RunState::Held => "held",
        v1::RunState::Unspecified => "unknown",
    }
}
