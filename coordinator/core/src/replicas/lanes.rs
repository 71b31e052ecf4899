//! The lanes of a run: its replicas, divided among several [`Replicas`], which a process may run on as many threads. Replicas
//! do not depend on each other, so lanes share only the checkpoints, which have the states of all, and what they recall.
//!
//! Which lane has a replica changes no state and no digest. The reports about one replica stay in order.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use evoxo_common::experiment::Registry;
use evoxo_proto::v1;

use super::{Job, ReceivedOutput, ReplicaKey, Replicas};
use crate::{prepared::Prepared, trust::Draw};

/// How the replicas of a run are divided. It stays the same as long as the run is loaded, also if replicas are added.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    count: usize,
    /// The replicas of each arm at the beginning.
    replicas: usize,
}

impl Default for Lanes {
    /// One lane.
    fn default() -> Self {
        Self { count: 1, replicas: 0 }
    }
}

impl Lanes {
    /// At most so many lanes, and no more than the run has replicas.
    #[must_use]
    pub fn of(prepared: &Prepared, most: usize) -> Self {
        let count = most.min(usize::try_from(prepared.replicas()).unwrap_or(most)).max(1);
        Self { count, replicas: prepared.config.replicas as usize }
    }

    /// The number of lanes.
    #[must_use]
    pub fn count(self) -> usize {
        self.count
    }

    /// The lane of a replica: they take turns in the order of all replicas.
    #[must_use]
    pub fn of_replica(self, replica: ReplicaKey) -> usize {
        (replica.arm as usize * self.replicas + replica.index as usize) % self.count
    }
}

impl Replicas {
    /// The lanes of a run that starts with these saved states.
    #[must_use]
    pub fn in_lanes(
        registry: &Registry,
        prepared: &Arc<Prepared>,
        draw: Draw,
        states: Vec<v1::ReplicaState>,
        lanes: Lanes,
    ) -> Vec<Self> {
        let parts = Arc::new(Parts { lanes: lanes.count, open: Mutex::default() });
        let whole = Self::new(registry, Arc::clone(prepared), draw, states);
        let mut begun: Vec<BTreeMap<_, _>> = (0..lanes.count).map(|_| BTreeMap::new()).collect();
        for (key, state) in whole.begun {
            begun[lanes.of_replica(key)].insert(key, state);
        }
        let lane = |begun| Self {
            begun,
            origin: whole.origin.clone(),
            prepared: Arc::clone(prepared),
            draw,
            recalling: None,
            parts: Arc::clone(&parts),
            given: 0,
            broken: false,
        };
        begun.into_iter().map(lane).collect()
    }
}

impl Job {
    /// The lanes that have something to do for this job, and what it is.
    #[must_use]
    pub fn for_lanes(self, lanes: Lanes) -> Vec<(usize, Self)> {
        let of = |replica: ReplicaKey| lanes.of_replica(replica);
        match self {
            Self::Open { replica, .. }
            | Self::Plan(replica)
            | Self::Copy { replica, .. }
            | Self::Recomputation { replica, .. }
            | Self::Recomputations(replica)
            | Self::Pass { replica, .. } => vec![(of(replica), self)],
            Self::Take(outputs) => {
                let mut by_lane = BTreeMap::<usize, Vec<ReceivedOutput>>::new();
                for output in outputs {
                    by_lane.entry(of(output.replica)).or_default().push(output);
                }
                by_lane.into_iter().map(|(lane, outputs)| (lane, Self::Take(outputs))).collect()
            }
            Self::Checkpoint { number } => (0..lanes.count).map(|lane| (lane, Self::Checkpoint { number })).collect(),
            Self::Void { identity, convicted, vouchers } => {
                let same = || Self::Void { identity: Arc::clone(&identity), convicted: convicted.clone(), vouchers };
                (0..lanes.count).map(|lane| (lane, same())).collect()
            }
            Self::Forget { identity } => {
                (0..lanes.count).map(|lane| (lane, Self::Forget { identity: Arc::clone(&identity) })).collect()
            }
        }
    }
}

/// The state of one replica in a checkpoint.
type Part = (ReplicaKey, v1::ReplicaState);

/// Checkpoints of which some lanes have not given their part yet.
pub(super) struct Parts {
    lanes: usize,
    /// By number: how many lanes have given their part, and all parts.
    open: Mutex<BTreeMap<u64, (usize, Vec<Part>)>>,
}

