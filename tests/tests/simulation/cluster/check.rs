//! A simulated cluster seen from outside, and what must be true at its end.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, mark, open},
    experiment::{Config, Replica, ResultDigest},
    local,
    task::Encoder,
};
use evoxo_coordinator::{
    prepared::Prepared,
    saved::{SavedFinished, origin_of, seal_replica},
    store::Store,
    trust::void_since,
};
use evoxo_proto::v1::{self, RunState};
use evoxo_tests::registry;
use prost::Message as _;

use super::{Character, Cluster, Level, SimWorker};
use crate::{draw, objects::names, seat::Seat};

impl Cluster {
    pub(super) fn state(&self) -> String {
        let views = self.seats.iter().map(|seat| seat.views.values().collect::<Vec<_>>());
        let asked = |(run, (name, prepared)): (usize, &(String, Arc<Prepared>))| {
            let confirmed = self.submitted.contains(&run);
            format!("{name}: {} replicas, confirmed: {confirmed}, gone: {}", prepared.replicas(), self.is_gone(run))
        };
        let asked: Vec<String> = self.runs.iter().enumerate().map(asked).collect();
        format!("{asked:#?} {:#?}", views.collect::<Vec<_>>())
    }

    /// The view of a run, if the run is finished with all requested replicas.
    fn finished(&self, run: usize) -> Option<&v1::Run> {
        let (name, prepared) = &self.runs[run];
        // A coordinator that no longer leads may still show a run that has since been deleted.
        let newest = self.seats.iter().filter_map(Seat::epoch).max();
        let seats = self.seats.iter().filter(|seat| self.outcome.deleted == 0 || seat.epoch() == newest);
        let mut views = seats.filter_map(|seat| seat.views.get(name));
        let all = |view: &v1::Run| u64::from(view.replicas_total) == prepared.replicas();
        views.find(|view| view.state() == RunState::Finished && all(view))
    }

    /// Whether a run is submitted only when the first one is finished, so that it may begin with the first one's states.
    pub(super) fn waits_for_past(&self, run: usize) -> bool {
        run > 0 && draw::waits_for_past(&self.runs[run].1) && !self.is_gone(0) && self.finished(0).is_none()
    }

