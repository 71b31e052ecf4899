//! Compares the fast paths with their reference implementations, move by move while both learn, and on every instruction set.

use super::*;
use crate::board::{Geometry, Shape, cells};
use evoxo_common::{
    rng::{Generator, Stream, below, chance, unit},
    simd,
};

/// Games that the fast engine plays while the reference follows. Both learn, and all values and weights are compared.
struct Duel<'a> {
    geometry: &'a Geometry,
    reference: Option<&'a mut dyn Engine>,
    games: u64,
    rate: f32,
    /// The greatest difference allowed between values, or weights.
    bound: f32,
}

impl Duel<'_> {
    /// Plays the games and returns the weights.
    fn run(mut self, engine: &mut dyn Engine) -> Vec<f32> {
        for game in 0..self.games {
            engine.reset();
            if let Some(reference) = &mut self.reference {
                reference.reset();
            }
            self.game(engine, &mut Stream::root(9).word(game).rng());
            if let Some(reference) = &self.reference
                && (game % 64 == 0 || game + 1 == self.games)
            {
                for (index, (fast, expected)) in engine.weights().into_iter().zip(reference.weights()).enumerate() {
                    assert!(
                        (fast - expected).abs() <= self.bound,
                        "game {game}, weight {index}: {fast} but {expected}"
                    );
                }
            }
        }
        engine.weights()
    }

    /// Plays the best move or a random one. After each move, up to two steps of learning follow for one of the last boards.
    fn game(&mut self, engine: &mut dyn Engine, rng: &mut Generator) {
        let mut boards = vec![Board::EMPTY];
        let (mut fast, mut expected) = ([0.0; 64], [0.0; 64]);
        while self.geometry.outcome(boards[boards.len() - 1]).is_none() {
            let board = boards[boards.len() - 1];
            let legal = self.geometry.legal(board);
            engine.values(legal, &mut fast);
            if let Some(reference) = &mut self.reference {
                reference.values(legal, &mut expected);
                for cell in cells(legal).map(usize::from) {
                    let (fast, expected) = (fast[cell], expected[cell]);
                    assert!((fast - expected).abs() <= self.bound, "{board:?}, cell {cell}: {fast} but {expected}");
                }
            }
            let moves: Vec<u8> = cells(legal).collect();
            let best = moves.iter().copied().max_by(|a, b| fast[usize::from(*a)].total_cmp(&fast[usize::from(*b)]));
            let any = moves[below(rng, moves.len() as u64) as usize];
            let cell = if chance(rng, 1, 5) { any } else { best.unwrap() };
            engine.play(cell);
            if let Some(reference) = &mut self.reference {
                reference.play(cell);
            }
            boards.push(board.play(cell));
            // Values are not compared after each move, because an engine may add a stone to its sums only when a value is
            // read.
            if chance(rng, 1, 3) {
                for side in Side::BOTH {
                    let fast = engine.value(side);
                    let expected = self.reference.as_mut().map_or(fast, |reference| reference.value(side));
                    assert!((fast - expected).abs() <= self.bound, "{board:?}, {side:?}: {fast} but {expected}");
                }
            }
            for _ in 0..[0, 1, 1, 1, 2][below(rng, 5) as usize] {
                let back = below(rng, 3).min(boards.len() as u64 - 1) as usize;
                let (board, target) = (boards[boards.len() - 1 - back], 2.0 * unit(rng) as f32 - 1.0);
                let side = Side::BOTH[below(rng, 2) as usize];
                let derivative = chance(rng, 1, 2);
                engine.learn(board, side, target, self.rate, derivative);
                if let Some(reference) = &mut self.reference {
                    reference.learn(board, side, target, self.rate, derivative);
                }
            }
        }
    }
}

/// The number of games to compare: many if the variable `THOROUGH` is set.
fn games(few: u64, many: u64) -> u64 {
    if std::env::var_os("THOROUGH").is_some() { many } else { few }
}

