//! Computes fitness as fast as possible: sixteen boards side by side.
//!
//! The fitness of a network depends on the worth of the cells that it takes on the training boards ([`super::measure`],
//! equation 31 of the paper). Each share of a board's best score is a multiple of 2^-24, different shares of a board differ
//! by more than 4e-7, and scores are whole numbers. Sums are therefore exact in any order, and no rounding decides between
//! two networks.
//!
//! The nearest empty cell can change only at multiples of one half, so the choice depends only on which of sixteen equal
//! parts of the interval from 1 to 9 contains the output. A board is therefore a table of sixteen shares.
//!
//! Loops over lanes call nothing that takes a closure, because closures would be compiled for the baseline instruction set.
//! All nodes of a layer are computed in step: see [`evoxo_common::math::exp2_negatives`].

use std::sync::{Arc, Mutex, PoisonError};

use evoxo_common::kernel;

use super::{
    measure::{self, Measure},
    network::{
        Coupling, HIDDEN_MAX, INPUTS, Kind, Network, logistics, number, place, steepness, tanh, tanhs, transfer,
        transfers,
    },
};
use evoxo_games::player::teacher::{BOARDS, boards};

/// The number of boards that are judged side by side.
const LANES: usize = 16;
/// The number of intervals of one half between 1 and 9. The nearest empty cell can change only at their ends.
const HALVES: usize = 16;
/// The number of groups in a batch. All outputs of a batch are computed before the first one is looked up.
const BATCH: usize = 8;
/// The most judges with all boards that are kept, each of a third of a megabyte.
const KEPT_MAX: usize = 16;
type Lanes = [f64; LANES];

/// Sixteen boards.
#[derive(Clone)]
struct Group {
    inputs: [Lanes; INPUTS],
    /// For each board: the worth of the cell taken when the output's place is in [i, i + 1).
    shares: [[u32; HALVES]; LANES],
}

/// A network and the boards that it is judged on.
#[derive(Clone)]
pub struct Judge {
    network: Network,
    /// The sum that corresponds to a fitness of 1.
    whole: u64,
    groups: Vec<Group>,
}

impl Judge {
    /// A judge with the [`boards`] of these indices.
    ///
    /// # Panics
    /// If an index has no board.
    #[must_use]
    pub fn new(network: Network, measure: Measure, indices: &[u32]) -> Self {
        let group = |indices: &[u32]| {
            // Unused lanes have shares of 0.
            let mut group = Group { inputs: [[0.5; LANES]; INPUTS], shares: [[0; HALVES]; LANES] };
            for (lane, index) in indices.iter().enumerate() {
                let input = network.input(boards()[*index as usize]);
                input.iter().enumerate().for_each(|(i, value)| group.inputs[i][lane] = *value);
                group.shares[lane] = shares(network, measure, *index);
            }
            group
        };
        Self { network, whole: measure.whole(indices), groups: indices.chunks(LANES).map(group).collect() }
    }

