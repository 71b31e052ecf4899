//! What `nndtf` can be told.

use super::{
    search::{CHROMOSOMES_MAX, ITERATIONS_MAX},
    task::SEGMENT_MAX,
    teacher::BOARDS,
};
use crate::config::{Field, Schema, Scope, Shape, Values};

/// The settings.
pub static SCHEMA: Schema = Schema {
    summary: "Networks 9-8-1 that learn to choose a cell of 3x3 tic-tac-toe as a teacher would, by genetic algorithms: one \
              with double transfer functions and a traditional rival (Ling and Lam 2011). Arms of one file share their \
              training boards and the boards of their matches, replica by replica.",
    fields: FIELDS,
    check,
};

const FIELDS: &[Field] = &[
    Field {
        name: "network",
        doc: "Which network.",
        shape: Shape::Choice(&[
            ("double", "with double transfer functions, 114 genes: the paper's proposal"),
            ("traditional", "with the hyperbolic tangent and biases, 89 genes: the paper's rival"),
        ]),
        default: "double",
        scope: Scope::What,
    },
    Field {
        name: "algorithm",
        doc: "What searches for the genes.",
        shape: Shape::Choice(&[
            ("improved", "the paper's improved genetic algorithm: seven evaluations an iteration"),
            ("traditional", "the genetic algorithm of the paper's rival: one evaluation a chromosome and iteration"),
            ("cma-es", "an evolution strategy with covariance matrix adaptation (MA-ES, Beyer and Sendhoff 2017)"),
        ]),
        default: "improved",
        scope: Scope::What,
    },
    Field {
        name: "iterations",
        doc: "Iterations of a genetic algorithm. The paper: 50000.",
        shape: Shape::Integer { min: 1, max: ITERATIONS_MAX },
        default: "50000",
        scope: Scope::What,
    },
    Field {
        name: "evaluations",
        doc: "Chromosomes that cma-es may judge; generations that would go beyond are left out. As many as the improved \
              algorithm judges in the paper's 50000 iterations.",
        shape: Shape::Integer { min: 4, max: ITERATIONS_MAX },
        default: "350000",
        scope: Scope::What,
    },
    Field {
        name: "population",
        doc: "Chromosomes of a genetic algorithm; even for the traditional one. The paper: 10.",
        shape: Shape::Integer { min: 2, max: CHROMOSOMES_MAX as u64 },
        default: "10",
        scope: Scope::What,
    },
    Field {
        name: "offspring",
        doc: "Chromosomes of a generation of cma-es. Ours.",
        shape: Shape::Integer { min: 4, max: CHROMOSOMES_MAX as u64 },
        default: "100",
        scope: Scope::What,
    },
    Field {
        name: "sigma",
        doc: "The first size of a step of cma-es; genes lie from -1 to 1. Ours.",
        shape: Shape::Decimal { min: 0, max: 10 },
        default: "0.5",
        scope: Scope::What,
    },
    Field {
        name: "weight",
        doc: "The improved algorithm's w: the parents' share of a candidate; the rest is the end of the genes' range. The \
              paper: 0.1.",
        shape: Shape::Decimal { min: 0, max: 1 },
        default: "0.1",
        scope: Scope::What,
    },
    Field {
        name: "acceptance",
        doc: "The improved algorithm's pa: the probability that the best mutant replaces the worst chromosome whatever its \
              fitness. The paper: 0.5.",
        shape: Shape::Decimal { min: 0, max: 1 },
        default: "0.5",
        scope: Scope::What,
    },
    Field {
        name: "crossover",
        doc: "The traditional algorithm's probability that a couple is crossed. The paper: 0.8.",
        shape: Shape::Decimal { min: 0, max: 1 },
        default: "0.8",
        scope: Scope::What,
    },
    Field {
        name: "mutation",
        doc: "The traditional algorithm's probability that a gene is mutated. The paper: 0.1.",
        shape: Shape::Decimal { min: 0, max: 1 },
        default: "0.1",
        scope: Scope::What,
    },
    Field {
        name: "shape",
        doc: "How fast the traditional algorithm's mutations shrink: the exponent of the share of iterations left. The \
              paper: 5.",
        shape: Shape::Decimal { min: 0, max: 1000 },
        default: "5",
        scope: Scope::What,
    },
    Field {
        name: "elite",
        doc: "A reading of the traditional algorithm: when the best of the former generation takes the place of the worst \
              child. The paper is silent.",
        shape: Shape::Choice(&[
            ("unless-equalled", "if no child is as fit: equally fit children replace it, so that the best can drift"),
            ("unless-surpassed", "if no child is fitter: the best stays beside children that are as fit"),
        ]),
        default: "unless-equalled",
        scope: Scope::What,
    },
    Field {
        name: "boards",
        doc: "Training boards, all different, drawn from the 2423 with X to move that play can lead to. The paper: 100.",
        shape: Shape::Integer { min: 1, max: BOARDS as u64 },
        default: "100",
        scope: Scope::What,
    },
    Field {
        name: "coupling",
        doc: "A reading: what a hidden node of the double network reads off its neighbours. The formula puts the final \
              outputs on both sides and says not how to solve it; for many networks there is no solution.",
        shape: Shape::Choice(&[
            ("static", "the outputs of their static transfer functions: feed-forward"),
            ("final", "their final outputs by sweeps, the first from the static ones, all nodes at once"),
        ]),
        default: "static",
        scope: Scope::What,
    },
    Field {
        name: "sweeps",
        doc: "Sweeps of the final coupling; one is the same as static. Ours.",
        shape: Shape::Integer { min: 1, max: super::network::SWEEPS_MAX as u64 },
        default: "10",
        scope: Scope::What,
    },
    Field {
        name: "numbering",
        doc: "A reading: how the cells are numbered 1 to 9, row by row from the top. It mirrors every board, which changes \
              nothing but the numbers of chance.",
        shape: Shape::Choice(&[
            ("left-to-right", "each row from the left"),
            ("right-to-left", "each row from the right, as the paper's words have it"),
        ]),
        default: "left-to-right",
        scope: Scope::What,
    },
    Field {
        name: "farming",
        doc: "What a task is.",
        shape: Shape::Choice(&[
            ("segments", "it moves a replica on by some iterations, from the state that it carries"),
            ("evaluations", "it judges the chromosomes of one round; the improved algorithm has two an iteration"),
        ]),
        default: "segments",
        scope: Scope::How,
    },
    Field {
        name: "segment",
        doc: "Iterations of a segment; 0 makes segments of some fifty milliseconds.",
        shape: Shape::Integer { min: 0, max: SEGMENT_MAX },
        default: "0",
        scope: Scope::How,
    },
];

fn check(values: &Values) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let (algorithm, population) = (values.choice("algorithm"), values.integer("population"));
    if algorithm == "traditional" && population % 2 == 1 {
        problems
            .push(("population", format!("population is {population}, but the traditional algorithm needs couples")));
    }
    if algorithm == "cma-es" {
        let (offspring, evaluations) = (values.integer("offspring"), values.integer("evaluations"));
        if offspring > evaluations {
            problems.push(("offspring", format!("offspring is {offspring}, but only {evaluations} may be judged")));
        }
        if values.decimal("sigma").numerator() == 0 {
            problems.push(("sigma", "sigma is 0, and cma-es would stay where it is".into()));
        }
    }
    problems
}
