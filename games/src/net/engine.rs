//! What a network can do in play and in learning, whichever it is.

use crate::board::{Board, Side};

/// A network in play and in learning, on one board that begins empty.
pub trait Engine: 'static {
    /// Goes back to the empty board.
    fn reset(&mut self);

    /// For each legal cell: the output unit's weighted sum, before its activation, of the board after the side to move has
    /// taken that cell, seen by that side. What stands at other cells is left undefined.
    fn values(&mut self, legal: u64, out: &mut [f32; 64]);

    /// The side to move takes the cell, which is free.
    fn play(&mut self, cell: u8);

    /// One step of online backpropagation: the value of `board`, as `side` sees it, goes towards `target` by gradient
    /// descent on half the squared error, with this rate. `derivative` says whether the slope of the output unit's
    /// activation is a factor of the error. The board is one of this game up to now; it may be the present one.
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool);

    /// The weights as they are, in canonical order.
    fn weights(&self) -> Vec<f32>;
}

/// What to do with an engine, whichever it is.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it. Should be `#[inline(always)]`, as everything that is called from it in loops: then it is compiled once for
    /// each engine and each instruction set, with nothing between the loop of games and the arithmetic.
    fn run<E: Engine>(self, engine: &mut E) -> Self::Output;
}
