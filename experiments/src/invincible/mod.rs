//! Experiment `invincible`: table players of 3x3 tic-tac-toe evolve until they stop losing.
//!
//! A player has one gene per decision board: the cell to play there ([`evoxo_games::table`]). All players play against a
//! random mover, and before either side chooses, the filter acts. The fittest players stay and become the parents of the next
//! generation. The others are their children, with one or a few genes changed. Fitness is the points of all games (wins minus
//! penalty times losses, unless other points are set). It is kept as an exact integer, so rounding never decides which
//! players survive.

pub mod facts;
mod headline;
mod kept;
mod lineage;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
mod report;
pub mod sampled;
pub mod score;
pub mod settings;
mod speed;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::{Card, CardKind},
    evolve::{mutate, select},
    experiment::{
        Births, Config, Demand, Experiment, Identity, Kernel, Kind, Lineage, Publication, Replica, Told, fits,
    },
    headline::Headline,
    report::Report,
    rng::{Generator, Stream, below, chance},
    row,
    task::{Task, TaskKind, checked},
};
use evoxo_games::{
    board::Side,
    table::{self, Score, TableGenome, exact::Scorer, graph::Graph},
};

use messages::{ExactOdds, SampledGames, ScoreTask, State, score_task};
use score::{NAME, ScorePlayers};
use settings::{Fitness, Settings};

/// The kind.
pub const KIND: Kind = Kind::of::<Invincible>();

row! {
    /// Points are per game. The fittest player is the one with the greatest fitness. With sampled games it is partly the
    /// luckiest one, so its fitness overstates its worth.
    struct Row, primary worth {
        /// generations completed
        generation: u32,
        /// exact worth of the fittest player, in points per game
        worth: f64,
        /// the fittest player's fitness, sampled or exact as the setting says, in points per game
        fitness: f64,
        /// mean fitness of the population, in points per game
        mean: f64,
        /// the fittest player's exact probability to win against the filtered random mover
        win: f64,
        /// the fittest player's exact probability to draw
        draw: f64,
        /// the fittest player's exact probability to lose
        loss: f64,
    }
}

/// One replica.
struct Invincible {
    graph: &'static Graph,
    /// Classes with more than one legal cell. The genes of other classes cannot change.
    loci: Vec<usize>,
    /// The replica's stream. The streams of a generation are named by it, the generation's number and a purpose.
    stream: Stream,
    side: Side,
    settings: Settings,
    /// Players per task. Results do not depend on it.
    slice: usize,
    state: State,
}

/// Games per task, about 10 ms of work.
const TASK_GAMES: u64 = 500_000;

/// Players per task.
fn slice(settings: &Settings) -> usize {
    match (settings.slice, settings.fitness) {
        (0, Fitness::Sampled) => ((TASK_GAMES / u64::from(settings.games)) as usize).clamp(1, settings.population),
        (0, Fitness::Exact) => settings.population,
        (slice, _) => slice.min(settings.population),
    }
}

impl Invincible {
    fn parent(&self, rank: usize) -> &[u8] {
        &self.state.parents[rank * self.graph.len()..][..self.graph.len()]
    }

    /// The rank of the parent of an individual of the next generation, or of the individual itself if it is a parent.
    fn parent_of(&self, index: usize) -> usize {
        index % self.settings.fathers
    }

    /// The genome of an individual of the next generation: random in the first generation, later a parent or a child.
    fn individual(&self, index: usize) -> Vec<u8> {
        let mut rng = self.stream.word(u64::from(self.state.generation)).text("births").word(index as u64).rng();
        if self.state.generation == 0 {
            return (0..self.graph.len()).map(|class| draw(&mut rng, self.graph.legal_cells(class))).collect();
        }
        let Settings { fathers, more_mutations, mutations_max, .. } = self.settings;
        let mut genome = self.parent(self.parent_of(index)).to_vec();
        if index < fathers {
            return genome;
        }
        let several = chance(&mut rng, more_mutations.numerator() as u64, more_mutations.denominator() as u64);
        let count = if several { 2 + below(&mut rng, mutations_max - 1) } else { 1 };
        mutate::redraw(&mut rng, &mut genome, &self.loci, count as usize, |rng, class, old| {
            let others: Vec<u8> = self.graph.legal_cells(class).iter().copied().filter(|cell| *cell != old).collect();
            draw(rng, &others)
        });
        genome
    }

    /// The number of games in a player's score; for exact fitness, the common denominator of probabilities.
    fn games(&self) -> u32 {
        match self.settings.fitness {
            Fitness::Sampled => self.settings.games,
            Fitness::Exact => self.graph.denominator(),
        }
    }

    /// The scale of fitness: points per game times this number are an integer.
    fn scale(&self) -> f64 {
        self.settings.points().scale() as f64 * f64::from(self.games())
    }

    fn fitness(&self, wins: u32, losses: u32) -> i64 {
        self.settings.points().total(Score { wins, losses }, self.games())
    }

