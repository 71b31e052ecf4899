//! A simulated cluster from outside, and what must be true at its end.

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::{
    digest::Digest,
    experiment::{Config, Replica, run_digest},
    local,
    task::Encoder,
};
use evoxo_coordinator::{
    core::Write,
    saved::{object_name, origin_of, seal_replica},
    store::Store,
};
use evoxo_proto::v1::{self, RunState};
use evoxo_tests::registry;

use super::{Character, Cluster};

impl Cluster {
    pub(super) fn state(&self) -> String {
        let views = self.seats.iter().map(|seat| seat.views.values().collect::<Vec<_>>());
        format!("{:#?}", views.collect::<Vec<_>>())
    }

    fn finished(&self, name: &str) -> Option<&v1::Run> {
        let mut views = self.seats.iter().filter_map(|seat| seat.views.get(name));
        views.find(|view| view.state() == RunState::Finished)
    }

    /// Whether all runs are finished, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        let all = self.runs.iter().all(|(name, _)| self.finished(name).is_some());
        self.outcome.failure.is_some() || (self.submitted.len() == self.runs.len() && all)
    }

    /// The end: the result of one thread, in the views and in the store, with not too much work.
    pub(crate) fn check(&mut self, seed: u64) {
        let mut needed = 0;
        for (name, prepared) in &self.runs {
            let expected = local::run(&prepared.config).expect("planned tasks are good");
            let digest = run_digest(expected.iter().map(Replica::digest)).to_string();
            let run = self.finished(name).expect("it is over");
            assert_eq!((&run.digest, run.doubts.len()), (&digest, 0), "seed {seed}, run {name}: another result");
            needed += count_tasks(&prepared.config);
        }
        self.check_store(seed);
        let computed: u64 = self.workers.iter().filter(|w| w.character == Character::Honest).map(|w| w.computed).sum();
        self.outcome.tasks_repeated = computed.saturating_sub(needed);
        let lives = 1 + self.outcome.crashes + 2 * u64::from(self.faults.rival);
        let faults = self.faults.budget - self.faults_left;
        let bound = 2 * needed * lives + 100 * faults;
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

    fn check_store(&self, seed: u64) {
        let objects = Arc::clone(&self.objects);
        let mut store = Store::over(objects, "the simulation", registry().clone());
        let (saved, _) = store.load().expect("objects in memory can be listed");
        for saved in saved {
            let prepared = saved.prepared.as_ref().expect("a configuration of this build");
            let origin = origin_of(registry(), prepared);
            let replicas = local::run(&prepared.config).expect("planned tasks are good");
            let places = prepared.config.arms.iter().enumerate().flat_map(|(arm, _)| {
                (0..prepared.config.replicas).map(move |index| arm as u64 * 1_000_000 + u64::from(index))
            });
            let object = |(replica, ordinal): (&Replica, u64)| {
                let bytes = seal_replica(&origin, replica.save());
                object_name(&Write::Finished { ordinal, bytes }).expect("a name")
            };
            let expected: BTreeSet<String> = replicas.iter().zip(places).map(object).collect();
            let kept: BTreeSet<String> = saved.finished.iter().map(|finished| finished.object.clone()).collect();
            assert!(kept.is_subset(&expected), "seed {seed}: the store has foreign bytes");
            assert!(kept == expected || !saved.notices.is_empty(), "seed {seed}: {kept:?} of {expected:?}");
            let most = 2 * self.outcome.objects_damaged;
            assert!(saved.notices.len() as u64 <= most, "seed {seed}: {:?}", saved.notices);
        }
    }
}

/// The number of different tasks of each round of each replica. Two rounds may have the same task (a search that
/// evaluates the same candidates again); outputs are not kept that long. Without a barrier the last round may leave tasks
/// that nobody needs.
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
