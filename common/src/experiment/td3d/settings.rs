//! What `td3d` can be told.

use super::{
    segment::{GAMES_MAX, TEST_GAMES_MAX, TESTS_MAX, TRIAL_GAMES_MAX},
    wire::check_network,
};
use crate::{
    board::Shape as Grid,
    config::{Field, Schema, Scope, Shape, Values},
    net::{
        Activation, Architecture, First,
        learn::{Learning, Opponent, Rate},
    },
};

/// A value that follows the preset.
const BY_READING: (&str, &str) = ("by-reading", "as the preset `reading` has it");

/// The settings.
pub static SCHEMA: Schema = Schema {
    summary: "Neural networks that learn a game by temporal differences, playing themselves or a fixed benchmark player, and \
              are tested against the latter: van de Steeg, Drugan and Wiering, Temporal Difference Learning for the Game \
              Tic-Tac-Toe 3D (2015), and what lies beyond. The readings of what the paper leaves open are settings.",
    fields: &[
        Field {
            name: "network",
            doc: "The network. The first five are the paper's.",
            shape: Shape::Choice(&[
                ("small-structured", "4 units for each line, joined to its cells only"),
                ("deep-structured", "the same, and a second layer of 32 units"),
                ("small", "50 units, joined to all cells"),
                ("deep", "95 units, joined to all cells, and a second layer of 51"),
                ("wide", "169 units, joined to all cells"),
                (
                    "tuples",
                    "a table for each line with an entry for each state of its cells, and a second layer of 8 units",
                ),
                ("linear-tuples", "the tables alone: their sum is the value"),
            ]),
            default: "deep-structured",
            scope: Scope::What,
        },
        Field {
            name: "opponent",
            doc: "Whom it plays to learn.",
            shape: Shape::Choice(&[
                ("self", "itself, and both sides learn"),
                ("benchmark", "the player it is tested against, of which nothing is learnt"),
            ]),
            default: "self",
            scope: Scope::What,
        },
        Field {
            name: "reading",
            doc: "How the paper is read where it leaves something open, for the settings that are \"by-reading\": biases, \
                  output_derivative, exploring, first_move and last_step.",
            shape: Shape::Choice(&[
                ("nearest", "what comes nearest to the paper's figures: yes, out, skip, learner, bootstrapped"),
                ("literal", "its text, word by word: no, in, learn, alternating, direct"),
            ]),
            default: "nearest",
            scope: Scope::What,
        },
        Field {
            name: "biases",
            doc: "Whether units have biases. The paper's counts of weights have none.",
            shape: Shape::Choice(&[BY_READING, ("no", "none"), ("yes", "all but the inputs")]),
            default: "by-reading",
            scope: Scope::What,
        },
        Field {
            name: "output_derivative",
            doc: "Whether the slope of the output unit's activation is a factor of the error that is propagated back.",
            shape: Shape::Choice(&[BY_READING, ("in", "as backpropagation has it"), ("out", "the error as it is")]),
            default: "by-reading",
            scope: Scope::What,
        },
        Field {
            name: "exploring",
            doc: "Whether the afterstate before an exploring move learns from the one after it.",
            shape: Shape::Choice(&[BY_READING, ("learn", "it does"), ("skip", "it does not")]),
            default: "by-reading",
            scope: Scope::What,
        },
        Field {
            name: "first_move",
            doc: "Who moves first against the benchmark player, in tests and to learn.",
            shape: Shape::Choice(&[
                BY_READING,
                ("alternating", "the learner in every other game"),
                ("learner", "the learner in every game"),
            ]),
            default: "by-reading",
            scope: Scope::What,
        },
        Field {
            name: "last_step",
            doc: "What the side that ends a game learns.",
            shape: Shape::Choice(&[
                BY_READING,
                ("direct", "its previous afterstate learns the reward"),
                ("bootstrapped", "its previous afterstate learns the value of the final one, and that the reward"),
            ]),
            default: "by-reading",
            scope: Scope::What,
        },
        Field {
            name: "loser",
            doc: "Whether the last afterstate of the side that did not end the game learns its reward: -1, or 0 for a draw.",
            shape: Shape::Choice(&[("learn", "it does, in both readings"), ("skip", "it does not")]),
            default: "learn",
            scope: Scope::What,
        },
        Field {
            name: "activation",
            doc: "The \"logistic function scaled to [-1, 1]\".",
            shape: Shape::Choice(&[("logistic", "tanh(x / 2), in both readings"), ("tanh", "tanh(x)")]),
            default: "logistic",
            scope: Scope::What,
        },
        Field {
            name: "wins",
            doc: "What is done about moves that win at once. Beyond the paper.",
            shape: Shape::Choice(&[
                ("learned", "nothing: their values are learnt as all others"),
                ("exact", "one is always chosen if there is one, and its value is the reward"),
            ]),
            default: "learned",
            scope: Scope::What,
        },
        Field {
            name: "shared",
            doc: "Whether weights are shared over the symmetries of the board; not for dense networks. The paper's future work.",
            shape: Shape::Choice(&[
                ("no", "they are not"),
                ("yes", "units of the second layer see the board in all its orientations"),
            ]),
            default: "no",
            scope: Scope::What,
        },
        Field {
            name: "units",
            doc: "Units of a dense first layer; 0 is what the network has.",
            shape: Shape::Integer { min: 0, max: 1024 },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "detectors",
            doc: "Units for each line of a structured network; 0 is what it has, 4. The paper: adding more did not improve performance.",
            shape: Shape::Integer { min: 0, max: 16 },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "states",
            doc: "States of a cell in a network of tuples: 3 (empty, own, other's), or 4 (empty and playable now is a state of \
                  its own); 0 is what it has, 4.",
            shape: Shape::Integer { min: 0, max: 4 },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "second",
            doc: "Units of the second layer (with shared weights each in all orientations); 0 is what the network has.",
            shape: Shape::Integer { min: 0, max: 64 },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "game",
            doc: "The game. The paper's is score-four, which it calls tic-tac-toe 3D.",
            shape: Shape::Choice(&[
                ("score-four", "4x4x4, four in a row, stones fall"),
                ("qubic", "4x4x4, four in a row"),
                ("connect-four", "7 columns, 6 rows, four in a row, stones fall"),
                ("tic-tac-toe", "3x3, three in a row"),
            ]),
            default: "score-four",
            scope: Scope::What,
        },
        Field {
            name: "alpha",
            doc: "The learning rate. The paper: 0.005.",
            shape: Shape::Decimal { min: 0, max: 999_999_999_999 },
            default: "0.005",
            scope: Scope::What,
        },
        Field {
            name: "schedule",
            doc: "How the learning rate changes over a trial.",
            shape: Shape::Choice(&[
                ("constant", "not at all"),
                ("linear", "in a straight line to alpha_end after the last game"),
            ]),
            default: "constant",
            scope: Scope::What,
        },
        Field {
            name: "alpha_end",
            doc: "The learning rate at the end of a linear schedule. Ours.",
            shape: Shape::Decimal { min: 0, max: 999_999_999_999 },
            default: "0.001",
            scope: Scope::What,
        },
        Field {
            name: "epsilon",
            doc: "The share of moves that explore. The paper: 0.1.",
            shape: Shape::Decimal { min: 0, max: 1 },
            default: "0.1",
            scope: Scope::What,
        },
        Field {
            name: "gamma",
            doc: "The discount factor: what the value of the next afterstate counts. The paper: 1.",
            shape: Shape::Decimal { min: 0, max: 1 },
            default: "1",
            scope: Scope::What,
        },
        Field {
            name: "averaging_games",
            doc: "Time constant, in games, of the running average of the weights that is tested; 0 tests the weights themselves. Ours.",
            shape: Shape::Integer { min: 0, max: TRIAL_GAMES_MAX },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "games",
            doc: "Games of a trial. The paper: 1,000,000.",
            shape: Shape::Integer { min: 1, max: TRIAL_GAMES_MAX },
            default: "1000000",
            scope: Scope::What,
        },
        Field {
            name: "test_every",
            doc: "Games between two tests; a divisor of `games`. The paper: 10,000.",
            shape: Shape::Integer { min: 1, max: TRIAL_GAMES_MAX },
            default: "10000",
            scope: Scope::What,
        },
        Field {
            name: "test_games",
            doc: "Games of a test against the benchmark player. The paper: 1,000.",
            shape: Shape::Integer { min: 1, max: TEST_GAMES_MAX },
            default: "1000",
            scope: Scope::What,
        },
        Field {
            name: "learners",
            doc: "Workers that learn at once from the same weights, before what became of them is joined; 1 is the serial \
                  learner. Beyond the paper.",
            shape: Shape::Integer { min: 1, max: 256 },
            default: "1",
            scope: Scope::What,
        },
        Field {
            name: "episodes",
            doc: "Games that each of several learners plays before they are joined.",
            shape: Shape::Integer { min: 1, max: 100_000 },
            default: "4",
            scope: Scope::What,
        },
        Field {
            name: "join",
            doc: "Over which of several learners the mean of a weight is taken.",
            shape: Shape::Choice(&[("touched", "those that changed it"), ("all", "all of them")]),
            default: "touched",
            scope: Scope::What,
        },
        Field {
            name: "outer_rate",
            doc: "The share of the way from the old weights to the joined ones that is gone. Above 0; DiLoCo (2023): 0.7; as many as there are learners, with join = \"all\": changes add up.",
            shape: Shape::Decimal { min: 0, max: 256 },
            default: "1",
            scope: Scope::What,
        },
        Field {
            name: "momentum",
            doc: "Nesterov's momentum of that, from round to round. Below 1; DiLoCo (2023): 0.9.",
            shape: Shape::Decimal { min: 0, max: 1 },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "segment_games",
            doc: "Games that one task plays; 0 is 10,000.",
            shape: Shape::Integer { min: 0, max: GAMES_MAX },
            default: "0",
            scope: Scope::How,
        },
    ],
    check,
};

