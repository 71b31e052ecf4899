//! The two networks of `nndtf`, 9-8-1 in the paper, and players made of them. One network has double transfer functions (Ling
//! and Lam 2011, section 3); the other is its traditional rival.
//!
//! The transfer function is f(x; m, s) = exp(-(x - m)^2 / 2 s^2) - 1 for x <= m, else 1 - exp(-(x - m)^2 / 2 s^2). For s = 0
//! it is the limit, the sign of x - m. Hidden node j has the static output k_j = f(sum_i v_ij x_i; ms_j, ss_j) and the final
//! output z_j = f(k_j; p(j+1, j) n(j+1), p(j-1, j) n(j-1)), where the nodes form a ring. The network's output is f(sum_j w_j
//! z_j; mo, so). [`Coupling`] defines the neighbours' n.
//!
//! Genes have single precision. Everything computed from them has double precision, with our own `exp` ([`exp2_negatives`]),
//! so that [`super::judge`] can compute sixteen boards side by side and still agree with this file bit for bit. Single
//! precision is not enough: within some hundred thousand steps, a search finds genes that put the outputs of many boards
//! within a rounding error of the middle between two cells, and then rounding selects the better cell
//! (docs/reproduction/nndtf.md has the figures). In double precision a rounding error is a hundred million times smaller than
//! the step between two values of a gene.

use evoxo_common::{
    choice,
    math::exp2_negatives,
    rng::{Generator, unit},
};
use evoxo_games::{
    board::{Board, Side, tic_tac_toe},
    odds::{Exact, Subject},
    player::teacher::seen_by_mover,
};

/// Cells of the board, which are the network's inputs.
pub const INPUTS: usize = 9;
/// Hidden nodes in the paper.
pub const HIDDEN: usize = 8;
/// The most hidden nodes.
pub const HIDDEN_MAX: usize = 16;
/// The most sweeps.
pub const SWEEPS_MAX: u32 = 64;

choice! {
    /// The kind of network.
    ///
    /// With 8 hidden nodes the double network has 114 genes: weights v (input by input, 8 each), ms, ss, p(j+1, j), p(j-1,
    /// j), w (8 each), mo, so. The traditional and the logistic network have 89 genes: weights v (input by input, 8 each),
    /// biases of the hidden nodes, w (8 each), the output's bias.
    pub enum Kind {
        /// with double transfer functions, 114 genes: the paper's proposal
        Double = "double",
        /// with the hyperbolic tangent and biases, 89 genes: the paper's rival
        Traditional = "traditional",
        /// the rival, but with the logistic function in both layers: another reading of "traditional"
        Logistic = "logistic",
    }
}

impl Kind {
    /// The length of a chromosome of a network with this number of hidden nodes.
    #[must_use]
    pub const fn genes(self, hidden: usize) -> usize {
        match self {
            Self::Double => INPUTS * hidden + 5 * hidden + 2,
            Self::Traditional | Self::Logistic => INPUTS * hidden + 2 * hidden + 1,
        }
    }
}

choice! {
    /// The order in which the cells are numbered from 1 to 9, row by row from the top, for the inputs and for the output.
    pub enum Numbering {
        /// each row from left to right
        LeftToRight = "left-to-right",
        /// each row from right to left, as the paper's text says
        RightToLeft = "right-to-left",
    }
}

impl Numbering {
    /// The cell whose number is `place` + 1. The function is its own inverse.
    #[must_use]
    pub const fn cell(self, place: usize) -> usize {
        match self {
            Self::LeftToRight => place,
            Self::RightToLeft => place / 3 * 3 + (2 - place % 3),
        }
    }
}

