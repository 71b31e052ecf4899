//! Whom a person, or another program, plays against: a champion from a file or a built-in player.

use std::path::Path;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use evoxo_common::{
    board::{Board, Geometry, Position, Side, cells, connect_four, qubic, score_four, tic_tac_toe},
    card::{Network, Player},
    experiment::invincible::table::TableGenome,
    net::{Activation, Engine, engine},
    player::{
        alpha_beta::{AlphaBeta, Choice, DEPTH_MAX, built_in},
        benchmark::benchmark,
        random::{filtered, random},
    },
    rng::{Generator, Stream},
};

use crate::{usage, verb::audit::read_card};

/// The games there are to play.
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

    pub(crate) fn geometry(self) -> &'static Geometry {
        match self {
            Self::TicTacToe => tic_tac_toe(),
            Self::ConnectFour => connect_four(),
            Self::Qubic => qubic(),
            Self::ScoreFour => score_four(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::TicTacToe => "tic-tac-toe",
            Self::ConnectFour => "connect-four",
            Self::Qubic => "qubic",
            Self::ScoreFour => "score-four",
        }
    }
}

/// What the command line says of an opponent.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Who {
    /// A champion's file, or random, filtered, benchmark or alpha-beta
    #[arg(value_name = "WHO")]
    name: String,
    /// The game; a champion knows its own [default for built-in players: score-four]
    #[arg(long, value_enum, value_name = "GAME")]
    game: Option<Game>,
    /// Plies that a network or alpha-beta looks ahead, 1 to 6; late in the game it looks to the end
    /// [default: a network takes the move it values most, alpha-beta looks 4 plies ahead]
    #[arg(long, value_name = "PLIES")]
    depth: Option<u32>,
    /// Where the chance of players that leave something to it comes from [default: the clock]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// A player of a game, whoever it is.
pub(crate) struct Opponent {
    pub(crate) geometry: &'static Geometry,
    /// As it calls itself.
    pub(crate) name: String,
    /// The only side it plays, if there is but one.
    pub(crate) side: Option<Side>,
    skill: Skill,
    depth: Option<u32>,
    rng: Generator,
}

enum Skill {
    Table(TableGenome),
    Network(Thinker),
    Random,
    Filtered,
    Benchmark,
    AlphaBeta,
}

/// A move, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) cell: u8,
    /// The end of a sentence "It plays b2: ...".
    pub(crate) why: String,
}

impl Who {
    /// Finds the opponent.
    pub(crate) fn find(&self) -> anyhow::Result<Opponent> {
        if let Some(depth) = self.depth.filter(|depth| !(1..=DEPTH_MAX).contains(depth)) {
            return Err(usage(format!("--depth is {depth}: give 1 to {DEPTH_MAX} plies")));
        }
        let (skill, geometry) = match self.name.as_str() {
            "random" => (Skill::Random, None),
            "filtered" => (Skill::Filtered, None),
            "benchmark" => (Skill::Benchmark, None),
            "alpha-beta" => (Skill::AlphaBeta, None),
            file if !Path::new(file).exists() && !file.contains(['.', '/']) => {
                return Err(usage(format!(
                    "there is no player {file:?} and no file of that name: give a champion's file, random, filtered, \
                     benchmark or alpha-beta"
                )));
            }
            file => self.champion(Path::new(file))?,
        };
        if self.depth.is_some() && !matches!(skill, Skill::Network(_) | Skill::AlphaBeta) {
            return Err(usage(format!("{} does not look ahead: leave out --depth", self.name)));
        }
        let side = if let Skill::Table(table) = &skill { Some(table.side()) } else { None };
        let name = match (&skill, side) {
            (Skill::Table(_), Some(side)) => format!("table {}", side.letter()),
            (Skill::Network(_), _) => "network".into(),
            _ => self.name.clone(),
        };
        let geometry = geometry.unwrap_or(self.game.unwrap_or(Game::ScoreFour).geometry());
        let seed = self.seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64)
        });
        let rng = Stream::root(seed).text("opponent").rng();
        Ok(Opponent { geometry, name, side, skill, depth: self.depth, rng })
    }

    /// The champion of a file, with its game.
    fn champion(&self, file: &Path) -> anyhow::Result<(Skill, Option<&'static Geometry>)> {
        let (skill, shape) = match read_card(file)?.player {
            Player::Table(table) => (Skill::Table(table), tic_tac_toe().shape()),
            Player::Network(network) => {
                let shape = network.architecture.shape;
                (Skill::Network(Thinker::new(&network)), shape)
            }
        };
        let game = Game::ALL.into_iter().find(|game| game.geometry().shape() == shape);
        let game = game.ok_or_else(|| anyhow!("{}: it plays none of the games that are known here", file.display()))?;
        if let Some(wanted) = self.game.filter(|wanted| *wanted != game) {
            bail!("{} plays {}, not {}: leave out --game", file.display(), game.name(), wanted.name());
        }
        Ok((skill, Some(game.geometry())))
    }
}

