//! The reliability of workers, remembered beyond their sessions.
//!
//! A worker that is repeatedly lost before it has proved itself must wait before it joins again, longer each time, so that
//! others do its work. A session that lasts, or that proves itself for its tasks, resets this, because it computed much more
//! than is lost with it. The workers at an address also share a record, with shorter pauses: a worker that must wait only
//! because of its neighbours has done nothing wrong.
//!
//! A worker on which tasks fail that others compute is set aside in the same way, longer each time. When it returns it is on
//! trial: it gets one task at a time until it has computed three. So a repaired host is soon back in full use, and a broken
//! one costs one failure per pause.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use evoxo_common::time::Millis;

use super::attempts::AttemptHistory;

/// A session that lasted at least this long, in milliseconds, did not end early.
const EARLY_MS: u64 = 30_000;
/// How many early ends in a row cause no pause.
const FORGIVEN: u32 = 3;
/// The first pause, in milliseconds. Each further pause is twice as long.
const PAUSE_MS: u64 = 1000;
/// The maximum pause, in milliseconds.
const PAUSE_MS_MAX: u64 = 300_000;
/// The maximum pause because of neighbours, in milliseconds.
const SHARED_PAUSE_MS_MAX: u64 = 10_000;
/// The first pause of a worker on which tasks fail, in milliseconds. Each further pause is twice as long.
const ASIDE_MS: u64 = 60_000;
/// The maximum of such a pause, in milliseconds. If a worker is not set aside for this long after its trial, its next pause
/// is the first one again.
const ASIDE_MS_MAX: u64 = 1_800_000;
/// The number of computed tasks that ends a trial.
const TRIAL_TASKS: u32 = 3;
/// The maximum number of workers that are remembered.
const REMEMBERED_MAX: usize = 16_384;

/// A worker's identity: the holder of its certificate, or, without certificates, its name and the address that it connects
/// from. A worker that is killed and restarted keeps its identity, although its session and process are new.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(Arc<str>);

impl Identity {
    pub(super) fn of(name: &str, address: &str) -> Self {
        Self(format!("{name} at {address}").into())
    }

    /// The identity given by a certificate, whatever the worker's name and address.
    pub(super) fn of_certificate(id: &str) -> Self {
        Self(format!("identity {id}").into())
    }

    /// All workers at an address, whatever their names.
    pub(super) fn of_all(address: &str) -> Self {
        Self(format!("at {address}").into())
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The worker or the coordinator ended it on purpose.
    OnPurpose,
    /// It was lost after it had computed for much longer than its current tasks take.
    Proven,
    /// It was lost earlier than that.
    Early,
}

/// How long a worker must wait before it joins, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    /// The wait in milliseconds; 0 if the worker may join.
    pub(super) ms: u64,
    pub(super) why: Why,
}

/// Why a worker must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It was repeatedly lost soon after it joined.
    Lost,
    /// Only its neighbours were repeatedly lost.
    Neighbours,
    /// Tasks failed on it that other workers have computed.
    FailsTasks,
}

/// The record of a worker.
#[derive(Debug, Default)]
struct Standing {
    /// The start times of its current sessions.
    open: Vec<Millis>,
    /// The number of sessions in a row that ended early.
    early_ends: u32,
    /// The time before which it may not join.
    away_until: Millis,
    /// How often it was set aside.
    set_aside: u32,
    /// The time until which it is set aside.
    aside_until: Millis,
    /// The number of tasks that it must still compute to end its trial.
    trial: u32,
    /// The time until which it was told to wait because of its neighbours.
    told: Option<Millis>,
    /// How its attempts ended.
    attempts: AttemptHistory,
    /// When the record last changed.
    last: Millis,
}

/// The records of all workers.
#[derive(Debug, Default)]
pub(super) struct Standings {
    workers: BTreeMap<Identity, Standing>,
    /// Processes that were lost with tasks, oldest first.
    lost: VecDeque<u64>,
}