/// What a node reads from its neighbours. In the first sweep it reads their static outputs, and in each further sweep their
/// final outputs of the previous sweep. All nodes are updated at once, or in place: one node after another from the first to
/// the last, so that each node reads what the node behind it has just become. With a single sweep of all nodes at once, the
/// network is feed-forward. Without a sweep, a node reads nothing (n = 1), so genes alone give the mean and the spread of its
/// second function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coupling {
    /// 0 to [`SWEEPS_MAX`].
    pub sweeps: u32,
    /// Whether a sweep updates one node after another.
    pub in_place: bool,
}

impl Coupling {
    /// A coupling with this many sweeps, each of all nodes at once.
    #[must_use]
    pub const fn at_once(sweeps: u32) -> Self {
        Self { sweeps, in_place: false }
    }

    /// A coupling with this many sweeps, each of one node after another.
    #[must_use]
    pub const fn in_place(sweeps: u32) -> Self {
        Self { sweeps, in_place: true }
    }
}

/// A network without its genes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The kind of network.
    pub kind: Kind,
    /// Hidden nodes, 1 to [`HIDDEN_MAX`].
    pub hidden: usize,
    /// How nodes read their neighbours; the traditional network ignores it.
    pub coupling: Coupling,
    /// The order in which the cells are numbered.
    pub numbering: Numbering,
}

/// The square root of log2(e) / 2: exp(-(d / s)^2 / 2) = 2^-(d ROOT / s)^2.
pub(super) const ROOT: f64 = 0.849_321_800_288_019_1;
/// A spread is at least this value, which stands for the limit 0: any difference of two outputs other than 0 is then large
/// enough to saturate.
pub(super) const SPREAD_MIN: f64 = 1e-150;
/// 2 log2(e): tanh(x) = (1 - e) / (1 + e) with e = 2^-(x DOUBLE).
const DOUBLE: f64 = 2.0 * std::f64::consts::LOG2_E;

/// The factor of x - m in the exponent, for a spread.
#[inline(always)]
pub(super) fn steepness(spread: f64) -> f64 {
    let size = spread.abs();
    ROOT / if size > SPREAD_MIN { size } else { SPREAD_MIN }
}

/// f at `difference` = x - m, for a spread of this [`steepness`].
#[inline(always)]
pub(super) fn transfer(difference: f64, steepness: f64) -> f64 {
    transfers([difference], [steepness])[0]
}

/// [`transfer`] of several nodes in step, see [`exp2_negatives`].
#[inline(always)]
pub(super) fn transfers<const N: usize>(differences: [f64; N], steepness: [f64; N]) -> [f64; N] {
    let mut outputs = [0.0; N];
    for i in 0..N {
        let root = differences[i] * steepness[i];
        outputs[i] = root * root;
    }
    outputs = exp2_negatives(outputs);
    for i in 0..N {
        outputs[i] = (1.0 - outputs[i]).copysign(differences[i]);
    }
    outputs
}

/// The hyperbolic tangent, within 1e-15.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    tanhs([x])[0]
}

/// [`tanh`] of several nodes in step.
#[inline(always)]
pub(super) fn tanhs<const N: usize>(x: [f64; N]) -> [f64; N] {
    let mut outputs = [0.0; N];
    for i in 0..N {
        outputs[i] = x[i].abs() * DOUBLE;
    }
    outputs = exp2_negatives(outputs);
    for i in 0..N {
        outputs[i] = ((1.0 - outputs[i]) / (1.0 + outputs[i])).copysign(x[i]);
    }
    outputs
}

/// The logistic function 1 / (1 + exp(-x)) of several nodes in step, computed as half of 1 + tanh(x / 2).
#[inline(always)]
pub(super) fn logistics<const N: usize>(mut x: [f64; N]) -> [f64; N] {
    for x in &mut x {
        *x /= 2.0;
    }
    let mut outputs = tanhs(x);
    for output in &mut outputs {
        *output = 0.5 + 0.5 * *output;
    }
    outputs
}

/// The place on the board of an output y: 8 - 8 y, from 0 (number 9) to 16 (number 1), in steps of half a number.
#[inline(always)]
pub(super) fn place(y: f64) -> f64 {
    8.0 - 8.0 * y
}