impl Opponent {
    /// What it plays in a position in which its side is to move and that is not over.
    pub(crate) fn answer(&mut self, position: Position) -> Answer {
        let geometry = self.geometry;
        let by_chance = |cell: u8| Answer { cell, why: "by chance".into() };
        match &mut self.skill {
            Skill::Table(table) => table_answer(table, position),
            Skill::Random => by_chance(random(position, geometry, &mut self.rng)),
            Skill::Filtered => by_rules(position, geometry, filtered(position, geometry, &mut self.rng)),
            Skill::Benchmark => by_rules(position, geometry, benchmark(position, geometry, &mut self.rng)),
            Skill::AlphaBeta => {
                let depth = self.depth.unwrap_or(4);
                foresight(built_in(geometry, depth).choose(position), depth)
            }
            Skill::Network(thinker) => thinker.answer(geometry, position, self.depth),
        }
    }
}

/// A table's move. The filter moves first, as it did in evolution: it completes an own line, else blocks the opponent's (the
/// first cell of several). The table has a move for every board where the filter has none, also for those that only an
/// opponent without the filter can bring about.
fn table_answer(table: &TableGenome, position: Position) -> Answer {
    let (geometry, side) = (tic_tac_toe(), position.to_move());
    let first = |mask: u64, why: &str| cells(mask).next().map(|cell| Answer { cell, why: why.into() });
    first(position.wins(geometry, side), COMPLETES)
        .or_else(|| first(position.wins(geometry, side.other()), BLOCKS))
        .or_else(|| table.choose(position.board()).map(|cell| Answer { cell, why: "its table says so".into() }))
        .expect("a table has a move for every board of its side that is neither over nor the filter's")
}

const COMPLETES: &str = "it completes a line";
const BLOCKS: &str = "it blocks your line";

/// A move of a player that looks at lines before it leaves the choice to chance.
fn by_rules(position: Position, geometry: &Geometry, cell: u8) -> Answer {
    let side = position.to_move();
    let why = if position.wins(geometry, side) >> cell & 1 == 1 {
        COMPLETES
    } else if position.wins(geometry, side.other()) >> cell & 1 == 1 {
        BLOCKS
    } else {
        "by chance"
    };
    Answer { cell, why: why.into() }
}

/// A move that look-ahead has found.
fn foresight(choice: Choice, depth: u32) -> Answer {
    let why = match (choice.exact, choice.value) {
        (true, value) if value > 0.0 => "it has worked out a win".into(),
        (true, value) if value < 0.0 => "it has worked out that it will lose".into(),
        (true, _) => "it has worked out a draw".into(),
        (false, value) if value > 1.0 => "it sees a win".into(),
        (false, value) if value < -1.0 => "it sees a loss".into(),
        (false, value) => format!("{depth} plies ahead it values this at {value:+.3}"),
    };
    Answer { cell: choice.cell, why }
}

/// A network in play.
struct Thinker {
    engine: Box<dyn Engine>,
    activation: Activation,
}

impl Thinker {
    fn new(network: &Network) -> Self {
        let engine = engine(&network.architecture, &network.weights);
        Self { engine, activation: network.architecture.activation }
    }

    /// What it plays: the move it values most, or what it finds so many plies ahead.
    fn answer(&mut self, geometry: &Geometry, position: Position, depth: Option<u32>) -> Answer {
        match depth {
            None => {
                let (cell, value) = self.best(geometry, position);
                Answer { cell, why: format!("it values this at {value:+.3}") }
            }
            Some(depth) => {
                let evaluate = |position: Position| self.best(geometry, position).1;
                foresight(AlphaBeta::new(geometry, depth, evaluate).choose(position), depth)
            }
        }
    }

    /// The move that it values most, with the value; of equal ones the lowest cell.
    fn best(&mut self, geometry: &Geometry, position: Position) -> (u8, f32) {
        set_up(&mut *self.engine, position.board());
        let mut sums = [0.0; 64];
        self.engine.values(position.legal(geometry), &mut sums);
        let moves = cells(position.legal(geometry)).map(|cell| (cell, self.activation.apply(sums[usize::from(cell)])));
        moves
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
            .expect("a game that goes on has a legal move")
    }
}

/// Puts a board before an engine, stone by stone; in which order does not matter to it.
fn set_up(engine: &mut dyn Engine, board: Board) {
    engine.reset();
    let mut x = cells(board.x);
    let mut o = cells(board.o);
    for turn in 0..board.pieces() {
        let next = if turn % 2 == 0 { x.next() } else { o.next() };
        engine.play(next.expect("X has as many stones as O, or one more"));
    }
}

