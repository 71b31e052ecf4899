//! `evoxo-coordinator`: see `--help`.

use std::process::ExitCode;

use clap::Parser as _;

#[expect(clippy::print_stderr, reason = "the one line that says why")]
fn main() -> ExitCode {
    match evoxo_coordinator::run(&evoxo_coordinator::cli::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
