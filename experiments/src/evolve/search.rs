//! One replica of `evolve` between two batches: an algorithm, the best candidate so far, and what is told of both.

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::Card,
    digest::Digest,
    experiment::{Demand, Experiment, Identity},
    report::Sheet,
    rng::Stream,
    task::{Task, checked},
};
use prost::Message as _;
use rand_core::Rng as _;

use super::{
    algorithm::{Algorithm, Individual},
    card::{Found, sheet},
    choose::{algorithm, most, search},
    evaluation::Evaluation,
    genome::Candidate,
    messages::{self, EvaluateTask, Item, SearchState, Shared},
    pareto::{fronts, hypervolume},
    settings::{AlgorithmName, Settings},
    task::{EVALUATE, Evaluate, NAME, shared},
    wasm,
};

/// The columns of a row: see [`super::KIND`].
pub(super) const COLUMNS: usize = 7;
/// The most rows of a replica; between two of them there are as many evaluations.
const ROWS_MAX: u64 = 500;

/// What a replica needs at most, with this many bytes of settings for its tasks to share.
pub(super) fn demand(settings: &Settings, shared_bytes: u64) -> Demand {
    let genome = settings.genome();
    let most = most(settings, &genome);
    let slice = (settings.task_candidates() as u64).min(most.candidates);
    // Candidates of openai-es are numbers, and their mean is shared.
    let (candidate, shared_mean) = match settings.algorithm {
        AlgorithmName::OpenAiEs => (0, 64 + 8 * genome.genes() as u64),
        _ => (genome.bytes_max(), 0),
    };
    let evaluation = settings.evaluation_bytes();
    Demand {
        tasks: most.candidates.div_ceil(slice),
        task_bytes: 64 + slice * (candidate + 128),
        shared_bytes: shared_bytes + shared_mean,
        output_bytes: 16 + slice * evaluation,
        state_bytes: 128 + most.state_bytes + genome.bytes_max() + evaluation,
        rows: ROWS_MAX + 1,
        // A program is stopped for its candidates together.
        task_ms: if settings.program().is_some() { settings.timeout.saturating_mul(1000 * slice) } else { 0 },
    }
}

impl Settings {
    /// An objective as the problem says it.
    pub(super) fn said(&self, index: usize, minimised: f64) -> f64 {
        if self.objectives()[index].0 { -minimised } else { minimised }
    }
}

/// One replica.
pub(super) struct Replica {
    settings: Settings,
    /// What the tasks of a batch share: a message [`Shared`].
    shared: Bytes,
    /// The signs of the objectives: whether they are to be maximised.
    maximised: Vec<bool>,
    arm: String,
    replica: u32,
    stream: Stream,
    algorithm: Box<dyn Algorithm>,
    state: SearchState,
    best: Option<(Candidate, Evaluation)>,
    /// The row of the last batch, if it has one.
    row: Option<Vec<f64>>,
}

