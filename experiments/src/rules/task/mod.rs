//! The tasks of `rules`: whole cycles, or couples of one cycle. Also how messages carry agents and settings.

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    settings::Values,
    task::{Compute, Refusal},
};

use super::{
    agent::{Agent, RULES_MAX},
    couple::Tally,
    messages::{self, Agents, CouplesOutput, CouplesTask, CyclesOutput, CyclesTask},
    population::{Played, Population, cycles, play},
    rule::{CELLS, Rule, SOUGHT},
    settings::{AGENTS_MAX, CYCLES_PER_TASK_MAX, GAMES_MAX, SCHEMA, Settings, WEIGHT_MAX},
};

/// The kind's name.
pub(super) const NAME: &str = "rules";

/// Computes whole cycles.
pub enum Cycles {}

impl Compute for Cycles {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "cycles";
    type Task = CyclesTask;
    type Output = CyclesOutput;

    fn run(task: &CyclesTask, _: &Bytes) -> Result<CyclesOutput, Refusal> {
        run_cycles(task)
    }

    fn check(task: &CyclesTask, _: &Bytes, output: &CyclesOutput) -> Result<(), Refusal> {
        check_cycles(task, output)
    }

    fn workload() -> Vec<(CyclesTask, Bytes)> {
        cycles_workload().into_iter().map(|task| (task, Bytes::new())).collect()
    }
}

/// Plays couples of one cycle.
pub enum Couples {}

impl Compute for Couples {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "couples";
    type Task = CouplesTask;
    type Output = CouplesOutput;

    fn run(task: &CouplesTask, _: &Bytes) -> Result<CouplesOutput, Refusal> {
        run_couples(task)
    }

    fn check(task: &CouplesTask, _: &Bytes, output: &CouplesOutput) -> Result<(), Refusal> {
        check_couples(task, output)
    }

    fn workload() -> Vec<(CouplesTask, Bytes)> {
        vec![(couples_workload(), Bytes::new())]
    }
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(sentence.into()))
}

/// Reads the settings of a task.
fn read_settings(task: &CyclesTask) -> Result<Settings, Refusal> {
    let values: Values = SCHEMA.read(&task.settings).map_err(|why| Refusal(format!("the task's settings: {why}")))?;
    Ok(Settings::of(&values))
}

fn check_sizes(rules: usize, games: u32) -> Result<(), Refusal> {
    if !(1..=RULES_MAX).contains(&rules) || !(1..=GAMES_MAX).contains(&u64::from(games)) {
        return refuse(format!("{rules} rules and {games} games: give 1 to {RULES_MAX} and 1 to {GAMES_MAX}"));
    }
    Ok(())
}

/// Agents as a message. [`read_agents`] is the inverse.
pub fn write_agents<'a>(agents: impl Iterator<Item = &'a Agent> + Clone) -> Agents {
    let rules: Vec<u8> =
        agents.clone().flat_map(|agent| &agent.rules).flat_map(|rule| rule.code().to_le_bytes()).collect();
    Agents {
        rules: rules.into(),
        rule_weights: agents.clone().flat_map(|agent| &agent.weights).copied().collect(),
        agent_weights: agents.map(|agent| agent.weight).collect(),
    }
}

/// Reads and checks `count` agents with `rules` rules each from a message.
///
/// # Errors
/// A message if the agents do not fit or are invalid.
pub fn read_agents(written: Option<&Agents>, count: usize, rules: usize) -> Result<Vec<Agent>, Refusal> {
    let Some(written) = written else { return refuse("the agents are missing") };
    let mut weights = written.rule_weights.iter().chain(&written.agent_weights);
    let lengths = [written.rules.len(), written.rule_weights.len(), written.agent_weights.len()];
    if lengths != [4 * count * rules, count * rules, count] {
        return refuse(format!("not {count} agents of {rules} rules each"));
    }
    if let Some(weight) = weights.find(|weight| weight.unsigned_abs() > WEIGHT_MAX as u32) {
        return refuse(format!("a weight of {weight}, which is out of range"));
    }
    let codes = written.rules.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    let all: Vec<Rule> = codes.map(Rule::of_code).collect::<Result<_, String>>().map_err(Refusal)?;
    let parts = all.chunks(rules).zip(written.rule_weights.chunks(rules)).zip(&written.agent_weights);
    let agent = |((rules, weights), weight): ((&[Rule], &[i32]), &i32)| Agent {
        weight: *weight,
        rules: rules.to_vec(),
        weights: weights.to_vec(),
    };
    Ok(parts.map(agent).collect())
}

