//! Encoded tasks, in memory and in messages. Bytes that many tasks share (such as the weights from which all workers of a
//! round start) are separate from each task's own bytes: they are hashed once per round, stored once and sent once per
//! session.
//!
//! The coordinator tracks which bytes a worker has cached. It uses the type that the worker uses for its cache,
//! [`SharedCache`], fed in the same order, so both agree. If a message is lost nevertheless, shared bytes of a task are
//! missing: the session ends, and the next one starts with empty caches.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use evoxo_proto::{
    SHARED_BYTES_MAX, SHARED_PIECES_MAX, TASK_BYTES_MAX,
    v1::{self, AssignedTask, Assignment},
};
use prost::Message as _;

use super::Task;
use crate::digest::Digest;

/// Bytes that many tasks share.
#[derive(Debug, PartialEq, Eq)]
pub struct Shared {
    /// SHA-256 of the bytes.
    pub hash: Digest,
    /// The task's field `shared`; never empty.
    pub bytes: Bytes,
}

/// A task, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The task's hash: that of `own` or, with shared bytes, that of `own` and the hash of the shared bytes.
    pub hash: Digest,
    /// The encoded task without its field `shared`.
    pub own: Bytes,
    /// The field `shared`, if it is not empty.
    pub shared: Option<Arc<Shared>>,
}

/// Encodes tasks. Bytes that consecutive tasks share are hashed and stored once.
#[derive(Debug, Default)]
pub struct Encoder {
    last: Option<Arc<Shared>>,
}

impl Encoder {
    /// Encodes a task.
    pub fn encode(&mut self, task: Task) -> Encoded {
        let Task { kind, body, shared, .. } = task;
        let (kind, work) = (kind.experiment.into(), kind.work.into());
        let own: Bytes = v1::Task { kind, work, body, shared: Bytes::new() }.encode_to_vec().into();
        if shared.is_empty() {
            return Encoded { hash: Digest::of(&own), own, shared: None };
        }
        let shared = match &self.last {
            Some(last) if same(&last.bytes, &shared) => Arc::clone(last),
            _ => Arc::new(Shared { hash: Digest::of(&shared), bytes: shared }),
        };
        self.last = Some(Arc::clone(&shared));
        Encoded { hash: Digest::of_pieces([&own[..], &shared.hash.0]), own, shared: Some(shared) }
    }
}

/// Whether these bytes are equal. Fast if they are the same memory.
fn same(one: &Bytes, two: &Bytes) -> bool {
    (one.as_ptr(), one.len()) == (two.as_ptr(), two.len()) || one == two
}

impl Encoded {
    /// The size of the task, including its shared bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.own.len() + self.shared.as_ref().map_or(0, |shared| shared.bytes.len())
    }

    /// The task as a message.
    ///
    /// # Errors
    /// A sentence if there are too many bytes, or if they are not a task.
    pub fn message(&self) -> Result<v1::Task, String> {
        if self.bytes() > TASK_BYTES_MAX {
            return Err(format!("the task has {} bytes, more than {TASK_BYTES_MAX}", self.bytes()));
        }
        let task = v1::Task::decode(self.own.clone());
        let task = task.map_err(|error| format!("the task's bytes are not a task: {error}"))?;
        Ok(match &self.shared {
            Some(shared) => v1::Task { shared: shared.bytes.clone(), ..task },
            None => task,
        })
    }

    /// The whole task as one [`v1::Task`]; [`Encoded::of_whole`] is the inverse.
    #[must_use]
    pub fn whole(&self) -> Bytes {
        let Some(shared) = &self.shared else { return self.own.clone() };
        // Fields may come in any order, and this one is the last anyway.
        let rest = v1::Task { shared: shared.bytes.clone(), ..v1::Task::default() };
        [self.own.as_ref(), &rest.encode_to_vec()].concat().into()
    }

    /// Reads a task written by [`Encoded::whole`].
    ///
    /// # Errors
    /// A sentence if there are too many bytes, or if they are not a task.
    pub fn of_whole(bytes: &Bytes) -> Result<Self, String> {
        let whole = Self { hash: Digest::of(bytes), own: bytes.clone(), shared: None };
        let v1::Task { kind, work, body, shared } = whole.message()?;
        if shared.is_empty() {
            return Ok(whole);
        }
        let own: Bytes = v1::Task { kind, work, body, shared: Bytes::new() }.encode_to_vec().into();
        let shared = Arc::new(Shared { hash: Digest::of(&shared), bytes: shared });
        Ok(Self { hash: Digest::of_pieces([&own[..], &shared.hash.0]), own, shared: Some(shared) })
    }
}

/// The shared bytes that a worker has cached in a session, oldest first. `T` is `()` for the coordinator, which only tracks
/// them, and the bytes themselves for the worker.
#[derive(Debug)]
pub struct SharedCache<T> {
    order: VecDeque<(Digest, usize)>,
    pieces: BTreeMap<Digest, T>,
    bytes: usize,
}

