//! What `rules` can be told. The page describes its options in words; where it gives no figure, the default is ours.

use evoxo_common::{choice, evolve::mutate::is_chain, ratio::Ratio, settings};

use super::{agent::RULES_MAX, rule::Source};

/// Agents of a population, at most.
pub const AGENTS_MAX: u64 = 1000;
/// Games of a couple in a cycle, at most.
pub const GAMES_MAX: u64 = 1000;
/// Cycles, at most.
pub const CYCLES_MAX: u64 = 1_000_000;
/// Cycles of a task, at most.
pub const CYCLES_PER_TASK_MAX: u64 = 10_000;
/// The most a weight can be away from 0: all games of a run together.
pub const WEIGHT_MAX: i32 = (1 << 30) - 1;

choice! {
    /// How mutations are spread over a child's rules.
    pub enum Mutations {
        /// each rule on its own
        Independent = "independent",
        /// more likely beside another one, as often overall: a Markov chain along the list
        Clustered = "clustered",
    }
}

choice! {
    /// Who live on and become parents, best first; the rest of the population gives way to their children.
    pub enum Selection {
        /// the best 50 %; their children are the other 50 %
        Half = "half",
        /// the best 10 %; their children are the other 90 %
        Tenth = "tenth",
        /// the best 20 %; their children are the other 80 %
        Fifth = "fifth",
        /// the best 40 % and the worst 10 %; their children are the 50 % between
        Ends = "ends",
    }
}

choice! {
    /// How agents are taken two by two.
    pub enum Pairing {
        /// by lot
        Random = "random",
        /// the heaviest with the next, and so on
        ByWeight = "by-weight",
    }
}

choice! {
    /// Which parent's rule a child has at each place of its list.
    pub enum Inherit {
        /// mother's, father's, mother's, ...; the second child has the others
        Alternately = "alternately",
        /// at each place the heavier of the parents' rules; of equals alternately
        Heavier = "heavier",
    }
}

choice! {
    /// What becomes of the children of two parents with the same rules.
    pub enum IdenticalParents {
        /// they are parents like others
        AsOthers = "as-others",
        /// all rules of their children are new
        Mutate = "mutate",
    }
}

choice! {
    /// What happens to an agent if a very similar one ranks higher.
    pub enum Similar {
        /// nothing
        Ignore = "ignore",
        /// its weight counts for less when agents are ordered
        Penalise = "penalise",
    }
}

choice! {
    /// Who learns from a game.
    pub enum Knowledge {
        /// an agent's rules learn from its own games
        Own = "own",
        /// what a rule has learnt in a cycle goes to every equal rule of the population at its end
        Shared = "shared",
    }
}

choice! {
    /// Where new rules come from.
    pub enum NewRules {
        /// any legal rule, drawn as random_rules says
        Random = "random",
        /// some are two P or two C, and a V to move to, anywhere, with * elsewhere
        Rigged = "rigged",
    }
}

choice! {
    /// How random rules are drawn.
    pub enum RandomRules {
        /// nine letters, each equally likely, then a move to any cell that is V or *
        LettersFirst = "letters-first",
        /// all legal rules are equally likely: twice as many match the empty board
        Alike = "alike",
    }
}

choice! {
    /// What becomes of some rules.
    pub enum Fate {
        /// they stay
        Keep = "keep",
        /// new rules take their place
        Replace = "replace",
    }
}

choice! {
    /// What an agent's weight is.
    pub enum AgentWeights {
        /// points of all cycles an agent has lived
        Accumulate = "accumulate",
        /// points of the last cycle alone
        Cycle = "cycle",
    }
}

choice! {
    /// The weight that an agent is born with.
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
        /// that of the parent's rule
        Keep = "keep",
        /// 0
        Zero = "zero",
    }
}

choice! {
    /// What a task is.
    pub enum Farming {
        /// a task computes whole cycles
        Cycles = "cycles",
        /// a task plays couples of one cycle; the coordinator does the rest
        Couples = "couples",
    }
}