/// Computes a task of whole cycles.
///
/// # Errors
/// A message if the task is invalid.
fn run_cycles(task: &CyclesTask) -> Result<CyclesOutput, Refusal> {
    let settings = read_settings(task)?;
    let games = settings.agents as u64 / 2 * u64::from(settings.games) * u64::from(task.cycles);
    let end = task.first_cycle.checked_add(task.cycles);
    let (1..=CYCLES_PER_TASK_MAX, Some(end), 0..=0x3fff_ffff) = (u64::from(task.cycles), end, games) else {
        return refuse(format!(
            "{} cycles after {} with {games} games: at most {CYCLES_PER_TASK_MAX} and {WEIGHT_MAX} games in one task",
            task.cycles, task.first_cycle
        ));
    };
    let agents = read_agents(task.agents.as_ref(), settings.agents, settings.rules)?;
    let mut population = Population { agents, found: 0 };
    let replica = Stream::from_words(task.stream_high, task.stream_low);
    let cycles = cycles(&mut population, &settings, replica, task.first_cycle..end);
    Ok(CyclesOutput { agents: Some(write_agents(population.agents.iter())), cycles })
}

/// Checks that an output fits its task.
///
/// # Errors
/// A message that describes the mismatch.
fn check_cycles(task: &CyclesTask, output: &CyclesOutput) -> Result<(), Refusal> {
    let Settings { agents, rules, games, .. } = read_settings(task)?;
    read_agents(output.agents.as_ref(), agents, rules)?;
    let (agents, rules) = (agents as u32, rules as u32);
    if output.cycles.len() != task.cycles as usize {
        return refuse(format!("{} cycles are reported, not {}", output.cycles.len(), task.cycles));
    }
    let games = agents / 2 * games;
    let sensible = |cycle: &messages::Cycle| {
        cycle.draws <= games
            && cycle.rule_moves <= cycle.moves
            && cycle.moves <= games * CELLS as u32
            && (0.0..=1.0 + 1e-9).contains(&cycle.strength)
            && cycle.alive >> SOUGHT == 0
            && cycle.good <= agents * rules
    };
    if let Some(cycle) = output.cycles.iter().position(|cycle| !sensible(cycle)) {
        return refuse(format!("the report of cycle {} is impossible", u64::from(task.first_cycle) + cycle as u64));
    }
    Ok(())
}

/// Plays the couples of a task.
///
/// # Errors
/// A message if the task is invalid.
fn run_couples(task: &CouplesTask) -> Result<CouplesOutput, Refusal> {
    check_sizes(task.rules as usize, task.games)?;
    let count = task.players.as_ref().map_or(0, |players| players.agent_weights.len());
    if count == 0 || count as u64 > AGENTS_MAX || !count.is_multiple_of(2) {
        return refuse(format!("{count} players: give 1 to {} couples", AGENTS_MAX / 2));
    }
    let players = read_agents(task.players.as_ref(), count, task.rules as usize)?;
    let stream = Stream::from_words(task.stream_high, task.stream_low);
    let couples = players.as_chunks::<2>().0.iter().zip(u64::from(task.first_couple)..);
    let couples = couples.map(|([one, two], number)| play([one, two], task.games, stream, number).into());
    Ok(CouplesOutput { couples: couples.collect() })
}

