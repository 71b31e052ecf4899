//! One replica of `evolve` between two batches: an algorithm, the best candidate so far, and what the outside learns about
//! them.

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    candidates::{self, Quantity},
    card::{Card, CardKind},
    digest::Digest,
    experiment::{Asks, Births, Complete, Demand, Experiment, Identity, Lineage, Ranking, Reads, Saved},
    report::Sheet,
    rng::Stream,
    settings::WithText,
    stats::quantile,
    task::{Task, TaskKind, checked},
};
use prost::Message as _;
use rand_core::Rng as _;

use super::{
    algorithm::{Algorithm, Axis, Individual, Leaves},
    ask::Ask,
    baseline,
    card::{self, CARD, Found, sheet},
    confirm::{Confirmation, Confirmed, Seeds, best},
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    limits::{confirmed_front, demand, rounds_most},
    lineage::{self, LINEAGE},
    longer,
    messages::{self, AskTask, EvaluateTask, Item, SearchState, Shared},
    pareto::fronts,
    recall::Names,
    report,
    rows::{self, Archive, Moment, Row},
    settings::Settings,
    targets::Marks,
    task::{Evaluate, NAME, shared},
    wasm,
};

impl Settings {
    /// An objective with the problem's own sign.
    pub(super) fn said(&self, index: usize, minimised: f64) -> f64 {
        if self.objectives()[index].0 { -minimised } else { minimised }
    }
}

/// The best candidate of a state, with its evaluation.
fn best_of(
    state: &SearchState,
    genome: &Genome,
    counts: [usize; 3],
) -> Result<Option<(Candidate, Evaluation)>, String> {
    match (&state.best, &state.best_evaluation) {
        (Some(candidate), Some(evaluation)) => {
            let candidate = genome.candidate(candidate)?;
            let evaluation = Evaluation::stored(evaluation);
            if evaluation.failed || !evaluation.fits(counts) {
                return Err("the best candidate of the state has no evaluation".into());
            }
            Ok(Some((candidate, evaluation)))
        }
        (None, None) => Ok(None),
        _ => Err("the best candidate of the state has no evaluation".into()),
    }
}

/// One replica.
pub(super) struct Replica {
    settings: Settings,
    /// What the tasks of a batch share: an encoded [`Shared`].
    shared: Bytes,
    /// The names of evaluations, if they are worth recalling.
    names: Option<Names>,
    /// For each objective, whether it is to be maximised.
    maximised: Vec<bool>,
    arm: String,
    replica: u32,
    stream: Stream,
    algorithm: Box<dyn Algorithm>,
    state: SearchState,
    best: Option<(Candidate, Evaluation)>,
    /// If the problem is noisy: the best candidates so far, best first, each with different genes.
    finalists: Vec<Individual>,
    /// If the problem is noisy: the stages after the search.
    confirmation: Option<Confirmation>,
    /// The evaluations of the next batch that a shorter search has already made before its end cut the batch off.
    begun: Vec<Evaluation>,
    /// If the end of this search has cut off the last batch: the state before that batch, with the batch's evaluations.
    before: Option<SearchState>,
    seeds: Seeds,
    /// The grid of an archive, otherwise empty.
    axes: Vec<Axis>,
    /// The values that get rows of their own; only with one objective and without noise.
    marks: Option<Marks>,
    /// The new rows of this round.
    rows: Vec<Row>,
}

