//! The evaluation of a candidate, and which of two is better.

use std::cmp::Ordering;

use evoxo_common::math::mean;

use super::messages;

/// The values of a candidate. All objectives are to be minimised: the caller has turned the sign of those to be maximised.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// One number for each objective. A failed candidate may have none.
    pub objectives: Vec<f64>,
    /// One number for each constraint, which is satisfied if the number is at most 0.
    pub constraints: Vec<f64>,
    /// Behaviour measures, for quality diversity.
    pub measures: Vec<f64>,
    /// Whether the evaluation failed. A failed candidate is worse than any that has values.
    pub failed: bool,
}

/// Stands for a number that is missing or NaN. Nothing is greater.
const WORST: f64 = f64::INFINITY;

impl Evaluation {
    /// The constraint violation: the sum of the positive constraints, limited to the greatest finite number.
    #[must_use]
    pub fn violation(&self) -> f64 {
        let broken = self.constraints.iter().map(|broken| if *broken <= 0.0 { 0.0 } else { known(*broken) });
        // An empty `sum` would be -0.
        broken.fold(0.0, |sum, broken| sum + broken).min(f64::MAX)
    }

    /// Whether the candidate has values and satisfies all constraints.
    #[must_use]
    pub fn feasible(&self) -> bool {
        !self.failed && self.violation() == 0.0
    }

    /// Whether the evaluation has as many numbers as a problem with these counts of objectives, constraints and measures, all
    /// of them finite. A failed one must have none.
    #[must_use]
    pub fn fits(&self, counts: [usize; 3]) -> bool {
        let lists = [&self.objectives, &self.constraints, &self.measures];
        match self.failed {
            true => lists.iter().all(|list| list.is_empty()),
            false => lists.map(Vec::len) == counts && lists.into_iter().flatten().all(|number| number.is_finite()),
        }
    }

    /// An objective, to be minimised; infinity if it is missing or NaN.
    #[must_use]
    pub fn objective(&self, index: usize) -> f64 {
        self.objectives.get(index).copied().map_or(WORST, known)
    }

    /// The order by one objective, where less is better. It follows the rules of K. Deb, "An Efficient Constraint Handling
    /// Method for Genetic Algorithms", Computer Methods in Applied Mechanics and Engineering 186, 2000: feasible before
    /// infeasible, then less violation, then the lesser objective. A failed candidate is worse than any other, and equal to
    /// another failed one.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        if self.failed || other.failed {
            return self.failed.cmp(&other.failed);
        }
        let order = |one: f64, two: f64| one.partial_cmp(&two).unwrap_or(Ordering::Equal);
        let violation = order(self.violation(), other.violation());
        violation
            .then_with(|| if self.feasible() { order(self.objective(0), other.objective(0)) } else { Ordering::Equal })
    }

    /// Whether this evaluation is better than another, by [`Self::compare`].
    #[must_use]
    pub fn better(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Less
    }

    /// The means of evaluations of one candidate, over those that have values. Failed if at least half of them failed.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let good: Vec<&Self> = all.iter().filter(|one| !one.failed).collect();
        match 2 * good.len() <= all.len() {
            true => Self { failed: true, ..Self::default() },
            false => Self::mean_of_good(&good),
        }
    }

    /// The means of evaluations that have values. Failed if there are none.
    #[must_use]
    pub fn mean_of_good(good: &[&Self]) -> Self {
        let means = |list: fn(&Self) -> &Vec<f64>| {
            // Problems always give the same count; an evaluation with fewer numbers has no mean of the others.
            let count = good.iter().map(|one| list(one).len()).min().unwrap_or(0);
            let column = |index: usize| good.iter().map(|one| list(one)[index]).collect::<Vec<f64>>();
            (0..count).map(|index| mean(&column(index)).unwrap_or(0.0)).collect()
        };
        Self {
            objectives: means(|it| &it.objectives),
            constraints: means(|it| &it.constraints),
            measures: means(|it| &it.measures),
            failed: good.is_empty(),
        }
    }

    /// A problem's evaluation, with the sign of each objective turned that is to be maximised.
    ///
    /// # Panics
    /// If there are more objectives than `maximised` has entries.
    #[must_use]
    pub fn minimised(message: &messages::Evaluation, maximised: &[bool]) -> Self {
        let turn = |(index, objective): (usize, &f64)| if maximised[index] { -objective } else { *objective };
        Self { objectives: message.objectives.iter().enumerate().map(turn).collect(), ..Self::stored(message) }
    }

    /// The evaluation in a message in which all objectives are to be minimised; [`Self::message`] is the inverse.
    #[must_use]
    pub fn stored(message: &messages::Evaluation) -> Self {
        Self {
            objectives: message.objectives.clone(),
            constraints: message.constraints.clone(),
            measures: message.measures.clone(),
            failed: !message.failure.is_empty(),
        }
    }

    /// The evaluation as a message, with all objectives to be minimised.
    #[must_use]
    pub fn message(&self) -> messages::Evaluation {
        messages::Evaluation {
            objectives: self.objectives.clone(),
            constraints: self.constraints.clone(),
            measures: self.measures.clone(),
            failure: if self.failed { "failed".into() } else { String::new() },
        }
    }
}

/// The number, or [`WORST`] for NaN.
fn known(number: f64) -> f64 {
    if number.is_nan() { WORST } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(objective: f64, constraints: &[f64]) -> Evaluation {
        Evaluation { objectives: vec![objective], constraints: constraints.to_vec(), ..Default::default() }
    }

    /// In order from the best to the worst.
    #[test]
    fn evaluations_are_ordered_by_debs_rules() {
        let ranks = [
            evaluation(f64::NEG_INFINITY, &[]),
            evaluation(1.0, &[-1.0, 0.0]),
            evaluation(2.0, &[-5.0, -5.0]),
            evaluation(f64::NAN, &[]),
            evaluation(0.0, &[0.25, 0.25]),
            evaluation(-9.0, &[0.75, -3.0]),
            evaluation(-9.0, &[f64::NAN]),
            Evaluation { failed: true, ..evaluation(-99.0, &[]) },
        ];
        for (one, first) in ranks.iter().enumerate() {
            for (two, second) in ranks.iter().enumerate() {
                assert_eq!(first.compare(second), one.cmp(&two), "{first:?} {second:?}");
                assert_eq!(first.better(second), one < two);
            }
        }
        assert_eq!(ranks[4].violation(), 0.5);
        let failed = Evaluation { failed: true, ..Default::default() };
        assert_eq!(failed.compare(&ranks[7]), Ordering::Equal);
        assert_eq!(
            evaluation(5.0, &[0.5]).compare(&ranks[4]),
            Ordering::Equal,
            "objectives do not count before constraints are satisfied"
        );
    }

    #[test]
    fn signs_are_reversed_for_maximisation() {
        let said = messages::Evaluation { objectives: vec![3.0, 4.0], measures: vec![0.5], ..Default::default() };
        let evaluation = Evaluation::minimised(&said, &[true, false]);
        assert_eq!((evaluation.objectives.as_slice(), evaluation.failed), (&[-3.0, 4.0][..], false));
        assert_eq!(Evaluation::stored(&evaluation.message()), evaluation);
        let failed = messages::Evaluation { failure: "diverged".into(), ..Default::default() };
        assert!(Evaluation::minimised(&failed, &[true]).failed);
    }
}
