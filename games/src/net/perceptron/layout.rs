//! Where canonical weights are, and at which quad and lane each unit of the first layer stands.

use std::ops::Range;

use crate::net::{Architecture, First, Tensor};

/// The places of a network's weights and units.
#[derive(Clone, Debug)]
pub(in crate::net) struct Layout {
    pub(super) architecture: Architecture,
    tensors: Vec<Tensor>,
    /// Units of the first layer that look at the same cells: the detectors of a line, or all.
    detectors: usize,
}

impl Layout {
    pub(super) fn new(architecture: &Architecture) -> Self {
        let detectors = match architecture.first {
            First::Lines { detectors } => detectors,
            First::Dense { units } => units,
            First::Tuples { .. } => unreachable!("tables have an engine of their own"),
        };
        Self { architecture: *architecture, tensors: architecture.tensors(), detectors }
    }

    /// Where a tensor's weights are; nowhere if the network has none of that name.
    pub(super) fn range(&self, name: &str) -> Range<usize> {
        self.tensors.iter().find(|tensor| tensor.name == name).map_or(0..0, |tensor| tensor.range.clone())
    }

    /// Quads of units that look at the same cells.
    pub(super) fn parts(&self) -> usize {
        self.detectors.div_ceil(4)
    }

    /// All units of the first layer in canonical order, each with its quad and its lane in it.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.architecture.units()).map(|unit| {
            let (group, detector) = (unit / self.detectors, unit % self.detectors);
            (group * self.parts() + detector / 4, detector % 4)
        })
    }
}
