//! The architecture of a network as data.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::activation::Activation;
use crate::board::Shape;

/// A network that values boards. Its inputs are the cells (own stone 1, other's -1, empty 0), followed by one or two layers
/// of hidden units and one output unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Architecture {
    /// The board whose afterstates the network values.
    pub shape: Shape,
    /// The first hidden layer.
    pub first: First,
    /// The number of units in the second hidden layer, each connected to all of the first, 0 to 64. With 0 there is no second
    /// layer: the first layer is connected to the output, or, with tables, the output unit's sum is that of all entries. With
    /// `shared` these are filters, each of which is applied in all orientations of the board.
    pub second: usize,
    /// Whether the units have biases.
    pub biases: bool,
    /// The activation of hidden units and of the output unit.
    pub activation: Activation,
    /// Whether weights are shared over the symmetries of the board.
    pub shared: bool,
}

/// The first hidden layer, or the layers that follow the structure of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum First {
    /// Units that are each connected to all cells.
    Dense {
        /// The number of units, 1 to 1,024.
        units: usize,
    },
    /// Units for each line of the board, connected only to the cells of that line.
    Lines {
        /// The number of units per line, 1 to 16.
        detectors: usize,
    },
    /// Units for each line, and above them a second structured layer: units for each plane of a board of 4x4x4 cells,
    /// connected to all units of the lines in that plane. `second` must then be 0, and no weights are shared.
    Planes {
        /// The number of units per line, 1 to 16.
        detectors: usize,
        /// The number of units for each of the 18 planes, 1 to 16.
        units: usize,
    },
    /// A table for each line of the board, with an entry for each combination of its cells' states.
    Tuples {
        /// The number of states of a cell: 3 (empty, own, other's), or 4 (an empty cell that can be played now is a separate
        /// state).
        states: usize,
    },
}

/// Some of the weights as a tensor in row-major order: the last index runs fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The tensor's name in files.
    pub name: &'static str,
    /// The number of values of each index.
    pub shape: Vec<usize>,
    /// The tensor's range in the vector of all weights.
    pub range: Range<usize>,
}
