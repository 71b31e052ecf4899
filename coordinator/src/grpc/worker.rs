//! For workers: a stream is a session.

use std::time::Duration;

use evoxo_proto::v1::{FromWorker, ToWorker, worker_service_server::WorkerService};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    core::{Event, SessionId},
    shell::{Handle, outbox},
};

/// A stranger who connects and says nothing is shown out after so long.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// See `worker.proto`.
pub(crate) struct Workers {
    pub(crate) core: Handle,
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type WorkStream = ReceiverStream<Result<ToWorker, Status>>;

    async fn work(&self, request: Request<Streaming<FromWorker>>) -> Result<Response<Self::WorkStream>, Status> {
        let (sender, receiver) = outbox();
        let session = self.core.open(sender).await;
        tokio::spawn(listen(self.core.clone(), session, request.into_inner()));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// Passes on what a worker says until its stream ends, whatever the cause.
async fn listen(core: Handle, session: SessionId, mut words: Streaming<FromWorker>) {
    let mut next = tokio::time::timeout(HELLO_TIMEOUT, words.message()).await.unwrap_or(Ok(None));
    while let Ok(Some(message)) = next {
        core.tell(Event::Message { session, message }).await;
        next = words.message().await;
    }
    core.tell(Event::Left { session }).await;
}
