//! The reliability of workers, remembered beyond their sessions.
//!
//! A worker that is repeatedly lost before it has proved itself must wait before it joins again, longer each time, so that
//! others do its work. A session that lasts, or that proves itself for the tasks that it has, resets this: what it computed in
//! that time is much more than what is lost with it. The workers of an address share a record too, with shorter pauses: who
//! must wait only because of its neighbours has done nothing wrong.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use evoxo_common::time::Millis;

/// A session that lasted this long, in milliseconds, did not end early.
const EARLY_MS: u64 = 30_000;
/// Early ends in a row without a pause.
const FORGIVEN: u32 = 3;
/// The first pause, in milliseconds; each further one is twice as long.
const PAUSE_MS: u64 = 1000;
/// The longest pause, in milliseconds.
const PAUSE_MS_MAX: u64 = 300_000;
/// The longest pause because of neighbours, in milliseconds.
const SHARED_PAUSE_MS_MAX: u64 = 10_000;
/// The most workers that are remembered.
const REMEMBERED_MAX: usize = 16_384;

/// The identity of a worker: whom its certificate belongs to; without certificates its name and the address it connects
/// from. A worker that is killed and started again keeps its identity, although session and process are new.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(Arc<str>);

impl Identity {
    pub(super) fn of(name: &str, address: &str) -> Self {
        Self(format!("{name} at {address}").into())
    }

    /// By its certificate, whatever its name and address.
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
    /// The worker or the coordinator meant it to.
    OnPurpose,
    /// It was lost when it had computed for much longer than the tasks that it had then take.
    Proven,
    /// It was lost before.
    Early,
}

/// How long a worker must wait before it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    /// In milliseconds; 0 if it may join.
    pub(super) ms: u64,
    /// Because of what its neighbours did, and nothing else.
    pub(super) neighbours: bool,
}

/// What is remembered of a worker.
#[derive(Debug, Default)]
struct Standing {
    /// The start times of its open sessions.
    open: Vec<Millis>,
    /// Sessions in a row that ended early.
    early_ends: u32,
    /// It may not join before this time.
    away_until: Millis,
    /// It was told that it may join at this time, as far as its neighbours are concerned.
    told: Option<Millis>,
    /// When something last happened to it.
    last: Millis,
}

/// What is remembered of all workers.
#[derive(Debug, Default)]
pub(super) struct Standings {
    workers: BTreeMap<Identity, Standing>,
    /// Processes that were lost with tasks, oldest first.
    lost: VecDeque<u64>,
}

impl Standings {
    /// How long a worker must wait. Who was told to wait because of its neighbours may join then, whatever they have done
    /// meanwhile.
    pub(super) fn pause(&mut self, [worker, neighbours]: [&Identity; 2], now: Millis) -> Pause {
        let until = |identity| self.workers.get(identity).map_or(Millis(0), |standing| standing.away_until);
        let (own, shared) = (until(worker), until(neighbours).min(now + SHARED_PAUSE_MS_MAX));
        let shared = match self.workers.get(worker).and_then(|standing| standing.told) {
            Some(told) => told,
            None if shared > now => {
                let standing = self.remembered(worker);
                (standing.told, standing.last) = (Some(shared), now);
                shared
            }
            None => now,
        };
        Pause { ms: own.max(shared) - now, neighbours: shared > own.max(now) }
    }

    /// A worker has joined.
    pub(super) fn joined(&mut self, worker: &Identity, now: Millis) {
        let standing = self.remembered(worker);
        standing.open.push(now);
        (standing.told, standing.last) = (None, now);
    }

    fn remembered(&mut self, worker: &Identity) -> &mut Standing {
        if self.workers.len() >= REMEMBERED_MAX && !self.workers.contains_key(worker) {
            self.forget_oldest();
        }
        self.workers.entry(worker.clone()).or_default()
    }

    /// A worker's session that began at `began` has ended.
    pub(super) fn left(&mut self, worker: &Identity, began: Millis, now: Millis, end: End) {
        let Some(standing) = self.workers.get_mut(worker) else { return };
        if let Some(place) = standing.open.iter().position(|open| *open == began) {
            standing.open.swap_remove(place);
        }
        standing.last = now;
        // Another lasting worker of the same name and address shows that the identity is reliable.
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

    /// A worker that counted as lost has come back: only its connection had ended.
    pub(super) fn came_back(&mut self, worker: &Identity) {
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

    /// Whether this process was lost, as far as is remembered; it is then forgotten.
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

    /// Of a worker without neighbours.
    fn pause_ms(standings: &mut Standings, worker: &Identity, now: Millis) -> u64 {
        let pause = standings.pause([worker, &Identity::of_all("nowhere")], now);
        assert!(!pause.neighbours);
        pause.ms
    }

    /// Joins as soon as it may and leaves after `lasts_ms`; returns when it left.
    fn session(standings: &mut Standings, worker: &Identity, now: Millis, lasts_ms: u64) -> Millis {
        let began = now + pause_ms(standings, worker, now);
        standings.joined(worker, began);
        standings.left(worker, began, began + lasts_ms, End::Early);
        began + lasts_ms
    }

    #[test]
    fn a_worker_that_flaps_must_wait_longer_and_longer() {
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
            assert_eq!(pause_ms(&mut standings, &worker, after), 0, "it made good for all before");
            let after = (0..5).fold(after, |now, _| session(&mut standings, &worker, now, 10));
            assert!(pause_ms(&mut standings, &worker, after) > 0);
            after + 300_000
        };
        now = proves(now + 300_000, 40_000, End::Early);
        proves(now, 2000, End::Proven);
    }

    #[test]
    fn a_lasting_worker_of_the_same_identity_prevents_a_pause() {
        let (mut standings, worker) = (Standings::default(), Identity::of("w", "10.0.0.1"));
        standings.joined(&worker, Millis(0));
        let mut now = Millis(30_000);
        for _ in 0..20 {
            now = session(&mut standings, &worker, now, 100);
            assert_eq!(pause_ms(&mut standings, &worker, now), 0);
        }
    }

    /// A healthy worker waits for ten seconds at most, although others at its address come and go all the time, under names
    /// of their own.
    #[test]
    fn neighbours_delay_a_worker_and_never_keep_it_out() {
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
        assert_eq!(pause, Pause { ms: SHARED_PAUSE_MS_MAX, neighbours: true });
        let now = seconds(&mut standings, 4);
        assert_eq!(standings.pause([&worker, &all], now), Pause { ms: 6000, neighbours: true });
        let now = seconds(&mut standings, 6);
        assert_eq!(standings.pause([&worker, &all], now), Pause { ms: 0, neighbours: false });
        // It keeps this until it joins.
        let now = seconds(&mut standings, 60);
        assert_eq!(standings.pause([&worker, &all], now).ms, 0);
        flap(&mut standings, &worker, now);
        assert_eq!(standings.pause([&worker, &all], now + 10).ms, SHARED_PAUSE_MS_MAX);
        // Its own record counts for longer.
        (0..9).for_each(|_| flap(&mut standings, &worker, now));
        let pause = standings.pause([&worker, &all], now);
        assert!(pause.ms > 60_000 && !pause.neighbours, "{pause:?}");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut standings = Standings::default();
        for number in 0..REMEMBERED_MAX as u64 + 100 {
            session(&mut standings, &Identity::of(&number.to_string(), "10.0.0.1"), Millis(number), 1);
        }
        assert_eq!(standings.workers.len(), REMEMBERED_MAX);
    }
}
