//! n-tuple networks over the lines of a board, as in Logistello for Othello (Buro, 1997; Lucas, 2008): a table for each
//! line, with an entry for each state of its cells.
//!
//! - Linear: the output unit's weighted sum is the sum of the entries of all lines.
//! - With a second layer of F *filters*: an entry is F numbers. The weighted sum of filter f is the sum of its numbers over all
//!   lines, and its value the activation of that; the output unit weights the values. With shared weights each filter reads
//!   the board in all orientations, with one output weight: 8 filters are 64 units on 4x4x4 with gravity.

mod filters;
mod linear;
mod orbits;
mod states;

pub(super) use filters::Filters;
pub(super) use linear::Linear;

use std::sync::{Arc, Mutex, PoisonError};

use super::{Architecture, First};
use crate::board::{Geometry, Shape};
use orbits::Orbits;
use states::{Encoding, Views};

/// The data that all tables of the same board and states share. It does not depend on their weights.
#[derive(Debug)]
struct Structure {
    encoding: Encoding,
    /// The orbits of configurations under the symmetries. Without shared weights there is only one orientation.
    orbits: Orbits,
    /// The views before the first move.
    views: Views,
}

/// The board, the number of states of a cell, and whether weights are shared.
type Kind = (Shape, usize, bool);

/// The most structures in the cache.
const CACHED_MAX: usize = 16;

/// A cache of structures. Computing the orbits of 20,000 configurations takes longer than the ten games of a short task.
static STRUCTURES: Mutex<Vec<(Kind, Arc<Structure>)>> = Mutex::new(Vec::new());

/// The structure of an architecture's tables, from the cache if it is there.
fn structure(architecture: &Architecture) -> Arc<Structure> {
    let First::Tuples { states } = architecture.first else { panic!("tables of a network that has none") };
    let kind = (architecture.shape, states, architecture.shared);
    let mut known = STRUCTURES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, structure)) = known.iter().find(|(other, _)| *other == kind) {
        return Arc::clone(structure);
    }
    let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
    let encoding = Encoding::new(geometry, states);
    let mut images = encoding.images();
    images.truncate(if architecture.shared { images.len() } else { 1 });
    let orbits = Orbits::new(encoding.configurations(), images.len(), |k, item| encoding.image(&images[k], item));
    let structure = Arc::new(Structure { views: Views::new(&encoding), encoding, orbits });
    if known.len() == CACHED_MAX {
        known.remove(0);
    }
    known.push((kind, Arc::clone(&structure)));
    structure
}

/// For each configuration: the number of its orbit, and its contribution to the output unit's weighted sum. The contribution
/// is its entry, or with filters the sum over all filters and orientations of entry times output weight, as if filters were
/// linear.
pub(super) fn sums(architecture: &Architecture, weights: &[f32]) -> Vec<(usize, f32)> {
    let structure = structure(architecture);
    let [tables, output] = ["tables.weight", "output.weight"].map(|name| architecture.part(name, weights));
    let ranks = structure.orbits.ranks();
    let mut images = structure.encoding.images();
    images.truncate(structure.orbits.orientations);
    let entry = |configuration: usize| {
        let row = &tables[configuration * output.len()..][..output.len()];
        row.iter().zip(output).map(|(entry, on)| entry * on).sum::<f32>()
    };
    let sum = |(configuration, rank): (usize, u32)| match output {
        // Without shared weights each configuration is an orbit by itself.
        [] => tables[rank as usize],
        _ => images.iter().map(|images| entry(structure.encoding.image(images, configuration))).sum(),
    };
    ranks.iter().copied().enumerate().map(|(index, rank)| (rank as usize, sum((index, rank)))).collect()
}

/// The names and shapes of an architecture's weights, with biases. The entries of a line are in the order of the states of
/// its cells, with the first cell as the lowest digit: 0 empty, 1 own, 2 other's, 3 empty and playable (with four states, 0
/// is any other empty cell). Linear tables with shared weights have one weight for all images of a line's state, and weights
/// are in the order of their first images.
pub(super) fn tensors(architecture: &Architecture) -> Vec<(&'static str, Vec<usize>)> {
    let structure = structure(architecture);
    let entries = structure.encoding.line_states();
    let lines = structure.encoding.configurations() / entries;
    match architecture.second {
        0 if architecture.shared => {
            let last = structure.orbits.ranks().into_iter().max();
            vec![("tables.weight", vec![last.map_or(0, |last| last as usize + 1)]), ("output.bias", vec![1])]
        }
        0 => vec![("tables.weight", vec![lines, entries]), ("output.bias", vec![1])],
        filters => vec![
            ("tables.weight", vec![lines, entries, filters]),
            ("second.bias", vec![filters]),
            ("output.weight", vec![filters]),
            ("output.bias", vec![1]),
        ],
    }
}
