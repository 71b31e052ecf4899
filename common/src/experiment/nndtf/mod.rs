//! Experiment `nndtf`: networks 9-8-1 that learn from a teacher which cell of 3x3 tic-tac-toe to take (S. H. Ling and H. K.
//! Lam, "Playing Tic-Tac-Toe Using Genetic Neural Network with Double Transfer Functions", JILSA 3, 2011).
//!
//! One replica is one search for the genes of one network. An iteration judges so few chromosomes, in a few microseconds,
//! that farming each out would cost a hundred times its work: by default a task is a segment, which moves the whole search
//! on. Both ways come to the same state, since both go through [`search::Search`].

mod arm;
pub mod duel;
pub mod finale;
pub mod judge;
pub mod network;
pub mod plain;
pub mod search;
pub mod settings;
pub mod task;
pub mod teacher;

use evoxo_proto::v1::{
    NndtfAdaptation, NndtfFitnessTask, NndtfImproved, NndtfJudge, NndtfKind, NndtfRow, NndtfSearch, NndtfSegmentTask,
    NndtfState, NndtfTraditional, Output, Task, nndtf_search::Algorithm, output, task::Work,
};
use prost::Message as _;

use super::{Column, Experiment, Identity};
use crate::{
    card::{Card, Player},
    config::Values,
    rng::{Stream, shuffle},
};

use judge::Judge;
use network::{Coupling, Kind, Network, NetworkPlayer, Numbering};
use search::{Asked, Search};
use teacher::BOARDS;

/// See [`super::Kind::columns`].
pub const COLUMNS: &[Column] = &[
    Column { name: "iteration", doc: "iterations done (of cma-es: generations)" },
    Column { name: "evaluations", doc: "chromosomes judged" },
    Column { name: "best", doc: "fitness of the fittest chromosome on the training boards, 0 to 1" },
    Column { name: "mean", doc: "mean fitness of the population on the training boards, 0 to 1" },
];

/// One replica.
pub struct Nndtf {
    network: Network,
    /// The network and the training boards, as they travel.
    judge: NndtfJudge,
    /// The search, as it travels.
    messages: NndtfSearch,
    search: Search,
    /// Iterations of a task; `None` if tasks are rounds of evaluations.
    segment: Option<u64>,
    /// What the coming round asks, if tasks are rounds of evaluations.
    asked: Option<Asked>,
    state: NndtfState,
    rows: Vec<Vec<f64>>,
}

/// The work of a segment, in evaluations: some fifty milliseconds.
const SEGMENT_EVALUATIONS: u64 = 50_000;

/// The network that these settings ask for.
#[must_use]
pub fn network_of(settings: &Values) -> Network {
    let kind = if settings.choice("network") == "double" { Kind::Double } else { Kind::Traditional };
    let coupled = kind == Kind::Double && settings.choice("coupling") == "final";
    let sweeps = if coupled { settings.integer("sweeps") as u32 } else { 1 };
    let left = settings.choice("numbering") == "left-to-right";
    let numbering = if left { Numbering::LeftToRight } else { Numbering::RightToLeft };
    Network { kind, coupling: Coupling { sweeps }, numbering }
}

/// The iterations of these settings' search.
#[must_use]
pub fn iterations_of(settings: &Values) -> u64 {
    match settings.choice("algorithm") {
        "cma-es" => settings.integer("evaluations") / settings.integer("offspring"),
        _ => settings.integer("iterations"),
    }
}

/// The search that these settings ask for.
#[must_use]
pub fn search_of(settings: &Values, stream: Stream) -> NndtfSearch {
    let decimal = |name: &str| settings.decimal(name).to_f64();
    let population = settings.integer("population") as u32;
    let algorithm = match settings.choice("algorithm") {
        "improved" => Algorithm::Improved(NndtfImproved {
            population,
            weight: decimal("weight") as f32,
            acceptance: decimal("acceptance"),
        }),
        "traditional" => Algorithm::Traditional(NndtfTraditional {
            population,
            crossover: decimal("crossover"),
            mutation: decimal("mutation"),
            shape: decimal("shape"),
            keeps_best: settings.choice("elite") == "unless-surpassed",
        }),
        _ => Algorithm::Adaptation(NndtfAdaptation {
            offspring: settings.integer("offspring") as u32,
            sigma: decimal("sigma"),
        }),
    };
    let (stream_high, stream_low) = (stream.high(), stream.low());
    NndtfSearch { algorithm: Some(algorithm), iterations: iterations_of(settings), stream_high, stream_low }
}

/// The training boards of a replica, which all arms share: `count` different ones, each choice equally likely, in the order
/// of boards.
#[must_use]
pub fn training_boards(seed: u64, replica: u32, count: usize) -> Vec<u32> {
    let mut rng = shared(seed, replica).text("training boards").rng();
    let mut all: Vec<u32> = (0..BOARDS as u32).collect();
    shuffle(&mut rng, &mut all);
    all.truncate(count);
    all.sort_unstable();
    all
}

/// The stream of what a replica's arms have in common.
fn shared(seed: u64, replica: u32) -> Stream {
    Stream::root(seed).text("nndtf").text("shared").word(u64::from(replica))
}

impl Nndtf {
    /// Before the first iteration.
    #[must_use]
    pub fn start(identity: Identity<'_>) -> Self {
        Self::resume(identity, NndtfState::default()).expect("nothing is a state of every search")
    }

