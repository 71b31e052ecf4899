//! Suites: positions late in a game, with their exact values and all moves that keep them. They show how well a player plays
//! in cases where no opponent is strong enough to show it.
//!
//! [`Suite::make`] makes a suite from games of players that need no learning, with the solver of
//! [`crate::player::alpha_beta`]. A suite has only positions in which a move can be wrong: some moves keep the value and
//! others do not, no side can complete a line at once, and a solver with the nodes of a player does not see everything.

use std::collections::BTreeSet;

use evoxo_common::{
    rng::{Stream, below},
    stats::wilson_points,
};

use crate::{
    board::{Board, Geometry, Position, Side, cells},
    game::Game,
    player::{Player, alpha_beta::Solver, built_in, random::random},
};

/// The most positions of a suite.
pub const POSITIONS_MAX: usize = 10_000;
/// The fewest cells of a game for which a suite can be made.
pub const CELLS_MIN: u32 = 42;
/// The longest text of a suite, in bytes.
pub const BYTES_MAX: usize = 4 << 20;

/// The seed of suites, so that the same suite is made everywhere.
const SEED: u64 = 1;
/// Random plies before the players begin.
const OPENING: u32 = 4;
/// The players of the games. Each has the number of plies that it looks ahead, or 0.
const PLAYERS: [(&str, u32); 4] = [("filtered", 0), ("benchmark", 0), ("alpha-beta", 2), ("alpha-beta", 3)];
/// The most nodes of the search for the value of a position and of all its moves: some seconds.
const NODES_MAX: u32 = 4_000_000;
/// The number of places in the table of that search, as a power of 2: 100 MB.
const TABLE_BITS: u32 = 22;

/// A solved position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Puzzle {
    /// The board, with either side to move.
    pub board: Board,
    /// The result of perfect play for the side to move: 1 for a win, 0 for a draw. (A lost position has no wrong move.)
    pub value: i8,
    /// All moves that keep the value, as a mask.
    pub kept: u64,
}

/// Solved positions of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// The suite's game.
    pub game: Game,
    /// The positions; there is at least one.
    pub puzzles: Vec<Puzzle>,
}

/// How often a player keeps the value of some positions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The number of positions in which the player was to move.
    pub positions: usize,
    /// How often the player keeps the value: the sum of its probabilities over these positions.
    pub kept: f64,
}

impl Share {
    fn add(&mut self, kept: f64) {
        self.positions += 1;
        self.kept += kept;
    }

    /// The share, 0 to 1, with its 95 % interval over positions; `None` without positions.
    #[must_use]
    pub fn interval(self) -> Option<(f64, f64, f64)> {
        let (low, high) = wilson_points(self.kept, self.positions);
        (self.positions > 0).then(|| (self.kept / self.positions as f64, low, high))
    }
}

/// The results of a player in a suite: in all positions, in won ones, and in drawn ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judgement {
    /// All positions together.
    pub all: Share,
    /// Positions that perfect play wins.
    pub won: Share,
    /// Positions that perfect play draws.
    pub drawn: Share,
}

impl Suite {
    /// Makes the suite of this game with `positions` positions, each from a game of its own. The suite is the same on every
    /// machine. `found` is called with the number of positions after each one.
    ///
    /// # Panics
    /// If the game has fewer than [`CELLS_MIN`] cells.
    #[must_use]
    pub fn make(game: Game, positions: usize, found: &mut dyn FnMut(usize)) -> Self {
        let geometry = game.geometry();
        assert!(geometry.cells().count_ones() >= CELLS_MIN, "the game is too small for a suite");
        let (mut maker, mut puzzles, mut known) = (Maker::new(geometry), Vec::new(), BTreeSet::new());
        let games = Stream::root(SEED).text("suite").text(game.name());
        for number in 0.. {
            if puzzles.len() == positions {
                break;
            }
            let puzzle = maker.play(games.word(number));
            if let Some(puzzle) = puzzle.filter(|puzzle| known.insert(geometry.canonical(puzzle.board).0)) {
                puzzles.push(puzzle);
                found(puzzles.len());
            }
        }
        Self { game, puzzles }
    }

