//! Outputs that were computed before, by the names of the parts of tasks ([`Recallable`]). They are recalled instead of
//! computed again. That changes no result, so nothing here belongs to a state or a digest.
//!
//! A kind promises that outputs of parts with the same name are equal. A user's function may break this promise, for example
//! if it depends on its seed and does not say so. So the outputs of a problem are recalled only after some of its parts were
//! computed twice with the same output: for the same seeds, or for all once the seeds of these differed. A few of the recalled
//! ones are computed nevertheless and compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    task::{Recallable, Task, TaskKind},
};

/// The bytes of memory that an output takes in addition to its own bytes: its name, and its share of the tree.
const ENTRY_BYTES: u64 = 160;
/// So many parts of a problem must have had the same output twice before its outputs are recalled.
const AGREEING: usize = 8;
/// A run computes its output of this number among those that could be recalled, and then those of all powers of two, as a check.
/// A function may take hours, so these checks must stay few.
const FIRST_RECHECKED: u64 = 16;
/// The most problems whose agreeing outputs are counted at a time.
const COUNTED_MAX: usize = 4096;
/// What is remembered under a problem's own name.
const REPEATS: &[u8] = b"repeats";
const AGREES: &[u8] = b"agrees";
const DIFFERS: &[u8] = b"differs";

/// What is known about the outputs of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Too few parts were computed twice.
    Unknown,
    /// Parts with the same name and the same seed have the same output. A kill repeats a whole batch with its seeds, so this
    /// says nothing about other seeds.
    Repeats,
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

/// An output that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The seed of the part that was computed first.
    pub seed: u64,
    /// The output.
    pub output: Bytes,
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
    young: BTreeMap<Digest, Known>,
    young_bytes: u64,
    old: BTreeMap<Digest, Known>,
    /// The parts of each problem that speak for a standing so far, as long as there are fewer than [`AGREEING`].
    agreeing: BTreeMap<(Digest, Standing), BTreeSet<Digest>>,
    /// How often everything was forgotten. What was planned before that is not learnt.
    forgotten: u64,
    /// `None` if nobody takes them.
    news: Option<News>,
    news_bytes: u64,
}

/// What a file that keeps outputs lacks.
#[derive(Debug, Default)]
pub struct News {
    /// Whether everything before these outputs was forgotten.
    pub forgotten: bool,
    /// Names and outputs, oldest first.
    pub outputs: Vec<(Digest, Known)>,
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
            forgotten: 0,
            news: None,
            news_bytes: 0,
        }))
    }

    /// Collects what is learnt for [`Recall::take_news`].
    #[must_use]
    pub fn with_news(self) -> Self {
        self.table().news = Some(News::default());
        self
    }

    /// Adds an output that a file has kept.
    pub fn restore(&self, name: Digest, known: Known) {
        self.table().insert(name, known);
    }

    /// What was learnt since the last call.
    #[must_use]
    pub fn take_news(&self) -> News {
        let mut table = self.table();
        table.news_bytes = 0;
        table.news.as_mut().map(std::mem::take).unwrap_or_default()
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
    fn get(&mut self, name: Digest) -> Option<Known> {
        if let Some(known) = self.young.get(&name) {
            return Some(known.clone());
        }
        let known = self.old.remove(&name)?;
        self.insert(name, known.clone());
        Some(known)
    }

    fn insert(&mut self, name: Digest, known: Known) {
        let bytes = known.bytes();
        if self.young_bytes + bytes > self.bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young_bytes + bytes <= self.bytes_max / 2 && self.young.insert(name, known).is_none() {
            self.young_bytes += bytes;
        }
    }

    /// Inserts an output that a file is to keep.
    fn keep(&mut self, name: Digest, known: Known) {
        // Whoever takes the news may be slow, so they are as bounded as everything else.
        if let Some(news) = self.news.as_mut().filter(|_| self.news_bytes + known.bytes() <= self.bytes_max / 2) {
            self.news_bytes += known.bytes();
            news.outputs.push((name, known.clone()));
        }
        self.insert(name, known);
    }

    fn keep_standing(&mut self, problem: Digest, standing: &'static [u8]) {
        self.keep(problem, Known { seed: 0, output: Bytes::from_static(standing) });
    }

    fn forget(&mut self) {
        *self = Self {
            young: BTreeMap::new(),
            young_bytes: 0,
            old: BTreeMap::new(),
            agreeing: BTreeMap::new(),
            forgotten: self.forgotten + 1,
            news: self.news.is_some().then(|| News { forgotten: true, outputs: Vec::new() }),
            news_bytes: 0,
            ..*self
        };
    }

    fn standing(&mut self, problem: Digest) -> Standing {
        match self.get(problem).as_ref().map(|known| &*known.output) {
            Some(REPEATS) => Standing::Repeats,
            Some(AGREES) => Standing::Agrees,
            Some(_) => Standing::Differs,
            None => Standing::Unknown,
        }
    }

    /// Learns an output that was computed with this seed.
    fn learn(&mut self, problem: Digest, name: Digest, seed: u64, output: &Bytes) -> Option<Differing> {
        let standing = self.standing(problem);
        if standing == Standing::Differs {
            return None;
        }
        match self.get(name) {
            // A slice would keep the outputs of the whole task in memory.
            None => self.keep(name, Known { seed, output: Bytes::copy_from_slice(output) }),
            Some(known) if known.output == output => {
                let spoken_for = if known.seed == seed { Standing::Repeats } else { Standing::Agrees };
                if standing < spoken_for {
                    self.agree(problem, spoken_for, name);
                }
            }
            Some(known) => {
                let recalled = standing.recalls(known.seed == seed);
                // Results may rest on what was recalled. Otherwise only this problem is known to be unfit.
                if recalled {
                    self.forget();
                }
                self.keep_standing(problem, DIFFERS);
                return Some(Differing { known: Digest::of(&known.output), found: Digest::of(output), recalled });
            }
        }
        None
    }

    /// A part of this problem had the same output twice. Each part counts once, however often it is computed.
    fn agree(&mut self, problem: Digest, standing: Standing, name: Digest) {
        if self.agreeing.len() >= COUNTED_MAX {
            self.agreeing.clear();
        }
        let agreeing = self.agreeing.entry((problem, standing)).or_default();
        agreeing.insert(name);
        if agreeing.len() >= AGREEING {
            self.agreeing.remove(&(problem, standing));
            self.keep_standing(problem, if standing == Standing::Agrees { AGREES } else { REPEATS });
        }
    }
}

