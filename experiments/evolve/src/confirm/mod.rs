//! The answer of a noisy search, and what it is worth.
//!
//! If evaluations are noisy, the best value that a search saw is mostly luck, and its candidate is often not the best one. So
//! a noisy search ends in two stages. First all *finalists* are evaluated again with the same fresh seeds, and the one with
//! the best mean is chosen; with several objectives, the first front of the means is chosen. The best of several means is
//! still a lucky one. So the chosen candidates are evaluated once more, with other fresh seeds. Only these last values are
//! reported, with an interval.
//!
//! The seeds depend on the replica's number and not on the arm, so replicas with the same number are paired.

use evoxo_common::{
    rng::Stream,
    stats::{Estimate, estimate},
};
use rand_core::Rng as _;

use super::{
    algorithm::Individual,
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages,
    pareto::fronts,
    task::NAME,
};

/// The seeds of both stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    choice: Stream,
    worth: Stream,
}

impl Seeds {
    /// The seeds for the replicas with this number, in every arm of a run with this seed.
    pub(super) fn of(seed: u64, replica: u32) -> Self {
        let stage = |name: &str| Stream::root(seed).text("fresh seeds").text(NAME).text(name).word(replica.into());
        Self { choice: stage("choice"), worth: stage("worth") }
    }
}

/// The two stages after a noisy search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Confirmation {
    /// Evaluations of each candidate in each stage, 2 or more.
    draws: usize,
    /// Whether the second stage has started. Then `candidates` are the chosen ones.
    chosen: bool,
    /// The candidates of the current stage.
    candidates: Vec<Candidate>,
    /// The evaluations of the current stage so far: all those of the first candidate, then all those of the second, and so
    /// on.
    evaluations: Vec<Evaluation>,
    /// The median of the search's last batch.
    pub(super) median: f64,
}

/// A candidate of the answer, with the results of its fresh seeds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Confirmed {
    pub(super) candidate: Candidate,
    /// The means over all evaluations that have a value; failed if none has.
    pub(super) mean: Evaluation,
    /// Half the width of the 95 % interval of the first objective's mean; the greatest number if it is unknown, as with fewer
    /// than two values.
    pub(super) half_width: f64,
    /// Evaluations with fresh seeds.
    pub(super) draws: usize,
    /// How many of these evaluations have no value.
    pub(super) failures: usize,
}

impl Confirmation {
    /// Starts the first stage.
    pub(super) fn start(finalists: Vec<Candidate>, draws: usize, median: f64) -> Self {
        Self { draws, chosen: false, candidates: finalists, evaluations: Vec::new(), median }
    }

    /// Restores the stages from a saved state.
    ///
    /// # Errors
    /// If the message does not fit a search with this genome and these counts of objectives, constraints and measures.
    pub(super) fn restore(
        message: &messages::Confirmation,
        genome: &Genome,
        counts: [usize; 3],
        draws: usize,
    ) -> Result<Self, String> {
        let candidates: Result<Vec<Candidate>, String> =
            message.candidates.iter().map(|candidate| genome.candidate(candidate)).collect();
        let evaluations: Vec<Evaluation> = message.evaluations.iter().map(Evaluation::stored).collect();
        let restored =
            Self { draws, chosen: message.chosen, candidates: candidates?, evaluations, median: message.median };
        let all = restored.candidates.len() * draws;
        // The first stage ends with its last evaluation, so no state has them all.
        let many =
            if restored.chosen { restored.evaluations.len() > all } else { restored.evaluations.len() >= all.max(1) };
        if many || !restored.evaluations.iter().all(|evaluation| evaluation.fits(counts)) {
            return Err("the evaluations of the state with fresh seeds do not fit its finalists".into());
        }
        Ok(restored)
    }

    /// The state as a message.
    pub(super) fn message(&self) -> messages::Confirmation {
        messages::Confirmation {
            chosen: self.chosen,
            candidates: self.candidates.iter().map(Candidate::message).collect(),
            evaluations: self.evaluations.iter().map(Evaluation::message).collect(),
            median: self.median,
        }
    }

