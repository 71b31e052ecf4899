//! What `rules` can be told. The page describes its options in words; where it gives no figure, the default is ours.

use super::{
    agent::RULES_MAX,
    options::{Coupling, Inherit, Options, Selection, Similar},
    rule::Source,
};
use crate::{
    config::{Field, Schema, Scope, Shape, Values},
    evolve::mutate::is_chain,
    ratio::Ratio,
};

/// Agents of a population, at most.
pub const AGENTS_MAX: usize = 1000;
/// Games of a couple in a cycle, at most.
pub const GAMES_MAX: u32 = 1000;
/// Cycles, at most.
pub const CYCLES_MAX: u32 = 1_000_000;
/// The most a weight can be away from 0: all games of a run together.
pub const WEIGHT_MAX: i32 = (1 << 30) - 1;

const fn integer(name: &'static str, min: u64, max: u64, default: &'static str, doc: &'static str) -> Field {
    Field { name, doc, shape: Shape::Integer { min, max }, default, scope: Scope::What }
}

const fn decimal(name: &'static str, min: i64, max: i64, default: &'static str, doc: &'static str) -> Field {
    Field { name, doc, shape: Shape::Decimal { min, max }, default, scope: Scope::What }
}

const fn signed(name: &'static str, min: i64, max: i64, default: &'static str, doc: &'static str) -> Field {
    Field { name, doc, shape: Shape::Signed { min, max }, default, scope: Scope::What }
}

const fn choice(name: &'static str, choices: &'static [(&'static str, &'static str)], doc: &'static str) -> Field {
    Field { name, doc, shape: Shape::Choice(choices), default: choices[0].0, scope: Scope::What }
}

const fn how(field: Field) -> Field {
    Field { scope: Scope::How, ..field }
}

const COUPLING: &[(&str, &str)] = &[("random", "by lot"), ("by-weight", "the heaviest with the next, and so on")];
const KEEP_OR_REPLACE: &[(&str, &str)] = &[("keep", "they stay"), ("replace", "new rules take their place")];

/// The settings.
pub static SCHEMA: Schema = Schema {
    summary: "Agents made of rules (\"if I see this board, I move there\") that learn 3x3 tic-tac-toe from games among \
              themselves: rules that won gain weight, the better agents have children with the rules of both parents.",
    fields: &[
        integer("agents", 4, AGENTS_MAX as u64, "40", "Agents; an even number. The page: 40."),
        integer("rules", 1, RULES_MAX as u64, "100", "Rules of an agent. The page: 100."),
        integer("games", 1, GAMES_MAX as u64, "5", "Games that a couple plays in a cycle. The page: 5."),
        integer("cycles", 1, CYCLES_MAX as u64, "500", "Cycles of games and births. The page: 500, more than a day."),
        decimal(
            "mutation",
            0,
            1,
            "0.01",
            "The probability that a child has a new rule instead of an inherited one. The figure is ours.",
        ),
        choice(
            "mutations",
            &[
                ("independent", "each rule on its own"),
                ("clustered", "more likely beside another one, as often overall: a Markov chain along the list"),
            ],
            "How mutations are spread over a child's rules.",
        ),
        decimal("cluster", 0, 1, "0.5", "The probability that a clustered mutation follows a mutation. Ours."),
        choice(
            "selection",
            &[
                ("half", "the best 50 %; their children are the other 50 %"),
                ("tenth", "the best 10 %; their children are the other 90 %"),
                ("fifth", "the best 20 %; their children are the other 80 %"),
                ("ends", "the best 40 % and the worst 10 %; their children are the 50 % between"),
            ],
            "Who live on and become parents (an even number of agents: rounded down, at least two).",
        ),
        choice("parents", COUPLING, "How parents are coupled."),
        choice("players", COUPLING, "How players are coupled."),
        choice(
            "inherit",
            &[
                ("alternately", "mother's, father's, mother's, ...; the second child has the others"),
                ("heavier", "at each place the heavier of the parents' rules; of equals alternately"),
            ],
            "Which rules a child inherits.",
        ),
        choice(
            "identical_parents",
            &[("as-others", "they are parents like others"), ("mutate", "all rules of their children are new")],
            "What becomes of the children of two parents with the same rules.",
        ),
        choice(
            "similar",
            &[("ignore", "nothing"), ("penalise", "its weight counts for less when agents are ordered")],
            "What happens to an agent if a very similar one ranks higher.",
        ),
        decimal(
            "similar_share",
            0,
            1,
            "0.9",
            "Agents are very similar if they have the same rules at this share of places or more. Ours.",
        ),
        integer("similar_penalty", 0, 1_000_000, "5", "By how much its weight counts for less. Ours."),
        choice(
            "knowledge",
            &[
                ("own", "an agent's rules learn from its own games"),
                ("shared", "what a rule has learnt in a cycle goes to every equal rule of the population at its end"),
            ],
            "Who learns from a game.",
        ),
        choice(
            "generator",
            &[
                ("random", "any legal rule, drawn as random_rules says"),
                ("rigged", "some are two P or two C, and a V to move to, anywhere, with * elsewhere"),
            ],
            "Where new rules come from.",
        ),
        decimal("rigged_share", 0, 1, "0.5", "The share of such rules, if rigged. Ours."),
        choice(
            "random_rules",
            &[
                ("letters-first", "nine letters, each equally likely, then a move to any cell that is V or *"),
                ("alike", "all legal rules are equally likely: twice as many match the empty board"),
            ],
            "How random rules are drawn. A reading: the page says only that they are always legal.",
        ),
        choice("repeated", KEEP_OR_REPLACE, "What becomes of rules that an agent has twice, before a cycle's games."),
        choice("weak", KEEP_OR_REPLACE, "What becomes of rules with little weight, before every cycle but the first."),
        signed("weak_weight", -1_000_000, 1_000_000, "0", "Such rules have this weight or less. Ours."),
        choice("weak_at_times", KEEP_OR_REPLACE, "The same before every so many cycles."),
        integer("weak_cycles", 1, CYCLES_MAX as u64, "10", "The number of cycles. Ours."),
        signed("weak_at_times_weight", -1_000_000, 1_000_000, "0", "Such rules have this weight or less. Ours."),
        choice(
            "agent_weights",
            &[("accumulate", "points of all cycles an agent has lived"), ("cycle", "points of the last cycle alone")],
            "What an agent's weight is. A reading: the page does not say.",
        ),
        choice(
            "newborn",
            &[("zero", "0"), ("parents", "the mean of its parents' weights, rounded towards 0")],
            "The weight that an agent is born with. A reading: the page does not say.",
        ),
        choice(
            "inherited_weights",
            &[("keep", "that of the parent's rule"), ("zero", "0")],
            "The weight of an inherited rule. A reading: the page does not say.",
        ),
        how(choice(
            "farming",
            &[
                ("cycles", "a task computes whole cycles"),
                ("couples", "a task plays couples of one cycle; the coordinator does the rest"),
            ],
            "What a task is.",
        )),
        how(integer("cycles_per_task", 1, 10_000, "100", "Cycles of a task, if farmed by cycles.")),
        how(integer("couples_per_task", 1, AGENTS_MAX as u64 / 2, "10", "Couples of a task, if farmed by couples.")),
    ],
    check,
};

