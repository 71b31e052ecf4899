//! A search without generations that keeps a window of candidates busy: no evaluation waits for a slower one.
//!
//! Candidate k is made as soon as the results of candidates 0 to k - W are known, where W is the window. Results are used in
//! the order of the candidates' numbers. So the search is a function of its settings, whatever the order in which results
//! arrive; and while one evaluation takes long, W - 1 others go on. With W = 1 this is the steady-state algorithm (G.
//! Syswerda, "A Study of Reproduction in Generational and Steady-State Genetic Algorithms", FOGA 1991).

use std::{collections::VecDeque, ops::Range};

use prost::Message as _;

use super::{Algorithm, Descent, Given, Individual, Most, Search, individual, within};
use crate::{evaluation::Evaluation, genome::Candidate, messages::WindowState};

/// The largest window.
pub const WINDOW_MAX: usize = 1000;

/// An optimiser that makes candidates one by one, each from the results known at that time.
pub trait Steady: Algorithm {
    /// Makes the candidate with this number. If it has parents, `crossed` sees their places and the child before mutation; if
    /// the child is made again because it exists already, the last call counts.
    fn made(&self, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate;

    /// The candidate with this number.
    fn candidate(&self, number: u64) -> Candidate {
        self.made(number, &mut |_, _| ())
    }

    /// How the candidate with this number is made; `None` if it has no parents.
    fn descent(&self, number: u64) -> Option<Descent> {
        Descent::of(|crossed| self.made(number, crossed))
    }

    /// Takes an evaluated candidate; they come in the order of their numbers.
    fn take(&mut self, individual: Individual);
}

/// What a search with a window needs at most. `own` is what its algorithm alone needs.
pub(super) fn most(own: Most, given: &Given<'_>) -> Most {
    let state_bytes = own.state_bytes + individual::bytes_max(&given.genome, given.window, 0);
    Most { candidates: given.window as u64, batches: given.evaluations, state_bytes, ..own }
}

/// An optimiser with a window.
pub struct Windowed {
    search: Search,
    steady: Box<dyn Steady>,
    /// The number of results used so far.
    births: u64,
    /// The candidates whose results have not been used yet, in the order of their numbers, starting with number `births`. There
    /// are as many as the window is wide, even if the search ends before them, because a longer search has them.
    pending: VecDeque<Candidate>,
}

impl Windowed {
    /// Starts a search.
    ///
    /// # Errors
    /// If the window is out of range; the sentence says so.
    pub fn start(steady: Box<dyn Steady>, search: Search, window: usize) -> Result<Self, String> {
        within("window", "the window", window, 1..=WINDOW_MAX)?;
        let pending = (0..window as u64).map(|number| steady.candidate(number)).collect();
        Ok(Self { search, steady, births: 0, pending })
    }

    /// Restores a search from its saved state; `restore` restores the algorithm from its part of it.
    ///
    /// # Errors
    /// If the bytes are not a state of this search; the sentence says why.
    pub fn restore(
        restore: impl FnOnce(&[u8]) -> Result<Box<dyn Steady>, String>,
        search: Search,
        window: usize,
        state: &[u8],
    ) -> Result<Self, String> {
        let WindowState { births, algorithm, pending } =
            WindowState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        search.check_births(births)?;
        if pending.len() != window {
            return Err(format!("the state has {} candidates to be evaluated, not {window}", pending.len()));
        }
        let pending: Result<VecDeque<Candidate>, String> =
            pending.iter().map(|candidate| search.genome.candidate(candidate)).collect();
        let steady = restore(&algorithm)?;
        if steady.births() != births {
            return Err(format!("the state has {births} results, but its algorithm has {}", steady.births()));
        }
        Ok(Self { steady, pending: pending?, births, search })
    }
}

impl Algorithm for Windowed {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        self.pending.len()
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        self.pending.range(range).cloned().collect()
    }

    /// All candidates at the beginning, and later the last one, which takes the place of the one whose result came.
    fn newest(&self) -> Vec<(Candidate, Option<Descent>)> {
        let first = if self.births == 0 { 0 } else { self.pending.len() - 1 };
        let numbers = (self.births + first as u64..self.search.evaluations).zip(self.pending.range(first..));
        numbers.map(|(number, candidate)| (candidate.clone(), self.steady.descent(number))).collect()
    }

