//! Players without a file, by name.

use std::cell::RefCell;

use evoxo_common::{card::Showing, rng::Generator};

use super::{
    Move, Play, Player, Thought,
    alpha_beta::{self, Choice, Solver},
    benchmark::{benchmark, benchmark_cells},
    equal_shares, line_move,
    random::{any_of, filtered, filtered_cells, random},
    teacher, why,
};
use crate::{
    board::{Board, Geometry, Outcome, Position, Side, cells, tic_tac_toe},
    odds::{Subject, sides_showing},
};

/// The names of all built-in players.
pub const BUILT_IN: [&str; 6] = ["random", "filtered", "benchmark", "alpha-beta", "perfect", "teacher"];

/// The plies that alpha-beta looks ahead by default.
const DEPTH: u32 = 4;

/// The player with this name for this game.
///
/// # Errors
/// A message if there is no such player, or if it does not play this game.
pub fn built_in(name: &str, geometry: &'static Geometry) -> Result<Player, String> {
    let small = geometry.shape() == tic_tac_toe().shape();
    let play: Box<dyn Play> = match name {
        "random" => Box::new(Random),
        "filtered" => Box::new(Filtered),
        "benchmark" => Box::new(Benchmark),
        "alpha-beta" => Box::new(AlphaBeta { depth: DEPTH }),
        "perfect" if small => Box::new(Perfect(RefCell::new(Solver::new(tic_tac_toe())))),
        "teacher" if small => Box::new(Teacher),
        "perfect" => {
            return Err(
                "perfect plays only tic-tac-toe: give alpha-beta, which plays perfectly late in any game".into()
            );
        }
        "teacher" => return Err("teacher plays only tic-tac-toe".into()),
        _ => return Err(format!("there is no player {name:?}: there are {}", BUILT_IN.join(", "))),
    };
    Ok(Player { name: name.into(), geometry, side: None, play })
}

struct Random;

impl Play for Random {
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        Move::new(random(position, geometry, rng), why::BY_CHANCE)
    }

    fn is_random(&self) -> bool {
        true
    }

    fn shares(&mut self, geometry: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        equal_shares(position.legal(geometry))
    }
}

struct Filtered;

impl Play for Filtered {
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        line_move(position, geometry, filtered(position, geometry, rng))
    }

    fn is_random(&self) -> bool {
        true
    }

    fn shares(&mut self, geometry: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        equal_shares(filtered_cells(position, geometry))
    }
}

struct Benchmark;

impl Play for Benchmark {
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        line_move(position, geometry, benchmark(position, geometry, rng))
    }

    fn is_random(&self) -> bool {
        true
    }

    fn shares(&mut self, geometry: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        equal_shares(benchmark_cells(position, geometry))
    }
}

struct AlphaBeta {
    depth: u32,
}

impl Play for AlphaBeta {
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, _: &mut Generator) -> Move {
        look_ahead_move(alpha_beta::built_in(geometry, self.depth).choose(position), self.depth)
    }

    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, _: &mut Generator) -> Vec<Thought> {
        look_ahead_thoughts(alpha_beta::built_in(geometry, self.depth).values(position), self.depth)
    }

    fn look_ahead(&mut self, plies: u32) -> bool {
        self.depth = plies;
        true
    }
}

const WIN: &str = "it has worked out a win";
const DRAW: &str = "it has worked out a draw";

/// A move that a look-ahead of `depth` plies has found.
pub(crate) fn look_ahead_move(choice: Choice, depth: u32) -> Move {
    let why = match (choice.exact, choice.value) {
        (true, value) if value > 0.0 => WIN.into(),
        (true, value) if value < 0.0 => "it has worked out that it will lose".into(),
        (true, _) => DRAW.into(),
        (false, value) if value > 1.0 => "it sees a win".into(),
        (false, value) if value < -1.0 => "it sees a loss".into(),
        (false, value) => format!("{depth} plies ahead it values this at {value:+.3}"),
    };
    Move { cell: choice.cell, why }
}

/// The same for several moves.
pub(crate) fn look_ahead_thoughts(choices: Vec<Choice>, depth: u32) -> Vec<Thought> {
    let thought = |choice: Choice| {
        let Move { cell, why } = look_ahead_move(choice, depth);
        Thought { cell, value: Some(f64::from(choice.value)), says: why }
    };
    choices.into_iter().map(thought).collect()
}