    /// The suite as a text: the name of the game, then a line for each position with its board from the top left, its value,
    /// and the moves that keep the value.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (geometry, name, count) = (self.game.geometry(), self.game.name(), self.puzzles.len());
        let line = |puzzle: &Puzzle| {
            let moves: Vec<String> = cells(puzzle.kept).map(|cell| geometry.move_name(cell)).collect();
            let value = if puzzle.value == 1 { "win" } else { "draw" };
            format!("{} {value} {}\n", geometry.board_text(puzzle.board), moves.join(" "))
        };
        format!(
            "# Solved positions: a board, what perfect play comes to for the side that moves, and all moves that keep it.\n\
             # X moves where both have as many stones. evoxo odds --make {name} --positions {count} makes it anew.\n\
             {name}\n{}",
            self.puzzles.iter().map(line).collect::<String>()
        )
    }

    /// The suite in a text: see [`Self::to_text`]. It does not check whether the values are right.
    ///
    /// # Errors
    /// A message that names the line and says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("it has {} bytes: at most {BYTES_MAX}", text.len()));
        }
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#') && !line.trim().is_empty());
        let mut lines = lines.map(|(line, number)| (line.trim(), number));
        let (name, _) = lines.next().ok_or("it is empty, not a suite of solved positions")?;
        let game = Game::named(name).ok_or_else(|| {
            let names: Vec<&str> = Game::ALL.iter().map(|game| game.name()).collect();
            format!("it does not begin with the name of a game: {}", names.join(", "))
        })?;
        let puzzles: Vec<Puzzle> = lines
            .map(|(line, number)| puzzle(game.geometry(), line).map_err(|why| format!("line {number}: {why}")))
            .collect::<Result<_, String>>()?;
        match puzzles.len() {
            1..=POSITIONS_MAX => Ok(Self { game, puzzles }),
            count => Err(format!("it has {count} positions: give 1 to {POSITIONS_MAX}")),
        }
    }

    /// How often a player of the game keeps the value. Random choices count by their probability.
    ///
    /// # Errors
    /// A message if the player plays another game, does not know among which moves it chooses, or is to move in no position.
    pub fn judge(&self, player: &mut Player) -> Result<Judgement, String> {
        let geometry = self.game.geometry();
        if player.geometry.shape() != geometry.shape() {
            return Err(format!("it does not play {}", self.game.name()));
        }
        let mut judgement = Judgement::default();
        for puzzle in &self.puzzles {
            let position = Position::of(geometry, puzzle.board);
            if player.side.is_some_and(|side| side != position.to_move()) {
                continue;
            }
            let shares =
                player.play.shares(geometry, position).ok_or("it does not say among which moves it chooses")?;
            let sum = |of: u64| -> f64 {
                shares.iter().filter(|(cell, _)| of >> cell & 1 == 1).map(|(_, share)| f64::from(*share)).sum()
            };
            let kept = sum(puzzle.kept) / sum(u64::MAX);
            judgement.all.add(kept);
            if puzzle.value == 1 { &mut judgement.won } else { &mut judgement.drawn }.add(kept);
        }
        match judgement.all.positions {
            0 => Err("it is not to move in any of the positions".into()),
            _ => Ok(judgement),
        }
    }
}

/// Makes a suite, game by game.
struct Maker {
    geometry: &'static Geometry,
    players: [Player; PLAYERS.len()],
    /// A solver with the nodes of a player.
    quick: Solver<'static>,
    solver: Solver<'static>,
}

impl Maker {
    fn new(geometry: &'static Geometry) -> Self {
        let players = PLAYERS.map(|(name, plies)| {
            let mut player = built_in(name, geometry).expect("these players play every game");
            assert!(player.play.look_ahead(plies) || plies == 0, "{name} looks ahead");
            player
        });
        let solver = Solver::with_limits(geometry, NODES_MAX, TABLE_BITS);
        Self { geometry, players, quick: Solver::new(geometry), solver }
    }

    /// Plays a game between two of the players. Takes its first position after some stones that qualifies for a suite.
    fn play(&mut self, stream: Stream) -> Option<Puzzle> {
        let rng = &mut stream.rng();
        let eighth = self.geometry.cells().count_ones() / 8;
        let first = 4 * eighth + below(rng, u64::from(eighth) + 1) as u32;
        let seats = [(); 2].map(|()| below(rng, PLAYERS.len() as u64) as usize);
        let mut position = Position::START;
        loop {
            let stones = position.board().pieces();
            if stones >= first
                && let Some(puzzle) = self.solve(position)
            {
                return Some(puzzle);
            }
            let cell = match stones < OPENING {
                true => random(position, self.geometry, rng),
                false => self.players[seats[position.to_move() as usize]].choose(position, rng),
            };
            position = position.play(self.geometry, cell);
            if stones == 6 * eighth || self.geometry.outcome(position.board()).is_some() {
                return None;
            }
        }
    }

