//! Workers that are not connected: those lost most recently, those asked to leave, and those refused.

use std::collections::VecDeque;

use evoxo_common::time::Millis;
use evoxo_proto::v1;

use super::sessions::Session;
use crate::id::SessionId;

/// The maximum number of lost workers that are remembered.
const LOST_MAX: usize = 64;
/// The maximum number of processes that are remembered after being asked to leave, until they have left.
const LEAVING_MAX: usize = 4096;
/// The maximum number of log lines about refused workers in a burst.
const REFUSALS_AT_ONCE: u64 = 32;

/// The workers lost most recently, newest first. Each entry has the time of the loss and the time until which the worker is
/// set aside.
#[derive(Default)]
pub(super) struct Lost(VecDeque<([Millis; 2], v1::LostWorker)>);

impl Lost {
    pub(super) fn add(&mut self, (now, until): (Millis, Millis), id: SessionId, session: &Session, reason: String) {
        let lost = v1::LostWorker {
            session: id.0,
            name: session.name.to_string(),
            host: session.host.clone(),
            address: session.address.clone(),
            identity: session.identity_number().map(ToString::to_string).unwrap_or_default(),
            reason,
            tasks: session.tasks_assigned as u32,
            ago_ms: 0,
            aside_ms: 0,
        };
        self.0.push_front(([now, until], lost));
        if self.0.len() > LOST_MAX {
            // Prefer to keep workers that are set aside, until they may return.
            let place = self.0.iter().rposition(|([_, until], _)| *until <= now);
            self.0.remove(place.unwrap_or(LOST_MAX));
        }
    }

    /// What a run that no worker computes waits for, if workers are set aside.
    pub(super) fn aside(&self, now: Millis) -> Option<String> {
        let count = self.0.iter().filter(|([_, until], _)| *until > now).count();
        let workers = if count == 1 { "1 worker is".to_owned() } else { format!("{count} workers are") };
        (count > 0).then(|| format!("no worker computes it, and {workers} set aside: `evoxo workers` says why"))
    }

    pub(super) fn list(&self, now: Millis) -> Vec<v1::LostWorker> {
        let shown = |([then, until], lost): &([Millis; 2], v1::LostWorker)| v1::LostWorker {
            ago_ms: now - *then,
            aside_ms: *until - now,
            ..lost.clone()
        };
        self.0.iter().map(shown).collect()
    }
}

/// Processes that were asked to leave and have not left. The request may be lost with a connection, so a process that
/// reconnects is asked again.
#[derive(Default)]
pub(super) struct Leaving(VecDeque<u64>);

impl Leaving {
    pub(super) fn add(&mut self, process: u64) {
        if !self.0.contains(&process) {
            self.0.push_back(process);
        }
        if self.0.len() > LEAVING_MAX {
            self.0.pop_front();
        }
    }

    /// Call this when the process has left. A process that was never asked may be passed too.
    pub(super) fn remove(&mut self, process: u64) {
        self.0.retain(|other| *other != process);
    }

    pub(super) fn contains(&self, process: u64) -> bool {
        self.0.contains(&process)
    }
}

/// Limits the log lines about refused workers: a burst, then one line per second for all workers together.
#[derive(Default)]
pub(super) struct RefusalLines {
    /// Lines written, less one for each second that has passed.
    recent: u64,
    at: Millis,
    left_out: u64,
}

impl RefusalLines {
    /// Whether another line may be written; if so, how many lines were left out before it.
    pub(super) fn take(&mut self, now: Millis) -> Option<u64> {
        let seconds = (now - self.at) / 1000;
        self.at = self.at + seconds * 1000;
        self.recent = self.recent.saturating_sub(seconds);
        if self.recent >= REFUSALS_AT_ONCE {
            self.left_out += 1;
            return None;
        }
        self.recent += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}
