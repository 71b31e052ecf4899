//! Which weights of a network over lines are one weight when it shares them over the symmetries of its board.
//!
//! A symmetry g takes detector d of line L to a detector of the line g L. Each line has a direction, chosen so that
//! symmetries keep it wherever they can: the first line of each orbit has its cells in ascending order, and the others' come
//! from there by the first symmetry that leads to them. If g keeps the directions, g (L, d) = (g L, d). Lines that some
//! symmetry maps onto themselves reversed (40 of the 76 of 4x4x4 with gravity) cannot have a direction that all keep:
//! their detectors come in mirrored pairs, and if g reverses, g (L, d) = (g L, d xor 1).
//!
//! Then the first layer's weights are the same for all images, W(g u, g c) = W(u, c), and so are its biases, and its output
//! weights if there is no second layer. Above it stand F filters in |G| orientations: the unit of filter f in orientation k
//! is joined to u by w(k^-1 u, f), and its bias and output weight are those of the filter.

use crate::{
    board::{Geometry, cells},
    net::{Architecture, First},
};

/// The lines of a board, and what its symmetries make of them.
#[derive(Clone, Debug)]
pub(in crate::net) struct Turning {
    /// For each line its cells, in its direction.
    pub cells: Vec<Vec<u8>>,
    /// For each line which orbit it is of.
    pub orbits: Vec<usize>,
    /// For each orbit whether some symmetry reverses its lines.
    pub reversible: Vec<bool>,
    /// For each orientation k and each line L: the line k^-1 L, and whether k reverses.
    pub sources: Vec<Vec<(usize, bool)>>,
}

impl Turning {
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

/// A network that shares weights, and the same one without shared weights.
#[derive(Clone, Debug)]
pub(in crate::net) struct Ties {
    /// The other architecture. Its second layer has a unit for each orientation and filter: orientations one after the
    /// other, the filters of one side by side.
    pub unshared: Architecture,
    /// Of the second layer; 0 if there is none.
    pub filters: usize,
    /// For each weight of the other network: which shared weight it is.
    pub weights: Vec<usize>,
    /// Names and shapes of the shared weights.
    pub tensors: Vec<(&'static str, Vec<usize>)>,
}

impl Ties {
    /// The ties of a network over lines that shares weights. Shared weights are numbered in the order in which they first
    /// come up in the other network.
    pub(in crate::net) fn new(architecture: &Architecture) -> Self {
        let First::Lines { detectors } = architecture.first else {
            panic!("only networks over lines share weights so")
        };
        let turning = Turning::new(architecture);
        let (k, filters) = (usize::from(architecture.shape.k), architecture.second);
        let (units, orientations) = (turning.cells.len() * detectors, turning.sources.len());
        let unshared = Architecture { shared: false, second: filters * orientations, ..*architecture };
        let mut tensors = vec![("first.weight", of_units(&turning, detectors, k))];
        if architecture.biases {
            tensors.push(("first.bias", of_units(&turning, detectors, 1)));
        }
        if filters == 0 {
            tensors.push(("output.weight", of_units(&turning, detectors, 1)));
        } else {
            let joins = |unit: usize| {
                let (line, detector) = (unit / detectors, unit % detectors);
                let from = turning.sources.iter().map(move |sources| {
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

/// Ties of numbers that each detector has `each` of: one for each cell of its line, or one. In the order of lines, then of
/// cells (ascending), then of detectors.
fn of_units(turning: &Turning, detectors: usize, each: usize) -> Vec<usize> {
    // Where the number of a line's cell, counted in the line's direction, is.
    let at = |line: usize, place: usize, detector: usize| {
        let line_cells = &turning.cells[line];
        let ascending = line_cells.iter().filter(|cell| **cell < line_cells[place]).count();
        (line * each + if each == 1 { 0 } else { ascending }) * detectors + detector
    };
    let mut ties = vec![usize::MAX; turning.cells.len() * each * detectors];
    let mut all = Vec::with_capacity(ties.len());
    for line in 0..turning.cells.len() {
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
        for sources in &turning.sources {
            let (source, reversed) = sources[line];
            let place = if reversed { each - 1 - place } else { place };
            ties[at(source, place, detector ^ usize::from(reversed))] = next;
        }
        next += 1;
    }
    ties
}