/// The networks of the paper, with both activations, one of them with biases.
fn paper() -> Vec<Architecture> {
    let lines = First::Lines { detectors: 4 };
    let dense = |units| First::Dense { units };
    let networks = [(lines, 0), (lines, 32), (dense(50), 0), (dense(95), 51), (dense(169), 0)];
    let architecture = |(index, (first, second)): (usize, (First, usize))| {
        let shape = Shape::SCORE_FOUR;
        [Activation::Logistic, Activation::Tanh].map(|activation| {
            let biases = (index % 2 == 0) == (activation == Activation::Tanh);
            Architecture { shape, first, second, biases, activation, shared: false }
        })
    };
    networks.into_iter().enumerate().flat_map(architecture).collect()
}

/// Architectures of odd sizes, on other boards.
fn odd() -> Vec<Architecture> {
    let wide = Shape { width: 5, height: 4, depth: 1, k: 3, gravity: false };
    let networks = [
        (Shape::TIC_TAC_TOE, First::Lines { detectors: 1 }, 7, true),
        (Shape::TIC_TAC_TOE, First::Dense { units: 17 }, 33, false),
        (Shape::CONNECT_FOUR, First::Lines { detectors: 6 }, 60, false),
        (Shape::QUBIC, First::Lines { detectors: 16 }, 0, true),
        (Shape::QUBIC, First::Dense { units: 1 }, 1, true),
        (wide, First::Lines { detectors: 9 }, 20, false),
        (Shape::SCORE_FOUR, First::Planes { detectors: 4, units: 13 }, 0, false),
        (Shape::QUBIC, First::Planes { detectors: 6, units: 5 }, 0, true),
        (Shape::SCORE_FOUR, First::Planes { detectors: 3, units: 16 }, 0, true),
        (wide, First::Dense { units: 30 }, 64, true),
    ];
    let architecture = |(shape, first, second, biases)| {
        let activation = Activation::Logistic;
        Architecture { shape, first, second, biases, activation, shared: false }
    };
    networks.into_iter().map(architecture).collect()
}

/// Networks of tables on every board: linear and not, with and without shared weights.
fn tables() -> Vec<Architecture> {
    let wide = Shape { width: 5, height: 4, depth: 1, k: 3, gravity: false };
    let networks = [
        (Shape::SCORE_FOUR, 4, 0, true),
        (Shape::SCORE_FOUR, 4, 8, true),
        (Shape::SCORE_FOUR, 3, 11, true),
        (Shape::SCORE_FOUR, 4, 0, false),
        (Shape::SCORE_FOUR, 3, 20, false),
        (Shape::TIC_TAC_TOE, 3, 0, true),
        (Shape::TIC_TAC_TOE, 4, 3, true),
        (Shape::CONNECT_FOUR, 4, 0, true),
        (Shape::CONNECT_FOUR, 4, 9, true),
        (Shape::QUBIC, 3, 0, true),
        (Shape::QUBIC, 3, 2, true),
        (wide, 3, 8, true),
    ];
    let architecture = |(index, (shape, states, second, shared))| {
        let activation = if index % 3 == 0 { Activation::Tanh } else { Activation::Logistic };
        Architecture { shape, first: First::Tuples { states }, second, biases: index % 4 != 1, activation, shared }
    };
    networks.into_iter().enumerate().map(architecture).collect()
}

/// Networks over lines that share weights, on every board.
fn shared() -> Vec<Architecture> {
    let wide = Shape { width: 5, height: 4, depth: 1, k: 3, gravity: false };
    let networks = [
        (Shape::SCORE_FOUR, 4, 0),
        (Shape::SCORE_FOUR, 4, 8),
        (Shape::SCORE_FOUR, 6, 11),
        (Shape::TIC_TAC_TOE, 2, 3),
        (Shape::CONNECT_FOUR, 4, 9),
        (Shape::CONNECT_FOUR, 2, 0),
        (Shape::QUBIC, 2, 2),
        (wide, 8, 8),
    ];
    let architecture = |(index, (shape, detectors, second))| {
        let activation = if index % 3 == 0 { Activation::Tanh } else { Activation::Logistic };
        let first = First::Lines { detectors };
        Architecture { shape, first, second, biases: index % 2 != 1, activation, shared: true }
    };
    networks.into_iter().enumerate().map(architecture).collect()
}

