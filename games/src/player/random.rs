//! Players that move at random, either always or after the filter.

use crate::board::{Geometry, Position};
use evoxo_common::rng::{Generator, below};

/// Any legal cell, with equal probability.
///
/// # Panics
/// If no cell is legal.
#[inline(always)]
pub fn random(position: Position, geometry: &Geometry, rng: &mut Generator) -> u8 {
    any_of(position.legal(geometry), rng)
}

/// A cell that completes an own line, or else one that blocks the opponent's, or else any cell. Several such cells are
/// equally likely.
///
/// # Panics
/// If no cell is legal.
#[inline(always)]
pub fn filtered(position: Position, geometry: &Geometry, rng: &mut Generator) -> u8 {
    any_of(filtered_cells(position, geometry), rng)
}

/// The cells among which the player with the filter chooses, as a mask.
#[inline(always)]
pub fn filtered_cells(position: Position, geometry: &Geometry) -> u64 {
    let side = position.to_move();
    let choices = [position.wins(geometry, side), position.wins(geometry, side.other())];
    choices.into_iter().find(|cells| *cells != 0).unwrap_or(position.legal(geometry))
}

/// One of the cells of a mask, with equal probability.
///
/// # Panics
/// If the mask is empty.
#[inline(always)]
pub fn any_of(mut mask: u64, rng: &mut Generator) -> u8 {
    for _ in 0..below(rng, u64::from(mask.count_ones())) {
        mask &= mask - 1;
    }
    mask.trailing_zeros() as u8
}
