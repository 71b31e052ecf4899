//! The rows of a history of `evolve`, and when a search has one.

use super::{
    algorithm::{Individual, Leaves},
    confirm::Confirmed,
    evaluation::Evaluation,
    pareto::hypervolume,
    settings::Settings,
};

/// The columns of a row: see [`super::KIND`].
pub(super) const COLUMNS: usize = 13;

/// The places of columns in a row.
pub(super) const EVALUATIONS: usize = 0;
pub(super) const BEST: usize = 1;
pub(super) const VIOLATION: usize = 3;
pub(super) const FAILURES: usize = 4;
pub(super) const HYPERVOLUME: usize = 5;
pub(super) const KEPT: usize = 6;
pub(super) const QUALITY: usize = 7;
pub(super) const OUTSIDE: usize = 8;
pub(super) const REACHED: usize = 9;
pub(super) const SEEN: usize = 10;
pub(super) const CONFIRMED: usize = 11;
pub(super) const ERROR: usize = 12;

/// The column that says how good a replica is.
pub(super) fn deciding(settings: &Settings) -> usize {
    match settings.leaves() {
        _ if settings.reference_point().is_some() => HYPERVOLUME,
        Leaves::Archive if settings.worthless().is_some() => QUALITY,
        Leaves::Archive => KEPT,
        Leaves::Front | Leaves::Nothing => BEST,
    }
}

/// What the numbers of a [deciding](deciding) column are called.
pub(super) fn called(column: usize) -> &'static str {
    match column {
        HYPERVOLUME => "hypervolume",
        QUALITY => "QD score",
        KEPT => "cells filled",
        _ => "best",
    }
}

/// The most rows of a search with this many evaluations, with those of its target, its end and its answer.
pub(super) const fn most(evaluations: u64) -> u64 {
    16 * (evaluations.ilog2() as u64 + 1) + 3
}

/// What is known at a moment of a search.
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
    /// 0 without a reference point.
    hypervolume: f64,
    /// The QD score; 0 if nobody knows what is worth nothing.
    quality: f64,
    kept: usize,
}

/// Whether there is a row after this many evaluations, in every search: at 1 to 32, and then sixteen times until the number has doubled.
/// So a longer search has the rows of a shorter one, whatever its batches are.
pub(super) const fn is_due(evaluations: u64) -> bool {
    let step = evaluations.ilog2().saturating_sub(4);
    evaluations.trailing_zeros() >= step
}

/// Whether a candidate is as good as the target, which is to be minimised.
pub(super) fn is_as_good(evaluation: &Evaluation, target: f64) -> bool {
    evaluation.feasible() && evaluation.objective(0) <= target
}

impl Archive {
    /// Of a front and of what the algorithm keeps.
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
    /// The row of this moment; of the answer, if there is one.
    pub(super) fn row(
        &self,
        settings: &Settings,
        archive: &Archive,
        median: f64,
        answer: Option<&Confirmed>,
    ) -> Vec<f64> {
        let worth = answer.map_or(&self.best, |answer| &answer.mean);
        let said = |evaluation: &Evaluation| settings.said(0, evaluation.objective(0));
        let (confirmed, error) = answer.map_or((0.0, 0.0), |first| (first.draws as f64, first.half_width));
        vec![
            self.evaluations as f64,
            said(worth),
            median,
            worth.violation(),
            self.failures as f64,
            archive.hypervolume,
            archive.kept as f64,
            archive.quality,
            self.outside as f64,
            self.reached as f64,
            said(&self.best),
            confirmed,
            error,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_dense_everywhere() {
        let due: Vec<u64> = (1..=1 << 12).filter(|count| is_due(*count)).collect();
        assert_eq!(due[..34], (1..=32).chain([34, 36]).collect::<Vec<u64>>());
        assert_eq!(due[due.len() - 2..], [3968, 4096]);
        for count in [1, 2, 31, 100, 4096] {
            assert!(due.iter().filter(|due| **due <= count).count() as u64 + 3 <= most(count), "{count}");
        }
    }
}
