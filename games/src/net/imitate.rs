//! A network that learns to play 3x3 like another player, only from that player's moves, without playing for points.
//!
//! **Lessons** are the boards on which the teacher decides when it plays its own moves against any opponent, each with the
//! teacher's move. Moves that lead to images of the same board count as the same, and the boards after each of them are
//! lessons too. A pupil that knows all lessons therefore plays the teacher's game and has its odds. If a teacher always
//! completes a line or else blocks one, as tables do, its pupil gets that filter too and has nothing to learn where the
//! filter moves. A pupil of any other teacher decides on every board.
//!
//! **Learning.** The network values boards after a move, and plays the move with the highest value. In each pass all lessons
//! come once, in a new random order. The board after each move is learned by online backpropagation: towards 1 after the
//! teacher's move, towards -1 after any other. The slope of the output unit is left out, which is gradient descent on the
//! cross-entropy (Bishop 2006, section 5.2). The result is the network after the pass in which it knew most lessons, or after
//! the earliest of several such passes. Everything is computed by `net::reference` in double precision, whose values do not
//! depend on the processor.

use std::collections::BTreeSet;

use evoxo_common::{
    card::{Card, Showing},
    rng::{Stream, shuffle},
};

use super::{
    Activation, Architecture, First, Network,
    card::{Wins, odds_of_sides},
    reference::{self, Reference},
};
use crate::{
    board::{Board, Position, Shape, Side, cells, tic_tac_toe},
    odds::sides_showing,
    player::Player,
};

/// A board with a side to move, and the teacher's move on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// The board.
    pub board: Board,
    /// The cells that lead to an image of the board after the teacher's move, as a mask.
    pub right: u64,
}

/// All lessons of a teacher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lessons {
    /// Whether the teacher always completes a line if it can, or else blocks one. The pupil then has the same filter.
    pub filtered: bool,
    /// The boards on which the teacher decides. If filtered, these are the boards on which no line can be completed.
    pub boards: Vec<Lesson>,
}

/// The lessons of a teacher, for the side that it plays or for both.
///
/// # Errors
/// A message if the teacher does not play 3x3, or makes random choices.
pub fn lessons(teacher: &mut Player) -> Result<Lessons, String> {
    if teacher.geometry.shape() != Shape::TIC_TAC_TOE {
        return Err("only players of 3x3 can be imitated".into());
    }
    if teacher.play.is_random() {
        return Err("it leaves moves to chance, so there is no move to learn".into());
    }
    let mut boards = Vec::new();
    let only = teacher.side;
    for side in Side::BOTH.into_iter().filter(|side| only.is_none_or(|only| only == *side)) {
        walk(teacher, side, Board::EMPTY, &mut BTreeSet::new(), &mut boards);
    }
    let forced = |lesson: &Lesson| tic_tac_toe().forced(lesson.board);
    let filtered = boards.iter().all(|lesson| forced(lesson) == 0 || lesson.right & forced(lesson) != 0);
    boards.retain(|lesson| !filtered || forced(lesson) == 0);
    Ok(Lessons { filtered, boards })
}

/// Adds the lessons that follow a board.
fn walk(teacher: &mut Player, side: Side, board: Board, seen: &mut BTreeSet<Board>, lessons: &mut Vec<Lesson>) {
    let geometry = tic_tac_toe();
    if geometry.outcome(board).is_some() || !seen.insert(board) {
        return;
    }
    let mut moves = geometry.legal(board);
    if board.to_move() == side {
        // The teacher makes no random choices, so the generator is not used.
        let cell = teacher.choose(Position::of(geometry, board), &mut Stream::root(0).rng());
        let after = |cell: u8| geometry.canonical(board.play(cell)).0;
        moves = cells(moves).filter(|other| after(*other) == after(cell)).fold(0, |right, cell| right | 1 << cell);
        lessons.push(Lesson { board, right: moves });
    }
    cells(moves).for_each(|cell| walk(teacher, side, board.play(cell), seen, lessons));
}

/// How a network learns.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Hidden units, 1 to 1,024.
    pub units: usize,
    /// The learning rate.
    pub rate: f32,
    /// The most passes. Learning ends earlier if all lessons are known.
    pub passes: u32,
    /// Names the initial weights and the orders of lessons.
    pub stream: Stream,
}

/// The result of learning.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The network after its best pass.
    pub network: Network,
    /// The number of the best pass, from 1; 0 if the initial weights knew most lessons.
    pub pass: u32,
    /// The number of lessons that the network knows after that pass, which means that it plays one of the right cells.
    pub known: usize,
}

/// The architecture of a pupil with this number of hidden units.
const fn architecture(units: usize) -> Architecture {
    Architecture {
        shape: Shape::TIC_TAC_TOE,
        first: First::Dense { units },
        second: 0,
        biases: true,
        activation: Activation::Logistic,
        shared: false,
    }
}

/// Learns these lessons.
///
/// # Panics
/// If [`Architecture::check`] rejects the number of units.
#[must_use]
pub fn learn(lessons: &Lessons, course: Course) -> Learnt {
    let lessons = &lessons.boards[..];
    let architecture = architecture(course.units);
    assert_eq!(architecture.check(), Ok(()), "a course for a network that is possible");
    let initial = architecture.initial(course.stream.text("weights"));
    let mut pupil = reference::of(&architecture, &initial);
    let mut best =
        Learnt { known: known(&*pupil, lessons), network: Network { architecture, weights: initial }, pass: 0 };
    let mut order: Vec<usize> = (0..lessons.len()).collect();
    for pass in 1..=course.passes {
        if best.known == lessons.len() {
            break;
        }
        shuffle(&mut course.stream.text("order").word(pass.into()).rng(), &mut order);
        for Lesson { board, right } in order.iter().map(|index| lessons[*index]) {
            let legal = tic_tac_toe().legal(board);
            // If every move is right, there is nothing to learn.
            for cell in cells(legal).filter(|_| legal != right) {
                let target = if right >> cell & 1 == 1 { 1.0 } else { -1.0 };
                pupil.learn(board.play(cell), board.to_move(), target, course.rate, false);
            }
        }
        // The network is judged by the weights that a file keeps, in single precision.
        let weights = pupil.weights();
        let known = known(&*reference::of(&architecture, &weights), lessons);
        if known > best.known {
            best = Learnt { network: Network { architecture, weights }, pass, known };
        }
    }
    best
}

