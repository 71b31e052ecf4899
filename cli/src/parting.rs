//! Where two replicas part: the first number in which their histories differ, and what this build computes.

use std::{path::Path, sync::Arc};

use evoxo_common::experiment::{Config, Registry, Replica};
use evoxo_worker::{Processes, Program};
use serde_json::{Value, json};

use crate::{
    recompute::advance,
    side::{KeptReplica, KeptRun, Match, Name, same},
    stored,
};

/// A number that two histories have in the same place, with different values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OtherNumber {
    /// The row, counted from 1.
    pub(crate) row: u64,
    pub(crate) column: &'static str,
    /// The two values; `None` if a history ends before this row.
    pub(crate) values: [Option<f64>; 2],
}

impl OtherNumber {
    pub(crate) fn to_json(&self) -> Value {
        json!({"row": self.row, "column": self.column, "values": self.values})
    }
}

/// The first place in which the rows of two histories differ. A history that ends before the other differs only if it may
/// not `end_early`.
pub(crate) fn first_other(config: &Config, rows: [&[Vec<f64>]; 2], end_early: bool) -> Option<OtherNumber> {
    let [one, other] = rows;
    let place = |row: usize, column: usize| {
        let value = |rows: &[Vec<f64>]| Some(*rows.get(row)?.get(column)?);
        OtherNumber { row: row as u64 + 1, column: config.kind.columns[column].name, values: rows.map(value) }
    };
    for (row, (mine, its)) in one.iter().zip(other).enumerate() {
        if let Some(column) = mine.iter().zip(its).position(|(mine, its)| mine.to_bits() != its.to_bits()) {
            return Some(place(row, column));
        }
    }
    (one.len() != other.len() && !end_early).then(|| place(one.len().min(other.len()), 0))
}

/// What this build computes, compared with what one side keeps.
#[derive(Default)]
pub(crate) struct Checked {
    /// The first round after which the side keeps another digest.
    pub(crate) round: Option<u64>,
    /// The first number in its history that is another one, after the values: the kept one, then the computed one; and the
    /// round that adds its row.
    pub(crate) place: Option<(u64, OtherNumber)>,
}

impl Checked {
    pub(crate) fn is_as_computed(&self) -> bool {
        self.round.is_none() && self.place.is_none()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "as_computed": self.is_as_computed(),
            "other_digest_after_round": self.round,
            "other_number": self.place.as_ref().map(|(_, place)| place.to_json()),
            "in_round": self.place.as_ref().map(|(round, _)| round),
        })
    }
}

/// What came of computing a replica of both sides again.
pub(crate) struct Computed {
    /// The rounds of the state with which it began; 0 if it began with the first round.
    pub(crate) from: u64,
    /// The rounds up to which both were computed.
    pub(crate) rounds: u64,
    /// The first round after which the replicas of the two configurations differ, as this build computes them. `None` if
    /// the sides have one configuration, or if no round differs.
    pub(crate) parted: Option<u64>,
    pub(crate) sides: [Checked; 2],
}

/// The last round that must be computed for this match of two replicas, or `None` for all of them.
pub(crate) fn last_round(found: Match, told: [&KeptReplica; 2]) -> Option<u64> {
    match found {
        Match::Different { by: Some(by), .. } => Some(by),
        Match::Begins { rounds } => Some(rounds),
        _ => told
            .iter()
            .map(|told| told.links.last().map(|last| last.round))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max(),
    }
}

/// One side while its replica is computed again.
struct Lane<'a> {
    told: &'a KeptReplica,
    rows: Option<Vec<Vec<f64>>>,
    checked: Checked,
}

impl<'a> Lane<'a> {
    fn of(side: &'a KeptRun, name: &Name) -> anyhow::Result<Self> {
        Ok(Self { told: &side.replicas[name], rows: side.rows(name)?, checked: Checked::default() })
    }

    /// Compares the replica after a round, which added the rows from `before` on.
    fn check(&mut self, config: &Config, replica: &Replica, before: usize) {
        let (round, computed) = (replica.rounds(), &replica.history()[before..]);
        let kept = self.rows.as_ref().and_then(|rows| rows.get(before..)).unwrap_or_default();
        let few = kept.len() < computed.len() && self.rows.is_some() && self.told.finished;
        let kept = &kept[..kept.len().min(computed.len())];
        if self.checked.place.is_none() && self.rows.is_some() {
            let place = first_other(config, [kept, computed], !few);
            self.checked.place = place.map(|place| (round, OtherNumber { row: place.row + before as u64, ..place }));
        }
        if self.checked.round.is_none() {
            let rows = replica.history().len() as u64;
            let link = self.told.links.iter().find(|link| (link.round, link.rows) == (round, rows));
            let other = link.is_some_and(|link| link.digest != replica.digest());
            let ends = replica.is_finished() && self.told.finished;
            let other_end = ends && !same(&replica.digest().to_string(), &self.told.digest);
            self.checked.round = (other || other_end).then_some(round);
        }
    }
}