fn check(values: &Values) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let network = values.choice("network");
    let first = architecture(values).first;
    let fits = [
        ("units", matches!(first, First::Dense { .. }), "units joined to all cells"),
        ("detectors", matches!(first, First::Lines { .. }), "detectors on lines"),
        ("states", matches!(first, First::Tuples { .. }), "tables with states"),
    ];
    for (name, fits, what) in fits {
        let value = values.integer(name);
        if value > 0 && !fits {
            problems.push((name, format!("{name} is {value}, but network {network:?} has no {what}: give 0")));
        }
    }
    if let Err(why) = check_network(&architecture(values)) {
        let field = if values.choice("shared") == "yes" { "shared" } else { "network" };
        problems.push((field, format!("network {network:?}: {why}")));
    }
    if values.decimal("momentum").to_f64() >= 1.0 {
        problems.push(("momentum", "momentum is 1: what moves would never come to rest; give less than 1".into()));
    }
    if values.decimal("outer_rate").to_f64() <= 0.0 {
        problems.push(("outer_rate", "outer_rate is 0: nothing would be learnt; give more than 0".into()));
    }
    let [games, every] = ["games", "test_every"].map(|name| values.integer(name));
    if !games.is_multiple_of(every) {
        problems
            .push(("test_every", format!("test_every is {every}, which does not divide the {games} games of a trial")));
    } else if games / every > TESTS_MAX {
        problems.push((
            "test_every",
            format!("test_every is {every}: {games} games would have more than {TESTS_MAX} tests"),
        ));
    }
    problems
}

