//! The worker program with the experiments that come with evoxo; see `cli.rs`.

fn main() -> std::process::ExitCode {
    evoxo_worker::cli::main(&evoxo_experiments::registry())
}
