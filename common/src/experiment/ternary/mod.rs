//! Experiment `ternary`: strings of letters that play 3x3 tic-tac-toe and are repaired as they play.
//!
//! Source: C. Karr and L. M. Freeman (eds.), *Industrial Applications of Genetic Algorithms*, CRC Press 1998, chapter 17.
//! A string has a place for every board ([`index`]); where it names a taken cell, a random empty one is played and
//! written into it, and is inherited. Both sides evolve, each against the other and against a random mover; one is
//! reported. Fitness is kept as an exact whole number: wins minus penalty times losses, multiplied by the penalty's
//! denominator.

pub mod finale;
pub mod game;
pub mod index;
pub mod odds;
pub mod plain;
pub mod player;
pub mod settings;
#[cfg(test)]
mod tests;
mod told;
pub mod tournament;

use evoxo_proto::v1::{self, Output, Task, TernaryOutput, TernaryPopulation, TernaryState, TernaryTask, output, task};
use prost::Message as _;

use super::{Column, Experiment, Identity};
use crate::{
    board::Side,
    card::{Card, Player},
    config::Values,
    evolve::{cross, mutate, select},
    ratio::Ratio,
    rng::{Stream, chance},
};

use index::Strings;
use player::{Alphabet, Code};

/// See [`super::Kind::columns`]. Points are per game: 1 for a win, minus the penalty for a loss. Odds are exact; where a
/// string names a taken cell it plays any empty one.
pub const COLUMNS: &[Column] = &[
    Column { name: "generation", doc: "generations absorbed" },
    Column { name: "best", doc: "fitness of the best player, points a game" },
    Column { name: "mean", doc: "mean fitness of the population, points a game" },
    Column { name: "repairs", doc: "decisions rewritten in this generation, a player" },
    Column { name: "broken", doc: "share of decisions that name a taken cell after the games, over the population" },
    Column { name: "win", doc: "the best player's probability to win against the plain random mover" },
    Column { name: "draw", doc: "the best player's probability to draw against the plain random mover" },
    Column { name: "loss", doc: "the best player's probability to lose against the plain random mover" },
    Column { name: "loss_rules", doc: "the best player's probability to lose against a random mover with the rules" },
];

/// How pairs of parents cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crossover {
    OnePoint,
    TwoPoint,
    None,
}

/// One replica.
pub struct Ternary {
    /// Streams of a generation are this one followed by the side, the generation's number and a purpose.
    stream: Stream,
    /// The reported side's strings.
    code: Code,
    generations: u32,
    population: usize,
    opponents: u32,
    random_games: u32,
    random_rules: bool,
    penalty: Ratio,
    elite: usize,
    crossover: Crossover,
    crossover_rate: Ratio,
    mutations: Ratio,
    /// Players a task; never shows in a result.
    slice: usize,
    state: TernaryState,
    /// Of the generation just absorbed.
    row: Vec<f64>,
}

/// What an arm's strings mean.
#[must_use]
pub fn code_of(settings: &Values) -> Code {
    Code {
        side: if settings.choice("side") == "X" { Side::X } else { Side::O },
        strings: if settings.choice("strings") == "long" { Strings::Long } else { Strings::Short },
        alphabet: if settings.choice("alphabet") == "9" { Alphabet::Nine } else { Alphabet::Three },
    }
}

impl Ternary {
    /// Before the first generation.
    #[must_use]
    pub fn start(identity: Identity<'_>) -> Self {
        let settings = identity.settings;
        let population = settings.integer("population") as usize;
        Self {
            stream: Stream::root(identity.seed).text("ternary").text(identity.arm).word(u64::from(identity.replica)),
            code: code_of(settings),
            generations: settings.integer("generations") as u32,
            population,
            opponents: settings.integer("opponents") as u32,
            random_games: settings.integer("random_games") as u32,
            random_rules: settings.choice("random_mover") == "rules",
            penalty: settings.decimal("penalty"),
            elite: settings.integer("elite") as usize,
            crossover: match settings.choice("crossover") {
                "one-point" => Crossover::OnePoint,
                "two-point" => Crossover::TwoPoint,
                _ => Crossover::None,
            },
            crossover_rate: settings.decimal("crossover_rate"),
            mutations: settings.decimal("mutations"),
            slice: match settings.integer("slice") as usize {
                0 => population,
                slice => slice.min(population),
            },
            state: TernaryState::default(),
            row: Vec::new(),
        }
    }

