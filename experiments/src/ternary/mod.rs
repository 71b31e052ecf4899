//! Experiment `ternary`: strings of letters play 3x3 tic-tac-toe, and are repaired as they play.
//!
//! Source: C. Karr and L. M. Freeman (eds.), *Industrial Applications of Genetic Algorithms*, CRC Press 1998, chapter 17. A
//! string has a place for every board ([`evoxo_games::index`]). Where the string names a taken cell, a random empty cell is
//! played and written into the string, and children inherit it. Both sides evolve, each against the other and against a
//! random mover, and one of them is reported. Fitness is kept as an exact integer: wins minus penalty times losses,
//! multiplied by the penalty's denominator.

mod card;
pub mod game;
mod headline;
mod lineage;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
pub mod odds;
pub mod player;
pub mod reference;
mod report;
pub mod settings;
mod speed;
#[cfg(test)]
mod tests;
mod told;
pub mod tournament;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::{Card, CardKind},
    evolve::{cross, mutate, select},
    experiment::{Births, Demand, Experiment, Identity, Kernel, Kind, Lineage, Publication, fits},
    rng::{Generator, Stream, chance},
    row,
    task::{Task, TaskKind, checked},
};
use evoxo_games::{board::Side, index};

use index::{Classes, Strings};
use messages::{Population, State, TournamentOutput, TournamentTask};
use player::Code;
use settings::{Crossover, RandomMover, Settings};
use tournament::{NAME, Tournament};

/// The kind.
pub const KIND: Kind = Kind::of::<Ternary>();

row! {
    /// Points are per game: 1 for a win, minus the penalty for a loss. Fitness is measured in sampled games. The fittest
    /// player is chosen by it, so the fitness of that player is overstated. Odds are exact. If a string names a taken cell,
    /// it plays any empty cell.
    struct Row, primary win {
        /// generations completed
        generation: u32,
        /// sampled fitness of the fittest player, points per game
        fitness: f64,
        /// mean fitness of the population, points per game
        mean: f64,
        /// decisions rewritten in this generation, per player
        repairs: f64,
        /// share of decisions that name a taken cell after the games, over the population
        broken: f64,
        /// the fittest player's exact probability to win against the plain random mover
        win: f64,
        /// the fittest player's exact probability to draw against the plain random mover
        draw: f64,
        /// the fittest player's exact probability to lose against the plain random mover
        loss: f64,
        /// the fittest player's exact probability to lose against a random mover with the rules
        loss_rules: f64,
    }
}

/// One replica.
struct Ternary {
    /// The replica's stream. The streams of a generation are named by it, the side, the generation's number and a purpose.
    stream: Stream,
    settings: Settings,
    /// The meaning of the reported side's strings.
    code: Code,
    /// Players per task. Results do not depend on it.
    slice: usize,
    state: State,
}

/// Players per task.
fn slice(settings: &Settings) -> usize {
    match settings.slice {
        0 => settings.population,
        slice => slice.min(settings.population),
    }
}

/// The meanings of the strings of all sides that evolve, the reported side first.
fn codes(settings: &Settings) -> Vec<Code> {
    let code = settings.code();
    let other = Code { side: code.side.other(), ..code };
    if settings.opponents > 0 { vec![code, other] } else { vec![code] }
}

/// The name that stands for a side in the names of streams.
fn name(side: Side) -> &'static str {
    match side {
        Side::X => "X",
        Side::O => "O",
    }
}

impl From<Side> for messages::Side {
    fn from(side: Side) -> Self {
        match side {
            Side::X => Self::X,
            Side::O => Self::O,
        }
    }
}

/// Sees the places of two parents, and their two children before mutation.
type Crossing<'a> = dyn FnMut([usize; 2], &[Vec<u8>; 2]) + 'a;

