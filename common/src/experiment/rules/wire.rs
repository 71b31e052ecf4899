//! The tasks of `rules`: whole cycles, or couples of one cycle; and how agents and options travel.

use evoxo_proto::v1::{
    RulesAgents, RulesCouple, RulesCouplesOutput, RulesCouplesTask, RulesCycle, RulesCyclesOutput, RulesCyclesTask,
    RulesOptions, RulesShare, RulesSimilar, Task, rules_options, task,
};

use super::{
    agent::{Agent, RULES_MAX},
    couple::Tally,
    options::{Coupling, Inherit, Options, Selection, Similar},
    population::{Played, Population, Report, cycles, play},
    rule::{CELLS, Rule, SOUGHT, Source},
    settings::{AGENTS_MAX, GAMES_MAX, WEIGHT_MAX},
};
use crate::{evolve::mutate::is_chain, ratio::Ratio, rng::Stream, task::Refusal};

/// Cycles of one task, at most.
pub const CYCLES_MAX: u32 = 10_000;
const SHARE_DENOMINATOR_MAX: u32 = 1_000_000;
const PENALTY_MAX: u32 = 1_000_000;

fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(sentence.into()))
}

fn write_share(share: Ratio) -> RulesShare {
    RulesShare { numerator: share.numerator() as u32, denominator: share.denominator() as u32 }
}

fn read_share(share: Option<&RulesShare>) -> Result<Ratio, Refusal> {
    match share {
        Some(share)
            if (1..=SHARE_DENOMINATOR_MAX).contains(&share.denominator) && share.numerator <= share.denominator =>
        {
            Ok(Ratio::new(share.numerator.into(), share.denominator.into()))
        }
        Some(share) => refuse(format!("{}/{} is not a share from 0 to 1", share.numerator, share.denominator)),
        None => refuse("a share is missing among the options"),
    }
}

/// Options as they travel; [`read_options`] is the inverse.
#[must_use]
pub fn write_options(options: &Options) -> RulesOptions {
    RulesOptions {
        agents: options.agents as u32,
        rules: options.rules as u32,
        games: options.games,
        mutation: Some(write_share(options.mutation)),
        cluster: options.cluster.map(write_share),
        selection: match options.selection {
            Selection::Half => rules_options::Selection::Half,
            Selection::Tenth => rules_options::Selection::Tenth,
            Selection::Fifth => rules_options::Selection::Fifth,
            Selection::Ends => rules_options::Selection::Ends,
        }
        .into(),
        parents_by_weight: options.parents == Coupling::ByWeight,
        players_by_weight: options.players == Coupling::ByWeight,
        inherit_heavier: options.inherit == Inherit::Heavier,
        identical_parents_mutate: options.identical_parents_mutate,
        similar: options
            .similar
            .map(|similar| RulesSimilar { share: Some(write_share(similar.share)), penalty: similar.penalty as u32 }),
        shared_knowledge: options.shared_knowledge,
        rigged: Some(write_share(options.source.rigged)),
        all_alike: options.source.alike,
        replace_repeated: options.replace_repeated,
        weak_weight: options.weak,
        weak_cycles: options.weak_at_times.map_or(0, |(cycles, _)| cycles),
        weak_at_times_weight: options.weak_at_times.map_or(0, |(_, weight)| weight),
        weights_of_last_cycle: !options.accumulate,
        newborn_as_parents: options.newborn_as_parents,
        inherited_weights_zero: !options.keep_weights,
    }
}

