//! Outputs that were computed before, by the names of the parts of tasks ([`Recallable`]). They are recalled instead of
//! computed again. That changes no result, so nothing here belongs to a state or a digest.
//!
//! A kind promises that outputs of parts with the same name are equal. A user's function may break this promise, for example
//! if it depends on its seed and does not say so. So the outputs of a problem are recalled only after some of its parts were
//! computed twice with the same output, and a few of the recalled ones are computed nevertheless and compared.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    task::{Recallable, Task},
};

/// The bytes of memory that an output takes in addition to its own bytes: its name, and its share of the tree.
const ENTRY_BYTES: u64 = 160;
/// So many parts of a problem must have had the same output twice before its outputs are recalled.
const AGREEING: u8 = 8;
/// A run computes its output of this number among those that could be recalled, and then those of all powers of two, as a check.
/// A function may take hours, so these checks must stay few.
const FIRST_RECHECKED: u64 = 16;
/// The most problems whose agreeing outputs are counted at a time.
const COUNTED_MAX: usize = 4096;
/// What is remembered under a problem's own name.
const AGREES: &[u8] = b"agrees";
const DIFFERS: &[u8] = b"differs";

/// What is known about the outputs of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Too few parts were computed twice.
    Unknown,
    /// Parts with the same name have the same output.
    Agrees,
    /// Two parts with the same name had different outputs.
    Differs,
}

/// A part whose output differs from an earlier one with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differing {
    /// The hash of the earlier output, and of the one that was computed now.
    pub(super) known: Digest,
    pub(super) found: Digest,
    /// Whether outputs of this problem were recalled before.
    pub(super) recalled: bool,
}

/// The outputs that the runs of a process know, bounded in bytes. Runs on several threads share them.
pub struct Recall(Mutex<Table>);

impl std::fmt::Debug for Recall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recall")
    }
}

/// Two generations of outputs. When the young one is full, it becomes the old one, whose outputs are forgotten unless they
/// were needed again.
struct Table {
    bytes_max: u64,
    young: BTreeMap<Digest, Bytes>,
    young_bytes: u64,
    old: BTreeMap<Digest, Bytes>,
    /// How many parts of each problem agreed so far, as long as there are fewer than [`AGREEING`].
    agreeing: BTreeMap<Digest, u8>,
    news: News,
}

/// What a file that keeps outputs lacks.
#[derive(Debug, Default)]
pub struct News {
    /// Whether everything before these outputs was forgotten.
    pub forgotten: bool,
    /// Names and outputs, oldest first.
    pub outputs: Vec<(Digest, Bytes)>,
}

impl Recall {
    /// Knows no outputs yet, and at most as many as take this many bytes of memory.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self(Mutex::new(Table {
            bytes_max,
            young: BTreeMap::new(),
            young_bytes: 0,
            old: BTreeMap::new(),
            agreeing: BTreeMap::new(),
            news: News::default(),
        }))
    }

    /// Adds an output that a file has kept.
    pub fn restore(&self, name: Digest, output: Bytes) {
        self.table().insert(name, output);
    }

    /// What was learnt since the last call.
    #[must_use]
    pub fn take_news(&self) -> News {
        std::mem::take(&mut self.table().news)
    }

    /// Forgets everything, because one of the workers that computed it is not to be trusted.
    pub fn forget(&self) {
        self.table().forget();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // A thread that panicked has left a valid table: each change is one insertion.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn get(&mut self, name: Digest) -> Option<Bytes> {
        if let Some(output) = self.young.get(&name) {
            return Some(output.clone());
        }
        let output = self.old.remove(&name)?;
        self.insert(name, output.clone());
        Some(output)
    }

    fn insert(&mut self, name: Digest, output: Bytes) {
        let bytes = ENTRY_BYTES + output.len() as u64;
        if self.young_bytes + bytes > self.bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young_bytes + bytes <= self.bytes_max / 2 && self.young.insert(name, output).is_none() {
            self.young_bytes += bytes;
        }
    }

    /// Inserts an output that a file is to keep.
    fn keep(&mut self, name: Digest, output: Bytes) {
        self.insert(name, output.clone());
        // Nobody may be there to take the news, so they are as bounded as everything else.
        if self.news.outputs.len() as u64 * ENTRY_BYTES < self.bytes_max / 2 {
            self.news.outputs.push((name, output));
        }
    }

    fn forget(&mut self) {
        *self = Self {
            young: BTreeMap::new(),
            young_bytes: 0,
            old: BTreeMap::new(),
            agreeing: BTreeMap::new(),
            news: News { forgotten: true, outputs: Vec::new() },
            ..*self
        };
    }

    fn standing(&mut self, problem: Digest) -> Standing {
        match self.get(problem).as_deref() {
            Some(AGREES) => Standing::Agrees,
            Some(_) => Standing::Differs,
            None => Standing::Unknown,
        }
    }

    /// Learns an output that was computed.
    fn learn(&mut self, problem: Digest, name: Digest, output: &Bytes) -> Option<Differing> {
        let standing = self.standing(problem);
        if standing == Standing::Differs {
            return None;
        }
        match self.get(name) {
            None => self.keep(name, Bytes::copy_from_slice(output)),
            Some(known) if known == output => {
                if standing == Standing::Unknown {
                    self.agree(problem);
                }
            }
            Some(known) => {
                self.forget();
                self.keep(problem, Bytes::from_static(DIFFERS));
                let recalled = standing == Standing::Agrees;
                return Some(Differing { known: Digest::of(&known), found: Digest::of(output), recalled });
            }
        }
        None
    }

    /// A part of this problem had the same output twice.
    fn agree(&mut self, problem: Digest) {
        if self.agreeing.len() >= COUNTED_MAX {
            self.agreeing.clear();
        }
        let agreeing = self.agreeing.entry(problem).or_default();
        *agreeing += 1;
        if *agreeing >= AGREEING {
            self.agreeing.remove(&problem);
            self.keep(problem, Bytes::from_static(AGREES));
        }
    }
}

