//! `evoxo-coordinator` with the experiments that come with evoxo: see `--help`.

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;

fn main() -> ExitCode {
    match evoxo_coordinator::run(&evoxo_coordinator::cli::Arguments::parse(), evoxo_experiments::registry()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The only line that says why; an error of writing it is ignored.
            drop(std::io::stderr().lock().write_all(format!("error: {error:#}\n").as_bytes()));
            ExitCode::FAILURE
        }
    }
}
