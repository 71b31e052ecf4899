//! `evoxo audit FILE`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::anyhow;
use evoxo_common::{card::Showing, experiment::Registry};
use evoxo_games::{
    board::tic_tac_toe,
    player::{BUILT_IN, built_in},
};

use crate::champion;

/// The card and the output.
#[derive(clap::Args)]
#[command(
    after_help = "A table's card needs three keys: {\"kind\": \"table\", \"side\": \"O\", \"moves\": {\"X........\": 4, ...}}.
Boards are read from the top left, cells are 0 to 8 in the same order; any rotation or reflection of a board may be used."
)]
pub(crate) struct Arguments {
    /// A champion's card: JSON, as in a run's champions/ or made by hand; for a network its .safetensors is enough.
    /// Or a player without a file: perfect or teacher
    #[arg(value_name = "WHO")]
    file: PathBuf,
    /// Print it as JSON: win, draw, loss as fractions (unfiltered: against a random mover without the filter), unbeatable, and more
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let audit = audit(registry, &arguments.file)?;
    let mut out = std::io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{:#}", audit.json)?,
        false => write!(out, "{}", audit.text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn audit(registry: &Registry, who: &Path) -> anyhow::Result<Showing> {
    let player = match who.to_str() {
        Some(name) if BUILT_IN.contains(&name) => built_in(name, tic_tac_toe()).map_err(anyhow::Error::msg)?,
        _ => champion::read_player(registry, who)?.1,
    };
    player.play.audit().map_err(|why| anyhow!("{}: {why}", who.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_without_a_file_are_audited_or_refused() {
        let registry = evoxo_experiments::registry();
        let audit = |who: &str| audit(&registry, Path::new(who)).map_err(|error| error.to_string());
        assert_eq!(audit("perfect").unwrap().json["O"]["unbeatable"], true);
        assert!(audit("random").unwrap_err().starts_with("random: only players of 3x3"));
        assert!(audit("nobody").unwrap_err().starts_with("cannot read nobody: file not found"));
    }
}
