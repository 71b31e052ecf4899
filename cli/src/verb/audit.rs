//! `evoxo audit FILE`.

use std::{
    cell::RefCell,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow};
use evoxo_common::{
    audit::{Audit, Subject, boards},
    board::{Board, Position, Shape, Side, cells, tic_tac_toe},
    card::{CARD_BYTES_MAX, Card, FILE_BYTES_MAX, FILE_ENDING, Network, Player},
    experiment::nndtf::{network::Kind, teacher},
    experiment::rules::{agent::Agent, index::Ready, strength},
    experiment::ternary::{index::Strings, player::Ternary},
    net::plain,
    player::alpha_beta::Solver,
};
use serde_json::json;

/// Which card.
#[derive(clap::Args)]
#[command(
    after_help = "A table's card needs three keys: {\"kind\": \"table\", \"side\": \"O\", \"moves\": {\"X........\": 4, ...}}.
Boards are read from the top left, cells are 0 to 8 in the same order; any rotation or reflection of a board will do."
)]
pub(crate) struct Arguments {
    /// A champion's card: JSON, as in a run's champions/ or made by hand; of a network, its .safetensors will do.
    /// Or a player without a file: perfect or teacher
    #[arg(value_name = "WHO")]
    file: PathBuf,
    /// Print it as JSON: win, draw, loss as fractions (unfiltered: against plain chance), unbeatable, and more
    #[arg(long)]
    json: bool,
}

/// Reads a champion from a file: a card, with what lies beside it, or a network's file alone. The file's name is in
/// whatever is wrong with it.
pub(crate) fn read_card(file: &Path) -> anyhow::Result<Card> {
    let name = file.display();
    if file.extension().is_some_and(|ending| ending == FILE_ENDING) {
        let network = Network::of_file(&read(file, FILE_BYTES_MAX)?).map_err(|why| anyhow!("{name}: {why}"))?;
        return Ok(Player::Network(network).into());
    }
    let text = String::from_utf8(read(file, CARD_BYTES_MAX)?).with_context(|| format!("{name} is not a text"))?;
    let beside = |other: &str| read(&file.with_file_name(other), FILE_BYTES_MAX).map_err(|why| format!("{why:#}"));
    Card::read(&text, beside).map_err(|why| anyhow!("{name}: {why}"))
}

/// The bytes of a file that is not larger than it should be.
pub(crate) fn read(file: &Path, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    crate::file::read(file, bytes_max, "")
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if let Some((who, choose)) = built_in(&arguments.file) {
        let subject = |side| Subject { side, filtered: false, choose: Box::new(&*choose) };
        let audit = |side| subject(side).audit().expect("a built-in player has an answer on every board");
        let audits = Side::BOTH.map(|side| (side, audit(side)));
        return if arguments.json { print_json(&audits, &mut out) } else { print_sides(&who, &audits, &mut out) };
    }
    let card = read_card(&arguments.file)?;
    let audits = match &card.player {
        Player::Rules(agent) => return audit_agent(agent, arguments.json, &mut out),
        Player::Table(table) => vec![(table.side(), table.audit())],
        Player::Ternary(string) => {
            let audit = string.code.subject(&string.genome).audit();
            vec![(string.code.side, audit.map_err(|why| anyhow!("{}: {why}", arguments.file.display()))?)]
        }
        Player::Network(network) => card
            .exact_wins()
            .and_then(|exact_wins| audit_network(network, exact_wins))
            .map_err(|why| anyhow!("{}: {why}", arguments.file.display()))?,
        Player::Nndtf(network) => Side::BOTH.map(|side| (side, network.audit(side))).into(),
    };
    if arguments.json {
        return print_json(&audits, &mut out);
    }
    match &card.player {
        Player::Table(table) => writeln!(
            out,
            "A table that plays {}; both sides complete a line or block one before they choose.\n",
            table.side().letter()
        )?,
        Player::Ternary(string) => writeln!(out, "{}\n", about(string))?,
        Player::Network(_) | Player::Nndtf(_) | Player::Rules(_) => {
            return print_sides(&network_name(&card), &audits, &mut out);
        }
    }
    audits.iter().try_for_each(|(_, audit)| show(&mut out, audit))?;
    Ok(ExitCode::SUCCESS)
}

