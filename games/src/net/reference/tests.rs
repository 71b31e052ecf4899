//! Compares the reference implementation with the definition of a gradient, and with a network computed by hand.

use super::*;
use crate::{
    board::Shape,
    net::{Activation, First},
};
use evoxo_common::{
    math::tanh,
    rng::{Generator, Stream, below},
};

/// A board of Score Four after `moves` random moves.
fn board(rng: &mut Generator, moves: u64) -> Board {
    let geometry = crate::board::Geometry::new(Shape::SCORE_FOUR).unwrap();
    (0..moves).fold(Board::EMPTY, |board, _| {
        let legal: Vec<u8> = cells(geometry.legal(board)).collect();
        board.play(legal[below(rng, legal.len() as u64) as usize])
    })
}

/// A small network of every kind without shared weights.
fn architectures() -> Vec<Architecture> {
    let mut all = Vec::new();
    for first in [First::Dense { units: 3 }, First::Lines { detectors: 2 }] {
        for (second, biases, activation) in [
            (0, false, Activation::Logistic),
            (5, false, Activation::Tanh),
            (0, true, Activation::Tanh),
            (5, true, Activation::Logistic),
        ] {
            all.push(Architecture { shape: Shape::SCORE_FOUR, first, second, biases, activation, shared: false });
        }
    }
    all
}

/// In one step, the change of a weight divided by the rate is minus the derivative of half the squared error by it. Without
/// the output's slope it is minus the error times the derivative of the output's weighted sum.
#[test]
fn a_step_goes_down_the_gradient() {
    const RATE: f32 = 0.25;
    const SHIFT: f64 = 1e-5;
    let mut rng = Stream::root(3).rng();
    for architecture in architectures() {
        let before = Plain::new(&architecture, &architecture.initial(Stream::root(4)));
        for (moves, side, derivative) in [(9, Side::X, true), (20, Side::O, true), (20, Side::O, false)] {
            let (board, target) = (board(&mut rng, moves), 0.3);
            let value = |network: &Plain| architecture.activation.apply_f64(network.sum(board, side));
            let error = value(&before) - f64::from(target);
            let mut after = before.clone();
            after.learn(board, side, target, RATE, derivative);
            for weight in (0..before.weights.len()).step_by(7) {
                let shifted = |shift: f64| {
                    let mut network = before.clone();
                    network.weights[weight] += shift;
                    if derivative { value(&network) } else { network.sum(board, side) }
                };
                let gradient = error * (shifted(SHIFT) - shifted(-SHIFT)) / (2.0 * SHIFT);
                let step = (before.weights[weight] - after.weights[weight]) / f64::from(RATE);
                assert!((step - gradient).abs() < 1e-8, "{architecture:?}, weight {weight}: {step} but {gradient}");
            }
        }
    }
}

/// One detector and one board, computed by hand.
#[test]
fn a_network_by_hand() {
    let shape = Shape { width: 2, height: 1, depth: 1, k: 2, gravity: false };
    let architecture = Architecture {
        shape,
        first: First::Lines { detectors: 1 },
        second: 1,
        biases: true,
        activation: Activation::Logistic,
        shared: false,
    };
    // The weights of the line's two cells and its bias; the second layer's weight and bias; the output's weight and bias.
    let network = Plain::new(&architecture, &[0.5, -0.25, 0.125, 2.0, -1.0, 3.0, 0.75]);
    let board = Board { x: 1, o: 2 };
    let sum = |line: f64| 3.0 * tanh((2.0 * tanh(line / 2.0) - 1.0) / 2.0) + 0.75;
    assert!((network.sum(board, Side::X) - sum(0.125 + 0.5 + 0.25)).abs() < 1e-15);
    assert!((network.sum(board, Side::O) - sum(0.125 - 0.5 - 0.25)).abs() < 1e-15);
}

/// The same for tables and lines with shared weights. The derivative of a shared weight is the sum over all its copies.
#[test]
fn a_step_of_shared_weights_goes_down_the_gradient() {
    const RATE: f32 = 0.25;
    const SHIFT: f32 = 1.0 / 512.0;
    let mut rng = Stream::root(5).rng();
    let (lines, tuples) = (First::Lines { detectors: 2 }, First::Tuples { states: 4 });
    for (first, second) in [(lines, 0), (lines, 2), (tuples, 0), (tuples, 2)] {
        let (shape, activation) = (Shape::SCORE_FOUR, Activation::Logistic);
        let architecture = Architecture { shape, first, second, biases: true, activation, shared: true };
        let sum = |weights: &[f32], board, side| of(&architecture, weights).sum(board, side);
        let before = architecture.initial(Stream::root(6));
        let board = board(&mut rng, 15);
        let value = activation.apply_f64(sum(&before, board, Side::O));
        let mut network = of(&architecture, &before);
        network.learn(board, Side::O, 0.4, RATE, false);
        let after = network.weights();
        let changed: Vec<usize> = (0..before.len()).filter(|weight| before[*weight] != after[*weight]).collect();
        assert!(changed.len() > 30, "{architecture:?}: only {} weights have learnt", changed.len());
        for weight in changed.into_iter().step_by(9).chain([0, before.len() - 1]) {
            let shifted = |shift: f32| {
                let mut weights = before.clone();
                weights[weight] += shift;
                (f64::from(weights[weight]), sum(&weights, board, Side::O))
            };
            let ((high, above), (low, below)) = (shifted(SHIFT), shifted(-SHIFT));
            let gradient = (value - f64::from(0.4_f32)) * (above - below) / (high - low);
            let step = f64::from(before[weight] - after[weight]) / f64::from(RATE);
            assert!((step - gradient).abs() < 1e-4, "{architecture:?}, weight {weight}: {step} but {gradient}");
        }
    }
}