/// The player of 3x3 that never makes a mistake. (Other games are too large to solve from the start.)
struct Perfect(RefCell<Solver<'static>>);

impl Perfect {
    /// The moves that keep the value of a position, and the value.
    fn best(&self, position: Position) -> (u64, i8) {
        self.0.borrow_mut().all_best(position).expect("tic-tac-toe has fewer positions than it may see")
    }
}

impl Play for Perfect {
    fn choose_move(&mut self, _: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        let (moves, outcome) = self.best(position);
        let why = ["it has worked out that it may lose", DRAW, WIN][(outcome + 1) as usize];
        Move::new(any_of(moves, rng), why)
    }

    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, _: &mut Generator) -> Vec<Thought> {
        let of = |cell: u8| {
            let next = position.play(geometry, cell);
            let outcome = match geometry.outcome(next.board()) {
                Some(Outcome::Win(_)) => 1,
                Some(Outcome::Draw) => 0,
                None => -self.best(next).1,
            };
            let says = ["it loses against perfect play", "it draws against perfect play", "it wins"];
            Thought { cell, value: Some(f64::from(outcome)), says: says[(outcome + 1) as usize].into() }
        };
        cells(position.legal(geometry)).map(of).collect()
    }

    fn is_random(&self) -> bool {
        true
    }

    fn shares(&mut self, _: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        equal_shares(self.best(position).0)
    }

    fn exact(&self) -> Result<Showing, String> {
        let choose = |board| self.best(Position::of(tic_tac_toe(), board)).0;
        exact_of_both_sides("The player that never errs", &choose)
    }
}

struct Teacher;

impl Play for Teacher {
    fn choose_move(&mut self, _: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        let cell = any_of(teacher::choose(position.board()), rng);
        let score = teacher::scores(teacher::seen_by_mover(position.board()))[usize::from(cell)];
        Move::new(cell, format!("its score is {score}, the highest"))
    }

    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, _: &mut Generator) -> Vec<Thought> {
        let scores = teacher::scores(teacher::seen_by_mover(position.board()));
        let of = |cell: u8| {
            let score = scores[usize::from(cell)];
            Thought { cell, value: Some(f64::from(score)), says: format!("its score is {score}") }
        };
        cells(position.legal(geometry)).map(of).collect()
    }

    fn is_random(&self) -> bool {
        true
    }

    fn shares(&mut self, _: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        equal_shares(teacher::choose(position.board()))
    }

    fn exact(&self) -> Result<Showing, String> {
        exact_of_both_sides("The teacher of nndtf", &teacher::choose)
    }
}