/// The cell number of a place: exactly 5 + 4 y, from 1 to 9 and possibly fractional.
pub(super) fn number(place: f64) -> f64 {
    9.0 - place / 2.0
}

impl Network {
    /// The paper's network of a kind: 8 hidden nodes, feed-forward, with cells numbered from the left.
    #[must_use]
    pub const fn paper(kind: Kind) -> Self {
        Self { kind, hidden: HIDDEN, coupling: Coupling::at_once(1), numbering: Numbering::LeftToRight }
    }

    /// The length of a chromosome.
    #[must_use]
    pub const fn genes(&self) -> usize {
        self.kind.genes(self.hidden)
    }

    /// The output for this input, -1 to 1. It follows the formulas, one board at a time.
    ///
    /// # Panics
    /// If the number of genes is not that of the network.
    #[must_use]
    pub fn output(&self, genes: &[f32], input: &[f64; INPUTS]) -> f64 {
        assert_eq!(genes.len(), self.genes(), "a chromosome has as many genes as its network");
        let hidden = self.hidden;
        let genes: Vec<f64> = genes.iter().copied().map(f64::from).collect();
        let (weights, rest) = genes.split_at(INPUTS * hidden);
        let net = |j: usize| {
            let products = (0..INPUTS).map(|i| weights[hidden * i + j] * input[i]);
            products.reduce(|sum, product| sum + product).unwrap_or(0.0)
        };
        let dot = |z: &[f64], w: &[f64]| {
            z.iter().zip(w).map(|(z, w)| w * z).reduce(|sum, product| sum + product).unwrap_or(0.0)
        };
        match self.kind {
            Kind::Double => {
                let [mean, spread, next, before, w] = std::array::from_fn(|part| &rest[hidden * part..][..hidden]);
                let k: Vec<f64> = (0..hidden).map(|j| transfer(net(j) - mean[j], steepness(spread[j]))).collect();
                let Coupling { sweeps, in_place } = self.coupling;
                let node = |n: &[f64], j: usize| {
                    let (after, behind) = ((j + 1) % hidden, (j + hidden - 1) % hidden);
                    transfer(k[j] - next[j] * n[after], steepness(before[j] * n[behind]))
                };
                let sweep = |mut n: Vec<f64>, _| {
                    if !in_place {
                        return (0..hidden).map(|j| node(&n, j)).collect();
                    }
                    (0..hidden).for_each(|j| n[j] = node(&n, j));
                    n
                };
                let first = if sweeps == 0 { vec![1.0; hidden] } else { k.clone() };
                let z = (0..sweeps.max(1)).fold(first, sweep);
                transfer(dot(&z, w) - rest[5 * hidden], steepness(rest[5 * hidden + 1]))
            }
            Kind::Traditional => {
                let (bias, w) = (&rest[..hidden], &rest[hidden..2 * hidden]);
                let z: Vec<f64> = (0..hidden).map(|j| tanh(net(j) + bias[j])).collect();
                tanh(dot(&z, w) + rest[2 * hidden])
            }
            Kind::Logistic => {
                let (bias, w) = (&rest[..hidden], &rest[hidden..2 * hidden]);
                let z: Vec<f64> = (0..hidden).map(|j| logistics([net(j) + bias[j]])[0]).collect();
                // Twice the logistic function minus 1 ranges from -1 to 1, so the cell number is from 1 to 9, as in the other
                // networks.
                tanh((dot(&z, w) + rest[2 * hidden]) / 2.0)
            }
        }
    }

    /// A board as the network's input: 1 for the mover's own stones, -1 for the opponent's, 0.5 for empty cells, in the order
    /// of cell numbers.
    #[must_use]
    pub fn input(&self, board: Board) -> [f64; INPUTS] {
        std::array::from_fn(|place| {
            let cell = self.numbering.cell(place);
            match (board.x >> cell & 1, board.o >> cell & 1) {
                (1, _) => 1.0,
                (_, 1) => -1.0,
                _ => 0.5,
            }
        })
    }

