//! Compares boards with their reference implementation, a plain array, and with known counts.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The reference implementation: one letter per cell. Everything is found by walking.
struct Plain {
    shape: Shape,
    cells: Vec<char>,
}

impl Plain {
    fn at(&self, position: [i32; 3]) -> Option<char> {
        let size = [self.shape.width, self.shape.height, self.shape.depth].map(i32::from);
        let inside = (0..3).all(|axis| 0 <= position[axis] && position[axis] < size[axis]);
        inside.then(|| self.cells[((position[2] * size[1] + position[1]) * size[0] + position[0]) as usize])
    }

    fn positions(&self) -> Vec<[i32; 3]> {
        let size = [self.shape.width, self.shape.height, self.shape.depth].map(i32::from);
        let layers = (0..size[2]).flat_map(|layer| (0..size[1]).map(move |row| (row, layer)));
        layers.flat_map(|(row, layer)| (0..size[0]).map(move |column| [column, row, layer])).collect()
    }

    fn legal(&self) -> Vec<u8> {
        let below = |[column, row, layer]: [i32; 3]| match self.shape.depth {
            1 => [column, row + 1, layer],
            _ => [column, row, layer + 1],
        };
        let falls = |position| self.shape.gravity && self.at(below(position)) == Some('.');
        let all = self.positions().into_iter().zip(0..);
        all.filter(|(at, _)| self.at(*at) == Some('.') && !falls(*at)).map(|(_, cell)| cell).collect()
    }

