//! Algorithm `one-plus-one` of `evolve`: the (1+1)-ES with the one-fifth rule (I. Rechenberg, "Evolutionsstrategie", 1973), for
//! real genes. It can be an arm beside evoxo's own algorithms.

use evoxo_common::{experiment::Registry, prelude::*, ratio::Ratio, rng::normal_pair};
use evoxo_experiments::evolve::{
    algorithm::{Algorithm, AlgorithmKind, Given, Individual, Listed, Most, Part, Search},
    evaluation::Evaluation,
    genome::{Candidate, Genes, Type},
    messages,
    wrong::Wrong,
};
use prost::Message as _;

/// The algorithm as a value.
pub const ONE_PLUS_ONE: AlgorithmKind = AlgorithmKind::of::<OnePlusOne>();

/// Everything that evoxo has, with this crate's algorithm and experiment.
#[must_use]
pub fn registry() -> Registry {
    evoxo_experiments::registry_with(&[ONE_PLUS_ONE]).with(&[crate::KIND])
}

/// By how much the step grows after a better child, and shrinks after another one: it stays as long as one of five is better.
const FACTORS: [f64; 2] = [1.5, 0.903_602_003_609_844_8];

settings! {
    /// The (1+1)-ES.
    struct Settings, names Name, schema SCHEMA {
        /// The standard deviation of the first step, as a share of the range of each gene.
        first_step: Ratio = addition real(0, 1, "0.3"),
    }
}

/// The state of a search, as a message.
#[derive(Clone, PartialEq, prost::Message)]
struct State {
    /// Evaluations so far.
    #[prost(uint64, tag = "1")]
    births: u64,
    /// The standard deviation of the next step.
    #[prost(double, tag = "2")]
    step: f64,
    /// The best candidate so far; none at the beginning.
    #[prost(message, optional, tag = "3")]
    parent: Option<messages::Individual>,
}

/// A search between two candidates.
struct OnePlusOne {
    search: Search,
    births: u64,
    step: f64,
    parent: Option<Individual>,
}

impl Listed for OnePlusOne {
    const NAME: &'static str = "one-plus-one";
    const DOC: &'static str = "the (1+1)-ES with the one-fifth rule, for real numbers";
    const PARTS: &'static [Part] = &[Part::of(&SCHEMA)];

    /// The first step.
    type Settings = f64;

    fn settings(given: &Given<'_>) -> f64 {
        Settings::of(given.own).first_step.to_f64()
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        if Self::settings(given) <= 0.0 {
            return Err(Wrong::new("first_step", "the first step must be greater than 0"));
        }
        match given.genome.parts.iter().find(|part| !matches!(part.of, Type::Real { .. })) {
            None => Ok(()),
            Some(part) => {
                Err(Wrong::new("algorithm", format!("one-plus-one needs real genes, unlike {:?}", part.name)))
            }
        }
    }

    fn most(given: &Given<'_>) -> Most {
        let state_bytes = 100 + given.genome.bytes_max() + 8 * given.numbers;
        Most { candidates: 1, batches: given.evaluations, kept: 1, state_bytes }
    }

    fn start(first_step: &f64, search: Search) -> Result<Self, String> {
        Ok(Self { search, births: 0, step: *first_step, parent: None })
    }

    fn restore(_: &f64, search: Search, state: &[u8]) -> Result<Self, String> {
        let State { births, step, parent } = State::decode(state).map_err(|error| error.to_string())?;
        search.check_births(births)?;
        fits(step > 0.0 && step.is_finite() && (births == 0) == parent.is_none())?;
        let parent = parent.map(|parent| Individual::read(&search.genome, &parent)).transpose()?;
        Ok(Self { search, births, step, parent })
    }
}

impl OnePlusOne {
    /// The next candidate: the first one, or a child.
    fn next(&self) -> Candidate {
        let Some(parent) = &self.parent else { return self.search.first(0) };
        let rng = &mut self.search.birth(self.births);
        let mut child = parent.candidate.clone();
        for (genes, part) in child.parts.iter_mut().zip(&self.search.genome.parts) {
            let (Genes::Real(genes), Type::Real { low, high }) = (genes, part.of) else { panic!("a part is not real") };
            for gene in genes {
                *gene = (*gene + self.step * (high - low) * normal_pair(rng)[0]).clamp(low, high);
            }
        }
        child
    }
}

impl Algorithm for OnePlusOne {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        1
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        range.map(|_| self.next()).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        let [evaluation] = evaluations else { panic!("there is one candidate") };
        let child = Individual { candidate: self.next(), evaluation: evaluation.clone() };
        let best = self.parent.take();
        let is_better = best.as_ref().is_none_or(|best| !best.evaluation.better(&child.evaluation));
        if best.is_some() {
            // Beyond these bounds a step would change nothing, or be no number.
            self.step = (self.step * FACTORS[usize::from(!is_better)]).clamp(1e-300, 1.0);
        }
        self.parent = if is_better { Some(child) } else { best };
        self.births += 1;
    }

    fn population(&self) -> &[Individual] {
        self.parent.as_slice()
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        let parent = self.parent.as_ref().map(Individual::message);
        State { births: self.births, step: self.step, parent }.encode_to_vec()
    }
}
