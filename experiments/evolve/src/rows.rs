//! The rows of a history of `evolve`, and when a search records one.

use evoxo_common::row;

use super::{
    algorithm::{Individual, Leaves},
    confirm::Confirmed,
    evaluation::Evaluation,
    pareto::hypervolume,
    settings::Settings,
    targets::{Marks, TARGETS},
};

row! {
    /// A row describes a moment of a search.
    pub(super) struct Row, primary best {
        /// candidates evaluated so far
        evaluations: u64,
        /// first objective of the best candidate so far, or of the confirmed answer of a noisy search
        best: f64,
        /// first objective: median of the feasible candidates of the last batch; with a window, of the candidates kept
        median: f64,
        /// constraint violation of the best candidate: the sum of the constraints that it breaks
        violation: f64,
        /// candidates without a value so far
        failures: u64,
        /// hypervolume of the front that is kept, up to the reference point; 0 without one
        hypervolume: f64,
        /// candidates that the algorithm keeps: its population, or the elites of a map
        kept: usize,
        /// with a map: by how much all elites together are better than the value that is worth nothing; otherwise 0
        qd_score: f64,
        /// with a map: candidates so far whose measures lay outside the grid
        outside: u64,
        /// the first evaluation that was as good as the target, counted from 1; 0 before
        reached: u64,
        /// first objective of the best candidate as the search saw it
        seen: f64,
        /// in the last row of a noisy search: the evaluations with fresh seeds behind its answer; otherwise 0
        confirmed: f64,
        /// half the width of the 95 % interval of best if it is confirmed; otherwise 0
        error: f64,
    }
}

pub(super) const EVALUATIONS: usize = Row::evaluations;
pub(super) const BEST: usize = Row::best;
pub(super) const VIOLATION: usize = Row::violation;
pub(super) const FAILURES: usize = Row::failures;
pub(super) const HYPERVOLUME: usize = Row::hypervolume;
pub(super) const KEPT: usize = Row::kept;
pub(super) const QUALITY: usize = Row::qd_score;
pub(super) const OUTSIDE: usize = Row::outside;
pub(super) const REACHED: usize = Row::reached;
pub(super) const SEEN: usize = Row::seen;
pub(super) const CONFIRMED: usize = Row::confirmed;
pub(super) const ERROR: usize = Row::error;

/// The column that ranks replicas.
pub(super) fn deciding(settings: &Settings) -> usize {
    match settings.leaves() {
        _ if settings.reference_point().is_some() => HYPERVOLUME,
        Leaves::Archive if settings.worthless().is_some() => QUALITY,
        Leaves::Archive => KEPT,
        Leaves::Front | Leaves::Nothing => BEST,
    }
}

/// The name of what a [deciding](deciding) column measures.
pub(super) fn called(column: usize) -> &'static str {
    match column {
        HYPERVOLUME => "hypervolume",
        QUALITY => "QD score",
        KEPT => "cells filled",
        _ => "best",
    }
}

/// The most rows of a search with this many evaluations, including those of its marks, its end and its answer.
pub(super) const fn most(evaluations: u64) -> u64 {
    16 * (evaluations.ilog2() as u64 + 1) + TARGETS as u64 + 3
}

/// A moment of a search.
pub(super) struct Moment {
    /// The best candidate so far.
    pub(super) best: Evaluation,
    pub(super) evaluations: u64,
    pub(super) failures: u64,
    pub(super) outside: u64,
    pub(super) reached: u64,
}

/// What an algorithm keeps, in numbers.
pub(super) struct Archive {
    /// The hypervolume; 0 without a reference point.
    hypervolume: f64,
    /// The QD score; 0 if no value is known to be worth nothing.
    quality: f64,
    kept: usize,
}

