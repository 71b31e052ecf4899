//! Shows what players do wrong against the benchmark player: why they lost, and how often they missed what looking one move
//! ahead shows.
//!
//! `cargo run --release -p evoxo-games --example mistakes -- [--alternating] [--games N] [--show N] CARD...`
//!
//! CARD is the card of a network (a champion of td3d), or the name of a player such as `benchmark` or `alpha-beta:2`. The
//! counts of all cards are added up. For networks, the example also prints the mean value of the finished boards of their
//! lost games, as the loser sees them. `--show N` prints the ends of N lost games that could have been avoided.

use std::{fs, path::Path, process::ExitCode};

use evoxo_common::{card::Card, rng::Stream};
use evoxo_games::{
    board::{Board, cells, score_four},
    net::{CARD, Engine, Network, engine},
    player::{
        Player, built_in,
        find::is_built_in,
        mistakes::{Fault, Lost, Mistakes, Turns, mistakes},
    },
};

/// The player of a card, with its network, or the player with a name.
#[expect(clippy::disallowed_methods, reason = "the engine has no files, but its examples have")]
fn player(name: &str) -> Result<(Player, Option<Network>), String> {
    let plain = name.split(':').next().unwrap_or(name);
    if is_built_in(plain) {
        let mut player = built_in(plain, score_four())?;
        if let Some(plies) = name.split(':').nth(1) {
            let plies = plies.parse().map_err(|_| format!("{name}: give a number of plies after the colon"))?;
            if !player.play.look_ahead(plies) {
                return Err(format!("{plain} cannot look ahead"));
            }
        }
        return Ok((player, None));
    }
    let text = fs::read_to_string(name).map_err(|why| format!("{name}: {why}"))?;
    let mut beside =
        |file: &str| fs::read(Path::new(name).with_file_name(file)).map_err(|why| format!("{file}: {why}"));
    let card = Card::read(&[&CARD], &text, &mut beside).map_err(|why| format!("{name}: {why}"))?;
    let network = card.champion_as::<Network>().ok_or_else(|| format!("{name}: it is no network"))?.clone();
    let player: Player = card.capability().map_err(|why| format!("{name}: {why}"))?.ok_or("it plays no game")?;
    if player.geometry.shape() != score_four().shape() {
        return Err(format!("{name}: it plays another game than score-four"));
    }
    Ok((player, Some(network)))
}

/// The value that a network gives to the finished board of a game that it lost, as the loser sees it.
fn finished_value(network: &Network, engine: &mut dyn Engine, (position, cell, _): Lost) -> f64 {
    let side = position.to_move();
    let after = position.play(score_four(), cell);
    let board = after.board().play(after.wins(score_four(), side.other()).trailing_zeros() as u8);
    engine.reset();
    let Board { x, o } = board;
    // X moves first, so the stones of both sides alternate. The order within a side does not matter.
    let (mut x, mut o) = (cells(x), cells(o));
    for turn in 0..board.pieces() {
        let next = if turn % 2 == 0 { x.next() } else { o.next() };
        engine.play(next.expect("X has as many stones as O, or one more"));
    }
    f64::from(network.architecture.activation.apply(engine.value(side)))
}

#[expect(clippy::print_stdout, reason = "a report for the person who runs it")]
fn report(sum: &Mistakes, values: &[f64]) {
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
    if !values.is_empty() {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        println!("\nthe finished board of a lost game has the value {mean:+.3} for the loser, in the mean");
    }
}

#[expect(clippy::print_stdout, reason = "the boards that were asked for")]
fn show((position, cell, fault): Lost) {
    let geometry = score_four();
    println!("{}: {}, then {}\n", fault.words(), geometry.board_text(position.board()), geometry.cell_name(cell));
}

#[expect(clippy::disallowed_methods, reason = "the engine has no arguments, but its examples have")]
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
    let (mut sum, mut values) = (Mistakes::default(), Vec::new());
    for (index, name) in names.iter().enumerate() {
        let stream = Stream::root(1).text("mistakes").word(index as u64);
        let (mut player, network) = player(name)?;
        let mut network = network.map(|network| (engine(&network.architecture, &network.weights), network));
        sum += mistakes(&mut player, begins, stream, 0..games, &mut |lost| {
            if let Some((engine, network)) = &mut network {
                values.push(finished_value(network, &mut **engine, lost));
            }
            let avoidable = matches!(lost.2, Fault::WinNotSeen | Fault::ThreatNotStopped | Fault::UnderAThreat);
            if avoidable && shown > 0 {
                shown -= 1;
                show(lost);
            }
        });
    }
    report(&sum, &values);
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
