//! Experiment `nndtf`: networks 9-8-1 (or with another number of hidden nodes) learn from a teacher which cell of 3x3
//! tic-tac-toe to take (S. H. Ling and H. K. Lam, "Playing Tic-Tac-Toe Using Genetic Neural Network with Double Transfer
//! Functions", JILSA 3, 2011).
//!
//! A replica is one search for the genes of one network. An iteration evaluates only a few chromosomes, in a few
//! microseconds, so sending each evaluation to a worker would cost a hundred times the work. By default a task is therefore a
//! segment: some iterations of the whole search. Both ways of farming lead to the same state, because both use
//! [`search::Search`].

mod arm;
pub mod boards;
mod card;
mod curves;
pub mod duel;
mod headline;
pub mod judge;
pub mod measure;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
pub mod network;
mod picture;
pub mod reference;
mod report;
pub mod search;
pub mod settings;
mod speed;
pub mod task;
#[cfg(test)]
#[path = "../../src/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::{Card, CardKind},
    experiment::{Demand, Experiment, Identity, Kernel, Kind, Publication},
    row,
    settings::WithText,
    task::{Task, TaskKind, checked},
};

use boards::training_boards;
use judge::Judge;
use measure::{Measure, fitness};
use messages::{FitnessTask, SegmentTask, State};
use network::{Network, NetworkPlayer};
use search::{Candidates, Search};
use settings::{Algorithm, Births, Farming, Settings};
use task::{Fitness, NAME, Segment};

/// The kind.
pub const KIND: Kind = Kind::of::<Nndtf>();

#[cfg(test)]
fn registry() -> evoxo_common::experiment::Registry {
    evoxo_common::experiment::Registry::new(&[KIND])
}

row! {
    /// A row is one iteration, or stands for many.
    struct Row, primary best {
        /// iterations done (for cma-es: generations)
        iteration: u64,
        /// chromosomes evaluated
        evaluations: u64,
        /// fitness of the fittest chromosome on the training boards, 0 to 1
        best: f64,
        /// mean fitness of the population on the training boards, 0 to 1
        mean: f64,
    }
}

/// One replica.
struct Nndtf {
    network: Network,
    measure: Measure,
    /// The settings in the form in which tasks carry them.
    settings_text: String,
    /// The training boards.
    boards: Vec<u32>,
    /// The sum that corresponds to a fitness of 1.
    whole: u64,
    search: Search,
    /// Iterations per task; `None` if tasks are rounds of evaluations.
    segment: Option<u64>,
    /// The chromosomes of the next round, if tasks are rounds of evaluations.
    asked: Option<Candidates>,
    state: messages::State,
}

/// Evaluations per segment, about 50 ms of work.
const SEGMENT_EVALUATIONS: u64 = 50_000;

impl Nndtf {
    /// Prepares the chromosomes of the next round, if tasks are rounds of evaluations.
    fn prepare(&mut self) {
        let asks = self.segment.is_none() && !self.search.finished(&self.state);
        self.asked = asks.then(|| self.search.ask(&self.state));
    }

    /// The card of a chromosome whose sum on the training boards is `sum`.
    fn card(&self, all: &Judge, genes: &[f32], sum: u64) -> Option<Card> {
        let player = NetworkPlayer::new(self.network, genes.to_vec()).ok()?;
        let mut card = Card::new(player);
        card.about.insert("fitness".into(), fitness(sum, self.whole).into());
        card.about.insert("fitness_on_all_boards".into(), all.fitness(all.sum(genes)).into());
        Some(card)
    }

    fn row(&self, row: messages::Row) -> Row {
        Row {
            iteration: row.iteration,
            evaluations: self.search.evaluations(row.iteration),
            best: fitness(row.best, self.whole),
            mean: fitness(row.total, self.whole) / f64::from(self.search.population()),
        }
    }
}

/// Iterations per segment.
fn segment_of(settings: &Settings) -> u64 {
    let an_iteration = match (settings.algorithm, settings.births) {
        (Algorithm::Improved, _) => 7,
        (Algorithm::Traditional, Births::All) => settings.population,
        (Algorithm::Traditional, Births::Couple) => 2,
        (Algorithm::CmaEs, _) => settings.offspring,
    };
    match settings.segment {
        0 => (SEGMENT_EVALUATIONS / u64::from(an_iteration)).max(1),
        segment => segment,
    }
}

