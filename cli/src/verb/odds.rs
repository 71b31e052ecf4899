//! `evoxo odds FILE`: the exact odds of a player, also against a suite of solved positions; `--make` makes such a suite.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow};
use evoxo_common::{card::Showing, experiment::Registry};
use evoxo_games::{
    board::tic_tac_toe,
    player::{BUILT_IN, built_in},
    suite::{self, Judgement, Share, Suite},
};
use serde_json::{Value, json};

use crate::{
    champion, file,
    player::{Game, game, of_game},
    say::{notice, stdout, usage, whole},
};

/// The champion and the output.
#[derive(clap::Args)]
#[command(
    after_help = "A table's card needs three keys: {\"kind\": \"table\", \"side\": \"O\", \"moves\": {\"X........\": 4, ...}}.

Boards are read from the top left, cells are 0 to 8 in the same order; any rotation or reflection of a board may be used.

A suite holds positions with their exact values and all moves that keep the value. With --suite, WHO may be any \
player; a player that looks ahead may have its number of plies appended: alpha-beta:6, CHAMPION.json:2.

Examples:
  evoxo odds out/invincible/champions/O-loss-costs-100-0.json
  evoxo odds CHAMPION.json:2 --suite games/suites/score-four.txt
  evoxo odds --make score-four > score-four.txt     the suite again, in minutes"
)]
pub(crate) struct Arguments {
    /// A champion's card (JSON), from a run's champions/ or made by hand; for a network, its .safetensors file is enough. Or
    /// a player without a file: perfect or teacher
    #[arg(value_name = "WHO", required_unless_present = "make")]
    file: Option<PathBuf>,
    /// Instead of the odds: how often the player keeps the value in the solved positions of this file, with a 95 % interval
    #[arg(long, value_name = "FILE")]
    suite: Option<PathBuf>,
    /// Solve positions of this game, which has at least 42 cells, and print them as a suite
    #[arg(long, value_name = "GAME", value_parser = game(), conflicts_with_all = ["file", "suite", "json"])]
    make: Option<Game>,
    /// Number of positions in the suite
    #[arg(
        long,
        value_name = "COUNT",
        conflicts_with_all = ["file", "suite"],
        default_value_t = 100,
        allow_negative_numbers = true,
        value_parser = whole::<usize>(1, suite::POSITIONS_MAX as u64)
    )]
    positions: usize,
    /// Print JSON: win, draw, loss as fractions (unfiltered: against a random mover without the filter), unbeatable, and more
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let mut out = stdout();
    let showing = match (&arguments.file, &arguments.suite) {
        (Some(who), Some(file)) => judged(registry, who, file)?,
        (Some(who), None) => exact(registry, who)?,
        (None, _) => {
            let game = arguments.make.context("clap asks for WHO or --make")?;
            write!(out, "{}", made(game, arguments.positions)?.to_text())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    match arguments.json {
        true => writeln!(out, "{:#}", showing.json)?,
        false => write!(out, "{}", showing.text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a suite, and reports the progress from time to time.
fn made(game: Game, positions: usize) -> anyhow::Result<Suite> {
    if game.geometry().cells().count_ones() < suite::CELLS_MIN {
        return Err(usage(format_args!("{} is too small for a suite: give a larger game", game.name())));
    }
    Ok(Suite::make(game, positions, &mut |count| {
        if count % 10 == 0 {
            notice(format_args!("{count} of {positions} positions"));
        }
    }))
}

/// Measures how often a player keeps the value of solved positions.
fn judged(registry: &Registry, who: &Path, path: &Path) -> anyhow::Result<Showing> {
    let text = String::from_utf8(file::read(path, suite::BYTES_MAX, "")?).ok();
    let text = text.with_context(|| format!("{} is not UTF-8 text", path.display()))?;
    let suite = Suite::read(&text).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    let name = who.to_str().with_context(|| format!("{} is not a name in UTF-8", who.display()))?;
    let mut player = of_game(registry, name, suite.game)?;
    let Judgement { all, won, drawn } = suite.judge(&mut player).map_err(|why| anyhow!("{name}: {why}"))?;
    let text = format!(
        "How often it keeps the value in solved positions of {}, with 95 % intervals:\n  {:<9}{}\n  {:<9}{}\n  {:<9}{}\n",
        suite.game.name(),
        "all",
        share_text(all),
        "won",
        share_text(won),
        "drawn",
        share_text(drawn)
    );
    let json = json!({
        "game": suite.game.name(),
        "all": share_json(all),
        "won": share_json(won),
        "drawn": share_json(drawn),
    });
    Ok(Showing { text, json })
}

fn share_text(share: Share) -> String {
    share.interval().map_or_else(
        || "no positions".into(),
        |(mean, low, high)| {
            let [mean, low, high] = [mean, low, high].map(|share| 100.0 * share);
            format!("{mean:>5.1} %  ({low:.1} to {high:.1})  of {} positions", share.positions)
        },
    )
}

fn share_json(share: Share) -> Value {
    let interval = share.interval();
    json!({
        "positions": share.positions,
        "share": interval.map(|(mean, ..)| mean),
        "low": interval.map(|(_, low, _)| low),
        "high": interval.map(|(.., high)| high),
    })
}

fn exact(registry: &Registry, who: &Path) -> anyhow::Result<Showing> {
    let player = match who.to_str() {
        Some(name) if BUILT_IN.contains(&name) => built_in(name, tic_tac_toe()).map_err(anyhow::Error::msg)?,
        _ => champion::read_player(registry, who)?.1,
    };
    player.play.exact().map_err(|why| anyhow!("{}: {why}", who.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_players_are_analysed_or_rejected() {
        let registry = evoxo_experiments::registry();
        let exact = |who: &str| exact(&registry, Path::new(who)).map_err(|error| error.to_string());
        assert_eq!(exact("perfect").unwrap().json["O"]["unbeatable"], true);
        assert!(exact("random").unwrap_err().starts_with("random: only players of 3x3"));
        assert!(exact("nobody").unwrap_err().starts_with("cannot read nobody: file not found"));
    }

    #[test]
    fn players_are_scored_by_a_suite() {
        let registry = evoxo_experiments::registry();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("suite.txt");
        let judged = |text: &[u8], who: &str| {
            std::fs::write(&file, text).unwrap();
            judged(&registry, Path::new(who), &file).map_err(|error| format!("{error:#}"))
        };
        let refused = |text: &[u8], who: &str, part: &str| {
            let sentence = judged(text, who).map(|showing| showing.text).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        };
        let suite = "tic-tac-toe\nX...O...X draw b3 a2 c2 b1\nXO....... win a2 b2 a1\n";
        assert_eq!(judged(suite.as_bytes(), "perfect").unwrap().json["all"]["share"], 1.0);
        let random = judged(suite.as_bytes(), "random").unwrap();
        let share = |of: &str| random.json[of]["share"].as_f64().unwrap();
        assert!((share("drawn") - 4.0 / 6.0).abs() < 1e-9 && (share("won") - 3.0 / 7.0).abs() < 1e-9);
        insta::assert_snapshot!(random.text, @r"
        How often it keeps the value in solved positions of tic-tac-toe, with 95 % intervals:
          all       54.8 %  (11.1 to 92.1)  of 2 positions
          won       42.9 %  (4.1 to 93.0)  of 1 positions
          drawn     66.7 %  (9.4 to 97.5)  of 1 positions
        ");

        let suite = suite.as_bytes();
        refused(suite, "nobody", "there is no player \"nobody\" and no file of that name");
        refused(suite, "random:2", "random does not look ahead: leave out :2");
        refused(b"score-four\n", "perfect", "suite.txt: it has 0 positions: give 1 to 10000");
        refused(b"chess\n", "random", "suite.txt: it does not begin with the name of a game: tic-tac-toe, ");
        refused(b"tic-tac-toe\nX...O.... win z9\n", "random", "suite.txt: line 2: \"z9\" is not a legal move there");
        refused(b"\xff", "random", "suite.txt is not UTF-8 text");
        refused(&[b'#'; suite::BYTES_MAX + 1], "random", "suite.txt has 4194305 bytes: the maximum is 4194304");
    }

    #[test]
    fn contradictory_options_are_rejected() {
        let read = |arguments: &str| {
            let command = <Arguments as clap::Args>::augment_args(clap::Command::new("odds"));
            command.try_get_matches_from(arguments.split(' ')).map(drop).map_err(|error| error.to_string())
        };
        assert!(read("odds").unwrap_err().contains("<WHO>"));
        assert!(read("odds x.json --suite s.txt --json").is_ok() && read("odds --make qubic --positions 3").is_ok());
        for (arguments, named) in [
            ("odds --suite s.txt", "<WHO>"),
            ("odds --make qubic x.json", "--make"),
            ("odds --make qubic --suite s.txt", "--suite"),
            ("odds --make chess", "tic-tac-toe, connect-four, qubic, score-four"),
            ("odds --make qubic --positions 0", "give a whole number from 1 to 10000"),
            ("odds --make qubic --positions -1", "give a whole number from 1 to 10000"),
            ("odds x.json --positions 3", "--positions"),
        ] {
            let sentence = read(arguments).unwrap_err();
            assert!(sentence.contains(named), "{arguments}: {sentence}");
        }
        let sentence = made(Game::TicTacToe, 1).unwrap_err().to_string();
        assert_eq!(sentence, "tic-tac-toe is too small for a suite: give a larger game");
    }
}