    /// A judge with all boards. Every champion of an arm is judged on them again, and making the judge takes longer than ten
    /// of its answers, so the last judges are kept.
    #[must_use]
    pub fn all(network: Network, measure: Measure) -> Arc<Self> {
        static KEPT: Mutex<Vec<(Measure, Arc<Judge>)>> = Mutex::new(Vec::new());
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(other, judge): &&(Measure, Arc<Self>)| *other == measure && judge.network == network;
        if let Some((_, judge)) = kept.iter().find(same) {
            return Arc::clone(judge);
        }
        let judge = Arc::new(Self::new(network, measure, &(0..BOARDS as u32).collect::<Vec<u32>>()));
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push((measure, Arc::clone(&judge)));
        judge
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The total worth of the cells that a chromosome takes, in the units of [`Measure::worth`].
    ///
    /// # Panics
    /// If the number of genes is not that of the network.
    #[must_use]
    pub fn sum(&self, genes: &[f32]) -> u64 {
        match self.network.kind {
            Kind::Double => sum_double(&self.groups, genes, self.network.hidden, self.network.coupling),
            Kind::Traditional => sum_traditional(&self.groups, genes, self.network.hidden),
            Kind::Logistic => sum_logistic(&self.groups, genes, self.network.hidden),
        }
    }

    /// The fitness, 0 to 1, that corresponds to a sum.
    #[must_use]
    pub fn fitness(&self, sum: u64) -> f64 {
        measure::fitness(sum, self.whole)
    }
}

/// The worth of the choice on a board, for each interval of the output's place.
fn shares(network: Network, measure: Measure, index: u32) -> [u32; HALVES] {
    // An interval includes its lower end but not its upper end, so any place between them will do.
    std::array::from_fn(|half| measure.worth_of_number(network, index, number(half as f64 + 0.25)))
}

/// The sum of the shares of these groups at these places. The indices are checked, which keeps the compiler from using
/// gathers: those are slower.
#[inline(always)]
fn sum_of_shares(groups: &[Group], halves: &[[u64; LANES]; BATCH]) -> u64 {
    let mut sum = 0;
    for (group, halves) in groups.iter().zip(halves) {
        for (shares, half) in group.shares.iter().zip(halves) {
            sum += u64::from(shares[*half as usize]);
        }
    }
    sum
}

/// The greatest integer that is at most `place`, but 15 for 16. A saturating conversion would not be vectorised.
#[inline(always)]
fn below(place: f64) -> u64 {
    /// Adding this to a small number leaves the nearest integer in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = place + ROUND;
    let nearest = shifted.to_bits() & 31;
    let whole = nearest - u64::from(shifted - ROUND > place);
    if whole < 15 { whole } else { 15 }
}

/// The weighted sums of the inputs on one board, for all nodes in step.
#[inline(always)]
fn hidden_sums<const ROOM: usize>(
    inputs: &[Lanes; INPUTS],
    lane: usize,
    weights: &[[f64; ROOM]; INPUTS],
) -> [f64; ROOM] {
    let mut sums = [0.0; ROOM];
    for j in 0..ROOM {
        sums[j] = weights[0][j] * inputs[0][lane];
    }
    for i in 1..INPUTS {
        for j in 0..ROOM {
            sums[j] += weights[i][j] * inputs[i][lane];
        }
    }
    sums
}

/// The weighted sums of the nodes' outputs.
#[inline(always)]
fn output_sum<const ROOM: usize>(hidden: usize, z: &[Lanes; ROOM], weights: &[f64; ROOM]) -> Lanes {
    let mut sums = [0.0; LANES];
    for lane in 0..LANES {
        sums[lane] = weights[0] * z[0][lane];
    }
    for j in 1..hidden {
        for lane in 0..LANES {
            sums[lane] += weights[j] * z[j][lane];
        }
    }
    sums
}

/// Stores the outputs of all nodes for one board.
#[inline(always)]
fn store_outputs<const ROOM: usize>(rows: &mut [Lanes; ROOM], lane: usize, outputs: [f64; ROOM]) {
    for (row, output) in rows.iter_mut().zip(&outputs) {
        row[lane] = *output;
    }
}

/// The genes of the nodes, beginning at gene `from`. Unused room is filled with 0.
#[inline(always)]
fn part<const ROOM: usize>(hidden: usize, genes: &[f32], from: usize) -> [f64; ROOM] {
    let mut part = [0.0; ROOM];
    for j in 0..hidden {
        part[j] = f64::from(genes[from + j]);
    }
    part
}

/// The first layer's weights, input by input.
#[inline(always)]
fn weights<const ROOM: usize>(hidden: usize, genes: &[f32]) -> [[f64; ROOM]; INPUTS] {
    std::array::from_fn(|input| part(hidden, genes, hidden * input))
}

/// Calls a function with the number of hidden nodes that it has room for as a constant. Loops of fixed length make networks
/// several times as fast. The paper's eight nodes have a compiled version of their own; a version for each number of nodes
/// would take minutes to compile.
macro_rules! with_hidden {
    ($function:ident($hidden:expr, $($argument:expr),+)) => {
        match $hidden {
            8 => $function::<8>(8, $($argument),+),
            hidden @ 1..8 => $function::<8>(hidden, $($argument),+),
            hidden => $function::<HIDDEN_MAX>(hidden, $($argument),+),
        }
    };
}

kernel! {
    /// The network with double transfer functions. It performs the operations of [`Network::output`] in the same order.
    fn sum_double(groups: &[Group], genes: &[f32], hidden: usize, coupling: Coupling) -> u64 {
        assert_eq!(genes.len(), Kind::Double.genes(hidden), "a chromosome has as many genes as its network");
        with_hidden!(double(hidden, groups, genes, coupling))
    }
}

#[inline(always)]
fn double<const ROOM: usize>(hidden: usize, groups: &[Group], genes: &[f32], coupling: Coupling) -> u64 {
    let Coupling { sweeps, in_place } = coupling;
    let rest = INPUTS * hidden;
    let weights: [[f64; ROOM]; INPUTS] = weights(hidden, genes);
    let mean: [f64; ROOM] = part(hidden, genes, rest);
    let spread: [f64; ROOM] = part(hidden, genes, rest + hidden);
    let next: [f64; ROOM] = part(hidden, genes, rest + 2 * hidden);
    let before: [f64; ROOM] = part(hidden, genes, rest + 3 * hidden);
    let last: [f64; ROOM] = part(hidden, genes, rest + 4 * hidden);
    let output: [f64; 2] = part(2, genes, rest + 5 * hidden);
    let mut steep = [0.0; ROOM];
    for j in 0..ROOM {
        steep[j] = steepness(spread[j]);
    }
    let output_steep = steepness(output[1]);
    let mut sum = 0;
    for batch in groups.chunks(BATCH) {
        let mut nets = [[0.0; LANES]; BATCH];
        for (group, net) in batch.iter().zip(&mut nets) {
            let mut k = [[0.0; LANES]; ROOM];
            for lane in 0..LANES {
                let mut difference = hidden_sums(&group.inputs, lane, &weights);
                for j in 0..ROOM {
                    difference[j] -= mean[j];
                }
                store_outputs(&mut k, lane, transfers(difference, steep));
            }
            let mut z = if sweeps == 0 { [[1.0; LANES]; ROOM] } else { k };
            for _ in 0..sweeps.max(1) {
                if in_place {
                    sweep_in_place(hidden, &k, &mut z, &next, &before);
                    continue;
                }
                let n = z;
                for lane in 0..LANES {
                    let (mut difference, mut steep) = ([0.0; ROOM], [0.0; ROOM]);
                    for j in 0..hidden {
                        let [after, behind] = neighbours(hidden, j);
                        difference[j] = k[j][lane] - next[j] * n[after][lane];
                        steep[j] = steepness(before[j] * n[behind][lane]);
                    }
                    store_outputs(&mut z, lane, transfers(difference, steep));
                }
            }
            *net = output_sum(hidden, &z, &last);
        }
        let mut halves = [[0; LANES]; BATCH];
        for (halves, net) in halves.iter_mut().zip(&nets[..batch.len()]) {
            for lane in 0..LANES {
                halves[lane] = below(place(transfer(net[lane] - output[0], output_steep)));
            }
        }
        sum += sum_of_shares(batch, &halves);
    }
    sum
}

/// The nodes that a node reads: its neighbours in the ring.
#[inline(always)]
fn neighbours(hidden: usize, j: usize) -> [usize; 2] {
    [if j + 1 < hidden { j + 1 } else { 0 }, if j > 0 { j - 1 } else { hidden - 1 }]
}

/// Updates one node after another, for all boards in step.
#[inline(always)]
fn sweep_in_place<const ROOM: usize>(
    hidden: usize,
    k: &[Lanes; ROOM],
    z: &mut [Lanes; ROOM],
    next: &[f64; ROOM],
    before: &[f64; ROOM],
) {
    for j in 0..hidden {
        let [after, behind] = neighbours(hidden, j);
        let (mut difference, mut steep) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            difference[lane] = k[j][lane] - next[j] * z[after][lane];
            steep[lane] = steepness(before[j] * z[behind][lane]);
        }
        z[j] = transfers(difference, steep);
    }
}

