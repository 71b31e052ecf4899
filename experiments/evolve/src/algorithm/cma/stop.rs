//! Whether a run of CMA-ES has converged or no longer makes progress.
//!
//! N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016, section B.3. Where pycma 4.5 uses another
//! number, the comment says so. The box is 1 wide in each coordinate.

use super::strategy::{Distribution, Strategy};

/// The most generations that a history keeps and that the test for stagnation looks at (the tutorial: 20,000).
pub(super) const HISTORY_MAX: usize = 2000;
/// The condition number of the covariance matrix above which rounding errors dominate.
const CONDITION_MAX: f64 = 1e14;
/// The growth of the greatest deviation above which the first step size was far too small.
const GROWTH_MAX: f64 = 1e4;
/// The deviation below which a coordinate has converged, as a share of the first step size.
const STEP_SHARE: f64 = 1e-12;

/// The best and the median objective of each past generation of a run, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    pub(super) best: Vec<f64>,
    pub(super) median: Vec<f64>,
}

impl History {
    /// Adds a generation's objectives, best first.
    pub(super) fn push(&mut self, objectives: &[f64]) {
        for (list, value) in [(&mut self.best, objectives[0]), (&mut self.median, objectives[objectives.len() / 2])] {
            list.push(value);
            let old = list.len().saturating_sub(HISTORY_MAX);
            list.drain(..old);
        }
    }
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A tenth of a deviation along an axis does not move the mean.
    NoEffectAxis,
    /// A fifth of a deviation does not move a coordinate of the mean.
    NoEffectCoordinate,
    /// The condition number of the covariance matrix is above 1e14, or the distribution has numbers that are not finite.
    Condition,
    /// The best objectives have long been the same.
    EqualValues,
    /// Neither the best nor the median objectives improve any more.
    Stagnation,
    /// The deviation has grown unreasonably large.
    Growth,
    /// The objectives of many generations differ by less than the tolerance.
    Tolerance,
    /// All deviations are very small.
    SmallSteps,
}

/// The values with which a run started.
pub(super) struct Run {
    /// The first step size.
    pub(super) sigma: f64,
    /// Differences of objectives below this do not matter: 1e-11 in pycma, 1e-12 in the tutorial.
    pub(super) tolerance: f64,
    /// No coordinate has converged while its deviation, as a share of the box's width, is above this, whatever the first step
    /// size. So a wide box does not make results less precise.
    pub(super) least: f64,
}

/// Whether the run is over after this generation. Its objectives are given best first.
pub(super) fn stop(
    strategy: &Strategy,
    distribution: &Distribution,
    history: &History,
    objectives: &[f64],
    run: &Run,
) -> Option<Stop> {
    let Distribution { sigma, mean, path, scales, axes, generation, directions, .. } = distribution;
    let n = strategy.n;
    let deviation = |index: usize| sigma * strategy.variance(distribution, index).sqrt();
    let (least, most) =
        scales.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), scale| (least.min(*scale), most.max(*scale)));
    let most = most * directions.stretches.iter().fold(1.0_f64, |most, stretch| most.max(1.0 + stretch)).sqrt();
    let finite = sigma.is_finite() && mean.iter().chain(path).all(|number| number.is_finite());
    if !finite || (most / least) * (most / least) > CONDITION_MAX {
        return Some(Stop::Condition);
    }
    if sigma * most > GROWTH_MAX * run.sigma {
        return Some(Stop::Growth);
    }
    let limit = (STEP_SHARE * run.sigma).min(run.least);
    if (0..n).all(|index| deviation(index) < limit && sigma * path[index].abs() < limit) {
        return Some(Stop::SmallSteps);
    }
    let axis = (generation % n as u64) as usize;
    let moved = |index: usize| {
        let along = match axes.get(axis * n + index).filter(|_| !strategy.has_diagonal()) {
            Some(entry) => *entry,
            None => f64::from(u8::from(index == axis)),
        };
        mean[index] != mean[index] + 0.1 * sigma * scales[axis] * along
    };
    if !(0..n).any(moved) {
        return Some(Stop::NoEffectAxis);
    }
    if (0..n).any(|index| mean[index] == mean[index] + 0.2 * distribution.deviation(strategy, index)) {
        return Some(Stop::NoEffectCoordinate);
    }
    flat(strategy, history, objectives, run.tolerance).or_else(|| stagnates(strategy, history, *generation))
}

