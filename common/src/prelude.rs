//! The items that most experiments use: `use evoxo_common::prelude::*`.
//!
//! Operators, statistics and reports are not here: each experiment names those that it uses.

pub use std::ops::Range;

pub use bytes::Bytes;

pub use crate::{
    card::{Card, CardKind, TextCard},
    experiment::{Demand, Experiment, Identity, Kind, Standard, fits},
    rng::Stream,
    row, settings,
    task::{Compute, Refusal, Task, TaskKind, checked},
};
