//! Games of k in a row and their players: boards, players, networks that value boards, duels, exact odds. This crate knows
//! no experiment.
//!
//! Invariant: as in `evoxo-common`, no code here uses a clock, files, sockets, threads or the environment.

pub mod answer;
pub mod board;
pub mod game;
pub mod index;
pub mod net;
pub mod odds;
pub mod player;
pub mod suite;
pub mod table;
