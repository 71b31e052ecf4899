//! What several of these tests need: the real programs on loopback, and a person's client.

pub mod live;
pub mod person;
pub mod programs;