/// Reads options that came from elsewhere.
///
/// # Errors
/// A sentence if they make no sense.
pub fn read_options(options: &RulesOptions) -> Result<Options, Refusal> {
    let coupling = |by_weight| if by_weight { Coupling::ByWeight } else { Coupling::Random };
    let similar = |similar: &RulesSimilar| -> Result<Similar, Refusal> {
        match similar.penalty {
            0..=PENALTY_MAX => {
                Ok(Similar { share: read_share(similar.share.as_ref())?, penalty: similar.penalty as i32 })
            }
            penalty => refuse(format!("a penalty of {penalty} for similar agents, more than {PENALTY_MAX}")),
        }
    };
    let options = Options {
        agents: options.agents as usize,
        rules: options.rules as usize,
        games: options.games,
        mutation: read_share(options.mutation.as_ref())?,
        cluster: options.cluster.as_ref().map(|share| read_share(Some(share))).transpose()?,
        selection: match options.selection() {
            rules_options::Selection::Half => Selection::Half,
            rules_options::Selection::Tenth => Selection::Tenth,
            rules_options::Selection::Fifth => Selection::Fifth,
            rules_options::Selection::Ends => Selection::Ends,
            rules_options::Selection::Unspecified => return refuse("the options do not say who become parents"),
        },
        parents: coupling(options.parents_by_weight),
        players: coupling(options.players_by_weight),
        inherit: if options.inherit_heavier { Inherit::Heavier } else { Inherit::Alternately },
        identical_parents_mutate: options.identical_parents_mutate,
        similar: options.similar.as_ref().map(similar).transpose()?,
        shared_knowledge: options.shared_knowledge,
        source: Source { rigged: read_share(options.rigged.as_ref())?, alike: options.all_alike },
        replace_repeated: options.replace_repeated,
        weak: options.weak_weight,
        weak_at_times: (options.weak_cycles > 0).then_some((options.weak_cycles, options.weak_at_times_weight)),
        accumulate: !options.weights_of_last_cycle,
        newborn_as_parents: options.newborn_as_parents,
        keep_weights: !options.inherited_weights_zero,
    };
    if !(4..=AGENTS_MAX).contains(&options.agents) || !options.agents.is_multiple_of(2) {
        return refuse(format!("{} agents: give an even number from 4 to {AGENTS_MAX}", options.agents));
    }
    if options.cluster.is_some_and(|again| !is_chain(options.mutation, again)) {
        return refuse("mutations cannot be clustered so little: their rate cannot be reached");
    }
    check_sizes(options.rules, options.games)?;
    Ok(options)
}

fn check_sizes(rules: usize, games: u32) -> Result<(), Refusal> {
    if !(1..=RULES_MAX).contains(&rules) || !(1..=GAMES_MAX).contains(&games) {
        return refuse(format!("{rules} rules and {games} games: give 1 to {RULES_MAX} and 1 to {GAMES_MAX}"));
    }
    Ok(())
}

/// Agents as they travel; [`read_agents`] is the inverse.
pub fn write_agents<'a>(agents: impl Iterator<Item = &'a Agent> + Clone) -> RulesAgents {
    let rules: Vec<u8> =
        agents.clone().flat_map(|agent| &agent.rules).flat_map(|rule| rule.code().to_le_bytes()).collect();
    RulesAgents {
        rules: rules.into(),
        rule_weights: agents.clone().flat_map(|agent| &agent.weights).copied().collect(),
        agent_weights: agents.map(|agent| agent.weight).collect(),
    }
}

