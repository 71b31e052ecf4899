//! The person's tool as a library that names no experiment: a program hands it a registry of kinds, and has all its verbs.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     evoxo::main(&evoxo_experiments::registry())
//! }
//! ```

mod arguments;
mod champion;
mod children;
mod cluster;
mod directory;
mod file;
mod inline;
mod json;
mod player;
mod progress;
mod remote;
mod results;
mod say;
mod source;
mod stop;
mod verb;

pub use arguments::main;
