//! A replica whose kind is not known at compile time: [`Experiment`] with its types hidden behind bytes and numbers.

use std::ops::Range;

use bytes::Bytes;
use prost::Message as _;

use super::{Births, Experiment, Row as _};
use crate::{candidates::Candidate, card::Card, report::Sheet, task::Task};

/// The interface that the engine needs of a replica: the methods of [`Experiment`], with states as bytes and rows as numbers.
pub(crate) trait Running: Send + Sync {
    fn tasks(&self) -> usize;
    fn plan(&self, tasks: Range<usize>) -> Vec<Task>;
    fn has_barrier(&self) -> bool;
    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Vec<f64>>) -> Result<(), String>;
    fn save(&self) -> Vec<u8>;
    fn champion(&self) -> Option<Card>;
    fn population(&self) -> Vec<Card>;
    fn sheet(&self) -> Option<Sheet>;
    fn candidates(&self) -> Vec<Candidate>;
    fn births(&self) -> Births;
}

/// A restored replica, or a sentence that says why the bytes are not a state.
pub(crate) type Restored = Result<Box<dyn Running>, String>;

impl<E: Experiment> Running for E {
    fn tasks(&self) -> usize {
        Experiment::tasks(self)
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        Experiment::plan(self, tasks)
    }

    fn has_barrier(&self) -> bool {
        Experiment::has_barrier(self)
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Vec<f64>>) -> Result<(), String> {
        let mut rows = Vec::new();
        let outcome = Experiment::absorb(self, outputs, &mut rows);
        history.extend(rows.iter().map(E::Row::values));
        outcome
    }

    fn save(&self) -> Vec<u8> {
        Experiment::save(self).encode_to_vec()
    }

    fn champion(&self) -> Option<Card> {
        Experiment::champion(self)
    }

    fn population(&self) -> Vec<Card> {
        Experiment::population(self)
    }

    fn sheet(&self) -> Option<Sheet> {
        Experiment::sheet(self)
    }

    fn candidates(&self) -> Vec<Candidate> {
        Experiment::candidates(self)
    }

    fn births(&self) -> Births {
        Experiment::births(self)
    }
}
