//! OpenAI-ES: an evolution strategy that estimates a gradient from random steps, for thousands of real genes.
//!
//! T. Salimans, J. Ho, X. Chen, S. Sidor and I. Sutskever, "Evolution Strategies as a Scalable Alternative to Reinforcement
//! Learning", arXiv:1703.03864, 2017: mirrored steps, ranks instead of objectives, and Adam for the steps of the mean (D. P.
//! Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015).

use std::{cmp::Ordering, ops::Range};

use evoxo_common::{
    math::pow,
    ratio::Ratio,
    rng::{normal_pair, unit},
    settings,
    settings::Values,
};
use prost::Message as _;

use super::{
    Algorithm, Given, Listed, Made, Most, Noise, Part, Search, Wrong,
    coordinates::Coordinates,
    strategies::{STRATEGY, keeps_bounds, sigma},
    within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::{self, OpenAiEsState},
};

settings! {
    /// OpenAI-ES.
    struct Own, names OwnName, schema OWN {
        /// How far the mean moves in a gene per batch, at most, approximately, as a share of the range.
        rate: Ratio = real(0, 1, "0.01"),
    }
}

/// The settings of OpenAI-ES. Lengths are shares of the width of the genes' bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Random steps of a batch; each is evaluated in both directions. 1 to 50,000.
    pub pairs: usize,
    /// The standard deviation of the random steps, above 0 and at most 1.
    pub sigma: f64,
    /// Adam's learning rate: approximately the farthest that the mean moves in a gene per batch, above 0 and at most 1.
    pub rate: f64,
    /// Whether the mean starts at a uniformly random point instead of in the middle.
    pub random: bool,
}

impl Default for Settings {
    /// 50 pairs; 0.02 and 0.01 as in the authors' program.
    fn default() -> Self {
        Self { pairs: 50, sigma: 0.02, rate: 0.01, random: true }
    }
}

/// Adam's constants: how much of the smoothed gradient and of the smoothed squares each step keeps, and the number that keeps
/// the divisor from 0.
const KEEP: (f64, f64) = (0.9, 0.999);
const SMALL: f64 = 1e-8;

impl Settings {
    /// Checks that the settings make sense for this genome.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self, genome: &Genome) -> Result<(), Wrong> {
        Coordinates::of_reals(genome)?;
        within("population", "the number of pairs", self.pairs, 1..=50_000)?;
        for (setting, name, value) in
            [("sigma", "deviation of the steps", self.sigma), ("rate", "learning rate", self.rate)]
        {
            if !(value > 0.0 && value <= 1.0) {
                let sentence = format!("the {name} is {value:?}, but it must be above 0 and at most 1");
                return Err(Wrong::new(setting, sentence));
            }
        }
        Ok(())
    }
}

/// OpenAI-ES.
#[derive(Clone, Debug)]
pub struct OpenAiEs {
    settings: Settings,
    search: Search,
    state: OpenAiEsState,
}

impl Listed for OpenAiEs {
    const NAME: &'static str = "openai-es";
    const DOC: &'static str = "OpenAI's evolution strategy, for thousands of real genes";
    const PARTS: &'static [Part] = &[STRATEGY, Part::of(&OWN)];
    const NOISE: Option<Noise> = Some(Noise { common: 2, draws: 1 });
    const MADE: Option<Made> = Some(Made {
        candidates: |given, search, steps, numbers| {
            Self::candidates(Self::settings(given).sigma, search, &steps.mean, numbers.iter().copied())
        },
        example: "sigma = 0.3\n",
    });

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let usual = Settings::default();
        Settings {
            pairs: given.population.unwrap_or(2 * usual.pairs).div_ceil(2),
            sigma: sigma(given.own, usual.sigma),
            rate: Own::of(given.own).rate.to_f64(),
            ..usual
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check(&given.genome)
    }

    fn most(given: &Given<'_>) -> Most {
        let candidates = 2 * Self::settings(given).pairs as u64;
        let batches = given.evaluations.div_ceil(candidates);
        Most { candidates, batches, kept: 0, state_bytes: 64 + 24 * given.genome.free_genes() as u64 }
    }

