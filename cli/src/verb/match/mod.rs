//! `evoxo match A B`: two players play against each other, from every opening, with sides exchanged.

mod sequential;

use std::{io::Write, process::ExitCode};

use evoxo_common::{
    experiment::Registry,
    rng::{Generator, Stream, shuffle},
    stats::sequential::Sprt,
};
use evoxo_games::{
    board::{Position, Side},
    player::duel::{Duel, duel, openings},
};
use serde_json::{Value, json};

use crate::{
    player::{Game, game, pair},
    say::{stdout, usage, whole},
};

/// The most plies of an opening: Qubic has 3.8 million openings of four plies.
const PLIES_MAX: u64 = 4;

/// The most games of one match.
const GAMES_MAX: u64 = 100_000_000;

/// The players and the openings.
#[derive(clap::Args)]
#[command(
    after_help = "A player is a champion's file, or random, filtered, benchmark, alpha-beta, perfect or teacher. A \
player that looks ahead may have its number of plies appended: alpha-beta:6, CHAMPION.json:2.

The first player plays X and then O from each opening. Openings are all positions after --openings plies that are \
not yet won, or a --sample of them, drawn with --seed.

The interval is that of the score, in which a draw is half a win. It assumes that no game is drawn; with draws it is \
wider than necessary. Games count as independent: with several --games from each opening, the interval is about more \
games from these openings, not about other openings. The same command plays the same games on any machine.

The match of the paper behind experiment nndtf, 50 games from 25 boards with two stones of each:
  evoxo match CHAMPION.json teacher --openings 4 --sample 25