impl Standings {
    /// How long a worker must wait. A worker that was told to wait because of its neighbours may join at that time, whatever
    /// they do in the meantime.
    pub(super) fn pause(&mut self, [worker, neighbours]: [&Identity; 2], now: Millis) -> Pause {
        let until = |identity| self.workers.get(identity).map_or(Millis(0), |standing| standing.away_until);
        let aside = self.workers.get(worker).map_or(Millis(0), |standing| standing.aside_until);
        let (own, shared) = (until(worker).max(aside), until(neighbours).min(now + SHARED_PAUSE_MS_MAX));
        let shared = match self.workers.get(worker).and_then(|standing| standing.told) {
            Some(told) => told,
            None if shared > now => {
                let standing = self.remembered(worker);
                (standing.told, standing.last) = (Some(shared), now);
                shared
            }
            None => now,
        };
        let why = match () {
            () if shared > own.max(now) => Why::Neighbours,
            () if aside == own && aside > now => Why::FailsTasks,
            () => Why::Lost,
        };
        Pause { ms: own.max(shared) - now, why }
    }

    /// Sets a worker aside because tasks failed on it that other workers have computed. Returns for how long, in
    /// milliseconds. With `vouched`, another worker of the same identity computes tasks, so workers of this identity may
    /// still join, on trial.
    pub(super) fn set_aside(&mut self, worker: &Identity, now: Millis, vouched: bool) -> u64 {
        let standing = self.remembered(worker);
        if standing.trial == 0 && now - standing.aside_until >= ASIDE_MS_MAX {
            standing.set_aside = 0;
        }
        let pause_ms = (ASIDE_MS << standing.set_aside.min(16)).min(ASIDE_MS_MAX);
        standing.set_aside += 1;
        standing.aside_until = if vouched { now } else { now + pause_ms };
        (standing.trial, standing.last) = (TRIAL_TASKS, now);
        pause_ms
    }

    /// Whether a worker was set aside and has not yet proved since then that it can compute.
    pub(super) fn is_on_trial(&self, worker: &Identity) -> bool {
        self.workers.get(worker).is_some_and(|standing| standing.trial > 0)
    }

    /// A worker on trial has computed a task. Returns whether the trial is over.
    pub(super) fn passes(&mut self, worker: &Identity) -> bool {
        let standing = self.connected(worker);
        standing.trial = standing.trial.saturating_sub(1);
        standing.trial == 0
    }

    /// How the attempts of a worker ended, if it is remembered.
    pub(super) fn history(&self, worker: &Identity) -> Option<&AttemptHistory> {
        Some(&self.workers.get(worker)?.attempts)
    }

    /// Like [`Self::history`], to change it.
    pub(super) fn history_mut(&mut self, worker: &Identity) -> Option<&mut AttemptHistory> {
        Some(&mut self.workers.get_mut(worker)?.attempts)
    }

    /// A worker has joined.
    pub(super) fn joined(&mut self, worker: &Identity, now: Millis) {
        let standing = self.remembered(worker);
        standing.open.push(now);
        (standing.told, standing.last) = (None, now);
    }

    /// The record of a worker that has a session. Such a record is never forgotten.
    fn connected(&mut self, worker: &Identity) -> &mut Standing {
        self.workers.get_mut(worker).unwrap_or_else(|| panic!("a connected worker was forgotten: {worker:?}"))
    }

    fn remembered(&mut self, worker: &Identity) -> &mut Standing {
        if self.workers.len() >= REMEMBERED_MAX && !self.workers.contains_key(worker) {
            self.forget_oldest();
        }
        self.workers.entry(worker.clone()).or_default()
    }