    /// Solves a position; `None` if this takes too long, or if the position does not qualify for a suite (see the module's
    /// documentation).
    fn solve(&mut self, position: Position) -> Option<Puzzle> {
        let wins = |side| position.wins(self.geometry, side) != 0;
        if wins(Side::X) || wins(Side::O) || self.quick.outcome(position).is_some() {
            return None;
        }
        let (kept, value) = self.solver.all_best(position)?;
        (kept != position.legal(self.geometry)).then_some(Puzzle { board: position.board(), value, kept })
    }
}

/// The position that a line describes.
fn puzzle(geometry: &Geometry, line: &str) -> Result<Puzzle, String> {
    let mut words = line.split_whitespace();
    let board = geometry.board_of(words.next().unwrap_or_default())?;
    let (x, o, stones) = (board.x.count_ones(), board.o.count_ones(), board.occupied());
    if (x != o && x != o + 1) || geometry.below(stones) & !stones != 0 {
        return Err("no game leads to this board".into());
    }
    if geometry.outcome(board).is_some() {
        return Err("the game is over".into());
    }
    let value = match words.next() {
        Some("win") => 1,
        Some("draw") => 0,
        _ => return Err("after the board there is no \"win\" or \"draw\"".into()),
    };
    let cell =
        |name: &str| geometry.move_named(board, name).ok_or_else(|| format!("{name:?} is not a legal move there"));
    let kept = words.map(cell).try_fold(0, |mask, cell| Ok::<u64, String>(mask | 1 << cell?))?;
    match kept {
        0 => Err("there is no move that keeps the value".into()),
        _ => Ok(Puzzle { board, value, kept }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::score_four;
    use std::collections::BTreeMap;

    const COMMITTED: &str = include_str!("../suites/score-four.txt");

    fn committed() -> Suite {
        Suite::read(COMMITTED).unwrap()
    }

    /// The reference: a plain search with a memory that answers yes or no. It shares no code with [`Solver`] and does not use
    /// its knowledge (bounds, and threats on cells that no side can reach yet). It takes a win, blocks if everything else
    /// loses at once, and tries threatening moves first.
    struct Plain {
        /// For each cell: the lines through it, without the cell itself.
        lines: Vec<Vec<u64>>,
        known: BTreeMap<Board, bool>,
        boards_max: usize,
    }

    impl Plain {
        fn new(boards_max: usize) -> Self {
            let through = |cell: u32| {
                let lines = score_four().lines().iter().filter(|line| **line >> cell & 1 == 1);
                lines.map(|line| line ^ 1 << cell).collect()
            };
            Self { lines: (0..64).map(through).collect(), known: BTreeMap::new(), boards_max }
        }

        /// Those of the cells `of` that complete a line of these stones.
        fn completing(&self, stones: u64, of: u64) -> u64 {
            let completes = |cell: &u8| self.lines[usize::from(*cell)].iter().any(|line| stones & line == *line);
            cells(of).filter(completes).fold(0, |all, cell| all | 1 << cell)
        }

        /// Whether the side to move gets at least `least`, 1 (a win) or 0, in a game that is not over; `None` if this takes
        /// too many boards.
        fn gets(&mut self, board: Board, least: i8) -> Option<bool> {
            let legal = score_four().legal(board);
            if legal == 0 {
                return Some(least == 0);
            }
            let (own, other) = (board.stones(board.to_move()), board.stones(board.to_move().other()));
            if self.completing(own, legal) != 0 {
                return Some(true);
            }
            if let Some(gets) = self.known.get(&board) {
                return Some(*gets);
            }
            if self.known.len() >= self.boards_max {
                return None;
            }
            let blocks = self.completing(other, legal);
            let moves = if blocks == 0 { legal } else { blocks };
            let threatens = |cell: &u8| {
                let after = board.play(*cell);
                self.completing(own | 1 << cell, score_four().legal(after)) != 0
            };
            let threats = cells(moves).filter(threatens).fold(0, |all, cell| all | 1 << cell);
            let mut gets = false;
            for cell in cells(threats).chain(cells(moves & !threats)) {
                if !self.gets(board.play(cell), 1 - least)? {
                    gets = true;
                    break;
                }
            }
            self.known.insert(board, gets);
            Some(gets)
        }

        /// Whether a move has the result that the suite gives for it; `None` if this takes too many boards.
        fn confirms(&mut self, puzzle: &Puzzle, cell: u8) -> Option<bool> {
            let mut gets = |least: i8| {
                self.known.clear();
                self.gets(puzzle.board.play(cell), least)
            };
            // The opponent moves next.
            Some(match (puzzle.value, puzzle.kept >> cell & 1 == 1) {
                (1, true) => !gets(0)?,
                (1, false) => gets(0)?,
                (_, true) => !gets(1)? && gets(0)?,
                (_, false) => gets(1)?,
            })
        }
    }

    #[test]
    fn the_committed_suite_survives_a_round_trip() {
        let suite = committed();
        assert_eq!(
            (suite.game, suite.puzzles.len() >= 50, suite.to_text().as_str()),
            (Game::ScoreFour, true, COMMITTED)
        );
        let geometry = score_four();
        let images: BTreeSet<Board> = suite.puzzles.iter().map(|puzzle| geometry.canonical(puzzle.board).0).collect();
        assert_eq!(images.len(), suite.puzzles.len());
        for puzzle in &suite.puzzles {
            let legal = geometry.legal(puzzle.board);
            assert!(puzzle.kept & !legal == 0 && puzzle.kept != legal && puzzle.kept != 0);
        }
    }

    /// Every move that the reference can solve within a limited number of boards. With the variable `THOROUGH` the limit is
    /// much higher.
    #[test]
    fn a_plain_search_confirms_moves() {
        let thorough = std::env::var_os("THOROUGH").is_some();
        let mut plain = Plain::new(if thorough { 100_000 } else { 2000 });
        let (mut confirmed, mut all) = (0, 0);
        for (puzzle, number) in committed().puzzles.iter().zip(1..) {
            for cell in cells(score_four().legal(puzzle.board)) {
                all += 1;
                if let Some(right) = plain.confirms(puzzle, cell) {
                    assert!(right, "position {number}, move {}", score_four().move_name(cell));
                    confirmed += 1;
                }
            }
        }
        println!("{confirmed} of {all} moves are confirmed");
        assert!(confirmed >= 250, "only {confirmed} of {all} moves are confirmed");
    }

    /// The file contains what making the suite gives. The test compares its first positions.
    #[test]
    fn the_suite_can_be_regenerated() {
        assert_eq!(Suite::make(Game::ScoreFour, 1, &mut |_| ()).puzzles, committed().puzzles[..1]);
    }

    /// A random player keeps the value in proportion to the moves that do. A player that looks ahead does so more often.
    #[test]
    fn players_are_scored() {
        let suite = committed();
        let judge = |name: &str| suite.judge(&mut built_in(name, score_four()).unwrap()).unwrap();
        let random = judge("random");
        let share = |puzzle: &Puzzle| {
            f64::from(puzzle.kept.count_ones()) / f64::from(score_four().legal(puzzle.board).count_ones())
        };
        let expected: f64 = suite.puzzles.iter().map(share).sum();
        assert!((random.all.kept - expected).abs() < 1e-9 && random.all.positions == suite.puzzles.len());
        assert_eq!(random.won.positions + random.drawn.positions, random.all.positions);
        assert!(judge("alpha-beta").all.kept > 1.2 * random.all.kept);
        let (share, low, high) = random.all.interval().unwrap();
        assert!(low < share && share < high && Share::default().interval().is_none());
        let sentence = suite.judge(&mut built_in("random", Game::Qubic.geometry()).unwrap()).unwrap_err();
        assert_eq!(sentence, "it does not play score-four");
        let small = Suite::read("tic-tac-toe\nXO....... win a1 a2 b2\n").unwrap();
        let mut player = Player { side: Some(Side::O), ..built_in("random", Game::TicTacToe.geometry()).unwrap() };
        assert_eq!(small.judge(&mut player).unwrap_err(), "it is not to move in any of the positions");
    }

    #[test]
    fn invalid_suites_are_rejected_with_a_reason() {
        let wrong = |text: &str| Suite::read(text).unwrap_err();
        assert_eq!(wrong("# nothing\n"), "it is empty, not a suite of solved positions");
        assert!(wrong("chess\n").starts_with("it does not begin with the name of a game: tic-tac-toe"));
        assert_eq!(wrong("tic-tac-toe\n"), "it has 0 positions: give 1 to 10000");
        let line = |line: &str| wrong(&format!("tic-tac-toe\n{line}\n"));
        assert_eq!(line("XXX.OO... win a1"), "line 2: the game is over");
        assert_eq!(line("XXX...... win a1"), "line 2: no game leads to this board");
        assert_eq!(line("XO......."), "line 2: after the board there is no \"win\" or \"draw\"");
        assert_eq!(line("XO....... win a3"), "line 2: \"a3\" is not a legal move there");
        assert_eq!(line("XO....... win"), "line 2: there is no move that keeps the value");
        assert!(line("XO win a1").starts_with("line 2: the board"));
        let floating = format!("score-four\nX{} draw a1\n", ".".repeat(63));
        assert_eq!(wrong(&floating), "line 2: no game leads to this board");
    }
}
