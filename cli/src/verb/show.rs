//! `evoxo show FILE`: a champion's contents, for people.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use evoxo_common::experiment::Registry;

use crate::{champion, say::whole};

/// The card and the output.
#[derive(clap::Args)]
#[command(
    after_help = "For an agent made of rules: each rule as a board, the heaviest first. P is a stone of its own, C one of its
opponent's, V no stone, * anything; [ ] is where it moves. For a table or a string: each board with its move, in
brackets. For a network: its layers, or its genes."
)]
pub(crate) struct Arguments {
    /// A champion's card: JSON, as in a run's champions/ or made by hand; or a network's file
    file: PathBuf,
    /// Number of rules, boards, layers or genes to show
    #[arg(
        long,
        value_name = "COUNT",
        allow_negative_numbers = true,
        value_parser = whole::<usize>(0, 1_000_000)
    )]
    first: Option<usize>,
    /// Print it as JSON: a list of {"when", "move", "priority", "weight"}, of {"board", "move"}, of {"tensor", "shape"}, or of {"name", "gene"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let card = champion::read(registry, &arguments.file)?;
    let showing = card.champion.show(arguments.first.unwrap_or(usize::MAX));
    let mut out = std::io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{:#}", showing.json)?,
        false => write!(out, "{}", showing.text)?,
    }
    Ok(ExitCode::SUCCESS)
}
