//! If only a limited number of ended runs is kept, the oldest are deleted. After a start, ended runs are in the order in
//! which the store listed them, the order of their last objects.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_proto::v1;

use super::{Act, Look, Ordered, Rule, Term};
use crate::machine::runs::RunId;

/// A run with this term is not deleted because of its age.
static TERM: Term =
    Term { name: "keep", values: "yes or no; the default is no", allows: |value| matches!(value, "yes" | "no") };

/// Whether a run's terms keep it.
pub(super) fn is_pinned(terms: &[v1::Term]) -> bool {
    terms.iter().any(|term| term.name == TERM.name && term.value == "yes")
}

/// The position of each ended run in the order in which the runs ended.
#[derive(Default)]
pub(super) struct Retention {
    ended: BTreeMap<RunId, u64>,
    last: u64,
    /// The runs that are kept however old they are.
    pinned: BTreeSet<RunId>,
}

impl Rule for Retention {
    fn term(&self) -> Option<&'static Term> {
        Some(&TERM)
    }

    fn ordered(&mut self, run: RunId, order: &Ordered) {
        match is_pinned(order.terms) {
            true => self.pinned.insert(run),
            false => self.pinned.remove(&run),
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