/// Reads agents that came from elsewhere: so many, with so many rules each.
///
/// # Errors
/// A sentence if they are others or no agents.
pub fn read_agents(written: Option<&RulesAgents>, count: usize, rules: usize) -> Result<Vec<Agent>, Refusal> {
    let Some(written) = written else { return refuse("the agents are missing") };
    let mut weights = written.rule_weights.iter().chain(&written.agent_weights);
    let lengths = [written.rules.len(), written.rule_weights.len(), written.agent_weights.len()];
    if lengths != [4 * count * rules, count * rules, count] {
        return refuse(format!("not {count} agents of {rules} rules each"));
    }
    if let Some(weight) = weights.find(|weight| weight.unsigned_abs() > WEIGHT_MAX as u32) {
        return refuse(format!("a weight of {weight}, which no games can lead to"));
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
/// A sentence if the task makes no sense.
pub fn run_cycles(task: &RulesCyclesTask) -> Result<RulesCyclesOutput, Refusal> {
    let Some(options) = &task.options else { return refuse("the options are missing") };
    let options = read_options(options)?;
    let games = options.agents as u64 / 2 * u64::from(options.games) * u64::from(task.cycles);
    let end = task.first_cycle.checked_add(task.cycles);
    let (1..=CYCLES_MAX, Some(end), 0..=0x3fff_ffff) = (task.cycles, end, games) else {
        return refuse(format!(
            "{} cycles after {} with {games} games: at most {CYCLES_MAX} and {WEIGHT_MAX} games in one task",
            task.cycles, task.first_cycle
        ));
    };
    let agents = read_agents(task.agents.as_ref(), options.agents, options.rules)?;
    let mut population = Population { agents, found: 0 };
    let replica = Stream::from_words(task.stream_high, task.stream_low);
    let reports = cycles(&mut population, &options, replica, task.first_cycle..end);
    Ok(RulesCyclesOutput {
        agents: Some(write_agents(population.agents.iter())),
        cycles: reports.into_iter().map(RulesCycle::from).collect(),
    })
}

/// Checks that an output has the shape of an answer to a task.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn check_cycles(task: &RulesCyclesTask, output: &RulesCyclesOutput) -> Result<(), Refusal> {
    let (agents, rules, games) =
        task.options.as_ref().map_or((0, 0, 0), |options| (options.agents, options.rules, options.games));
    read_agents(output.agents.as_ref(), agents as usize, rules as usize)?;
    if output.cycles.len() != task.cycles as usize {
        return refuse(format!("{} cycles are reported, not {}", output.cycles.len(), task.cycles));
    }
    let games = agents / 2 * games;
    let sensible = |cycle: &RulesCycle| {
        cycle.draws <= games
            && cycle.rule_moves <= cycle.moves
            && cycle.moves <= games * CELLS as u32
            && (0.0..=1.0 + 1e-9).contains(&cycle.strength)
            && cycle.alive >> SOUGHT == 0
            && cycle.good <= agents * rules
    };
    if let Some(cycle) = output.cycles.iter().position(|cycle| !sensible(cycle)) {
        return refuse(format!("the report of cycle {} makes no sense", u64::from(task.first_cycle) + cycle as u64));
    }
    Ok(())
}

impl From<Report> for RulesCycle {
    fn from(report: Report) -> Self {
        let Report { moves, rule_moves, draws, strength, best, alive, good } = report;
        Self { moves, rule_moves, draws, strength, best, alive, good }
    }
}

impl From<&RulesCycle> for Report {
    fn from(cycle: &RulesCycle) -> Self {
        let RulesCycle { moves, rule_moves, draws, strength, best, alive, good } = *cycle;
        Self { moves, rule_moves, draws, strength, best, alive, good }
    }
}

/// Plays the couples of a task.
///
/// # Errors
/// A sentence if the task makes no sense.
pub fn run_couples(task: &RulesCouplesTask) -> Result<RulesCouplesOutput, Refusal> {
    check_sizes(task.rules as usize, task.games)?;
    let count = task.players.as_ref().map_or(0, |players| players.agent_weights.len());
    if count == 0 || count > AGENTS_MAX || !count.is_multiple_of(2) {
        return refuse(format!("{count} players: give 1 to {} couples", AGENTS_MAX / 2));
    }
    let players = read_agents(task.players.as_ref(), count, task.rules as usize)?;
    let stream = Stream::from_words(task.stream_high, task.stream_low);
    let couples = players.as_chunks::<2>().0.iter().zip(u64::from(task.first_couple)..);
    let couples = couples.map(|([one, two], number)| play([one, two], task.games, stream, number).into());
    Ok(RulesCouplesOutput { couples: couples.collect() })
}

/// Checks that an output has the shape of an answer to a task.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn check_couples(task: &RulesCouplesTask, output: &RulesCouplesOutput) -> Result<(), Refusal> {
    let couples = task.players.as_ref().map_or(0, |players| players.agent_weights.len() / 2);
    if output.couples.len() != couples {
        return refuse(format!("{} couples, not {couples}", output.couples.len()));
    }
    let within = |change: &i32| change.unsigned_abs() <= task.games;
    let sensible = |couple: &RulesCouple| {
        couple.changes.len() == 2 * task.rules as usize
            && couple.changes.iter().all(within)
            && couple.draws <= task.games
            && couple.points.unsigned_abs() <= task.games - couple.draws
            && couple.rule_moves <= couple.moves
            && couple.moves <= task.games * CELLS as u32
    };
    match output.couples.iter().position(|couple| !sensible(couple)) {
        Some(couple) => refuse(format!("what came of couple {couple} makes no sense")),
        None => Ok(()),
    }
}