    fn row(&self, fitness: i64, sum: i128) -> Row {
        let odds = Scorer::of(self.side).score(self.parent(0)).odds(self.graph.denominator());
        Row {
            generation: self.state.generation,
            worth: self.settings.points().worth(odds).to_f64(),
            fitness: fitness as f64 / self.scale(),
            mean: sum as f64 / (self.settings.population as f64 * self.scale()),
            win: odds.win.to_f64(),
            draw: odds.draw.to_f64(),
            loss: odds.loss.to_f64(),
        }
    }
}

/// A random one of these cells; all are equally likely.
fn draw(rng: &mut Generator, cells: &[u8]) -> u8 {
    cells[below(rng, cells.len() as u64) as usize]
}

impl Experiment for Invincible {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<ScorePlayers>()];
    const SOURCES: &'static [Publication] = &[Publication {
        key: "invincible",
        entry: "misc",
        fields: &[("title", "An Invincible Genetic Algorithm"), ("howpublished", "Web page")],
    }];
    const CARDS: &'static [CardKind] = &[table::CARD];
    const KERNELS: &'static [Kernel] = speed::KERNELS;
    const MAY_CHANGE: &'static [&'static str] =
        &["penalty", "win", "draw", "fitness", "games", "population", "more_mutations", "mutations_max"];
    const LINEAGE: Option<Lineage> = Some(lineage::LINEAGE);
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = kept::KeptArm;

    fn demand(settings: &Settings) -> Demand {
        let genes = Graph::of(settings.side.into()).len() as u64;
        let (population, slice) = (settings.population as u64, slice(settings) as u64);
        Demand {
            tasks: population.div_ceil(slice),
            task_bytes: slice * genes + 128,
            shared_bytes: 0,
            output_bytes: slice * 10 + 32,
            state_bytes: settings.fathers as u64 * (genes + 11) + 32,
            rows: settings.generations.into(),
            ..Demand::default()
        }
    }

    fn restore(Identity { settings, stream, .. }: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let graph = Graph::of(settings.side.into());
        let parents = if state.generation == 0 { 0 } else { settings.fathers };
        let sizes = [state.parents.len(), state.fitness.len()] == [parents * graph.len(), parents];
        let mut genes = state.parents.chunks(graph.len()).flat_map(|genome| genome.iter().enumerate());
        let legal = genes.all(|(class, gene)| graph.is_legal(class, *gene));
        fits(state.generation <= settings.generations && sizes && legal)?;
        Ok(Self {
            graph,
            loci: (0..graph.len()).filter(|class| graph.legal_cells(*class).len() > 1).collect(),
            stream,
            side: settings.side.into(),
            slice: slice(&settings),
            settings,
            state,
        })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        let Settings { generations, population, .. } = self.settings;
        if self.state.generation == generations { 0 } else { population.div_ceil(self.slice) }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let games_stream = self.stream.word(u64::from(self.state.generation)).text("games");
        let task = |number: usize| {
            let first = number * self.slice;
            let last = (first + self.slice).min(self.settings.population);
            let fitness = match self.settings.fitness {
                Fitness::Exact => score_task::Fitness::Exact(ExactOdds {}),
                Fitness::Sampled => score_task::Fitness::Sampled(SampledGames {
                    games: self.settings.games,
                    stream_high: games_stream.high(),
                    stream_low: games_stream.low(),
                    first_individual: first as u32,
                }),
            };
            let genomes = (first..last).map(|index| self.individual(index)).collect::<Vec<_>>().concat();
            Task::of::<ScorePlayers>(&ScoreTask {
                side: messages::Side::from(self.side).into(),
                genomes: genomes.into(),
                fitness: Some(fitness),
            })
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let fitness: Vec<i64> = outputs
            .iter()
            .map(checked::<ScorePlayers>)
            .flat_map(|score| score.wins.into_iter().zip(score.losses))
            .map(|(wins, losses)| self.fitness(wins, losses))
            .collect();
        assert_eq!(fitness.len(), self.settings.population, "a round scores the whole population");
        let chosen = select::fittest(&fitness, self.settings.fathers);
        let parents: Vec<u8> = chosen.iter().flat_map(|index| self.individual(*index)).collect();
        self.state = State {
            generation: self.state.generation + 1,
            parents: parents.into(),
            fitness: chosen.iter().map(|index| fitness[*index]).collect(),
        };
        let sum = fitness.iter().map(|points| i128::from(*points)).sum();
        history.push(self.row(self.state.fitness[0], sum));
        Ok(())
    }

    fn champion(&self) -> Option<Card> {
        let genes = (self.state.generation > 0).then(|| self.parent(0).to_vec())?;
        TableGenome::new(self.side, genes).ok().map(Card::new)
    }

    /// The next generation: the parents, best first, and their children, which have not played yet.
    fn population(&self) -> Vec<Card> {
        let player = |index: usize| TableGenome::new(self.side, self.individual(index)).ok();
        (0..self.settings.population).filter_map(player).map(Card::new).collect()
    }

    fn births(&self) -> Births {
        lineage::births(self)
    }
}

impl Told for kept::KeptArm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        Self::measured(config, arm, replicas)
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        Ok(report::report(config, arms))
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}