impl Replica {
    fn new(identity: Identity<'_, Self>, mut state: SearchState) -> Result<Self, String> {
        let stream = identity.stream;
        let WithText { mut settings, text } = identity.settings;
        // Only the tasks need the module.
        let module = wasm::decode(&std::mem::take(&mut settings.module))?;
        // A card identifies a module by the hash of its bytes, just as it identifies a program by its signature.
        if !module.is_empty() {
            settings.signature = Digest::of(&module).to_string();
        }
        let kind = settings.algorithm;
        let cut: Vec<Evaluation> = std::mem::take(&mut state.cut).iter().map(Evaluation::stored).collect();
        let resumed = std::mem::take(&mut state.resumed);
        let counts_of_some = state.failures.max(state.outside).max(state.reached);
        let used = state.evaluations.saturating_add(cut.len() as u64);
        if used > settings.evaluations || counts_of_some > state.evaluations {
            return Err("the state has more evaluations than the settings allow".into());
        }
        // There is a best candidate exactly if some candidate had a value.
        if state.best.is_some() != (state.failures < state.evaluations) {
            return Err("the best candidate of the state does not fit its failures".into());
        }
        let given = settings.given();
        let search = given.search(stream);
        let best = best_of(&state, &search.genome, settings.counts())?;
        let finalists = Individual::read_all(&search.genome, &state.finalists)?;
        let (counts, draws) = (settings.counts(), settings.confirmations);
        let restored = |message| Confirmation::restore(message, &search.genome, counts, draws);
        let confirmation = state.confirmation.as_ref().map(restored).transpose()?;
        let algorithm = kind.begin(&given, search, kind.saved(state.evaluations, &state.algorithm))?;
        if algorithm.births() != state.evaluations {
            return Err(format!(
                "the state has {} evaluations, but its algorithm has {}",
                state.evaluations,
                algorithm.births()
            ));
        }
        if !algorithm.population().iter().chain(&finalists).all(|individual| individual.evaluation.fits(counts)) {
            return Err("an evaluation of the state does not fit the problem".into());
        }
        let is_cut = !cut.is_empty();
        let fits = algorithm.has_barrier() && cut.len() < algorithm.whole() && cut.iter().all(|one| one.fits(counts));
        if is_cut && !(fits && resumed == (used < settings.evaluations)) || resumed && !is_cut {
            return Err("the last batch of the state does not fit its search".into());
        }
        let over = state.evaluations > 0 && algorithm.size() == 0 || is_cut && !resumed;
        if confirmation.is_some() != (settings.is_noisy() && over) || finalists.len() > settings.finalists {
            return Err("the answer in the state does not fit its search".into());
        }
        let common = shared(&text, module.into());
        let steps = algorithm.steps().filter(|_| confirmation.is_none());
        let mut replica = Self {
            shared: Shared { steps, ..common }.encode(),
            names: Names::of(&settings),
            maximised: settings.objectives().iter().map(|(maximised, _)| *maximised).collect(),
            arm: identity.arm.to_owned(),
            replica: identity.replica,
            stream,
            algorithm,
            state,
            best,
            finalists,
            confirmation: None,
            begun: Vec::new(),
            before: None,
            seeds: Seeds::of(identity.seed, identity.replica),
            axes: if settings.leaves() == Leaves::Archive { settings.axes() } else { Vec::new() },
            marks: Marks::of(&settings),
            rows: Vec::new(),
            settings,
        };
        if resumed {
            replica.begun = cut;
        } else if is_cut {
            replica.take(&cut);
            replica.rows.clear();
        }
        replica.confirmation = confirmation;
        Ok(replica)
    }

    /// The target, to be minimised.
    fn target(&self) -> Option<f64> {
        self.settings.target_number().map(|target| self.settings.said(0, target))
    }

    /// The answer of a noisy search that has ended.
    fn answer(&self) -> Option<Vec<Confirmed>> {
        self.confirmation.as_ref()?.answer()
    }

    /// The best candidate so far.
    fn best_found(&self) -> Option<Found> {
        if let Some(answer) = self.answer() {
            return answer.first().map(|first| Found::confirmed(&self.settings, first));
        }
        let (candidate, evaluation) = self.best.as_ref()?;
        Some(Found::new(&self.settings, candidate, evaluation))
    }

    /// What the search leaves: the first front, or the elites of an archive.
    fn shown(&self) -> Vec<Found> {
        let leaves = self.settings.leaves();
        if let Some(answer) = self.answer().filter(|_| leaves == Leaves::Front) {
            return answer
                .iter()
                .filter(|one| one.mean.feasible())
                .map(|one| Found::confirmed(&self.settings, one))
                .collect();
        }
        let kept = self.algorithm.population();
        let fronts = match leaves {
            Leaves::Front => self.fronts(),
            Leaves::Archive => vec![0; kept.len()],
            Leaves::Nothing => return Vec::new(),
        };
        let shown =
            kept.iter().zip(fronts).filter(|(individual, front)| *front == 0 && individual.evaluation.feasible());
        shown
            .map(|(Individual { candidate, evaluation }, _)| Found::new(&self.settings, candidate, evaluation))
            .collect()
    }

