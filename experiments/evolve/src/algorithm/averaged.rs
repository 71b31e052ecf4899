//! An optimiser for noisy problems: candidates of a generation are compared under the same seeds and, with algorithms that
//! need it, evaluated as often as the noise requires.
//!
//! Equal seeds are common random numbers (P. Glasserman and D. D. Yao, "Some Guidelines and Guarantees for Common Random
//! Numbers", Management Science 38, 1992): noise that is the same for all candidates no longer affects which is better. How
//! often candidates are evaluated follows the idea of UH-CMA-ES (N. Hansen, A. S. P. Niederberger, L. Guzzella and P.
//! Koumoutsakos, "A Method for Handling Uncertainty in Evolutionary Optimization", IEEE Transactions on Evolutionary
//! Computation 13, 2009): more often while other seeds would rank the candidates differently, otherwise less often. They
//! measure this by ranks that change when a few candidates are evaluated again; here two halves of the seeds rank all
//! candidates, so that every evaluation counts for the search.

use std::ops::Range;

use evoxo_common::math::pow;
use prost::Message as _;

use super::{Algorithm, Descent, Individual, Most, Search};
use crate::{
    evaluation::Evaluation,
    genome::Candidate,
    messages::{AveragedState, Steps},
};

/// How an algorithm treats noise.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// This many consecutive candidates of a generation have the same seeds, 1 or more.
    pub common: usize,
    /// The most evaluations of a candidate in a generation, 1 or more.
    pub draws: usize,
}

/// The factor of the number of evaluations after a generation in which two halves of the seeds disagree, and the exponent of the
/// factor after one in which they agree: as in UH-CMA-ES.
const MORE: f64 = 1.5;
const LESS: f64 = 0.25;
/// The rank correlation between two halves of the seeds below which they disagree.
const AGREEMENT: f64 = 0.2;
/// The weight of the last generation in the average correlation, as in UH-CMA-ES.
const WEIGHT: f64 = 0.3;
/// If one evaluation is enough, every so many generations are evaluated twice to see whether it still is.
const CHECK: u64 = 4;

/// An optimiser whose candidates are evaluated several times.
pub struct Averaged {
    search: Search,
    inner: Box<dyn Algorithm>,
    noise: Noise,
    state: AveragedState,
}

/// What a search needs at most. `own` is what its algorithm alone needs.
pub(super) fn most(own: Most, noise: Noise, evaluations: u64) -> Most {
    let candidates = own.candidates.saturating_mul(noise.draws as u64).min(evaluations);
    Most { candidates, state_bytes: own.state_bytes + 64, ..own }
}

impl Averaged {
    /// Starts a search.
    #[must_use]
    pub fn start(inner: Box<dyn Algorithm>, search: Search, noise: Noise) -> Self {
        let state = AveragedState { draws: 1.0, ..Default::default() };
        Self { search, inner, noise, state }
    }

    /// Restores a search from its saved state; `restore` restores the algorithm from its part of it.
    ///
    /// # Errors
    /// If the bytes are not a state of this search; the sentence says why.
    pub fn restore(
        restore: impl FnOnce(&[u8]) -> Result<Box<dyn Algorithm>, String>,
        search: Search,
        noise: Noise,
        state: &[u8],
    ) -> Result<Self, String> {
        let state = AveragedState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        search.check_births(state.births)?;
        let inner = restore(&state.algorithm)?;
        let counts = inner.births() <= state.births && state.generations <= state.births;
        let numbers = (1.0..=noise.draws as f64).contains(&state.draws) && (-1.0..=1.0).contains(&state.agreement);
        match counts && numbers {
            true => Ok(Self { search, inner, noise, state: AveragedState { algorithm: Default::default(), ..state } }),
            false => Err("the state has counts that no search reaches".into()),
        }
    }

    /// How often each candidate of the next generation is evaluated.
    fn draws(&self) -> usize {
        match self.state.draws as usize {
            1 if self.noise.draws > 1 && self.state.generations.is_multiple_of(CHECK) => 2,
            draws => draws,
        }
    }
}

