//! `evoxo schema result`: prints the JSON Schema of a file that this program writes.

use std::{io::Write as _, process::ExitCode};

use clap::ValueEnum;

use crate::say::stdout;

/// The file whose schema is printed.
#[derive(clap::Args)]
#[command(after_help = "Example:
  evoxo schema result > result.schema.json")]
pub(crate) struct Arguments {
    file: File,
}

/// A file with a schema.
#[derive(Clone, Copy, ValueEnum)]
enum File {
    /// A run's result.json
    Result,
}

/// The schema of `result.json`.
const RESULT: &str = include_str!("../../../docs/result.schema.json");

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let schema = match arguments.file {
        File::Result => RESULT,
    };
    write!(stdout(), "{schema}")?;
    Ok(ExitCode::SUCCESS)
}
