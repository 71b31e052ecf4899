//! Finished replicas whose objects are found damaged while the coordinator runs. The store writes the damaged object again
//! from the replica's other object. If both objects are damaged, the replica is recomputed.

use super::{Coordinator, Topic, Write, about::About, phases::ReplicaPhase, runs::RunId, writes::Pending};
use crate::{replicas::ReplicaKey, write::Mended};

impl Coordinator {
    /// One of the two objects of a finished replica is damaged or missing.
    pub(super) fn on_damaged(&mut self, run: &str, object: String) {
        let Some(id) = self.runs.find(run).filter(|id| !self.runs[*id].orders.is_deleting()) else { return };
        let is_here =
            |phase: &ReplicaPhase| matches!(phase, ReplicaPhase::Stored { object: known, .. } if *known == object);
        let replica = self.runs[id].replicas.iter().find(|(_, record)| is_here(&record.phase)).map(|(key, _)| *key);
        // The replica was void, or the name now belongs to another run.
        let Some(replica) = replica else { return };
        self.write(id, Write::Mend { object: object.clone() }, Pending::Mend { replica, object });
    }

    /// The store has checked both objects.
    pub(super) fn after_mend(&mut self, id: RunId, replica: ReplicaKey, object: &str, mended: Mended) {
        let (Mended::Again(sentence) | Mended::Lost(sentence)) = &mended else { return };
        let run = self.runs.change(id);
        run.notice(sentence.clone());
        let about = About { replica: Some(replica.index), ..run.about() };
        let line = format!("run {}: {sentence}", run.name);
        self.effects.log_about(Topic::Trouble, about, line);
        let run = self.runs.change(id);
        let is_here =
            matches!(&run.replicas[&replica].phase, ReplicaPhase::Stored { object: known, .. } if known == object);
        if matches!(mended, Mended::Lost(_)) && is_here {
            run.begin_anew(replica);
            run.checkpoints.dirty |= run.thread().is_some();
            self.release(id);
        }
    }
}
