//! Experiment `rules`: agents made of rules that learn tic-tac-toe from games among themselves.
//!
//! A rule says "if I see this, I move there", and has a priority and a weight ([`rule`], [`agent`]). In a cycle agents
//! meet in couples ([`couple`]); rules used in games won gain weight, those used in games lost lose it; the better
//! agents become parents ([`population`]). Every option of the source is a setting.
//!
//! Work is farmed out as whole cycles of a replica, or as the couples of a cycle. Results do not depend on which, since
//! random numbers are named by cycle, couple and child in both.

pub mod agent;
mod card;
pub mod couple;
mod facts;
mod headline;
pub mod index;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
pub mod population;
pub mod reference;
mod report;
pub mod rule;
pub mod settings;
mod speed;
pub mod strength;
pub mod task;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::Card,
    experiment::{Column, Demand, Experiment, Identity, Kind},
    rng::Stream,
    task::{Task, checked},
};
use prost::Message as _;
use serde_json::json;

use agent::Agent;
use messages::{CouplesTask, CyclesTask, State};
use population::{Played, Population, Report};
use rule::SOUGHT;
use settings::{Farming, Settings};
use task::{COUPLES, CYCLES, Couples, Cycles, NAME};

/// The kind.
pub const KIND: Kind = Kind {
    name: NAME,
    schema: &settings::SCHEMA,
    columns: COLUMNS,
    primary_metric: column::STRENGTH,
    tail: headline::tail,
    is_solution: None,
    ranking: None,
    rounds: |settings| rounds(&Settings::of(settings)),
    demand: |settings| demand(&Settings::of(settings)),
    start: |identity| Box::new(Rules::start(identity)),
    restore: |identity, state| Ok(Box::new(Rules::restore(identity, state)?)),
    tasks: &[&COUPLES, &CYCLES],
    asks: None,
    reads: None,
    complete: None,
    cards: &[card::CARD],
    plays: &[],
    report: report::report,
    report_of_result: report::of_result,
    headline: headline::headline,
    kernels: speed::KERNELS,
};

/// A row is a cycle.
const COLUMNS: &[Column] = &[
    Column { name: "cycle", doc: "cycles completed" },
    Column { name: "rule_share", doc: "moves made by a rule, in percent of all moves of the cycle's games" },
    Column { name: "draws", doc: "games drawn, in percent" },
    Column {
        name: "strength",
        doc: "points of the best agent against a random mover, in percent: exact, draws counting half, mean of both sides",
    },
    Column { name: "found", doc: "sought rules, of 48, that any agent has had at the beginning or after a cycle" },
    Column { name: "alive", doc: "sought rules that any agent has after the cycle" },
    Column { name: "good", doc: "rules of all agents after the cycle that complete or block, but are not sought" },
    Column { name: "best", doc: "the weight of the best agent" },
];

/// Where the columns stand.
pub(crate) mod column {
    pub(crate) const RULE_SHARE: usize = 1;
    pub(crate) const DRAWS: usize = 2;
    pub(crate) const STRENGTH: usize = 3;
    pub(crate) const FOUND: usize = 4;
    pub(crate) const ALIVE: usize = 5;
    pub(crate) const GOOD: usize = 6;
}

/// The number of rounds of a replica.
fn rounds(settings: &Settings) -> u64 {
    match settings.farming {
        Farming::Cycles => settings.cycles.div_ceil(settings.cycles_per_task).into(),
        Farming::Couples => settings.cycles.into(),
    }
}

fn demand(settings: &Settings) -> Demand {
    let (agents, rules, rows) = (settings.agents as u64, settings.rules as u64, u64::from(settings.cycles));
    // A rule is four bytes and a weight of up to five, an agent's weight up to five.
    let population = |agents: u64| agents * (rules * 9 + 5) + 64;
    let (tasks, task_bytes, output_bytes) = match settings.farming {
        Farming::Cycles => {
            let cycles = u64::from(settings.cycles_per_task).min(rows);
            (1, population(agents) + 2048, population(agents) + 64 * cycles)
        }
        Farming::Couples => {
            let couples = (settings.couples_per_task as u64).min(agents / 2);
            (agents / 2 / couples + 1, population(2 * couples) + 64, couples * (2 * rules * 3 + 32) + 64)
        }
    };
    Demand { tasks, task_bytes, output_bytes, state_bytes: population(agents) + 32, rows, ..Demand::default() }
}

/// One replica.
struct Rules {
    settings: Settings,
    /// The settings as tasks carry them.
    settings_text: String,
    /// The replica's stream. A cycle's streams are named by this one, its number and a purpose; see [`population`].
    stream: Stream,
    cycle: u32,
    population: Population,
    /// The rows of the last round.
    rows: Vec<Vec<f64>>,
}