impl Ternary {
    /// The strings of a side in the next generation, one after another. `crossed` sees each pair of children after crossover,
    /// before mutation, with the places of their parents.
    fn bred(&self, number: usize, code: Code, crossed: &mut Crossing<'_>) -> Vec<u8> {
        let births = self.stream.text(name(code.side)).word(self.state.generation.into()).text("births");
        let Some(parents) = self.state.populations.get(number) else {
            return (0..self.settings.population)
                .flat_map(|index| code.random(&mut births.word(index as u64).rng()))
                .collect();
        };
        let parent = |index: usize| &parents.genomes[index * code.len()..][..code.len()];
        let stay = select::fittest(&parents.fitness, self.settings.elite);
        let stay = stay.into_iter().map(|index| parent(index).to_vec()).collect();
        let pair = |rng: &mut Generator| {
            let places = [(); 2].map(|()| select::binary_tournament(rng, &parents.fitness));
            let [mother, father] = places.map(parent);
            let rate = self.settings.crossover_rate;
            let crosses = chance(rng, rate.numerator() as u64, rate.denominator() as u64);
            let mut children = match self.settings.crossover {
                Crossover::OnePoint if crosses => cross::one_point(rng, mother, father),
                Crossover::TwoPoint if crosses => cross::two_point(rng, mother, father),
                _ => [mother.to_vec(), father.to_vec()],
            };
            crossed(places, &children);
            for child in &mut children {
                let rate = self.settings.mutations;
                let odds = (rate.numerator() as u64, rate.denominator() as u64 * code.len() as u64);
                mutate::redraw_each(rng, child, odds, |rng, _, _| code.letter(rng));
            }
            children
        };
        select::generation(births, stay, 0, self.settings.population, pair).concat()
    }

    fn fitness(&self, wins: u32, losses: u32) -> i64 {
        let penalty = self.settings.penalty;
        penalty.denominator() * i64::from(wins) - penalty.numerator() * i64::from(losses)
    }

    fn card(&self, genome: &[u8]) -> Card {
        Card::new(player::Ternary { code: self.code, genome: genome.to_vec() })
    }

    /// The fittest string of the reported side after the last generation.
    fn best(&self) -> Option<&[u8]> {
        let population = self.state.populations.first()?;
        let best = select::fittest(&population.fitness, 1)[0];
        Some(&population.genomes[best * self.code.len()..][..self.code.len()])
    }

    fn row(&self, repairs: u32) -> Row {
        let population = &self.state.populations[0];
        let best = self.best().expect("a generation has just been absorbed");
        let Settings { opponents, random_games, penalty, population: players, .. } = self.settings;
        let scale = penalty.denominator() as f64 * (f64::from(opponents) + f64::from(random_games));
        let players = players as f64;
        let sum: i128 = population.fitness.iter().map(|points| i128::from(*points)).sum();
        let top = population.fitness.iter().max().copied().unwrap_or(0);
        let broken: usize = population.genomes.chunks(self.code.len()).map(|genome| self.code.broken(genome)).sum();
        let [win, draw, loss] = odds::odds(self.code, best, false);
        Row {
            generation: self.state.generation,
            fitness: top as f64 / scale,
            mean: sum as f64 / (players * scale),
            repairs: f64::from(repairs) / players,
            broken: broken as f64 / (players * self.code.index().len() as f64),
            win,
            draw,
            loss,
            loss_rules: odds::odds(self.code, best, true)[2],
        }
    }
}

