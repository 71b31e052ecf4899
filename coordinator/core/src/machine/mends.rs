//! Finished replicas whose objects are found damaged while the coordinator runs. The store writes the damaged object again
//! from its copy, or the copy from it. If both are damaged, their replicas are recomputed.

use super::{Topic, Write, look::Moment, out::Out, runs::RunId, work::Work, writes::Pending};
use crate::{replicas::ReplicaKey, write::Mended};

impl Work {
    /// One of two objects of finished replicas is damaged or missing.
    pub(super) fn on_damaged(&self, out: &mut Out, run: &str, object: String) {
        let Some(id) = self.runs.find(run).filter(|id| !self.runs[*id].orders.is_deleting()) else { return };
        // Otherwise the replicas were void, or the name now belongs to another run.
        if self.runs[id].replicas.values().any(|record| record.is_in(&object)) {
            out.write(id, run, Write::Mend { object: object.clone() }, Pending::Mend { object });
        }
    }

    /// The store has checked both objects.
    pub(super) fn after_mend(&mut self, at: &Moment, out: &mut Out, id: RunId, object: &str, mended: Mended) {
        let (Mended::Again(sentence) | Mended::Lost(sentence)) = &mended else { return };
        let run = self.runs.change(id);
        run.notice(sentence.clone());
        let (about, line) = (run.about(), format!("run {}: {sentence}", run.name));
        out.effects.log_about(Topic::Trouble, about, line);
        if matches!(mended, Mended::Lost(_)) {
            let run = self.runs.change(id);
            let lost = run.replicas.iter().filter(|(_, record)| record.is_in(object));
            for replica in lost.map(|(key, _)| *key).collect::<Vec<ReplicaKey>>() {
                run.begin_anew(replica);
                run.checkpoints.dirty |= run.thread().is_some();
            }
            self.release(at, id);
        }
    }
}
