//! The worker's program; see `cli.rs`.

fn main() -> std::process::ExitCode {
    evoxo_worker::cli::main()
}