/// Opponents for the tests of the verbs.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use evoxo_common::{experiment::invincible::optimum::optimum, ratio::Ratio};

    /// A built-in player.
    pub(crate) fn named(name: &str, game: &str) -> Opponent {
        let game = Game::from_str(game, false).unwrap();
        Who { name: name.into(), game: Some(game), depth: None, seed: Some(1) }.find().unwrap()
    }

    /// The best table that never loses.
    pub(crate) fn table(side: Side) -> Opponent {
        let skill = Skill::Table(optimum(side, Ratio::from(100)).player);
        Opponent { skill, side: Some(side), name: format!("table {}", side.letter()), ..named("random", "tic-tac-toe") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        board::Outcome,
        experiment::invincible::optimum::optimum,
        net::{Architecture, First},
        ratio::Ratio,
    };

    fn who(name: &str) -> Who {
        Who { name: name.into(), game: None, depth: None, seed: Some(1) }
    }

    fn answer(table: &TableGenome, board: Board) -> Answer {
        table_answer(table, Position::of(tic_tac_toe(), board))
    }

    /// Plays every game against anyone, and counts those that the player loses.
    fn lost(player: &TableGenome, side: Side, board: Board) -> u64 {
        let game = tic_tac_toe();
        match game.outcome(board) {
            Some(outcome) => u64::from(outcome == Outcome::Win(side.other())),
            None if board.to_move() == side => lost(player, side, board.play(answer(player, board).cell)),
            None => cells(game.legal(board)).map(|cell| lost(player, side, board.play(cell))).sum(),
        }
    }

    #[test]
    fn whoever_is_proven_unbeatable_loses_to_nobody() {
        for side in Side::BOTH {
            let best = optimum(side, Ratio::from(100)).player;
            assert!(best.audit().unbeatable());
            assert_eq!(lost(&best, side, Board::EMPTY), 0);
        }
    }

    #[test]
    fn a_move_comes_with_its_reason() {
        let table = optimum(Side::O, Ratio::from(100)).player;
        for (board, cell, why) in
            [("XX./OO./X..", 5, COMPLETES), ("XX./.O./...", 2, BLOCKS), ("X../.../...", 4, "its table says so")]
        {
            let board = tic_tac_toe().board_of(board).unwrap();
            assert_eq!(answer(&table, board), Answer { cell, why: why.into() }, "{board:?}");
        }
    }

    /// Also on boards that no play leads to, which a person may set up in an engine.
    #[test]
    fn every_board_has_an_answer() {
        let game = tic_tac_toe();
        for (side, boards) in [(Side::X, 2423), (Side::O, 2097)] {
            let table = TableGenome::random(side, &mut Stream::root(1).rng());
            let all = (0..512).flat_map(|x| (0..512).map(move |o| Board { x, o })).filter(|board| {
                let extra = board.x.count_ones().checked_sub(board.o.count_ones());
                board.x & board.o == 0 && matches!(extra, Some(0 | 1)) && board.to_move() == side
            });
            let open = all.filter(|board| game.outcome(*board).is_none());
            let answered = open.filter(|board| game.legal(*board) >> answer(&table, *board).cell & 1 == 1);
            assert_eq!(answered.count(), boards, "{side:?}");
        }
    }

    #[test]
    fn built_in_players_play_every_game_to_its_end() {
        for game in Game::ALL {
            for name in ["random", "filtered", "benchmark", "alpha-beta"] {
                let mut opponent = Who { game: Some(game), depth: (name == "alpha-beta").then_some(1), ..who(name) };
                opponent.seed = Some(7);
                let mut opponent = opponent.find().unwrap();
                let mut position = Position::START;
                while opponent.geometry.outcome(position.board()).is_none() {
                    let answer = opponent.answer(position);
                    position = position.play(opponent.geometry, answer.cell);
                }
                assert!(position.board().pieces() >= 5, "{name} at {game:?}");
            }
        }
    }

    /// A network's values do not depend on the order in which its board was put up, and look-ahead finds a win.
    #[test]
    fn a_network_answers_any_position() {
        let architecture = Architecture {
            shape: score_four().shape(),
            first: First::Lines { detectors: 4 },
            second: 32,
            biases: true,
            activation: Activation::Logistic,
            shared: false,
        };
        let weights = architecture.initial(Stream::root(5));
        let position =
            [48, 63, 49, 62, 50].into_iter().fold(Position::START, |position, cell| position.play(score_four(), cell));
        let think = |depth: Option<u32>, position: Position| {
            Thinker::new(&Network { architecture, weights: weights.clone() }).answer(score_four(), position, depth)
        };
        let greedy = think(None, position);
        assert!(greedy.why.starts_with("it values this at"), "{}", greedy.why);
        assert!(position.legal(score_four()) >> greedy.cell & 1 == 1);
        let position = position.play(score_four(), 61);
        assert_eq!(think(Some(2), position), Answer { cell: 51, why: "it sees a win".into() });
    }

    #[test]
    fn what_is_no_opponent_is_refused() {
        let sentence = |who: Who| who.find().map(|_| ()).unwrap_err().to_string();
        assert!(sentence(who("bencmark")).contains("no player \"bencmark\""));
        assert!(sentence(who("nowhere/card.json")).contains("cannot read nowhere/card.json"));
        assert!(sentence(Who { depth: Some(7), ..who("alpha-beta") }).contains("--depth is 7"));
        assert!(sentence(Who { depth: Some(2), ..who("random") }).contains("does not look ahead"));
    }
}