impl Parts {
    /// For replicas that are not divided.
    pub(super) fn of_one_lane() -> Arc<Self> {
        Arc::new(Self { lanes: 1, open: Mutex::default() })
    }

    /// Adds the part of a lane. Returns the states of all lanes, in the order of the replicas, if it is the last one.
    pub(super) fn add(&self, number: u64, part: Vec<Part>) -> Option<Vec<v1::ReplicaState>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (given, all) = open.entry(number).or_default();
        *given += 1;
        all.extend(part);
        if *given < self.lanes {
            return None;
        }
        let (_, mut all) = open.remove(&number)?;
        all.sort_unstable_by_key(|(key, _)| *key);
        Some(all.into_iter().map(|(_, state)| state).collect())
    }
}

#[cfg(test)]
mod tests {
    use evoxo_experiments::registry;

    use super::*;
    use crate::replicas::Report;

    const CONFIG: &str =
        "experiment = \"dispatch\"\nreplicas = 5\n[settings]\nrounds = 3\ntasks = 4\n[arms.a]\n[arms.b]\ntasks = 2\n";

    fn division(most: usize) -> Lanes {
        Lanes::of(&Prepared::read(&registry(), "a test", CONFIG).unwrap(), most)
    }

    /// Begins all replicas except one.
    fn begin(lanes: &mut [Replicas]) {
        for (arm, index) in (0..2).flat_map(|arm| (0..5).map(move |index| (arm, index))).skip(1) {
            let job = Job::Open { replica: ReplicaKey { arm, index }, attempt: 0 };
            for (lane, job) in job.for_lanes(division(lanes.len())) {
                assert!(matches!(lanes[lane].run(job).as_slice(), [Report::Planned { .. }]));
            }
        }
    }

    fn checkpoint(lanes: &mut [Replicas]) -> Vec<Report> {
        let jobs = Job::Checkpoint { number: 7 }.for_lanes(division(lanes.len()));
        jobs.into_iter().flat_map(|(lane, job)| lanes[lane].run(job)).collect()
    }

    fn in_lanes(states: Vec<v1::ReplicaState>, most: usize) -> Vec<Replicas> {
        let prepared = Prepared::read(&registry(), "a test", CONFIG).unwrap();
        Replicas::in_lanes(&registry(), &prepared, Draw::default(), states, Lanes::of(&prepared, most))
    }

    #[test]
    fn a_checkpoint_has_the_states_of_all_lanes() {
        let mut sealed = Vec::new();
        for most in [1, 3, 10, 99] {
            let mut lanes = in_lanes(Vec::new(), most);
            assert_eq!(lanes.len(), most.min(10), "no more lanes than replicas");
            begin(&mut lanes);
            // All but one have begun.
            let sizes: Vec<usize> = lanes.iter().map(|lane| lane.begun.len()).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(most - least <= 2 && sizes.iter().filter(|size| **size == 0).count() <= 1, "{sizes:?}");
            let reports = checkpoint(&mut lanes);
            let [Report::Checkpoint { number: 7, sealed: bytes }] = reports.as_slice() else { panic!("{reports:?}") };
            sealed.push(bytes.clone());
        }
        assert!(sealed.iter().all(|bytes| *bytes == sealed[0]), "lanes change nothing");
    }

    /// Saved states go to the lanes that will be asked to open them.
    #[test]
    fn saved_states_are_where_their_jobs_go() {
        let state = |arm: &str, replica| v1::ReplicaState { arm: arm.into(), replica, rounds: 1, ..Default::default() };
        let lanes =
            in_lanes(["a", "b"].into_iter().flat_map(|arm| (0..5).map(move |index| state(arm, index))).collect(), 4);
        for (lane, replicas) in lanes.iter().enumerate() {
            assert!(replicas.begun.keys().all(|key| division(4).of_replica(*key) == lane));
        }
        assert_eq!(lanes.iter().map(|lane| lane.begun.len()).sum::<usize>(), 10);
    }

    /// What concerns an identity concerns all lanes, in which its outputs may be.
    #[test]
    fn jobs_about_identities_go_to_all_lanes() {
        let identity: Arc<str> = "7".into();
        let forget = Job::Forget { identity: Arc::clone(&identity) };
        let void = Job::Void { identity, convicted: std::collections::BTreeSet::new(), vouchers: 1 };
        for job in [forget, void] {
            assert_eq!(job.for_lanes(division(3)).into_iter().map(|(lane, _)| lane).collect::<Vec<_>>(), [0, 1, 2]);
        }
    }
}
