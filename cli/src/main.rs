//! `evoxo`: the person's tool, with the experiments that come with it. See `--help`.

fn main() -> std::process::ExitCode {
    evoxo::main(&evoxo_experiments::registry())
}
