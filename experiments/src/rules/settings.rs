//! The settings of `rules`. The page describes its options in words. Where it gives no number, the default is our choice.

use evoxo_common::{choice, evolve::mutate::is_chain, ratio::Ratio, settings};

use super::{
    agent::RULES_MAX,
    rule::{RandomRules, Source},
};

/// The most agents of a population.
pub const AGENTS_MAX: u64 = 1000;
/// The most rules of all agents together. A population of this size, with its weights, fits in a task of 8 MiB.
pub const POPULATION_RULES_MAX: usize = 800_000;
/// The most games of a couple in a cycle.
pub const GAMES_MAX: u64 = 1000;
/// The most cycles.
pub const CYCLES_MAX: u64 = 1_000_000;
/// The most cycles of a task.
pub const CYCLES_PER_TASK_MAX: u64 = 10_000;
/// The greatest absolute weight: more than the number of all games of a run.
pub const WEIGHT_MAX: i32 = (1 << 30) - 1;

choice! {
    /// How mutations are spread over a child's rules.
    pub enum Mutations {
        /// each rule independently
        Independent = "independent",
        /// in runs: a mutation makes the next rule's mutation more likely, but the total share stays the same (a Markov chain
        /// along the list)
        Clustered = "clustered",
    }
}

choice! {
    /// Which agents survive and become parents, best first. Their children replace all others.
    pub enum Selection {
        /// the best 50 %; their children are the other 50 %
        Half = "half",
        /// the best 10 %; their children are the other 90 %
        Tenth = "tenth",
        /// the best 20 %; their children are the other 80 %
        Fifth = "fifth",
        /// the best 40 % and the worst 10 %; their children are the other 50 %
        Ends = "ends",
    }
}

choice! {
    /// How agents are paired.
    pub enum Pairing {
        /// at random
        Random = "random",
        /// the heaviest with the next heaviest, and so on
        ByWeight = "by-weight",
    }
}

choice! {
    /// Which parent's rule a child inherits at each place of its list.
    pub enum Inherit {
        /// the mother's, the father's, the mother's, ...; the second child gets the other ones
        Alternately = "alternately",
        /// at each place the heavier one, or alternately if both weigh the same
        Heavier = "heavier",
    }
}

choice! {
    /// What happens to the children of two parents with the same rules.
    pub enum IdenticalParents {
        /// the same as to other children
        AsOthers = "as-others",
        /// all rules of the children are new
        Mutate = "mutate",
    }
}

choice! {
    /// What happens to an agent if a very similar agent ranks higher.
    pub enum Similar {
        /// nothing
        Ignore = "ignore",
        /// its weight is reduced when the agents are sorted
        Penalise = "penalise",
    }
}

choice! {
    /// Which rules learn from a game.
    pub enum Knowledge {
        /// only the rules of the two agents that played it
        Own = "own",
        /// at the end of a cycle, all equal rules of the population learn what any of them learned
        Shared = "shared",
    }
}

choice! {
    /// How new rules are drawn.
    pub enum NewRules {
        /// any rule, drawn as random_rules says
        Random = "random",
        /// some rules have two P or two C, and a V to move to, on any cells, with * elsewhere
        Rigged = "rigged",
    }
}

choice! {
    /// What happens to such rules.
    pub enum Fate {
        /// they stay
        Keep = "keep",
        /// new rules replace them
        Replace = "replace",
    }
}

choice! {
    /// What an agent's weight counts.
    pub enum AgentWeights {
        /// the points of all cycles since its birth
        Accumulate = "accumulate",
        /// the points of only the last cycle
        Cycle = "cycle",
    }
}

choice! {
    /// The weight of a new agent.
    pub enum Newborn {
        /// 0
        Zero = "zero",
        /// the mean of its parents' weights, rounded towards 0
        Parents = "parents",
    }
}

choice! {
    /// The weight of an inherited rule.
    pub enum InheritedWeights {
        /// the weight of the parent's rule
        Keep = "keep",
        /// 0
        Zero = "zero",
    }
}

choice! {
    /// What one task computes.
    pub enum Farming {
        /// whole cycles
        Cycles = "cycles",
        /// couples of one cycle; the coordinator computes the rest
        Couples = "couples",
    }
}

