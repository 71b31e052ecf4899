//! Fitness as fast as it goes: sixteen boards side by side.
//!
//! The fitness of a network is the mean, over the training boards, of the score of the cell it takes divided by the best
//! score of the board (equation 31 of the paper). Each share is kept as a whole number of 2^-24, and no two different shares
//! of a board are nearer than 4e-7: so sums are exact in any order, and no rounding decides between two networks.
//!
//! The output of a network only says, in half numbers, between which two sixteenths of the line from 1 to 9 it lies: where
//! the nearest empty cell changes is always a multiple of one half. So a board is a table of sixteen shares.

use crate::simd::kernel;

use super::{
    network::{HIDDEN, INPUTS, Kind, Network, number, place, steepness, tanh, transfer},
    teacher::{BOARDS, boards, scores},
};

/// Boards side by side.
const LANES: usize = 16;
/// Half numbers from 1 to 9, where the nearest empty cell can change.
const HALVES: usize = 16;
/// A share of 1.
pub const WHOLE: u32 = 1 << 24;

type Lanes = [f32; LANES];

/// Sixteen boards.
#[derive(Clone)]
struct Group {
    inputs: [Lanes; INPUTS],
    /// For each board the share of the cell taken when the output's place lies in [i, i + 1).
    shares: [[u32; HALVES]; LANES],
}

/// A network and the boards it is judged on.
#[derive(Clone)]
pub struct Judge {
    network: Network,
    boards: usize,
    groups: Vec<Group>,
}

impl Judge {
    /// A judge with these of the [`boards`].
    ///
    /// # Panics
    /// If there is no board of an index.
    #[must_use]
    pub fn new(network: Network, indices: &[u32]) -> Self {
        let group = |indices: &[u32]| {
            // Lanes without a board have no shares.
            let mut group = Group { inputs: [[0.5; LANES]; INPUTS], shares: [[0; HALVES]; LANES] };
            for (lane, index) in indices.iter().enumerate() {
                let input = network.input(boards()[*index as usize]);
                input.iter().enumerate().for_each(|(i, value)| group.inputs[i][lane] = *value);
                group.shares[lane] = shares(network, *index);
            }
            group
        };
        Self { network, boards: indices.len(), groups: indices.chunks(LANES).map(group).collect() }
    }

