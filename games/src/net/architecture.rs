//! What a network is made of, as data.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::activation::Activation;
use crate::board::Shape;

/// A network that values boards: inputs are the cells (own stone 1, other's -1, empty 0), then one or two layers of hidden
/// units, then one output unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Architecture {
    /// The board whose afterstates it values.
    pub shape: Shape,
    /// The first hidden layer.
    pub first: First,
    /// Units of the second hidden layer, each joined to all of the first, 0 to 64; with 0 there is none, and the first is
    /// joined to the output, or the sum of all tables' entries is the output unit's. With `shared` these are filters, each of
    /// which is applied in all orientations of the board.
    pub second: usize,
    /// Whether the units have biases.
    pub biases: bool,
    /// What hidden units and the output unit make of their weighted sums.
    pub activation: Activation,
    /// Whether weights are shared over the symmetries of the board.
    pub shared: bool,
}

/// The first hidden layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum First {
    /// So many units, 1 to 1,024, each joined to all cells.
    Dense {
        /// How many.
        units: usize,
    },
    /// So many units, 1 to 16, for each line of the board, joined to the cells of that line only.
    Lines {
        /// How many for each line.
        detectors: usize,
    },
    /// A table for each line of the board, with an entry for each state of its cells.
    Tuples {
        /// States of a cell: 3 (empty, own, other's), or 4 (an empty cell that can be played now is another state).
        states: usize,
    },
}

/// Some of the weights: a tensor in the order of its indices, the last running fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name in files.
    pub name: &'static str,
    /// How many values each index takes.
    pub shape: Vec<usize>,
    /// Where it is among all weights.
    pub range: Range<usize>,
}
