//! A second hidden layer of units on planes, each connected to the detectors on its plane's lines, and the output unit.

use fearless_simd::prelude::*;

use super::{Head, Output, Tiles};
use crate::{
    board::Geometry,
    net::{
        First,
        activation::Curve,
        lanes::{CrossLane, LANES, Vector, sums_across_quads, sums_within_quads, zero},
        perceptron::{Group, Layout, QUADS, Update},
        planes::{OF_LINE, PLANES, lines_by_plane},
    },
};

/// A plane for padding. Its sums are meaningless, and its errors are 0.
const PADDING: usize = PLANES;
/// Planes with padding.
const ALL: usize = PLANES + 1;
/// The most planes through a cell.
const THROUGH: usize = 6;

/// The weights above one quad, by the planes of its line. Lane 4 u + d of tile t belongs to unit 4 u + t and detector d.
type Above<S> = [Tiles<S>; OF_LINE];

/// Up to sixteen units on each plane, and the output unit.
#[derive(Clone)]
pub(in crate::net) struct Planes<S: Simd> {
    simd: S,
    output: Output,
    curve: Curve,
    /// For each quad: the planes of its line, padded with [`PADDING`].
    planes: Box<[[u8; OF_LINE]; QUADS]>,
    second: Box<[Above<S>; QUADS]>,
    /// Output weights by plane.
    weights: [Vector<S>; ALL],
    /// A unit's bias is in the first lane of its quad, and the other three lanes are 0.
    biases: [Tiles<S>; ALL],
    /// The contribution of each plane of the current board to the output unit's sum, and their total: see [`Head::prepare`].
    parts: [Vector<S>; ALL],
    part: Vector<S>,
}

/// The changes that a move makes.
#[derive(Clone, Copy)]
pub(in crate::net) struct Changed<S: Simd> {
    /// The planes through the move's cell, padded with [`PADDING`].
    planes: [u8; THROUGH],
    /// The weighted sums of their units.
    sums: [Vector<S>; THROUGH],
}

impl<S: Simd> Planes<S> {
    /// Calls `f` with each weight and its canonical index.
    fn each(&mut self, layout: &Layout, mut f: impl FnMut(&mut f32, usize)) {
        let First::Planes { detectors, units } = layout.architecture.first else { unreachable!("it has planes") };
        let mut index = layout.range("planes.weight").start;
        for (plane, lines) in lines_by_plane(&geometry(layout)).iter().enumerate() {
            for line in lines {
                for detector in 0..detectors {
                    let quad = line * layout.parts() + detector / 4;
                    let at = self.planes[quad].iter().position(|other| usize::from(*other) == plane);
                    let tiles = &mut self.second[quad][at.expect("the line lies in the plane")];
                    for unit in 0..units {
                        f(&mut tiles[unit % 4][unit / 4 * 4 + detector % 4], index);
                        index += 1;
                    }
                }
            }
        }
        for (at, index) in layout.range("planes.bias").enumerate() {
            let (plane, unit) = (at / units, at % units);
            f(&mut self.biases[plane][unit % 4][unit / 4 * 4], index);
        }
        for (at, index) in layout.range("output.weight").enumerate() {
            f(&mut self.weights[at / units][at % units], index);
        }
        layout.range("output.bias").for_each(|index| f(&mut self.output.bias, index));
    }

    /// The values of a plane's units.
    #[inline(always)]
    fn values(&self, sums: &[Tiles<S>; ALL], plane: usize) -> Vector<S> {
        self.curve.apply_vector(sums_within_quads(&sums[plane]))
    }
}

fn geometry(layout: &Layout) -> Geometry {
    Geometry::new(layout.architecture.shape).expect("the architecture was checked")
}

impl<S: Simd> Head<S> for Planes<S> {
    type Sums = [Tiles<S>; ALL];
    type Preactivations = Changed<S>;
    type Errors = [Tiles<S>; ALL];

    fn new(simd: S, layout: &Layout, weights: &[f32]) -> Self {
        let zeros = [zero(simd); 4];
        let second = vec![[zeros; OF_LINE]; QUADS].into_boxed_slice().try_into();
        let mut planes = Box::new([[PADDING as u8; OF_LINE]; QUADS]);
        for (plane, lines) in lines_by_plane(&geometry(layout)).into_iter().enumerate() {
            for quad in lines.into_iter().flat_map(|line| line * layout.parts()..(line + 1) * layout.parts()) {
                let free = planes[quad].iter_mut().find(|free| usize::from(**free) == PADDING);
                *free.expect("a line lies in three planes at most") = plane as u8;
            }
        }
        let mut head = Self {
            simd,
            output: Output::new(layout, weights),
            curve: layout.architecture.activation.curve(),
            planes,
            second: second.unwrap_or_else(|_| unreachable!("it has that length")),
            weights: [zero(simd); ALL],
            biases: [zeros; ALL],
            parts: [zero(simd); ALL],
            part: zero(simd),
        };
        head.each(layout, |weight, index| *weight = weights[index]);
        head
    }

    fn write(&self, layout: &Layout, weights: &mut [f32]) {
        self.clone().each(layout, |weight, index| weights[index] = *weight);
    }

    #[inline(always)]
    fn start(&self) -> Self::Sums {
        self.biases
    }

