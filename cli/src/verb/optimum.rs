//! `evoxo optimum --side O --penalty 6.5`: the best possible table, exactly.

use std::{io::Write as _, process::ExitCode};

use evoxo_common::ratio::Ratio;
use evoxo_games::{
    board::{Side, tic_tac_toe},
    table::{
        Points,
        optimum::{never_losing, optimum},
    },
};
use serde_json::json;

use crate::say::stdout;

/// The side and the points.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The side that plays by the table
    #[arg(long, default_value = "O", value_parser = side)]
    side: Side,
    /// The cost of a loss, in points: an exact decimal of at least 0
    #[arg(long, default_value = "6.5", allow_negative_numbers = true, value_parser = penalty)]
    penalty: Ratio,
    /// Points for a win: an exact decimal
    #[arg(long, default_value = "1", allow_negative_numbers = true, value_parser = points)]
    win: Ratio,
    /// Points for a draw: an exact decimal
    #[arg(long, default_value = "0", allow_negative_numbers = true, value_parser = points)]
    draw: Ratio,
    /// Print JSON: win, draw, loss as fractions, unbeatable, and more
    #[arg(long)]
    json: bool,
}

/// Parses a side from its letter.
pub(super) fn side(text: &str) -> Result<Side, String> {
    match text {
        "X" | "x" => Ok(Side::X),
        "O" | "o" => Ok(Side::O),
        _ => Err("give X or O".into()),
    }
}

fn penalty(text: &str) -> Result<Ratio, String> {
    let penalty = text.parse().ok().filter(|penalty| *penalty >= Ratio::ZERO);
    penalty.ok_or_else(|| "give a decimal from 0, with at most six digits before and after the point".into())
}

fn points(text: &str) -> Result<Ratio, String> {
    text.parse().map_err(|_| "give a decimal, with at most six digits before and after the point".into())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { win, draw, penalty, .. } = *arguments;
    let points = Points { win, draw, penalty };
    let best = optimum(arguments.side, points);
    let exact = best.player.exact();
    // The threshold is known for 1 point for a win and 0 for a draw. Converting it to these points is the inverse of
    // `as_penalty`.
    let never_losing = never_losing(arguments.side).filter(|_| win > draw);
    let threshold = never_losing.map(|(_, _, penalty)| penalty * (win - draw) - draw);
    let mut out = stdout();
    if arguments.json {
        let figures = json!({
            "win": best.odds.win.to_string(),
            "draw": best.odds.draw.to_string(),
            "loss": best.odds.loss.to_string(),
            "unbeatable": exact.unbeatable(),
            "fitness": best.fitness.to_string(),
            "several": !best.ties.is_empty(),
            "never_losing_from": threshold.map(|penalty| penalty.to_string()),
        });
        writeln!(out, "{figures:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let side = arguments.side.letter();
    let when = match points == Points::from(penalty) {
        true => format!("when a loss costs {penalty} {}", if penalty.to_string() == "1" { "win" } else { "wins" }),
        false => format!("for {win} points for a win, {draw} for a draw and a loss that costs {penalty}"),
    };
    writeln!(out, "The best table for {side} {when}, against the filtered random mover, exactly:")?;
    for (what, share) in [("wins", best.odds.win), ("draws", best.odds.draw), ("loses", best.odds.loss)] {
        writeln!(out, "  {what:<6} {:>9.5} %   {share}", 100.0 * share.to_f64())?;
    }
    writeln!(out, "  points {:>9.5} a game ({})", best.fitness.to_f64(), best.fitness)?;
    writeln!(out, "{}", if exact.unbeatable() { "It never loses." } else { "It can be beaten." })?;
    if let Some(threshold) = threshold {
        writeln!(out, "For {side}, never losing is optimal from a penalty of {threshold}.")?;
    }
    if let Some(same) = points.as_penalty().filter(|same| *same != penalty) {
        writeln!(out, "Tables rank as they do for 1 point for a win, 0 for a draw and a penalty of {same}.")?;
    }
    if !best.ties.is_empty() {
        writeln!(out, "\nSeveral tables are equally good: the choice makes no difference on")?;
        for tie in &best.ties {
            let cells: Vec<String> = tie.cells.iter().map(|cell| tic_tac_toe().cell_name(*cell)).collect();
            writeln!(out, "  {}  between {}", tic_tac_toe().board_text(tie.board), cells.join(", "))?;
        }
        writeln!(out, "The table shown is one that loses least.")?;
    }
    Ok(ExitCode::SUCCESS)
}