    fn has_line(&self, letter: char) -> bool {
        let steps = (0..27).map(|code| [code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1]).filter(|step| *step != [0; 3]);
        let holds = |start: [i32; 3], step: [i32; 3]| {
            (0..i32::from(self.shape.k))
                .all(|count| self.at([0, 1, 2].map(|axis| start[axis] + count * step[axis])) == Some(letter))
        };
        steps.into_iter().any(|step| self.positions().into_iter().any(|start| holds(start, step)))
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let known = prop::sample::select(vec![Shape::TIC_TAC_TOE, Shape::CONNECT_FOUR, Shape::QUBIC, Shape::SCORE_FOUR]);
    let any = (1..=8_u8, 1..=8_u8, 1..=4_u8, 2..=5_u8, any::<bool>())
        .prop_map(|(width, height, depth, k, gravity)| Shape { width, height, depth, k, gravity })
        .prop_filter("at most 64 cells", |shape| shape.sizes().iter().product::<i32>() <= 64);
    prop_oneof![known, any]
}

proptest! {
    /// Plays one random game on both implementations side by side.
    #[test]
    fn play_matches_a_plain_array(shape in shapes(), choices in prop::collection::vec(any::<prop::sample::Index>(), 64)) {
        let geometry = Geometry::new(shape).unwrap();
        let mut board = Board::EMPTY;
        let mut plain = Plain { shape, cells: vec!['.'; geometry.cells().count_ones() as usize] };
        for choice in choices {
            let legal: Vec<u8> = cells(geometry.legal(board)).collect();
            prop_assert_eq!(&legal, &plain.legal());
            for side in Side::BOTH {
                prop_assert_eq!(geometry.has_line(board.stones(side)), plain.has_line(side.letter()));
            }
            let text = plain.cells.iter().collect::<String>();
            prop_assert_eq!(geometry.board_text(board), text.as_str());
            prop_assert_eq!(geometry.board_of(&text), Ok(board));
            prop_assert_eq!(geometry.board_of(&geometry.board_rows(board)), Ok(board));
            if geometry.outcome(board).is_some() || legal.is_empty() {
                break;
            }
            let side = board.to_move();
            let completing: Vec<u8> = cells(geometry.completing(board, side)).collect();
            for cell in &legal {
                plain.cells[usize::from(*cell)] = side.letter();
                prop_assert_eq!(plain.has_line(side.letter()), completing.contains(cell));
                plain.cells[usize::from(*cell)] = '.';
            }
            let cell = *choice.get(&legal);
            plain.cells[usize::from(cell)] = side.letter();
            board = board.play(cell);
        }
    }

    /// Symmetries permute the lines and keep moves legal. They agree on the canonical image, which has the greatest text.
    #[test]
    fn images_of_a_game_are_equivalent(shape in shapes(), choices in prop::collection::vec(any::<prop::sample::Index>(), 0..64)) {
        let geometry = Geometry::new(shape).unwrap();
        let board = choices.iter().fold(Board::EMPTY, |board, choice| {
            let legal: Vec<u8> = cells(geometry.legal(board)).collect();
            if legal.is_empty() { board } else { board.play(*choice.get(&legal)) }
        });
        let (canonical, leads) = geometry.canonical(board);
        prop_assert_eq!(leads.board(board), canonical);
        let images: Vec<Board> = geometry.symmetries().iter().map(|symmetry| symmetry.board(board)).collect();
        prop_assert_eq!(images[0], board);
        let greatest = images.iter().map(|image| geometry.board_text(*image)).max();
        prop_assert_eq!(Some(geometry.board_text(canonical)), greatest);
        for (image, symmetry) in images.iter().zip(geometry.symmetries()) {
            prop_assert_eq!(geometry.canonical(*image).0, canonical);
            prop_assert_eq!(symmetry.mask(geometry.legal(board)), geometry.legal(*image));
            let lines: BTreeSet<u64> = geometry.lines().iter().map(|line| symmetry.mask(*line)).collect();
            prop_assert!(lines.iter().eq(geometry.lines()));
        }
    }

    /// No text causes trouble when it is read as a board.
    #[test]
    fn any_text_is_a_board_or_rejected_with_a_reason(text in ".{0,80}") {
        match tic_tac_toe().board_of(&text) {
            Ok(board) => prop_assert_eq!(board.x & board.o, 0),
            Err(sentence) => prop_assert!(sentence.len() < 600 && !sentence.contains('\n')),
        }
    }
}

#[test]
fn known_lines() {
    let count = |shape| Geometry::new(shape).unwrap().lines().len();
    assert_eq!(count(Shape::TIC_TAC_TOE), 8);
    assert_eq!(count(Shape::CONNECT_FOUR), 69);
    assert_eq!(count(Shape::QUBIC), 76);
    let qubic = Geometry::new(Shape::SCORE_FOUR).unwrap();
    let mut by_axes_moved = [0; 4];
    for line in qubic.lines() {
        let ends =
            [line.trailing_zeros() as u8, 63 - line.leading_zeros() as u8].map(|end| qubic.shape().position(end));
        by_axes_moved[(0..3).filter(|axis| ends[0][*axis] != ends[1][*axis]).count()] += 1;
    }
    assert_eq!(by_axes_moved, [0, 48, 24, 4], "along axes, diagonals of planes, diagonals of space");
    let mut cells_by_lines = BTreeMap::new();
    for cell in cells(qubic.cells()) {
        *cells_by_lines.entry(qubic.lines().iter().filter(|line| **line >> cell & 1 == 1).count()).or_insert(0) += 1;
    }
    assert_eq!(cells_by_lines, BTreeMap::from([(7, 16), (4, 48)]));
}

#[test]
fn known_symmetries() {
    let count = |shape| Geometry::new(shape).unwrap().symmetries().len();
    assert_eq!(count(Shape::TIC_TAC_TOE), 8);
    assert_eq!(count(Shape::CONNECT_FOUR), 2);
    assert_eq!(count(Shape::SCORE_FOUR), 8);
    assert_eq!(count(Shape::QUBIC), 48);
    let images = tic_tac_toe()
        .symmetries()
        .iter()
        .map(|symmetry| (0..9).map(|cell| char::from(b'0' + symmetry.cell(cell))).collect::<String>());
    insta::assert_snapshot!(images.collect::<Vec<_>>().join(" "), @"012345678 210543876 678345012 876543210 036147258 258147036 630741852 852741630");
}

#[test]
fn known_positions_and_games() {
    let geometry = tic_tac_toe();
    let mut games_by_board = BTreeMap::from([(Board::EMPTY, 1_u64)]);
    let (mut reachable, mut classes, mut games) = (0, BTreeSet::new(), 0);
    while !games_by_board.is_empty() {
        let mut next = BTreeMap::new();
        for (board, ways) in &games_by_board {
            reachable += 1;
            classes.insert(geometry.canonical(*board).0);
            match geometry.outcome(*board) {
                Some(_) => games += ways,
                None => {
                    cells(geometry.legal(*board)).for_each(|cell| *next.entry(board.play(cell)).or_insert(0) += ways);
                }
            }
        }
        games_by_board = next;
    }
    assert_eq!((reachable, classes.len(), games), (5_478, 765, 255_168));
}

#[test]
fn boards_are_drawn_and_cells_named_as_in_chess() {
    let geometry = tic_tac_toe();
    let names: Vec<String> = (0..9).map(|cell| geometry.cell_name(cell)).collect();
    assert_eq!(names.join(" "), "a3 b3 c3 a2 b2 c2 a1 b1 c1");
    assert_eq!(geometry.cell_named("d1"), None);
    let board = geometry.board_of("X.O / .X. / ..O").unwrap();
    assert_eq!((board.x, board.o, board.to_move()), (0b000_010_001, 0b100_000_100, Side::X));
    assert_eq!(geometry.board_rows(board), "X.O/.X./..O");
    assert_eq!(geometry.outcome(board), None);
    assert_eq!(geometry.completing(board, Side::O), 1 << 5);
    let solid = Geometry::new(Shape::SCORE_FOUR).unwrap();
    assert_eq!([0, 5, 63].map(|cell| solid.cell_name(cell)), ["a44", "b34", "d11"]);
    assert_eq!(solid.legal(Board::EMPTY), 0xffff << 48, "stones fall to the lowest layer");
    let upright = Geometry::new(Shape::CONNECT_FOUR).unwrap();
    let names: Vec<String> = cells(upright.legal(Board::EMPTY)).map(|cell| upright.cell_name(cell)).collect();
    assert_eq!(names.join(" "), "a1 b1 c1 d1 e1 f1 g1");
}

#[test]
fn impossible_shapes_are_rejected_with_a_reason() {
    for (width, height, depth, k) in [(0, 3, 1, 3), (27, 1, 1, 3), (3, 10, 1, 3), (9, 8, 1, 3), (3, 3, 1, 1)] {
        let shape = Shape { width, height, depth, k, gravity: false };
        assert!(Geometry::new(shape).is_err_and(|sentence| sentence.contains("at least")), "{shape:?}");
    }
}