kernel! {
    /// The traditional network. It performs the operations of [`Network::output`] in the same order.
    fn sum_traditional(groups: &[Group], genes: &[f32], hidden: usize) -> u64 {
        assert_eq!(genes.len(), Kind::Traditional.genes(hidden), "a chromosome has as many genes as its network");
        with_hidden!(traditional(hidden, groups, genes, false))
    }
}

kernel! {
    /// The traditional network with the logistic function. It performs the operations of [`Network::output`] in the same
    /// order.
    fn sum_logistic(groups: &[Group], genes: &[f32], hidden: usize) -> u64 {
        assert_eq!(genes.len(), Kind::Logistic.genes(hidden), "a chromosome has as many genes as its network");
        with_hidden!(traditional(hidden, groups, genes, true))
    }
}

#[inline(always)]
fn traditional<const ROOM: usize>(hidden: usize, groups: &[Group], genes: &[f32], logistic: bool) -> u64 {
    let rest = INPUTS * hidden;
    let weights: [[f64; ROOM]; INPUTS] = weights(hidden, genes);
    let bias: [f64; ROOM] = part(hidden, genes, rest);
    let last: [f64; ROOM] = part(hidden, genes, rest + hidden);
    let output = f64::from(genes[rest + 2 * hidden]);
    let mut sum = 0;
    for batch in groups.chunks(BATCH) {
        let mut nets = [[0.0; LANES]; BATCH];
        for (group, net) in batch.iter().zip(&mut nets) {
            let mut z = [[0.0; LANES]; ROOM];
            for lane in 0..LANES {
                let mut sums = hidden_sums(&group.inputs, lane, &weights);
                for j in 0..ROOM {
                    sums[j] += bias[j];
                }
                store_outputs(&mut z, lane, if logistic { logistics(sums) } else { tanhs(sums) });
            }
            *net = output_sum(hidden, &z, &last);
        }
        let mut halves = [[0; LANES]; BATCH];
        for (halves, net) in halves.iter_mut().zip(&nets[..batch.len()]) {
            for lane in 0..LANES {
                let sum = net[lane] + output;
                halves[lane] = below(place(tanh(if logistic { sum / 2.0 } else { sum })));
            }
        }
        sum += sum_of_shares(batch, &halves);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        measure::{Formula, Occupied},
        network::{NetworkPlayer, Numbering},
    };
    use evoxo_common::{rng::Stream, simd};

    fn networks() -> Vec<Network> {
        let mut networks = Vec::new();
        for numbering in [Numbering::LeftToRight, Numbering::RightToLeft] {
            let double = [0, 1, 3].map(|sweeps| (Kind::Double, sweeps));
            for (kind, sweeps) in double.into_iter().chain([(Kind::Traditional, 1), (Kind::Logistic, 1)]) {
                let coupling = Coupling::at_once(sweeps);
                networks.push(Network { coupling, numbering, ..Network::paper(kind) });
                let coupling = Coupling::in_place(sweeps);
                networks.push(Network { coupling, numbering, ..Network::paper(kind) });
            }
        }
        networks
    }

    /// All readings of the fitness.
    fn measures() -> impl Iterator<Item = Measure> + Clone {
        let formulas = [Formula::MeanOfRatios, Formula::RatioOfSums].into_iter();
        formulas
            .flat_map(|formula| [Occupied::Nearest, Occupied::Nothing].map(|occupied| Measure { formula, occupied }))
    }

    /// Computes the sum one board after another, with the player itself.
    fn reference(network: Network, measure: Measure, indices: &[u32], genes: &[f32]) -> u64 {
        let player = NetworkPlayer::new(network, genes.to_vec()).unwrap();
        let worth = |index: &u32| {
            let board = boards()[*index as usize];
            let named = match measure.occupied {
                Occupied::Nearest => player.choose(board).unwrap(),
                Occupied::Nothing => network.nearest(evoxo_games::board::Board::EMPTY, player.number(board)).unwrap(),
            };
            u64::from(measure.worth(*index, named))
        };
        indices.iter().map(worth).sum()
    }

    /// With a margin of 0 all of the fitness is firm. A wider margin never leaves more of it, and a quarter of a cell number
    /// leaves less.
    #[test]
    fn the_firm_fitness_shrinks_with_the_margin() {
        for (network, measure) in networks().into_iter().flat_map(|network| measures().map(move |one| (network, one))) {
            let player = NetworkPlayer::new(network, network.random(&mut Stream::root(9).rng())).unwrap();
            let indices: Vec<u32> = (0..2423).step_by(7).collect();
            let judge = Judge::new(network, measure, &indices);
            let whole = judge.fitness(judge.sum(player.genes()));
            assert_eq!(measure.firm_fitness(&player, &indices, 0.0), whole, "{network:?}");
            let mut least = whole;
            for margin in [1e-6, 1e-3, 0.1, 0.25] {
                let firm = measure.firm_fitness(&player, &indices, margin);
                assert!(firm <= least, "{network:?}: {firm} with a margin of {margin}");
                least = firm;
            }
            assert!(least < whole, "{network:?}: a quarter of a cell number changes some choice");
        }
    }

    #[test]
    fn sums_match_the_reference_at_every_simd_level() {
        let sizes = |kind| (1..=HIDDEN_MAX).map(move |hidden| Network { hidden, ..Network::paper(kind) });
        let all_sizes = [Kind::Double, Kind::Traditional, Kind::Logistic].into_iter().flat_map(sizes);
        for (network, seeds) in networks().into_iter().map(|it| (it, 40)).chain(all_sizes.map(|it| (it, 6))) {
            for (seed, measure) in (0..seeds).zip(measures().cycle()) {
                let mut rng = Stream::root(seed).rng();
                let mut genes = network.random(&mut rng);
                if seed % 4 == 0 {
                    // Some spreads are 0, and some outputs saturate.
                    genes.iter_mut().skip(seed as usize % 7).step_by(7).for_each(|gene| *gene = 0.0);
                }
                let indices: Vec<u32> = (0..2423).skip(seed as usize).step_by(1 + 3 * seed as usize).collect();
                let judge = Judge::new(network, measure, &indices);
                let expected = reference(network, measure, &indices, &genes);
                simd::at_each_level(|level| {
                    assert_eq!(judge.sum(&genes), expected, "{network:?} {measure:?} seed {seed} at {level:?}");
                });
            }
        }
    }
}