/// Whether every search has a row after this many evaluations: at 1 to 32, and then sixteen times for each doubling. So a
/// longer search has the rows of a shorter one, whatever its batches are. The first candidate that passes one of the
/// [marks](super::targets::Marks) has a row too, so histories say exactly how soon each mark was passed.
pub(super) const fn is_due(evaluations: u64) -> bool {
    let step = evaluations.ilog2().saturating_sub(4);
    evaluations.trailing_zeros() >= step
}

/// Whether a row is that of the confirmed answer of a noisy search.
pub(super) fn is_confirmed(row: &[f64]) -> bool {
    row.get(CONFIRMED).is_some_and(|draws| *draws > 0.0)
}

/// Whether a search has its last row only because it ended there. Such a row is not [due](is_due), and its best candidate
/// neither reached the target there nor passed a mark.
pub(super) fn is_of_end(settings: &Settings, history: &[Vec<f64>]) -> bool {
    let Some((last, earlier)) = history.split_last() else { return false };
    let evaluations = last[EVALUATIONS] as u64;
    if evaluations == 0 || is_due(evaluations) || last[REACHED] == last[EVALUATIONS] {
        return false;
    }
    let Some(marks) = Marks::of(settings) else { return true };
    let passed = |row: &Vec<f64>| {
        let best = Evaluation {
            objectives: vec![settings.said(0, row[BEST])],
            constraints: vec![row[VIOLATION]],
            ..Evaluation::default()
        };
        marks.passed(&best)
    };
    passed(last) == earlier.last().map_or(0, passed)
}

/// Whether a candidate is as good as the target; both are to be minimised.
pub(super) fn is_as_good(evaluation: &Evaluation, target: f64) -> bool {
    evaluation.feasible() && evaluation.objective(0) <= target
}

impl Archive {
    /// Measures a front, and what the algorithm keeps.
    pub(super) fn of(settings: &Settings, front: &[&Evaluation], kept: &[Individual]) -> Self {
        let hypervolume = settings.reference_point().map_or(0.0, |reference| {
            let feasible = front.iter().filter(|evaluation| evaluation.feasible());
            let points: Vec<&[f64]> = feasible.map(|evaluation| evaluation.objectives.as_slice()).collect();
            hypervolume(&points, &reference)
        });
        let elites = kept.iter().map(|elite| &elite.evaluation).filter(|evaluation| evaluation.feasible());
        let quality = settings.worthless().map_or(0.0, |worthless| {
            elites.fold(0.0, |sum, elite| sum + (worthless - elite.objective(0)).max(0.0)).min(f64::MAX)
        });
        Self { hypervolume, quality, kept: kept.len() }
    }
}

impl Moment {
    /// The row of this moment, or of the answer if there is one.
    pub(super) fn row(&self, settings: &Settings, archive: &Archive, median: f64, answer: Option<&Confirmed>) -> Row {
        let worth = answer.map_or(&self.best, |answer| &answer.mean);
        let said = |evaluation: &Evaluation| settings.said(0, evaluation.objective(0));
        let (confirmed, error) = answer.map_or((0.0, 0.0), |first| (first.draws as f64, first.half_width));
        Row {
            evaluations: self.evaluations,
            best: said(worth),
            median,
            violation: worth.violation(),
            failures: self.failures,
            hypervolume: archive.hypervolume,
            kept: archive.kept,
            qd_score: archive.quality,
            outside: self.outside,
            reached: self.reached,
            seen: said(&self.best),
            confirmed,
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spaced_evenly_on_a_logarithmic_scale() {
        let due: Vec<u64> = (1..=1 << 12).filter(|count| is_due(*count)).collect();
        assert_eq!(due[..34], (1..=32).chain([34, 36]).collect::<Vec<u64>>());
        assert_eq!(due[due.len() - 2..], [3968, 4096]);
        for count in [1, 2, 31, 100, 4096] {
            assert!(
                due.iter().filter(|due| **due <= count).count() as u64 + TARGETS as u64 + 3 <= most(count),
                "{count}"
            );
        }
    }
}