    fn has_barrier(&self) -> bool {
        false
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size().min(1), "there is one evaluation, that of the first candidate");
        let (Some(candidate), [evaluation]) = (self.pending.pop_front(), evaluations) else { return };
        let evaluation = evaluation.clone();
        self.steady.take(Individual { candidate, evaluation });
        self.births += 1;
        let next = self.births + self.pending.len() as u64;
        self.pending.push_back(self.steady.candidate(next));
    }

    fn population(&self) -> &[Individual] {
        self.steady.population()
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        let pending = self.pending.iter().map(Candidate::message).collect();
        WindowState { births: self.births, algorithm: self.steady.save().into(), pending }.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::{
            Ga, GaSettings, Listed as _, Nsga2, Nsga2Settings,
            tests::{minimise, search},
        },
        genome::Genes,
        pareto::hypervolume,
        problem,
    };

    /// Each candidate is made from the results of all but the last W - 1 candidates before it.
    #[test]
    fn a_candidate_knows_the_results_before_its_window() {
        /// An optimiser that records how many results each candidate was made from.
        #[derive(Default)]
        struct Counting(Vec<Individual>);

        impl Algorithm for Counting {
            fn size(&self) -> usize {
                0
            }

            fn whole(&self) -> usize {
                0
            }

            fn ask(&self, _: Range<usize>) -> Vec<Candidate> {
                Vec::new()
            }

            fn tell(&mut self, _: &[Evaluation]) {}

            fn population(&self) -> &[Individual] {
                &self.0
            }

            fn births(&self) -> u64 {
                self.0.len() as u64
            }

            fn save(&self) -> Vec<u8> {
                Vec::new()
            }
        }

        impl Steady for Counting {
            fn made(&self, number: u64, _: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
                Candidate { parts: vec![Genes::Integer(vec![number as i64, self.0.len() as i64])] }
            }

            fn take(&mut self, individual: Individual) {
                self.0.push(individual);
            }
        }

        let search = search(problem::find("sphere").unwrap(), 2, 9);
        let mut windowed = Windowed::start(Box::<Counting>::default(), search, 4).unwrap();
        let mut sizes = Vec::new();
        while windowed.size() > 0 {
            sizes.push(windowed.size());
            windowed.tell(&[Evaluation { objectives: vec![0.0], ..Evaluation::default() }]);
        }
        assert_eq!(sizes, [4, 4, 4, 4, 4, 4, 3, 2, 1]);
        let made = windowed.population().iter().map(|one| one.candidate.clone()).enumerate();
        for (number, candidate) in made {
            let known = number.saturating_sub(3) as i64;
            assert_eq!(candidate.parts, [Genes::Integer(vec![number as i64, known])]);
        }
    }

    /// A window of a tenth of the population costs hardly any additional evaluations.
    #[test]
    fn windows_search_almost_as_well_as_generations() {
        let best = |name: &str, length: usize, window: usize| {
            let problem = problem::find(name).unwrap();
            let search = search(problem, length, 20_000);
            let ga = Ga::start(&GaSettings::default(), search.clone()).unwrap();
            minimise(&mut Windowed::start(Box::new(ga), search, window).unwrap(), problem).objective(0)
        };
        let got = [("sphere", 10, 1), ("sphere", 10, 10), ("sphere", 10, 200), ("onemax", 100, 10), ("tsp", 30, 10)]
            .map(|(name, length, window)| best(name, length, window));
        let limits = [1e-3, 1e-3, 1e-1, -99.5, 7.5];
        assert!(got.iter().zip(&limits).all(|(got, limit)| got < limit), "{got:?}");
    }

    #[test]
    fn fronts_are_found_with_a_window() {
        let problem = problem::find("zdt1").unwrap();
        let search = search(problem, problem.length, 10_000);
        let nsga2 = Nsga2::start(&Nsga2Settings { population: 50, ..Nsga2Settings::default() }, search.clone());
        let mut windowed = Windowed::start(Box::new(nsga2.unwrap()), search, 8).unwrap();
        minimise(&mut windowed, problem);
        let points: Vec<&[f64]> = windowed.population().iter().map(|one| &one.evaluation.objectives[..]).collect();
        let volume = hypervolume(&points, problem.reference);
        assert!(points.len() == 50 && volume > 0.85, "{volume}");
    }

    #[test]
    fn an_invalid_window_is_rejected_with_a_reason() {
        let search = search(problem::find("sphere").unwrap(), 2, 9);
        let ga = || Box::new(Ga::start(&GaSettings::default(), search.clone()).unwrap());
        for window in [0, WINDOW_MAX + 1] {
            let why = Windowed::start(ga(), search.clone(), window).err().unwrap();
            assert_eq!(why, format!("the window is {window}, but it must be from 1 to 1000"));
        }
        let saved = Windowed::start(ga(), search.clone(), 4).unwrap().save();
        let other = Windowed::restore(|_| Ok(ga()), search.clone(), 5, &saved).err().unwrap();
        assert_eq!(other, "the state has 4 candidates to be evaluated, not 5");
    }
}
