//! Whose turn it is. People have equal shares, whatever the number of their runs; the runs of a person share what the person has,
//! by their priorities.
//!
//! Each person has an account of the work that workers did for them, in microseconds, and so has each run of a person. The account with
//! the least is served first. Work counts as expected when it is assigned, and as it turned out to be when the result comes. Whoever had nothing to compute for a while is owed no more than [`OWED_US`] for each slot:
//! a short run goes first then, and a long one does not keep others waiting for what they had while it was away.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{Act, Look, Ordered, Rule, Term};
use crate::machine::runs::RunId;

/// What an account may be owed at most, in microseconds of each slot of all workers.
const OWED_US: u64 = 10_000_000;

/// The priority of a run that has none.
const PRIORITY: u64 = 10;
const PRIORITY_MAX: u64 = 100;

/// A run of twice the priority of another one of the same person gets twice as much.
static TERM: Term = Term {
    name: "priority",
    values: "a whole number from 1 to 100; a run that has none has 10",
    allows: |value| priority(value).is_some(),
};

fn priority(value: &str) -> Option<u64> {
    value.parse().ok().filter(|priority| (1..=PRIORITY_MAX).contains(priority))
}

/// The accounts of people, or of the runs of one person: the work done for each, in microseconds.
#[derive(Debug)]
struct Accounts<K> {
    of: BTreeMap<K, u64>,
    /// What the account had that was served last, and never less than before: the others are compared with that.
    time_us: u64,
}

impl<K> Default for Accounts<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), time_us: 0 }
    }
}

impl<K: Ord + Clone> Accounts<K> {
    /// What an account counts for now, when so much may be owed to it.
    fn now(&self, whose: &K, owed_us: u64) -> u64 {
        let us = self.of.get(whose).copied().unwrap_or_default();
        us.max(self.time_us.saturating_sub(owed_us))
    }

    /// An account is served with this much work.
    fn add(&mut self, whose: &K, us: u64, owed_us: u64) {
        let before = self.now(whose, owed_us);
        self.time_us = self.time_us.max(before);
        self.of.insert(whose.clone(), before + us);
    }

    /// Work took another time than it was counted with.
    fn correct(&mut self, whose: &K, counted_us: u64, took_us: u64) {
        if let Some(account) = self.of.get_mut(whose) {
            *account = (*account + took_us).saturating_sub(counted_us);
        }
    }
}

/// A person, with the accounts of their runs.
#[derive(Debug, Default)]
struct Person {
    /// Each with its priority.
    runs: BTreeMap<RunId, u64>,
    accounts: Accounts<RunId>,
}

/// All people who have runs.
#[derive(Default)]
pub(super) struct Shares {
    person_of: BTreeMap<RunId, String>,
    people: BTreeMap<String, Person>,
    accounts: Accounts<String>,
    /// Work that is assigned now, as it was counted.
    out_us: BTreeMap<RunId, u64>,
    owed_us: u64,
}

/// What work counts for, of a run of this priority: at least something.
fn weighed(us: u64, priority: u64) -> u64 {
    (us * PRIORITY).div_ceil(priority)
}

impl Shares {
    fn person(&self, run: RunId) -> &String {
        self.person_of.get(&run).expect("a run has an order, and that has somebody who gave it")
    }
}

impl Rule for Shares {
    fn term(&self) -> Option<&'static Term> {
        Some(&TERM)
    }

    fn ordered(&mut self, run: RunId, order: &Ordered) {
        self.person_of.insert(run, order.submitter.to_owned());
        let given = order.terms.iter().find(|term| term.name == TERM.name).and_then(|term| priority(&term.value));
        let person = self.people.entry(order.submitter.to_owned()).or_default();
        person.runs.insert(run, given.unwrap_or(PRIORITY));
    }

    fn removed(&mut self, run: RunId) {
        let name = self.person_of.remove(&run).expect("a run that is removed had an order");
        let person = self.people.get_mut(&name).expect("whoever has a run is listed");
        person.runs.remove(&run);
        person.accounts.of.remove(&run);
        if person.runs.is_empty() {
            self.people.remove(&name);
            // What they had is forgotten when it is no less than what newcomers start with.
            self.accounts
                .of
                .retain(|name, us| self.people.contains_key(name) || *us + self.owed_us > self.accounts.time_us);
        }
        self.out_us.remove(&run);
    }

    fn tick(&mut self, look: &Look) -> Vec<Act> {
        self.owed_us = OWED_US * u64::from(look.sessions.slots_total());
        Vec::new()
    }

    fn turn(&self, one: RunId, other: RunId) -> Ordering {
        let (first, second) = (self.person(one), self.person(other));
        if first == second {
            let of = &self.people[first].accounts;
            return of.now(&one, self.owed_us).cmp(&of.now(&other, self.owed_us));
        }
        self.accounts.now(first, self.owed_us).cmp(&self.accounts.now(second, self.owed_us))
    }

    fn given(&mut self, run: RunId, us: u64) {
        let name = self.person(run).clone();
        self.accounts.add(&name, us, self.owed_us);
        let person = self.people.get_mut(&name).expect("whoever has a run is listed");
        let priority = person.runs[&run];
        person.accounts.add(&run, weighed(us, priority), self.owed_us);
        *self.out_us.entry(run).or_default() += us;
    }

    fn back(&mut self, run: RunId, counted_us: u64, took_us: u64) {
        // What was assigned of a run that is gone comes back later.
        let Some(name) = self.person_of.get(&run) else { return };
        self.accounts.correct(name, counted_us, took_us);
        let person = self.people.get_mut(name).expect("whoever has a run is listed");
        let priority = person.runs[&run];
        person.accounts.correct(&run, weighed(counted_us, priority), weighed(took_us, priority));
        *self.out_us.get_mut(&run).expect("what comes back was given") -= counted_us;
    }

    fn check(&self, out_us: &dyn Fn(RunId) -> u64, look: &Look) {
        for (id, run) in look.runs.iter() {
            let counted = self.out_us.get(&id).copied().unwrap_or_default();
            assert_eq!(counted, out_us(id), "run {} counts other work than its assignments have", run.name);
            assert_eq!(*self.person(id), run.submitter, "run {} is counted for somebody else", run.name);
        }
        assert_eq!(self.person_of.len(), look.runs.iter().count(), "shares are kept of runs that are gone");
    }
}