fn check(values: &Values) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let agents = values.integer("agents");
    if !agents.is_multiple_of(2) {
        problems.push(("agents", format!("agents is {agents}, but they play in couples: give an even number")));
    }
    let games = agents / 2 * values.integer("games") * values.integer("cycles");
    if games > WEIGHT_MAX as u64 {
        problems.push(("cycles", format!("{games} games are more than {WEIGHT_MAX}: lower cycles, games or agents")));
    }
    let (rate, again) = (values.decimal("mutation"), values.decimal("cluster"));
    if values.choice("mutations") == "clustered" && !is_chain(rate, again) {
        let sentence =
            format!("with a cluster of {} a mutation of {} cannot be reached", again.to_f64(), rate.to_f64());
        problems.push(("cluster", sentence));
    }
    problems
}

impl Options {
    /// The options of a file's settings.
    #[must_use]
    pub fn of(settings: &Values) -> Self {
        let chosen = |name: &str, word: &str| settings.choice(name) == word;
        let coupling = |name: &str| if chosen(name, "random") { Coupling::Random } else { Coupling::ByWeight };
        let whole = |name: &str| settings.decimal(name).numerator() as i32;
        Self {
            agents: settings.integer("agents") as usize,
            rules: settings.integer("rules") as usize,
            games: settings.integer("games") as u32,
            mutation: settings.decimal("mutation"),
            cluster: chosen("mutations", "clustered").then(|| settings.decimal("cluster")),
            selection: match settings.choice("selection") {
                "tenth" => Selection::Tenth,
                "fifth" => Selection::Fifth,
                "ends" => Selection::Ends,
                _ => Selection::Half,
            },
            parents: coupling("parents"),
            players: coupling("players"),
            inherit: if chosen("inherit", "heavier") { Inherit::Heavier } else { Inherit::Alternately },
            identical_parents_mutate: chosen("identical_parents", "mutate"),
            similar: chosen("similar", "penalise").then(|| Similar {
                share: settings.decimal("similar_share"),
                penalty: settings.integer("similar_penalty") as i32,
            }),
            shared_knowledge: chosen("knowledge", "shared"),
            source: Source {
                rigged: if chosen("generator", "rigged") { settings.decimal("rigged_share") } else { Ratio::ZERO },
                alike: chosen("random_rules", "alike"),
            },
            replace_repeated: chosen("repeated", "replace"),
            weak: chosen("weak", "replace").then(|| whole("weak_weight")),
            weak_at_times: chosen("weak_at_times", "replace")
                .then(|| (settings.integer("weak_cycles") as u32, whole("weak_at_times_weight"))),
            accumulate: chosen("agent_weights", "accumulate"),
            newborn_as_parents: chosen("newborn", "parents"),
            keep_weights: chosen("inherited_weights", "keep"),
        }
    }
}
