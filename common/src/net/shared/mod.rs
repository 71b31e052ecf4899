//! Weights of networks over lines, shared over the symmetries of a board: stored once, and read in every orientation.

#[allow(clippy::needless_range_loop, reason = "orientations are numbered alike in several arrays at once")]
mod head;
#[allow(clippy::needless_range_loop, reason = "lines and lanes are numbered alike in several arrays at once")]
mod lines;
mod ties;

pub(super) use lines::Shared;
pub(super) use ties::Ties;

use head::{GROUP, Head, Sums};
use ties::Turning;