impl From<Played> for RulesCouple {
    fn from(played: Played) -> Self {
        let Tally { points, draws, moves, rule_moves } = played.tally;
        Self { points, draws, moves, rule_moves, changes: played.changes.concat() }
    }
}

impl From<&RulesCouple> for Played {
    fn from(couple: &RulesCouple) -> Self {
        let RulesCouple { points, draws, moves, rule_moves, .. } = *couple;
        let (one, two) = couple.changes.split_at(couple.changes.len() / 2);
        Self { tally: Tally { points, draws, moves, rule_moves }, changes: [one.to_vec(), two.to_vec()] }
    }
}

/// The fixed workloads behind the behaviour signature: cycles with all options, and couples.
#[must_use]
pub fn workloads() -> [Vec<Task>; 2] {
    let share = |numerator| Ratio::new(numerator, 10);
    let plain = Options {
        agents: 8,
        rules: 40,
        games: 3,
        mutation: share(1),
        cluster: None,
        selection: Selection::Half,
        parents: Coupling::Random,
        players: Coupling::Random,
        inherit: Inherit::Alternately,
        identical_parents_mutate: false,
        similar: None,
        shared_knowledge: false,
        source: Ratio::ZERO.into(),
        replace_repeated: false,
        weak: None,
        weak_at_times: None,
        accumulate: true,
        newborn_as_parents: false,
        keep_weights: true,
    };
    let every = Options {
        cluster: Some(share(5)),
        selection: Selection::Ends,
        parents: Coupling::ByWeight,
        players: Coupling::ByWeight,
        inherit: Inherit::Heavier,
        identical_parents_mutate: true,
        similar: Some(Similar { share: share(3), penalty: 2 }),
        shared_knowledge: true,
        source: Source { rigged: share(7), alike: true },
        replace_repeated: true,
        weak: Some(-2),
        weak_at_times: Some((2, 0)),
        accumulate: false,
        newborn_as_parents: true,
        keep_weights: false,
        ..plain
    };
    let stream = Stream::root(0).text("signature");
    let whole = |options: Options| {
        let agents = Population::start(&options, stream).agents;
        let task = RulesCyclesTask {
            options: Some(write_options(&options)),
            stream_high: stream.high(),
            stream_low: stream.low(),
            first_cycle: 0,
            cycles: 6,
            agents: Some(write_agents(agents.iter())),
        };
        task::Work::RulesCycles(task).into()
    };
    let players = Population::start(&Options { source: share(5).into(), ..plain }, stream).agents;
    let couples = RulesCouplesTask {
        stream_high: stream.high(),
        stream_low: stream.low(),
        first_couple: 1,
        games: 20,
        rules: 40,
        players: Some(write_agents(players.iter())),
    };
    [vec![task::Work::RulesCouples(couples).into()], vec![whole(plain), whole(every)]]
}

#[cfg(test)]
mod tests;
