//! The command-line tool with one additional experiment: `onemax run onemax.toml`, and every other verb of `evoxo`.

fn main() -> std::process::ExitCode {
    evoxo::main(&evoxo_experiments::registry().with(&[onemax::KIND]))
}
