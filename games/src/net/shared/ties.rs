//! Weight tying: which weights of a network over lines are the same weight when they are shared over the board's symmetries.
//!
//! A symmetry g maps detector d of line L to a detector of the line g L. Each line has a direction that symmetries preserve
//! where possible. The first line of each orbit has its cells in ascending order, and the direction of each other line is its
//! image by the first symmetry that leads to it. If g preserves the directions, g (L, d) = (g L, d). Some lines (40 of the 76
//! of 4x4x4 with gravity) are mapped onto themselves in reverse by a symmetry, so not all symmetries can preserve a
//! direction. Their detectors come in mirrored pairs, and if g reverses the line, g (L, d) = (g L, d xor 1).
//!
//! The first layer's weights are then the same for all images, W(g u, g c) = W(u, c), and so are its biases, and its output
//! weights if there is no second layer. A second layer has F filters in |G| orientations. The weight from u to the unit of
//! filter f in orientation k is w(k^-1 u, f), and the unit's bias and output weight are those of the filter.

use crate::{
    board::{Geometry, cells},
    net::{Architecture, First},
};

/// The lines of a board, and their images by its symmetries.
#[derive(Clone, Debug)]
pub(in crate::net) struct LineSymmetries {
    /// For each line: its cells, in the line's direction.
    pub cells: Vec<Vec<u8>>,
    /// For each line: its orbit.
    pub orbits: Vec<usize>,
    /// For each orbit: whether some symmetry reverses one of its lines.
    pub reversible: Vec<bool>,
    /// For each orientation k and each line L: the line k^-1 L, and whether k reverses it.
    pub sources: Vec<Vec<(usize, bool)>>,
}

impl LineSymmetries {
    pub(in crate::net) fn new(architecture: &Architecture) -> Self {
        let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
        let lines = geometry.lines();
        let mut found: Vec<Vec<u8>> = vec![Vec::new(); lines.len()];
        let mut orbits = vec![0; lines.len()];
        let mut count = 0;
        let index = |line: &[u8]| {
            let mask = line.iter().fold(0, |mask, cell| mask | 1 << cell);
            lines.binary_search(&mask).expect("symmetries take lines to lines")
        };
        for (line, mask) in lines.iter().enumerate() {
            if !found[line].is_empty() {
                continue;
            }
            let first: Vec<u8> = cells(*mask).collect();
            for symmetry in geometry.symmetries() {
                let image: Vec<u8> = first.iter().map(|cell| symmetry.cell(*cell)).collect();
                let line = index(&image);
                if found[line].is_empty() {
                    found[line] = image;
                    orbits[line] = count;
                }
            }
            count += 1;
        }
        let mut reversible = vec![false; count];
        let mut sources = vec![vec![(0, false); lines.len()]; geometry.symmetries().len()];
        for (symmetry, sources) in geometry.symmetries().iter().zip(&mut sources) {
            for (line, line_cells) in found.iter().enumerate() {
                let image: Vec<u8> = line_cells.iter().map(|cell| symmetry.cell(*cell)).collect();
                let to = index(&image);
                let reversed = image != found[to];
                sources[to] = (line, reversed);
                reversible[orbits[line]] |= reversed;
            }
        }
        Self { cells: found, orbits, reversible, sources }
    }
}

/// A network that shares weights, and the same network without shared weights.
#[derive(Clone, Debug)]
pub(in crate::net) struct Ties {
    /// The architecture without shared weights. Its second layer has one unit for each orientation and filter: orientations
    /// one after the other, and within each of them all filters.
    pub unshared: Architecture,
    /// The number of filters in the second layer; 0 if there is none.
    pub filters: usize,
    /// For each weight of the network without shared weights: the index of its shared weight.
    pub weights: Vec<usize>,
    /// Names and shapes of the shared weights.
    pub tensors: Vec<(&'static str, Vec<usize>)>,
}

impl Ties {
    /// The ties of a network over lines that shares weights. Shared weights are numbered in the order of their first copies in
    /// the network without shared weights.
    pub(in crate::net) fn new(architecture: &Architecture) -> Self {
        let First::Lines { detectors } = architecture.first else {
            panic!("only networks over lines share weights in this way")
        };
        let symmetries = LineSymmetries::new(architecture);
        let (k, filters) = (usize::from(architecture.shape.k), architecture.second);
        let (units, orientations) = (symmetries.cells.len() * detectors, symmetries.sources.len());
        let unshared = Architecture { shared: false, second: filters * orientations, ..*architecture };
        let mut tensors = vec![("first.weight", of_units(&symmetries, detectors, k))];
        if architecture.biases {
            tensors.push(("first.bias", of_units(&symmetries, detectors, 1)));
        }
        if filters == 0 {
            tensors.push(("output.weight", of_units(&symmetries, detectors, 1)));
        } else {
            let joins = |unit: usize| {
                let (line, detector) = (unit / detectors, unit % detectors);
                let from = symmetries.sources.iter().map(move |sources| {
                    let (source, reversed) = sources[line];
                    source * detectors + (detector ^ usize::from(reversed))
                });
                from.flat_map(move |from| (0..filters).map(move |filter| from * filters + filter))
            };
            let each = || (0..orientations * filters).map(|unit| unit % filters).collect::<Vec<usize>>();
            tensors.push(("second.weight", (0..units).flat_map(joins).collect()));
            if architecture.biases {
                tensors.push(("second.bias", each()));
            }
            tensors.push(("output.weight", each()));
        }
        if architecture.biases {
            tensors.push(("output.bias", vec![0]));
        }
        let (mut weights, mut shapes) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (name, ties) in tensors {
            let count = ties.iter().max().map_or(0, |last| last + 1);
            weights.extend(ties.iter().map(|tie| start + tie));
            start += count;
            shapes.push((name, if name == "second.weight" { vec![units, filters] } else { vec![count] }));
        }
        Self { unshared, filters, weights, tensors: shapes }
    }
}

/// The ties of weights (`each` is k: a detector has one weight for each cell of its line) or of biases (`each` is 1), in the
/// order of lines, then of cells (ascending), then of detectors.
fn of_units(symmetries: &LineSymmetries, detectors: usize, each: usize) -> Vec<usize> {
    // The index of a detector's weight for a cell. The place of the cell is counted in the line's direction.
    let at = |line: usize, place: usize, detector: usize| {
        let line_cells = &symmetries.cells[line];
        let ascending = line_cells.iter().filter(|cell| **cell < line_cells[place]).count();
        (line * each + if each == 1 { 0 } else { ascending }) * detectors + detector
    };
    let mut ties = vec![usize::MAX; symmetries.cells.len() * each * detectors];
    let mut all = Vec::with_capacity(ties.len());
    for line in 0..symmetries.cells.len() {
        for (place, detector) in (0..each).flat_map(|place| (0..detectors).map(move |detector| (place, detector))) {
            all.push((at(line, place, detector), line, place, detector));
        }
    }
    all.sort_unstable();
    let mut next = 0;
    for (index, line, place, detector) in all {
        if ties[index] != usize::MAX {
            continue;
        }
        for sources in &symmetries.sources {
            let (source, reversed) = sources[line];
            let place = if reversed { each - 1 - place } else { place };
            ties[at(source, place, detector ^ usize::from(reversed))] = next;
        }
        next += 1;
    }
    ties
}