/// The card of a pupil.
#[must_use]
pub fn card(lessons: &Lessons, learnt: &Learnt) -> Card {
    let mut card = Card::new(learnt.network.clone());
    card.about.insert("wins".into(), if lessons.filtered { "filtered" } else { "learned" }.into());
    card
}

/// The exact odds of a pupil for the sides that it was taught, and either the proof that it never loses or the games that it
/// loses.
///
/// # Panics
/// Never: a network of 3x3 has a move on every board.
#[must_use]
pub fn exact(lessons: &Lessons, learnt: &Learnt) -> Showing {
    let wins = if lessons.filtered { Wins::Filtered } else { Wins::Learned };
    let taught = |side: Side| lessons.boards.iter().any(|lesson| lesson.board.to_move() == side);
    let mut odds = odds_of_sides(&learnt.network, wins).expect("a network of 3x3 has a move on every board");
    odds.retain(|(side, _)| taught(*side));
    sides_showing("The network", lessons.filtered, &odds)
}

/// How many lessons a network knows.
fn known(network: &dyn Reference, lessons: &[Lesson]) -> usize {
    let knows = |lesson: &&Lesson| {
        let side = lesson.board.to_move();
        let values =
            cells(tic_tac_toe().legal(lesson.board)).map(|cell| (network.sum(lesson.board.play(cell), side), cell));
        let best = values.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.is_some_and(|(_, cell)| lesson.right >> cell & 1 == 1)
    };
    lessons.iter().filter(knows).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{net::CARD, odds::Subject, player::built_in, table::optimum::optimum};
    use evoxo_common::ratio::Ratio;

    fn teacher(side: Side) -> (Player, crate::odds::Exact) {
        let table = optimum(side, Ratio::from(100)).player;
        let exact = table.exact();
        (Card::new(table).capability().unwrap().unwrap(), exact)
    }

    /// A player that plays the right cells has the teacher's odds, even if it does not play the teacher's cells. Here it
    /// plays the last of the right cells.
    #[test]
    fn lessons_follow_the_teachers_games() {
        for side in Side::BOTH {
            let (mut player, exact) = teacher(side);
            let lessons = lessons(&mut player).unwrap();
            assert!(lessons.filtered && lessons.boards.iter().all(|it| it.right & !tic_tac_toe().legal(it.board) == 0));
            let choose = |board: Board| {
                let lesson = lessons.boards.iter().find(|lesson| lesson.board == board);
                lesson.map_or(0, |lesson| 1 << (63 - lesson.right.leading_zeros()))
            };
            let pupil = Subject { side, filtered: true, choose: Box::new(choose) }.exact().unwrap();
            assert!(pupil.unbeatable() && pupil.odds == exact.odds, "{side:?}: {pupil:?}");
        }
    }

    /// If a teacher does not block every line, its pupil decides on every board.
    #[test]
    fn a_teacher_without_the_filter_is_queried_everywhere() {
        let architecture = Architecture { activation: Activation::Tanh, ..architecture(3) };
        let weights = architecture.initial(Stream::root(1));
        let mut teacher = Card::new(Network { architecture, weights }).capability().unwrap().unwrap();
        let lessons = lessons(&mut teacher).unwrap();
        assert!(!lessons.filtered && lessons.boards.iter().any(|lesson| tic_tac_toe().forced(lesson.board) != 0));
        assert!(Side::BOTH.iter().all(|side| lessons.boards.iter().any(|lesson| lesson.board.to_move() == *side)));
    }

    /// A few passes teach many of the lessons, and always the same ones. A hundred times as many passes teach all of them
    /// (see the guide).
    #[test]
    fn a_network_learns_its_lessons() {
        let (mut player, _) = teacher(Side::O);
        let lessons = lessons(&mut player).unwrap();
        let course = Course { units: 20, rate: 0.02, passes: 30, stream: Stream::root(1) };
        let learnt = learn(&lessons, course);
        let before = learn(&lessons, Course { passes: 0, ..course });
        assert!(learnt.known > before.known + lessons.boards.len() / 5, "{} and {}", before.known, learnt.known);
        assert_eq!((before.pass, learn(&lessons, course)), (0, learnt.clone()));
        // Written to a file and read back, the network is the same.
        assert_eq!(
            exact(&lessons, &learnt).json.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["O"],
            "the pupil is analysed as the side that it was taught"
        );
        let (text, file) = card(&lessons, &learnt).write("pupil");
        let read = Card::read(&[&CARD], &text, &mut |_| Ok(file.clone().unwrap().1)).unwrap();
        assert_eq!(read.champion_as::<Network>(), Some(&learnt.network));
    }

    #[test]
    fn random_players_and_other_games_cannot_be_imitated() {
        let refused = |name, geometry| lessons(&mut built_in(name, geometry).unwrap()).unwrap_err();
        assert!(refused("perfect", tic_tac_toe()).contains("to chance"));
        assert!(refused("benchmark", crate::board::score_four()).contains("only players of 3x3"));
    }
}