    /// A worker's session that started at `began` has ended.
    pub(super) fn left(&mut self, worker: &Identity, began: Millis, now: Millis, end: End) {
        let standing = self.connected(worker);
        let place = standing.open.iter().position(|open| *open == began);
        standing.open.swap_remove(place.expect("a session that ends was recorded at its start"));
        standing.last = now;
        // Another long-lived worker with the same name and address shows that the identity is reliable.
        let vouched = standing.open.iter().any(|open| now - *open >= EARLY_MS);
        if now - began >= EARLY_MS || vouched || end == End::Proven {
            standing.early_ends = 0;
        } else if end == End::Early {
            standing.early_ends += 1;
            if standing.early_ends > FORGIVEN {
                let doublings = (standing.early_ends - FORGIVEN - 1).min(16);
                standing.away_until = now + (PAUSE_MS << doublings).min(PAUSE_MS_MAX);
            }
        }
    }

    /// A worker that counted as lost has reconnected. Only its connection had ended.
    pub(super) fn came_back(&mut self, worker: &Identity) {
        // The record may have been forgotten.
        if let Some(standing) = self.workers.get_mut(worker) {
            standing.early_ends = standing.early_ends.saturating_sub(1);
        }
    }

    /// A process was lost with its tasks.
    pub(super) fn note_lost(&mut self, process: u64) {
        self.lost.push_back(process);
        if self.lost.len() > REMEMBERED_MAX {
            self.lost.pop_front();
        }
    }

    /// Whether this process is remembered as lost. It is then forgotten.
    pub(super) fn take_lost(&mut self, process: u64) -> bool {
        let before = self.lost.len();
        self.lost.retain(|lost| *lost != process);
        self.lost.len() < before
    }

