//! The command-line client as a library that knows no experiment: a program passes it a registry of kinds.
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
mod page;
mod player;
mod plots;
mod progress;
mod remote;
mod results;
mod say;
mod source;
mod stop;
mod verb;

pub use arguments::main;
