//! The reference implementation of the networks: each formula as the paper prints it, with the `exp` and `tanh` of `libm`.
//! Only tests and benchmarks use it; [`super::network`] plays and evolves.

use super::{
    measure::{Formula, Measure, Occupied},
    network::{Coupling, INPUTS, Kind, Network},
};
use evoxo_common::math::{exp, tanh};
use evoxo_games::{
    board::Board,
    player::teacher::{boards, scores},
};

/// f(x; m, s), equations 7, 9 and 16.
fn transfer(x: f64, m: f64, s: f64) -> f64 {
    if s == 0.0 {
        return if x == m { 0.0 } else { (x - m).signum() };
    }
    let bell = exp(-(x - m) * (x - m) / (2.0 * s * s));
    if x <= m { bell - 1.0 } else { 1.0 - bell }
}

/// The output, -1 to 1.
#[must_use]
pub fn output(network: Network, genes: &[f32], input: &[f64; INPUTS]) -> f64 {
    let hidden = network.hidden;
    let gene = |index: usize| f64::from(genes[index]);
    let part = |part: usize, j: usize| gene(INPUTS * hidden + hidden * part + j % hidden);
    let net = |j: usize| (0..INPUTS).map(|i| gene(hidden * i + j) * input[i]).sum::<f64>();
    match network.kind {
        Kind::Double => {
            let k: Vec<f64> = (0..hidden).map(|j| transfer(net(j), part(0, j), part(1, j))).collect();
            let Coupling { sweeps, in_place } = network.coupling;
            let alone = sweeps == 0;
            let mut z = if alone { vec![1.0; hidden] } else { k.clone() };
            for _ in 0..if alone { 1 } else { sweeps } {
                let before = z.clone();
                for j in 0..hidden {
                    let read = if in_place { &z } else { &before };
                    let (after, behind) = (read[(j + 1) % hidden], read[(j + hidden - 1) % hidden]);
                    z[j] = transfer(k[j], part(2, j) * after, part(3, j) * behind);
                }
            }
            let sum = (0..hidden).map(|j| part(4, j) * z[j]).sum();
            transfer(sum, part(5, 0), part(5, 1))
        }
        Kind::Traditional => {
            let sum: f64 = (0..hidden).map(|j| part(1, j) * tanh(net(j) + part(0, j))).sum();
            tanh(sum + part(2, 0))
        }
        Kind::Logistic => {
            let logistic = |x: f64| 1.0 / (1.0 + exp(-x));
            let sum: f64 = (0..hidden).map(|j| part(1, j) * logistic(net(j) + part(0, j))).sum();
            2.0 * logistic(sum + part(2, 0)) - 1.0
        }
    }
}

/// The fitness on the [`boards`] of these indices: either the mean of score over best score, or the sum of scores over the
/// sum of best scores.
#[must_use]
pub fn fitness(network: Network, measure: Measure, genes: &[f32], indices: &[u32]) -> f64 {
    let score_and_best = |index: &u32| {
        let board = boards()[*index as usize];
        let number = 5.0 + 4.0 * output(network, genes, &network.input(board));
        let among = if measure.occupied == Occupied::Nothing { Board::EMPTY } else { board };
        let cell = network.nearest(among, number).expect("the game is not over, so a cell is empty");
        let scores = scores(board);
        (f64::from(scores[usize::from(cell)]), f64::from(*scores.iter().max().expect("there are nine")))
    };
    let pairs = indices.iter().map(score_and_best);
    match measure.formula {
        Formula::MeanOfRatios => pairs.map(|(score, best)| score / best).sum::<f64>() / indices.len() as f64,
        Formula::RatioOfSums => {
            let (scores, bests): (Vec<f64>, Vec<f64>) = pairs.unzip();
            scores.iter().sum::<f64>() / bests.iter().sum::<f64>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use evoxo_common::rng::Stream;

    /// The order of additions and the `exp` differ, so outputs differ by rounding errors, but no choice differs.
    #[test]
    fn outputs_match_the_reference() {
        let networks = [(Kind::Double, 8, 1), (Kind::Double, 8, 2), (Kind::Traditional, 8, 1), (Kind::Double, 5, 1)];
        let more = [(Kind::Double, 8, 0), (Kind::Traditional, 16, 1), (Kind::Logistic, 8, 1)];
        let both = |formula| [Occupied::Nearest, Occupied::Nothing].map(|occupied| Measure { formula, occupied });
        let measures = [both(Formula::MeanOfRatios), both(Formula::RatioOfSums)].concat();
        let at_once = networks.into_iter().chain(more).map(|of| (of, false));
        let in_place = [(Kind::Double, 8, 1), (Kind::Double, 8, 3), (Kind::Double, 5, 2)].map(|of| (of, true));
        for ((kind, hidden, sweeps), in_place) in at_once.chain(in_place) {
            let network = Network { hidden, coupling: Coupling { sweeps, in_place }, ..Network::paper(kind) };
            let (mut far, mut total) = (0, 0);
            for (seed, measure) in (0..200).zip(measures.iter().cycle()) {
                let genes = network.random(&mut Stream::root(seed).rng());
                let indices: Vec<u32> = (seed as u32 % 24..2423).step_by(24).collect();
                for index in &indices {
                    let input = network.input(boards()[*index as usize]);
                    let difference = network.output(&genes, &input) - output(network, &genes, &input);
                    // With a spread near 0, the sign of a rounding error decides.
                    far += u32::from(difference.abs() > 1e-11);
                    total += 1;
                }
                let judge = Judge::new(network, *measure, &indices);
                let (fast, reference) =
                    (judge.fitness(judge.sum(&genes)), fitness(network, *measure, &genes, &indices));
                assert!((fast - reference).abs() < 1e-6, "{network:?}, seed {seed}: {fast} and {reference}");
            }
            assert!(f64::from(far) < 1e-4 * f64::from(total), "{network:?}: {far} of {total} outputs");
        }
    }

    #[test]
    fn a_spread_of_0_gives_the_sign() {
        let values = [(1.0, 0.5), (-0.25, 0.5), (0.5, 0.5)].map(|(x, m)| transfer(x, m, 0.0));
        assert_eq!(values, [1.0, -1.0, 0.0]);
        let fast = |x: f64, m: f64| super::super::network::transfer(x - m, super::super::network::steepness(0.0));
        assert_eq!([fast(1.0, 0.5), fast(-0.25, 0.5), fast(0.5, 0.5)], [1.0, -1.0, 0.0]);
    }
}
