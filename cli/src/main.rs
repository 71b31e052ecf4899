//! `evoxo`: the person's tool. See `--help`.

mod arguments;
mod children;
mod directory;
mod file;
mod inline;
mod json;
mod opponent;
mod plot;
mod progress;
mod remote;
mod results;
mod verb;

pub(crate) use arguments::{tell, usage};

fn main() -> std::process::ExitCode {
    arguments::main()
}