impl Experiment for Nndtf {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Fitness>(), TaskKind::of::<Segment>()];
    const SOURCES: &'static [Publication] = &[Publication {
        key: "ling2011",
        entry: "article",
        fields: &[
            ("author", "Ling, S. H. and Lam, H. K."),
            ("title", "Playing Tic-Tac-Toe Using Genetic Neural Network with Double Transfer Functions"),
            ("journal", "Journal of Intelligent Learning Systems and Applications"),
            ("volume", "3"),
            ("year", "2011"),
        ],
    }];
    const CARDS: &'static [CardKind] = &[card::CARD];
    const KERNELS: &'static [Kernel] = speed::KERNELS;
    const MAY_CHANGE: &'static [&'static str] = &[
        "weight",
        "acceptance",
        "crossover",
        "mutation",
        "shape",
        "elite",
        "weighs",
        "parents",
        "some",
        "mutants",
        "mutates",
    ];
    type Settings = WithText<Settings>;
    type State = State;
    type Row = Row;
    type Told = arm::Arm;

    fn rounds(WithText { settings, .. }: &WithText<Settings>) -> u64 {
        let iterations = settings.search_iterations();
        match (settings.farming, settings.algorithm) {
            (Farming::Segments, _) => iterations.div_ceil(segment_of(settings)),
            (Farming::Evaluations, Algorithm::Improved) => 1 + 2 * iterations,
            (Farming::Evaluations, Algorithm::Traditional) => 1 + iterations,
            (Farming::Evaluations, Algorithm::CmaEs) => iterations,
        }
    }

    fn demand(WithText { settings, text }: &WithText<Settings>) -> Demand {
        let genes = settings.architecture().genes() as u64;
        let (chromosomes, distribution) = match settings.algorithm {
            Algorithm::Improved | Algorithm::Traditional => (u64::from(settings.population), 0),
            Algorithm::CmaEs => (u64::from(settings.offspring), 1 + 2 * genes + genes * genes),
        };
        let state_bytes = chromosomes * (4 * genes + 10) + 8 * distribution + 64;
        let given_bytes = text.len() as u64 + 3 * settings.boards as u64 + 64;
        let rows = search::ROWS.min(settings.search_iterations());
        let (task_bytes, output_bytes) = match settings.farming {
            Farming::Segments => (state_bytes + given_bytes + 128, state_bytes + 40 * rows),
            // A round of the improved algorithm evaluates at most four chromosomes.
            Farming::Evaluations => (given_bytes + 4 * genes * chromosomes.max(4), 10 * chromosomes.max(4) + 16),
        };
        Demand { tasks: 1, task_bytes, output_bytes, state_bytes, rows: rows + 1, ..Demand::default() }
    }

    fn restore(identity: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let Identity { seed, replica, settings: WithText { settings, text }, stream, .. } = identity;
        let search = Search::new(&settings, stream);
        search.check(&state)?;
        let boards = training_boards(seed, replica, settings.source(), settings.boards);
        let mut nndtf = Self {
            network: settings.architecture(),
            measure: settings.measure(),
            settings_text: text,
            whole: settings.measure().whole(&boards),
            boards,
            search,
            segment: (settings.farming == Farming::Segments).then(|| segment_of(&settings)),
            asked: None,
            state,
        };
        nndtf.prepare();
        Ok(nndtf)
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        usize::from(!self.search.finished(&self.state))
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let (settings, boards) = (self.settings_text.clone(), self.boards.clone());
        let task = match (self.segment, &self.asked) {
            (Some(iterations), _) => {
                let stream = self.search.stream();
                Task::of::<Segment>(&SegmentTask {
                    settings,
                    boards,
                    stream_high: stream.high(),
                    stream_low: stream.low(),
                    state: Some(self.state.clone()),
                    iterations,
                })
            }
            (None, Some(asked)) => Task::of::<Fitness>(&FitnessTask { settings, boards, genes: asked.genes.clone() }),
            (None, None) => panic!("a search that is not finished asks for something"),
        };
        tasks.map(|_| task.clone()).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let [output] = outputs else { panic!("a round is one task") };
        let rows = match self.asked.take() {
            None => {
                let segment = checked::<Segment>(output);
                self.state = segment.state.expect("an output was checked to have a state");
                segment.rows
            }
            Some(asked) => {
                let sums = checked::<Fitness>(output).sums;
                self.search.tell(&mut self.state, asked, &sums).into_iter().collect()
            }
        };
        history.extend(rows.into_iter().map(|row| self.row(row)));
        self.prepare();
        Ok(())
    }

    fn champion(&self) -> Option<Card> {
        let (genes, sum) = search::champion(self.network.genes(), &self.state)?;
        self.card(&Judge::all(self.network, self.measure), genes, sum)
    }

    /// The population in the order of the search. The evolution strategy has no population: it keeps a distribution and the
    /// best chromosome so far.
    fn population(&self) -> Vec<Card> {
        if !self.state.distribution.is_empty() {
            return Vec::new();
        }
        let all = Judge::all(self.network, self.measure);
        let chromosomes = self.state.genes.chunks(self.network.genes()).zip(&self.state.sums);
        chromosomes.filter_map(|(genes, sum)| self.card(&all, genes, *sum)).collect()
    }
}