impl Algorithm for Averaged {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.state.births)
    }

    fn whole(&self) -> usize {
        self.inner.whole() * self.draws()
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        let draws = self.draws();
        let first = range.start / draws;
        let candidates = self.inner.ask(first..range.end.div_ceil(draws));
        range.map(|index| candidates[index / draws - first].clone()).collect()
    }

    fn descents(&self) -> Vec<Option<Descent>> {
        let (inner, draws) = (self.inner.descents(), self.draws());
        (0..self.size()).map(|index| inner[index / draws].clone()).collect()
    }

    fn number(&self, index: usize) -> u64 {
        self.inner.births() + (index / self.draws()) as u64
    }

    fn seed(&self, index: usize) -> Option<u64> {
        let draws = self.draws();
        Some((index / draws / self.noise.common * draws + index % draws) as u64)
    }

    fn steps(&self) -> Option<Steps> {
        self.inner.steps()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        self.state.births += evaluations.len() as u64;
        let draws = self.draws();
        // Nothing is learnt from a generation that the end of the search has cut off.
        if evaluations.len() < self.inner.whole() * draws {
            return;
        }
        let mean = |part: Range<usize>| -> Vec<Evaluation> {
            evaluations.chunks(draws).map(|own| Evaluation::mean(&own[part.clone()])).collect()
        };
        self.inner.tell(&mean(0..draws));
        if draws > 1
            && let Some(agreement) = agreement(&mean(0..draws / 2), &mean(draws / 2..draws))
        {
            let state = &mut self.state;
            state.agreement += WEIGHT * (agreement - state.agreement);
            let factor = if state.agreement < AGREEMENT { MORE } else { pow(MORE, -LESS) };
            state.draws = (state.draws * factor).clamp(1.0, self.noise.draws as f64);
        }
        self.state.generations += 1;
    }

    fn population(&self) -> &[Individual] {
        self.inner.population()
    }

    fn mean(&self) -> Option<Candidate> {
        self.inner.mean()
    }

    fn births(&self) -> u64 {
        self.state.births
    }

    fn save(&self) -> Vec<u8> {
        AveragedState { algorithm: self.inner.save().into(), ..self.state.clone() }.encode_to_vec()
    }
}

/// Spearman's rank correlation of two evaluations of the same candidates; `None` if one of them does not tell candidates apart.
fn agreement(one: &[Evaluation], two: &[Evaluation]) -> Option<f64> {
    let (one, two) = (ranks(one), ranks(two));
    let product = |one: &[f64], two: &[f64]| one.iter().zip(two).map(|(one, two)| one * two).sum::<f64>();
    let scale = (product(&one, &one) * product(&two, &two)).sqrt();
    (scale > 0.0).then(|| (product(&one, &two) / scale).clamp(-1.0, 1.0))
}