impl Rules {
    /// The replica before its first cycle.
    fn start(identity: Identity<'_>) -> Self {
        let settings = Settings::of(identity.settings);
        let stream = Stream::root(identity.seed).text("rules").text(identity.arm).word(u64::from(identity.replica));
        Self {
            population: Population::start(&settings, stream),
            settings,
            settings_text: identity.settings.to_text(),
            stream,
            cycle: 0,
            rows: Vec::new(),
        }
    }

    /// Restores a saved state, or says why these settings cannot lead to it.
    fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = State::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        if state.cycle > fresh.settings.cycles || state.found >> SOUGHT != 0 {
            return Err("the state does not fit the settings".into());
        }
        if state.cycle == 0 {
            return Ok(fresh);
        }
        let agents = task::read_agents(state.agents.as_ref(), fresh.settings.agents, fresh.settings.rules)
            .map_err(|why| format!("the state does not fit the settings: {why}"))?;
        Ok(Self { cycle: state.cycle, population: Population { agents, found: state.found }, ..fresh })
    }

    /// The stream, population and couples of the next cycle.
    fn meeting(&self) -> (Stream, Population, Vec<[usize; 2]>) {
        let (stream, mut population) = (self.stream.word(self.cycle.into()), self.population.clone());
        population.renew(&self.settings, stream, self.cycle);
        let couples = population.couples(&self.settings, stream);
        (stream, population, couples)
    }

    fn card(&self, agent: &Agent) -> Card {
        let mut card = Card::new(agent.clone());
        card.about.insert("cycles".into(), json!(self.cycle));
        card
    }

    /// Adds a row for a cycle.
    fn report(&mut self, report: &Report) {
        self.cycle += 1;
        self.population.found |= report.alive;
        let games = self.settings.agents as f64 / 2.0 * f64::from(self.settings.games);
        let percent = |part: u32, whole: f64| 100.0 * f64::from(part) / whole;
        self.rows.push(vec![
            f64::from(self.cycle),
            percent(report.rule_moves, f64::from(report.moves).max(1.0)),
            percent(report.draws, games),
            100.0 * report.strength,
            f64::from(self.population.found.count_ones()),
            f64::from(report.alive.count_ones()),
            f64::from(report.good),
            f64::from(report.best),
        ]);
    }
}

impl Experiment for Rules {
    fn tasks(&self) -> usize {
        let Settings { cycles, farming, agents, couples_per_task, .. } = self.settings;
        match farming {
            _ if self.cycle == cycles => 0,
            Farming::Cycles => 1,
            Farming::Couples => (agents / 2).div_ceil(couples_per_task),
        }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let Settings { cycles, farming, games, rules, cycles_per_task, couples_per_task, .. } = self.settings;
        if farming == Farming::Cycles {
            let task = CYCLES.task::<Cycles>(&CyclesTask {
                settings: self.settings_text.clone(),
                stream_high: self.stream.high(),
                stream_low: self.stream.low(),
                first_cycle: self.cycle,
                cycles: cycles_per_task.min(cycles - self.cycle),
                agents: Some(task::write_agents(self.population.agents.iter())),
            });
            return tasks.map(|_| task.clone()).collect();
        }
        let (stream, population, couples) = self.meeting();
        let task = |(number, couples): (usize, &[[usize; 2]])| {
            let players = couples.iter().flatten().map(|agent| &population.agents[*agent]);
            COUPLES.task::<Couples>(&CouplesTask {
                stream_high: stream.high(),
                stream_low: stream.low(),
                first_couple: (number * couples_per_task) as u32,
                games,
                rules: rules as u32,
                players: Some(task::write_agents(players)),
            })
        };
        couples.chunks(couples_per_task).enumerate().skip(tasks.start).take(tasks.len()).map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        self.rows.clear();
        if self.settings.farming == Farming::Cycles {
            let [output] = outputs else { panic!("a round of cycles is one task") };
            let output = checked::<Cycles>(output);
            let Settings { agents, rules, .. } = self.settings;
            self.population.agents = task::read_agents(output.agents.as_ref(), agents, rules).map_err(|why| why.0)?;
            output.cycles.iter().for_each(|cycle| self.report(&cycle.into()));
            return Ok(());
        }
        let played: Vec<Played> =
            outputs.iter().flat_map(|output| checked::<Couples>(output).couples).map(|it| (&it).into()).collect();
        let (stream, population, couples) = self.meeting();
        self.population = population;
        let report = self.population.end_of_cycle(&self.settings, stream, &couples, &played);
        self.report(&report);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let agents = (self.cycle > 0).then(|| task::write_agents(self.population.agents.iter()));
        let found = if self.cycle > 0 { self.population.found } else { 0 };
        messages::State { cycle: self.cycle, agents, found }.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        self.rows.clone()
    }

    /// The first agent of the last cycle.
    fn champion(&self) -> Option<Card> {
        if self.cycle == 0 {
            return None;
        }
        Some(self.card(&self.population.agents[0]))
    }

    /// The survivors, best first, then the new agents, which have not played yet.
    fn population(&self) -> Vec<Card> {
        self.population.agents.iter().map(|agent| self.card(agent)).collect()
    }
}
