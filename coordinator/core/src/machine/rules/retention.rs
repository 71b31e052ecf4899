//! If only a limited number of ended runs is kept, the oldest are deleted. After a start, ended runs are in the order in
//! which the store listed them, the order of their last objects.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_proto::v1;

use super::{Act, Look, Ordered, Rule, Term};
use crate::machine::runs::RunId;

/// A run with this term is not deleted, or only after a time of its own.
static TERM: Term = Term {
    name: "keep",
    values: "yes, no, or a time after the end of the run as 30d or 12h; the default is no",
    allows: |value| Keep::read(value).is_some(),
};

/// What a run's term says about how long it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// As long as other ended runs.
    No,
    /// This many milliseconds after its end, and no longer.
    For(u64),
    /// For ever.
    Always,
}

impl Keep {
    /// The longest time, in hours: a century.
    const HOURS_MAX: u64 = 876_600;

    fn read(value: &str) -> Option<Self> {
        let hours = |number: &str, each: u64| {
            let hours = number.parse::<u64>().ok()?.checked_mul(each)?;
            (1..=Self::HOURS_MAX).contains(&hours).then_some(Self::For(hours * 3_600_000))
        };
        match (value, value.strip_suffix('d'), value.strip_suffix('h')) {
            ("yes", ..) => Some(Self::Always),
            ("no", ..) => Some(Self::No),
            (_, Some(days), _) => hours(days, 24),
            (_, _, Some(number)) => hours(number, 1),
            _ => None,
        }
    }

    pub(super) fn of(terms: &[v1::Term]) -> Self {
        terms.iter().find(|term| term.name == TERM.name).and_then(|term| Self::read(&term.value)).unwrap_or(Self::No)
    }
}

/// The position of each ended run in the order in which the runs ended.
#[derive(Default)]
pub(super) struct Retention {
    ended: BTreeMap<RunId, u64>,
    last: u64,
    /// The runs that have a time of their own, or are kept for ever.
    pinned: BTreeSet<RunId>,
}

impl Rule for Retention {
    fn term(&self) -> Option<&'static Term> {
        Some(&TERM)
    }

    fn ordered(&mut self, run: RunId, order: &Ordered) {
        match Keep::of(order.terms) {
            Keep::No => self.pinned.remove(&run),
            Keep::For(_) | Keep::Always => self.pinned.insert(run),
        };
    }

    fn turned(&mut self, look: &Look) -> Vec<Act> {
        let Some(kept) = look.settings.finished_runs_kept else { return Vec::new() };
        let mut ended = Vec::new();
        for (id, run) in look.runs.iter() {
            if !run.is_over() || self.pinned.contains(&id) {
                self.ended.remove(&id);
                continue;
            }
            let place = *self.ended.entry(id).or_insert_with(|| {
                self.last += 1;
                self.last
            });
            if !run.orders.is_deleting() && !run.orders.is_writing() {
                ended.push((place, id));
            }
        }
        ended.sort_unstable();
        ended.truncate(ended.len().saturating_sub(kept as usize));
        let why = |_| format!("only the last {kept} ended runs are kept");
        ended.into_iter().map(|(place, id)| Act::Delete(id, why(place))).collect()
    }

    fn removed(&mut self, run: RunId) {
        self.ended.remove(&run);
        self.pinned.remove(&run);
    }
}
