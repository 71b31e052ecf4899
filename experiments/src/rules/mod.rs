//! Experiment `rules`: agents made of rules learn tic-tac-toe from games among themselves.
//!
//! A rule says "if I see this, I move there", and has a priority and a weight ([`rule`], [`agent`]). In each cycle agents
//! meet in couples ([`couple`]). The rules used in a won game gain weight, those used in a lost game lose weight, and the
//! better agents become parents ([`population`]). Every option of the source is a setting.
//!
//! The work is farmed out as whole cycles of a replica, or as the couples of a cycle. Random numbers are named by cycle,
//! couple and child in both cases, so results do not depend on the choice.

pub mod agent;
mod card;
pub mod couple;
mod facts;
mod figures;
mod headline;
pub mod index;
mod lineage;
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
    card::{Card, CardKind},
    experiment::{Births, Demand, Experiment, Identity, Kernel, Kind, Lineage, Publication, fits},
    rng::Stream,
    row,
    settings::WithText,
    task::{Task, TaskKind, checked},
};
use serde_json::json;

use agent::Agent;
use messages::{CouplesTask, CyclesTask, State};
use population::{Played, Population};
use rule::SOUGHT;
use settings::{Farming, Settings};
use task::{Couples, Cycles, NAME};

/// The kind.
pub const KIND: Kind = Kind::of::<Rules>();

row! {
    /// A row is a cycle.
    struct Row, primary strength {
        /// cycles completed
        cycle: u32,
        /// moves made by a rule, in percent of all moves of the cycle's games
        rule_share: f64,
        /// games drawn, in percent
        draws: f64,
        /// points of the best agent against a random mover, in percent: exact, draws counting half, mean of both sides
        strength: f64,
        /// sought rules, of 48, that any agent has had at the beginning or after a cycle
        found: u32,
        /// sought rules that any agent has after the cycle
        alive: u32,
        /// rules of all agents after the cycle that complete or block, but are not sought
        good: u32,
        /// the weight of the best agent
        best: i32,
    }
}

/// One replica.
struct Rules {
    settings: Settings,
    /// The settings in the form in which tasks carry them.
    settings_text: String,
    /// The replica's stream. The streams of a cycle are named by it, the cycle's number and a purpose: see [`population`].
    stream: Stream,
    cycle: u32,
    population: Population,
}

impl Rules {
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

    /// Counts a cycle and returns its row.
    fn end_cycle(&mut self, cycle: &messages::Cycle) -> Row {
        self.cycle += 1;
        self.population.found |= cycle.alive;
        let games = self.settings.agents as f64 / 2.0 * f64::from(self.settings.games);
        let percent = |part: u32, whole: f64| 100.0 * f64::from(part) / whole;
        Row {
            cycle: self.cycle,
            rule_share: percent(cycle.rule_moves, f64::from(cycle.moves).max(1.0)),
            draws: percent(cycle.draws, games),
            strength: 100.0 * cycle.strength,
            found: self.population.found.count_ones(),
            alive: cycle.alive.count_ones(),
            good: cycle.good,
            best: cycle.best,
        }
    }
}

impl Experiment for Rules {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Couples>(), TaskKind::of::<Cycles>()];
    const SOURCES: &'static [Publication] = &[Publication {
        key: "ejemplosdevida",
        entry: "misc",
        fields: &[
            ("author", "{de la Herrán Gascón}, Manuel"),
            ("title", "Ejemplos de Vida. Tic-Tac-Toe"),
            ("howpublished", "Web page"),
        ],
    }];
    const CARDS: &'static [CardKind] = &[card::CARD];
    const KERNELS: &'static [Kernel] = speed::KERNELS;
    const MAY_CHANGE: &'static [&'static str] = &[
        "games",
        "mutation",
        "mutations",
        "cluster",
        "selection",
        "parents",
        "players",
        "inherit",
        "identical_parents",
        "similar",
        "similar_share",
        "similar_penalty",
        "knowledge",
        "generator",
        "rigged_share",
        "random_rules",
        "repeated",
        "weak",
        "weak_weight",
        "weak_at_times",
        "weak_cycles",
        "weak_at_times_weight",
        "agent_weights",
        "newborn",
        "inherited_weights",
    ];
    const LINEAGE: Option<Lineage> = Some(lineage::LINEAGE);
    type Settings = WithText<Settings>;
    type State = State;
    type Row = Row;
    type Told = facts::Arm;

    fn rounds(given: &WithText<Settings>) -> u64 {
        let Settings { farming, cycles, cycles_per_task, .. } = given.settings;
        match farming {
            Farming::Cycles => cycles.div_ceil(cycles_per_task).into(),
            Farming::Couples => cycles.into(),
        }
    }

    fn demand(given: &WithText<Settings>) -> Demand {
        let settings = &given.settings;
        let (agents, rules, rows) = (settings.agents as u64, settings.rules as u64, u64::from(settings.cycles));
        // A rule takes four bytes, and its weight up to five. An agent's weight takes up to five.
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

    fn restore(identity: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let Identity { settings: WithText { settings, text }, stream, .. } = identity;
        fits(state.cycle <= settings.cycles && state.found >> SOUGHT == 0)?;
        let population = if state.cycle == 0 {
            Population::start(&settings, stream)
        } else {
            let agents = task::read_agents(state.agents.as_ref(), settings.agents, settings.rules)
                .map_err(|why| format!("the state does not fit the settings: {why}"))?;
            Population { agents, found: state.found }
        };
        Ok(Self { population, settings, settings_text: text, stream, cycle: state.cycle })
    }

    fn save(&self) -> State {
        let agents = (self.cycle > 0).then(|| task::write_agents(self.population.agents.iter()));
        let found = if self.cycle > 0 { self.population.found } else { 0 };
        State { cycle: self.cycle, agents, found }
    }

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
            let task = Task::of::<Cycles>(&CyclesTask {
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
            Task::of::<Couples>(&CouplesTask {
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

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        if self.settings.farming == Farming::Cycles {
            let [output] = outputs else { panic!("a round of cycles is one task") };
            let output = checked::<Cycles>(output);
            let Settings { agents, rules, .. } = self.settings;
            self.population.agents = task::read_agents(output.agents.as_ref(), agents, rules).map_err(|why| why.0)?;
            history.extend(output.cycles.iter().map(|cycle| self.end_cycle(cycle)));
            return Ok(());
        }
        let played: Vec<Played> =
            outputs.iter().flat_map(|output| checked::<Couples>(output).couples).map(|it| (&it).into()).collect();
        let (stream, population, couples) = self.meeting();
        self.population = population;
        let cycle = self.population.end_of_cycle(&self.settings, stream, &couples, &played);
        history.push(self.end_cycle(&cycle));
        Ok(())
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

    fn births(&self) -> Births {
        lineage::births(self)
    }

    fn tail(cycles: usize) -> usize {
        headline::tail(cycles)
    }
}
