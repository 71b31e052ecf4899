//! Requests to end a process: by a signal, or by the end of its standard input.

use std::{fs, io::Read as _};

use anyhow::Context as _;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRequest {
    /// SIGTERM, SIGINT, or the first SIGHUP.
    Signal,
    /// Standard input has ended, so the process that started this one is gone.
    StandardInput,
}

/// Requests to end, in order.
pub struct EndRequests(mpsc::Receiver<EndRequest>);

impl EndRequests {
    /// Listens for signals and, if wanted, for the end of standard input. Call it inside a runtime.
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
        if !ignores_hang_up() {
            let mut signals = signal(SignalKind::hangup()).context("cannot listen for signals")?;
            let sender = sender.clone();
            // A closing terminal and its shell both send SIGHUP, so only the first one counts.
            tokio::spawn(async move {
                if signals.recv().await.is_some() {
                    // If the receiver is gone, the process is about to end.
                    let _ = sender.send(EndRequest::Signal).await;
                }
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

/// Whether to leave SIGHUP alone, because this process was started to ignore it, as by `nohup`, or because the system does
/// not say.
fn ignores_hang_up() -> bool {
    ignored_in(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Whether a process with this status ignores SIGHUP, the first of all signals.
fn ignored_in(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::ignored_in;

    #[test]
    fn nohup_is_detected() {
        let status = |mask: &str| format!("Name:\tevoxo\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(!ignored_in(&status("0000000000001000")) && ignored_in(&status("0000000000001001")));
        assert!(ignored_in("Name:\tevoxo\n"), "without a mask, signals count as ignored");
    }
}