impl<T> Default for SharedCache<T> {
    /// The empty cache at the start of a session.
    fn default() -> Self {
        Self { order: VecDeque::new(), pieces: BTreeMap::new(), bytes: 0 }
    }
}

impl<T> SharedCache<T> {
    /// Whether the worker has these bytes.
    #[must_use]
    pub fn contains(&self, hash: Digest) -> bool {
        self.pieces.contains_key(&hash)
    }

    fn add(&mut self, hash: Digest, bytes: usize, piece: T) {
        if self.pieces.insert(hash, piece).is_none() {
            self.order.push_back((hash, bytes));
            self.bytes += bytes;
        }
    }

    /// Removes the oldest entries while the cache exceeds its limits of number and size.
    fn trim(&mut self) {
        while self.order.len() > 1 && (self.order.len() > SHARED_PIECES_MAX || self.bytes > SHARED_BYTES_MAX) {
            if let Some((hash, bytes)) = self.order.pop_front() {
                self.pieces.remove(&hash);
                self.bytes -= bytes;
            }
        }
    }
}

impl SharedCache<()> {
    /// The coordinator's side: an assignment of these tasks, with the shared bytes that the worker lacks.
    pub fn pack<'a>(&mut self, id: u64, tasks: impl IntoIterator<Item = &'a Encoded>) -> Assignment {
        let mut pieces = Vec::new();
        let mut pack = |task: &Encoded| {
            if let Some(shared) = &task.shared
                && !self.contains(shared.hash)
            {
                self.add(shared.hash, shared.bytes.len(), ());
                pieces.push(shared.bytes.clone());
            }
            let shared = task.shared.as_ref().map_or_else(Bytes::new, |shared| Bytes::copy_from_slice(&shared.hash.0));
            AssignedTask { hash: Bytes::copy_from_slice(&task.hash.0), task: task.own.clone(), shared }
        };
        let tasks = tasks.into_iter().map(&mut pack).collect();
        self.trim();
        Assignment { id, tasks, shared: pieces }
    }
}

