//! The interface of all networks in play and in learning.

use crate::board::{Board, Side};

/// A network in play and in learning, on one board that begins empty.
pub trait Engine: 'static {
    /// Returns to the empty board.
    fn reset(&mut self);

    /// For each legal cell: the output unit's weighted sum, before its activation, for the board after the side to move has
    /// taken that cell, as that side sees it. The numbers of other cells are undefined.
    fn values(&mut self, legal: u64, out: &mut [f32; 64]);

    /// The output unit's weighted sum, before its activation, for the current board as `side` sees it.
    fn value(&mut self, side: Side) -> f32;

    /// Takes a free cell for the side to move.
    fn play(&mut self, cell: u8);

    /// One step of online backpropagation: moves the value of `board`, as `side` sees it, towards `target` by gradient
    /// descent on half the squared error, with this rate. `derivative` says whether the slope of the output unit's activation
    /// is a factor of the error. The board must be the current one or an earlier one of this game.
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool);

    /// The current weights, in canonical order.
    fn weights(&self) -> Vec<f32>;
}
