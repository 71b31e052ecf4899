//! `cargo keep RUN FILE`: prepares a run's result to be committed. It writes the part of `result.json` that docs/reproduction
//! keeps: the data of the tables, and the curves of the figures that pages show.
//!
//! `cargo keep out/nndtf-paper docs/reproduction/nndtf/result-paper.json`
//!
//! Then `cargo test -p evoxo-tests --test pages` writes the tables and figures of the pages, and fails once.

use std::{fs, path::PathBuf, process::ExitCode};

use evoxo_tests::{
    programs::workspace,
    reproduction::{figures_shown, keep, read},
};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a report for the person who runs it")]
fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [run, file] = arguments.as_slice() else {
        eprintln!("give a run's directory, and the file in docs/reproduction to write");
        return ExitCode::from(2);
    };
    let from = if run.is_dir() { run.join("result.json") } else { run.clone() };
    let (result, to) = (read(&from), workspace().join(file));
    match keep(&result, &figures_shown(&to)) {
        Ok(text) => {
            let bytes = text.len();
            fs::write(&to, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
            println!("{}: {bytes} bytes", file.display());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {}: {why}", from.display());
            ExitCode::FAILURE
        }
    }
}