    /// The front of each candidate that the algorithm keeps.
    fn fronts(&self) -> Vec<usize> {
        let kept = self.algorithm.population().iter();
        fronts(&kept.map(|individual| individual.evaluation.clone()).collect::<Vec<_>>())
    }

    /// The task items of these candidates of the next round.
    fn items(&self, range: Range<usize>) -> Vec<Item> {
        let name = |rest: &str| format!("{}-{}-{rest}", self.arm, self.replica);
        if let Some(confirmation) = &self.confirmation {
            let fresh = |index: usize| {
                let (candidate, seed, rest) = confirmation.item(index, &self.seeds);
                Item { id: name(&rest), seed, candidate: Some(candidate.message()), number: 0 }
            };
            return range.map(fresh).collect();
        }
        let begun = self.begun.len();
        let range = range.start + begun..range.end + begun;
        let made = self.settings.algorithm.made.is_some();
        let candidates = if made { Vec::new() } else { self.algorithm.ask(range.clone()) };
        let mut candidates = candidates.iter().map(Candidate::message);
        let item = |index: usize| {
            let place = self.state.evaluations + index as u64;
            let stream = match self.algorithm.seed(index) {
                Some(seed) => self.stream.text("seed of a batch").word(self.state.evaluations).word(seed),
                None => self.stream.text("seed").word(place),
            };
            let (seed, number) = (stream.rng().next_u64(), self.algorithm.number(index));
            Item { id: name(&place.to_string()), seed, candidate: candidates.next(), number }
        };
        range.map(item).collect()
    }

    fn batch(&self) -> usize {
        match &self.confirmation {
            Some(confirmation) => confirmation.left(),
            None if self.state.reached > 0 => 0,
            None => self.algorithm.size() - self.begun.len(),
        }
    }

    /// Whether the next task asks a program for the next batch.
    fn is_asking(&self) -> bool {
        self.confirmation.is_none() && self.state.reached == 0 && self.algorithm.is_asking()
    }

    /// The task that asks a program for the next batch.
    fn question(&self) -> Task {
        let asked = AskTask {
            id: format!("{}-{}-{}", self.arm, self.replica, self.state.evaluations),
            timeout_ms: self.settings.timeout * 1000,
            ..self.algorithm.question()
        };
        Task::of::<Ask>(&asked).sharing(self.shared.clone())
    }

    /// Takes the evaluations of a whole batch of the search.
    fn take(&mut self, evaluations: &[Evaluation]) {
        // If the end of this search cuts off the batch, a longer search continues from the state before the batch.
        let is_cut = self.algorithm.has_barrier() && evaluations.len() < self.algorithm.whole();
        let cut = || evaluations.iter().map(Evaluation::message).collect();
        self.before = is_cut.then(|| SearchState { cut: cut(), ..self.save() });
        let noisy = self.settings.is_noisy();
        let good = if noisy { self.best_of_batch(evaluations) } else { Vec::new() };
        let mut moments = self.count(evaluations);
        // For rows within the batch, the algorithm still keeps what it kept before the batch.
        let before = moments.iter().any(|it| it.evaluations < self.state.evaluations).then(|| self.archive());
        self.algorithm.tell(evaluations);
        // With a window most evaluations have no row, and the median covers all that is kept, so it is computed only if
        // needed.
        let over = self.batch() == 0;
        let median = if over || !moments.is_empty() { self.median(evaluations) } else { 0.0 };
        if noisy {
            self.finalists = best(good.iter().chain(&self.finalists), self.settings.finalists);
            if over {
                let (candidates, draws) = (self.candidates(good), self.settings.confirmations);
                self.confirmation = Some(Confirmation::start(candidates, draws, median));
            }
        }
        if let Some(steps) = self.algorithm.steps() {
            let common = Shared::decode(self.shared.clone()).expect("the shared part was encoded here");
            // Finalists are sent with their genes.
            self.shared = Shared { steps: self.confirmation.is_none().then_some(steps), ..common }.encode();
        }
        if over && moments.last().is_none_or(|last| last.evaluations < self.state.evaluations) {
            moments.extend(self.moment());
        }
        self.rows.clear();
        if moments.is_empty() {
            return;
        }
        let now = self.archive();
        let row = |moment: &Moment| {
            let archive = before.as_ref().filter(|_| moment.evaluations < self.state.evaluations).unwrap_or(&now);
            moment.row(&self.settings, archive, median, None)
        };
        self.rows = moments.iter().map(row).collect();
    }

