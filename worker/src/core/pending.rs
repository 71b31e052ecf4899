//! Results that the coordinator has not accepted yet, oldest first, within limits.

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::digest::Digest;
use evoxo_proto::v1::{Outputs, TaskResult, task_result::Outcome};

/// The estimated size of a result in addition to its output or failure, in bytes: hashes, keys and nodes.
const OVERHEAD_BYTES: usize = 200;

/// A result that is not accepted yet.
#[derive(Debug)]
struct PendingResult {
    hash: Digest,
    outcome: Outcome,
    elapsed_us: u64,
    /// Whether the task was stopped because it took too long.
    timed_out: bool,
    /// The assignment of the current session to which the result belongs; 0 if it belongs to an earlier session.
    assignment: u64,
}

impl PendingResult {
    fn weight_bytes(&self) -> usize {
        OVERHEAD_BYTES
            + match &self.outcome {
                Outcome::Output(bytes) => bytes.len(),
                Outcome::Failure(sentence) | Outcome::OtherProgram(sentence) => sentence.len(),
            }
    }
}

/// The results, numbered in the order in which they were computed. Those from `unsent` on have not been sent in the
/// current session.
#[derive(Debug)]
pub(super) struct PendingResults {
    results: BTreeMap<u64, PendingResult>,
    /// The numbers of the results by task and assignment. Tasks of two runs can be the same, and each assignment waits for
    /// its own result.
    numbers: BTreeMap<(Digest, u64), u64>,
    next: u64,
    unsent: u64,
    bytes: usize,
    unsent_bytes: usize,
    results_max: usize,
    bytes_max: usize,
}

impl PendingResults {
    /// Keeps at most `results_max` results, of at most `bytes_max` bytes together, but always at least one.
    pub(super) fn new(results_max: usize, bytes_max: usize) -> Self {
        Self {
            results: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: 0,
            unsent: 0,
            bytes: 0,
            unsent_bytes: 0,
            results_max,
            bytes_max,
        }
    }

    /// The number of results that wait to be accepted.
    pub(super) fn len(&self) -> usize {
        self.results.len()
    }

    /// The total size of results not sent yet in this session, in bytes.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Adds a result. It replaces an older result of the same task, if that belongs to the same assignment or to an earlier
    /// session. `took` is the time in microseconds, and whether the task was stopped because it took too long. Returns how
    /// many of the oldest results were dropped to make room.
    pub(super) fn add(&mut self, hash: Digest, outcome: Outcome, took: (u64, bool), assignment: u64) -> usize {
        for older in [0, assignment] {
            if let Some(number) = self.numbers.get(&(hash, older)).copied() {
                self.remove(number);
            }
        }
        let (elapsed_us, timed_out) = took;
        let result = PendingResult { hash, outcome, elapsed_us, timed_out, assignment };
        self.bytes += result.weight_bytes();
        self.unsent_bytes += result.weight_bytes();
        self.numbers.insert((hash, assignment), self.next);
        self.results.insert(self.next, result);
        self.next += 1;
        let mut dropped = 0;
        while self.results.len() > 1 && (self.results.len() > self.results_max || self.bytes > self.bytes_max) {
            let oldest = *self.results.keys().next().expect("there are at least two results");
            self.remove(oldest);
            dropped += 1;
        }
        dropped
    }

    /// Drops the oldest result of this task, if it was sent in this session. Each result is accepted separately.
    pub(super) fn accept(&mut self, hash: Digest) {
        let oldest = self.numbers.range((hash, 0)..=(hash, u64::MAX)).map(|(_, number)| *number).min();
        if let Some(number) = oldest.filter(|number| *number < self.unsent) {
            self.remove(number);
        }
    }