    fn forget_oldest(&mut self) {
        let idle = self.workers.iter().filter(|(_, standing)| standing.open.is_empty());
        let oldest = idle.min_by_key(|(_, standing)| standing.last).map(|(worker, _)| worker.clone());
        if let Some(worker) = oldest {
            self.workers.remove(&worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause of a worker without neighbours, in milliseconds.
    fn pause_ms(standings: &mut Standings, worker: &Identity, now: Millis) -> u64 {
        let pause = standings.pause([worker, &Identity::of_all("nowhere")], now);
        assert_eq!(pause.why, Why::Lost);
        pause.ms
    }

    /// Joins as soon as the worker may, and leaves after `lasts_ms`. Returns when it left.
    fn session(standings: &mut Standings, worker: &Identity, now: Millis, lasts_ms: u64) -> Millis {
        let began = now + pause_ms(standings, worker, now);
        standings.joined(worker, began);
        standings.left(worker, began, began + lasts_ms, End::Early);
        began + lasts_ms
    }

    #[test]
    fn a_flapping_worker_waits_longer_each_time() {
        let (mut standings, worker) = (Standings::default(), Identity::of("w", "10.0.0.1"));
        let mut now = Millis(0);
        let mut pauses = Vec::new();
        for _ in 0..14 {
            now = session(&mut standings, &worker, now, 2000);
            pauses.push(pause_ms(&mut standings, &worker, now) / 1000);
        }
        assert_eq!(pauses, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        let mut proves = |now: Millis, lasts_ms: u64, end: End| {
            standings.joined(&worker, now);
            standings.left(&worker, now, now + lasts_ms, end);
            let after = session(&mut standings, &worker, now + lasts_ms, 10);
            assert_eq!(pause_ms(&mut standings, &worker, after), 0, "the earlier ends no longer count");
            let after = (0..5).fold(after, |now, _| session(&mut standings, &worker, now, 10));
            assert!(pause_ms(&mut standings, &worker, after) > 0);
            after + 300_000
        };
        now = proves(now + 300_000, 40_000, End::Early);
        proves(now, 2000, End::Proven);
    }

    #[test]
    fn a_stable_worker_of_the_same_identity_prevents_a_pause() {
        let (mut standings, worker) = (Standings::default(), Identity::of("w", "10.0.0.1"));
        standings.joined(&worker, Millis(0));
        let mut now = Millis(30_000);
        for _ in 0..20 {
            now = session(&mut standings, &worker, now, 100);
            assert_eq!(pause_ms(&mut standings, &worker, now), 0);
        }
    }

    /// A healthy worker waits at most ten seconds, although other workers at its address constantly come and go under
    /// different names.
    #[test]
    fn neighbours_delay_a_worker_but_never_exclude_it() {
        let (mut standings, all) = (Standings::default(), Identity::of_all("10.0.0.1"));
        let worker = Identity::of("w", "10.0.0.1");
        let flap = |standings: &mut Standings, worker: &Identity, now: Millis| {
            for identity in [worker, &all] {
                standings.joined(identity, now);
                standings.left(identity, now, now + 10, End::Early);
            }
        };
        let mut now = Millis(0);
        let mut seconds = |standings: &mut Standings, count: u64| {
            for _ in 0..count {
                flap(standings, &Identity::of(&format!("ghost-{}", now.0), "10.0.0.1"), now);
                now = now + 1000;
            }
            now
        };
        let now = seconds(&mut standings, 100);
        let pause = standings.pause([&worker, &all], now);
        assert_eq!(pause, Pause { ms: SHARED_PAUSE_MS_MAX, why: Why::Neighbours });
        let now = seconds(&mut standings, 4);
        assert_eq!(standings.pause([&worker, &all], now), Pause { ms: 6000, why: Why::Neighbours });
        let now = seconds(&mut standings, 6);
        assert_eq!(standings.pause([&worker, &all], now), Pause { ms: 0, why: Why::Lost });
        // It keeps this right until it joins.
        let now = seconds(&mut standings, 60);
        assert_eq!(standings.pause([&worker, &all], now).ms, 0);
        flap(&mut standings, &worker, now);
        assert_eq!(standings.pause([&worker, &all], now + 10).ms, SHARED_PAUSE_MS_MAX);
        // Its own record causes longer waits.
        (0..9).for_each(|_| flap(&mut standings, &worker, now));
        let pause = standings.pause([&worker, &all], now);
        assert!(pause.ms > 60_000 && pause.why == Why::Lost, "{pause:?}");
    }

    #[test]
    fn a_failing_worker_waits_longer_and_is_tried_with_three_tasks() {
        let (mut standings, worker) = (Standings::default(), Identity::of("w", "10.0.0.1"));
        let pause = |standings: &mut Standings, now| standings.pause([&worker, &Identity::of_all("nowhere")], now);
        let mut now = Millis(0);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let ms = standings.set_aside(&worker, now, false);
            assert_eq!(pause(&mut standings, now), Pause { ms, why: Why::FailsTasks });
            now = now + ms;
            assert_eq!(pause(&mut standings, now), Pause { ms: 0, why: Why::Lost });
            pauses.push(ms / 1000);
        }
        assert_eq!(pauses, [60, 120, 240, 480, 960, 1800, 1800]);
        assert!(standings.is_on_trial(&worker));
        assert_eq!([1, 2, 3].map(|_| standings.passes(&worker)), [false, false, true]);
        assert!(!standings.is_on_trial(&worker));
        // Soon after the trial, the next pause is the longest. Much later, it is the first one again.
        assert_eq!(standings.set_aside(&worker, now + 1000, false), ASIDE_MS_MAX);
        (0..3).for_each(|_| _ = standings.passes(&worker));
        let later = now + 3 * ASIDE_MS_MAX;
        assert_eq!(standings.set_aside(&worker, later, true), ASIDE_MS);
        assert_eq!(pause(&mut standings, later).ms, 0, "another worker of its identity computes");
        assert!(standings.is_on_trial(&worker));
    }

    #[test]
    fn the_oldest_entries_are_dropped() {
        let mut standings = Standings::default();
        for number in 0..REMEMBERED_MAX as u64 + 100 {
            session(&mut standings, &Identity::of(&number.to_string(), "10.0.0.1"), Millis(number), 1);
        }
        assert_eq!(standings.workers.len(), REMEMBERED_MAX);
    }
}
