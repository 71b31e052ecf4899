//! The command-line client as a library that knows no experiment: a program passes it a registry of kinds.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     evoxo::main(&evoxo_experiments::registry())
//! }
//! ```

mod answer;
mod arguments;
mod autoscale;
mod certificate;
mod champion;
mod children;
mod claims;
mod cluster;
mod digests;
mod directory;
mod epochs;
mod family;
mod file;
mod history;
mod html;
mod inline;
mod json;
mod kept;
mod legs;
mod longer;
mod numbered;
mod numbers;
mod page;
mod parting;
mod player;
mod plots;
mod progress;
mod recompute;
mod remote;
mod results;
mod say;
mod side;
mod sight;
mod source;
mod stop;
mod stored;
mod table;
mod tensorboard;
mod terminal;
mod verb;

pub use arguments::{coordinator, main, worker};
#[cfg(fuzzing)]
pub use verb::engine::speak;
