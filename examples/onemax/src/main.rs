//! The command-line tool with one more experiment and one more algorithm: `onemax run onemax.toml`, `onemax run rastrigin.toml`,
//! and every other verb of `evoxo`.

fn main() -> std::process::ExitCode {
    evoxo::main(&onemax::one_plus_one::registry())
}