    /// As saved.
    ///
    /// # Errors
    /// A sentence if the bytes are not a state that these settings can lead to.
    pub fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = NndtfState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        Self::resume(identity, state)
    }

    fn resume(identity: Identity<'_>, state: NndtfState) -> Result<Self, String> {
        let Identity { seed, arm, replica, settings } = identity;
        let network = network_of(settings);
        let stream = Stream::root(seed).text("nndtf").text(arm).word(u64::from(replica));
        let messages = search_of(settings, stream);
        let search = Search::new(network.kind, &messages)?;
        search.check(&state)?;
        let kind = if network.kind == Kind::Double { NndtfKind::Double } else { NndtfKind::Traditional };
        let judge = NndtfJudge {
            kind: kind.into(),
            sweeps: network.coupling.sweeps,
            right_to_left: network.numbering == Numbering::RightToLeft,
            boards: training_boards(seed, replica, settings.integer("boards") as usize),
        };
        let evaluations = settings.choice("farming") == "evaluations";
        let segment = if evaluations { None } else { Some(segment_of(settings)) };
        let mut nndtf = Self { network, judge, messages, search, segment, asked: None, state, rows: Vec::new() };
        nndtf.prepare();
        Ok(nndtf)
    }

    /// What the coming round asks, if evaluations are farmed out.
    fn prepare(&mut self) {
        let asks = self.segment.is_none() && !self.search.finished(&self.state);
        self.asked = asks.then(|| self.search.ask(&self.state));
    }

    /// The card of a chromosome that has this sum on the training boards.
    fn card(&self, all: &Judge, genes: &[f32], sum: u64) -> Option<Card> {
        let player = NetworkPlayer::new(self.network, genes.to_vec()).ok()?;
        let mut card = Card::from(Player::Nndtf(player));
        card.about.insert("fitness".into(), judge::fitness(sum, self.judge.boards.len()).into());
        card.about.insert("fitness_on_all_boards".into(), all.fitness(all.sum(genes)).into());
        Some(card)
    }

    fn row(&self, row: NndtfRow) -> Vec<f64> {
        let boards = self.judge.boards.len();
        vec![
            row.iteration as f64,
            self.search.evaluations(row.iteration) as f64,
            judge::fitness(row.best, boards),
            judge::fitness(row.total, boards) / f64::from(self.search.population()),
        ]
    }
}

/// Iterations of a segment.
fn segment_of(settings: &Values) -> u64 {
    let an_iteration = match settings.choice("algorithm") {
        "improved" => 7,
        "traditional" => settings.integer("population"),
        _ => settings.integer("offspring"),
    };
    match settings.integer("segment") {
        0 => (SEGMENT_EVALUATIONS / an_iteration).max(1),
        segment => segment,
    }
}

/// How many rounds a replica with these settings takes.
#[must_use]
pub fn rounds(settings: &Values) -> u64 {
    let iterations = iterations_of(settings);
    match (settings.choice("farming"), settings.choice("algorithm")) {
        ("segments", _) => iterations.div_ceil(segment_of(settings)),
        (_, "improved") => 1 + 2 * iterations,
        (_, "traditional") => 1 + iterations,
        _ => iterations,
    }
}

impl Experiment for Nndtf {
    fn plan(&self) -> Vec<Task> {
        let judge = Some(self.judge.clone());
        let work = match (self.segment, &self.asked) {
            _ if self.search.finished(&self.state) => return Vec::new(),
            (Some(iterations), _) => {
                let (search, state) = (Some(self.messages), Some(self.state.clone()));
                Work::NndtfSegment(NndtfSegmentTask { judge, search, state, iterations })
            }
            (None, Some(asked)) => Work::NndtfFitness(NndtfFitnessTask { judge, genes: asked.genes.clone() }),
            (None, None) => panic!("a search that is not finished asks for something"),
        };
        vec![work.into()]
    }

    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String> {
        let output = outputs.first().and_then(|output| output.result.as_ref());
        let rows = match output {
            Some(output::Result::NndtfSegment(segment)) => {
                self.state = segment.state.clone().expect("an output was checked to have a state");
                segment.rows.clone()
            }
            Some(output::Result::NndtfFitness(fitness)) => {
                let asked = self.asked.take().expect("what was asked is kept until it is answered");
                self.search.tell(&mut self.state, asked, &fitness.sums).into_iter().collect()
            }
            other => panic!("an answer of another kind: {other:?}"),
        };
        self.rows = rows.into_iter().map(|row| self.row(row)).collect();
        self.prepare();
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        self.rows.clone()
    }

    fn champion(&self) -> Option<Card> {
        let (genes, sum) = search::champion(self.network.kind, &self.state)?;
        self.card(&Judge::all(self.network), genes, sum)
    }

    /// In the order of the search. The evolution strategy keeps a distribution and the best so far, and no population.
    fn population(&self) -> Vec<Card> {
        if !self.state.distribution.is_empty() {
            return Vec::new();
        }
        let all = Judge::all(self.network);
        let chromosomes = self.state.genes.chunks(self.network.kind.genes()).zip(&self.state.sums);
        chromosomes.filter_map(|(genes, sum)| self.card(&all, genes, *sum)).collect()
    }
}

#[cfg(test)]
mod tests;
