//! Workers grouped by what they compute, and by their labels. A search for workers that could take a task looks at the few groups, instead of at
//! every one of thousands of workers.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::task::ProgramId;

use super::run::Run;
use crate::{id::SessionId, prepared::Prepared};

/// What a worker computes, and whether it is trusted. Workers with equal abilities get the same tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// The kinds that the worker computes with the coordinator's signature, sorted.
    pub(super) kinds: Vec<&'static str>,
    /// The worker's programs, with their kinds. A program has no signature if its signature was found to be wrong.
    pub(super) programs: BTreeSet<(&'static str, ProgramId)>,
    /// Whether the worker is trusted: its outputs are correct by definition.
    pub(super) trusted: bool,
    /// What the worker's operator says about it, each as KEY=VALUE.
    pub(super) labels: BTreeSet<String>,
}

impl Abilities {
    /// Whether a worker with these abilities gets tasks of this run: it computes them, and has the labels that the run wants.
    pub(super) fn serves(&self, run: &Run) -> bool {
        self.computes(&run.prepared) && run.labels.iter().all(|label| self.labels.contains(label))
    }

    /// Whether a worker with these abilities can compute the tasks of this run.
    pub(super) fn computes(&self, run: &Prepared) -> bool {
        let kind = run.config.kind.name;
        self.kinds.contains(&kind)
            && run.programs.iter().all(|program| self.programs.contains(&(kind, program.clone())))
    }
}

/// A group's number, unique while the group has members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId(u64);

/// Workers with the same abilities.
struct Group {
    abilities: Abilities,
    members: usize,
    slots: u32,
    /// The workers that can take another assignment.
    with_capacity: BTreeSet<SessionId>,
    /// Those of `with_capacity` that have a slot with nothing to compute.
    idle: BTreeSet<SessionId>,
}

/// All groups.
#[derive(Default)]
pub(super) struct Groups {
    last: u64,
    by_id: BTreeMap<GroupId, Group>,
}

impl Groups {
    /// Adds a worker to the group with its abilities.
    pub(super) fn join(&mut self, id: SessionId, abilities: &Abilities, slots: u32) -> GroupId {
        let same = self.by_id.iter_mut().find(|(_, group)| group.abilities == *abilities);
        let (number, group) = match same {
            Some((number, group)) => (*number, group),
            None => {
                self.last += 1;
                let abilities = abilities.clone();
                let (with_capacity, idle) = Default::default();
                let group = Group { abilities, members: 0, slots: 0, with_capacity, idle };
                (GroupId(self.last), self.by_id.entry(GroupId(self.last)).or_insert(group))
            }
        };
        group.members += 1;
        group.slots += slots;
        group.with_capacity.insert(id);
        group.idle.insert(id);
        number
    }

    /// Removes a worker.
    pub(super) fn leave(&mut self, id: SessionId, number: GroupId, slots: u32) {
        let group = self.group(number);
        group.with_capacity.remove(&id);
        group.idle.remove(&id);
        group.slots -= slots;
        group.members -= 1;
        if group.members == 0 {
            self.by_id.remove(&number);
        }
    }

    fn group(&mut self, number: GroupId) -> &mut Group {
        self.by_id.get_mut(&number).expect("a group exists as long as it has a worker")
    }

    /// Records whether a worker can take another assignment, and whether it has a slot with nothing to compute.
    pub(super) fn update(&mut self, id: SessionId, number: GroupId, has_capacity: bool, is_idle: bool) {
        let group = self.group(number);
        for (set, belongs) in [(&mut group.with_capacity, has_capacity), (&mut group.idle, has_capacity && is_idle)] {
            match belongs {
                true => set.insert(id),
                false => set.remove(&id),
            };
        }
    }

    /// Workers that can take another assignment, from the groups for which `could` holds, in the order in which they joined.
    /// With `idle_only`, only workers that have a slot with nothing to compute.
    pub(super) fn with_capacity(&self, idle_only: bool, could: impl Fn(&Abilities) -> bool) -> Vec<SessionId> {
        let groups = self.by_id.values().filter(|group| could(&group.abilities));
        let of = groups.map(|group| if idle_only { &group.idle } else { &group.with_capacity });
        let mut workers: Vec<SessionId> = of.flatten().copied().collect();
        workers.sort_unstable();
        workers
    }

    /// Checks that the groups have exactly these workers. Each comes with its group, its slots, whether it has capacity and
    /// an idle slot, and its abilities.
    pub(super) fn check<'a>(
        &self,
        workers: impl Iterator<Item = (SessionId, GroupId, u32, (bool, bool), &'a Abilities)>,
    ) {
        let mut counted = BTreeMap::<GroupId, (usize, u32)>::new();
        for (id, number, slots, (has_capacity, is_idle), abilities) in workers {
            let group = self.by_id.get(&number).expect("a worker's group exists");
            assert_eq!(group.abilities, *abilities, "session {id} is in a group with different abilities");
            assert_eq!(
                group.with_capacity.contains(&id),
                has_capacity,
                "the group of session {id} is wrong about its capacity"
            );
            let is_idle = has_capacity && is_idle;
            assert_eq!(group.idle.contains(&id), is_idle, "the group of session {id} is wrong about its idle slots");
            let count = counted.entry(number).or_default();
            *count = (count.0 + 1, count.1 + slots);
        }
        let groups = self.by_id.iter().map(|(number, group)| (*number, (group.members, group.slots)));
        assert_eq!(counted, groups.collect(), "the groups' counts of members and slots are wrong");
    }

    /// The number of slots of all workers in the groups for which `of` holds.
    pub(super) fn slots(&self, of: impl Fn(&Abilities) -> bool) -> u32 {
        self.by_id.values().filter(|group| of(&group.abilities)).map(|group| group.slots).sum()
    }
}
