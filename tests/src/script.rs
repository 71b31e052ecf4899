//! A worker that follows a script: it says and computes what a test wants.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use evoxo_common::task::{Encoded, Shared, SharedCache};
use evoxo_proto::{
    MESSAGE_BYTES_MAX, PROTOCOL,
    v1::{
        self, FromWorker, Hello, Outputs, TaskResult, ToWorker, from_worker::Message as Said, task_result::Outcome,
        to_worker::Message as Heard, worker_service_client::WorkerServiceClient,
    },
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::{live::PATIENCE, registry};

/// What an honest worker of this build says first.
#[must_use]
pub fn hello(name: &str) -> Hello {
    // Drawn by real workers; here it is enough that names differ.
    let process = name.bytes().fold(1, |sum: u64, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
    Hello {
        protocol: PROTOCOL,
        slots: 2,
        name: name.into(),
        kinds: registry().signatures(),
        build: "by hand".into(),
        process,
    }
}

/// A session of such a worker.
pub struct Session {
    /// What goes to the coordinator.
    pub said: mpsc::Sender<FromWorker>,
    heard: Streaming<ToWorker>,
    shared: SharedCache<Arc<Shared>>,
}

/// Tasks that the coordinator gave.
#[derive(Debug)]
pub struct Assigned {
    /// The assignment's number.
    pub id: u64,
    /// In order.
    pub tasks: Vec<Encoded>,
}

impl Session {
    /// Connects, and says nothing.
    ///
    /// # Panics
    /// If nobody listens.
    pub async fn open(coordinator: SocketAddr) -> Self {
        Self::try_open(coordinator).await.expect("it listens")
    }

    async fn try_open(coordinator: SocketAddr) -> Result<Self, Status> {
        let client = WorkerServiceClient::connect(format!("http://{coordinator}")).await;
        let client = client.map_err(|error| Status::unavailable(error.to_string()))?;
        let (said, messages) = mpsc::channel(64);
        let heard = client.max_decoding_message_size(MESSAGE_BYTES_MAX).work(ReceiverStream::new(messages)).await?;
        Ok(Self { said, heard: heard.into_inner(), shared: SharedCache::default() })
    }

    /// Connects and introduces itself as an honest worker.
    pub async fn join(coordinator: SocketAddr, name: &str) -> Self {
        let session = Self::open(coordinator).await;
        session.say(Said::Hello(hello(name))).await;
        session
    }

    /// Says something; that the session has ended shows when it is heard.
    pub async fn say(&self, message: Said) {
        let _ = self.said.send(FromWorker { message: Some(message) }).await;
    }

    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// How the stream ended.
    ///
    /// # Panics
    /// If nothing comes for long.
    pub async fn hear(&mut self) -> Result<Option<Heard>, Status> {
        let heard = tokio::time::timeout(PATIENCE, self.heard.message()).await.expect("the coordinator says nothing");
        Ok(heard?.and_then(|message| message.message))
    }

    /// The next tasks; `None` if the session ends before.
    ///
    /// # Panics
    /// If an assignment makes no sense.
    pub async fn next_tasks(&mut self) -> Option<Assigned> {
        loop {
            if let Heard::Assignment(assignment) = self.hear().await.ok()?? {
                let id = assignment.id;
                let tasks = self.shared.unpack(assignment).expect("an assignment that makes sense");
                return Some(Assigned { id, tasks });
            }
        }
    }

    /// How the session ends: the coordinator's last word, or the status of the stream.
    pub async fn end(mut self) -> Result<v1::Close, Status> {
        loop {
            match self.hear().await? {
                Some(Heard::Close(close)) => return Ok(close),
                Some(_) => {}
                None => return Err(Status::unknown("the stream ended without a word")),
            }
        }
    }

    /// Gives outcomes for tasks of an assignment.
    pub async fn answer(&self, assignment: u64, tasks: &[Encoded], outcome: impl Fn(&Encoded) -> Outcome) {
        let results = tasks.iter().map(|task| result(assignment, task, outcome(task))).collect();
        self.say(Said::Outputs(Outputs { results })).await;
    }

    /// Computes until the coordinator ends the session, or this number of tasks is done.
    pub async fn work(&mut self, mut tasks: usize) {
        while tasks > 0 {
            let Some(assigned) = self.next_tasks().await else { return };
            tasks = tasks.saturating_sub(assigned.tasks.len());
            self.answer(assigned.id, &assigned.tasks, honest).await;
        }
    }
}

/// What an honest worker computes.
///
/// # Panics
/// If the task is no good one.
#[must_use]
pub fn honest(task: &Encoded) -> Outcome {
    Outcome::Output(registry().run(task).expect("planned tasks are good"))
}

/// The report on a task.
#[must_use]
pub fn result(assignment: u64, task: &Encoded, outcome: Outcome) -> TaskResult {
    let hash = task.hash.0.to_vec().into();
    TaskResult { hash, outcome: Some(outcome), elapsed_us: 10, assignment }
}

/// An honest worker in the background, which comes back when its session ends, and waits where nobody listens.
pub fn spawn_worker(coordinator: SocketAddr, name: &str) -> JoinHandle<()> {
    let name = name.to_owned();
    tokio::spawn(async move {
        loop {
            if let Ok(mut session) = Session::try_open(coordinator).await {
                session.say(Said::Hello(hello(&name))).await;
                session.work(usize::MAX).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}
