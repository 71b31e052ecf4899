//! Whom a person, or another program, plays against: a champion from a file or a built-in player.

use std::path::Path;

use anyhow::anyhow;
use clap::ValueEnum;
use evoxo_common::{
    board::{Board, Geometry, Position, Side, cells, connect_four, qubic, score_four, tic_tac_toe},
    card::{Network, Player},
    experiment::{
        invincible::table::TableGenome,
        nndtf::{network::NetworkPlayer, teacher},
        rules::agent::Agent,
        ternary::{index::Strings, player::Ternary},
    },
    net::{Activation, Engine, engine},
    player::{
        alpha_beta::{AlphaBeta, Choice, DEPTH_MAX, Solver, built_in},
        benchmark::benchmark,
        random::{any_of, filtered, random},
    },
    rng::{Generator, Stream, below},
};

use crate::{arguments::whole, usage, verb::audit::read_card};

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

    pub(crate) fn name(self) -> &'static str {
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
    /// A champion's file, or random, filtered, benchmark, alpha-beta, perfect or teacher
    #[arg(value_name = "WHO")]
    name: String,
    /// The game; a champion knows its own [default for built-in players: score-four]
    #[arg(long, value_enum, value_name = "GAME")]
    game: Option<Game>,
    /// Plies that a network or alpha-beta looks ahead, 1 to 6; late in the game it looks to the end
    /// [default: a network takes the move it values most, alpha-beta looks 4 plies ahead]
    #[arg(long, value_name = "PLIES", allow_negative_numbers = true, value_parser = whole::<u32>(1, DEPTH_MAX.into()))]
    depth: Option<u32>,
    /// Whether the plies stand behind the name: alpha-beta:6
    #[arg(skip)]
    behind_name: bool,
    /// Where the chance of players that leave something to it comes from [default: the clock]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX))]
    seed: Option<u64>,
}

/// A player of a game, whoever it is.
pub(crate) struct Opponent {
    pub(crate) game: Game,
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
    Nndtf(NetworkPlayer),
    Rules(Agent),
    Ternary(Ternary),
    Random,
    Filtered,
    Benchmark,
    AlphaBeta,
    Perfect(Solver<'static>),
    /// The teacher of `nndtf`.
    Teacher,
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
            return Err(usage(format!("{}:{depth} looks {depth} plies ahead: give 1 to {DEPTH_MAX} plies", self.name)));
        }
        let (skill, game) = match self.name.as_str() {
            "random" => (Skill::Random, None),
            "filtered" => (Skill::Filtered, None),
            "benchmark" => (Skill::Benchmark, None),
            "alpha-beta" => (Skill::AlphaBeta, None),
            "perfect" => (self.perfect()?, Some(Game::TicTacToe)),
            "teacher" => match self.game {
                None | Some(Game::TicTacToe) => (Skill::Teacher, Some(Game::TicTacToe)),
                Some(game) => return Err(usage(format!("teacher plays tic-tac-toe, not {}", game.name()))),
            },
            file if !Path::new(file).exists() => {
                return Err(usage(format!(
                    "there is no player {file:?} and no file of that name: give a champion's file, random, filtered, \
                     benchmark, alpha-beta, perfect or teacher"
                )));
            }
            file => self.champion(Path::new(file))?,
        };
        if self.depth.is_some() && !matches!(skill, Skill::Network(_) | Skill::AlphaBeta) {
            let plies = self.depth.filter(|_| self.behind_name).map_or("--depth".into(), |depth| format!(":{depth}"));
            return Err(usage(format!("{} does not look ahead: leave out {plies}", self.name)));
        }
        let side = match &skill {
            Skill::Table(table) => Some(table.side()),
            Skill::Ternary(string) => Some(string.code.side),
            _ => None,
        };
        let name = match (&skill, side) {
            (Skill::Table(_), Some(side)) => format!("table {}", side.letter()),
            (Skill::Ternary(_), Some(side)) => format!("string {}", side.letter()),
            (Skill::Network(_), _) => "network".into(),
            (Skill::Nndtf(_), _) => "nndtf network".into(),
            (Skill::Rules(_), _) => "rules".into(),
            _ => self.name.clone(),
        };
        let game = game.or(self.game).unwrap_or(Game::ScoreFour);
        let geometry = game.geometry();
        let seed = self.seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64)
        });
        let rng = Stream::root(seed).text("opponent").rng();
        Ok(Opponent { game, geometry, name, side, skill, depth: self.depth, rng })
    }

    /// The player that never errs. The other games are too large for it to begin.
    fn perfect(&self) -> anyhow::Result<Skill> {
        match self.game {
            None | Some(Game::TicTacToe) => Ok(Skill::Perfect(Solver::new(tic_tac_toe()))),
            Some(game) => Err(usage(format!(
                "perfect plays tic-tac-toe, not {}: give alpha-beta, which plays perfectly late in any game",
                game.name()
            ))),
        }
    }

    /// The champion of a file, with its game.
    fn champion(&self, file: &Path) -> anyhow::Result<(Skill, Option<Game>)> {
        let card = read_card(file)?;
        let exact_wins = card.exact_wins();
        let (skill, shape) = match card.player {
            Player::Table(table) => (Skill::Table(table), tic_tac_toe().shape()),
            Player::Nndtf(network) => (Skill::Nndtf(network), tic_tac_toe().shape()),
            Player::Rules(agent) => (Skill::Rules(agent), tic_tac_toe().shape()),
            Player::Ternary(string) => (Skill::Ternary(string), tic_tac_toe().shape()),
            Player::Network(network) => {
                let exact_wins = exact_wins.map_err(|why| anyhow!("{}: {why}", file.display()))?;
                (Skill::Network(Thinker::new(&network, exact_wins)), network.architecture.shape)
            }
        };
        let game = Game::ALL.into_iter().find(|game| game.geometry().shape() == shape);
        let game = game.ok_or_else(|| anyhow!("{}: it plays none of the games that are known here", file.display()))?;
        if let Some(wanted) = self.game.filter(|wanted| *wanted != game) {
            let (file, game, wanted) = (file.display(), game.name(), wanted.name());
            return Err(usage(format!("{file} plays {game}, not {wanted}: leave out --game")));
        }
        Ok((skill, Some(game)))
    }
}

