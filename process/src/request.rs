//! How a process is asked to end: by a signal, or by the end of its standard input.

use std::io::Read as _;

use anyhow::Context as _;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRequest {
    /// SIGTERM or SIGINT.
    Signal,
    /// The standard input has ended: whoever started this process is gone.
    StandardInput,
}

/// Requests to end, as they come.
pub struct EndRequests(mpsc::Receiver<EndRequest>);

impl EndRequests {
    /// Listens to signals, and to the end of the standard input if wanted. From within a runtime.
    ///
    /// # Errors
    /// If the system denies signals or a thread.
    pub fn listen(with_standard_input: bool) -> anyhow::Result<Self> {
        let (sender, requests) = mpsc::channel(4);
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = signal(kind).context("cannot listen to signals")?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() && sender.send(EndRequest::Signal).await.is_ok() {}
            });
        }
        if with_standard_input {
            let wait = move || {
                let mut input = std::io::stdin().lock();
                while input.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0) {}
                // If nobody listens any more, the process is about to end.
                let _ = sender.blocking_send(EndRequest::StandardInput);
            };
            std::thread::Builder::new().name("stdin".into()).spawn(wait).context("cannot start a thread for stdin")?;
        }
        Ok(Self(requests))
    }

    /// The next request.
    pub async fn next(&mut self) -> EndRequest {
        match self.0.recv().await {
            Some(request) => request,
            // Nobody can ask any more.
            None => std::future::pending().await,
        }
    }
}
