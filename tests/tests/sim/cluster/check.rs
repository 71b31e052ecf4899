//! How a simulated cluster is seen from outside, and what must be true at its end.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::{
    config::Config,
    digest::Digest,
    local,
    replica::{Replica, run_digest},
};
use evoxo_coordinator::core::{Answer, Ask, Effect, Event, Ticket};
use evoxo_proto::v1::{self, RunState};

use super::{Character, Cluster, Happening};

impl Cluster {
    pub(super) fn views(&mut self) -> Vec<v1::Run> {
        let now = self.now;
        let Some(coordinator) = &mut self.coordinator else { return Vec::new() };
        let effects = coordinator.handle(now, Event::Ask { ticket: Ticket(u64::MAX), ask: Ask::List });
        let mut views = Vec::new();
        for effect in effects {
            match effect {
                Effect::Answer { ticket: Ticket(u64::MAX), answer: Ok(Answer::Runs(runs)) } => views = runs,
                other => self.carry_out(other),
            }
        }
        views
    }

    pub(super) fn state(&mut self) -> String {
        format!("{:#?}", self.views())
    }

    pub(super) fn all_finished(&mut self) -> bool {
        if self.submitted.len() < self.runs.len() || !self.agenda.values().any(|h| matches!(h, Happening::Meddle)) {
            return false;
        }
        let views = self.views();
        for view in views.iter().filter(|view| view.state() == RunState::Failed) {
            // Three workers can be lost by chance with the same task; nothing else may fail a run here.
            let faults = self.faults.budget - self.faults_left;
            assert!(view.message.contains("took three workers with it") && faults >= 3, "{view:#?}");
            self.outcome.unlucky = true;
        }
        if self.outcome.unlucky {
            return true;
        }
        views.len() == self.runs.len() && views.iter().all(|view| view.state() == RunState::Finished)
    }

    /// The end: the bytes of one thread, in the coordinator's mouth and on its disk; and not too much work for it.
    pub(super) fn check(&mut self, seed: u64) {
        let views: BTreeMap<String, v1::Run> = self.views().into_iter().map(|view| (view.name.clone(), view)).collect();
        let mut needed = 0;
        for (name, config) in self.runs.clone() {
            let expected = local::run(&config).expect("planned tasks are good");
            assert_eq!(
                views[&name].digest,
                run_digest(&expected).to_string(),
                "seed {seed}, run {name}: another result"
            );
            needed += count_tasks(&config);
        }
        for saved in self.disk.load() {
            let config = Config::parse("saved", &saved.order.config, &[]).expect("a saved configuration is good");
            let expected: BTreeSet<Vec<u8>> =
                local::run(&config).expect("good").iter().map(|replica| encode(&replica.save())).collect();
            let kept: BTreeSet<Vec<u8>> =
                saved.finished.iter().filter_map(|f| f.replica.as_ref()).map(encode).collect();
            assert!(
                saved.notices.len() as u64 <= 2 * self.outcome.objects_damaged + self.outcome.crashes,
                "{:?}",
                saved.notices
            );
            assert!(kept.is_subset(&expected), "seed {seed}: foreign bytes are kept");
            if saved.notices.is_empty() {
                assert_eq!(kept, expected, "seed {seed}: the disk has other bytes");
            }
        }
        let computed: u64 = self.workers.iter().filter(|w| w.character == Character::Honest).map(|w| w.computed).sum();
        self.outcome.tasks_repeated = computed.saturating_sub(needed);
        self.outcome.ended_at_ms = self.now.0;
        let faults = self.faults.budget - self.faults_left;
        let bound = needed * (2 + 2 * self.outcome.crashes) + 100 * faults;
        assert!(
            computed <= bound,
            "seed {seed}: {computed} tasks computed where {needed} were needed, {faults} faults"
        );
        for worker in &self.workers {
            let most = 2 * worker.slots;
            assert!(worker.held_max <= most, "seed {seed}: {} assignments for {} slots", worker.held_max, worker.slots);
            assert!(worker.character != Character::Foreign || worker.computed == 0, "a foreign build got work");
        }
    }
}

fn encode(state: &v1::ReplicaState) -> Vec<u8> {
    prost::Message::encode_to_vec(state)
}

/// Different tasks of each round of each replica. Two rounds may have the same task (a search that judges the same
/// candidates again): nobody remembers an answer that long.
fn count_tasks(config: &Config) -> u64 {
    let mut count = 0;
    for mut replica in local::start(config).collect::<Vec<Replica>>() {
        loop {
            let round = replica.plan();
            let hashes = round.iter().map(|task| Digest::of(&prost::Message::encode_to_vec(task)));
            count += hashes.collect::<BTreeSet<Digest>>().len() as u64;
            if !local::step(&mut replica).expect("planned tasks are good") {
                break;
            }
        }
    }
    count
}