    /// As saved.
    ///
    /// # Errors
    /// A sentence if the bytes are not a state that these settings can lead to.
    pub fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = TernaryState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        let codes = if state.generation == 0 { Vec::new() } else { fresh.codes() };
        let fits = |(population, code): (&TernaryPopulation, &Code)| {
            population.genomes.len() == fresh.population * code.len()
                && population.fitness.len() == fresh.population
                && population.genomes.iter().all(|letter| *letter < code.alphabet.letters())
        };
        let populations = &state.populations;
        let all_fit = populations.len() == codes.len() && populations.iter().zip(&codes).all(fits);
        if state.generation > fresh.generations || !all_fit {
            return Err("the state does not fit the settings".into());
        }
        Ok(Self { state, ..fresh })
    }

    /// The strings of the sides that evolve, the reported one first.
    fn codes(&self) -> Vec<Code> {
        let other = Code { side: self.code.side.other(), ..self.code };
        if self.opponents > 0 { vec![self.code, other] } else { vec![self.code] }
    }

    /// The strings of a side in the coming generation, one after another.
    fn bred(&self, number: usize, code: Code) -> Vec<u8> {
        let side = if code.side == Side::X { "X" } else { "O" };
        let births = self.stream.text(side).word(self.state.generation.into()).text("births");
        let Some(parents) = self.state.populations.get(number) else {
            return (0..self.population).flat_map(|index| code.random(&mut births.word(index as u64).rng())).collect();
        };
        let parent = |index: usize| &parents.genomes[index * code.len()..][..code.len()];
        let stay = select::fittest(&parents.fitness, self.elite);
        let mut genomes: Vec<u8> = stay.into_iter().flat_map(parent).copied().collect();
        let wanted = self.population * code.len();
        for pair in 0.. {
            if genomes.len() >= wanted {
                break;
            }
            let rng = &mut births.word(pair).rng();
            let [mother, father] = [(); 2].map(|()| parent(select::binary_tournament(rng, &parents.fitness)));
            let rate = self.crossover_rate;
            let crosses = chance(rng, rate.numerator() as u64, rate.denominator() as u64);
            let children = match self.crossover {
                Crossover::OnePoint if crosses => cross::one_point(rng, mother, father),
                Crossover::TwoPoint if crosses => cross::two_point(rng, mother, father),
                _ => [mother.to_vec(), father.to_vec()],
            };
            for mut child in children {
                let odds = (self.mutations.numerator() as u64, self.mutations.denominator() as u64 * code.len() as u64);
                mutate::redraw_each(rng, &mut child, odds, |rng, _, _| code.letter(rng));
                genomes.extend_from_slice(&child);
            }
        }
        genomes.truncate(wanted);
        genomes
    }

    fn fitness(&self, wins: u32, losses: u32) -> i64 {
        self.penalty.denominator() * i64::from(wins) - self.penalty.numerator() * i64::from(losses)
    }

    fn card(&self, genome: &[u8]) -> Card {
        Player::Ternary(player::Ternary { code: self.code, genome: genome.to_vec() }).into()
    }

    /// The best string of the reported side after the generation just absorbed.
    fn best(&self) -> Option<&[u8]> {
        let population = self.state.populations.first()?;
        let best = select::fittest(&population.fitness, 1)[0];
        Some(&population.genomes[best * self.code.len()..][..self.code.len()])
    }

    fn next_row(&self, repairs: u32) -> Vec<f64> {
        let population = &self.state.populations[0];
        let best = self.best().expect("a generation has just been absorbed");
        let games = f64::from(self.opponents) + f64::from(self.random_games);
        let scale = self.penalty.denominator() as f64 * games;
        let players = self.population as f64;
        let sum: i128 = population.fitness.iter().map(|points| i128::from(*points)).sum();
        let top = population.fitness.iter().max().copied().unwrap_or(0);
        let broken: usize = population.genomes.chunks(self.code.len()).map(|genome| self.code.broken(genome)).sum();
        let [win, draw, loss] = odds::odds(self.code, best, false);
        vec![
            f64::from(self.state.generation),
            top as f64 / scale,
            sum as f64 / (players * scale),
            f64::from(repairs) / players,
            broken as f64 / (players * self.code.index().len() as f64),
            win,
            draw,
            loss,
            odds::odds(self.code, best, true)[2],
        ]
    }
}

impl Experiment for Ternary {
    fn plan(&self) -> Vec<Task> {
        if self.state.generation == self.generations {
            return Vec::new();
        }
        let codes = self.codes();
        let bred: Vec<bytes::Bytes> =
            codes.iter().enumerate().map(|(number, code)| self.bred(number, *code).into()).collect();
        let mut tasks = Vec::new();
        for (number, code) in codes.iter().enumerate() {
            let side = if code.side == Side::X { "X" } else { "O" };
            let games = self.stream.text(side).word(self.state.generation.into()).text("games");
            for first in (0..self.population).step_by(self.slice) {
                let last = (first + self.slice).min(self.population);
                let work = TernaryTask {
                    side: v1::Side::from(code.side).into(),
                    rules: code.strings == Strings::Short,
                    letters: code.alphabet.letters().into(),
                    genomes: bred[number].slice(first * code.len()..last * code.len()),
                    opponents: self.opponents,
                    random_games: self.random_games,
                    random_rules: self.random_rules,
                    stream_high: games.high(),
                    stream_low: games.low(),
                    first_individual: first as u32,
                };
                let shared = bred.get(1 - number).cloned().unwrap_or_default();
                tasks.push(Task { work: Some(task::Work::Ternary(work)), shared });
            }
        }
        tasks
    }

    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String> {
        let outputs: Vec<TernaryOutput> = outputs
            .iter()
            .map(|output| match &output.result {
                Some(output::Result::Ternary(output)) => output.clone(),
                _ => TernaryOutput::default(),
            })
            .collect();
        let tasks = outputs.len() / self.codes().len();
        let population = |slices: &[TernaryOutput]| TernaryPopulation {
            genomes: slices.iter().map(|slice| &slice.genomes[..]).collect::<Vec<_>>().concat().into(),
            fitness: slices
                .iter()
                .flat_map(|slice| slice.wins.iter().zip(&slice.losses))
                .map(|(wins, losses)| self.fitness(*wins, *losses))
                .collect(),
        };
        let populations: Vec<TernaryPopulation> = outputs.chunks(tasks).map(population).collect();
        assert!(
            populations.iter().all(|population| population.fitness.len() == self.population),
            "a round plays the games of whole populations"
        );
        self.state = TernaryState { generation: self.state.generation + 1, populations };
        self.row = self.next_row(outputs[..tasks].iter().flat_map(|slice| &slice.repairs).sum());
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        vec![self.row.clone()]
    }

    fn champion(&self) -> Option<Card> {
        self.best().map(|genome| self.card(genome))
    }

    /// The reported side's strings as they are after their games.
    fn population(&self) -> Vec<Card> {
        let population = self.state.populations.first();
        population.into_iter().flat_map(|side| side.genomes.chunks(self.code.len())).map(|it| self.card(it)).collect()
    }
}