impl Experiment for Ternary {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Tournament>()];
    const SOURCES: &'static [Publication] = &[Publication {
        key: "karr1998",
        entry: "inbook",
        fields: &[
            ("editor", "Karr, C. and Freeman, L. M."),
            ("title", "Industrial Applications of Genetic Algorithms"),
            ("publisher", "CRC Press"),
            ("chapter", "17"),
            ("pages", "325--328"),
            ("year", "1998"),
        ],
    }];
    const CARDS: &'static [CardKind] = &[card::CARD];
    const KERNELS: &'static [Kernel] = speed::KERNELS;
    const MAY_CHANGE: &'static [&'static str] =
        &["random_games", "random_mover", "penalty", "elite", "crossover", "crossover_rate", "mutations"];
    const LINEAGE: Option<Lineage> = Some(lineage::LINEAGE);
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = told::Arm;

    fn demand(settings: &Settings) -> Demand {
        let (population, slice, codes) = (settings.population as u64, slice(settings) as u64, codes(settings));
        let longest = codes.iter().map(|code| code.len()).max().unwrap_or(0) as u64;
        Demand {
            tasks: population.div_ceil(slice) * codes.len() as u64,
            task_bytes: slice * longest + 128,
            shared_bytes: codes.len() as u64 * population * longest,
            output_bytes: slice * (longest + 15) + 64,
            state_bytes: codes.len() as u64 * population * (longest + 11) + 64,
            rows: settings.generations.into(),
            ..Demand::default()
        }
    }

    fn restore(Identity { settings, stream, .. }: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let codes = if state.generation == 0 { Vec::new() } else { codes(&settings) };
        let players = settings.population;
        let of_code = |(population, code): (&Population, &Code)| {
            population.genomes.len() == players * code.len()
                && population.fitness.len() == players
                && population.genomes.iter().all(|letter| *letter < code.alphabet.letters())
        };
        let populations = &state.populations;
        let all_fit = populations.len() == codes.len() && populations.iter().zip(&codes).all(of_code);
        fits(state.generation <= settings.generations && all_fit)?;
        Ok(Self { stream, code: settings.code(), slice: slice(&settings), settings, state })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        let Settings { generations, population, .. } = self.settings;
        match self.state.generation == generations {
            true => 0,
            false => population.div_ceil(self.slice) * codes(&self.settings).len(),
        }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let Settings { population, opponents, random_games, random_mover, .. } = self.settings;
        let codes = codes(&self.settings);
        let bred = |(number, code): (usize, &Code)| self.bred(number, *code, &mut |_, _| ()).into();
        let bred: Vec<Bytes> = codes.iter().enumerate().map(bred).collect();
        let slices = population.div_ceil(self.slice);
        let task = |index: usize| {
            let (number, first) = (index / slices, index % slices * self.slice);
            let (code, last) = (codes[number], (first + self.slice).min(population));
            let genomes = bred[number].slice(first * code.len()..last * code.len());
            let (genomes, mirrored_genomes) = match code.classes {
                Classes::Rotations => (genomes, Bytes::new()),
                Classes::Symmetries => (Bytes::new(), genomes),
            };
            let games = self.stream.text(name(code.side)).word(self.state.generation.into()).text("games");
            let task = TournamentTask {
                side: messages::Side::from(code.side).into(),
                rules: code.strings == Strings::Short,
                letters: code.alphabet.letters().into(),
                genomes,
                mirrored_genomes,
                opponents,
                random_games,
                random_rules: random_mover == RandomMover::Rules,
                stream_high: games.high(),
                stream_low: games.low(),
                first_individual: first as u32,
            };
            Task::of::<Tournament>(&task).sharing(bred.get(1 - number).cloned().unwrap_or_default())
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let outputs: Vec<TournamentOutput> = outputs.iter().map(checked::<Tournament>).collect();
        let tasks = outputs.len() / codes(&self.settings).len();
        let population = |slices: &[TournamentOutput]| Population {
            genomes: slices.iter().map(|slice| &slice.genomes[..]).collect::<Vec<_>>().concat().into(),
            fitness: slices
                .iter()
                .flat_map(|slice| slice.wins.iter().zip(&slice.losses))
                .map(|(wins, losses)| self.fitness(*wins, *losses))
                .collect(),
        };
        let populations: Vec<Population> = outputs.chunks(tasks).map(population).collect();
        assert!(
            populations.iter().all(|population| population.fitness.len() == self.settings.population),
            "a round plays the games of whole populations"
        );
        self.state = State { generation: self.state.generation + 1, populations };
        history.push(self.row(outputs[..tasks].iter().flat_map(|slice| &slice.repairs).sum()));
        Ok(())
    }

    fn champion(&self) -> Option<Card> {
        self.best().map(|genome| self.card(genome))
    }

    /// The reported side's strings after their games.
    fn population(&self) -> Vec<Card> {
        let population = self.state.populations.first();
        population.into_iter().flat_map(|side| side.genomes.chunks(self.code.len())).map(|it| self.card(it)).collect()
    }

    fn births(&self) -> Births {
        lineage::births(self)
    }
}
