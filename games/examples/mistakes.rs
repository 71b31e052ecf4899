//! What players do wrong against the benchmark player: why they lost, and how often they missed what one look ahead shows.
//!
//! `cargo run --release -p evoxo-games --example mistakes -- [--alternating] [--games N] [--show N] CARD...`
//!
//! CARD is the card of a network (a champion of td3d), or the name of a player such as `benchmark` or `alpha-beta:2`. The
//! counts of all cards are added up. `--show` prints as many lost games' ends that could be avoided.

use std::{fs, path::Path, process::ExitCode};

use evoxo_common::{card::Card, rng::Stream};
use evoxo_games::{
    board::score_four,
    net::CARD,
    player::{
        Player, built_in,
        find::is_built_in,
        mistakes::{Fault, Lost, Mistakes, Turns, mistakes},
    },
};

/// The player of a card, or of a name.
fn player(name: &str) -> Result<Player, String> {
    let plain = name.split(':').next().unwrap_or(name);
    if is_built_in(plain) {
        let mut player = built_in(plain, score_four())?;
        if let Some(plies) = name.split(':').nth(1) {
            let plies = plies.parse().map_err(|_| format!("{name}: give a number of plies after the colon"))?;
            if !player.play.look_ahead(plies) {
                return Err(format!("{plain} cannot look ahead"));
            }
        }
        return Ok(player);
    }
    let text = fs::read_to_string(name).map_err(|why| format!("{name}: {why}"))?;
    let mut beside =
        |file: &str| fs::read(Path::new(name).with_file_name(file)).map_err(|why| format!("{file}: {why}"));
    let card = Card::read(&[&CARD], &text, &mut beside).map_err(|why| format!("{name}: {why}"))?;
    card.capability().map_err(|why| format!("{name}: {why}"))?.ok_or_else(|| format!("{name}: it plays no game"))
}

#[expect(clippy::print_stdout, reason = "a report for the person who runs it")]
fn report(sum: &Mistakes) {
    let games = sum.wins + sum.draws + sum.lost();
    let percent = |part: u32, of: u32| 100.0 * f64::from(part) / f64::from(of.max(1));
    println!("{games} games: {} won, {} drawn, {} lost", sum.wins, sum.draws, sum.lost());
    println!("\nlost by                                games  % of all games");
    for (fault, count) in Fault::ALL.into_iter().zip(sum.losses) {
        println!("{:<36} {count:>7} {:>15.1}", fault.words(), percent(count, games));
    }
    println!("\nturns on which there was               turns       % missed");
    let turns = [
        ("a win", sum.to_win),
        ("one threat that could be stopped", sum.to_stop),
        ("a cell to keep off", sum.to_keep_off),
    ];
    for (words, Turns { all, bad }) in turns {
        println!("{words:<36} {all:>7} {:>14.2}", percent(bad, all));
    }
}

#[expect(clippy::print_stdout, reason = "the boards that were asked for")]
fn show((position, cell, fault): Lost) {
    let geometry = score_four();
    println!("{}: {}, then {}\n", fault.words(), geometry.board_text(position.board()), geometry.cell_name(cell));
}

fn run() -> Result<(), String> {
    let (mut begins, mut games, mut shown, mut names) = (true, 2000, 0, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().unwrap_or_default();
            text.parse::<u64>().map_err(|_| format!("{argument} {text:?}: give a number"))
        };
        match &*argument {
            "--alternating" => begins = false,
            "--games" => games = number()?,
            "--show" => shown = number()?,
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        return Err("give the cards of networks, or names of players".into());
    }
    let mut sum = Mistakes::default();
    for (index, name) in names.iter().enumerate() {
        let stream = Stream::root(1).text("mistakes").word(index as u64);
        sum += mistakes(&mut player(name)?, begins, stream, 0..games, &mut |lost| {
            let avoidable = matches!(lost.2, Fault::WinNotSeen | Fault::ThreatNotStopped | Fault::UnderAThreat);
            if avoidable && shown > 0 {
                shown -= 1;
                show(lost);
            }
        });
    }
    report(&sum);
    Ok(())
}

#[expect(clippy::print_stderr, reason = "what went wrong")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