/// The network of an arm.
#[must_use]
pub fn architecture(values: &Values) -> Architecture {
    let set = |name: &str, default: usize| match values.integer(name) as usize {
        0 => default,
        value => value,
    };
    let (first, second) = match values.choice("network") {
        "small-structured" => (First::Lines { detectors: set("detectors", 4) }, 0),
        "deep-structured" => (First::Lines { detectors: set("detectors", 4) }, 32),
        "small" => (First::Dense { units: set("units", 50) }, 0),
        "deep" => (First::Dense { units: set("units", 95) }, 51),
        "wide" => (First::Dense { units: set("units", 169) }, 0),
        "tuples" => (First::Tuples { states: set("states", 4) }, 8),
        _ => (First::Tuples { states: set("states", 4) }, 0),
    };
    Architecture {
        shape: match values.choice("game") {
            "score-four" => Grid::SCORE_FOUR,
            "qubic" => Grid::QUBIC,
            "connect-four" => Grid::CONNECT_FOUR,
            _ => Grid::TIC_TAC_TOE,
        },
        first,
        second: set("second", second),
        biases: chosen(values, "biases") == "yes",
        activation: if values.choice("activation") == "tanh" { Activation::Tanh } else { Activation::Logistic },
        shared: values.choice("shared") == "yes",
    }
}

/// How an arm learns.
#[must_use]
pub fn learning(values: &Values) -> Learning {
    let decimal = |name: &str| values.decimal(name).to_f64();
    let start = decimal("alpha") as f32;
    let end = if values.choice("schedule") == "linear" { decimal("alpha_end") as f32 } else { start };
    Learning {
        opponent: if values.choice("opponent") == "self" { Opponent::Itself } else { Opponent::Benchmark },
        rate: Rate { start, end, games: values.integer("games") },
        epsilon: decimal("epsilon"),
        gamma: decimal("gamma") as f32,
        learner_first: chosen(values, "first_move") == "learner",
        output_derivative: chosen(values, "output_derivative") == "in",
        learns_explorations: chosen(values, "exploring") == "learn",
        bootstrapped_end: chosen(values, "last_step") == "bootstrapped",
        learns_opponents_end: values.choice("loser") == "learn",
        exact_wins: values.choice("wins") == "exact",
        averaging_games: values.integer("averaging_games"),
    }
}

/// What the presets say, nearest before literal.
const PRESETS: [(&str, [&str; 2]); 5] = [
    ("biases", ["yes", "no"]),
    ("output_derivative", ["out", "in"]),
    ("exploring", ["skip", "learn"]),
    ("first_move", ["learner", "alternating"]),
    ("last_step", ["bootstrapped", "direct"]),
];

/// The value of a setting that may follow the preset.
fn chosen(values: &Values, name: &str) -> &'static str {
    let preset = PRESETS.iter().find(|(setting, _)| *setting == name);
    match (values.choice(name), preset) {
        ("by-reading", Some((_, [nearest, literal]))) => {
            if values.choice("reading") == "nearest" {
                nearest
            } else {
                literal
            }
        }
        (own, _) => own,
    }
}

/// The reading an arm follows in everything that the paper leaves open: "nearest" or "literal", or "own" if neither.
#[must_use]
pub fn reading(values: &Values) -> &'static str {
    let common = [("activation", "logistic"), ("loser", "learn"), ("wins", "learned")];
    let follows = |index: usize| PRESETS.iter().all(|(name, values_of)| chosen(values, name) == values_of[index]);
    match common.iter().all(|(name, value)| values.choice(name) == *value) {
        true if follows(0) => "nearest",
        true if follows(1) => "literal",
        _ => "own",
    }
}
