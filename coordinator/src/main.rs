//! `evoxo-coordinator` with the experiments that come with evoxo: see `--help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    evoxo_process::end_on_lack();
    match evoxo_coordinator::run(&evoxo_process::parsed(), evoxo_experiments::registry()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            evoxo_process::say_failure(error);
            ExitCode::FAILURE
        }
    }
}
