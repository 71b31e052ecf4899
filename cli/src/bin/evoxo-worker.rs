//! `evoxo-worker`, with the experiments that come with evoxo. See `--help`.

fn main() -> std::process::ExitCode {
    evoxo::worker(&evoxo_experiments::registry())
}
