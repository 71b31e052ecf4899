//! The ranges of tensors, and the quad and lane of each unit of the first layer.

use std::ops::Range;

use crate::net::{Architecture, First, Tensor};

/// The positions of a network's weights and units.
#[derive(Clone, Debug)]
pub(in crate::net) struct Layout {
    pub(super) architecture: Architecture,
    tensors: Vec<Tensor>,
    /// The number of units of the first layer that read the same cells: the detectors of a line, or all units.
    detectors: usize,
}

impl Layout {
    pub(super) fn new(architecture: &Architecture) -> Self {
        let detectors = match architecture.first {
            First::Lines { detectors } | First::Planes { detectors, .. } => detectors,
            First::Dense { units } => units,
            First::Tuples { .. } => unreachable!("tables have an engine of their own"),
        };
        Self { architecture: *architecture, tensors: architecture.tensors(), detectors }
    }

    /// The range of a tensor's weights; empty if the network has no tensor with that name.
    pub(super) fn range(&self, name: &str) -> Range<usize> {
        self.tensors.iter().find(|tensor| tensor.name == name).map_or(0..0, |tensor| tensor.range.clone())
    }

    /// The number of quads of units that read the same cells: the parts of a line.
    pub(super) fn parts(&self) -> usize {
        self.detectors.div_ceil(4)
    }

    /// All units of the first layer in canonical order, each with its quad and its lane in the quad.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.architecture.units()).map(|unit| {
            let (group, detector) = (unit / self.detectors, unit % self.detectors);
            (group * self.parts() + detector / 4, detector % 4)
        })
    }
}
