//! Connections to a coordinator.

use std::{
    error::Error as _,
    fmt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use evoxo_access::{AccessFile, Dialer, at_any, now_s, renew};
use evoxo_process::{Address, Addresses, innermost};
pub(crate) use evoxo_proto::shown::{doubt_to_json, run_to_json};
use evoxo_proto::{
    LEADER_HEADER, Led, MESSAGE_BYTES_MAX,
    shown::state,
    v1::{self, RunState, run_service_client::RunServiceClient},
};
use tokio::{task::JoinSet, time::timeout};
use tonic::{
    Code, Response, Status,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{epochs::Epochs, say::usage};

/// The options that name the coordinator.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Coordinator {
    /// The addresses of the coordinator and its standbys, separated by commas
    #[arg(
        long = "coordinator",
        value_name = "HOST:PORT,...",
        env = "EVOXO_COORDINATOR",
        hide_env_values = true,
        default_value_t
    )]
    pub(crate) address: Addresses,
    /// The access file for a coordinator with TLS; `evoxo join` makes one from a token
    #[arg(long, value_name = "FILE", env = "EVOXO_ACCESS", hide_env_values = true)]
    pub(crate) access: Option<PathBuf>,
}

impl Coordinator {
    /// A coordinator that this program started on this machine.
    pub(crate) fn local(address: Address) -> Self {
        Self { address: address.into(), access: None }
    }
}

/// A connection for requests.
pub(crate) type Client = RunServiceClient<Channel>;

/// The longest response of a coordinator, in bytes: one replica with a history of ten million rows.
const RESPONSE_BYTES_MAX: usize = 1 << 30;

/// A connection must open within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long other addresses may take to answer once one of them is known to lead.
const OTHERS_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a coordinator may take to say whether it leads.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a coordinator that does not lead yet may take to load its store, and how often it is asked.
const START_TIMEOUT: Duration = Duration::from_secs(3);
const START_INTERVAL: Duration = Duration::from_millis(100);

/// The coordinator refuses the certificate, so asking again is useless.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Connects.
pub(crate) async fn connect(coordinator: &Coordinator) -> anyhow::Result<Client> {
    let channel = channel(coordinator).await?;
    Ok(RunServiceClient::new(channel)
        .max_decoding_message_size(RESPONSE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX))
}

/// A connection to the coordinator that leads, for any service.
pub(crate) async fn channel(coordinator: &Coordinator) -> anyhow::Result<Channel> {
    let all = coordinator.address.all();
    let dialer = match &coordinator.access {
        None => Dialer::plain(),
        Some(path) => Dialer::with(&access_file(path, all).await?)?,
    };
    let mut epochs = Epochs::of(coordinator.access.as_deref())?;
    match all {
        [address] => started(&dialer, address, &mut epochs).await,
        _ => leading(&dialer, all, &mut epochs).await,
    }
}

async fn dial(dialer: &Dialer, address: &Address) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from(address.uri())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    dialer.connect(&endpoint).await.map_err(|error| {
        let why = innermost(&error);
        if why.contains("failed to lookup address") {
            return anyhow!("the host of {address} is unknown ({why}): check its name");
        }
        anyhow!("no coordinator answers at {address} ({why}): is evoxo-coordinator running there?")
    })
}

/// Connects to the only address. If the coordinator has just been started, waits until it has loaded its store.
async fn started(dialer: &Dialer, address: &Address, epochs: &mut Epochs) -> anyhow::Result<Channel> {
    let start = Instant::now();
    loop {
        let channel = dial(dialer, address).await?;
        // Any other problem shows in the answer to the call itself.
        let mut health = HealthClient::new(channel.clone());
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, health.check(HealthCheckRequest::default())).await;
        let answer = answer.with_context(|| {
            format!("{address} does not answer: the coordinator there has stopped, or another program listens there")
        })?;
        if let Err(status) = &answer {
            if let Some(why) = dialer.refusal() {
                bail!(Refused(why));
            }
            if let Some(why) = dialer.stranger(status) {
                bail!("{address} {why}");
            }
        }
        if let Some(led) = answer.as_ref().ok().and_then(led) {
            epochs.check(address, &led)?;
        }
        let waits = answer.is_ok_and(|answer| {
            answer.metadata().get(LEADER_HEADER).is_none() && answer.get_ref().status() == ServingStatus::NotServing
        });
        if !waits || start.elapsed() > START_TIMEOUT {
            return Ok(channel);
        }
        tokio::time::sleep(START_INTERVAL).await;
    }
}

/// What a coordinator says about itself, if it leads.
fn led(answer: &Response<HealthCheckResponse>) -> Option<Led> {
    answer.metadata().get(LEADER_HEADER)?.to_str().ok()?.parse().ok()
}

