//! The targets that measure how soon a search came how close to the best value.

use evoxo_common::math::pow;

use super::{evaluation::Evaluation, settings::Settings};

/// The number of precisions that count as targets if the optimum is known: powers of ten from 100 to 1e-8, as in N. Hansen,
/// A. Auger, D. Brockhoff and T. Tušar, "Anytime Performance Assessment in Blackbox Optimization Benchmarking", IEEE
/// Transactions on Evolutionary Computation 26(6), 2022.
pub(super) const TARGETS: usize = 51;
const EXPONENTS: (f64, f64) = (2.0, -8.0);

/// The targets of a search.
pub(super) struct Targets {
    maximised: bool,
    /// The optimum if it is known, else the target of the settings.
    above: f64,
    /// The precisions, greatest first; a single 0 if the optimum is not known.
    precisions: Vec<f64>,
}

impl Targets {
    /// The targets for these settings. `None` with several objectives, under noise, and if neither the optimum nor a target
    /// is known.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let objectives = settings.objectives();
        let [(maximised, _)] = objectives.as_slice() else { return None };
        // When a search first sees a value of a noisy problem is a matter of luck.
        if settings.is_noisy() {
            return None;
        }
        let optimum = settings.built_in().and_then(|problem| (problem.optimum)(settings.genome().genes()));
        let (above, precisions) = match optimum {
            Some(optimum) => (optimum, precisions().collect()),
            None => (settings.target_number()?, vec![0.0]),
        };
        Some(Self { maximised: *maximised, above, precisions })
    }

    /// The number of targets.
    pub(super) fn count(&self) -> usize {
        self.precisions.len()
    }

    /// How many targets, from the first one on, a feasible candidate reaches with this objective, which has the problem's own
    /// sign.
    pub(super) fn reached(&self, best: f64) -> usize {
        let gap = if self.maximised { self.above - best } else { best - self.above };
        self.precisions.partition_point(|precision| gap <= *precision)
    }
}

/// The precisions, greatest first.
fn precisions() -> impl Iterator<Item = f64> {
    let (from, to) = EXPONENTS;
    (0..TARGETS).map(move |index| pow(10.0, from + (to - from) * index as f64 / (TARGETS - 1) as f64))
}

/// The values at which a search records a row of its history: the precisions. They are compared with the value itself and not
/// with its distance from an optimum. A function must have the same history wherever it is computed, and the optimum of a
/// program is not known.
pub(super) struct Marks(Vec<f64>);

impl Marks {
    /// The marks of a search; `None` with several objectives, and under noise, where a single value says little.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        (settings.objectives().len() == 1 && !settings.is_noisy()).then(|| Self(precisions().collect()))
    }

    /// How many marks, from the first one on, a feasible candidate has passed. Its objective is to be minimised.
    pub(super) fn passed(&self, candidate: &Evaluation) -> usize {
        let value = candidate.objective(0);
        if candidate.feasible() { self.0.partition_point(|mark| value <= *mark) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parse;

    fn targets(text: &str) -> Option<Targets> {
        let config = parse(&format!("experiment = \"evolve\"\n[settings]\n{text}\n"));
        Targets::of(&Settings::of(&config.arms[0].settings))
    }

    #[test]
    fn precisions_are_above_the_optimum() {
        let known = targets("problem = \"sphere\"").unwrap();
        assert_eq!([1e3, 100.0, 1.0, 1e-8, 0.0].map(|best| known.reached(best)), [0, 1, 11, 51, 51]);
        // Twelve ones are the optimum.
        let most = targets("problem = \"onemax\"\nlength = 12").unwrap();
        assert_eq!([11.0, 12.0].map(|best| most.reached(best)), [11, 51]);
        assert!(targets("problem = \"zdt1\"\nalgorithm = \"nsga2\"").is_none());
        assert!(targets("problem = \"noisy-sphere\"").is_none());
    }

    #[test]
    fn marks_are_passed_by_feasible_values() {
        let (marks, one) = (Marks(precisions().collect()), |objective| Evaluation {
            objectives: vec![objective],
            ..Default::default()
        });
        assert_eq!([1e3, 100.0, 1.0, 1e-8, 0.0, -1.0].map(|value| marks.passed(&one(value))), [0, 1, 11, 51, 51, 51]);
        assert_eq!(marks.passed(&Evaluation { constraints: vec![0.5], ..one(0.0) }), 0);
    }
}