    /// Counts the evaluations of a batch and keeps the best candidate; under noise, the later one of equals. Returns the
    /// moments that get rows.
    fn count(&mut self, evaluations: &[Evaluation]) -> Vec<Moment> {
        let (noisy, target) = (self.settings.is_noisy(), self.target());
        let (mut best, mut moments) = (None, Vec::new());
        let mut passed = self.best.as_ref().map_or(0, |(_, best)| self.marks_of(best));
        for (index, evaluation) in evaluations.iter().enumerate() {
            self.state.evaluations += 1;
            self.state.failures += u64::from(evaluation.failed);
            self.state.outside += u64::from(!evaluation.failed && self.is_outside(&evaluation.measures));
            let known = self.best.as_ref().map(|(_, best)| best);
            let better = |known: &Evaluation| evaluation.better(known) || (noisy && !known.better(evaluation));
            if !evaluation.failed && known.is_none_or(better) {
                // Only the last of these candidates stays, so its genes are filled in at the end.
                let candidate =
                    self.best.take().map_or_else(|| Candidate { parts: Vec::new() }, |(candidate, _)| candidate);
                self.best = Some((candidate, evaluation.clone()));
                best = Some(index);
            }
            let more = if best == Some(index) { self.marks_of(evaluation) } else { 0 };
            let nearer = more > passed;
            passed = passed.max(more);
            let first = self.state.reached == 0 && !noisy;
            let reached = first && target.is_some_and(|target| rows::is_as_good(evaluation, target));
            if reached {
                self.state.reached = self.state.evaluations;
            }
            if reached || nearer || rows::is_due(self.state.evaluations) {
                moments.extend(self.moment());
            }
        }
        if let (Some(index), Some((candidate, _))) = (best, &mut self.best) {
            *candidate = self.algorithm.ask(index..index + 1).swap_remove(0);
        }
        moments
    }

    /// How many of the marks a candidate has passed.
    fn marks_of(&self, candidate: &Evaluation) -> usize {
        self.marks.as_ref().map_or(0, |marks| marks.passed(candidate))
    }

    /// The present moment, if there is a best candidate.
    fn moment(&self) -> Option<Moment> {
        let (_, best) = self.best.as_ref()?;
        let SearchState { evaluations, failures, outside, reached, .. } = self.state;
        Some(Moment { best: best.clone(), evaluations, failures, outside, reached })
    }

    /// Whether any measure lies outside the grid.
    fn is_outside(&self, measures: &[f64]) -> bool {
        self.axes.iter().zip(measures).any(|(axis, measure)| !axis.contains(*measure))
    }

    /// Takes evaluations of the stages after a noisy search.
    fn take_fresh(&mut self, evaluations: &[Evaluation]) {
        let Some(confirmation) = &mut self.confirmation else { return };
        confirmation.take(evaluations);
        let median = confirmation.median;
        let row =
            |answer: &Vec<Confirmed>| Some(self.moment()?.row(&self.settings, &self.archive(), median, answer.first()));
        self.rows = self.answer().as_ref().and_then(row).into_iter().collect();
    }

    /// The best candidates of a batch that the algorithm has not taken yet. Empty with several objectives, where fronts are
    /// kept instead.
    fn best_of_batch(&self, evaluations: &[Evaluation]) -> Vec<Individual> {
        if self.maximised.len() > 1 {
            return Vec::new();
        }
        let mut order: Vec<usize> = (0..evaluations.len()).rev().filter(|index| !evaluations[*index].failed).collect();
        order.sort_by(|one, two| evaluations[*one].compare(&evaluations[*two]));
        order.truncate(self.settings.finalists);
        let individual = |index: usize| Individual {
            candidate: self.algorithm.ask(index..index + 1).swap_remove(0),
            evaluation: evaluations[index].clone(),
        };
        order.into_iter().map(individual).collect()
    }