/// The cells that a player may take, each equally likely.
type Choose = Box<dyn Fn(Board) -> u64>;

/// A player that is no file, with its name at the beginning of a sentence, if this names one that can be audited.
fn built_in(name: &Path) -> Option<(String, Choose)> {
    match name.to_str() {
        Some("teacher") => Some(("The teacher of nndtf".into(), Box::new(teacher::choose))),
        Some("perfect") => {
            let solver = RefCell::new(Solver::new(tic_tac_toe()));
            let best = move |board: Board| {
                let best = solver.borrow_mut().all_best(Position::of(tic_tac_toe(), board));
                best.expect("tic-tac-toe has fewer positions than it may see").0
            };
            Some(("The player that never errs".into(), Box::new(best)))
        }
        _ => None,
    }
}

/// What a network is and where it comes from, at the beginning of a sentence.
fn network_name(card: &Card) -> String {
    let what = match &card.player {
        Player::Nndtf(player) => match player.network().kind {
            Kind::Double => "The nndtf network with double transfer functions".to_owned(),
            Kind::Traditional => "The nndtf network with the hyperbolic tangent".to_owned(),
        },
        Player::Network(network) => format!("The network of {} weights", network.weights.len()),
        _ => "The player".into(),
    };
    // A stranger's card may say anything here: quotes keep it harmless.
    match (card.about.get("arm").and_then(|arm| arm.as_str()), card.about.get("replica").and_then(|it| it.as_u64())) {
        (Some(arm), Some(replica)) => format!("{what} ({arm:?}, replica {replica})"),
        _ => what,
    }
}

fn print_json(audits: &[(Side, Audit)], out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let both = audits.iter().map(|(side, audit)| (side.letter().to_string(), to_json(audit)));
    let json = match audits {
        [(_, audit)] => to_json(audit),
        _ => both.collect::<serde_json::Map<_, _>>().into(),
    };
    writeln!(out, "{json:#}")?;
    Ok(ExitCode::SUCCESS)
}