/// Whether the objectives no longer differ.
fn flat(strategy: &Strategy, history: &History, objectives: &[f64], tolerance: f64) -> Option<Stop> {
    let count = (10 + (30 * strategy.n).div_ceil(strategy.lambda)).min(HISTORY_MAX);
    let recent = history.best.len().checked_sub(count).map(|from| &history.best[from..])?;
    // The difference of infinite objectives is not a number, so it says nothing.
    let range = |values: &mut dyn Iterator<Item = &f64>| {
        let (least, most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
        most - least
    };
    if range(&mut recent.iter()) == 0.0 {
        return Some(Stop::EqualValues);
    }
    (range(&mut recent.iter().chain(objectives)) < tolerance).then_some(Stop::Tolerance)
}

/// Whether the last 30 % of the best objectives are no better than the first 30 %, and the same holds for the medians. The
/// test looks at the last fifth of all generations, but at no fewer than 120 + 30 n / lambda.
fn stagnates(strategy: &Strategy, history: &History, generation: u64) -> Option<Stop> {
    let least = (120 + (30 * strategy.n).div_ceil(strategy.lambda)).min(HISTORY_MAX);
    let length = usize::try_from(generation / 5).unwrap_or(HISTORY_MAX).clamp(least, HISTORY_MAX);
    let not_better = |values: &[f64]| {
        let window = values.len().checked_sub(length).map(|from| &values[from..])?;
        let share = (3 * length).div_ceil(10);
        let (first, last) = (median(&window[..share]), median(&window[length - share..]));
        Some(last.is_finite() && last >= first)
    };
    (not_better(&history.best)? && not_better(&history.median)?).then_some(Stop::Stagnation)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::cma::covariance::Covariance;

    const RUN: Run = Run { sigma: 0.3, tolerance: 1e-11, least: 1.0 };

    type Change = fn(&mut Distribution);

    /// A strategy, and a distribution that has no reason to stop.
    fn good() -> (Strategy, Distribution) {
        let strategy = Strategy::new(3, 7, Covariance::Full, true);
        let mut distribution = strategy.start(vec![0.5; 3], 0.2);
        distribution.generation = 200;
        (strategy, distribution)
    }

    fn history(best: impl Fn(usize) -> f64) -> History {
        let mut history = History::default();
        (0..200).for_each(|generation| history.push(&[best(generation); 7]));
        history
    }

    fn falling() -> History {
        history(|generation| 1000.0 - generation as f64)
    }

    #[test]
    fn a_good_run_continues() {
        let (strategy, distribution) = good();
        assert_eq!(stop(&strategy, &distribution, &falling(), &[1.0, 2.0], &RUN), None);
        assert_eq!(stop(&strategy, &distribution, &History::default(), &[1.0, 1.0], &RUN), None);
        let nothing = history(|_| f64::INFINITY);
        assert_eq!(stop(&strategy, &distribution, &nothing, &[f64::INFINITY; 2], &RUN), None, "nothing feasible yet");
    }

    #[test]
    fn each_stop_condition_ends_a_run() {
        let changes: [(Stop, Change); 7] = [
            (Stop::Condition, |distribution| distribution.scales[1] = 1e8),
            (Stop::Condition, |distribution| distribution.mean[2] = f64::NAN),
            (Stop::Condition, |distribution| distribution.sigma = f64::INFINITY),
            (Stop::Growth, |distribution| distribution.sigma = 3001.0),
            (Stop::SmallSteps, |distribution| distribution.sigma = 1e-13),
            (Stop::NoEffectAxis, |distribution| distribution.mean = vec![1e16; 3]),
            (Stop::NoEffectCoordinate, |distribution| distribution.mean[0] = 1e16),
        ];
        for (reason, change) in changes {
            let (strategy, mut distribution) = good();
            change(&mut distribution);
            assert_eq!(stop(&strategy, &distribution, &falling(), &[1.0, 2.0], &RUN), Some(reason));
        }
        let (strategy, distribution) = good();
        let ended = |history: &History, objectives: &[f64]| stop(&strategy, &distribution, history, objectives, &RUN);
        assert_eq!(ended(&history(|_| 5.0), &[5.0, 6.0]), Some(Stop::EqualValues));
        let nearly = history(|generation| 5.0 - 1e-14 * generation as f64);
        assert_eq!(ended(&nearly, &[5.0, 5.0]), Some(Stop::Tolerance));
        assert_eq!(ended(&history(|generation| 5.0 + (generation % 7) as f64), &[5.0, 6.0]), Some(Stop::Stagnation));
        assert_eq!(ended(&history(|generation| 5.0 + generation as f64), &[5.0, 6.0]), Some(Stop::Stagnation));
    }

    #[test]
    fn old_generations_are_dropped() {
        let mut history = History::default();
        (0..HISTORY_MAX + 5).for_each(|generation| history.push(&[generation as f64, generation as f64 + 0.5]));
        assert_eq!((history.best.len(), history.best[0], history.median[0]), (HISTORY_MAX, 5.0, 5.5));
    }
}
