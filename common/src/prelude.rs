//! The items that most experiments use: `use evoxo_common::prelude::*`.
//!
//! Operators of evolution are here by their modules. Statistics and reports are not: each experiment names those that it uses.

pub use std::ops::Range;

pub use bytes::Bytes;

pub use crate::{
    card::{Card, CardKind, TextCard},
    evolve::{cross, mutate, select},
    experiment::{Demand, Experiment, Identity, Kind, Standard, fits},
    rng::{Stream, chance},
    row, settings,
    task::{Compute, Refusal, Task, TaskKind, checked},
};
