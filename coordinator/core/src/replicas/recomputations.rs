//! Outputs of one replica that are to be recomputed, because they were drawn or because two copies of a task differed. They
//! belong to the replica's state and are stored with it until a trusted worker has recomputed them. A coordinator that
//! continues from the state therefore knows what is still to be recomputed. The secret of the draw is not stored.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use evoxo_common::{digest::Digest, experiment::Kind, task::Encoded};
use evoxo_proto::v1;

use crate::prepared::Prepared;

/// A replica starts no further round while its tasks that wait to be recomputed take this many bytes or more. This keeps the
/// states in checkpoints small, and workers cannot run far ahead of the trusted workers.
pub(crate) const RECOMPUTATION_BYTES_MAX: u64 = 1 << 20;

/// An output that is to be recomputed.
#[derive(Clone, Debug)]
pub struct Recomputation {
    /// The identity that sent it.
    pub identity: Arc<str>,
    /// The worker's name.
    pub worker: Arc<str>,
    /// The hash of the canonical output.
    pub output: Digest,
    /// The number of rounds that the replica had absorbed when the task was planned.
    pub round: u64,
    /// The task's index in its round.
    pub index: usize,
    /// The name of the task's type within the kind.
    pub work: &'static str,
    /// The task.
    pub encoded: Encoded,
}

impl Recomputation {
    fn bytes(&self) -> u64 {
        Prepared::task_bytes(self.encoded.bytes())
    }

    /// The message to store.
    pub(crate) fn save(&self) -> v1::Recomputation {
        v1::Recomputation {
            identity: self.identity.to_string(),
            worker: self.worker.to_string(),
            output: Bytes::copy_from_slice(&self.output.0),
            round: self.round,
            index: self.index as u64,
            task: self.encoded.whole(),
        }
    }
}

/// The outputs of a replica that are to be recomputed, keyed by task, output and identity.
#[derive(Debug, Default)]
pub(crate) struct Recomputations {
    open: BTreeMap<(Digest, Digest, Arc<str>), Recomputation>,
    bytes: u64,
}

impl Recomputations {
    pub(crate) fn add(&mut self, recomputation: Recomputation) {
        self.bytes += recomputation.bytes();
        let replaced = self.open.insert(
            (recomputation.encoded.hash, recomputation.output, Arc::clone(&recomputation.identity)),
            recomputation,
        );
        self.bytes -= replaced.map_or(0, |recomputation| recomputation.bytes());
    }

    /// A trusted worker has computed this output of this task. Removes its entries, whichever identities sent it.
    pub(crate) fn pass(&mut self, task: Digest, output: Digest) {
        let same = |(of, sent, _): &&(Digest, Digest, Arc<str>)| (*of, *sent) == (task, output);
        let first = (task, output, Arc::from(""));
        for key in self.open.range(first..).map(|(key, _)| key).take_while(same).cloned().collect::<Vec<_>>() {
            self.bytes -= self.open.remove(&key).map_or(0, |recomputation| recomputation.bytes());
        }
    }

    /// Outputs of this identity no longer count, so they need not be recomputed.
    pub(crate) fn forget(&mut self, identity: &str) {
        self.open.retain(|(.., of), _| **of != *identity);
        self.bytes = self.open.values().map(Recomputation::bytes).sum();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the replica must wait until some of them are recomputed.
    pub(crate) fn are_too_many(&self) -> bool {
        self.bytes >= RECOMPUTATION_BYTES_MAX
    }

    pub(crate) fn all(&self) -> Vec<Recomputation> {
        self.open.values().cloned().collect()
    }

    /// The messages to store.
    pub(crate) fn save(&self) -> Vec<v1::Recomputation> {
        self.open.values().map(Recomputation::save).collect()
    }

    /// The inverse of [`save`](Self::save), for a kind of experiment.
    ///
    /// # Errors
    /// A sentence about the first entry that is not valid.
    pub(crate) fn restore(kind: &Kind, stored: &[v1::Recomputation]) -> Result<Self, String> {
        let mut recomputations = Self::default();
        for v1::Recomputation { identity, worker, output, round, index, task } in stored {
            let encoded = Encoded::of_whole(task)?;
            let work = kind.decode(&encoded).map_err(|refusal| refusal.0)?.kind.work;
            let output = Digest::from_slice(output).ok_or("an output to recompute has no valid hash")?;
            let (identity, worker) = (Arc::from(identity.as_str()), Arc::from(worker.as_str()));
            let index = usize::try_from(*index).map_err(|_| "a task to recompute has no valid index")?;
            recomputations.add(Recomputation { identity, worker, output, round: *round, index, work, encoded });
        }
        Ok(recomputations)
    }
}