settings! {
    /// Agents made of rules ("if I see this board, I move there") that learn 3x3 tic-tac-toe from games among themselves:
    /// rules that won gain weight, the better agents have children with the rules of both parents.
    pub struct Settings, names Name, schema SCHEMA {
        /// Agents; an even number. The page: 40.
        agents: usize = whole(4, AGENTS_MAX, "40"),
        /// Rules of an agent. The page: 100.
        rules: usize = whole(1, RULES_MAX as u64, "100"),
        /// Games that a couple plays in a cycle. The page: 5.
        games: u32 = whole(1, GAMES_MAX, "5"),
        /// Cycles of games and births. The page: 500, more than a day.
        cycles: u32 = whole(1, CYCLES_MAX, "500"),
        /// The probability that a child has a new rule instead of an inherited one. The figure is ours.
        mutation: Ratio = decimal(0, 1, "0.01"),
        /// How mutations are spread over a child's rules.
        mutations: Mutations = choice("independent"),
        /// The probability that a clustered mutation follows a mutation. Ours.
        cluster: Ratio = decimal(0, 1, "0.5"),
        /// Who live on and become parents (an even number of agents: rounded down, at least two).
        selection: Selection = choice("half"),
        /// How parents are coupled.
        parents: Pairing = choice("random"),
        /// How players are coupled.
        players: Pairing = choice("random"),
        /// Which rules a child inherits.
        inherit: Inherit = choice("alternately"),
        /// What becomes of the children of two parents with the same rules.
        identical_parents: IdenticalParents = choice("as-others"),
        /// What happens to an agent if a very similar one ranks higher.
        similar: Similar = choice("ignore"),
        /// Agents are very similar if they have the same rules at this share of places or more. Ours.
        similar_share: Ratio = decimal(0, 1, "0.9"),
        /// By how much its weight counts for less. Ours.
        similar_penalty: i32 = whole(0, 1_000_000, "5"),
        /// Who learns from a game.
        knowledge: Knowledge = choice("own"),
        /// Where new rules come from.
        generator: NewRules = choice("random"),
        /// The share of such rules, if rigged. Ours.
        rigged_share: Ratio = decimal(0, 1, "0.5"),
        /// How random rules are drawn. A reading: the page says only that they are always legal.
        random_rules: RandomRules = choice("letters-first"),
        /// What becomes of rules that an agent has twice, before a cycle's games. Without generator = "rigged" it hardly ever
        /// changes anything, because random rules are hardly ever the same.
        repeated: Fate = choice("keep"),
        /// What becomes of rules with little weight, before every cycle but the first.
        weak: Fate = choice("keep"),
        /// Such rules have this weight or less. Ours.
        weak_weight: i32 = signed(-1_000_000, 1_000_000, "0"),
        /// What becomes of rules with little weight from time to time, once in weak_cycles cycles.
        weak_at_times: Fate = choice("keep"),
        /// The number of cycles from one such time to the next. Ours.
        weak_cycles: u32 = whole(1, CYCLES_MAX, "10"),
        /// Such rules have this weight or less. Ours.
        weak_at_times_weight: i32 = signed(-1_000_000, 1_000_000, "0"),
        /// What an agent's weight is. A reading: the page does not say.
        agent_weights: AgentWeights = choice("accumulate"),
        /// The weight that an agent is born with. A reading: the page does not say.
        newborn: Newborn = choice("zero"),
        /// The weight of an inherited rule. A reading: the page does not say.
        inherited_weights: InheritedWeights = choice("keep"),
        /// What a task is.
        farming: Farming = execution choice("cycles"),
        /// Cycles of a task, if farmed by cycles.
        cycles_per_task: u32 = execution whole(1, CYCLES_PER_TASK_MAX, "100"),
        /// Couples of a task, if farmed by couples.
        couples_per_task: usize = execution whole(1, AGENTS_MAX / 2, "10"),
    }
    check(check)
    notes(notes)
}

/// Settings that have hardly any effect beside the others.
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
    let games = agents as u64 / 2 * u64::from(games) * u64::from(cycles);
    if games > WEIGHT_MAX as u64 {
        problems
            .push((Name::cycles, format!("{games} games are more than {WEIGHT_MAX}: lower cycles, games or agents")));
    }
    if settings.mutations == Mutations::Clustered && !is_chain(rate, again) {
        let sentence =
            format!("with a cluster of {} a mutation of {} cannot be reached", again.to_f64(), rate.to_f64());
        problems.push((Name::cluster, sentence));
    }
    problems
}

impl Settings {
    /// Where new rules come from.
    #[must_use]
    pub fn source(&self) -> Source {
        let rigged = if self.generator == NewRules::Rigged { self.rigged_share } else { Ratio::ZERO };
        Source { rigged, alike: self.random_rules == RandomRules::Alike }
    }

    /// The weight at or below which rules are replaced before this cycle, counted from 0, if any are.
    #[must_use]
    pub fn weak_weight_before(&self, cycle: u32) -> Option<i32> {
        let always = (self.weak == Fate::Replace).then_some(self.weak_weight);
        let its_turn = self.weak_at_times == Fate::Replace && cycle.is_multiple_of(self.weak_cycles);
        always.max(its_turn.then_some(self.weak_at_times_weight)).filter(|_| cycle > 0)
    }

    /// How many of the best and how many of the worst become parents: together an even number, at least two.
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