impl Replica {
    fn new(identity: Identity<'_>, state: Option<&[u8]>) -> Result<Self, String> {
        let mut settings = Settings::of(identity.settings);
        // Tasks have it; nothing else here needs it.
        let module = wasm::decode(&std::mem::take(&mut settings.module))?;
        // Cards name a module by its bytes, as they name a program by its signature.
        if !module.is_empty() {
            settings.signature = Digest::of(&module).to_string();
        }
        let stream = Stream::root(identity.seed).text(NAME).text(identity.arm).word(identity.replica.into());
        let state = match state {
            None => SearchState::default(),
            Some(state) => SearchState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?,
        };
        let begun = state.evaluations > 0;
        if state.evaluations > settings.evaluations || state.failures > state.evaluations {
            return Err("the state has more evaluations than the settings".into());
        }
        // The best is one of those that have a value.
        if state.best.is_some() != (state.failures < state.evaluations) {
            return Err("the best candidate of the state does not fit its failures".into());
        }
        let search = search(&settings, stream);
        let best = match (&state.best, &state.best_evaluation) {
            (Some(candidate), Some(evaluation)) => {
                let candidate = search.genome.candidate(candidate)?;
                let evaluation = Evaluation::stored(evaluation);
                if evaluation.failed || !evaluation.fits(settings.counts()) {
                    return Err("the best candidate of the state has no evaluation".into());
                }
                Some((candidate, evaluation))
            }
            (None, None) => None,
            _ => return Err("the best candidate of the state has no evaluation".into()),
        };
        let algorithm = algorithm(&settings, search, begun.then_some(&state.algorithm[..]))?;
        if algorithm.births() != state.evaluations {
            return Err(format!(
                "the state has {} evaluations, but its algorithm {}",
                state.evaluations,
                algorithm.births()
            ));
        }
        if !algorithm.population().iter().all(|individual| individual.evaluation.fits(settings.counts())) {
            return Err("an evaluation of the state does not fit the problem".into());
        }
        let common = shared(&identity.settings.to_text(), module.into());
        Ok(Self {
            shared: Shared { steps: algorithm.steps(), ..common }.encode(),
            maximised: settings.objectives().iter().map(|(maximised, _)| *maximised).collect(),
            arm: identity.arm.to_owned(),
            replica: identity.replica,
            stream,
            algorithm,
            state,
            best,
            row: None,
            settings,
        })
    }

    /// A replica before its first batch.
    ///
    /// # Panics
    /// If the settings make no sense; they were checked when they were read.
    pub(super) fn start(identity: Identity<'_>) -> Self {
        Self::new(identity, None).expect("settings are checked when they are read")
    }

    /// A replica from its saved state.
    ///
    /// # Errors
    /// A sentence, if the bytes are no state that these settings can lead to.
    pub(super) fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        Self::new(identity, Some(state))
    }

    /// Whether the best is as good as the target.
    fn has_reached_target(&self) -> bool {
        let target = self.settings.target_number().map(|target| self.settings.said(0, target));
        match (&self.best, target) {
            (Some((_, best)), Some(target)) => best.feasible() && best.objective(0) <= target,
            _ => false,
        }
    }

    /// The hypervolume of what the algorithm keeps; 0 without a reference point.
    fn hypervolume(&self) -> f64 {
        let Some(reference) = self.settings.reference_point() else { return 0.0 };
        let kept = self.algorithm.population().iter().map(|individual| &individual.evaluation);
        let points: Vec<&[f64]> = kept.filter(|it| it.feasible()).map(|it| it.objectives.as_slice()).collect();
        hypervolume(&points, &reference)
    }

    /// The first front of several objectives, or the elites of every kind.
    fn shown(&self) -> Vec<Found> {
        let kept = self.algorithm.population();
        let evaluations: Vec<Evaluation> = kept.iter().map(|individual| individual.evaluation.clone()).collect();
        let fronts = match self.settings.algorithm {
            AlgorithmName::Nsga2 => fronts(&evaluations),
            AlgorithmName::MapElites => vec![0; kept.len()],
            _ => return Vec::new(),
        };
        let shown =
            kept.iter().zip(fronts).filter(|(individual, front)| *front == 0 && individual.evaluation.feasible());
        shown
            .map(|(Individual { candidate, evaluation }, _)| Found::new(&self.settings, candidate, evaluation))
            .collect()
    }

    fn batch(&self) -> usize {
        if self.has_reached_target() { 0 } else { self.algorithm.size() }
    }

    /// Takes the evaluations of a whole batch.
    fn take(&mut self, evaluations: &[Evaluation]) {
        let mut best = None;
        for (index, evaluation) in evaluations.iter().enumerate() {
            self.state.failures += u64::from(evaluation.failed);
            let known = best.map(|index: usize| &evaluations[index]).or(self.best.as_ref().map(|(_, best)| best));
            if !evaluation.failed && known.is_none_or(|known| evaluation.better(known)) {
                best = Some(index);
            }
        }
        if let Some(index) = best {
            let candidate = self.algorithm.ask(index..index + 1).swap_remove(0);
            self.best = Some((candidate, evaluations[index].clone()));
        }
        let before = self.state.evaluations;
        self.state.evaluations += evaluations.len() as u64;
        self.algorithm.tell(evaluations);
        if let Some(steps) = self.algorithm.steps() {
            let common = Shared::decode(self.shared.clone()).expect("it was encoded here");
            self.shared = Shared { steps: Some(steps), ..common }.encode();
        }
        let interval = self.settings.evaluations.div_ceil(ROWS_MAX);
        let due = before / interval != self.state.evaluations / interval || self.batch() == 0;
        self.row = self.best.as_ref().filter(|_| due).map(|(_, best)| {
            // Without generations the population takes the place of a batch.
            let kept = self.algorithm.population().iter().map(|individual| &individual.evaluation);
            let kept: Vec<&Evaluation> = kept.filter(|_| !self.algorithm.has_barrier()).collect();
            let shown = if kept.is_empty() { evaluations.iter().collect() } else { kept };
            let mut good: Vec<f64> = shown.iter().filter(|it| !it.failed).map(|it| it.objective(0)).collect();
            good.sort_by(f64::total_cmp);
            let median = good.get(good.len() / 2).copied().unwrap_or_else(|| best.objective(0));
            let said = |minimised| self.settings.said(0, minimised);
            let (evaluations, failures) = (self.state.evaluations as f64, self.state.failures as f64);
            let (hypervolume, kept) = (self.hypervolume(), self.algorithm.population().len() as f64);
            vec![evaluations, said(best.objective(0)), said(median), best.violation(), failures, hypervolume, kept]
        });
    }
}

