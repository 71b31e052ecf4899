//! What several of these tests need: the real programs on loopback, a person's client, the list of mutations.

pub mod live;
pub mod mutations;
pub mod person;
pub mod programs;