/// Checks that an output fits its task.
///
/// # Errors
/// A message that describes the mismatch.
fn check_couples(task: &CouplesTask, output: &CouplesOutput) -> Result<(), Refusal> {
    let couples = task.players.as_ref().map_or(0, |players| players.agent_weights.len() / 2);
    if output.couples.len() != couples {
        return refuse(format!("{} couples, not {couples}", output.couples.len()));
    }
    let within = |change: &i32| change.unsigned_abs() <= task.games;
    let sensible = |couple: &messages::Couple| {
        couple.changes.len() == 2 * task.rules as usize
            && couple.changes.iter().all(within)
            && couple.draws <= task.games
            && couple.points.unsigned_abs() <= task.games - couple.draws
            && couple.rule_moves <= couple.moves
            && couple.moves <= task.games * CELLS as u32
    };
    match output.couples.iter().position(|couple| !sensible(couple)) {
        Some(couple) => refuse(format!("the result of couple {couple} is impossible")),
        None => Ok(()),
    }
}

impl From<Played> for messages::Couple {
    fn from(played: Played) -> Self {
        let Tally { points, draws, moves, rule_moves } = played.tally;
        Self { points, draws, moves, rule_moves, changes: played.changes.concat() }
    }
}

impl From<&messages::Couple> for Played {
    fn from(couple: &messages::Couple) -> Self {
        let messages::Couple { points, draws, moves, rule_moves, .. } = *couple;
        let (one, two) = couple.changes.split_at(couple.changes.len() / 2);
        Self { tally: Tally { points, draws, moves, rule_moves }, changes: [one.to_vec(), two.to_vec()] }
    }
}

/// Settings with few agents, so that cycles are fast.
const SMALL: &str = "agents = 8\nrules = 40\ngames = 3\nmutation = 0.1\n";
/// Every option, with a value that is not its default.
const EVERY: &str = "mutations = \"clustered\"\ncluster = 0.5\nselection = \"ends\"\nparents = \"by-weight\"\n\
    players = \"by-weight\"\ninherit = \"heavier\"\nidentical_parents = \"mutate\"\nsimilar = \"penalise\"\n\
    similar_share = 0.3\nsimilar_penalty = 2\nknowledge = \"shared\"\ngenerator = \"rigged\"\nrigged_share = 0.7\n\
    random_rules = \"alike\"\nrepeated = \"replace\"\nweak = \"replace\"\nweak_weight = -2\n\
    weak_at_times = \"replace\"\nweak_cycles = 2\nweak_at_times_weight = 0\nagent_weights = \"cycle\"\n\
    newborn = \"parents\"\ninherited_weights = \"zero\"\n";

/// Cycles with the default options, and with every option changed.
fn cycles_workload() -> Vec<CyclesTask> {
    let stream = Stream::root(0).text("signature");
    let task = |text: String| {
        let values = SCHEMA.read(&text).expect("good settings");
        let agents = Population::start(&Settings::of(&values), stream).agents;
        CyclesTask {
            settings: values.to_text(),
            stream_high: stream.high(),
            stream_low: stream.low(),
            first_cycle: 0,
            cycles: 6,
            agents: Some(write_agents(agents.iter())),
        }
    };
    vec![task(SMALL.into()), task([SMALL, EVERY].concat())]
}

/// Couples of agents. Half of the agents' rules are rigged.
fn couples_workload() -> CouplesTask {
    let stream = Stream::root(0).text("signature");
    let text = [SMALL, "generator = \"rigged\"\nrigged_share = 0.5\n"].concat();
    let settings = Settings::of(&SCHEMA.read(&text).expect("good settings"));
    let players = Population::start(&settings, stream).agents;
    CouplesTask {
        stream_high: stream.high(),
        stream_low: stream.low(),
        first_couple: 1,
        games: 20,
        rules: 40,
        players: Some(write_agents(players.iter())),
    }
}

#[cfg(test)]
mod tests;
