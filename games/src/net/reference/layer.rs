//! A layer of the reference implementation: which units are connected, and with which weight.

use std::ops::Range;

use crate::{
    board::{Board, Geometry, Side, cells},
    net::{Architecture, First, Tensor, planes},
};

/// A layer: units whose weighted sums are computed from the values of the layer below.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    units: usize,
    wiring: Wiring,
    /// The range of the biases among all weights, one bias per unit; empty without biases.
    biases: Range<usize>,
}

/// The connections to the layer below.
#[derive(Clone, Debug)]
enum Wiring {
    /// Every unit is connected to all units of the layer below. The weights begin at this index, and those of one input are
    /// adjacent.
    Full(usize),
    /// Only these connections. Several may have the same weight.
    Some(Vec<Connection>),
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    input: usize,
    unit: usize,
    weight: usize,
}

/// All layers of a network, beginning with the one above the inputs.
pub(super) fn layers(architecture: &Architecture) -> Vec<Layer> {
    let tensors = architecture.tensors();
    let weights: Vec<_> = tensors.iter().filter(|tensor| tensor.name.ends_with(".weight")).collect();
    let biases: Vec<_> = tensors.iter().filter(|tensor| tensor.name.ends_with(".bias")).collect();
    let layer = |(index, tensor): (usize, &&Tensor)| {
        let wiring = match (architecture.first, index) {
            (First::Lines { detectors } | First::Planes { detectors, .. }, 0) => {
                Wiring::Some(connections(architecture, detectors))
            }
            (First::Planes { detectors, units }, 1) => {
                Wiring::Some(plane_connections(architecture, detectors, units, tensor.range.start))
            }
            _ => Wiring::Full(tensor.range.start),
        };
        let units = match (index, architecture.first) {
            (0, _) => architecture.units(),
            (1, First::Planes { units, .. }) => planes::PLANES * units,
            _ => tensor.shape.get(1).copied().unwrap_or(1),
        };
        Layer { units, wiring, biases: biases.get(index).map_or(0..0, |tensor| tensor.range.clone()) }
    };
    weights.iter().enumerate().map(layer).collect()
}

/// The connections from each line's cells to its detectors.
fn connections(architecture: &Architecture, detectors: usize) -> Vec<Connection> {
    let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
    let mut connections = Vec::new();
    for (line, mask) in geometry.lines().iter().enumerate() {
        for cell in cells(*mask) {
            for detector in 0..detectors {
                let (unit, weight) = (line * detectors + detector, connections.len());
                connections.push(Connection { input: cell.into(), unit, weight });
            }
        }
    }
    connections
}

/// The connections from the detectors of the lines in each plane to the plane's units. The first connection has the weight
/// `start`.
fn plane_connections(architecture: &Architecture, detectors: usize, units: usize, start: usize) -> Vec<Connection> {
    let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
    let mut connections = Vec::new();
    for (plane, lines) in planes::lines_by_plane(&geometry).into_iter().enumerate() {
        for input in lines.into_iter().flat_map(|line| line * detectors..(line + 1) * detectors) {
            for unit in plane * units..(plane + 1) * units {
                connections.push(Connection { input, unit, weight: start + connections.len() });
            }
        }
    }
    connections
}

/// The inputs: 1 for an own stone, -1 for a stone of the other side, 0 for an empty cell.
pub(super) fn inputs(board: Board, side: Side) -> Vec<f64> {
    let has = |stones: u64, cell: u32| f64::from((stones >> cell & 1) as u8);
    (0..64).map(|cell| has(board.stones(side), cell) - has(board.stones(side.other()), cell)).collect()
}

impl Layer {
    /// The weighted sums of all units.
    pub(super) fn sums(&self, weights: &[f64], below: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.units];
        sums[..self.biases.len()].copy_from_slice(&weights[self.biases.clone()]);
        match &self.wiring {
            Wiring::Full(start) => {
                for (input, row) in below.iter().zip(weights[*start..].chunks(self.units)) {
                    sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += input * weight);
                }
            }
            Wiring::Some(connections) => {
                connections.iter().for_each(|join| sums[join.unit] += below[join.input] * weights[join.weight]);
            }
        }
        sums
    }

    /// Propagates the units' errors back to the layer below.
    pub(super) fn errors(&self, weights: &[f64], below: &[f64], errors: &[f64]) -> Vec<f64> {
        let mut back = vec![0.0; below.len()];
        match &self.wiring {
            Wiring::Full(start) => {
                for (back, row) in back.iter_mut().zip(weights[*start..].chunks(self.units)) {
                    *back = row.iter().zip(errors).map(|(weight, error)| weight * error).sum();
                }
            }
            Wiring::Some(connections) => {
                connections.iter().for_each(|join| back[join.input] += errors[join.unit] * weights[join.weight]);
            }
        }
        back
    }

    /// Adds to each weight `step` times the derivative of the units' sums by it, weighted with their errors.
    pub(super) fn descend(&self, weights: &mut [f64], below: &[f64], errors: &[f64], step: f64) {
        match &self.wiring {
            Wiring::Full(start) => {
                for (input, row) in below.iter().zip(weights[*start..].chunks_mut(self.units)) {
                    row.iter_mut().zip(errors).for_each(|(weight, error)| *weight += step * input * error);
                }
            }
            Wiring::Some(connections) => {
                for join in connections {
                    weights[join.weight] += step * below[join.input] * errors[join.unit];
                }
            }
        }
        let biases = weights[self.biases.clone()].iter_mut();
        biases.zip(errors).for_each(|(bias, error)| *bias += step * error);
    }
}
