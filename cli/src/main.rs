//! `evoxo`: the command-line client, with the experiments that come with it. See `--help`.

fn main() -> std::process::ExitCode {
    evoxo::main(&evoxo_experiments::registry())
}