settings! {
    /// Agents made of rules ("if I see this board, I move there") learn 3x3 tic-tac-toe from games among themselves. Rules
    /// that won gain weight, and the better agents have children with rules of both parents.
    pub struct Settings, names Name, schema SCHEMA {
        /// Number of agents, which must be even. The page: 40.
        agents: usize = whole(4, AGENTS_MAX, "40"),
        /// Rules per agent. The page: 100.
        rules: usize = whole(1, RULES_MAX as u64, "100"),
        /// Games per couple in each cycle. The page: 5.
        games: u32 = whole(1, GAMES_MAX, "5"),
        /// Number of cycles. Each has games and then births. The page: 500, which took more than a day.
        cycles: u32 = length whole(1, CYCLES_MAX, "500"),
        /// The probability that a child's rule is new instead of inherited. Our choice.
        mutation: Ratio = decimal(0, 1, "0.01"),
        /// How mutations are spread over a child's rules.
        mutations: Mutations = choice("independent"),
        /// The probability that the rule after a mutated one is mutated too. Our choice.
        cluster: Ratio = decimal(0, 1, "0.5") when mutations is ["clustered"],
        /// Which agents survive and become parents. Their number is rounded down to an even number, but is at least two.
        selection: Selection = choice("half"),
        /// How parents are paired.
        parents: Pairing = choice("random"),
        /// How players are paired.
        players: Pairing = choice("random"),
        /// Which parent's rule a child inherits at each place of its list.
        inherit: Inherit = choice("alternately"),
        /// What happens to the children of two parents with the same rules.
        identical_parents: IdenticalParents = choice("as-others"),
        /// What happens to an agent if a very similar agent ranks higher.
        similar: Similar = choice("ignore"),
        /// Agents are very similar if at least this share of places have the same rules. Our choice.
        similar_share: Ratio = decimal(0, 1, "0.9") when similar not ["ignore"],
        /// The amount by which the weight is reduced. Our choice.
        similar_penalty: i32 = whole(0, 1_000_000, "5") when similar not ["ignore"],
        /// Which rules learn from a game.
        knowledge: Knowledge = choice("own"),
        /// How new rules are drawn.
        generator: NewRules = choice("random"),
        /// The share of rigged rules among new rules. Our choice.
        rigged_share: Ratio = decimal(0, 1, "0.5") when generator is ["rigged"],
        /// How random rules are drawn. The first two choices are readings, because the page says only that rules are always
        /// valid.
        random_rules: RandomRules = choice("letters-first"),
        /// What happens, before the games of a cycle, to rules that an agent has twice. Random rules hardly ever coincide, so
        /// this matters only with generator = "rigged".
        repeated: Fate = choice("keep"),
        /// What happens to rules of low weight before every cycle except the first.
        weak: Fate = choice("keep"),
        /// Rules with at most this weight count as low. Our choice.
        weak_weight: i32 = signed(-1_000_000, 1_000_000, "0") when weak is ["replace"],
        /// What happens to rules of low weight once every weak_cycles cycles.
        weak_at_times: Fate = choice("keep"),
        /// The number of cycles between these replacements. Our choice.
        weak_cycles: u32 = whole(1, CYCLES_MAX, "10") when weak_at_times is ["replace"],
        /// Rules with at most this weight are replaced then. Our choice.
        weak_at_times_weight: i32 = signed(-1_000_000, 1_000_000, "0") when weak_at_times is ["replace"],
        /// What an agent's weight counts. A reading: the page does not say.
        agent_weights: AgentWeights = choice("accumulate"),
        /// The weight of a new agent. A reading: the page does not say.
        newborn: Newborn = choice("zero"),
        /// The weight of an inherited rule. A reading: the page does not say.
        inherited_weights: InheritedWeights = choice("keep"),
        /// What one task computes.
        farming: Farming = execution choice("cycles"),
        /// Cycles per task.
        cycles_per_task: u32 = execution whole(1, CYCLES_PER_TASK_MAX, "100") when farming is ["cycles"],
        /// Couples per task.
        couples_per_task: usize = execution whole(1, AGENTS_MAX / 2, "10") when farming is ["couples"],
    }
    check(check)
    notes(notes)
}

/// Settings that have hardly any effect in combination with the others.
fn notes(settings: &Settings) -> Vec<String> {
    let idle = settings.repeated == Fate::Replace && settings.generator != NewRules::Rigged;
    let sentence = "repeated = \"replace\" hardly ever changes anything without generator = \"rigged\": random rules are \
        hardly ever the same";
    if idle { vec![sentence.into()] } else { Vec::new() }
}

fn check(settings: &Settings) -> Vec<(Name, String)> {
    let mut problems = Vec::new();
    let Settings { agents, games, cycles, mutation: rate, cluster: again, .. } = *settings;
    if !agents.is_multiple_of(2) {
        problems.push((Name::agents, format!("agents is {agents}, but they play in couples: give an even number")));
    }
    let rules = agents * settings.rules;
    if rules > POPULATION_RULES_MAX {
        let sentence =
            format!("{rules} rules of all agents are more than {POPULATION_RULES_MAX}: lower rules or agents");
        problems.push((Name::rules, sentence));
    }
    let games = agents as u64 / 2 * u64::from(games) * u64::from(cycles);
    if games > WEIGHT_MAX as u64 {
        problems
            .push((Name::cycles, format!("{games} games are more than {WEIGHT_MAX}: lower cycles, games or agents")));
    }
    if settings.mutations == Mutations::Clustered && !is_chain(rate, again) {
        let sentence = format!("with cluster {} a mutation of {} cannot be reached", again.to_f64(), rate.to_f64());
        problems.push((Name::cluster, sentence));
    }
    problems
}

impl Settings {
    /// How new rules are drawn.
    #[must_use]
    pub fn source(&self) -> Source {
        let rigged = if self.generator == NewRules::Rigged { self.rigged_share } else { Ratio::ZERO };
        Source { rigged, random: self.random_rules }
    }

    /// The weight at or below which rules are replaced before this cycle (counted from 0); `None` if no rules are replaced.
    #[must_use]
    pub fn weak_weight_before(&self, cycle: u32) -> Option<i32> {
        let always = (self.weak == Fate::Replace).then_some(self.weak_weight);
        let its_turn = self.weak_at_times == Fate::Replace && cycle.is_multiple_of(self.weak_cycles);
        always.max(its_turn.then_some(self.weak_at_times_weight)).filter(|_| cycle > 0)
    }

    /// How many of the best and of the worst agents become parents. The sum is even and at least two.
    #[must_use]
    pub fn parents_count(&self) -> (usize, usize) {
        let even = |tenths: usize| (self.agents * tenths / 10 / 2 * 2).max(2);
        match self.selection {
            Selection::Half => (even(5), 0),
            Selection::Tenth => (even(1), 0),
            Selection::Fifth => (even(2), 0),
            Selection::Ends => {
                let worst = (self.agents / 10).max(1);
                (even(5) - worst, worst)
            }
        }
    }
}
