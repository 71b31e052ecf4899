//! Two players against each other, from given openings.

use crate::board::{Board, Geometry, Outcome, Position, Side, cells};
use evoxo_common::{
    rng::{Generator, Stream},
    stats::wilson_points,
};
use serde::{Deserialize, Serialize};

/// A player: returns the cell that it takes, drawing any random numbers from the generator.
pub type Mover<'a> = dyn FnMut(Position, &mut Generator) -> u8 + 'a;

/// Results of two players, from the first one's point of view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duel {
    /// Games that the first player won.
    pub wins: u32,
    /// Games that ended in a draw.
    pub draws: u32,
    /// Games that the first player lost.
    pub losses: u32,
}

impl Duel {
    /// Games played.
    #[must_use]
    pub const fn games(self) -> u32 {
        self.wins + self.draws + self.losses
    }

    /// Points: 1 for a win, 0.5 for a draw.
    fn points(self) -> f64 {
        f64::from(self.wins) + 0.5 * f64::from(self.draws)
    }

    /// The share of points, 0 to 1. It is 0.5 without games.
    #[must_use]
    pub fn score(self) -> f64 {
        match self.games() {
            0 => 0.5,
            games => self.points() / f64::from(games),
        }
    }

    /// The 95 % interval of the score: see [`wilson_points`].
    #[must_use]
    pub fn interval(self) -> (f64, f64) {
        wilson_points(self.points(), self.games() as usize)
    }
}

impl std::ops::Add for Duel {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { wins: self.wins + other.wins, draws: self.draws + other.draws, losses: self.losses + other.losses }
    }
}

/// All positions after `plies` plies in which no side has won, in the order of boards. Images of each other are all included,
/// because not every player treats them alike.
#[must_use]
pub fn openings(geometry: &Geometry, plies: u32) -> Vec<Position> {
    let mut boards = vec![Board::EMPTY];
    for _ in 0..plies {
        let next = boards.iter().flat_map(|board| cells(geometry.legal(*board)).map(|cell| board.play(cell)));
        boards = next.filter(|board| geometry.outcome(*board).is_none()).collect();
        boards.sort_unstable();
        boards.dedup();
    }
    boards.into_iter().map(|board| Position::of(geometry, board)).collect()
}

/// Plays each opening once, with the first player on `side`. A duel on each side together plays every opening both ways. The
/// game from opening i draws from `stream`, i, `side`.
///
/// # Panics
/// If a player makes an illegal move.
pub fn duel(
    geometry: &Geometry,
    openings: &[Position],
    side: Side,
    stream: Stream,
    first: &mut Mover<'_>,
    second: &mut Mover<'_>,
) -> Duel {
    let mut duel = Duel::default();
    for (index, opening) in openings.iter().enumerate() {
        let rng = &mut stream.word(index as u64).word(side as u64).rng();
        match game(geometry, *opening, side, rng, first, second) {
            Outcome::Draw => duel.draws += 1,
            Outcome::Win(winner) if winner == side => duel.wins += 1,
            Outcome::Win(_) => duel.losses += 1,
        }
    }
    duel
}

/// Plays one game from a position on, in which the first player has this side.
///
/// # Panics
/// If a player makes an illegal move.
pub fn game(
    geometry: &Geometry,
    opening: Position,
    side: Side,
    rng: &mut Generator,
    first: &mut Mover<'_>,
    second: &mut Mover<'_>,
) -> Outcome {
    let mut position = opening;
    loop {
        if let Some(outcome) = geometry.outcome(position.board()) {
            return outcome;
        }
        let cell = if position.to_move() == side { first(position, rng) } else { second(position, rng) };
        assert!(position.legal(geometry) >> cell & 1 == 1, "a player took cell {cell}, which is not legal");
        position = position.play(geometry, cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{connect_four, score_four, tic_tac_toe},
        player::{alpha_beta::built_in, benchmark::benchmark, random::random},
    };

    #[test]
    fn openings_are_counted() {
        // On 3x3 after 4 plies, X has two of nine cells and O has two of the other seven.
        assert_eq!([0, 1, 2, 3, 4].map(|plies| openings(tic_tac_toe(), plies).len()), [1, 9, 72, 252, 756]);
        assert_eq!([0, 1, 2].map(|plies| openings(score_four(), plies).len()), [1, 16, 256]);
        assert_eq!([1, 2].map(|plies| openings(connect_four(), plies).len()), [7, 49]);
    }

    /// Both sides, one after the other.
    fn both(
        geometry: &Geometry,
        openings: &[Position],
        stream: Stream,
        first: &mut Mover<'_>,
        second: &mut Mover<'_>,
    ) -> Duel {
        let [x, o] = Side::BOTH.map(|side| duel(geometry, openings, side, stream, first, second));
        x + o
    }

    #[test]
    fn sides_are_exchanged_and_games_are_reproducible() {
        let geometry = tic_tac_toe();
        let play = |seed: u64| {
            let mut first = |position: Position, rng: &mut Generator| random(position, geometry, rng);
            let mut second = |position: Position, rng: &mut Generator| benchmark(position, geometry, rng);
            both(geometry, &openings(geometry, 2), Stream::root(seed), &mut first, &mut second)
        };
        assert_eq!((play(1), play(1).games()), (play(1), 144));
        assert!(play(1) != play(2) && play(1).score() < 0.35, "{:?}", play(1));
        // A player against itself, drawing new random numbers in each game, wins about equally often with each side.
        let mut lowest = |position: Position, _: &mut Generator| position.legal(geometry).trailing_zeros() as u8;
        let mut same = lowest;
        let even = both(geometry, &openings(geometry, 1), Stream::root(1), &mut lowest, &mut same);
        assert_eq!((even.wins, even.score()), (even.losses, 0.5));
        let won = Duel { wins: 10, ..Duel::default() };
        assert!(won.interval().1 == 1.0 && (0.72..0.73).contains(&won.interval().0), "{:?}", won.interval());
        assert_eq!(Duel { draws: 3, ..won }.score(), 11.5 / 13.0);
    }

    /// Looking ahead helps: two plies against the benchmark player, and four plies against two.
    #[test]
    fn depth_beats_the_benchmark_player() {
        let geometry = score_four();
        // One board of each class of images, to save time.
        let mut openings = openings(geometry, 2);
        openings.retain(|opening| geometry.canonical(opening.board()).0 == opening.board());
        let mut two = built_in(geometry, 2);
        let mut four = built_in(geometry, 4);
        let mut shallow = |position: Position, _: &mut Generator| two.choose(position).cell;
        let mut simple = |position: Position, rng: &mut Generator| benchmark(position, geometry, rng);
        let score = both(geometry, &openings, Stream::root(1), &mut shallow, &mut simple).score();
        assert!(score > 0.8, "two plies against the benchmark player: {score}");
        let mut deep = |position: Position, _: &mut Generator| four.choose(position).cell;
        let score = both(geometry, &openings, Stream::root(1), &mut deep, &mut shallow).score();
        assert!(score > 0.5, "four plies against two: {score}");
    }
}