fn duel(architecture: &Architecture, games: u64, rate: f32, bound: f32) {
    let geometry = Geometry::new(architecture.shape).unwrap();
    let weights = architecture.initial(Stream::root(1));
    let mut reference = reference::of(architecture, &weights);
    let duel = Duel { geometry: &geometry, reference: Some(&mut *reference), games, rate, bound };
    duel.run(&mut *engine(architecture, &weights));
}

#[test]
fn the_papers_networks_agree_with_their_references() {
    paper().iter().for_each(|architecture| duel(architecture, games(200, 2000), 0.005, 1e-3));
}

#[test]
fn networks_of_odd_sizes_on_other_boards_agree_with_their_references() {
    odd().iter().for_each(|architecture| duel(architecture, games(50, 500), 0.05, 1e-3));
}

#[test]
fn networks_of_tables_agree_with_their_references() {
    tables().iter().for_each(|architecture| duel(architecture, games(15, 500), 0.002, 1e-3));
}

#[test]
fn networks_that_share_weights_agree_with_their_references() {
    for architecture in shared() {
        // A shared weight acts in all orientations, and so does its rounding error.
        let orientations = Geometry::new(architecture.shape).unwrap().symmetries().len() as f32;
        duel(&architecture, games(50, 500), 0.0016 / orientations, 1e-4 * orientations);
    }
}

/// After only two steps, rounding errors have not accumulated, so any greater difference is a bug.
#[test]
fn single_steps_agree_with_those_of_the_references() {
    for architecture in paper().iter().chain(&odd()).chain(&tables()).chain(&shared()) {
        let geometry = Geometry::new(architecture.shape).unwrap();
        let weights = architecture.initial(Stream::root(4));
        let (mut fast, mut reference) = (engine(architecture, &weights), reference::of(architecture, &weights));
        let mut rng = Stream::root(8).rng();
        let mut boards = vec![Board::EMPTY];
        for ply in 0..5 {
            let moves: Vec<u8> = cells(geometry.legal(boards[ply])).collect();
            let cell = moves[below(&mut rng, moves.len() as u64) as usize];
            fast.play(cell);
            reference.play(cell);
            boards.push(boards[ply].play(cell));
        }
        // A shared weight acts in all orientations.
        let rate = if architecture.shared { 0.1 / geometry.symmetries().len() as f32 } else { 0.1 };
        for (board, side) in [(boards[5], Side::O), (boards[3], Side::X)] {
            fast.learn(board, side, 0.3, rate, false);
            reference.learn(board, side, 0.3, rate, false);
        }
        let (fast, expected) = (fast.weights(), reference.weights());
        for Tensor { name, range, .. } in architecture.tensors() {
            let most = range.clone().map(|index| (expected[index] - weights[index]).abs()).fold(0.0, f32::max);
            assert!(most > 1e-5, "{architecture:?}: {name} has learnt nothing");
            for index in range {
                let (fast, expected) = (fast[index] - weights[index], expected[index] - weights[index]);
                let far = (fast - expected).abs() > 1e-3 * most + 2e-7;
                assert!(!far, "{architecture:?}, {name}, weight {index}: {fast} but {expected}");
            }
        }
    }
}