    /// The session has ended. Waiting results can only be sent in the next session, without an assignment.
    pub(super) fn orphan(&mut self) {
        // In the next session one result per task is enough.
        let newest: BTreeMap<Digest, u64> =
            self.results.iter().map(|(number, result)| (result.hash, *number)).collect();
        let older = self.results.iter().filter(|(number, result)| newest.get(&result.hash) != Some(number));
        for number in older.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.remove(number);
        }
        self.results.values_mut().for_each(|result| result.assignment = 0);
        self.numbers = newest.into_iter().map(|(hash, number)| ((hash, 0), number)).collect();
        self.unsent = 0;
        self.unsent_bytes = self.bytes;
    }

    /// The results that have not been sent in this session, in messages of at most `message_bytes` bytes. A single larger
    /// result gets its own message.
    pub(super) fn send(&mut self, message_bytes: usize) -> Vec<Outputs> {
        let mut messages = Vec::new();
        let mut outputs = Outputs::default();
        let mut bytes = 0;
        for pending in self.results.range(self.unsent..).map(|(_, pending)| pending) {
            if bytes + pending.weight_bytes() > message_bytes && !outputs.results.is_empty() {
                messages.push(std::mem::take(&mut outputs));
                bytes = 0;
            }
            bytes += pending.weight_bytes();
            outputs.results.push(TaskResult {
                hash: Bytes::copy_from_slice(&pending.hash.0),
                outcome: Some(pending.outcome.clone()),
                elapsed_us: pending.elapsed_us,
                assignment: pending.assignment,
                timed_out: pending.timed_out,
            });
        }
        if !outputs.results.is_empty() {
            messages.push(outputs);
        }
        self.unsent = self.next;
        self.unsent_bytes = 0;
        messages
    }

    fn remove(&mut self, number: u64) {
        if let Some(removed) = self.results.remove(&number) {
            self.numbers.remove(&(removed.hash, removed.assignment));
            self.bytes -= removed.weight_bytes();
            if number >= self.unsent {
                self.unsent_bytes -= removed.weight_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> Digest {
        Digest([number; 32])
    }

    fn output(bytes: usize) -> Outcome {
        Outcome::Output(vec![7; bytes].into())
    }

    /// The first byte of the hash of each result, by message.
    fn sent(pending: &mut PendingResults, message_bytes: usize) -> Vec<Vec<u8>> {
        pending
            .send(message_bytes)
            .iter()
            .map(|outputs| outputs.results.iter().map(|result| result.hash[0]).collect())
            .collect()
    }

    /// Two runs of the same file: each of their assignments gets its own result.
    #[test]
    fn the_same_task_in_two_assignments_has_two_results() {
        let mut pending = PendingResults::new(10, 1 << 20);
        for assignment in [4, 5, 5] {
            pending.add(hash(1), output(0), (5, false), assignment);
        }
        let assignments = |outputs: &[Outputs]| -> Vec<u64> {
            outputs.iter().flat_map(|outputs| &outputs.results).map(|result| result.assignment).collect()
        };
        assert_eq!(assignments(&pending.send(1 << 20)), [4, 5]);
        pending.accept(hash(1));
        assert_eq!(pending.len(), 1);
        pending.add(hash(1), output(0), (5, false), 6);
        pending.orphan();
        assert_eq!(assignments(&pending.send(1 << 20)), [0], "in another session one result per task is enough");
        pending.accept(hash(1));
        assert_eq!((pending.len(), pending.bytes, pending.numbers.len()), (0, 0, 0));
    }

    #[test]
    fn each_result_is_sent_once_per_session_until_accepted() {
        let mut pending = PendingResults::new(10, 1 << 20);
        for number in 1..=3 {
            assert_eq!(pending.add(hash(number), output(0), (5, false), 9), 0);
        }
        assert_eq!(sent(&mut pending, 1 << 20), [[1, 2, 3]]);
        assert!(pending.send(1 << 20).is_empty());
        pending.accept(hash(2));
        pending.accept(hash(77));
        pending.orphan();
        let offers = pending.send(1 << 20);
        assert_eq!(offers.len(), 1);
        assert_eq!(offers[0].results.iter().map(|result| result.hash[0]).collect::<Vec<_>>(), [1, 3]);
        assert!(offers[0].results.iter().all(|result| result.assignment == 0 && result.elapsed_us == 5));
    }

    #[test]
    fn accepting_an_older_copy_keeps_the_newer() {
        let mut pending = PendingResults::new(10, 1 << 20);
        pending.add(hash(1), output(0), (5, false), 0);
        pending.send(1 << 20);
        pending.add(hash(1), output(0), (6, false), 4);
        pending.accept(hash(1));
        assert_eq!(pending.send(1 << 20)[0].results[0].assignment, 4);
        pending.accept(hash(1));
        assert_eq!((pending.len(), pending.bytes, pending.unsent_bytes()), (0, 0, 0));
    }

    #[test]
    fn the_oldest_is_dropped_beyond_the_bounds() {
        let mut pending = PendingResults::new(2, 10_000);
        assert_eq!(pending.add(hash(1), output(1), (0, false), 1), 0);
        assert_eq!(pending.add(hash(2), output(1), (0, false), 1), 0);
        assert_eq!(pending.add(hash(3), output(1), (0, false), 1), 1);
        assert_eq!(pending.add(hash(4), output(9_700), (0, false), 1), 2);
        assert_eq!(pending.add(hash(5), output(1_000_000), (0, false), 1), 1);
        assert_eq!(sent(&mut pending, 1), [[5]]);
        assert_eq!(pending.bytes, 1_000_000 + OVERHEAD_BYTES);
    }

    #[test]
    fn messages_are_cut_by_size() {
        let mut pending = PendingResults::new(10, 1 << 20);
        for (number, bytes) in [(1, 100), (2, 100), (3, 5_000), (4, 100)] {
            pending.add(hash(number), output(bytes), (0, false), 1);
        }
        assert_eq!(pending.unsent_bytes(), 5_300 + 4 * OVERHEAD_BYTES);
        assert_eq!(sent(&mut pending, 700), [vec![1, 2], vec![3], vec![4]]);
    }
}
