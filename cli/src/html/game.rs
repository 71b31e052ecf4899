//! A champion of 3x3 that can be played in the file: its answer on every board that play can lead to, computed here, so
//! that the script needs the rules of the game and no player.

use std::collections::BTreeMap;

use evoxo_common::{card::Card, rng::Stream};
use evoxo_games::{
    board::{Board, Geometry, Position, Side, cells},
    game::Game,
    player::{Player, find::player_of_card},
};

use super::element::Html;

/// A place on which a game is played, if the champion plays 3x3. The script fills it.
pub(super) fn place(card: &Card) -> Option<Html> {
    let (_, mut player) = player_of_card(card).ok().flatten().filter(|(game, _)| *game == Game::TicTacToe)?;
    let side = player.side.map(|side| side.letter().to_string()).unwrap_or_default();
    let answers = answers(&mut player);
    Some(Html::of("div", &[("class", "game"), ("data-side", &side), ("data-answers", &answers)], ""))
}

/// The answer on each board that is not over: a digit for its cell from the top left, or a dash where the other side is to
/// move; in the order of the boards' numbers. What is left to chance is drawn once for each board.
fn answers(player: &mut Player) -> String {
    let side = player.side;
    let answer = |(number, position): (u32, Position)| {
        if side.is_some_and(|side| side != position.to_move()) {
            return '-';
        }
        let mut rng = Stream::root(0).text("report").word(number.into()).rng();
        char::from(b'0' + player.choose(position, &mut rng))
    };
    positions(Game::TicTacToe.geometry()).into_iter().map(answer).collect()
}

/// All positions that play can lead to and that are not over, by the numbers of their boards.
fn positions(geometry: &Geometry) -> BTreeMap<u32, Position> {
    let (mut found, mut open) = (BTreeMap::new(), vec![Position::START]);
    while let Some(position) = open.pop() {
        let board = position.board();
        if geometry.outcome(board).is_none() && found.insert(number(board), position).is_none() {
            open.extend(cells(position.legal(geometry)).map(|cell| position.play(geometry, cell)));
        }
    }
    found
}

/// The number of a board: in base 3, the first cell least, X is 1 and O is 2.
fn number(board: Board) -> u32 {
    let digit = |cell: u32| {
        let of = |side: Side| (board.stones(side) >> cell & 1) as u32;
        of(Side::X) + 2 * of(Side::O)
    };
    (0..9).map(|cell| digit(cell) * 3_u32.pow(cell)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::ratio::Ratio;
    use evoxo_games::table::optimum::optimum;

    /// The script reads the answers in this order: as many as there are positions, each a legal move of the player.
    #[test]
    fn every_answer_is_that_of_the_player() {
        let card = Card::new(optimum(Side::O, Ratio::from(100)).player);
        let mut player = player_of_card(&card).unwrap().unwrap().1;
        let (answers, positions) = (answers(&mut player), positions(Game::TicTacToe.geometry()));
        // 5,478 positions in all, of which 958 are over.
        assert_eq!((answers.len(), positions.len()), (4520, 4520));
        let mut asked = 0;
        for (answer, position) in answers.chars().zip(positions.into_values()) {
            assert_eq!(answer == '-', position.to_move() == Side::X);
            if let Some(cell) = answer.to_digit(10) {
                asked += 1;
                let rng = &mut Stream::root(1).rng();
                assert_eq!(cell, u32::from(player.choose(position, rng)), "a table leaves nothing to chance");
                assert!(position.legal(Game::TicTacToe.geometry()) >> cell & 1 == 1);
            }
        }
        assert!(asked > 2000, "{asked}");
    }
}