/// Boards of one game learn again and again, earlier ones after later ones and vice versa, in far more steps than a game
/// normally has.
#[test]
fn boards_may_learn_in_any_order_and_many_times() {
    for architecture in paper().iter().chain(&odd()) {
        let geometry = Geometry::new(architecture.shape).unwrap();
        let weights = architecture.initial(Stream::root(5));
        let (mut fast, mut reference) = (engine(architecture, &weights), reference::of(architecture, &weights));
        let mut rng = Stream::root(7).rng();
        let mut boards = vec![Board::EMPTY];
        for ply in 0..8 {
            let moves: Vec<u8> = cells(geometry.legal(boards[ply])).collect();
            let cell = moves[below(&mut rng, moves.len() as u64) as usize];
            fast.play(cell);
            reference.play(cell);
            boards.push(boards[ply].play(cell));
            for (index, plies) in [8, 1, 5, 0, 7, 2, 6, 3, 4, 4].repeat(4).into_iter().enumerate() {
                let (board, side) = (boards[plies * boards.len() / 9], Side::BOTH[index % 2]);
                let target = 0.8 - plies as f32 / 5.0;
                fast.learn(board, side, target, 0.005, true);
                reference.learn(board, side, target, 0.005, true);
            }
        }
        let (fast, expected) = (fast.weights(), reference.weights());
        let most = expected.iter().zip(&weights).map(|(after, before)| (after - before).abs()).fold(0.0, f32::max);
        assert!(most > 1e-2, "{architecture:?} has learnt only {most}");
        for (index, (fast, expected)) in fast.into_iter().zip(expected).enumerate() {
            assert!((fast - expected).abs() < 1e-4, "{architecture:?}, weight {index}: {fast} but {expected}");
        }
    }
}

/// All images of a board have one value, also after learning.
#[test]
fn networks_that_share_weights_value_all_images_alike() {
    for architecture in tables().iter().chain(&shared()).filter(|architecture| architecture.shared) {
        let geometry = Geometry::new(architecture.shape).unwrap();
        let mut engine = engine(architecture, &architecture.initial(Stream::root(6)));
        Duel { geometry: &geometry, reference: None, games: 20, rate: 0.05, bound: 0.0 }.run(&mut *engine);
        let mut rng = Stream::root(5).rng();
        let (mut first, mut values) = ([0.0; 64], [0.0; 64]);
        for moves in 0..8 {
            let order: Vec<u64> = (0..moves).map(|_| below(&mut rng, 1 << 40)).collect();
            for (index, symmetry) in geometry.symmetries().iter().enumerate() {
                engine.reset();
                let mut board = Board::EMPTY;
                for number in &order {
                    let legal: Vec<u8> = cells(geometry.legal(board)).collect();
                    let cell = legal[*number as usize % legal.len()];
                    engine.play(symmetry.cell(cell));
                    board = board.play(cell);
                }
                let legal = geometry.legal(board);
                engine.values(symmetry.mask(legal), &mut values);
                for cell in cells(legal) {
                    let value = values[usize::from(symmetry.cell(cell))];
                    if index == 0 {
                        first[usize::from(cell)] = value;
                    }
                    let expected = first[usize::from(cell)];
                    assert!((value - expected).abs() < 2e-4, "{board:?}, cell {cell}: {value} but {expected}");
                }
            }
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for architecture in paper().iter().chain(&odd()).chain(&tables()).chain(&shared()) {
        let geometry = Geometry::new(architecture.shape).unwrap();
        let weights = architecture.initial(Stream::root(2));
        let learnt = simd::at_each_level(|_| {
            let duel = Duel { geometry: &geometry, reference: None, games: games(6, 200), rate: 0.02, bound: 0.0 };
            duel.run(&mut *engine(architecture, &weights)).into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        });
        assert!(learnt[0] == learnt[1] && learnt[1] == learnt[2], "{architecture:?}");
        assert!(learnt[0].iter().zip(&weights).any(|(learnt, weight)| *learnt != weight.to_bits()));
    }
}

#[test]
fn weights_go_in_and_come_out_in_canonical_order() {
    for architecture in paper().iter().chain(&odd()).chain(&tables()).chain(&shared()) {
        let weights: Vec<f32> = (0..architecture.parameters()).map(|index| index as f32).collect();
        assert_eq!(engine(architecture, &weights).weights(), weights);
    }
}