/// Asks all addresses at once which one leads, and takes the highest epoch. A coordinator that was cut off may not know yet
/// that it no longer leads.
async fn leading(dialer: &Dialer, all: &[Address], epochs: &mut Epochs) -> anyhow::Result<Channel> {
    let mut attempts = JoinSet::new();
    for address in all {
        let (address, dialer) = (address.clone(), dialer.attempt());
        attempts.spawn(async move {
            let channel = dial(&dialer, &address).await?;
            let answer = HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await;
            let answer = answer.map_err(|status| match dialer.stranger(&status) {
                Some(why) => anyhow!("{address} {why}"),
                // A revoked certificate is refused by every coordinator.
                None if dialer.is_revoked() => anyhow!(Refused(dialer.refusal().unwrap_or_default())),
                None => anyhow!("{address}: {}", refused(status)),
            })?;
            let led = led(&answer).ok_or_else(|| anyhow!("{address} does not lead"))?;
            anyhow::Ok((address, led, channel))
        });
    }
    let (mut first, mut best, mut problems) = (None, None::<(u64, Channel)>, Vec::new());
    // Some addresses may be gone: once one leads, the others get little time.
    let mut wait = CONNECT_TIMEOUT;
    while let Ok(Some(attempt)) = timeout(wait, attempts.join_next()).await {
        let attempt = attempt.context("the attempt to connect ended early")?;
        if let Ok((address, led, _)) = &attempt {
            of_one_cluster(first.get_or_insert_with(|| (address.clone(), led.clone())), address, led)?;
        }
        match attempt.and_then(|(address, led, channel)| epochs.check(&address, &led).map(|()| (led.epoch, channel))) {
            Ok(found) => {
                wait = OTHERS_TIMEOUT;
                best = best.into_iter().chain([found]).max_by_key(|(epoch, _)| *epoch);
            }
            Err(error) if error.is::<Refused>() => return Err(error),
            Err(error) => problems.push(format!("{error:#}")),
        }
    }
    best.map(|(_, channel)| channel).with_context(|| match problems.is_empty() {
        true => "no coordinator answered in time".to_owned(),
        false => format!("no coordinator leads at these addresses: {}", problems.join("; ")),
    })
}

/// Refuses addresses that lead two clusters, because epochs of different clusters cannot be compared.
fn of_one_cluster((first, known): &(Address, Led), address: &Address, led: &Led) -> anyhow::Result<()> {
    if led.cluster == known.cluster {
        return Ok(());
    }
    bail!(
        "{first} and {address} lead two different clusters, so their stores are not the same one: stop the coordinator whose store \
         is the wrong one (an empty directory, because a share is not mounted?), or give the addresses of one cluster only"
    )
}

/// The access file, renewed if renewal is due and the coordinator can be reached.
async fn access_file(path: &Path, all: &[Address]) -> anyhow::Result<AccessFile> {
    if matches!(path.try_exists(), Ok(false)) {
        return Err(usage(format_args!(
            "there is no access file {}: give another one with --access or EVOXO_ACCESS, or get one with `evoxo join`",
            path.display()
        )));
    }
    let file = AccessFile::load(path)?;
    let due = file.certificate().is_ok_and(|facts| (facts.renew_at_s()..facts.expires_s).contains(&now_s()));
    if !due {
        return Ok(file);
    }
    let before = &file;
    match at_any(all, |address| async move { renew(before, &address).await }).await {
        Ok(renewed) => {
            // If the renewed file cannot be written, the next command renews the old one again.
            drop(renewed.store(path));
            Ok(renewed)
        }
        // The old file is still valid. If the coordinator refuses it, the request itself gets the reason.
        Err(_) => Ok(file),
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

/// Whether the request may be repeated, because the connection was lost or the coordinator is about to stop.
pub(crate) fn is_lost(status: &Status) -> bool {
    status.source().is_some() || matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
}

/// Runs requests to a coordinator.
pub(crate) fn converse<T>(conversation: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    runtime.block_on(conversation)
}

/// All replicas of a run that have begun. `each` is called after each replica with the number fetched so far.
pub(crate) async fn fetch(
    client: &mut Client,
    name: &str,
    mut each: impl FnMut(usize),
) -> Result<Vec<v1::Replica>, Status> {
    let request = v1::FetchRequest { name: name.into() };
    let mut stream = client.fetch(request).await?.into_inner();
    let mut replicas = Vec::new();
    while let Some(replica) = stream.message().await? {
        replicas.push(replica);
        each(replicas.len());
    }
    Ok(replicas)
}

/// Why a run does not advance, as the end of a sentence.
pub(crate) fn standstill(run: &v1::Run) -> String {
    match run.state() {
        RunState::Finished => String::new(),
        RunState::Running if run.message.is_empty() && run.workers == 0 => {
            format!("; no worker computes {:?} yet", run.kind)
        }
        RunState::Running if run.message.is_empty() => String::new(),
        RunState::Running => format!("; {}", run.message),
        _ if run.message.is_empty() => format!("; {}", state(run)),
        _ => format!("; {}: {}", state(run), run.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regardless of which address answers first, and of how high its epoch is.
    #[test]
    fn addresses_of_two_clusters_are_rejected() {
        let [one, two] = ["lab1:7600", "lab2:7600"].map(|address| address.parse::<Address>().unwrap());
        for (cluster, epoch, refused) in [(1, 1, false), (1, 9, false), (2, 1, true), (2, 9, true)] {
            let answer = of_one_cluster(&(one.clone(), Led::new([1; 16], 5)), &two, &Led::new([cluster; 16], epoch));
            assert_eq!(answer.is_err(), refused, "{cluster} {epoch}");
            let why = answer.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!refused || why.starts_with("lab1:7600 and lab2:7600 lead two different clusters"), "{why}");
        }
    }

    #[test]
    fn an_access_file_that_cannot_be_read_is_not_called_missing() {
        let desk = tempfile::tempdir().unwrap();
        let [none, file] = ["none", "file"].map(|name| desk.path().join(name));
        std::fs::write(&file, "").unwrap();
        let below = file.join("operator.access");
        for (path, words) in [
            (none.as_path(), "there is no access file"),
            (&below, "cannot read"),
            (desk.path(), "is a directory: give the access file in it"),
        ] {
            let why = format!("{:#}", converse(access_file(path, &[])).unwrap_err());
            assert!(why.contains(words) && why.contains(path.to_str().unwrap()), "{why}");
        }
    }
}
