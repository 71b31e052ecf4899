//! Players by name: a champion from a file, or a built-in player.

use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use evoxo_common::{
    experiment::Registry,
    rng::{Generator, Stream},
};
pub(crate) use evoxo_games::game::Game;
use evoxo_games::{
    board::Position,
    player::{
        BUILT_IN, Move, Player,
        alpha_beta::DEPTH_MAX,
        find::{find_built_in, is_built_in, is_of_one_game, split},
    },
};

use crate::{
    champion,
    say::{usage, whole},
};

/// Parses an option that names a game.
pub(crate) fn game() -> impl TypedValueParser<Value = Game> {
    let values = Game::ALL.map(|game| PossibleValue::new(game.name()).help(game.about()));
    PossibleValuesParser::new(values).map(|name| Game::named(&name).expect("one of the possible values"))
}

/// The command-line options of a player.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PlayerSpec {
    /// A champion's file, or random, filtered, benchmark, alpha-beta, perfect or teacher
    #[arg(value_name = "WHO")]
    name: String,
    /// The game; a champion has its own [default for built-in players: score-four]
    #[arg(long, value_parser = game(), value_name = "GAME")]
    game: Option<Game>,
    /// Plies that a network or alpha-beta looks ahead, 1 to 6; late in the game, both search to the end [default: a network
    /// plays the move with the highest value, alpha-beta looks 4 plies ahead]
    #[arg(long, value_name = "PLIES", allow_negative_numbers = true, value_parser = whole::<u32>(1, DEPTH_MAX.into()))]
    depth: Option<u32>,
    /// Whether the plies were given after the name, as in alpha-beta:6.
    #[arg(skip)]
    behind_name: bool,
    /// Seed for players that choose at random [default: from the clock]
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
    /// The opponent's move. Its side must be to move, and the game must not be over.
    pub(crate) fn choose_move(&mut self, position: Position) -> Move {
        self.player.play.choose_move(self.player.geometry, position, &mut self.rng)
    }
}

impl PlayerSpec {
    /// A player, as named by a program.
    #[cfg(fuzzing)]
    pub(crate) fn named(name: &str, depth: Option<u32>) -> Self {
        Self { name: name.into(), game: None, depth, behind_name: true, seed: Some(0) }
    }

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
        if is_built_in(name) {
            return find_built_in(name, self.game).map_err(usage);
        }
        let file = Path::new(name);
        if !file.exists() {
            return Err(usage(format!(
                "there is no player {name:?} and no file of that name: give a champion's file, {}",
                BUILT_IN.join(", ")
            )));
        }
        let (game, player) = champion::read_player(registry, file)?;
        match self.game.filter(|wanted| *wanted != game) {
            None => Ok((game, player)),
            Some(wanted) => {
                Err(usage(format!("{name} plays {}, not {}: leave out --game", game.name(), wanted.name())))
            }
        }
    }
}

/// The two players of one game, each named as WHO or WHO:PLIES. A player of any game plays the other player's game.
pub(crate) fn pair(registry: &Registry, names: [&str; 2], game: Option<Game>) -> anyhow::Result<[Opponent; 2]> {
    let find = |name: &str, game: Option<Game>| {
        let (name, depth) = split(name);
        PlayerSpec { name: name.into(), game, depth, behind_name: true, seed: Some(0) }.find(registry)
    };
    let plays_any = |name: &str| is_built_in(split(name).0) && !is_of_one_game(split(name).0);
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

/// The player named as WHO or WHO:PLIES: a built-in player of this game, or a champion with its own game.
pub(crate) fn of_game(registry: &Registry, name: &str, game: Game) -> anyhow::Result<Player> {
    let (name, depth) = split(name);
    let game = is_built_in(name).then_some(game);
    Ok(PlayerSpec { name: name.into(), game, depth, behind_name: true, seed: Some(0) }.find(registry)?.player)
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
