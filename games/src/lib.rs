//! Games of k in a row, and who plays them: boards, players, networks that value boards, duels, exact audits. Knows no
//! experiment.
//!
//! Invariant: as in `evoxo-common`, nothing here has a clock, files, sockets, threads or an environment.

pub mod answer;
pub mod audit;
pub mod board;
pub mod game;
pub mod index;
pub mod net;
pub mod player;
pub mod suite;
pub mod table;