    fn keeps_bounds(own: &Values) -> bool {
        keeps_bounds(own)
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check(&search.genome)?;
        let coordinates = Coordinates::of_reals(&search.genome)?;
        let n = coordinates.count();
        let mut rng = search.stream.text("mean").rng();
        let share = || if settings.random { unit(&mut rng) } else { 0.5 };
        let mean = match search.start.first() {
            Some(candidate) => coordinates.of_candidate(candidate),
            None => coordinates.point(std::iter::repeat_with(share)),
        };
        let state = OpenAiEsState { births: 0, steps: 0, mean, first: vec![0.0; n], second: vec![0.0; n] };
        Ok(Self { settings: settings.clone(), search, state })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let state = OpenAiEsState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        search.check_births(state.births)?;
        let fresh = Self::start(settings, search)?;
        let numbers = [&state.mean, &state.first, &state.second];
        let complete = numbers.iter().all(|list| list.len() == fresh.state.mean.len());
        let finite = numbers.into_iter().flatten().all(|number| number.is_finite());
        if !complete || !finite || state.second.iter().any(|square| *square < 0.0) || state.steps > state.births {
            return Err("the state does not fit the settings".into());
        }
        Ok(Self { state, ..fresh })
    }
}

impl OpenAiEs {
    /// The candidates with these numbers of a search, around this mean.
    ///
    /// # Errors
    /// If a part of the genome is not real, or the mean does not have one number for each gene.
    pub fn candidates(
        sigma: f64,
        search: &Search,
        mean: &[f64],
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Candidate>, String> {
        let coordinates = Coordinates::of_reals(&search.genome)?;
        let n = coordinates.count();
        if mean.len() != n {
            return Err(format!("the mean has {} numbers for {n} genes", mean.len()));
        }
        let mut last = None;
        let candidate = |number: u64| {
            let known = last.take().filter(|(pair, _)| *pair == number / 2);
            let (_, step) = last.insert(known.unwrap_or_else(|| (number / 2, step(search, number / 2, n))));
            let sigma = if number.is_multiple_of(2) { sigma } else { -sigma };
            let point: Vec<f64> = mean.iter().zip(step.iter()).map(|(mean, step)| mean + sigma * step).collect();
            coordinates.candidate(&point)
        };
        Ok(numbers.into_iter().map(candidate).collect())
    }
}

/// The random step of a pair of candidates. Both use the stream of the first.
fn step(search: &Search, pair: u64, n: usize) -> Vec<f64> {
    let mut rng = search.birth(2 * pair);
    let mut step: Vec<f64> = (0..n.div_ceil(2)).flat_map(|_| normal_pair(&mut rng)).collect();
    step.truncate(n);
    step
}

/// The rank of each evaluation, from 0.5 for the best to -0.5 for the worst; equal ones share the mean of their ranks.
fn centred_ranks(evaluations: &[Evaluation]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..evaluations.len()).collect();
    order.sort_by(|one, two| evaluations[*one].compare(&evaluations[*two]));
    let mut ranks = vec![0.0; evaluations.len()];
    let equal = |one: &usize, two: &usize| evaluations[*one].compare(&evaluations[*two]) == Ordering::Equal;
    let (mut before, last) = (0, (evaluations.len() - 1).max(1) as f64);
    for group in order.chunk_by(equal) {
        let middle = before as f64 + (group.len() - 1) as f64 / 2.0;
        group.iter().for_each(|index| ranks[*index] = 0.5 - middle / last);
        before += group.len();
    }
    ranks
}

