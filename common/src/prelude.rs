//! What the file of an experiment names throughout: `use evoxo_common::prelude::*`.
//!
//! Operators of evolution are here by their modules. Statistics and reports are not: an experiment names those that it has.

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
