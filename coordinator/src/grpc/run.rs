//! For people: the verbs of `run.proto`.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use evoxo_proto::v1::{self, RunState, run_service_server::RunService};
use tokio::sync::{broadcast, mpsc};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};

use crate::{
    core::{Answer, Ask},
    shell::Handle,
};

/// A watcher is told of changes at most this often...
const TELL_INTERVAL: Duration = Duration::from_millis(200);
/// ... but hears of the end as soon as this: the core is asked no more often.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// See `run.proto`.
pub(crate) struct Runs {
    pub(crate) core: Handle,
}

/// An answer of another kind than the question would be a bug of the core.
fn mismatch() -> Status {
    Status::internal("the coordinator gave an answer of the wrong kind: please report this")
}

impl Runs {
    async fn ask_run(&self, ask: Ask) -> Result<Response<v1::Run>, Status> {
        match self.core.ask(ask).await? {
            Answer::Run(run) => Ok(Response::new(run)),
            _ => Err(mismatch()),
        }
    }
}

#[tonic::async_trait]
impl RunService for Runs {
    type WatchStream = ReceiverStream<Result<v1::Run, Status>>;
    type FetchStream = Pin<Box<dyn Stream<Item = Result<v1::Replica, Status>> + Send>>;

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitResponse>, Status> {
        let v1::SubmitRequest { name, config } = request.into_inner();
        match self.core.ask(Ask::Submit { name, config }).await? {
            Answer::Submitted { run, created } => Ok(Response::new(v1::SubmitResponse { run: Some(run), created })),
            _ => Err(mismatch()),
        }
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        match self.core.ask(Ask::List).await? {
            Answer::Runs(runs) => Ok(Response::new(v1::ListResponse { runs })),
            _ => Err(mismatch()),
        }
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::Run>, Status> {
        self.ask_run(Ask::Get { name: request.into_inner().name }).await
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let name = request.into_inner().name;
        let changes = self.core.changes();
        let run = self.ask_run(Ask::Get { name: name.clone() }).await?.into_inner();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(Watcher { core: self.core.clone(), name, changes, sender }.tell(run));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Result<Response<v1::Run>, Status> {
        self.ask_run(Ask::Pause { name: request.into_inner().name }).await
    }

    async fn resume(&self, request: Request<v1::ResumeRequest>) -> Result<Response<v1::Run>, Status> {
        self.ask_run(Ask::Resume { name: request.into_inner().name }).await
    }

    async fn cancel(&self, request: Request<v1::CancelRequest>) -> Result<Response<v1::Run>, Status> {
        let v1::CancelRequest { name, delete } = request.into_inner();
        self.ask_run(Ask::Cancel { name, delete }).await
    }

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        match self.core.ask(Ask::Fetch { name: request.into_inner().name }).await? {
            Answer::Replicas(replicas) => Ok(Response::new(Box::pin(tokio_stream::iter(replicas).map(Ok)))),
            _ => Err(mismatch()),
        }
    }

    async fn fetch_champion(
        &self,
        request: Request<v1::FetchChampionRequest>,
    ) -> Result<Response<v1::Champion>, Status> {
        let v1::FetchChampionRequest { name, arm, replica } = request.into_inner();
        match self.core.ask(Ask::FetchChampion { name, arm, replica }).await? {
            Answer::Champion(champion) => Ok(Response::new(champion)),
            _ => Err(mismatch()),
        }
    }

    async fn list_workers(
        &self,
        _: Request<v1::ListWorkersRequest>,
    ) -> Result<Response<v1::ListWorkersResponse>, Status> {
        match self.core.ask(Ask::Workers).await? {
            Answer::Workers(workers) => Ok(Response::new(v1::ListWorkersResponse { workers })),
            _ => Err(mismatch()),
        }
    }
}

/// Somebody who watches a run.
struct Watcher {
    core: Handle,
    name: String,
    changes: broadcast::Receiver<Arc<str>>,
    sender: mpsc::Sender<Result<v1::Run, Status>>,
}

impl Watcher {
    /// Tells of the run, as it is now and whenever it has changed, until it has ended or the watcher has gone.
    async fn tell(mut self, mut run: v1::Run) {
        loop {
            let ended = has_ended(&run);
            if self.sender.send(Ok(run)).await.is_err() || ended {
                return;
            }
            run = match self.next().await {
                Some(Ok(next)) => next,
                Some(Err(status)) => return drop(self.sender.send(Err(status)).await),
                None => return,
            };
        }
    }

    /// The run when there is something to tell; `None` if there is nobody to tell it.
    async fn next(&mut self) -> Option<Result<v1::Run, Status>> {
        let told = Instant::now();
        let mut changed = false;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if !changed {
                self.change().await?;
                changed = true;
            }
            // What changed until now is seen by looking now.
            self.changes = self.changes.resubscribe();
            match self.core.ask(Ask::Get { name: self.name.clone() }).await {
                Ok(Answer::Run(run)) if !has_ended(&run) && told.elapsed() < TELL_INTERVAL => {}
                Ok(Answer::Run(run)) => return Some(Ok(run)),
                Ok(_) => return Some(Err(mismatch())),
                Err(rejection) => return Some(Err(rejection.into())),
            }
        }
    }

    /// Waits for a change of the run. One who was too slow to hear of every change has to look; `None` if the watcher or the
    /// core has gone.
    async fn change(&mut self) -> Option<()> {
        loop {
            tokio::select! {
                () = self.sender.closed() => return None,
                changed = self.changes.recv() => match changed {
                    Ok(changed) if *changed != *self.name => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                    _ => return Some(()),
                },
            }
        }
    }
}

fn has_ended(run: &v1::Run) -> bool {
    matches!(run.state(), RunState::Finished | RunState::Cancelled | RunState::Failed)
}