/// The exact odds of a player of both sides that decides every move itself and takes these cells with equal probability.
fn exact_of_both_sides(who: &str, choose: &dyn Fn(Board) -> u64) -> Result<Showing, String> {
    let exact = |side| Ok((side, Subject { side, filtered: false, choose: Box::new(choose) }.exact()?));
    Ok(sides_showing(who, false, &Side::BOTH.into_iter().map(exact).collect::<Result<Vec<_>, String>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{connect_four, qubic, score_four};
    use evoxo_common::rng::Stream;

    /// The printed odds of a player of both sides. The perfect player never loses as either side.
    #[test]
    fn built_in_players_are_analysed_exactly() {
        let exact = |name: &str| built_in(name, tic_tac_toe()).unwrap().play.exact();
        insta::assert_snapshot!(exact("teacher").unwrap().text);
        let perfect = exact("perfect").unwrap();
        assert_eq!(perfect.text.matches("Never loses: proven").count(), 2);
        assert_eq!(perfect.json["X"]["unbeatable"], true);
        assert!(exact("random").unwrap_err().contains("only players of 3x3"));
    }

    #[test]
    fn some_play_only_the_small_game() {
        for name in BUILT_IN {
            assert!(built_in(name, tic_tac_toe()).is_ok());
            assert_eq!(built_in(name, score_four()).is_ok(), !["perfect", "teacher"].contains(&name), "{name}");
        }
        assert!(built_in("bench", score_four()).err().unwrap().contains("there is no player \"bench\""));
    }

    /// The teacher takes the cell with the highest score, and names the score.
    #[test]
    fn the_teacher_plays_by_its_scores() {
        let mut teacher = built_in("teacher", tic_tac_toe()).unwrap();
        let board = tic_tac_toe().board_of("..X/OXX/OO.").unwrap();
        let position = Position::of(tic_tac_toe(), board);
        let chosen = teacher.play.choose_move(teacher.geometry, position, &mut Stream::root(1).rng());
        assert_eq!(chosen, Move::new(8, "its score is 873324, the highest"));
    }

    /// A move that is searched by itself has the value of the whole search, and the best move is the same.
    #[test]
    fn alpha_beta_plays_what_it_thinks() {
        let rng = &mut Stream::root(5).rng();
        for geometry in [tic_tac_toe(), connect_four(), qubic(), score_four()] {
            let mut position = Position::START;
            while geometry.outcome(position.board()).is_none() && position.board().pieces() < 40 {
                let choice = alpha_beta::built_in(geometry, 2).choose(position);
                let values = alpha_beta::built_in(geometry, 2).values(position);
                let most = values.iter().map(|other| other.value).fold(f32::NEG_INFINITY, f32::max);
                let own = values.iter().find(|other| other.cell == choice.cell).unwrap();
                assert_eq!(values.len() as u32, position.legal(geometry).count_ones());
                assert_eq!((own.value, most), (choice.value, choice.value), "{position:?}");
                position = position.play(geometry, random(position, geometry, rng));
            }
        }
    }

    /// Players play exactly the moves that they say they may play, and all of these moves occur.
    #[test]
    fn shares_match_the_moves_played() {
        for (geometry, names) in [(tic_tac_toe(), &BUILT_IN[..]), (score_four(), &BUILT_IN[..4])] {
            for name in names {
                let mut player = built_in(name, geometry).unwrap();
                player.play.look_ahead(2);
                let rng = &mut Stream::root(3).text(name).rng();
                let mut position = Position::START;
                while geometry.outcome(position.board()).is_none() {
                    let shares = player.play.shares(geometry, position).unwrap();
                    let said = shares.iter().fold(0, |mask, (cell, _)| mask | 1_u64 << cell);
                    // There are fifteen draws for each move. One of sixteen moves is missed in 1 of 200,000 positions.
                    let seen = (0..15 * shares.len()).fold(0, |mask, _| mask | 1_u64 << player.choose(position, rng));
                    assert_eq!((said, shares.iter().all(|(_, share)| *share == 1)), (seen, true), "{name}");
                    position = position.play(geometry, player.choose(position, rng));
                }
            }
        }
    }

    #[test]
    fn built_in_players_play_every_game_to_its_end() {
        let rng = &mut Stream::root(7).rng();
        for geometry in [tic_tac_toe(), connect_four(), qubic(), score_four()] {
            for name in ["random", "filtered", "benchmark", "alpha-beta"] {
                let mut player = built_in(name, geometry).unwrap();
                assert_eq!(player.play.look_ahead(1), name == "alpha-beta");
                let mut position = Position::START;
                while geometry.outcome(position.board()).is_none() {
                    position = position.play(geometry, player.choose(position, rng));
                }
                assert!(position.board().pieces() >= 5, "{name} at {:?}", geometry.shape());
            }
        }
    }

    /// The player never loses, whatever the other side plays, and does not always play the same game.
    #[test]
    fn the_perfect_player_never_errs() {
        let mut perfect = built_in("perfect", tic_tac_toe()).unwrap();
        let geometry = tic_tac_toe();
        let mut first_moves = 0_u64;
        for seed in 0..200 {
            let mut rng = Stream::root(seed).rng();
            let mut position = Position::START;
            let side = Side::BOTH[seed as usize % 2];
            while geometry.outcome(position.board()).is_none() {
                let own = position.to_move() == side;
                let cell = if own { perfect.choose(position, &mut rng) } else { random(position, geometry, &mut rng) };
                first_moves |= u64::from(own && position == Position::START) << cell;
                position = position.play(geometry, cell);
            }
            assert_ne!(geometry.outcome(position.board()), Some(Outcome::Win(side.other())), "{position:?}");
        }
        assert_eq!(first_moves, geometry.cells(), "all of them keep the draw");
        let forced = [0, 4, 8, 2].into_iter().fold(Position::START, |position, cell| position.play(geometry, cell));
        let chosen = perfect.play.choose_move(geometry, forced, &mut Stream::root(1).rng());
        assert_eq!(chosen, Move::new(6, WIN), "a block that makes two threats");
    }
}
