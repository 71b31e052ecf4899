//! The queue of messages to a worker.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use evoxo_proto::v1::{ToWorker, to_worker::Message};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

/// The most messages that may wait for a worker. A worker that leaves more unread is disconnected.
const MESSAGES_MAX: usize = 4096;
/// The most hashes of accepted results that may wait. One message may have thousands.
const ACCEPTED_MAX: usize = 1 << 18;

/// The core's end of a queue.
pub(crate) struct Outbox {
    sender: mpsc::Sender<Result<ToWorker, Status>>,
    /// How many hashes of accepted results wait.
    accepted: Arc<AtomicUsize>,
}

/// The other end: the worker's stream.
pub(crate) struct Unread {
    receiver: mpsc::Receiver<Result<ToWorker, Status>>,
    accepted: Arc<AtomicUsize>,
}

/// Creates a queue.
pub(crate) fn outbox() -> (Outbox, Unread) {
    let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
    let accepted = Arc::<AtomicUsize>::default();
    (Outbox { sender, accepted: Arc::clone(&accepted) }, Unread { receiver, accepted })
}

/// Why a message cannot be put into a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsendable {
    /// The worker does not read its messages.
    Full,
    /// The worker's stream has ended.
    Gone,
}

impl Outbox {
    /// Puts a message into the queue.
    ///
    /// # Errors
    /// See [`Unsendable`].
    pub(crate) fn send(&self, message: Result<ToWorker, Status>) -> Result<(), Unsendable> {
        // Only the core sends to an open session, so no other thread adds hashes in between.
        let hashes = accepted(&message);
        if hashes > 0 && self.accepted.fetch_add(hashes, Ordering::Relaxed) + hashes > ACCEPTED_MAX {
            return Err(Unsendable::Full);
        }
        self.sender.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unsendable::Full,
            mpsc::error::TrySendError::Closed(_) => Unsendable::Gone,
        })
    }

    /// A sender that does not keep the stream open.
    pub(crate) fn downgrade(&self) -> mpsc::WeakSender<Result<ToWorker, Status>> {
        self.sender.downgrade()
    }
}

impl Stream for Unread {
    type Item = Result<ToWorker, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.receiver.poll_recv(cx);
        if let Poll::Ready(Some(message)) = &polled {
            self.accepted.fetch_sub(accepted(message), Ordering::Relaxed);
        }
        polled
    }
}

/// How many hashes of accepted results a message has.
fn accepted(message: &Result<ToWorker, Status>) -> usize {
    match message {
        Ok(ToWorker { message: Some(Message::Accepted(accepted)) }) => accepted.hashes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use evoxo_proto::v1::Accepted;
    use futures_util::StreamExt as _;

    use super::*;

    fn of(hashes: usize) -> Result<ToWorker, Status> {
        Ok(ToWorker { message: Some(Message::Accepted(Accepted { hashes: vec![Bytes::new(); hashes] })) })
    }

    #[test]
    fn a_worker_that_does_not_read_gets_a_limited_number_of_hashes() {
        let (outbox, mut unread) = outbox();
        assert_eq!(outbox.send(of(ACCEPTED_MAX)), Ok(()));
        assert_eq!(outbox.send(Ok(ToWorker::default())), Ok(()), "other messages have no hashes");
        let read = futures_util::future::FutureExt::now_or_never(unread.next());
        assert!(matches!(read, Some(Some(Ok(_)))));
        assert_eq!(outbox.send(of(ACCEPTED_MAX)), Ok(()), "they were read");
        assert_eq!(outbox.send(of(1)), Err(Unsendable::Full));
    }

    #[test]
    fn a_worker_that_does_not_read_gets_few_messages() {
        let (outbox, unread) = outbox();
        let sent = (0..).take_while(|_| outbox.send(Ok(ToWorker::default())).is_ok()).count();
        assert_eq!(sent, MESSAGES_MAX);
        assert_eq!(outbox.send(of(0)), Err(Unsendable::Full));
        drop(unread);
        assert_eq!(outbox.send(of(0)), Err(Unsendable::Gone));
    }
}