/// The rank of each evaluation, from the lowest for the best, with a sum of 0; equal evaluations share the mean of their ranks.
fn ranks(evaluations: &[Evaluation]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..evaluations.len()).collect();
    order.sort_by(|one, two| evaluations[*one].compare(&evaluations[*two]));
    let middle = (evaluations.len() as f64 - 1.0) / 2.0;
    let (mut ranks, mut place) = (vec![0.0; evaluations.len()], 0);
    for equal in order.chunk_by(|one, two| evaluations[*one].compare(&evaluations[*two]).is_eq()) {
        let rank = place as f64 + (equal.len() as f64 - 1.0) / 2.0 - middle;
        equal.iter().for_each(|index| ranks[*index] = rank);
        place += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use evoxo_common::rng::{Stream, normal_pair};
    use rand_core::Rng as _;

    use super::*;
    use crate::{
        algorithm::{Cma, CmaSettings, Listed as _, tests::search},
        genome::Genes,
        problem,
    };

    const NOISE: Noise = Noise { common: usize::MAX, draws: 30 };

    fn averaged(length: usize, evaluations: u64, noise: Noise) -> Averaged {
        let search = search(problem::find("sphere").unwrap(), length, evaluations);
        Averaged::start(Box::new(Cma::start(&CmaSettings::default(), search.clone()).unwrap()), search, noise)
    }

    /// Runs a search for the sphere with this noise, a function of the genes and the seed. Returns the greatest number of
    /// evaluations of a candidate and the value of the last mean.
    fn minimise(mut search: Averaged, noise: impl Fn(&[f64], u64) -> f64) -> (usize, f64) {
        let sphere = |genes: &[f64]| genes.iter().map(|gene| gene * gene).sum::<f64>();
        let genes = |candidate: &Candidate| match &candidate.parts[0] {
            Genes::Real(genes) => genes.clone(),
            other => unreachable!("{other:?}"),
        };
        let mut most = 0;
        while search.size() > 0 {
            let first = search.births();
            let evaluation = |(index, candidate): (usize, &Candidate)| {
                let seed = Stream::root(first).word(search.seed(index).unwrap()).rng().next_u64();
                let genes = genes(candidate);
                Evaluation { objectives: vec![sphere(&genes) + noise(&genes, seed)], ..Default::default() }
            };
            let candidates = search.ask(0..search.size());
            let evaluations: Vec<Evaluation> = candidates.iter().enumerate().map(evaluation).collect();
            most = most.max(search.draws());
            search.tell(&evaluations);
        }
        (most, sphere(&genes(&search.mean().unwrap())))
    }

    fn normal(seed: u64) -> f64 {
        normal_pair(&mut Stream::root(seed).rng())[0]
    }

    /// Noise that is the same for all candidates changes no rank, so it costs only the generations that check this.
    #[test]
    fn noise_of_the_seed_alone_does_no_harm() {
        let (most, value) = minimise(averaged(5, 4000, NOISE), |_, seed| 10.0 * normal(seed));
        assert!(most == 2 && value < 1e-6, "{most} {value}");
    }

    /// Noise of each candidate hides which is better, so candidates are evaluated more often, and the search ends nearer to the
    /// optimum.
    #[test]
    fn noise_of_each_candidate_is_averaged_out() {
        let own = |genes: &[f64], seed: u64| {
            let name = genes.iter().fold(Stream::root(seed), |stream, gene| stream.word(gene.to_bits()));
            3.0 * normal(name.rng().next_u64())
        };
        let (most, value) = minimise(averaged(5, 20_000, NOISE), own);
        let (once, other) = minimise(averaged(5, 20_000, Noise { draws: 1, ..NOISE }), own);
        assert!(most > 10 && once == 1 && value < other / 2.0, "{most} {once}: {value} {other}");
    }

    /// Candidates of a group have the same seeds, their evaluations follow each other, and numbers are those of the algorithm.
    #[test]
    fn groups_of_candidates_share_seeds() {
        let search = averaged(5, 4000, Noise { common: 2, draws: 30 });
        assert_eq!((search.draws(), search.inner.whole(), search.size()), (2, 8, 16));
        let seeds: Vec<u64> = (0..16).map(|index| search.seed(index).unwrap()).collect();
        assert_eq!(seeds, [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7]);
        let numbers: Vec<u64> = (0..16).map(|index| search.number(index)).collect();
        assert_eq!(numbers, (0..8).flat_map(|number| [number, number]).collect::<Vec<u64>>());
        let candidates = search.ask(0..16);
        assert!(candidates.chunks(2).all(|pair| pair[0] == pair[1]) && candidates[0] != candidates[2]);
        assert_eq!(search.ask(3..6), candidates[3..6]);
    }

    #[test]
    fn agreement_is_a_rank_correlation() {
        let evaluations = |values: &[f64]| -> Vec<Evaluation> {
            values.iter().map(|value| Evaluation { objectives: vec![*value], ..Default::default() }).collect()
        };
        let of = |one: &[f64], two: &[f64]| agreement(&evaluations(one), &evaluations(two));
        assert_eq!(of(&[1.0, 2.0, 30.0], &[5.0, 6.0, 7.0]), Some(1.0));
        assert_eq!(of(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        // Ranks 1.5, 1.5, 3, 4 and 2, 1, 3, 4.
        assert!((of(&[1.0, 1.0, 2.0, 3.0], &[2.0, 1.0, 3.0, 4.0]).unwrap() - 0.948_683_298).abs() < 1e-9);
        assert_eq!(of(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
    }
}
