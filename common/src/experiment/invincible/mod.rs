//! Experiment `invincible`: table players of 3x3 tic-tac-toe that evolve until they stop losing.
//!
//! A player has one gene per decision board: the cell to play there ([`graph`] enumerates them). All play against a
//! random mover; before either side chooses, the filter acts. The fittest few father the next generation: they stay, and
//! the others are their children with one gene changed, or a few. Fitness is wins minus penalty times losses, kept as an
//! exact whole number (multiplied by the penalty's denominator), so that no rounding can decide who lives.

pub mod exact;
pub mod facts;
pub mod finale;
pub mod graph;
pub mod optimum;
pub mod plain;
pub mod sampled;
pub mod score;
pub mod settings;
pub mod table;

use evoxo_proto::v1::{
    self, ExactOdds, InvincibleState, Output, SampledGames, TableScoreOutput, TableScoreTask, Task, output,
    table_score_task::Fitness, task,
};
use prost::Message as _;

use super::{Column, Experiment, Identity};
use crate::{
    board::Side,
    card::{Card, Player},
    evolve::{mutate, select},
    ratio::Ratio,
    rng::{Generator, Stream, below, chance},
};

use exact::Scorer;
use graph::Graph;
use table::TableGenome;

/// How a table player fares: games (sampled), or numerators over [`graph::Graph::denominator`] (exact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Games won, or the numerator of the probability to win.
    pub wins: u32,
    /// Games lost, or the numerator of the probability to lose.
    pub losses: u32,
}

/// See [`super::Kind::columns`]. Points are per game: 1 for a win, minus the penalty for a loss.
pub const COLUMNS: &[Column] = &[
    Column { name: "generation", doc: "generations absorbed" },
    Column { name: "best", doc: "fitness of the best player, points a game" },
    Column { name: "mean", doc: "mean fitness of the population, points a game" },
    Column { name: "win", doc: "the best player's exact probability to win against the filtered random mover" },
    Column { name: "draw", doc: "the best player's exact probability to draw" },
    Column { name: "loss", doc: "the best player's exact probability to lose" },
];

/// One replica.
pub struct Invincible {
    graph: &'static Graph,
    /// Classes with more than one legal cell: the others have no gene that could change.
    loci: Vec<usize>,
    /// Streams of a generation are this one followed by the generation's number and a purpose.
    stream: Stream,
    side: Side,
    penalty: Ratio,
    /// Sampled games a player, or `None` for exact odds.
    games: Option<u32>,
    population: usize,
    fathers: usize,
    generations: u32,
    more_mutations: Ratio,
    mutations_max: u64,
    /// Players a task; never shows in a result.
    slice: usize,
    state: InvincibleState,
    row: Vec<f64>,
}

/// Games that are worth a task of their own: some ten milliseconds of work.
const TASK_GAMES: u64 = 500_000;

impl Invincible {
    /// Before the first generation.
    #[must_use]
    pub fn start(identity: Identity<'_>) -> Self {
        let settings = identity.settings;
        let side = if settings.choice("side") == "X" { Side::X } else { Side::O };
        let graph = Graph::of(side);
        let population = settings.integer("population") as usize;
        let games = (settings.choice("fitness") == "sampled").then(|| settings.integer("games") as u32);
        let slice = match (settings.integer("slice"), games) {
            (0, Some(games)) => ((TASK_GAMES / u64::from(games)) as usize).clamp(1, population),
            (0, None) => population,
            (slice, _) => (slice as usize).min(population),
        };
        Self {
            graph,
            loci: (0..graph.len()).filter(|class| graph.legal_cells(*class).len() > 1).collect(),
            stream: Stream::root(identity.seed).text("invincible").text(identity.arm).word(u64::from(identity.replica)),
            side,
            penalty: settings.decimal("penalty"),
            games,
            population,
            fathers: settings.integer("fathers") as usize,
            generations: settings.integer("generations") as u32,
            more_mutations: settings.decimal("more_mutations"),
            mutations_max: settings.integer("mutations_max"),
            slice,
            state: InvincibleState::default(),
            row: Vec::new(),
        }
    }