impl Experiment for Replica {
    fn tasks(&self) -> usize {
        self.batch().div_ceil(self.settings.task_candidates())
    }

    fn has_barrier(&self) -> bool {
        self.algorithm.has_barrier()
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let (slice, size) = (self.settings.task_candidates(), self.batch());
        let made = self.settings.algorithm == AlgorithmName::OpenAiEs;
        let task = |task: usize| {
            let range = (task * slice).min(size)..((task + 1) * slice).min(size);
            let candidates = if made { Vec::new() } else { self.algorithm.ask(range.clone()) };
            let mut candidates = candidates.iter().map(Candidate::message);
            let item = |index: usize| {
                let number = self.state.evaluations + index as u64;
                Item {
                    id: format!("{}-{}-{number}", self.arm, self.replica),
                    seed: self.stream.text("seed").word(number).rng().next_u64(),
                    candidate: candidates.next(),
                    number,
                }
            };
            let items = range.map(item).collect();
            let timeout_ms = if self.settings.program().is_some() { self.settings.timeout * 1000 } else { 0 };
            EVALUATE.task::<Evaluate>(&EvaluateTask { items, timeout_ms }).sharing(self.shared.clone())
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        let minimised = |message: &messages::Evaluation| Evaluation::minimised(message, &self.maximised);
        let evaluations: Vec<Evaluation> = outputs
            .iter()
            .flat_map(|output| checked::<Evaluate>(output).evaluations)
            .map(|message| minimised(&message))
            .collect();
        self.take(&evaluations);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let state = SearchState {
            algorithm: if self.state.evaluations > 0 { self.algorithm.save().into() } else { Bytes::new() },
            best: self.best.as_ref().map(|(candidate, _)| candidate.message()),
            best_evaluation: self.best.as_ref().map(|(_, evaluation)| evaluation.message()),
            ..self.state.clone()
        };
        state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        self.row.clone().into_iter().collect()
    }

    fn champion(&self) -> Option<Card> {
        let (candidate, evaluation) = self.best.as_ref()?;
        Some(Card::new(Found::new(&self.settings, candidate, evaluation)))
    }

    fn population(&self) -> Vec<Card> {
        self.shown().into_iter().map(Card::new).collect()
    }

    fn sheet(&self) -> Option<Sheet> {
        let name = match self.settings.algorithm {
            AlgorithmName::Nsga2 => "front",
            AlgorithmName::MapElites => "map",
            _ => return None,
        };
        Some(sheet(name, &self.settings, &self.shown()))
    }
}
