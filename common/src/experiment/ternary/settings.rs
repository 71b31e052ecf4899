//! What `ternary` can be told.

use crate::config::{Field, Schema, Scope, Shape, Values};

/// The settings.
pub static SCHEMA: Schema = Schema {
    summary: "Players of 3x3 tic-tac-toe whose moves are letters of a string, one place for every board (turned boards \
              share one). A string that names a taken cell is repaired: a random empty one is played and written \
              instead. The chapter ends before its genetic algorithm, so the operators and their figures are ours.",
    fields: &[
        Field {
            name: "side",
            doc: "The side that is reported; X moves first.",
            shape: Shape::Choice(&[("X", "612 or 104 decisions"), ("O", "526 or 68 decisions")]),
            default: "X",
            scope: Scope::What,
        },
        Field {
            name: "strings",
            doc: "Which decisions a string holds.",
            shape: Shape::Choice(&[
                ("long", "every one of its side"),
                ("short", "only those that two rules leave to it: complete a line, else block one"),
            ]),
            default: "short",
            scope: Scope::What,
        },
        Field {
            name: "alphabet",
            doc: "Letters of the alphabet: 9 (a letter is a cell) or 3 (two letters are a cell). The chapter takes 3.",
            shape: Shape::Choice(&[("3", "two letters a decision"), ("9", "one letter a decision")]),
            default: "3",
            scope: Scope::What,
        },
        Field {
            name: "generations",
            doc: "Generations played; the champion is the best of the last.",
            shape: Shape::Integer { min: 1, max: 100_000 },
            default: "200",
            scope: Scope::What,
        },
        Field {
            name: "population",
            doc: "Strings of a side.",
            shape: Shape::Integer { min: 2, max: 4_096 },
            default: "100",
            scope: Scope::What,
        },
        Field {
            name: "opponents",
            doc: "Games of each player in a generation against strings drawn from the other side's population, which \
                  evolves alike; with 0 there is none.",
            shape: Shape::Integer { min: 0, max: 65_536 },
            default: "50",
            scope: Scope::What,
        },
        Field {
            name: "random_games",
            doc: "Games of each player in a generation against a random mover.",
            shape: Shape::Integer { min: 0, max: 1_000_000 },
            default: "50",
            scope: Scope::What,
        },
        Field {
            name: "random_mover",
            doc: "What the random mover knows. Of several cells that complete a line, or block one, it takes the lowest; \
                  the exact odds with the rules are against one that takes any of them, each equally likely.",
            shape: Shape::Choice(&[
                ("plain", "nothing: every empty cell is equally likely"),
                ("rules", "to complete a line, else to block one"),
            ]),
            default: "plain",
            scope: Scope::What,
        },
        Field {
            name: "penalty",
            doc: "Fitness is wins minus this times losses.",
            shape: Shape::Decimal { min: 0, max: 1_000_000 },
            default: "1",
            scope: Scope::What,
        },
        Field {
            name: "elite",
            doc: "The fittest so many of a side stay as they are; the others are children of parents chosen by binary \
                  tournament.",
            shape: Shape::Integer { min: 1, max: 4_096 },
            default: "2",
            scope: Scope::What,
        },
        Field {
            name: "crossover",
            doc: "How two parents make two children.",
            shape: Shape::Choice(&[
                ("one-point", "tails behind one cut are exchanged"),
                ("two-point", "the stretch between two cuts is exchanged"),
                ("none", "children are copies"),
            ]),
            default: "two-point",
            scope: Scope::What,
        },
        Field {
            name: "crossover_rate",
            doc: "The share of pairs that cross; the others are copied.",
            shape: Shape::Decimal { min: 0, max: 1 },
            default: "0.9",
            scope: Scope::What,
        },
        Field {
            name: "mutations",
            doc: "Letters of a child that are redrawn, on average: each with this over the number of letters.",
            shape: Shape::Decimal { min: 0, max: 68 },
            default: "1",
            scope: Scope::What,
        },
        Field {
            name: "slice",
            doc: "Players of one task; 0 sends a side's whole population as one.",
            shape: Shape::Integer { min: 0, max: 4_096 },
            default: "0",
            scope: Scope::How,
        },
    ],
    check,
};

fn check(values: &Values) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let (elite, population) = (values.integer("elite"), values.integer("population"));
    if elite > population {
        problems.push(("elite", format!("elite is {elite}, but the population is only {population}")));
    }
    if values.integer("opponents") + values.integer("random_games") == 0 {
        let sentence = "opponents and random_games are both 0, so nobody would play: give one of them";
        problems.push(("opponents", sentence.into()));
    }
    problems
}
