//! Players as people name them: a champion from a file or a built-in player.

use std::path::Path;

use clap::ValueEnum;
use evoxo_common::{
    experiment::Registry,
    rng::{Generator, Stream},
};
use evoxo_games::{
    board::{Geometry, Position, connect_four, qubic, score_four, tic_tac_toe},
    player::{BUILT_IN, Move, Player, alpha_beta::DEPTH_MAX, built_in},
};

use crate::{
    champion,
    say::{usage, whole},
};

/// The games that can be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Game {
    /// 3x3, three in a row
    TicTacToe,
    /// 7 columns of 6, four in a row; stones fall
    ConnectFour,
    /// 4x4x4, four in a row
    Qubic,
    /// 4x4x4, four in a row; stones fall
    ScoreFour,
}

impl Game {
    const ALL: [Self; 4] = [Self::TicTacToe, Self::ConnectFour, Self::Qubic, Self::ScoreFour];

    fn geometry(self) -> &'static Geometry {
        match self {
            Self::TicTacToe => tic_tac_toe(),
            Self::ConnectFour => connect_four(),
            Self::Qubic => qubic(),
            Self::ScoreFour => score_four(),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TicTacToe => "tic-tac-toe",
            Self::ConnectFour => "connect-four",
            Self::Qubic => "qubic",
            Self::ScoreFour => "score-four",
        }
    }
}

/// The command-line options of a player.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PlayerSpec {
    /// A champion's file, or random, filtered, benchmark, alpha-beta, perfect or teacher
    #[arg(value_name = "WHO")]
    name: String,
    /// The game; a champion has its own [default for built-in players: score-four]
    #[arg(long, value_enum, value_name = "GAME")]
    game: Option<Game>,
    /// Plies that a network or alpha-beta looks ahead, 1 to 6; late in the game it looks to the end
    /// [default: a network plays the move it values most, alpha-beta looks 4 plies ahead]
    #[arg(long, value_name = "PLIES", allow_negative_numbers = true, value_parser = whole::<u32>(1, DEPTH_MAX.into()))]
    depth: Option<u32>,
    /// Whether the plies were given after the name, as in alpha-beta:6
    #[arg(skip)]
    behind_name: bool,
    /// Seed of players that choose at random [default: the clock]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX))]
    seed: Option<u64>,
}

/// A player with its game and its random numbers.
pub(crate) struct Opponent {
    pub(crate) game: Game,
    pub(crate) player: Player,
    rng: Generator,
}

impl Opponent {
    /// The move in a position in which its side is to move and that is not over.
    pub(crate) fn choose_move(&mut self, position: Position) -> Move {
        self.player.play.choose_move(self.player.geometry, position, &mut self.rng)
    }
}

impl PlayerSpec {
    /// Finds the player.
    pub(crate) fn find(&self, registry: &Registry) -> anyhow::Result<Opponent> {
        if let Some(depth) = self.depth.filter(|depth| !(1..=DEPTH_MAX).contains(depth)) {
            return Err(usage(format!("{}:{depth} looks {depth} plies ahead: give 1 to {DEPTH_MAX} plies", self.name)));
        }
        let (game, mut player) = self.find_player(registry)?;
        if let Some(depth) = self.depth
            && !player.play.look_ahead(depth)
        {
            let plies = if self.behind_name { format!(":{depth}") } else { "--depth".into() };
            return Err(usage(format!("{} does not look ahead: leave out {plies}", self.name)));
        }
        let seed = self.seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64)
        });
        Ok(Opponent { game, player, rng: Stream::root(seed).text("opponent").rng() })
    }

    fn find_player(&self, registry: &Registry) -> anyhow::Result<(Game, Player)> {
        let name = self.name.as_str();
        if BUILT_IN.contains(&name) {
            // Players of any game play the largest game unless told otherwise.
            let only = if is_of_one_game(name) { Game::TicTacToe } else { Game::ScoreFour };
            let game = self.game.unwrap_or(only);
            return Ok((game, built_in(name, game.geometry()).map_err(usage)?));
        }
        let file = Path::new(name);
        if !file.exists() {
            return Err(usage(format!(
                "there is no player {name:?} and no file of that name: give a champion's file, {}",
                BUILT_IN.join(", ")
            )));
        }
        let player = champion::read_player(registry, file)?;
        let game = Game::ALL.into_iter().find(|game| game.geometry().shape() == player.geometry.shape());
        let game = game.ok_or_else(|| anyhow::anyhow!("{name}: it plays no game that is known here"))?;
        match self.game.filter(|wanted| *wanted != game) {
            None => Ok((game, player)),
            Some(wanted) => {
                Err(usage(format!("{name} plays {}, not {}: leave out --game", game.name(), wanted.name())))
            }
        }
    }
}

/// Whether a built-in player plays tic-tac-toe only.
fn is_of_one_game(name: &str) -> bool {
    built_in(name, score_four()).is_err()
}

/// A name, and the plies after it: `alpha-beta:6`.
fn split(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once(':').map(|(name, plies)| (name, plies.parse())) {
        Some((name, Ok(plies))) => (name, Some(plies)),
        _ => (name, None),
    }
}

/// Two players of one game, each named as WHO or WHO:PLIES. A player of any game plays the other's game.
pub(crate) fn pair(registry: &Registry, names: [&str; 2], game: Option<Game>) -> anyhow::Result<[Opponent; 2]> {
    let find = |name: &str, game: Option<Game>| {
        let (name, depth) = split(name);
        PlayerSpec { name: name.into(), game, depth, behind_name: true, seed: Some(0) }.find(registry)
    };
    let plays_any = |name: &str| BUILT_IN.contains(&split(name).0) && !is_of_one_game(split(name).0);
    let [one, two] = [find(names[0], game)?, find(names[1], game)?];
    match (one.game == two.game, plays_any(names[0]), plays_any(names[1])) {
        (true, ..) => Ok([one, two]),
        (false, true, _) => Ok([find(names[0], Some(two.game))?, two]),
        (false, _, true) => {
            let two = find(names[1], Some(one.game))?;
            Ok([one, two])
        }
        (false, ..) => {
            let [one, two] = [one, two].map(|player| player.game.name());
            Err(usage(format!("{} plays {one}, but {} plays {two}: name players of one game", names[0], names[1])))
        }
    }
}

/// Players for the tests of the verbs.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use evoxo_common::{card::Card, ratio::Ratio};
    use evoxo_games::{board::Side, table::optimum::optimum};

    /// A built-in player.
    pub(crate) fn named(name: &str, game: Game) -> Opponent {
        let registry = evoxo_experiments::registry();
        PlayerSpec { name: name.into(), game: Some(game), depth: None, behind_name: false, seed: Some(1) }
            .find(&registry)
            .unwrap()
    }

    /// The best table that never loses.
    pub(crate) fn table(side: Side) -> Opponent {
        let card = Card::new(optimum(side, Ratio::from(100)).player);
        let player = card.capability().unwrap().unwrap();
        Opponent { player, ..named("random", Game::TicTacToe) }
    }
}

#[cfg(test)]
mod tests;