Is A stronger than B? Play games from openings in random order, until they show that A is stronger, or that A is \
less than 40 points stronger:
  evoxo match A.json B.json --sprt 0,40"
)]
pub(crate) struct Arguments {
    /// The first player
    #[arg(value_name = "A")]
    one: String,
    /// The second player
    #[arg(value_name = "B")]
    two: String,
    /// The game; a champion has its own [default for built-in players: score-four]
    #[arg(long, value_parser = game(), value_name = "GAME")]
    game: Option<Game>,
    /// Number of plies in an opening, 0 to 4
    #[arg(
        long,
        value_name = "PLIES",
        default_value_t = 2,
        allow_negative_numbers = true,
        value_parser = whole::<u32>(0, PLIES_MAX)
    )]
    openings: u32,
    /// Number of different openings, drawn at random with --seed [default: all openings]
    #[arg(
        long,
        value_name = "OPENINGS",
        allow_negative_numbers = true,
        value_parser = whole::<u32>(1, u64::from(u32::MAX))
    )]
    sample: Option<u32>,
    /// Games from each opening with each side; more than 1 only if a player chooses at random
    #[arg(
        long,
        value_name = "GAMES",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = whole::<u32>(1, GAMES_MAX)
    )]
    games: u32,
    /// Play pairs of games until they show, with an error probability of at most 5 %, that A is more than ELO0 points
    /// stronger, or less than ELO1 (400 points are odds of 10 to 1)
    #[arg(
        long,
        value_name = "ELO0,ELO1",
        allow_hyphen_values = true,
        conflicts_with = "games",
        value_parser = sequential::differences
    )]
    sprt: Option<Sprt>,
    /// Seed for the sample, for the order of openings and for players that choose at random
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = whole::<u64>(0, u64::MAX)
    )]
    seed: u64,
    /// Print JSON: {"players", "game", "openings", "plies", "seed", "as_x", "as_o", "together"}; with --sprt also "sprt"
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let record = play(registry, arguments)?;
    let mut out = stdout();
    match arguments.json {
        true => writeln!(out, "{:#}", record.to_json(arguments))?,
        false => record.print(arguments, &mut out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of a match.
#[derive(Debug)]
struct Record {
    game: Game,
    openings: usize,
    /// The number of openings from which the sample was drawn.
    of: usize,
    /// The first player's results as X and as O; `None` if a player does not play the required side.
    as_x: Option<Duel>,
    as_o: Option<Duel>,
    /// The result of the sequential test, if there was one.
    sprt: Option<sequential::SprtGames>,
}

fn play(registry: &Registry, arguments: &Arguments) -> anyhow::Result<Record> {
    let &Arguments { openings: plies, games, seed, .. } = arguments;
    let [one, two] = pair(registry, [&arguments.one, &arguments.two], arguments.game)?;
    let (game, [mut one, mut two]) = (one.game, [one.player, two.player]);
    if games > 1 && !one.play.is_random() && !two.play.is_random() {
        return Err(usage(format!("--games is {games}: give 1, because neither player chooses at random")));
    }
    if let (Some(side), true) = (one.side, one.side == two.side) {
        return Err(usage(format!("both champions play {}: choose one that plays the other side", side.letter())));
    }
    let (geometry, mut openings) = (one.geometry, openings(one.geometry, plies));
    let of = openings.len();
    if let Some(sample) = arguments.sample {
        if sample == 0 || sample as usize > of {
            return Err(usage(format!("--sample is {sample}: give 1 to {of}, the number of openings")));
        }
        shuffle(&mut Stream::root(seed).text("match").text("openings").rng(), &mut openings);
        openings.truncate(sample as usize);
    }
    if let Some(test) = arguments.sprt {
        if let Some(side) = one.side.or(two.side) {
            return Err(usage(format!("a champion plays only {}: --sprt needs players of both sides", side.letter())));
        }
        let found = sequential::play(test, &mut [one, two], &openings, seed, GAMES_MAX);
        let [as_x, as_o] = found.sides.map(Some);
        return Ok(Record { game, openings: openings.len(), of, as_x, as_o, sprt: Some(found) });
    }
    let count = 2 * openings.len() as u64 * u64::from(games);
    if count > GAMES_MAX {
        return Err(usage(format!("that would be {count} games: the maximum is {GAMES_MAX}")));
    }
    let sides = (one.side, two.side);
    let mut first = |position: Position, rng: &mut Generator| one.choose(position, rng);
    let mut second = |position: Position, rng: &mut Generator| two.choose(position, rng);
    let mut as_side = |side: Side| {
        let plays = sides.0.is_none_or(|only| only == side) && sides.1.is_none_or(|only| only == side.other());
        let stream = |game: u32| Stream::root(seed).text("match").word(game.into());
        let mut round = |game: u32| duel(geometry, &openings, side, stream(game), &mut first, &mut second);
        plays.then(|| (0..games).map(&mut round).fold(Duel::default(), |sum, duel| sum + duel))
    };
    Ok(Record { game, openings: openings.len(), of, as_x: as_side(Side::X), as_o: as_side(Side::O), sprt: None })
}

impl Record {
    /// The results of both sides together.
    fn together(&self) -> Duel {
        self.as_x.unwrap_or_default() + self.as_o.unwrap_or_default()
    }

    fn print(&self, arguments: &Arguments, out: &mut impl Write) -> std::io::Result<()> {
        let Arguments { one, two, openings: plies, games, .. } = arguments;
        let openings = match (self.openings, *plies) {
            (_, 0) => "the empty board".to_owned(),
            (count, plies) if count < self.of => format!("{count} of {} openings of {plies} plies", self.of),
            (1, plies) => format!("1 opening of {plies} plies"),
            (count, plies) => format!("{count} openings of {plies} plies"),
        };
        let times = match (self.sprt, *games) {
            (Some(found), _) if found.passes > 1 => format!(", {} times at most", found.passes),
            (_, 1) => String::new(),
            (_, games) => format!(", {games} games each with each side"),
        };
        writeln!(out, "{one} against {two}, {}, from {openings}{times}", self.game.name())?;
        if *plies > 0 {
            writeln!(
                out,
                "The moves of an opening are forced on both players: a player that never loses from the empty board may lose \
                from one of these."
            )?;
        }
        writeln!(out)?;
        if let Some(found) = &self.sprt {
            found.print(out)?;
        }
        writeln!(out, "{:<12}{:>9}{:>9}{:>9}{:>9}{:>10}", "the first's", "games", "wins", "draws", "losses", "score")?;
        for (name, duel) in [("as X", self.as_x), ("as O", self.as_o), ("together", Some(self.together()))] {
            let Some(duel) = duel else { continue };
            let (low, high) = duel.interval();
            writeln!(
                out,
                "{name:<12}{:>9}{:>9}{:>9}{:>9}{:>8.1} %  [{:.1}, {:.1}]",
                duel.games(),
                duel.wins,
                duel.draws,
                duel.losses,
                100.0 * duel.score(),
                100.0 * low,
                100.0 * high
            )?;
        }
        Ok(())
    }

    fn to_json(&self, arguments: &Arguments) -> Value {
        let figures = |duel: Duel| {
            let Duel { wins, draws, losses } = duel;
            json!({"wins": wins, "draws": draws, "losses": losses, "score": duel.score(), "interval": duel.interval()})
        };
        let mut json = json!({
            "players": [arguments.one, arguments.two],
            "game": self.game.name(),
            "openings": self.openings,
            "plies": arguments.openings,
            "seed": arguments.seed,
            "as_x": self.as_x.map(figures),
            "as_o": self.as_o.map(figures),
            "together": figures(self.together()),
        });
        if let Some(found) = self.sprt {
            json["sprt"] = found.to_json();
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(arguments: &Arguments) -> anyhow::Result<Record> {
        super::play(&evoxo_experiments::registry(), arguments)
    }

    fn arguments(one: &str, two: &str, game: Game) -> Arguments {
        let (one, two) = (one.to_owned(), two.to_owned());
        Arguments { one, two, game: Some(game), openings: 2, sample: None, games: 1, sprt: None, seed: 1, json: false }
    }

    /// A match ends when it is decided, or when two players without random choices have played all openings.
    #[test]
    fn a_sequential_match_ends_at_its_decision() {
        let mut arguments = arguments("benchmark", "random", Game::ScoreFour);
        arguments.sprt = sequential::differences("0, 40").ok();
        let mut seen = Vec::new();
        let record = play(&arguments).unwrap();
        record.print(&arguments, &mut seen).unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
        assert_eq!(record.to_json(&arguments)["sprt"]["verdict"], "greater");
        (arguments.one, arguments.two) = ("random".into(), "benchmark".into());
        assert_eq!(play(&arguments).unwrap().to_json(&arguments)["sprt"]["verdict"], "lesser");
        // With three openings and no chance, the match stays undecided. With chance, it continues with the same three
        // openings.
        (arguments.one, arguments.two, arguments.sample) = ("alpha-beta:1".into(), "alpha-beta:1".into(), Some(3));
        let record = play(&arguments).unwrap();
        assert_eq!((record.together().games(), record.sprt.unwrap().passes), (6, 1));
        assert_eq!(record.to_json(&arguments)["sprt"]["verdict"], "open");
        (arguments.one, arguments.two) = ("benchmark".into(), "random".into());
        assert!(play(&arguments).unwrap().sprt.unwrap().passes > 1);
    }

    #[test]
    fn differences_are_two_numbers() {
        assert_eq!(sequential::differences("-5,5").unwrap().elo(), [-5.0, 5.0]);
        for (text, why) in
            [("5", "give two differences"), ("a,b", "give two differences"), ("5,0", "the smaller one first")]
        {
            assert!(sequential::differences(text).unwrap_err().contains(why), "{text}");
        }
    }

    /// For each side, a table that never loses, as files in a directory.
    fn tables(directory: &std::path::Path) -> [String; 2] {
        use evoxo_common::{card::Card, ratio::Ratio};
        use evoxo_games::table::optimum::optimum;
        Side::BOTH.map(|side| {
            let path = directory.join(format!("{}.json", side.letter()));
            let card = Card::new(optimum(side, Ratio::from(100)).player);
            std::fs::write(&path, card.write("t").0).unwrap();
            path.to_str().unwrap().to_owned()
        })
    }

    #[test]
    fn the_output_of_a_match() {
        let mut arguments = arguments("filtered", "benchmark", Game::ConnectFour);
        arguments.games = 3;
        let mut seen = Vec::new();
        play(&arguments).unwrap().print(&arguments, &mut seen).unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
        arguments.openings = 0;
        insta::assert_snapshot!(format!("{:#}", play(&arguments).unwrap().to_json(&arguments)));
    }

    /// A table plays only its own side, and a table that never loses does not lose.
    #[test]
    fn tables_play_their_side() {
        let directory = tempfile::tempdir().unwrap();
        let [x, o] = tables(directory.path());
        let mut against_chance = arguments(&o, "random", Game::TicTacToe);
        (against_chance.openings, against_chance.games) = (1, 100);
        let record = play(&against_chance).unwrap();
        let duel = record.as_o.unwrap();
        assert_eq!((record.as_x, duel.games(), duel.losses), (None, 900, 0));
        assert!(duel.wins > 600, "{duel:?}");
        let mut perfect = arguments(&x, &o, Game::TicTacToe);
        perfect.openings = 0;
        let drawn = Duel { draws: 1, ..Duel::default() };
        let record = play(&perfect).unwrap();
        assert_eq!((record.as_x, record.as_o), (Some(drawn), None));
        let sentence = play(&arguments(&o, &o, Game::TicTacToe)).unwrap_err().to_string();
        assert_eq!(sentence, "both champions play O: choose one that plays the other side");
    }

    /// The match of the paper behind `nndtf`. Another seed draws other boards, and the full sample has all boards.
    #[test]
    fn the_seed_draws_the_sample_of_openings() {
        let mut arguments = arguments("teacher", "teacher", Game::TicTacToe);
        let mut seen = |sample, seed| {
            (arguments.openings, arguments.sample, arguments.seed) = (4, sample, seed);
            let (record, mut text) = (play(&arguments).unwrap(), Vec::new());
            record.print(&arguments, &mut text).unwrap();
            (record.together(), String::from_utf8(text).unwrap().lines().next().unwrap().to_owned())
        };
        let (duel, first) = seen(Some(25), 1);
        assert_eq!((duel.games(), duel), (50, seen(Some(25), 1).0));
        assert_eq!(first, "teacher against teacher, tic-tac-toe, from 25 of 756 openings of 4 plies");
        assert!((2..9).any(|seed| seen(Some(25), seed).0 != duel));
        assert_eq!([seen(Some(756), 1), seen(None, 1)].map(|(duel, _)| duel.games()), [1512; 2]);
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        let sentence = |change: &dyn Fn(&mut Arguments)| {
            let mut arguments = arguments("random", "benchmark", Game::ConnectFour);
            change(&mut arguments);
            play(&arguments).unwrap_err().to_string()
        };
        assert!(sentence(&|it| it.games = u32::MAX).contains("games: the maximum is 100000000"));
        assert!(sentence(&|it| it.sample = Some(50)).ends_with("give 1 to 49, the number of openings"));
        assert!(sentence(&|it| it.sample = Some(0)).starts_with("--sample is 0: give 1 to 49"));
        assert!(sentence(&|it| it.two = "bench".into()).contains("no player \"bench\""));
        let directory = tempfile::tempdir().unwrap();
        let [x, _] = tables(directory.path());
        let one_side = |it: &mut Arguments| {
            (it.one, it.game, it.sprt) = (x.clone(), None, sequential::differences("0,40").ok());
            it.two = "random".into();
        };
        assert_eq!(sentence(&one_side), "a champion plays only X: --sprt needs players of both sides");
        let certain = sentence(&|it| (it.one, it.two, it.games) = ("alpha-beta:1".into(), "alpha-beta:2".into(), 2));
        assert_eq!(certain, "--games is 2: give 1, because neither player chooses at random");
    }
}