/// What a run recalls.
#[derive(Debug)]
pub struct Recalling {
    recall: Arc<Recall>,
    /// How many outputs could have been recalled so far.
    asked: Cell<u64>,
    /// Part of all names, so that runs with different scopes share nothing.
    scope: Digest,
}

impl Recalling {
    /// Recalls the outputs that were learnt with the same scope.
    #[must_use]
    pub fn new(recall: Arc<Recall>, scope: Digest) -> Self {
        Self { recall, asked: Cell::new(0), scope }
    }

    /// Forgets all outputs, with any scope.
    pub(super) fn forget(&self) {
        self.recall.forget();
    }

    /// Whether an output that could be recalled is computed nevertheless.
    fn rechecks(&self) -> bool {
        let asked = self.asked.get() + 1;
        self.asked.set(asked);
        asked >= FIRST_RECHECKED && asked.is_power_of_two()
    }

    fn scoped(&self, name: &Digest) -> Digest {
        Digest::of_pieces([&self.scope.0[..], &name.0])
    }
}

/// How many parts of planned tasks have names, how many of them no worker computes, and how many are computed although their
/// outputs are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Parts with names.
    pub parts: u64,
    /// Parts whose outputs are known, or will be once another task of the round is computed.
    pub recalled: u64,
    /// Parts that are computed although their outputs are known, as a check.
    pub rechecked: u64,
}

/// What to do with a task.
pub(super) enum Planned {
    /// Compute it. It has only the parts whose outputs are not known.
    Open(Task),
    /// Its output is known.
    Known(Bytes),
    /// Its output will be known once other tasks of the round are computed.
    Awaited,
}

/// The tasks of a replica's round whose outputs are not complete. Each has a place, which stays the same until its output is
/// absorbed.
#[derive(Default)]
pub(super) struct Pieces {
    open: BTreeMap<u64, Piece>,
    /// The names of parts that are being computed, with the parts of other tasks that wait for the same output: the place of
    /// the task, and the index of the part.
    awaited: BTreeMap<Digest, Vec<(u64, usize)>>,
}

struct Piece {
    task: Task,
    problem: Digest,
    names: Vec<Digest>,
    outputs: Vec<Option<Bytes>>,
    /// The parts that are being computed.
    sent: Vec<usize>,
}

impl Pieces {
    /// Plans a task.
    pub(super) fn plan(&mut self, recalling: &Recalling, place: u64, mut task: Task, counted: &mut Counted) -> Planned {
        let Some(Recallable { problem, parts }) = task.recallable.take() else { return Planned::Open(task) };
        let problem = recalling.scoped(&problem);
        let mut table = recalling.recall.table();
        let standing = table.standing(problem);
        if standing == Standing::Differs {
            return Planned::Open(task);
        }
        let is_recalled = standing == Standing::Agrees;
        let names: Vec<Digest> = parts.iter().map(|name| recalling.scoped(name)).collect();
        let (mut outputs, mut sent, mut now) = (vec![None; names.len()], Vec::new(), Counted::default());
        for (part, name) in names.iter().enumerate() {
            if is_recalled && let Some(waiting) = self.awaited.get_mut(name) {
                waiting.push((place, part));
                now.recalled += 1;
                continue;
            }
            match table.get(*name) {
                Some(output) if is_recalled && !recalling.rechecks() => {
                    outputs[part] = Some(output);
                    now.recalled += 1;
                }
                known => {
                    now.rechecked += u64::from(known.is_some());
                    sent.push(part);
                    self.awaited.entry(*name).or_default();
                }
            }
        }
        drop(table);
        now.parts = names.len() as u64;
        if !are_valid(&task, &outputs) {
            // The outputs come from a file that somebody has changed. The task is computed whole.
            recalling.forget();
            self.awaited.values_mut().for_each(|waiting| waiting.retain(|(of, _)| *of != place));
            names.iter().for_each(|name| _ = self.awaited.entry(*name).or_default());
            (outputs, sent) = (vec![None; names.len()], (0..names.len()).collect());
            now = Counted { parts: now.parts, ..Counted::default() };
        }
        counted.add(now);
        let (is_whole, is_sent) = (sent.len() == names.len(), !sent.is_empty());
        let open = if is_sent && !is_whole { task.only(&sent) } else { task.clone() };
        let piece = Piece { task, problem, names, outputs, sent };
        match (is_sent, piece.output()) {
            (false, Some(output)) => return Planned::Known(output),
            _ => self.open.insert(place, piece),
        };
        if is_sent { Planned::Open(open) } else { Planned::Awaited }
    }

