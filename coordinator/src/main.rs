//! `evoxo-coordinator` with the experiments that come with evoxo: see `--help`.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match evoxo_coordinator::run(&evoxo_coordinator::cli::Arguments::parse(), evoxo_experiments::registry()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            evoxo_process::say_failure(error);
            ExitCode::FAILURE
        }
    }
}