    /// The finalists at the end of a noisy search. `last` are the best of its last batch.
    fn candidates(&self, last: Vec<Individual>) -> Vec<Candidate> {
        let kept = self.algorithm.population();
        let late = match (self.maximised.len() > 1, kept.is_empty()) {
            (true, _) => {
                let front = kept.iter().zip(self.fronts()).filter(|(it, front)| *front == 0 && !it.evaluation.failed);
                front.map(|(individual, _)| individual.clone()).take(confirmed_front(&self.settings) as usize).collect()
            }
            (false, true) => last,
            (false, false) => best(kept.iter().rev(), self.settings.finalists),
        };
        let all = self.finalists.iter().chain(&late).map(|individual| individual.candidate.clone());
        let mut different: Vec<Candidate> = Vec::new();
        for candidate in all.chain(self.algorithm.mean()) {
            if !different.contains(&candidate) {
                different.push(candidate);
            }
        }
        different
    }

    /// The median of a batch: of its feasible candidates if it has any. Without generations, the population is used instead
    /// of the batch.
    fn median(&self, evaluations: &[Evaluation]) -> f64 {
        let kept = self.algorithm.population().iter().map(|individual| &individual.evaluation);
        let kept: Vec<&Evaluation> = kept.filter(|_| !self.algorithm.has_barrier()).collect();
        let shown = if kept.is_empty() { evaluations.iter().collect() } else { kept };
        let values = |which: fn(&Evaluation) -> bool| -> Vec<f64> {
            shown.iter().filter(|it| which(it)).map(|it| it.objective(0)).collect()
        };
        let (feasible, any) = (values(Evaluation::feasible), values(|it| !it.failed));
        let best = || self.best.as_ref().map_or(0.0, |(_, best)| best.objective(0));
        let median =
            [feasible, any].into_iter().find(|list| !list.is_empty()).map_or_else(best, |list| quantile(&list, 0.5));
        self.settings.said(0, median)
    }

    /// The candidates that the algorithm keeps now, or those of the answer, in numbers.
    fn archive(&self) -> Archive {
        let kept = self.algorithm.population();
        let answer = self.answer();
        let front: Vec<&Evaluation> = match &answer {
            Some(answer) => answer.iter().map(|one| &one.mean).collect(),
            None => kept.iter().map(|individual| &individual.evaluation).collect(),
        };
        Archive::of(&self.settings, &front, kept)
    }
}