impl Algorithm for OpenAiEs {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.state.births)
    }

    fn whole(&self) -> usize {
        2 * self.settings.pairs
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let numbers = range.map(|index| self.state.births + index as u64);
        Self::candidates(self.settings.sigma, &self.search, &self.state.mean, numbers)
            .expect("genome and mean were checked at the beginning")
    }

    fn steps(&self) -> Option<messages::Steps> {
        let stream = self.search.stream;
        let mean = self.state.mean.clone();
        Some(messages::Steps { stream_high: stream.high(), stream_low: stream.low(), mean })
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        let size = self.size();
        assert_eq!(evaluations.len(), size, "there is one evaluation for each candidate");
        // The last batch of a search may be cut short. Nothing is learnt from it then.
        if size == 2 * self.settings.pairs {
            let ranks = centred_ranks(evaluations);
            let n = self.state.mean.len();
            let mut gradient = vec![0.0; n];
            for (pair, ranks) in (self.state.births / 2..).zip(ranks.chunks_exact(2)) {
                let weight = (ranks[0] - ranks[1]) / (size as f64 * self.settings.sigma);
                gradient.iter_mut().zip(step(&self.search, pair, n)).for_each(|(sum, step)| *sum += weight * step);
            }
            let OpenAiEsState { steps, mean, first, second, .. } = &mut self.state;
            *steps += 1;
            let begun = |keep: f64| 1.0 - pow(keep, *steps as f64);
            let (smoothed, squared) = (begun(KEEP.0), begun(KEEP.1));
            for (((mean, first), second), gradient) in mean.iter_mut().zip(first).zip(second).zip(gradient) {
                *first = KEEP.0 * *first + (1.0 - KEEP.0) * gradient;
                *second = KEEP.1 * *second + (1.0 - KEEP.1) * gradient * gradient;
                *mean += self.settings.rate * (*first / smoothed) / ((*second / squared).sqrt() + SMALL);
            }
        }
        self.state.births += size as u64;
    }

    fn mean(&self) -> Option<Candidate> {
        let coordinates = Coordinates::of_reals(&self.search.genome).expect("the genome was checked at the beginning");
        Some(coordinates.candidate(&self.state.mean))
    }

    fn births(&self) -> u64 {
        self.state.births
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{minimise, search},
        problem,
    };

    #[test]
    fn equal_candidates_share_a_rank() {
        let of = |objective: f64| Evaluation { objectives: vec![objective], ..Default::default() };
        assert_eq!(centred_ranks(&[of(3.0), of(1.0), of(2.0)]), [-0.5, 0.5, 0.0]);
        assert_eq!(centred_ranks(&[of(2.0), of(1.0), of(2.0), of(2.0), of(0.0)]), [-0.25, 0.25, -0.25, -0.25, 0.5]);
        assert_eq!(centred_ranks(&[of(7.0), of(7.0)]), [0.0, 0.0]);
    }

    /// The first step of Adam has the length of the learning rate in every gene, towards the optimum.
    #[test]
    fn the_first_step_leads_towards_the_optimum() {
        let problem = problem::find("sphere").unwrap();
        let settings = Settings { pairs: 500, ..Settings::default() };
        let mut strategy = OpenAiEs::start(&settings, search(problem, 5, 2000)).unwrap();
        let before = strategy.state.mean.clone();
        let evaluations = crate::algorithm::tests::evaluate(&strategy, problem);
        strategy.tell(&evaluations);
        for (before, after) in before.iter().zip(&strategy.state.mean) {
            assert!(((after - before).abs() - 0.01).abs() < 1e-6 && (after - before) * (0.0 - before) > 0.0);
        }
    }

    /// Candidates computed one by one as in the paper equal those requested in parts of a batch.
    #[test]
    fn candidates_are_the_mean_and_a_mirrored_step() {
        let problem = problem::find("sphere").unwrap();
        let settings = Settings { pairs: 4, sigma: 0.3, ..Settings::default() };
        let mut strategy = OpenAiEs::start(&settings, search(problem, 5, 20)).unwrap();
        let coordinates = Coordinates::of_reals(&strategy.search.genome).unwrap();
        for births in [0, 8, 16] {
            let reference = |index: usize| {
                let mut rng = strategy.search.birth(births + (index - index % 2) as u64);
                let sign = if index.is_multiple_of(2) { 1.0 } else { -1.0 };
                let steps: Vec<f64> = (0..3).flat_map(|_| normal_pair(&mut rng)).collect();
                let place = |(mean, step): (&f64, &f64)| mean + sign * 0.3 * step;
                coordinates.candidate(&strategy.state.mean.iter().zip(&steps).map(place).collect::<Vec<f64>>())
            };
            let size = strategy.size();
            let all: Vec<Candidate> = (0..size).map(reference).collect();
            assert_eq!(strategy.ask(0..size), all);
            assert_eq!([strategy.ask(0..1), strategy.ask(1..size)].concat(), all);
            strategy.tell(&crate::algorithm::tests::evaluate(&strategy, problem));
        }
        assert_eq!(strategy.size(), 0);
    }

    #[test]
    fn many_genes_are_learnt() {
        let problem = problem::find("sphere").unwrap();
        let mut strategy = OpenAiEs::start(&Settings::default(), search(problem, 100, 30_000)).unwrap();
        let best = minimise(&mut strategy, problem).objective(0);
        insta::assert_snapshot!(format!("{best:.3}"));
        // A random point is worth 833 on average; random steps of 0.02 around the optimum are worth 4.
        assert!(best < 6.0, "{best}");
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_reason() {
        let wrong = [
            Settings { pairs: 0, ..Settings::default() },
            Settings { sigma: 0.0, ..Settings::default() },
            Settings { rate: f64::NAN, ..Settings::default() },
        ];
        let genome = search(problem::find("sphere").unwrap(), 3, 100).genome;
        let sentence = |settings: &Settings| settings.check(&genome).unwrap_err().sentence;
        let mut sentences: Vec<String> = wrong.iter().map(sentence).collect();
        let bits = search(problem::find("onemax").unwrap(), 10, 100);
        sentences.push(OpenAiEs::start(&Settings::default(), bits).unwrap_err());
        insta::assert_snapshot!(sentences.join("\n"));
    }
}
