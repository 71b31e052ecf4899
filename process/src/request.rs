//! Requests to end a process: by a signal, or by the end of its standard input.

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
    /// The standard input has ended, so the process that started this one is gone.
    StandardInput,
}

/// Requests to end, in order.
pub struct EndRequests(mpsc::Receiver<EndRequest>);

impl EndRequests {
    /// Listens for signals, and for the end of the standard input if wanted. Call it from within a runtime.
    ///
    /// # Errors
    /// If the system denies signals or a thread.
    pub fn listen(with_standard_input: bool) -> anyhow::Result<Self> {
        let (sender, requests) = mpsc::channel(4);
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = signal(kind).context("cannot listen for signals")?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() && sender.send(EndRequest::Signal).await.is_ok() {}
            });
        }
        if with_standard_input {
            let wait = move || {
                let mut input = std::io::stdin().lock();
                while input.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0) {}
                // If the receiver is gone, the process is about to end.
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
            // No further request can come.
            None => std::future::pending().await,
        }
    }
}