impl Experiment for Replica {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Evaluate>(), TaskKind::of::<Ask>()];
    const CARDS: &'static [CardKind] = &[CARD];
    const IS_SOLUTION: Option<fn(&[f64]) -> bool> = Some(|row| row.get(Row::violation) == Some(&0.0));
    const RANKING: Option<Ranking> = Some(Ranking { compare: report::compare, column: report::deciding_column });
    const ASKS: Option<Asks> = Some(super::ASKS);
    const READS: Option<Reads> = Some(super::READS);
    const COMPLETE: Option<Complete> = Some(baseline::completed);
    const OWN_END: Option<&'static str> = Some("set target in [settings]");
    const LINEAGE: Option<Lineage> = Some(LINEAGE);
    const MAY_CHANGE: &'static [&'static str] = &[
        "replacement",
        "tournament",
        "migration",
        "migrants",
        "iso",
        "line",
        "rate",
        "learning_rate",
        "crossover",
        "mutations",
        "crossover_eta",
        "real_mutation",
        "mutation_eta",
        "deviation",
        "integer_mutation",
        "string_crossover",
        "order_crossover",
        "order_mutation",
        "order_rate",
        "elite",
        "sigma",
        "informed",
    ];
    type Settings = WithText<Settings>;
    type State = SearchState;
    type Row = Row;
    type Told = report::Arm;

    fn rounds(given: &WithText<Settings>) -> u64 {
        rounds_most(&given.settings)
    }

    fn depends_on_length(given: &WithText<Settings>) -> Option<&'static str> {
        given.settings.algorithm.shrinks.then_some("the population of this algorithm shrinks over all evaluations")
    }

    fn demand(given: &WithText<Settings>) -> Demand {
        demand(&given.settings, given.text.len() as u64 + 16)
    }

    fn restore(identity: Identity<'_, Self>, state: SearchState) -> Result<Self, String> {
        Self::new(identity, state)
    }

    fn tasks(&self) -> usize {
        if self.is_asking() { 1 } else { self.batch().div_ceil(self.settings.task_candidates()) }
    }

    fn has_barrier(&self) -> bool {
        self.algorithm.has_barrier()
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        if self.is_asking() {
            return tasks.map(|_| self.question()).collect();
        }
        let (slice, size) = (self.settings.task_candidates(), self.batch());
        let task = |task: usize| {
            let items = self.items((task * slice).min(size)..((task + 1) * slice).min(size));
            let timeout_ms = if self.settings.program().is_some() { self.settings.timeout * 1000 } else { 0 };
            let recallable = self.names.as_ref().map(|names| names.recallable(&items, &self.shared));
            let task = Task::of::<Evaluate>(&EvaluateTask { items, timeout_ms });
            task.sharing(self.shared.clone()).recalled_by(recallable)
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        if self.is_asking() {
            self.algorithm.answer(checked::<Ask>(&outputs[0]));
            return Ok(());
        }
        let minimised = |message: &messages::Evaluation| Evaluation::minimised(message, &self.maximised);
        let evaluations: Vec<Evaluation> = outputs
            .iter()
            .flat_map(|output| checked::<Evaluate>(output).evaluations)
            .map(|message| minimised(&message))
            .collect();
        if self.confirmation.is_some() {
            self.take_fresh(&evaluations);
        } else {
            let begun = std::mem::take(&mut self.begun);
            self.take(&[begun, evaluations].concat());
        }
        history.append(&mut self.rows);
        Ok(())
    }

    fn lengthen(identity: Identity<'_, Self>, saved: &mut Saved<SearchState>) -> Result<(), String> {
        let stream = identity.stream;
        longer::lengthen(&identity.settings.settings, stream, saved)
    }

    fn save(&self) -> SearchState {
        let confirmation = self.confirmation.as_ref().map(Confirmation::message);
        if let Some(before) = &self.before {
            return SearchState { confirmation, ..before.clone() };
        }
        SearchState {
            algorithm: match self.settings.algorithm.asks || self.state.evaluations > 0 {
                true => self.algorithm.save().into(),
                false => Bytes::new(),
            },
            best: self.best.as_ref().map(|(candidate, _)| candidate.message()),
            best_evaluation: self.best.as_ref().map(|(_, evaluation)| evaluation.message()),
            finalists: self.finalists.iter().map(Individual::message).collect(),
            confirmation,
            cut: self.begun.iter().map(Evaluation::message).collect(),
            resumed: !self.begun.is_empty(),
            ..self.state.clone()
        }
    }

    fn champion(&self) -> Option<Card> {
        self.best_found().map(Card::new)
    }

    fn population(&self) -> Vec<Card> {
        self.shown().into_iter().map(Card::new).collect()
    }

    fn sheet(&self) -> Option<Sheet> {
        let name = match self.settings.leaves() {
            Leaves::Front => "front",
            Leaves::Archive => "map",
            Leaves::Nothing => return None,
        };
        Some(sheet(name, &self.settings, &self.shown()))
    }

    fn quantities(given: &WithText<Settings>) -> Vec<Quantity> {
        card::quantities(&given.settings)
    }

    fn births(&self) -> Births {
        // The answer of a noisy search is one of its finalists.
        let answer = self.answer().and_then(|answer| Some(lineage::bits(&answer.first()?.candidate)));
        let champion = answer.or_else(|| Some(lineage::bits(&self.best.as_ref()?.0)));
        let over = self.confirmation.is_some() || self.batch() == 0;
        let generations = if over { Vec::new() } else { vec![lineage::births(&*self.algorithm)] };
        Births { generations, champion }
    }

    fn candidates(&self) -> Vec<candidates::Candidate> {
        let kept = self.algorithm.population().iter().filter(|kept| kept.evaluation.feasible());
        let found = |kept: &Individual| Found::new(&self.settings, &kept.candidate, &kept.evaluation);
        let others = match self.settings.leaves() {
            Leaves::Nothing => kept.map(found).collect(),
            Leaves::Front | Leaves::Archive => self.shown(),
        };
        let all: Vec<Found> = self.best_found().into_iter().chain(others).collect();
        card::candidates(&self.settings, &all)
    }
}