/// A player of both sides.
fn print_sides(who: &str, audits: &[(Side, Audit)], out: &mut impl Write) -> anyhow::Result<ExitCode> {
    for (index, (side, audit)) in audits.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let side = side.letter();
        writeln!(
            out,
            "{who} as {side}, which chooses every move itself. The filter completes a line or blocks one first.\n"
        )?;
        show(out, audit)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As both sides: it takes the legal move that it values most, of equal ones the lowest cell.
fn audit_network(network: &Network, exact_wins: bool) -> Result<Vec<(Side, Audit)>, String> {
    let (game, architecture) = (tic_tac_toe(), &network.architecture);
    if architecture.shape != game.shape() {
        let Shape { width, height, depth, .. } = architecture.shape;
        return Err(format!(
            "a network for {width}x{height}x{depth} cells has too many games to walk them all: only 3x3 can be audited"
        ));
    }
    let network = plain::twin(architecture, &network.weights);
    let audit = |side: Side| {
        let best = |board: Board| {
            let values = cells(game.legal(board)).map(|cell| (network.sum(board.play(cell), side), cell));
            let best = values.reduce(|best, next| if next.0 > best.0 { next } else { best });
            let wins = if exact_wins { game.completing(board, side) } else { 0 };
            // Of several wins the lowest cell, as in play.
            if wins != 0 { wins & wins.wrapping_neg() } else { best.map_or(0, |(_, cell)| 1 << cell) }
        };
        Ok((side, Subject { side, filtered: false, choose: Box::new(best) }.audit()?))
    };
    Side::BOTH.into_iter().map(audit).collect()
}

/// What a string is and how it moves.
fn about(string: &Ternary) -> String {
    let Ternary { code, genome } = string;
    let (side, letters, alphabet) = (code.side.letter(), code.len(), code.alphabet.letters());
    let rules = match code.strings {
        Strings::Long => "for every board.",
        Strings::Short => "for the boards that its rules leave to it: they complete a line or block one first.",
    };
    let chance = match code.broken(genome) {
        0 => String::new(),
        broken => format!(
            "\nOn {broken} of {} boards it names a taken cell; there it plays any empty one.",
            code.index().len()
        ),
    };
    format!(
        "A string that plays {side}: {letters} letters of {alphabet}, {rules}{chance}\n\
         The filter completes a line or blocks one before chance."
    )
}

fn show(out: &mut impl Write, audit: &Audit) -> std::io::Result<()> {
    writeln!(out, "Against a random mover with that filter, exactly:")?;
    for (what, share) in [("wins", audit.odds.win), ("draws", audit.odds.draw), ("loses", audit.odds.loss)] {
        writeln!(out, "  {what:<6} {:>9.5} %   {share}", 100.0 * share.to_f64())?;
    }
    if let Some(odds) = audit.odds_unfiltered {
        writeln!(out, "Against a random mover without it: {}, {} and {}.", odds.win, odds.draw, odds.loss)?;
    }
    writeln!(out, "It can be asked on {} boards.\n", audit.boards_asked)?;
    show_proof(out, audit, "it loses")
}

fn show_proof(out: &mut impl Write, audit: &Audit, loses: &str) -> std::io::Result<()> {
    if audit.unbeatable() {
        return writeln!(out, "Never loses: proven over {} positions.", audit.positions);
    }
    let lines = if audit.losing_lines == 1 { "game" } else { "different games" };
    writeln!(out, "Can be beaten: {loses} {} {lines}. The first of them:", audit.losing_lines)?;
    audit.examples.iter().take(3).try_for_each(|line| draw_line(out, line))
}

/// An agent of rules plays both sides, without the filter, and leaves something to chance: its odds are exact to rounding,
/// and the proof asks what its lots may do at worst.
fn audit_agent(agent: &Agent, json: bool, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let ready = Ready::new(agent);
    let odds = strength::odds(&ready).into_iter().zip(strength::odds_filtered(&ready));
    let sides = Side::BOTH.into_iter().zip(odds).map(|(side, odds)| (side, odds, agent.audit(side)));
    if json {
        let sides = sides.map(|(side, (plain, filtered), audit)| {
            let mut json = to_json(&audit);
            (json["win"], json["draw"], json["loss"]) =
                (filtered.win.into(), filtered.draw.into(), filtered.loss.into());
            json["unfiltered"] = json!({"win": plain.win, "draw": plain.draw, "loss": plain.loss});
            (side.letter().to_string(), json)
        });
        writeln!(out, "{:#}", serde_json::Value::Object(sides.collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (rules, share) = (agent.rules.len(), 100.0 * strength::strength(&ready));
    writeln!(out, "An agent of {rules} rules; of rules that rank equally, and where none matches, a lot decides.")?;
    writeln!(out, "Against a random mover it scores {share:.3} % on average, a draw being half a win.")?;
    for (side, (plain, filtered), audit) in sides {
        writeln!(out, "\nAs {}, against a random mover, exactly:", side.letter())?;
        for (what, share) in [("wins", plain.win), ("draws", plain.draw), ("loses", plain.loss)] {
            writeln!(out, "  {what:<6} {:>9.5} %", 100.0 * share)?;
        }
        let [win, draw, loss] = [filtered.win, filtered.draw, filtered.loss].map(|share| 100.0 * share);
        writeln!(
            out,
            "Against one that completes a line or blocks one first: {win:.5} %, {draw:.5} % and {loss:.5} %."
        )?;
        show_proof(out, &audit, "it can lose")?;
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
        "unfiltered": audit.odds_unfiltered.map(|odds| {
            json!({"win": odds.win.to_string(), "draw": odds.draw.to_string(), "loss": odds.loss.to_string()})
        }),
        "unbeatable": audit.unbeatable(),
        "boards_asked": audit.boards_asked,
        "positions": audit.positions,
        "losing_lines": audit.losing_lines,
        "examples": audit.examples.iter().map(names).collect::<Vec<_>>(),
    })
}

/// A lost game as its boards, side by side.
fn draw_line(out: &mut impl Write, line: &[u8]) -> std::io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        experiment::ternary::player::{Alphabet, Code},
        net::{Activation, Architecture, First},
        rng::Stream,
    };

    /// A string says how long it is and where it names taken cells, and is audited without the filter.
    #[test]
    fn strings_say_what_they_are() {
        let text = |strings: Strings, genome: fn(usize) -> Vec<u8>| {
            let code = Code { side: Side::O, strings, alphabet: Alphabet::Three };
            let string = Ternary { code, genome: genome(code.len()) };
            let mut out = Vec::new();
            show(&mut out, &code.subject(&string.genome).audit().unwrap()).unwrap();
            format!("{}\n\n{}", about(&string), String::from_utf8(out).unwrap())
        };
        insta::assert_snapshot!(text(Strings::Short, |letters| vec![0; letters]));
        assert!(text(Strings::Long, |letters| vec![2; letters]).contains("1052 letters of 3, for every board.\nOn "));
    }

    /// What is printed of a player of both sides, and that the perfect one never loses as either.
    #[test]
    fn players_without_a_file() {
        let audits = |name: &str| {
            let (who, choose) = built_in(Path::new(name)).unwrap();
            let subject = |side| Subject { side, filtered: false, choose: Box::new(&*choose) };
            (who, Side::BOTH.map(|side| (side, subject(side).audit().unwrap())))
        };
        let ((who, teacher), mut seen) = (audits("teacher"), Vec::new());
        print_sides(&who, &teacher, &mut seen).unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
        assert!(audits("perfect").1.iter().all(|(_, audit)| audit.unbeatable()));
        assert!(built_in(Path::new("random")).is_none());
    }

    /// Of an agent the odds are those of its lots, against a mover with the filter too.
    #[test]
    fn an_agent_as_it_is_seen() {
        let mut seen = Vec::new();
        audit_agent(&Agent::default(), false, &mut seen).unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
    }

    /// A network that has learnt nothing loses somewhere, and no audit calls it safe: its losing lines are games.
    #[test]
    fn networks_on_3x3_are_audited_as_both_sides() {
        let shape = Shape::TIC_TAC_TOE;
        let (first, activation) = (First::Dense { units: 5 }, Activation::Logistic);
        let architecture = Architecture { shape, first, second: 0, biases: true, activation, shared: false };
        let network = Network { architecture, weights: architecture.initial(Stream::root(2)) };
        let audits = audit_network(&network, false).unwrap();
        for (side, audit) in &audits {
            assert!(!audit.unbeatable() && audit.odds_unfiltered.is_some(), "{side:?}: {audit:?}");
            let last = boards(&audit.examples[0]).last().unwrap();
            assert!(tic_tac_toe().has_line(last.stones(side.other())), "{side:?}: {last:?}");
        }
        // It may still lose, but no longer where it could have won: in none of its examples, and by the odds.
        for ((side, exact), (_, audit)) in audit_network(&network, true).unwrap().iter().zip(&audits) {
            assert!(exact.odds.win > audit.odds.win, "{side:?}: {} and {}", exact.odds.win, audit.odds.win);
            let missed = |board: Board| board.to_move() == *side && tic_tac_toe().completing(board, *side) != 0;
            assert!(!exact.examples.iter().any(|line| boards(&line[..line.len() - 1]).any(missed)), "{side:?}");
        }
        let large = Network { architecture: Architecture { shape: Shape::QUBIC, ..architecture }, ..network };
        assert!(audit_network(&large, true).unwrap_err().contains("4x4x4 cells has too many games"));
    }
}
