//! A worker that follows a script: the test decides its messages and results.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use evoxo_common::task::{Encoded, NoPrograms, Shared, SharedCache};
use evoxo_proto::{
    MESSAGE_BYTES_MAX, PROTOCOL,
    v1::{
        self, FromWorker, Hello, Outputs, TaskResult, ToWorker, from_worker::Message as Outgoing, task_result::Outcome,
        to_worker::Message as Incoming, worker_service_client::WorkerServiceClient,
    },
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

use crate::{live::PATIENCE, registry};

/// The Hello of an honest worker of this build.
#[must_use]
pub fn hello(name: &str) -> Hello {
    // Real workers draw this number. Here it is enough that names differ.
    let process = name.bytes().fold(1, |sum: u64, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
    Hello {
        protocol: PROTOCOL,
        slots: 2,
        name: name.into(),
        kinds: registry().signatures(),
        programs: Vec::new(),
        labels: Vec::new(),
        build: "by hand".into(),
        host: "lab".into(),
        process,
    }
}

/// A session of a scripted worker.
pub struct Session {
    /// Messages to the coordinator.
    pub outgoing: mpsc::Sender<FromWorker>,
    incoming: Streaming<ToWorker>,
    shared: SharedCache<Arc<Shared>>,
}

/// Tasks that the coordinator assigned.
#[derive(Debug)]
pub struct Assigned {
    /// The assignment's number.
    pub id: u64,
    /// The tasks in order.
    pub tasks: Vec<Encoded>,
}

impl Session {
    /// Connects and sends nothing.
    ///
    /// # Panics
    /// If there is no coordinator.
    pub async fn open(coordinator: SocketAddr) -> Self {
        Self::try_open(coordinator).await.expect("the server listens")
    }

    async fn try_open(coordinator: SocketAddr) -> Result<Self, Status> {
        let client = WorkerServiceClient::connect(format!("http://{coordinator}")).await;
        Self::over(client.map_err(|error| Status::unavailable(error.to_string()))?).await
    }

    /// Sends an honest worker's Hello over this connection.
    ///
    /// # Errors
    /// If the coordinator refuses the connection or the call.
    pub async fn join_over(channel: Channel, name: &str) -> Result<Self, Status> {
        let session = Self::open_over(channel).await?;
        session.send(Outgoing::Hello(hello(name))).await;
        Ok(session)
    }

    /// Opens a session over this connection and sends nothing.
    ///
    /// # Errors
    /// If the coordinator refuses the connection or the call.
    pub async fn open_over(channel: Channel) -> Result<Self, Status> {
        Self::over(WorkerServiceClient::new(channel)).await
    }

    async fn over(client: WorkerServiceClient<Channel>) -> Result<Self, Status> {
        let (outgoing, messages) = mpsc::channel(64);
        let incoming = client.max_decoding_message_size(MESSAGE_BYTES_MAX).work(ReceiverStream::new(messages)).await?;
        Ok(Self { outgoing, incoming: incoming.into_inner(), shared: SharedCache::default() })
    }

    /// Connects and sends an honest worker's Hello.
    pub async fn join(coordinator: SocketAddr, name: &str) -> Self {
        let session = Self::open(coordinator).await;
        session.send(Outgoing::Hello(hello(name))).await;
        session
    }

    /// Sends a message. If the session has ended, the next received message shows it.
    pub async fn send(&self, message: Outgoing) {
        let _ = self.outgoing.send(FromWorker { message: Some(message) }).await;
    }

    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// The status with which the stream ended.
    ///
    /// # Panics
    /// If no message comes for a long time.
    pub async fn receive(&mut self) -> Result<Option<Incoming>, Status> {
        let message =
            tokio::time::timeout(PATIENCE, self.incoming.message()).await.expect("the coordinator sends nothing");
        Ok(message?.and_then(|message| message.message))
    }

    /// The next tasks; `None` if the session ends before any come.
    ///
    /// # Panics
    /// If an assignment is invalid.
    pub async fn next_tasks(&mut self) -> Option<Assigned> {
        loop {
            if let Incoming::Assignment(assignment) = self.receive().await.ok()?? {
                let id = assignment.id;
                let tasks = self.shared.unpack(assignment).expect("a valid assignment");
                return Some(Assigned { id, tasks });
            }
        }
    }

    /// How the session ends: the coordinator's last message, or the status of the stream.
    pub async fn end(mut self) -> Result<v1::Close, Status> {
        loop {
            match self.receive().await? {
                Some(Incoming::Close(close)) => return Ok(close),
                Some(_) => {}
                None => return Err(Status::unknown("the stream ended without a reason")),
            }
        }
    }

    /// Sends outcomes for tasks of an assignment.
    pub async fn answer(&self, assignment: u64, tasks: &[Encoded], outcome: impl Fn(&Encoded) -> Outcome) {
        let results = tasks.iter().map(|task| result(assignment, task, outcome(task))).collect();
        self.send(Outgoing::Outputs(Outputs { results })).await;
    }

    /// Computes until the coordinator ends the session, or so many tasks are done.
    pub async fn work(&mut self, mut tasks: usize) {
        while tasks > 0 {
            let Some(assigned) = self.next_tasks().await else { return };
            tasks = tasks.saturating_sub(assigned.tasks.len());
            self.answer(assigned.id, &assigned.tasks, honest).await;
        }
    }
}

/// The output of an honest worker.
///
/// # Panics
/// If the task is invalid.
#[must_use]
pub fn honest(task: &Encoded) -> Outcome {
    Outcome::Output(registry().run(task, &mut NoPrograms).expect("planned tasks are good"))
}

/// The result of a task.
#[must_use]
pub fn result(assignment: u64, task: &Encoded, outcome: Outcome) -> TaskResult {
    let hash = task.hash.0.to_vec().into();
    TaskResult { hash, outcome: Some(outcome), elapsed_us: 10, assignment, timed_out: false }
}

/// An honest worker in the background, which reconnects when its session ends, and waits while there is no coordinator.
pub fn spawn_worker(coordinator: SocketAddr, name: &str) -> JoinHandle<()> {
    let name = name.to_owned();
    tokio::spawn(async move {
        loop {
            if let Ok(mut session) = Session::try_open(coordinator).await {
                session.send(Outgoing::Hello(hello(&name))).await;
                session.work(usize::MAX).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}
