//! `evoxo audit FILE`.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use evoxo_common::{
    audit::{Audit, boards},
    board::tic_tac_toe,
    card::{CARD_BYTES_MAX, Card, Player},
};
use serde_json::json;

/// Which card.
#[derive(clap::Args)]
#[command(
    after_help = "A card needs three keys: {\"kind\": \"table\", \"side\": \"O\", \"moves\": {\"X........\": 4, ...}}.
Boards are read from the top left, cells are 0 to 8 in the same order; any rotation or reflection of a board will do."
)]
pub(crate) struct Arguments {
    /// A champion's card: JSON, as in a run's champions/ or made by hand
    file: PathBuf,
    /// Print it as JSON: win, draw, loss as fractions, unbeatable, and more
    #[arg(long)]
    json: bool,
}

/// Reads a card from a file, with the file's name in whatever is wrong with it.
pub(crate) fn read_card(file: &std::path::Path) -> anyhow::Result<Card> {
    let name = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("cannot read the card {name}"))?.len();
    if size > CARD_BYTES_MAX as u64 {
        anyhow::bail!("{name} has {size} bytes: a card has at most {CARD_BYTES_MAX}");
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the card {name}"))?;
    Card::read(&text).map_err(|why| anyhow::anyhow!("{name}: {why}"))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Player::Table(player) = read_card(&arguments.file)?.player;
    let audit = player.audit();
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{:#}", to_json(&audit))?;
        return Ok(ExitCode::SUCCESS);
    }
    let side = player.side().letter();
    writeln!(out, "A table that plays {side}; both sides complete a line or block one before they choose.\n")?;
    writeln!(out, "Against a random mover with that filter, exactly:")?;
    for (what, share) in [("wins", audit.odds.win), ("draws", audit.odds.draw), ("loses", audit.odds.loss)] {
        writeln!(out, "  {what:<6} {:>9.5} %   {share}", 100.0 * share.to_f64())?;
    }
    if let Some(odds) = audit.odds_unfiltered {
        writeln!(out, "Against a random mover without it: {}, {} and {}.", odds.win, odds.draw, odds.loss)?;
    }
    writeln!(out, "It can be asked on {} boards.\n", audit.boards_asked)?;
    if audit.unbeatable() {
        writeln!(out, "Never loses: proven over {} positions.", audit.positions)?;
    } else {
        let lines = if audit.losing_lines == 1 { "game" } else { "different games" };
        writeln!(out, "Can be beaten: it loses {} {lines}. The first of them:", audit.losing_lines)?;
        audit.examples.iter().take(3).try_for_each(|line| draw_line(&mut out, line))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(audit: &Audit) -> serde_json::Value {
    let game = tic_tac_toe();
    let names = |line: &Vec<u8>| line.iter().map(|cell| game.cell_name(*cell)).collect::<Vec<_>>().join(" ");
    json!({
        "win": audit.odds.win.to_string(),
        "draw": audit.odds.draw.to_string(),
        "loss": audit.odds.loss.to_string(),
        "unbeatable": audit.unbeatable(),
        "boards_asked": audit.boards_asked,
        "positions": audit.positions,
        "losing_lines": audit.losing_lines,
        "examples": audit.examples.iter().map(names).collect::<Vec<_>>(),
    })
}

/// A lost game as its boards, side by side.
fn draw_line(out: &mut impl std::io::Write, line: &[u8]) -> std::io::Result<()> {
    let game = tic_tac_toe();
    let names: Vec<String> = line.iter().map(|cell| format!("{:<5}", game.cell_name(*cell))).collect();
    writeln!(out, "\n  {}", names.join("").trim_end())?;
    let texts: Vec<String> = boards(line).map(|board| game.board_text(board)).collect();
    for row in 0..3 {
        let rows: Vec<&str> = texts.iter().map(|text| &text[3 * row..3 * row + 3]).collect();
        writeln!(out, "  {}", rows.join("  "))?;
    }
    Ok(())
}