    /// Takes the output of the parts of a task that were computed. Returns the tasks whose outputs are complete now.
    pub(super) fn take(
        &mut self,
        recalling: &Recalling,
        place: u64,
        output: Bytes,
    ) -> (Vec<(u64, Bytes)>, Option<Differing>) {
        let Some(piece) = self.open.get_mut(&place) else { return (vec![(place, output)], None) };
        let (sent, problem) = (std::mem::take(&mut piece.sent), piece.problem);
        if sent.is_empty() {
            // A further copy of the task.
            return (Vec::new(), None);
        }
        let computed = piece.task.kind.divided(&output);
        assert_eq!(computed.len(), sent.len(), "a checked output has as many parts as its task");
        let names: Vec<Digest> = sent.iter().map(|part| piece.names[*part]).collect();
        let (mut touched, mut differing) = (vec![place], None);
        for ((part, name), output) in sent.into_iter().zip(names).zip(computed) {
            differing = recalling.recall.table().learn(problem, name, &output).or(differing);
            let waiting = self.awaited.remove(&name).unwrap_or_default();
            for (place, part) in waiting.into_iter().chain([(place, part)]) {
                if let Some(piece) = self.open.get_mut(&place) {
                    piece.outputs[part] = Some(output.clone());
                    touched.push(place);
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        let whole = touched.into_iter().filter_map(|place| Some((place, self.open.get(&place)?.output()?)));
        let whole: Vec<(u64, Bytes)> = whole.collect();
        whole.iter().for_each(|(place, _)| drop(self.open.remove(place)));
        (whole, differing)
    }
}

/// Whether the outputs that are known fit their task.
fn are_valid(task: &Task, outputs: &[Option<Bytes>]) -> bool {
    let known: Vec<usize> = (0..outputs.len()).filter(|part| outputs[*part].is_some()).collect();
    let of = || if known.len() == outputs.len() { task.clone() } else { task.only(&known) };
    known.is_empty() || of().check(&joined(outputs.iter().flatten())).is_ok()
}

/// The output of several parts.
fn joined<'a>(outputs: impl Iterator<Item = &'a Bytes>) -> Bytes {
    outputs.flat_map(|output| output.iter().copied()).collect()
}

impl Piece {
    /// The whole output, if all its parts are known.
    fn output(&self) -> Option<Bytes> {
        self.outputs.iter().all(Option::is_some).then(|| joined(self.outputs.iter().flatten()))
    }
}

impl Counted {
    fn add(&mut self, more: Self) {
        self.parts += more.parts;
        self.recalled += more.recalled;
        self.rechecked += more.rechecked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    /// However many outputs are learnt, memory stays bounded, and those that are needed stay.
    #[test]
    fn what_is_recalled_is_bounded() {
        let recall = Recall::new(40_000);
        for number in 0..10_000 {
            recall.restore(name(number), Bytes::from_static(b"output"));
            assert!(recall.table().get(name(0)).is_some(), "it is needed all the time");
        }
        let table = recall.table();
        let kept = table.young.len() + table.old.len();
        assert!((120..=40_000 / 160).contains(&kept) && table.young_bytes <= 20_000, "{kept}");
        assert!(table.old.keys().all(|name| !table.young.contains_key(name)));
    }

    #[test]
    fn a_problem_is_trusted_after_some_equal_outputs_and_never_after_different_ones() {
        let (problem, [one, other]) = (name(0), [Bytes::from_static(b"1"), Bytes::from_static(b"2")]);
        let recall = Recall::new(1 << 20);
        let learn = |number: u64, output: &Bytes| recall.table().learn(problem, name(number), output);
        let standing = || recall.table().standing(problem);
        for number in 1..=u64::from(AGREEING) {
            assert_eq!([learn(number, &one), learn(number, &one)], [None, None]);
            let agrees = number == u64::from(AGREEING);
            assert_eq!(standing(), if agrees { Standing::Agrees } else { Standing::Unknown });
        }
        let differing = learn(1, &other).expect("it differs");
        assert_eq!((differing.known, differing.found), (Digest::of(&one), Digest::of(&other)));
        assert!(differing.recalled && standing() == Standing::Differs);
        assert!(recall.table().get(name(2)).is_none(), "nothing else is recalled either");
        assert!((0..20).all(|_| learn(2, &one).is_none()) && standing() == Standing::Differs);
        let news = recall.take_news();
        assert!(news.forgotten && news.outputs == [(problem, Bytes::from_static(DIFFERS))]);
        // Nothing was recalled yet, so no result is in doubt.
        let recall = Recall::new(1 << 20);
        let learn = |output: &Bytes| recall.table().learn(problem, name(1), output);
        assert!(learn(&one).is_none() && !learn(&other).expect("it differs").recalled);
    }
}
