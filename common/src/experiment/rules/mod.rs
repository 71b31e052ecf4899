//! Experiment `rules`: agents made of rules that learn tic-tac-toe from games among themselves.
//!
//! A rule says "if I see this, I move there", and has a priority and a weight ([`rule`], [`agent`]). In a cycle agents meet
//! in couples ([`couple`]); rules that were used in games won gain weight, those of games lost lose it; the better agents
//! become parents ([`population`]). Every option of the source is a setting.
//!
//! Work is farmed out as whole cycles, one replica's after another, or as the couples of a cycle: which of them shows in no
//! result, since both name their random numbers by cycle, couple and child.

pub mod agent;
pub mod couple;
mod facts;
pub mod finale;
pub mod index;
pub mod options;
pub mod plain;
pub mod population;
pub mod rule;
pub mod settings;
pub mod speed;
pub mod strength;
#[cfg(test)]
mod tests;
pub mod wire;

use evoxo_proto::v1::{Output, RulesCouplesTask, RulesCyclesTask, RulesState, Task, output, task};
use prost::Message as _;
use serde_json::{Map, json};

use super::{Column, Experiment, Identity};
use crate::{
    card::{Card, Player},
    config::Values,
    rng::Stream,
};

use agent::Agent;
use options::Options;
use population::{Played, Population, Report};
use rule::SOUGHT;

