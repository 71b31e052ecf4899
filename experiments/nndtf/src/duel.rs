//! The paper's match: games from 25 boards with two X and two O. Each board is played twice, and each player moves first
//! once.

use super::{boards::shared, network::NetworkPlayer};
use evoxo_common::rng::{Generator, shuffle};
use evoxo_games::{
    board::{Board, Outcome, Position, Side, tic_tac_toe},
    player::duel::{Duel, game},
};

/// Boards from which the games of a match begin.
pub const OPENINGS: u64 = 25;

/// A replica's openings, which all arms share. Each board has two random X and two random O, with X to move, and a board may
/// occur twice.
#[must_use]
pub fn openings(seed: u64, replica: u32) -> Vec<Board> {
    let opening = |index: u64| {
        let mut cells: [u8; 9] = std::array::from_fn(|cell| cell as u8);
        shuffle(&mut shared(seed, replica).text("openings").word(index).rng(), &mut cells);
        Board { x: 1 << cells[0] | 1 << cells[1], o: 1 << cells[2] | 1 << cells[3] }
    };
    (0..OPENINGS).map(opening).collect()
}

/// The results of the player that moves first, over games from each of these boards.
#[must_use]
pub fn series(openings: &[Board], first: &NetworkPlayer, second: &NetworkPlayer) -> Duel {
    let mut duel = Duel::default();
    for opening in openings {
        let answer = |player: &NetworkPlayer, position: Position| {
            player.choose(position.board()).expect("the game is not over, so a cell is empty")
        };
        // Networks never move at random, so the generator is not used.
        let rng = &mut shared(0, 0).rng();
        let position = Position::of(tic_tac_toe(), *opening);
        let (mut one, mut two) = (
            |position: Position, _: &mut Generator| answer(first, position),
            |position: Position, _: &mut Generator| answer(second, position),
        );
        match game(tic_tac_toe(), position, Side::X, rng, &mut one, &mut two) {
            Outcome::Draw => duel.draws += 1,
            Outcome::Win(Side::X) => duel.wins += 1,
            Outcome::Win(Side::O) => duel.losses += 1,
        }
    }
    duel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Kind, Network};
    use evoxo_common::rng::Stream;

    #[test]
    fn openings_have_two_stones_per_side_and_no_line() {
        let all = openings(3, 7);
        assert_eq!(all.len(), 25);
        assert!(
            all.iter().all(|board| board.x.count_ones() == 2 && board.o.count_ones() == 2 && board.x & board.o == 0)
        );
        assert!(all.iter().all(|board| tic_tac_toe().outcome(*board).is_none()));
        assert_eq!(all, openings(3, 7));
        assert_ne!(all, openings(3, 8));
    }

    /// The series has the same results as its games played one by one.
    #[test]
    fn a_series_is_the_sum_of_its_games() {
        let player = |seed: u64| {
            let network = Network::paper(Kind::Double);
            NetworkPlayer::new(network, network.random(&mut Stream::root(seed).rng())).unwrap()
        };
        let (one, two, openings) = (player(1), player(2), openings(1, 0));
        let mut counts = [0; 3];
        for opening in &openings {
            let mut board = *opening;
            while tic_tac_toe().outcome(board).is_none() {
                let mover = if board.to_move() == Side::X { &one } else { &two };
                board = board.play(mover.choose(board).unwrap());
            }
            match tic_tac_toe().outcome(board).unwrap() {
                Outcome::Win(Side::X) => counts[0] += 1,
                Outcome::Draw => counts[1] += 1,
                Outcome::Win(Side::O) => counts[2] += 1,
            }
        }
        let duel = series(&openings, &one, &two);
        assert_eq!([duel.wins, duel.draws, duel.losses], counts);
        assert_eq!(duel.games(), 25);
    }
}
