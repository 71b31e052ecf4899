//! Why workers are lost.

use evoxo_proto::v1::CloseKind;

use super::tally::Tally;

/// How long a worker that was set aside must wait before it joins again, in milliseconds.
pub(super) const SET_ASIDE_MS: u32 = 60_000;

/// Why a worker is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    ConnectionEnded,
    /// Its process has opened another connection.
    Replaced,
    /// Its certificate has expired. The worker reconnects with a new one.
    Expired,
    /// Its identity was revoked, so it cannot return.
    Revoked,
    /// No message arrived for this many milliseconds.
    Silent(u64),
    /// Its tasks made no progress. Heartbeats alone are no proof of progress.
    Overdue,
    /// It sent an invalid message, described by this text.
    InvalidMessage(String),
    /// Too many different tasks failed on it. It must wait this many milliseconds.
    FailsTasks {
        /// Whether it was set aside for the same reason before.
        again: bool,
        pause_ms: u64,
    },
    /// Two other workers agreed on a different output of a task.
    Outvoted,
    /// A trusted worker computed a different output of a task.
    Convicted,
}

/// The labels of all causes in the metrics, in the order of [`Cause`].
const LABELS: [&str; 10] = [
    "connection ended",
    "replaced",
    "expired",
    "revoked",
    "silent",
    "overdue",
    "invalid message",
    "failing tasks",
    "outvoted",
    "convicted",
];

impl Tally {
    /// The number of workers lost by each cause. Every cause is listed from the start: a counter that first appears with its
    /// first loss would show no increase.
    pub fn lost_by_cause(&self) -> [(&'static str, u64); LABELS.len()] {
        LABELS.map(|cause| (cause, self.lost.get(cause).copied().unwrap_or_default()))
    }
}

impl Cause {
    /// The cause's label in the metrics.
    pub(super) fn label(&self) -> &'static str {
        let [ended, replaced, expired, revoked, silent, overdue, invalid, failing, outvoted, convicted] = LABELS;
        match self {
            Self::ConnectionEnded => ended,
            Self::Replaced => replaced,
            Self::Expired => expired,
            Self::Revoked => revoked,
            Self::Silent(_) => silent,
            Self::Overdue => overdue,
            Self::InvalidMessage(_) => invalid,
            Self::FailsTasks { .. } => failing,
            Self::Outvoted => outvoted,
            Self::Convicted => convicted,
        }
    }

    pub(super) fn sentence(&self) -> String {
        match self {
            Self::ConnectionEnded => "its connection ended".into(),
            Self::Replaced => "it has reconnected on another connection".into(),
            Self::Expired => "its certificate has expired, and it will reconnect with the next one".into(),
            Self::Revoked => "its identity was revoked".into(),
            Self::Silent(limit_ms) => format!("it sent nothing for {limit_ms} ms"),
            Self::Overdue => "its tasks are overdue".into(),
            Self::InvalidMessage(why) => why.clone(),
            Self::FailsTasks { again: false, .. } => {
                "three different tasks failed on it that other workers have computed".into()
            }
            Self::FailsTasks { again: true, .. } => {
                "it was tried again, and a task failed on it that other workers have computed".into()
            }
            Self::Outvoted => "two other workers had a different output of a task".into(),
            Self::Convicted => "a trusted worker has found that it computes wrongly".into(),
        }
    }

    /// How the worker's stream is closed, if its connection still exists.
    pub(super) fn close(&self) -> Option<(CloseKind, u32)> {
        match self {
            Self::ConnectionEnded | Self::Revoked => None,
            Self::Replaced | Self::Expired | Self::Silent(_) | Self::Overdue => Some((CloseKind::Retry, 0)),
            Self::InvalidMessage(_) | Self::Convicted => Some((CloseKind::Refused, 0)),
            Self::FailsTasks { pause_ms, .. } => Some((CloseKind::Retry, *pause_ms as u32)),
            Self::Outvoted => Some((CloseKind::Retry, SET_ASIDE_MS)),
        }
    }

    /// Whether the worker's running tasks may have caused the loss.
    pub(super) fn accuses(&self) -> bool {
        matches!(self, Self::ConnectionEnded | Self::Silent(_) | Self::Overdue)
    }
}
