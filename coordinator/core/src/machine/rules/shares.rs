//! Whose turn it is. Submitters have equal shares, whatever the number of their runs, unless the operator has weighed them.
//! The runs of one submitter divide that share by their priorities.
//!
//! Each submitter has an account of the work that workers did for them, in microseconds, divided by the submitter's weight;
//! and so has each run of a submitter, divided by its priority.
//! The account with the least work is served first. Work counts with its expected duration when it is assigned, and with its
//! real duration once the result arrives. A submitter or run that had nothing to compute for a while is owed at most
//! [`OWED_US`] for each slot. A short run therefore goes first, and a long one cannot hold up others to catch up on the time
//! that it was away.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{Act, Look, Ordered, Rule, Term};
use crate::machine::{runs::RunId, settings::WEIGHT};

/// The maximum that an account is owed, in microseconds for each slot of all workers.
const OWED_US: u64 = 10_000_000;

/// The priority of a run that sets none.
const PRIORITY: u64 = 10;
const PRIORITY_MAX: u64 = 100;

/// A run with twice the priority of another run of the same submitter gets twice as much.
static TERM: Term = Term {
    name: "priority",
    values: "a whole number from 1 to 100; the default is 10",
    allows: |value| priority(value).is_some(),
};

fn priority(value: &str) -> Option<u64> {
    value.parse().ok().filter(|priority| (1..=PRIORITY_MAX).contains(priority))
}

/// The accounts of submitters, or of the runs of one submitter: the work done for each, in microseconds.
#[derive(Debug)]
struct Accounts<K> {
    of: BTreeMap<K, u64>,
    /// What the account served last had at that time; it never decreases. The other accounts are compared with it.
    time_us: u64,
}

impl<K> Default for Accounts<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), time_us: 0 }
    }
}

impl<K: Ord + Clone> Accounts<K> {
    /// The current value of an account, if at most `owed_us` may be owed to it.
    fn now(&self, whose: &K, owed_us: u64) -> u64 {
        let us = self.of.get(whose).copied().unwrap_or_default();
        us.max(self.time_us.saturating_sub(owed_us))
    }

    /// Adds this much work to an account.
    fn add(&mut self, whose: &K, us: u64, owed_us: u64) {
        let before = self.now(whose, owed_us);
        self.time_us = self.time_us.max(before);
        self.of.insert(whose.clone(), before + us);
    }

    /// Corrects an account when work took a different time than it was counted with.
    fn correct(&mut self, whose: &K, counted_us: u64, took_us: u64) {
        if let Some(account) = self.of.get_mut(whose) {
            *account = (*account + took_us).saturating_sub(counted_us);
        }
    }
}

/// A submitter, with the accounts of its runs.
#[derive(Debug, Default)]
struct Person {
    /// Each run with its priority.
    runs: BTreeMap<RunId, u64>,
    accounts: Accounts<RunId>,
}

/// All submitters who have runs.
pub(super) struct Shares {
    weights: &'static [(String, u64)],
    person_of: BTreeMap<RunId, String>,
    people: BTreeMap<String, Person>,
    accounts: Accounts<String>,
    /// Work that is currently assigned, as it was counted.
    out_us: BTreeMap<RunId, u64>,
    owed_us: u64,
}

/// How much work counts for a run of this priority; at least 1 unless the work is 0.
fn weighed(us: u64, priority: u64) -> u64 {
    (us * PRIORITY).div_ceil(priority)
}

impl Shares {
    /// Nobody has a run yet. See [`crate::machine::settings::Settings::weights`].
    pub(super) fn new(weights: &'static [(String, u64)]) -> Self {
        let (person_of, people, accounts, out_us) = Default::default();
        Self { weights, person_of, people, accounts, out_us, owed_us: 0 }
    }

    /// How much work counts for this submitter; at least 1 unless the work is 0.
    fn of_person(&self, name: &str, us: u64) -> u64 {
        let weight = self.weights.iter().find(|(whose, _)| whose == name).map_or(WEIGHT, |(_, weight)| *weight);
        (us * WEIGHT).div_ceil(weight)
    }

    fn person(&self, run: RunId) -> &String {
        self.person_of.get(&run).expect("every run has an order with a submitter")
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
        let person = self.people.get_mut(&name).expect("the submitter of a run is listed");
        person.runs.remove(&run);
        person.accounts.of.remove(&run);
        if person.runs.is_empty() {
            self.people.remove(&name);
            // Forget an account once it is no lower than what a newcomer starts with.
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
        self.accounts.add(&name, self.of_person(&name, us), self.owed_us);
        let person = self.people.get_mut(&name).expect("the submitter of a run is listed");
        let priority = person.runs[&run];
        person.accounts.add(&run, weighed(us, priority), self.owed_us);
        *self.out_us.entry(run).or_default() += us;
    }

    fn back(&mut self, run: RunId, counted_us: u64, took_us: u64) {
        // Assigned work may come back after its run is removed.
        let Some(name) = self.person_of.get(&run) else { return };
        let [counted, took] = [counted_us, took_us].map(|us| self.of_person(name, us));
        self.accounts.correct(name, counted, took);
        let person = self.people.get_mut(name).expect("the submitter of a run is listed");
        let priority = person.runs[&run];
        person.accounts.correct(&run, weighed(counted_us, priority), weighed(took_us, priority));
        *self.out_us.get_mut(&run).expect("only assigned work comes back") -= counted_us;
    }

    fn check(&self, out_us: &dyn Fn(RunId) -> u64, look: &Look) {
        for (id, run) in look.runs.iter() {
            let counted = self.out_us.get(&id).copied().unwrap_or_default();
            assert_eq!(counted, out_us(id), "run {} counts a wrong amount of assigned work", run.name);
            assert_eq!(*self.person(id), run.submitter, "run {} is counted for another submitter", run.name);
        }
        assert_eq!(self.person_of.len(), look.runs.iter().count(), "shares are kept for removed runs");
    }
}
