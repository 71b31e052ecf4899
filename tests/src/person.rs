//! A person's client, and what a run must come to.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use evoxo_common::{
    experiment::{Config, Replica, run_digest},
    local,
};
use evoxo_proto::v1::{
    GetRequest, ListWorkersRequest, Run, RunState, SubmitRequest, SubmitResponse, Worker,
    run_service_client::RunServiceClient,
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::{live::PATIENCE, registry};

/// The gRPC client that survives the coordinator's restarts.
pub type Client = RunServiceClient<Channel>;

/// Somebody who submits and asks.
pub struct Person {
    /// For all other verbs.
    pub client: Client,
}

impl Person {
    /// Talks to the coordinator there, now or later.
    ///
    /// # Panics
    /// Never: an address is a good URL.
    #[must_use]
    pub fn of(coordinator: SocketAddr) -> Self {
        Self::connecting(coordinator, None)
    }

    /// The same from another address of this machine.
    ///
    /// # Panics
    /// Never: an address is a good URL.
    #[must_use]
    pub fn at(coordinator: SocketAddr, from: IpAddr) -> Self {
        Self::connecting(coordinator, Some(from))
    }

    fn connecting(coordinator: SocketAddr, from: Option<IpAddr>) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{coordinator}")).expect("an address is a good URL");
        let endpoint = endpoint.local_address(from).timeout(Duration::from_secs(30));
        Self { client: RunServiceClient::new(endpoint.connect_lazy()) }
    }

    /// Submits, whatever comes of it.
    ///
    /// # Errors
    /// What the coordinator says.
    pub async fn try_submit(&mut self, name: &str, config: &str) -> Result<SubmitResponse, Status> {
        let request = SubmitRequest { name: name.into(), config: config.into() };
        self.client.submit(request).await.map(tonic::Response::into_inner)
    }

    /// Submits; whether there was anything new in it.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn submit(&mut self, name: &str, config: &str) -> bool {
        self.try_submit(name, config).await.unwrap_or_else(|status| panic!("{status}")).created
    }

    /// The run now.
    ///
    /// # Errors
    /// What the coordinator says.
    pub async fn get(&mut self, name: &str) -> Result<Run, Status> {
        self.client.get(GetRequest { name: name.into() }).await.map(tonic::Response::into_inner)
    }

    /// Waits until a worker of this name is connected, through the coordinator's absences.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn worker(&mut self, name: &str) -> Worker {
        let start = Instant::now();
        loop {
            let workers = match self.client.list_workers(ListWorkersRequest {}).await {
                Ok(listed) => listed.into_inner().workers,
                Err(status) if is_absence(&status) => Vec::new(),
                Err(status) => panic!("{status}"),
            };
            if let Some(found) = workers.into_iter().find(|worker| worker.name == name) {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "no worker {name} connects");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the run is as wanted, through the coordinator's absences.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn wait(&mut self, name: &str, wanted: impl Fn(&Run) -> bool) -> Run {
        let start = Instant::now();
        loop {
            let seen = self.get(name).await;
            match &seen {
                Ok(run) if wanted(run) => return seen.expect("it was looked at"),
                Err(status) if !is_absence(status) => panic!("{status}"),
                _ => {}
            }
            assert!(start.elapsed() < PATIENCE, "it takes too long: {seen:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the run is finished.
    ///
    /// # Panics
    /// If it fails, or takes too long.
    pub async fn finished(&mut self, name: &str) -> Run {
        self.wait(name, |run| {
            assert!(run.state() != RunState::Failed, "{run:?}");
            run.state() == RunState::Finished
        })
        .await
    }
}

/// Whether the coordinator was not there, or did not survive the call.
#[must_use]
pub fn is_absence(status: &Status) -> bool {
    status.code() == Code::Unavailable || std::error::Error::source(status).is_some()
}

/// The digest to which one undisturbed thread comes.
///
/// # Panics
/// If the configuration is not a good one.
#[must_use]
pub fn digest_of_one_thread(config: &str) -> String {
    let config = Config::parse(registry(), "a test", config, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let replicas = local::run(&config).unwrap_or_else(|refusal| panic!("{refusal}"));
    run_digest(replicas.iter().map(Replica::digest)).to_string()
}