impl Standing {
    /// Whether a known output is recalled, if it was computed with the same seed, or with another one.
    fn recalls(self, same_seed: bool) -> bool {
        self == Self::Agrees || self == Self::Repeats && same_seed
    }
}

impl Known {
    /// The bytes of memory that it takes.
    fn bytes(&self) -> u64 {
        ENTRY_BYTES + self.output.len() as u64
    }
}

/// What a run recalls. Its lanes have copies that count together.
#[derive(Clone, Debug)]
pub struct Recalling {
    recall: Arc<Recall>,
    /// How many outputs could have been recalled so far.
    asked: Arc<AtomicU64>,
    /// Part of all names, so that runs with different scopes share nothing.
    scope: Digest,
}

impl Recalling {
    /// Recalls the outputs that were learnt with the same scope; nothing without outputs or without a scope.
    #[must_use]
    pub fn of(recall: Option<&Arc<Recall>>, scope: Option<Digest>) -> Option<Self> {
        Some(Self { recall: Arc::clone(recall?), asked: Arc::default(), scope: scope? })
    }

    /// Whether an output that could be recalled is computed nevertheless.
    fn rechecks(&self) -> bool {
        let asked = self.asked.fetch_add(1, Relaxed) + 1;
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
    kind: &'static TaskKind,
    problem: Digest,
    /// The name and the seed of each part.
    names: Vec<(Digest, u64)>,
    /// The table's count when the task was planned.
    forgotten: u64,
    outputs: Vec<Option<Bytes>>,
    /// The parts that are being computed.
    sent: Vec<usize>,
}

impl Pieces {
    /// Plans a task.
    pub(super) fn plan(&mut self, recalling: &Recalling, place: u64, mut task: Task, counted: &mut Counted) -> Planned {
        let Some(Recallable { problem, parts, seeds }) = task.recallable.take() else { return Planned::Open(task) };
        let problem = recalling.scoped(&problem);
        let mut table = recalling.recall.table();
        let standing = table.standing(problem);
        if standing == Standing::Differs {
            return Planned::Open(task);
        }
        let forgotten = table.forgotten;
        let names: Vec<(Digest, u64)> = parts.iter().map(|name| recalling.scoped(name)).zip(seeds).collect();
        assert_eq!(names.len(), parts.len(), "each part of a task has a seed");
        let (mut outputs, mut sent, mut now) = (vec![None; names.len()], Vec::new(), Counted::default());
        for (part, (name, seed)) in names.iter().enumerate() {
            if standing == Standing::Agrees
                && let Some(waiting) = self.awaited.get_mut(name)
            {
                waiting.push((place, part));
                now.recalled += 1;
                continue;
            }
            match table.get(*name) {
                Some(known) if standing.recalls(known.seed == *seed) && !recalling.rechecks() => {
                    outputs[part] = Some(known.output);
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
            recalling.recall.forget();
            self.awaited.values_mut().for_each(|waiting| waiting.retain(|(of, _)| *of != place));
            names.iter().for_each(|(name, _)| _ = self.awaited.entry(*name).or_default());
            (outputs, sent) = (vec![None; names.len()], (0..names.len()).collect());
            now = Counted { parts: now.parts, ..Counted::default() };
        }
        counted.add(now);
        let (is_whole, is_sent) = (sent.len() == names.len(), !sent.is_empty());
        let kind = task.kind;
        let open = if is_sent && !is_whole { task.only(&sent) } else { task };
        let piece = Piece { kind, problem, names, forgotten, outputs, sent };
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
        let (sent, problem, forgotten) = (std::mem::take(&mut piece.sent), piece.problem, piece.forgotten);
        if sent.is_empty() {
            // A further copy of the task.
            return (Vec::new(), None);
        }
        let computed = piece.kind.divided(&output);
        assert_eq!(computed.len(), sent.len(), "a checked output has as many parts as its task");
        let names: Vec<(Digest, u64)> = sent.iter().map(|part| piece.names[*part]).collect();
        let (mut touched, mut differing) = (vec![place], None);
        for ((part, (name, seed)), output) in sent.into_iter().zip(names).zip(computed) {
            let mut table = recalling.recall.table();
            // A worker that is no longer trusted may have computed what was planned before.
            if table.forgotten == forgotten {
                differing = table.learn(problem, name, seed, &output).or(differing);
            }
            drop(table);
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

    fn known(output: &'static [u8]) -> Known {
        Known { seed: 0, output: Bytes::from_static(output) }
    }

    /// However many outputs are learnt, memory stays bounded, and those that are needed stay.
    #[test]
    fn what_is_recalled_is_bounded() {
        let recall = Recall::new(40_000);
        for number in 0..10_000 {
            recall.restore(name(number), known(b"output"));
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
        let recall = Recall::new(1 << 20).with_news();
        let learn = |number: u64, seed: u64, output: &Bytes| recall.table().learn(problem, name(number), seed, output);
        let standing = || recall.table().standing(problem);
        for (second, before, after) in
            [(7, Standing::Unknown, Standing::Repeats), (8, Standing::Repeats, Standing::Agrees)]
        {
            for number in 1..=AGREEING as u64 {
                assert_eq!(standing(), before);
                // However often a part is computed, it counts once.
                assert!((0..20).all(|_| learn(number, 7, &one).is_none() && learn(number, second, &one).is_none()));
            }
            assert_eq!(standing(), after);
        }
        let differing = learn(1, 7, &other).expect("it differs");
        assert_eq!((differing.known, differing.found), (Digest::of(&one), Digest::of(&other)));
        assert!(differing.recalled && standing() == Standing::Differs);
        assert!(recall.table().get(name(2)).is_none(), "nothing else is recalled either");
        assert!((0..20).all(|_| learn(2, 7, &one).is_none()) && standing() == Standing::Differs);
        let news = recall.take_news();
        assert!(news.forgotten && news.outputs == [(problem, known(DIFFERS))]);
    }

    /// A program that uses its seed and does not say so.
    #[test]
    fn undeclared_noise_is_found_before_anything_is_recalled_for_another_seed() {
        let (problem, [one, other]) = (name(0), [Bytes::from_static(b"1"), Bytes::from_static(b"2")]);
        let recall = Recall::new(1 << 20).with_news();
        recall.restore(name(100), known(b"of another problem"));
        let learn = |number: u64, seed: u64, output: &Bytes| recall.table().learn(problem, name(number), seed, output);
        // After a kill, the same batch is computed again with the same seeds.
        for number in (1..=20).chain(1..=20) {
            assert_eq!(learn(number, number, &one), None);
        }
        let standing = recall.table().standing(problem);
        assert!(standing == Standing::Repeats && standing.recalls(true) && !standing.recalls(false));
        // So nothing of another seed was recalled, no result is in doubt, and other problems are as good as before.
        assert!(!learn(1, 2, &other).expect("it differs").recalled);
        assert_eq!(recall.table().standing(problem), Standing::Differs);
        assert!(!recall.take_news().forgotten && recall.table().get(name(100)).is_some());
    }

    #[test]
    fn news_are_bounded_in_bytes_and_kept_only_if_somebody_takes_them() {
        let learn = |recall: &Recall| {
            for number in 1..200 {
                recall.table().learn(name(0), name(number), 0, &Bytes::from(vec![0; 1000]));
            }
            recall.take_news().outputs.len()
        };
        assert_eq!(learn(&Recall::new(100_000)), 0);
        let recall = Recall::new(100_000).with_news();
        assert_eq!(learn(&recall), 50_000 / 1160);
        recall.forget();
        assert!(recall.take_news().forgotten && !recall.take_news().forgotten);
    }
}