    /// Whether all runs are finished or deleted for good, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        let finished =
            |run: usize| self.is_gone(run) || (self.submitted.contains(&run) && self.finished(run).is_some());
        self.outcome.failure.is_some() || (0..self.runs.len()).all(finished)
    }

    /// Whether nothing of any run is left in the store.
    pub(crate) fn has_no_runs(&self) -> bool {
        self.runs.iter().all(|(name, _)| self.objects_of(name).is_empty())
    }

    /// Checks the end: the result of one thread, in the views and in the store, without too much work.
    pub(crate) fn check(&mut self, seed: u64) {
        let mut needed = 0;
        for (number, (name, prepared)) in self.runs.iter().enumerate() {
            needed += count_tasks(&prepared.config) * (1 + self.people.deleted.get(&number).unwrap_or(&0));
            if self.is_gone(number) {
                assert_eq!(self.objects_of(name), [""; 0], "seed {seed}: {name} is deleted");
                continue;
            }
            let expected = local::run(&prepared.config).expect("planned tasks are good");
            let digest = ResultDigest::of_run(expected.iter().map(Replica::digest)).to_string();
            let run = self.finished(number).expect("it is over");
            assert_eq!((&run.digest, run.doubts.len()), (&digest, 0), "seed {seed}, run {name}: the result differs");
        }
        self.check_store(seed);
        // The content of a damaged checkpoint is unknown.
        if self.outcome.objects_damaged == 0 {
            self.check_disputes(seed);
        }
        let computed: u64 = {
            let honest = |w: &&SimWorker| matches!(w.character, Character::Honest | Character::Trusted);
            self.workers.iter().filter(honest).map(|w| w.computed).sum()
        };
        self.outcome.tasks_repeated = computed.saturating_sub(needed);
        let lives = self.outcome.lives;
        let faults = self.faults.budget - self.faults_left;
        // With verification two workers compute each task, and results that nobody requests again are lost with a session.
        let times = match self.faults.level {
            Level::Plain => 2,
            Level::Quorum | Level::Verified => 4,
            // Everything computed before a conviction may be void.
            Level::Sampled { .. } => 4 * (1 + self.outcome.convicted.len() as u64),
        };
        let bound = times * needed * lives + 100 * faults;
        assert!(
            computed <= bound,
            "seed {seed}: {computed} tasks computed where {needed} were needed, {faults} faults"
        );
        for worker in &self.workers {
            let most = 2 * worker.slots;
            assert!(
                worker.unfinished_max <= most,
                "seed {seed}: {} assignments for {} slots",
                worker.unfinished_max,
                worker.slots
            );
            assert!(worker.character != Character::Foreign || worker.computed == 0, "a foreign build got work");
        }
    }

    /// The names of the objects of a run, relative to the run.
    pub(super) fn objects_of(&self, name: &str) -> Vec<String> {
        let below = format!("runs/{name}/");
        names(&self.objects).iter().filter_map(|name| Some(name.strip_prefix(&below)?.to_owned())).collect()
    }

    /// Checks that of two workers that differ, one is convicted. The coordinator that found the difference may have ended as
    /// soon as the store had it.
    pub(crate) fn check_disputes(&self, seed: u64) {
        let stored = names(&self.objects);
        for pair in &self.outcome.disputes {
            let convicted = pair.iter().any(|identity| stored.contains(&format!("convicted/{identity}")));
            assert!(convicted, "seed {seed}: {pair:?} differ, but neither is convicted");
        }
    }

    /// Notes the workers that contradict each other in a stored checkpoint.
    pub(super) fn note_disputes(&mut self, checkpoint: &Bytes) {
        let body = open(Kind::Checkpoint, checkpoint).expect("it was sealed here");
        let checkpoint = v1::Checkpoint::decode(body).expect("it was sealed here");
        for recomputations in checkpoint.replicas.iter().map(|state| &state.recomputations) {
            // The recomputations are in the order of their tasks.
            for pair in recomputations
                .windows(2)
                .filter(|pair| pair[0].task == pair[1].task && pair[0].output != pair[1].output)
            {
                self.outcome.disputes.insert([pair[0].identity.clone(), pair[1].identity.clone()]);
            }
        }
    }

    fn check_store(&self, seed: u64) {
        let objects = Arc::clone(&self.objects);
        let mut store = Store::over(objects, "the simulation", registry().clone());
        let (saved, _) = store.load().expect("objects in memory can be listed");
        let convicted = names(&self.objects);
        for saved in saved {
            let prepared = saved.prepared.as_ref().expect("a configuration of this build");
            let origin = origin_of(registry(), prepared);
            let replicas = local::run(&prepared.config).expect("planned tasks are good");
            let sealed =
                |replica: &Replica| mark(&seal_replica(&origin, replica.save())).map(|mark| format!("{mark:x}"));
            // If the object of a replica that was computed again is damaged, the void one before it is found.
            let counts = |it: &&SavedFinished| {
                let exposed = it.replica.exposed.iter().map(|(identity, since)| (&**identity, *since));
                let is_convicted = |identity: &str| convicted.contains(&format!("convicted/{identity}"));
                void_since(exposed, self.faults.level.vouchers(), is_convicted).is_none()
            };
            let finished = || saved.finished.iter().filter(counts);
            // With recomputations and quorums, the objects also say on whose word they were computed.
            let (expected, kept): (BTreeSet<String>, BTreeSet<String>) = match self.faults.level {
                Level::Sampled { .. } | Level::Quorum => (
                    replicas.iter().map(|replica| replica.digest().to_string()).collect(),
                    finished().map(|finished| finished.replica.digest.to_string()).collect(),
                ),
                _ => (
                    replicas.iter().filter_map(sealed).collect(),
                    finished().map(|finished| format!("{:x}", finished.place.mark)).collect(),
                ),
            };
            assert!(kept.is_subset(&expected), "seed {seed}: the store has foreign bytes");
            assert!(kept == expected || !saved.notices.is_empty(), "seed {seed}: {kept:?} of {expected:?}");
            // If a former leader wrote a first order late, that order stays in addition to the run that the next leader
            // accepted.
            let late =
                saved.notices.iter().filter(|notice| notice.contains("-000001 is of an earlier run")).count() as u64;
            let most = 2 * self.outcome.objects_damaged + late.min(self.outcome.takeovers + self.outcome.rivals);
            assert!(saved.notices.len() as u64 <= most, "seed {seed}: {:?}", saved.notices);
        }
    }
}

/// The number of different tasks of each round of each replica. Two rounds may have the same task, for example if a search
/// evaluates the same candidates again, because outputs are not kept that long. Without a barrier the last round may have
/// tasks that nobody needs.
fn count_tasks(config: &Config) -> u64 {
    let mut count = 0;
    for mut replica in local::start(config) {
        while !replica.is_finished() {
            let mut encoder = Encoder::default();
            let round = replica.plan(0..replica.needed());
            count += round.into_iter().map(|task| encoder.encode(task).hash).collect::<BTreeSet<Digest>>().len() as u64;
            let left = (replica.tasks() - replica.needed()) as u64;
            local::step(&mut replica).expect("planned tasks are good");
            count += if replica.is_finished() { left } else { 0 };
        }
    }
    count
}