/// Two players of one game, each named as WHO or WHO:PLIES. One that plays any game plays that of the other.
pub(crate) fn pair(names: [&str; 2], game: Option<Game>) -> anyhow::Result<[Opponent; 2]> {
    let find = |name: &str, game: Option<Game>| {
        let (name, depth) = match name.rsplit_once(':').map(|(name, plies)| (name, plies.parse())) {
            Some((name, Ok(depth))) => (name, Some(depth)),
            _ => (name, None),
        };
        Who { name: name.into(), game, depth, behind_name: true, seed: Some(0) }.find()
    };
    let [one, two] = [find(names[0], game)?, find(names[1], game)?];
    match (one.game == two.game, one.plays_any(), two.plays_any()) {
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

impl Opponent {
    /// Whether it plays any game.
    fn plays_any(&self) -> bool {
        matches!(self.skill, Skill::Random | Skill::Filtered | Skill::Benchmark | Skill::AlphaBeta)
    }

    /// Whether it leaves anything to chance.
    pub(crate) fn by_chance(&self) -> bool {
        match &self.skill {
            Skill::Rules(_)
            | Skill::Random
            | Skill::Filtered
            | Skill::Benchmark
            | Skill::Perfect(_)
            | Skill::Teacher => true,
            Skill::Ternary(string) => string.code.broken(&string.genome) > 0,
            Skill::Table(_) | Skill::Network(_) | Skill::Nndtf(_) | Skill::AlphaBeta => false,
        }
    }

    /// The cell that [`Opponent::answer`] names, with this chance.
    pub(crate) fn choose(&mut self, position: Position, rng: &mut Generator) -> u8 {
        std::mem::swap(&mut self.rng, rng);
        let cell = self.answer(position).cell;
        std::mem::swap(&mut self.rng, rng);
        cell
    }

    /// What it plays in a position in which its side is to move and that is not over.
    pub(crate) fn answer(&mut self, position: Position) -> Answer {
        let geometry = self.geometry;
        let by_chance = |cell: u8| Answer { cell, why: "by chance".into() };
        match &mut self.skill {
            Skill::Table(table) => table_answer(table, position),
            Skill::Ternary(string) => string_answer(string, position, &mut self.rng),
            Skill::Random => by_chance(random(position, geometry, &mut self.rng)),
            Skill::Filtered => by_rules(position, geometry, filtered(position, geometry, &mut self.rng)),
            Skill::Benchmark => by_rules(position, geometry, benchmark(position, geometry, &mut self.rng)),
            Skill::AlphaBeta => {
                let depth = self.depth.unwrap_or(4);
                foresight(built_in(geometry, depth).choose(position), depth)
            }
            Skill::Perfect(solver) => {
                let (moves, outcome) =
                    solver.all_best(position).expect("tic-tac-toe has fewer positions than it may see");
                let why = ["it has worked out that it may lose", DRAW, WIN][(outcome + 1) as usize].into();
                Answer { cell: any_of(moves, &mut self.rng), why }
            }
            Skill::Teacher => {
                let cell = any_of(teacher::choose(position.board()), &mut self.rng);
                let score = teacher::scores(teacher::seen_by_mover(position.board()))[usize::from(cell)];
                Answer { cell, why: format!("its score is {score}, the highest") }
            }
            Skill::Network(thinker) => thinker.answer(geometry, position, self.depth),
            Skill::Nndtf(network) => {
                let cell = network.choose(position.board()).expect("a game that goes on has an empty cell");
                Answer { cell, why: "its output is nearest to that cell's number".into() }
            }
            Skill::Rules(agent) => agent_answer(agent, position, &mut self.rng),
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

/// The move of an agent of rules: a lot decides between rules that rank equally, and where none matches.
fn agent_answer(agent: &Agent, position: Position, rng: &mut Generator) -> Answer {
    let (board, side) = (position.board(), position.to_move());
    let candidates = agent.candidates(board.stones(side) as u32, board.stones(side.other()) as u32);
    if candidates.is_empty() {
        return Answer {
            cell: random(position, tic_tac_toe(), rng),
            why: "by chance, since none of its rules matches".into(),
        };
    }
    let place = candidates[below(rng, candidates.len() as u64) as usize];
    let (rule, weight) = (agent.rules[place], agent.weights[place]);
    Answer { cell: rule.to(), why: format!("its rule {rule} says so (priority {}, weight {weight})", rule.priority()) }
}

/// A string's move. The rules of a short one move first; where it names a taken cell any empty one is played, as when it
/// evolved.
fn string_answer(string: &Ternary, position: Position, rng: &mut Generator) -> Answer {
    let Ternary { code, genome } = string;
    let (geometry, board) = (tic_tac_toe(), position.board());
    let chosen = code.choose(genome, board);
    let cell = any_of(chosen, rng);
    if code.strings == Strings::Short && geometry.forced(board) != 0 {
        return by_rules(position, geometry, cell);
    }
    let why =
        if chosen.count_ones() > 1 { "by chance, for its string names a taken cell" } else { "its string says so" };
    Answer { cell, why: why.into() }
}

const COMPLETES: &str = "it completes a line";
const BLOCKS: &str = "it blocks your line";
const WIN: &str = "it has worked out a win";
const DRAW: &str = "it has worked out a draw";

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
        (true, value) if value > 0.0 => WIN.into(),
        (true, value) if value < 0.0 => "it has worked out that it will lose".into(),
        (true, _) => DRAW.into(),
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
    /// Whether it takes a move that wins at once whatever its value.
    exact_wins: bool,
}

impl Thinker {
    fn new(network: &Network, exact_wins: bool) -> Self {
        let engine = engine(&network.architecture, &network.weights);
        Self { engine, activation: network.architecture.activation, exact_wins }
    }

    /// What it plays: the move it values most, or what it finds so many plies ahead.
    fn answer(&mut self, geometry: &Geometry, position: Position, depth: Option<u32>) -> Answer {
        match depth {
            None => {
                let (cell, value) = self.best(geometry, position);
                let wins = position.wins(geometry, position.to_move()) >> cell & 1 == 1;
                let why = if wins { COMPLETES.into() } else { format!("it values this at {value:+.3}") };
                Answer { cell, why }
            }
            Some(depth) => {
                let evaluate = |position: Position| self.best(geometry, position).1;
                foresight(AlphaBeta::new(geometry, depth, evaluate).choose(position), depth)
            }
        }
    }

    /// The move that it values most, with the value; of equal ones the lowest cell. The value of an exact win is the reward.
    fn best(&mut self, geometry: &Geometry, position: Position) -> (u8, f32) {
        let mut wins = cells(position.wins(geometry, position.to_move()));
        if let (true, Some(cell)) = (self.exact_wins, wins.next()) {
            return (cell, 1.0);
        }
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
        Who { name: name.into(), game: Some(game), depth: None, behind_name: false, seed: Some(1) }.find().unwrap()
    }

    /// The best table that never loses.
    pub(crate) fn table(side: Side) -> Opponent {
        let skill = Skill::Table(optimum(side, Ratio::from(100)).player);
        Opponent { skill, side: Some(side), name: format!("table {}", side.letter()), ..named("random", "tic-tac-toe") }
    }
}

#[cfg(test)]
mod tests;
