//! `evoxo-coordinator`, with the experiments that come with evoxo. See `--help`.

fn main() -> std::process::ExitCode {
    evoxo::coordinator(&evoxo_experiments::registry())
}