impl SharedCache<Arc<Shared>> {
    /// The worker's side: the tasks of an assignment.
    ///
    /// # Errors
    /// What is invalid in the assignment, worded as in "it sent ...".
    pub fn unpack(&mut self, assignment: Assignment) -> Result<Vec<Encoded>, String> {
        let id = assignment.id;
        for bytes in assignment.shared {
            if bytes.len() > TASK_BYTES_MAX {
                let length = bytes.len();
                return Err(format!(
                    "assignment {id} with {length} shared bytes in one piece, more than {TASK_BYTES_MAX}"
                ));
            }
            let hash = Digest::of(&bytes);
            self.add(hash, bytes.len(), Arc::new(Shared { hash, bytes }));
        }
        let unpack = |task: AssignedTask| {
            let wrong = || format!("assignment {id} with a task whose hash does not have 32 bytes");
            let hash = Digest::from_slice(&task.hash).ok_or_else(wrong)?;
            let shared = match task.shared.len() {
                0 => None,
                _ => {
                    let needed = Digest::from_slice(&task.shared).ok_or_else(wrong)?;
                    let lost = || format!("assignment {id} without the shared bytes {} that it needs", needed.short());
                    Some(Arc::clone(self.pieces.get(&needed).ok_or_else(lost)?))
                }
            };
            Ok(Encoded { hash, own: task.task, shared })
        };
        let tasks = assignment.tasks.into_iter().map(unpack).collect();
        self.trim();
        tasks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{multiply, registry};

    fn task(number: u32, shared: &[u8]) -> Task {
        multiply(number.into()).sharing(Bytes::copy_from_slice(shared))
    }

    fn message(task: &Task) -> v1::Task {
        let (kind, work) = (task.kind.experiment.into(), task.kind.work.into());
        v1::Task { kind, work, body: task.body.clone(), shared: task.shared.clone() }
    }

    fn encode(tasks: impl IntoIterator<Item = Task>) -> Vec<Encoded> {
        let mut encoder = Encoder::default();
        tasks.into_iter().map(|task| encoder.encode(task)).collect()
    }

    #[test]
    fn a_task_without_shared_bytes_is_hashed_by_its_own_bytes() {
        let task = task(5, b"");
        let encoded = encode([task.clone()]).remove(0);
        assert_eq!(encoded.hash, Digest::of(&message(&task).encode_to_vec()));
        assert_eq!(encoded.whole(), message(&task).encode_to_vec());
        assert_eq!(Encoded::of_whole(&encoded.whole()), Ok(encoded));
    }

    #[test]
    fn hashes_differ_if_either_part_differs() {
        let tasks = [task(1, b""), task(1, b"a"), task(1, b"b"), task(2, b"a")];
        let names: std::collections::BTreeSet<Digest> = encode(tasks).iter().map(|task| task.hash).collect();
        assert_eq!(names.len(), 4);
        let task = encode([task(1, b"a")]).remove(0);
        let named_as_documented = Digest::of_pieces([&task.own[..], &Digest::of(b"a").0]);
        assert_eq!(task.hash, named_as_documented);
    }

    #[test]
    fn shared_bytes_of_consecutive_tasks_are_stored_once() {
        let tasks = encode([task(1, b"same"), task(2, b"same"), task(3, b"other")]);
        let shared = |index: usize| tasks[index].shared.as_ref().unwrap();
        assert!(Arc::ptr_eq(shared(0), shared(1)) && !Arc::ptr_eq(shared(1), shared(2)));
    }

    #[test]
    fn a_task_computes_the_same_whole_and_in_parts() {
        let task = task(7, &[9; 100]);
        let encoded = encode([task.clone()]).remove(0);
        assert_eq!(registry().decode(&encoded), Ok(task.clone()));
        assert_eq!(encoded.whole(), message(&task).encode_to_vec());
        assert_eq!(Encoded::of_whole(&encoded.whole()), Ok(encoded.clone()), "its hash is the same too");
        assert_eq!(registry().run(&encoded, &mut crate::task::NoPrograms), task.run());
    }

    #[test]
    fn a_tasks_size_limit_includes_shared_bytes() {
        let encoded = encode([task(7, &vec![0; TASK_BYTES_MAX])]).remove(0);
        assert!(registry().decode(&encoded).unwrap_err().0.contains("more than 8388608"));
    }

    #[test]
    fn the_newest_entries_are_kept_within_both_limits() {
        let mut kept = SharedCache::<()>::default();
        for number in 0..=SHARED_PIECES_MAX as u64 {
            let tasks = encode([task(1, &number.to_le_bytes())]);
            assert_eq!(kept.pack(1, &tasks).shared.len(), 1);
        }
        let contains = |kept: &SharedCache<()>, bytes: &[u8]| kept.contains(Digest::of(bytes));
        assert!(!contains(&kept, &0_u64.to_le_bytes()) && contains(&kept, &1_u64.to_le_bytes()));
        let large: Vec<Encoded> = (0..9).flat_map(|number| encode([task(1, &vec![number; 8 << 20])])).collect();
        assert_eq!(
            kept.pack(1, &large).shared.len(),
            9,
            "all shared bytes of an assignment are kept while it is packed"
        );
        assert!(kept.order.len() == 8 && kept.bytes == SHARED_BYTES_MAX);
        let larger = [Encoded {
            shared: Some(Arc::new(Shared { hash: Digest([1; 32]), bytes: vec![0; 65 << 20].into() })),
            ..large[0].clone()
        }];
        kept.pack(1, &larger);
        assert_eq!(kept.order.len(), 1, "the newest entry is always kept");
    }

    #[test]
    fn invalid_assignments_are_rejected_with_a_reason() {
        let tasks = encode([task(1, b"abc")]);
        let good = SharedCache::<()>::default().pack(3, &tasks);
        let with = |change: &dyn Fn(&mut Assignment)| {
            let mut assignment = good.clone();
            change(&mut assignment);
            SharedCache::default().unpack(assignment)
        };
        assert_eq!(with(&|_| {}), Ok(tasks.clone()));
        type Change<'a> = &'a dyn Fn(&mut Assignment);
        let bad: [(Change<'_>, &str); 5] = [
            (&|a| a.shared.clear(), "without the shared bytes ba7816bf8f01cfea that it needs"),
            (&|a| a.shared[0] = Bytes::from_static(b"abd"), "without the shared bytes ba7816bf8f01cfea"),
            (&|a| a.shared[0] = vec![0; TASK_BYTES_MAX + 1].into(), "8388609 shared bytes in one piece"),
            (&|a| a.tasks[0].shared = Bytes::from_static(b"x"), "hash does not have 32 bytes"),
            (&|a| a.tasks[0].hash = Bytes::new(), "hash does not have 32 bytes"),
        ];
        for (change, part) in bad {
            let sentence = with(change).unwrap_err();
            assert!(sentence.starts_with("assignment 3 with") && sentence.contains(part), "{sentence}");
        }
    }

    proptest! {
        /// However tasks are divided into assignments, the worker gets the coordinator's tasks, and cached bytes are not sent
        /// again.
        #[test]
        fn both_sides_cache_the_same(assignments in prop::collection::vec(prop::collection::vec((0..4_u32, 0..90_u8), 1..5), 1..60)) {
            let (mut sent, mut received) = (SharedCache::<()>::default(), SharedCache::default());
            for (id, numbers) in assignments.into_iter().enumerate() {
                let piece = |number: u8| vec![number; usize::from(number > 0) * (1 << (number % 22))];
                let tasks = encode(numbers.iter().map(|(number, shared)| task(*number, &piece(*shared))));
                let had: Vec<Digest> = sent.pieces.keys().copied().collect();
                let assignment = sent.pack(id as u64, &tasks);
                prop_assert!(assignment.shared.iter().all(|bytes| !had.contains(&Digest::of(bytes))));
                prop_assert_eq!(received.unpack(assignment), Ok(tasks));
                prop_assert_eq!(&sent.order, &received.order);
                prop_assert!(sent.pieces.keys().eq(received.pieces.keys()) && sent.bytes == received.bytes);
            }
        }
    }
}