/// See [`super::Kind::columns`]. A row is a cycle.
pub const COLUMNS: &[Column] = &[
    Column { name: "cycle", doc: "cycles absorbed" },
    Column { name: "rule_share", doc: "moves made by a rule, in percent of all moves of the cycle's games" },
    Column { name: "draws", doc: "games that nobody won, in percent" },
    Column {
        name: "strength",
        doc: "points of the best agent against a random mover, in percent: exact, a draw half, both sides",
    },
    Column { name: "found", doc: "sought rules, of 48, that an agent had at the beginning or after a cycle so far" },
    Column { name: "alive", doc: "sought rules that an agent has after the cycle" },
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

/// How work is cut up; never shows in a result.
#[derive(Clone, Copy, Debug)]
enum Farming {
    /// So many cycles a task.
    Cycles(u32),
    /// So many couples a task.
    Couples(usize),
}

impl Farming {
    fn of(settings: &Values) -> Self {
        match settings.choice("farming") {
            "couples" => Self::Couples(settings.integer("couples_per_task") as usize),
            _ => Self::Cycles(settings.integer("cycles_per_task") as u32),
        }
    }
}

/// How many rounds a replica takes.
#[must_use]
pub fn rounds(settings: &Values) -> u64 {
    let cycles = settings.integer("cycles");
    match Farming::of(settings) {
        Farming::Cycles(cycles_per_task) => cycles.div_ceil(cycles_per_task.into()),
        Farming::Couples(_) => cycles,
    }
}

/// One replica.
pub struct Rules {
    options: Options,
    /// Streams of a cycle are this one followed by its number and a purpose; see [`population`].
    stream: Stream,
    cycles: u32,
    farming: Farming,
    cycle: u32,
    population: Population,
    /// Of the round just absorbed.
    rows: Vec<Vec<f64>>,
}

impl Rules {
    /// Before the first cycle.
    #[must_use]
    pub fn start(identity: Identity<'_>) -> Self {
        let options = Options::of(identity.settings);
        let stream = Stream::root(identity.seed).text("rules").text(identity.arm).word(u64::from(identity.replica));
        Self {
            options,
            stream,
            cycles: identity.settings.integer("cycles") as u32,
            farming: Farming::of(identity.settings),
            cycle: 0,
            population: Population::start(&options, stream),
            rows: Vec::new(),
        }
    }

    /// As saved.
    ///
    /// # Errors
    /// A sentence if the bytes are not a state that these settings can lead to.
    pub fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = RulesState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        if state.cycle > fresh.cycles || state.found >> SOUGHT != 0 {
            return Err("the state does not fit the settings".into());
        }
        if state.cycle == 0 {
            return Ok(fresh);
        }
        let agents = wire::read_agents(state.agents.as_ref(), fresh.options.agents, fresh.options.rules)
            .map_err(|why| format!("the state does not fit the settings: {why}"))?;
        Ok(Self { cycle: state.cycle, population: Population { agents, found: state.found }, ..fresh })
    }

    /// The cycles of the coming round, if it is of whole cycles.
    fn segment(&self, cycles_per_task: u32) -> u32 {
        cycles_per_task.min(self.cycles - self.cycle)
    }

    /// The stream, population and couples of the coming cycle.
    fn meeting(&self) -> (Stream, Population, Vec<[usize; 2]>) {
        let (stream, mut population) = (self.stream.word(self.cycle.into()), self.population.clone());
        population.renew(&self.options, stream, self.cycle);
        let couples = population.couples(&self.options, stream);
        (stream, population, couples)
    }

    fn card(&self, agent: &Agent) -> Card {
        let about = Map::from_iter([("cycles".to_owned(), json!(self.cycle))]);
        Card { player: Player::Rules(agent.clone()), about }
    }

    /// Notes a cycle.
    fn report(&mut self, report: &Report) {
        self.cycle += 1;
        self.population.found |= report.alive;
        let games = self.options.agents as f64 / 2.0 * f64::from(self.options.games);
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
    fn plan(&self) -> Vec<Task> {
        if self.cycle == self.cycles {
            return Vec::new();
        }
        match self.farming {
            Farming::Cycles(cycles_per_task) => {
                let task = RulesCyclesTask {
                    options: Some(wire::write_options(&self.options)),
                    stream_high: self.stream.high(),
                    stream_low: self.stream.low(),
                    first_cycle: self.cycle,
                    cycles: self.segment(cycles_per_task),
                    agents: Some(wire::write_agents(self.population.agents.iter())),
                };
                vec![task::Work::RulesCycles(task).into()]
            }
            Farming::Couples(couples_per_task) => {
                let (stream, population, couples) = self.meeting();
                let task = |(number, couples): (usize, &[[usize; 2]])| {
                    let players = couples.iter().flatten().map(|agent| &population.agents[*agent]);
                    let task = RulesCouplesTask {
                        stream_high: stream.high(),
                        stream_low: stream.low(),
                        first_couple: (number * couples_per_task) as u32,
                        games: self.options.games,
                        rules: self.options.rules as u32,
                        players: Some(wire::write_agents(players)),
                    };
                    task::Work::RulesCouples(task).into()
                };
                couples.chunks(couples_per_task).enumerate().map(task).collect()
            }
        }
    }

    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String> {
        self.rows.clear();
        if let [Output { result: Some(output::Result::RulesCycles(output)) }] = outputs {
            self.population.agents = wire::read_agents(output.agents.as_ref(), self.options.agents, self.options.rules)
                .map_err(|why| why.0)?;
            output.cycles.iter().for_each(|cycle| self.report(&cycle.into()));
            return Ok(());
        }
        let couples_of = |output: &Output| match &output.result {
            Some(output::Result::RulesCouples(output)) => output.couples.clone(),
            other => panic!("a round of couples has outputs of couples, not {other:?}"),
        };
        let played: Vec<Played> = outputs.iter().flat_map(couples_of).map(|couple| (&couple).into()).collect();
        let (stream, population, couples) = self.meeting();
        self.population = population;
        let report = self.population.end_of_cycle(&self.options, stream, &couples, &played);
        self.report(&report);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let agents = (self.cycle > 0).then(|| wire::write_agents(self.population.agents.iter()));
        let found = if self.cycle > 0 { self.population.found } else { 0 };
        RulesState { cycle: self.cycle, agents, found }.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        self.rows.clone()
    }

    /// The agent that came first in the last cycle.
    fn champion(&self) -> Option<Card> {
        if self.cycle == 0 {
            return None;
        }
        Some(self.card(&self.population.agents[0]))
    }

    /// Those that live on, the best first, then the newborn, which have not played yet.
    fn population(&self) -> Vec<Card> {
        self.population.agents.iter().map(|agent| self.card(agent)).collect()
    }
}