/// A replica as it is stored before the first difference, if a run has states that are early enough.
pub(crate) fn state_before(registry: &Registry, side: &KeptRun, name: &Name, found: Match) -> Option<Replica> {
    let Match::Different { after: Some(after), .. } = found else { return None };
    let early = stored::early(registry, Path::new(&side.path), side.config(), after, u64::MAX).ok()?;
    let state = early.into_iter().find(|state| (&state.arm, state.replica) == (&name.0, name.1))?;
    Replica::restore(side.config(), &state).ok()
}

/// The replicas of both sides after the last round for which they keep the same digest, computed from a stored state of one of
/// them, without programs. The digest covers everything, so it is also the state of the other one. `None` if another digest
/// comes out: then it is no state of these runs.
pub(crate) fn both_after(
    mut replica: Replica,
    sides: [&KeptRun; 2],
    name: &Name,
    found: Match,
    threads: usize,
) -> anyhow::Result<Option<[Option<Replica>; 2]>> {
    let Match::Different { after: Some(after), .. } = found else { return Ok(None) };
    let mut processes: Vec<Processes> = (0..threads).map(|_| Processes::new(Arc::default())).collect();
    while replica.rounds() < after && !replica.is_finished() {
        advance(&mut replica, &mut processes)?;
    }
    let kept = sides[0].replicas[name].links.iter().find(|link| link.round == after);
    if kept.is_none_or(|link| (replica.rounds(), replica.digest()) != (after, link.digest)) {
        return Ok(None);
    }
    let state = replica.save();
    let both = sides.map(|side| Replica::restore(side.config(), &state).ok());
    Ok(both.iter().all(Option::is_some).then_some(both))
}

/// Computes a replica of both sides again, from these states or else from its beginning, up to this round or to its end. If
/// both have one configuration and `alike` divisions into rounds, it is computed once.
pub(crate) fn compute(
    sides: [&KeptRun; 2],
    name: &Name,
    alike: bool,
    states: [Option<Replica>; 2],
    last: Option<u64>,
    programs: &Arc<[Program]>,
    threads: usize,
) -> anyhow::Result<Computed> {
    let mut processes: Vec<Processes> = (0..threads).map(|_| Processes::new(Arc::clone(programs))).collect();
    let [one, other] = sides;
    let mut lanes = [Lane::of(one, name)?, Lane::of(other, name)?];
    let start = |(side, state): (&KeptRun, Option<Replica>)| {
        let arm = side.config().arms.iter().find(|arm| arm.name == name.0)?;
        Some(state.unwrap_or_else(|| Replica::start(side.config(), arm, name.1)))
    };
    let is_one = alike && one.config().hash() == other.config().hash();
    let mut replicas: Vec<Replica> =
        [one, other].into_iter().zip(states).filter_map(start).take(if is_one { 1 } else { 2 }).collect();
    let from = replicas.iter().map(Replica::rounds).min().unwrap_or(0);
    let (mut rounds, mut parted) = (from, None);
    while last.is_none_or(|last| rounds < last) && replicas.iter().any(|replica| !replica.is_finished()) {
        rounds += 1;
        let both_go_on = replicas.iter().all(|replica| !replica.is_finished());
        let is_due = |replica: &Replica| replica.rounds() < rounds && !replica.is_finished();
        for (place, replica) in replicas.iter_mut().enumerate().filter(|(_, replica)| is_due(replica)) {
            let before = replica.history().len();
            advance(replica, &mut processes)?;
            let of_it = if is_one { 0..2 } else { place..place + 1 };
            for at in of_it {
                lanes[at].check(sides[at].config(), replica, before);
            }
        }
        if let [one, other] = replicas.as_slice()
            && parted.is_none()
            && alike
            && both_go_on
            && one.rounds() == other.rounds()
            && one.digest() != other.digest()
        {
            parted = Some(rounds);
        }
    }
    Ok(Computed { from, rounds, parted, sides: lanes.map(|lane| lane.checked) })
}