    /// As saved.
    ///
    /// # Errors
    /// A sentence if the bytes are not a state that these settings can lead to.
    pub fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = InvincibleState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        let fathers = if state.generation == 0 { 0 } else { fresh.fathers };
        let genes = state.fathers.chunks(fresh.graph.len());
        if state.generation > fresh.generations
            || state.fathers.len() != fathers * fresh.graph.len()
            || state.fitness.len() != fathers
            || genes
                .flat_map(|genome| genome.iter().enumerate())
                .any(|(class, gene)| !fresh.graph.is_legal(class, *gene))
        {
            return Err("the state does not fit the settings".into());
        }
        Ok(Self { state, ..fresh })
    }

    fn father(&self, rank: usize) -> &[u8] {
        &self.state.fathers[rank * self.graph.len()..][..self.graph.len()]
    }

    /// The genome of an individual of the coming generation: a random one in the first; later a father, or the child of
    /// father (index - fathers) modulo fathers.
    fn individual(&self, index: usize) -> Vec<u8> {
        let mut rng = self.stream.word(u64::from(self.state.generation)).text("births").word(index as u64).rng();
        if self.state.generation == 0 {
            return (0..self.graph.len()).map(|class| draw(&mut rng, self.graph.legal_cells(class))).collect();
        }
        if index < self.fathers {
            return self.father(index).to_vec();
        }
        let mut genome = self.father((index - self.fathers) % self.fathers).to_vec();
        let several =
            chance(&mut rng, self.more_mutations.numerator() as u64, self.more_mutations.denominator() as u64);
        let count = if several { 2 + below(&mut rng, self.mutations_max - 1) } else { 1 };
        mutate::redraw(&mut rng, &mut genome, &self.loci, count as usize, |rng, class, old| {
            let others: Vec<u8> = self.graph.legal_cells(class).iter().copied().filter(|cell| *cell != old).collect();
            draw(rng, &others)
        });
        genome
    }

    /// Points of a whole game times this are a whole number: the scale of fitness.
    fn scale(&self) -> f64 {
        self.penalty.denominator() as f64 * self.games.map_or(f64::from(self.graph.denominator()), f64::from)
    }

    fn fitness(&self, wins: u32, losses: u32) -> i64 {
        self.penalty.denominator() * i64::from(wins) - self.penalty.numerator() * i64::from(losses)
    }

    fn next_row(&self, best: i64, sum: i128) -> Vec<f64> {
        let odds = Scorer::of(self.side).score(self.father(0));
        let whole = f64::from(self.graph.denominator());
        vec![
            f64::from(self.state.generation),
            best as f64 / self.scale(),
            sum as f64 / (self.population as f64 * self.scale()),
            f64::from(odds.wins) / whole,
            f64::from(self.graph.denominator() - odds.wins - odds.losses) / whole,
            f64::from(odds.losses) / whole,
        ]
    }
}

/// One of some cells, each equally likely.
fn draw(rng: &mut Generator, cells: &[u8]) -> u8 {
    cells[below(rng, cells.len() as u64) as usize]
}

impl Experiment for Invincible {
    fn plan(&self) -> Vec<Task> {
        if self.state.generation == self.generations {
            return Vec::new();
        }
        let games_stream = self.stream.word(u64::from(self.state.generation)).text("games");
        let task = |first: usize| {
            let last = (first + self.slice).min(self.population);
            let fitness = match self.games {
                None => Fitness::Exact(ExactOdds {}),
                Some(games) => Fitness::Sampled(SampledGames {
                    games,
                    stream_high: games_stream.high(),
                    stream_low: games_stream.low(),
                    first_individual: first as u32,
                }),
            };
            let genomes = (first..last).map(|index| self.individual(index)).collect::<Vec<_>>().concat();
            let work = TableScoreTask {
                side: v1::Side::from(self.side).into(),
                genomes: genomes.into(),
                fitness: Some(fitness),
            };
            task::Work::TableScore(work).into()
        };
        (0..self.population).step_by(self.slice).map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String> {
        let scores = |output: &Output| match &output.result {
            Some(output::Result::TableScore(score)) => score.clone(),
            _ => TableScoreOutput::default(),
        };
        let fitness: Vec<i64> = outputs
            .iter()
            .map(scores)
            .flat_map(|score| score.wins.into_iter().zip(score.losses))
            .map(|(wins, losses)| self.fitness(wins, losses))
            .collect();
        assert_eq!(fitness.len(), self.population, "a round scores the whole population");
        let chosen = select::fittest(&fitness, self.fathers);
        let fathers: Vec<u8> = chosen.iter().flat_map(|index| self.individual(*index)).collect();
        self.state = InvincibleState {
            generation: self.state.generation + 1,
            fathers: fathers.into(),
            fitness: chosen.iter().map(|index| fitness[*index]).collect(),
        };
        self.row = self.next_row(self.state.fitness[0], fitness.iter().map(|points| i128::from(*points)).sum());
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        vec![self.row.clone()]
    }

    fn champion(&self) -> Option<Card> {
        (self.state.generation > 0)
            .then(|| TableGenome::new(self.side, self.father(0).to_vec()).ok())
            .flatten()
            .map(|player| Card::from(Player::Table(player)))
    }

    /// The coming generation: the fathers, the best first, and their children, which have not played yet.
    fn population(&self) -> Vec<Card> {
        let player = |index: usize| TableGenome::new(self.side, self.individual(index)).ok();
        (0..self.population).filter_map(player).map(|player| Card::from(Player::Table(player))).collect()
    }
}
