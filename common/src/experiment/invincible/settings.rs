//! What `invincible` can be told.

use crate::config::{Field, Schema, Scope, Shape, Values};

/// The settings.
pub static SCHEMA: Schema = Schema {
    summary: "Table players of 3x3 tic-tac-toe that evolve until they stop losing. Both sides complete a line or block \
              one before they choose; what is left to a player is one move for every other board it can meet. All play \
              against a random mover.",
    fields: &[
        Field {
            name: "side",
            doc: "The side that evolves; X moves first.",
            shape: Shape::Choice(&[("X", "58 boards to know, the empty one included"), ("O", "43 boards to know")]),
            default: "O",
            scope: Scope::What,
        },
        Field {
            name: "penalty",
            doc: "Fitness is wins minus this times losses. The source tried 1, 100, and 6 or 7, which it calls best.",
            shape: Shape::Decimal { min: 0, max: 1_000_000 },
            default: "6.5",
            scope: Scope::What,
        },
        Field {
            name: "fitness",
            doc: "How a player is judged.",
            shape: Shape::Choice(&[
                ("sampled", "by games against the random mover, as in the source"),
                ("exact", "by its exact probabilities to win and to lose, without luck"),
            ]),
            default: "sampled",
            scope: Scope::What,
        },
        Field {
            name: "games",
            doc: "Games each player plays in a generation; only for sampled fitness. The source: 1000.",
            shape: Shape::Integer { min: 1, max: 1_000_000 },
            default: "1000",
            scope: Scope::What,
        },
        Field {
            name: "population",
            doc: "Players of a generation. The source: 1000.",
            shape: Shape::Integer { min: 2, max: 65_536 },
            default: "1000",
            scope: Scope::What,
        },
        Field {
            name: "fathers",
            doc: "The fittest so many stay and father the others. The source: 10.",
            shape: Shape::Integer { min: 1, max: 65_536 },
            default: "10",
            scope: Scope::What,
        },
        Field {
            name: "generations",
            doc: "Generations judged; the champion is the best of the last. The source saw the peak within 6 to 10.",
            shape: Shape::Integer { min: 1, max: 100_000 },
            default: "20",
            scope: Scope::What,
        },
        Field {
            name: "more_mutations",
            doc: "The share of children with more than one gene changed. The source says a small number; the figure is ours.",
            shape: Shape::Decimal { min: 0, max: 1 },
            default: "0.1",
            scope: Scope::What,
        },
        Field {
            name: "mutations_max",
            doc: "The most genes changed in one of those children; each number from 2 is equally likely. Ours.",
            shape: Shape::Integer { min: 2, max: 16 },
            default: "4",
            scope: Scope::What,
        },
        Field {
            name: "slice",
            doc: "Players scored by one task; 0 makes tasks of some ten milliseconds.",
            shape: Shape::Integer { min: 0, max: 65_536 },
            default: "0",
            scope: Scope::How,
        },
    ],
    check,
};

fn check(values: &Values) -> Vec<(&'static str, String)> {
    let (fathers, population) = (values.integer("fathers"), values.integer("population"));
    if fathers > population {
        return vec![("fathers", format!("fathers is {fathers}, but the population is only {population}"))];
    }
    Vec::new()
}
