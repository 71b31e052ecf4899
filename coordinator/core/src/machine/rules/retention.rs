//! If only a limited number of ended runs is kept, the oldest are deleted. After a start, ended runs are in the order in
//! which the store listed them, the order of their last objects.

use std::collections::BTreeMap;

use super::{Act, Look, Rule};
use crate::machine::runs::RunId;

/// The position of each ended run in the order in which the runs ended.
#[derive(Default)]
pub(super) struct Retention {
    ended: BTreeMap<RunId, u64>,
    last: u64,
}

impl Rule for Retention {
    fn turned(&mut self, look: &Look) -> Vec<Act> {
        let Some(kept) = look.settings.finished_runs_kept else { return Vec::new() };
        let mut ended = Vec::new();
        for (id, run) in look.runs.iter() {
            if !run.is_over() {
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
    }
}