    /// The empty cell whose number is nearest to `number`; of two equally near cells, the one with the lower number. `None`
    /// on a full board.
    #[must_use]
    pub fn nearest(&self, board: Board, number: f64) -> Option<u8> {
        let free = (0..INPUTS).filter(|place| tic_tac_toe().legal(board) >> self.numbering.cell(*place) & 1 == 1);
        let far = |place: &usize| (*place as f64 + 1.0 - number).abs();
        free.min_by(|one, two| far(one).total_cmp(&far(two))).map(|place| self.numbering.cell(place) as u8)
    }

    /// A chromosome of random genes, each uniform in [-1, 1).
    #[must_use]
    pub fn random(&self, rng: &mut Generator) -> Vec<f32> {
        (0..self.genes()).map(|_| gene(rng, RANGE)).collect()
    }
}

/// The least and the greatest value of a gene.
pub type Bounds = (f32, f32);
/// The paper's bounds of a gene.
pub const RANGE: Bounds = (-1.0, 1.0);
/// The greatest magnitude that a bound may have.
pub const GENE_MAX: f32 = 1000.0;

/// A random gene, uniform between the bounds in 2^24 steps. With the paper's bounds it is a multiple of 2^-23, so rounding
/// never yields 1.
pub fn gene(rng: &mut Generator, (least, most): Bounds) -> f32 {
    let [least, most] = [least, most].map(f64::from);
    ((unit(rng) * 16_777_216.0).floor() / 16_777_216.0 * (most - least) + least) as f32
}

/// A network with its genes: a player of either side.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPlayer {
    network: Network,
    genes: Vec<f32>,
}

impl NetworkPlayer {
    /// A player with these genes.
    ///
    /// # Errors
    /// A message if the number of genes is not that of the network, or if a gene is outside -[`GENE_MAX`] to [`GENE_MAX`].
    pub fn new(network: Network, genes: Vec<f32>) -> Result<Self, String> {
        check(network.genes(), (-GENE_MAX, GENE_MAX), &genes)?;
        Ok(Self { network, genes })
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The genes.
    #[must_use]
    pub fn genes(&self) -> &[f32] {
        &self.genes
    }

    /// The output for the side to move, as a cell number from 1 to 9 that may be fractional. When O is to move, the network
    /// sees the board with the sides swapped.
    #[must_use]
    pub fn number(&self, board: Board) -> f64 {
        number(place(self.network.output(&self.genes, &self.network.input(seen_by_mover(board)))))
    }

    /// The cell that the network takes for the side to move. `None` on a full board.
    #[must_use]
    pub fn choose(&self, board: Board) -> Option<u8> {
        self.network.nearest(board, self.number(board))
    }

    /// Walks all games in which this player plays this side, without a filter.
    #[must_use]
    pub fn exact(&self, side: Side) -> Exact {
        let choose = Box::new(|board| self.choose(board).map_or(0, |cell| 1 << cell));
        let exact = Subject { side, filtered: false, choose }.exact();
        exact.expect("a network has a move on every board that is not full")
    }
}

/// Checks that a chromosome has this number of genes, all within these bounds.
///
/// # Errors
/// See [`NetworkPlayer::new`].
pub fn check(count: usize, (least, most): Bounds, genes: &[f32]) -> Result<(), String> {
    if genes.len() != count {
        return Err(format!("a chromosome of this network has {count} genes, not {}", genes.len()));
    }
    match genes.iter().position(|gene| !(least..=most).contains(gene)) {
        None => Ok(()),
        Some(at) => Err(format!("gene {at} is {}, which is not a number from {least} to {most}", genes[at])),
    }
}