    /// How many evaluations the current stage still needs; 0 at the end of the second.
    pub(super) fn left(&self) -> usize {
        self.candidates.len() * self.draws - self.evaluations.len()
    }

    /// The candidate and the seed of an evaluation that the current stage still needs, and a name of the evaluation for
    /// people.
    pub(super) fn item(&self, index: usize, seeds: &Seeds) -> (&Candidate, u64, String) {
        let number = self.evaluations.len() + index;
        let (place, draw) = (number / self.draws, number % self.draws);
        let (stream, stage) = if self.chosen { (seeds.worth, "confirm") } else { (seeds.choice, "choose") };
        (&self.candidates[place], stream.word(draw as u64).rng().next_u64(), format!("{stage}-{place}-{draw}"))
    }

    /// Takes the next evaluations of the current stage, in order.
    pub(super) fn take(&mut self, evaluations: &[Evaluation]) {
        assert!(evaluations.len() <= self.left(), "a stage has no more evaluations than it asked for");
        self.evaluations.extend_from_slice(evaluations);
        if self.left() == 0 && !self.chosen {
            self.candidates = choose(self.summaries());
            self.evaluations.clear();
            self.chosen = true;
        }
    }

    /// The answer, best first in the first objective. `None` before the end, and if no finalist has a value.
    pub(super) fn answer(&self) -> Option<Vec<Confirmed>> {
        let over = self.chosen && self.left() == 0 && !self.candidates.is_empty();
        over.then(|| self.summaries()).filter(|all| all.iter().any(|one| !one.mean.failed))
    }

    /// The candidates of the current stage with their means: those with fewer failures first, then the better ones.
    fn summaries(&self) -> Vec<Confirmed> {
        let of = |(candidate, own): (&Candidate, &[Evaluation])| Confirmed::of(candidate, own);
        let mut all: Vec<Confirmed> = self.candidates.iter().zip(self.evaluations.chunks(self.draws)).map(of).collect();
        all.sort_by(|one, two| one.failures.cmp(&two.failures).then_with(|| one.mean.compare(&two.mean)));
        all
    }
}

/// The best of these candidates, best first, each with different genes. Among equals the one that comes first here is
/// preferred.
pub(super) fn best<'a>(all: impl Iterator<Item = &'a Individual>, count: usize) -> Vec<Individual> {
    let mut all: Vec<&Individual> = all.filter(|individual| !individual.evaluation.failed).collect();
    all.sort_by(|one, two| one.evaluation.compare(&two.evaluation));
    let mut best: Vec<Individual> = Vec::new();
    for individual in all {
        if best.len() < count && best.iter().all(|other| other.candidate != individual.candidate) {
            best.push(individual.clone());
        }
    }
    best
}

/// Chooses from finalists that are sorted by worth: the first; with several objectives, the first front of those that failed
/// least often.
fn choose(finalists: Vec<Confirmed>) -> Vec<Candidate> {
    let Some(first) = finalists.first() else { return Vec::new() };
    if first.mean.objectives.len() <= 1 {
        return vec![first.candidate.clone()];
    }
    let least = first.failures;
    let sound: Vec<Confirmed> = finalists.into_iter().filter(|one| one.failures == least).collect();
    let fronts = fronts(&sound.iter().map(|one| one.mean.clone()).collect::<Vec<_>>());
    sound.into_iter().zip(fronts).filter(|(_, front)| *front == 0).map(|(one, _)| one.candidate).collect()
}

impl Confirmed {
    fn of(candidate: &Candidate, evaluations: &[Evaluation]) -> Self {
        let good: Vec<&Evaluation> = evaluations.iter().filter(|evaluation| !evaluation.failed).collect();
        let first: Vec<f64> = good.iter().map(|evaluation| evaluation.objective(0)).collect();
        let half_width = estimate(&first).and_then(|Estimate { half_width, .. }| half_width).unwrap_or(f64::MAX);
        Self {
            candidate: candidate.clone(),
            mean: Evaluation::mean_of_good(&good),
            half_width,
            draws: evaluations.len(),
            failures: evaluations.len() - good.len(),
        }
    }
}

#[cfg(test)]
mod tests;