    /// A judge with all boards.
    #[must_use]
    pub fn all(network: Network) -> Self {
        Self::new(network, &(0..BOARDS as u32).collect::<Vec<u32>>())
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The sum of shares of a chromosome, in units of 1 / [`WHOLE`] of a board.
    ///
    /// # Panics
    /// If there are not as many genes as the network has.
    #[must_use]
    pub fn sum(&self, genes: &[f32]) -> u64 {
        match self.network.kind {
            Kind::Double => sum_double(&self.groups, genes, self.network.coupling.sweeps),
            Kind::Traditional => sum_traditional(&self.groups, genes),
        }
    }

    /// The fitness, 0 to 1, that a sum stands for.
    #[must_use]
    pub fn fitness(&self, sum: u64) -> f64 {
        fitness(sum, self.boards)
    }
}

/// The fitness, 0 to 1, that a sum over so many boards stands for.
#[must_use]
pub fn fitness(sum: u64, boards: usize) -> f64 {
    sum as f64 / (boards as f64 * f64::from(WHOLE))
}

/// The shares of a board by the place of the output.
fn shares(network: Network, index: u32) -> [u32; HALVES] {
    let board = boards()[index as usize];
    std::array::from_fn(|half| {
        // The lower end of the place belongs to it, the upper does not: any place between them will do.
        let cell = network.nearest(board, number(half as f32 + 0.25)).expect("the game goes on, so a cell is empty");
        share(index, cell)
    })
}

/// The score of a cell divided by the best, in units of 1 / [`WHOLE`].
///
/// # Panics
/// If there is no board of that index.
#[must_use]
pub fn share(index: u32, cell: u8) -> u32 {
    let scores = scores(boards()[index as usize]);
    let best = u64::from(scores.iter().max().copied().unwrap_or(1));
    ((u64::from(scores[usize::from(cell)]) * u64::from(WHOLE) + best / 2) / best) as u32
}

/// Shares of one group added to the sums.
#[inline(always)]
fn add(sums: &mut [u32; LANES], group: &Group, outputs: &Lanes) {
    let mut halves = [0; LANES];
    for lane in 0..LANES {
        halves[lane] = below(place(outputs[lane]));
    }
    for lane in 0..LANES {
        sums[lane] += group.shares[lane][halves[lane] as usize % HALVES];
    }
}

/// The greatest whole number that is not above a place, but 15 for 16. A conversion that saturates would not run in lanes.
#[inline(always)]
fn below(place: f32) -> u32 {
    /// Added to a small number it leaves the nearest whole one in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = place + ROUND;
    let nearest = shifted.to_bits() & 31;
    let whole = nearest - u32::from(shifted - ROUND > place);
    if whole < 15 { whole } else { 15 }
}

/// The weighted sum of rows of lanes.
#[inline(always)]
fn weigh<const N: usize>(rows: &[Lanes; N], weight: impl Fn(usize) -> f32) -> Lanes {
    let mut sum: Lanes = std::array::from_fn(|lane| weight(0) * rows[0][lane]);
    for (index, row) in rows.iter().enumerate().skip(1) {
        for lane in 0..LANES {
            sum[lane] += weight(index) * row[lane];
        }
    }
    sum
}

fn total(sums: [u32; LANES]) -> u64 {
    // Each lane has at most 152 shares of at most 2^24.
    sums.iter().map(|sum| u64::from(*sum)).sum()
}

kernel! {
    /// The network with double transfer functions: the operations of [`Network::output`] in their order.
    fn sum_double(groups: &[Group], genes: &[f32], sweeps: u32) -> u64 {
        let genes: &[f32; Kind::Double.genes()] = genes.try_into().expect("a chromosome has as many genes as its network");
        let (weights, rest) = genes.split_at(INPUTS * HIDDEN);
        let rest: &[f32; 5 * HIDDEN + 2] = rest.try_into().expect("these are the others");
        let steep: [f32; HIDDEN] = std::array::from_fn(|j| steepness(rest[HIDDEN + j]));
        let output = steepness(rest[5 * HIDDEN + 1]);
        let mut sums = [0; LANES];
        for group in groups {
            let mut k = [[0.0; LANES]; HIDDEN];
            for j in 0..HIDDEN {
                let net = weigh(&group.inputs, |i| weights[HIDDEN * i + j]);
                for lane in 0..LANES {
                    k[j][lane] = transfer(net[lane] - rest[j], steep[j]);
                }
            }
            let mut z = k;
            for _ in 0..sweeps {
                let n = z;
                for j in 0..HIDDEN {
                    let (after, behind) = ((j + 1) % HIDDEN, (j + HIDDEN - 1) % HIDDEN);
                    let (next, before) = (rest[2 * HIDDEN + j], rest[3 * HIDDEN + j]);
                    for lane in 0..LANES {
                        z[j][lane] = transfer(k[j][lane] - next * n[after][lane], steepness(before * n[behind][lane]));
                    }
                }
            }
            let net = weigh(&z, |j| rest[4 * HIDDEN + j]);
            let y = std::array::from_fn(|lane| transfer(net[lane] - rest[5 * HIDDEN], output));
            add(&mut sums, group, &y);
        }
        total(sums)
    }
}

kernel! {
    /// The traditional network: the operations of [`Network::output`] in their order.
    fn sum_traditional(groups: &[Group], genes: &[f32]) -> u64 {
        let genes: &[f32; Kind::Traditional.genes()] =
            genes.try_into().expect("a chromosome has as many genes as its network");
        let (weights, rest) = genes.split_at(INPUTS * HIDDEN);
        let rest: &[f32; 2 * HIDDEN + 1] = rest.try_into().expect("these are the others");
        let mut sums = [0; LANES];
        for group in groups {
            let mut z = [[0.0; LANES]; HIDDEN];
            for j in 0..HIDDEN {
                let net = weigh(&group.inputs, |i| weights[HIDDEN * i + j]);
                for lane in 0..LANES {
                    z[j][lane] = tanh(net[lane] + rest[j]);
                }
            }
            let net = weigh(&z, |j| rest[HIDDEN + j]);
            let y = std::array::from_fn(|lane| tanh(net[lane] + rest[2 * HIDDEN]));
            add(&mut sums, group, &y);
        }
        total(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiment::nndtf::network::{Coupling, NetworkPlayer, Numbering},
        rng::Stream,
        simd,
    };

    fn networks() -> Vec<Network> {
        let mut networks = Vec::new();
        for numbering in [Numbering::LeftToRight, Numbering::RightToLeft] {
            for (kind, sweeps) in [(Kind::Double, 1), (Kind::Double, 3), (Kind::Traditional, 1)] {
                networks.push(Network { kind, coupling: Coupling { sweeps }, numbering });
            }
        }
        networks
    }

    /// One board after the other, by the player that plays.
    fn slow(network: Network, indices: &[u32], genes: &[f32]) -> u64 {
        let player = NetworkPlayer::new(network, genes.to_vec()).unwrap();
        indices.iter().map(|index| u64::from(share(*index, player.choose(boards()[*index as usize]).unwrap()))).sum()
    }

    #[test]
    fn fast_and_slow_agree_at_every_level() {
        for network in networks() {
            for seed in 0..40 {
                let mut rng = Stream::root(seed).rng();
                let mut genes = network.random(&mut rng);
                if seed % 4 == 0 {
                    // Spreads of 0, and outputs that saturate.
                    genes.iter_mut().skip(seed as usize % 7).step_by(7).for_each(|gene| *gene = 0.0);
                }
                let indices: Vec<u32> = (0..2423).skip(seed as usize).step_by(1 + 3 * seed as usize).collect();
                let judge = Judge::new(network, &indices);
                let expected = slow(network, &indices, &genes);
                for level in [simd::Level::Baseline, simd::Level::Avx2, simd::Level::Best] {
                    simd::set_level(level);
                    assert_eq!(judge.sum(&genes), expected, "{network:?} seed {seed} at {level:?}");
                }
            }
        }
    }
}
