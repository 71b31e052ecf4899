//! Workers by what they compute. Whoever asks which of them could have a task looks at groups, of which there are few, and not
//! at every one of thousands.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::task::ProgramId;

use crate::{id::SessionId, prepared::Prepared};

/// What a worker computes, and whether its word counts: workers that are alike here get the same tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Kinds that it computes with the coordinator's signature, sorted.
    pub(super) kinds: Vec<&'static str>,
    /// Its programs, with their kinds; without a signature if that was found to be wrong.
    pub(super) programs: BTreeSet<(&'static str, ProgramId)>,
    /// Its outputs are right by definition.
    pub(super) trusted: bool,
}

impl Abilities {
    /// Whether it computes the tasks of this run.
    pub(super) fn computes(&self, run: &Prepared) -> bool {
        let kind = run.config.kind.name;
        self.kinds.contains(&kind)
            && run.programs.iter().all(|program| self.programs.contains(&(kind, program.clone())))
    }
}

/// The number of a group, unique while it has members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId(u64);

/// Workers with the same abilities.
struct Group {
    abilities: Abilities,
    members: usize,
    slots: u32,
    /// Those that can take another assignment.
    with_capacity: BTreeSet<SessionId>,
    /// Of these, those with a slot that has nothing to compute.
    idle: BTreeSet<SessionId>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Groups {
    last: u64,
    by_id: BTreeMap<GroupId, Group>,
}

impl Groups {
    /// A worker joins the group of its abilities.
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

    /// A worker is gone.
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
        self.by_id.get_mut(&number).expect("a group is there for as long as it has a worker")
    }

    /// Notes whether a worker can take another assignment, and whether a slot of it has none.
    pub(super) fn update(&mut self, id: SessionId, number: GroupId, has_capacity: bool, is_idle: bool) {
        let group = self.group(number);
        for (set, belongs) in [(&mut group.with_capacity, has_capacity), (&mut group.idle, has_capacity && is_idle)] {
            match belongs {
                true => set.insert(id),
                false => set.remove(&id),
            };
        }
    }

    /// Workers of the groups that could have something, if they can take another assignment, in the order in which they joined:
    /// all of them, or those with a slot that has nothing to compute.
    pub(super) fn with_capacity(&self, idle_only: bool, could: impl Fn(&Abilities) -> bool) -> Vec<SessionId> {
        let groups = self.by_id.values().filter(|group| could(&group.abilities));
        let of = groups.map(|group| if idle_only { &group.idle } else { &group.with_capacity });
        let mut workers: Vec<SessionId> = of.flatten().copied().collect();
        workers.sort_unstable();
        workers
    }

    /// Checks that these are the workers whom the groups have: each with its group, slots, whether it has capacity and an idle slot, and
    /// its abilities.
    pub(super) fn check<'a>(
        &self,
        workers: impl Iterator<Item = (SessionId, GroupId, u32, (bool, bool), &'a Abilities)>,
    ) {
        let mut counted = BTreeMap::<GroupId, (usize, u32)>::new();
        for (id, number, slots, (has_capacity, is_idle), abilities) in workers {
            let group = self.by_id.get(&number).expect("a worker's group is there");
            assert_eq!(group.abilities, *abilities, "session {id} is in a group of other abilities");
            assert_eq!(
                group.with_capacity.contains(&id),
                has_capacity,
                "its group is wrong about room of session {id}"
            );
            let is_idle = has_capacity && is_idle;
            assert_eq!(group.idle.contains(&id), is_idle, "its group is wrong about an idle slot of session {id}");
            let count = counted.entry(number).or_default();
            *count = (count.0 + 1, count.1 + slots);
        }
        let groups = self.by_id.iter().map(|(number, group)| (*number, (group.members, group.slots)));
        assert_eq!(counted, groups.collect(), "groups have other members or slots than were counted");
    }

    /// The slots of all workers of these groups.
    pub(super) fn slots(&self, of: impl Fn(&Abilities) -> bool) -> u32 {
        self.by_id.values().filter(|group| of(&group.abilities)).map(|group| group.slots).sum()
    }
}
