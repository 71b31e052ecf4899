//! A client of a coordinator, and the expected digest of a run.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use evoxo_access::{AccessFile, Dialer};
use evoxo_common::{
    experiment::{Config, Replica, ResultDigest},
    local,
};
use evoxo_proto::v1::{
    GetRequest, ListWorkersRequest, LostWorker, Run, RunState, SubmitRequest, SubmitResponse, Worker,
    run_service_client::RunServiceClient,
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::{live::PATIENCE, registry};

/// A gRPC client that survives restarts of the coordinator.
pub type Client = RunServiceClient<Channel>;

/// A person who submits runs and asks about them.
pub struct Person {
    /// The client, for all other calls.
    pub client: Client,
}

impl Person {
    /// A client of this coordinator, which may start later.
    ///
    /// # Panics
    /// Never: an address is a good URL.
    #[must_use]
    pub fn of(coordinator: SocketAddr) -> Self {
        Self::connecting(coordinator, None)
    }

    /// A client at another address of this machine.
    ///
    /// # Panics
    /// Never: an address is a good URL.
    #[must_use]
    pub fn at(coordinator: SocketAddr, from: IpAddr) -> Self {
        Self::connecting(coordinator, Some(from))
    }

    /// A client with a certificate.
    ///
    /// # Panics
    /// If the certificate cannot be used.
    #[must_use]
    pub fn with(coordinator: SocketAddr, access: &AccessFile) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{coordinator}")).expect("an address is a good URL");
        let endpoint = endpoint.timeout(Duration::from_secs(30));
        let dialer = Dialer::with(access).expect("an access file");
        Self { client: RunServiceClient::new(dialer.connect_lazy(&endpoint)) }
    }

    fn connecting(coordinator: SocketAddr, from: Option<IpAddr>) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{coordinator}")).expect("an address is a good URL");
        let endpoint = endpoint.local_address(from).timeout(Duration::from_secs(30));
        Self { client: RunServiceClient::new(endpoint.connect_lazy()) }
    }

    /// Submits a run.
    ///
    /// # Errors
    /// The coordinator's refusal.
    pub async fn try_submit(&mut self, name: &str, config: &str) -> Result<SubmitResponse, Status> {
        let request = SubmitRequest { name: name.into(), config: config.into(), ..SubmitRequest::default() };
        self.client.submit(request).await.map(tonic::Response::into_inner)
    }

    /// Submits a run that must be accepted. Returns whether it created or changed anything.
    ///
    /// # Panics
    /// If the run is refused.
    pub async fn submit(&mut self, name: &str, config: &str) -> bool {
        self.try_submit(name, config).await.unwrap_or_else(|status| panic!("{status}")).created
    }

    /// The run now.
    ///
    /// # Errors
    /// The coordinator's refusal.
    pub async fn get(&mut self, name: &str) -> Result<Run, Status> {
        self.client.get(GetRequest { name: name.into() }).await.map(tonic::Response::into_inner)
    }

    /// Waits until a worker of this name is connected; the coordinator may restart meanwhile.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn worker(&mut self, name: &str) -> Worker {
        self.worker_that(name, |_| true).await
    }

    /// The workers that were lost.
    ///
    /// # Panics
    /// If the coordinator does not answer.
    pub async fn lost(&mut self) -> Vec<LostWorker> {
        self.client.list_workers(ListWorkersRequest {}).await.expect("an answer").into_inner().lost
    }

    /// Waits until the worker of this name is lost, and returns the reason.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn reason_of_loss(&mut self, name: &str) -> String {
        let start = Instant::now();
        loop {
            if let Some(lost) = self.lost().await.into_iter().find(|lost| lost.name == name) {
                return lost.reason;
            }
            assert!(start.elapsed() < PATIENCE, "worker {name} is not lost");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a worker of this name satisfies `wanted`. The coordinator's list of workers is up to half a second old.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn worker_that(&mut self, name: &str, wanted: impl Fn(&Worker) -> bool) -> Worker {
        let start = Instant::now();
        loop {
            let workers = match self.client.list_workers(ListWorkersRequest {}).await {
                Ok(listed) => listed.into_inner().workers,
                Err(status) if is_absence(&status) => Vec::new(),
                Err(status) => panic!("{status}"),
            };
            let found = workers.into_iter().find(|worker| worker.name == name);
            match found {
                Some(worker) if wanted(&worker) => return worker,
                found => assert!(start.elapsed() < PATIENCE, "worker {name} does not become as expected: {found:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the run satisfies `wanted`. The coordinator may restart meanwhile.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn wait(&mut self, name: &str, wanted: impl Fn(&Run) -> bool) -> Run {
        let start = Instant::now();
        loop {
            let seen = self.get(name).await;
            match &seen {
                Ok(run) if wanted(run) => return seen.expect("the run was observed"),
                Err(status) if !is_absence(status) => panic!("{status}"),
                _ => {}
            }
            assert!(start.elapsed() < PATIENCE, "waiting for the run takes too long: {seen:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the run is finished.
    ///
    /// # Panics
    /// If the run fails, or takes too long.
    pub async fn finished(&mut self, name: &str) -> Run {
        self.wait(name, |run| {
            assert!(run.state() != RunState::Failed, "{run:?}");
            run.state() == RunState::Finished
        })
        .await
    }
}

/// Whether a call failed because the coordinator was not running, or ended during the call.
#[must_use]
pub fn is_absence(status: &Status) -> bool {
    status.code() == Code::Unavailable || std::error::Error::source(status).is_some()
}

/// The digest of an undisturbed run on one thread.
///
/// # Panics
/// If the configuration is invalid.
#[must_use]
pub fn digest_of_one_thread(config: &str) -> String {
    let config = Config::parse(registry(), "a test", config, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let replicas = local::run(&config).unwrap_or_else(|refusal| panic!("{refusal}"));
    ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string()
}