    #[inline(always)]
    fn add(&self, sums: &mut Self::Sums, quads: [u16; 4], change: Vector<S>) {
        for index in 0..4 {
            let (quad, change) = (usize::from(quads[index]) % QUADS, change.broadcast_quad(index));
            for at in 0..OF_LINE {
                let (plane, weights) = (usize::from(self.planes[quad][at]) % ALL, &self.second[quad][at]);
                for tile in 0..4 {
                    sums[plane][tile] = weights[tile].fma(change, sums[plane][tile]);
                }
            }
        }
    }

    /// Computes the contribution of each plane to the output unit's sum. A move changes only the planes through its cell.
    #[inline(always)]
    fn prepare(&mut self, sums: &Self::Sums) {
        self.part = zero(self.simd);
        for plane in 0..PLANES {
            self.parts[plane] = self.values(sums, plane) * self.weights[plane];
            self.part += self.parts[plane];
        }
    }

    #[inline(always)]
    fn zero_preactivations(&self) -> Changed<S> {
        Changed { planes: [PADDING as u8; THROUGH], sums: [zero(self.simd); THROUGH] }
    }

    #[inline(always)]
    fn preactivations(
        &self,
        sums: &Self::Sums,
        blocks: &[[u16; 4]],
        change: impl Fn(usize) -> Vector<S>,
    ) -> Changed<S> {
        let mut mask = 0_u32;
        for plane in blocks.as_flattened().iter().flat_map(|quad| self.planes[usize::from(*quad) % QUADS]) {
            mask |= 1 << plane;
        }
        let (mut changed, mut places) = (self.zero_preactivations(), [THROUGH as u8; ALL]);
        // The last one is for padding.
        let mut tiles = [[zero(self.simd); 4]; THROUGH + 1];
        mask &= !(1 << PADDING);
        for at in 0..THROUGH {
            if mask == 0 {
                break;
            }
            let plane = mask.trailing_zeros() as usize % ALL;
            mask &= mask - 1;
            changed.planes[at] = plane as u8;
            places[plane] = at as u8;
            tiles[at] = sums[plane];
        }
        for (at, quads) in blocks.iter().enumerate() {
            let change = change(at);
            for index in 0..4 {
                let (quad, change) = (usize::from(quads[index]) % QUADS, change.broadcast_quad(index));
                for at in 0..OF_LINE {
                    let place = usize::from(places[usize::from(self.planes[quad][at]) % ALL]) % (THROUGH + 1);
                    for tile in 0..4 {
                        let weights = self.second[quad][at][tile];
                        tiles[place][tile] = weights.fma(change, tiles[place][tile]);
                    }
                }
            }
        }
        for at in 0..THROUGH {
            changed.sums[at] = sums_within_quads(&tiles[at]);
        }
        changed
    }

    #[inline(always)]
    fn parts(&self, preactivations: &[Changed<S>; LANES], count: usize) -> [Vector<S>; LANES] {
        let mut parts = [self.part; LANES];
        for (part, changed) in parts.iter_mut().zip(preactivations).take(count) {
            let values = self.curve.apply_vectors(changed.sums);
            for at in 0..THROUGH {
                let plane = usize::from(changed.planes[at]) % ALL;
                *part = values[at].fma(self.weights[plane], *part - self.parts[plane]);
            }
        }
        parts
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &Self::Sums, update: Update) -> Self::Errors {
        let (mut values, mut sum) = ([zero(self.simd); ALL], zero(self.simd));
        for plane in 0..PLANES {
            values[plane] = self.values(sums, plane);
            sum = values[plane].fma(self.weights[plane], sum);
        }
        let step = self.output.begin(sum.sum() + self.output.bias, update);
        let mut errors = [[zero(self.simd); 4]; ALL];
        for plane in 0..PLANES {
            let (weights, biases) = (&mut self.weights[plane], &mut self.biases[plane]);
            errors[plane] = self.output.learn_group(weights, biases, values[plane], step);
        }
        errors
    }

    #[inline(always)]
    fn back(&self, errors: &Self::Errors, group: usize) -> Vector<S> {
        let mut sums = [zero(self.simd); 4];
        for index in 0..4 {
            let quad = (4 * group + index) % QUADS;
            for at in 0..OF_LINE {
                let (plane, weights) = (usize::from(self.planes[quad][at]) % ALL, &self.second[quad][at]);
                for tile in 0..4 {
                    sums[index] = weights[tile].fma(errors[plane][tile], sums[index]);
                }
            }
        }
        sums_across_quads(&sums)
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.second.swap(left % QUADS, right % QUADS);
        self.planes.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, errors: &Self::Errors, groups: &[Group<S>]) -> [Self::Sums; V] {
        let mut sums = [self.biases; V];
        for (number, group) in groups.iter().enumerate() {
            for index in 0..4 {
                let quad = (4 * number + index) % QUADS;
                let past = group.past.broadcast_quad(index);
                for at in 0..OF_LINE {
                    let (plane, weights) = (usize::from(self.planes[quad][at]) % ALL, &mut self.second[quad][at]);
                    for tile in 0..4 {
                        weights[tile] = errors[plane][tile].fma(past, weights[tile]);
                    }
                    for view in 0..V {
                        let value = group.values[view].broadcast_quad(index);
                        for tile in 0..4 {
                            let sum = &mut sums[view][plane][tile];
                            *sum = weights[tile].fma(value, *sum);
                        }
                    }
                }
            }
        }
        sums
    }
}
