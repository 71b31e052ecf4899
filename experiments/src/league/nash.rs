//! Nash averaging (Balduzzi, Tuyls, Perolat and Graepel 2018): among all mixtures of players that no player beats, the one
//! with the greatest entropy. It does not change when a player is entered twice, and it shows when strength goes in a circle.
//!
//! It is found from the dual problem: the mixture's probabilities are proportional to exp((A l)_i), for the l >= 0 that
//! minimizes ln sum exp(A l) + e sum l, where e is the margin by which a player may beat the mixture. A barrier t sum ln l
//! keeps l positive, and t falls to almost nothing. Each minimum is found by Newton's method.

use evoxo_common::math::{exp, ln};

use super::rating::solve;

/// e: the margin by which a player may beat the mixture.
const MARGIN: f64 = 1e-8;
/// The last weight of the barrier, and the factor by which the weight falls from 1 to it.
const BARRIER_LAST: f64 = 1e-10;
const BARRIER_FALL: f64 = 0.2;
/// The most steps for one weight of the barrier; a few are usual.
const STEPS_MAX: usize = 100;

/// The mixture for these payoffs, row against column. Each probability is at least 0, and their sum is 1.
///
/// # Panics
/// If the payoffs are not a square matrix that is antisymmetric up to rounding.
#[must_use]
pub(super) fn nash(payoffs: &[Vec<f64>]) -> Vec<f64> {
    let size = payoffs.len();
    assert!(payoffs.iter().all(|row| row.len() == size), "payoffs of {size} players");
    let turned = |i: usize, j: usize| (payoffs[i][j] + payoffs[j][i]).abs() < 1e-6;
    assert!((0..size).all(|i| (0..size).all(|j| turned(i, j))), "what one wins the other loses");
    let mut dual = vec![1.0; size];
    let mut barrier = 1.0;
    while barrier > BARRIER_LAST {
        descend(payoffs, &mut dual, barrier);
        barrier *= BARRIER_FALL;
    }
    mixture(payoffs, &dual).0
}

/// The probabilities that belong to a point of the dual problem, and the logarithm of the sum.
fn mixture(payoffs: &[Vec<f64>], dual: &[f64]) -> (Vec<f64>, f64) {
    let heights: Vec<f64> = payoffs.iter().map(|row| dot(row, dual)).collect();
    let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let parts: Vec<f64> = heights.iter().map(|height| exp(height - top)).collect();
    let sum: f64 = parts.iter().sum();
    (parts.iter().map(|part| part / sum).collect(), top + ln(sum))
}

fn dot(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
}

/// The value that is minimized.
fn value(payoffs: &[Vec<f64>], dual: &[f64], barrier: f64) -> f64 {
    mixture(payoffs, dual).1 + dual.iter().map(|l| MARGIN * l - barrier * ln(*l)).sum::<f64>()
}

fn descend(payoffs: &[Vec<f64>], dual: &mut Vec<f64>, barrier: f64) {
    let size = payoffs.len();
    for _ in 0..STEPS_MAX {
        let (chances, _) = mixture(payoffs, dual);
        // The slope in l_k is the sum of p_i A_ik, which is -(A p)_k.
        let means: Vec<f64> = payoffs.iter().map(|row| -dot(row, &chances)).collect();
        let slope: Vec<f64> = (0..size).map(|k| -(means[k] + MARGIN - barrier / dual[k])).collect();
        let mut curvature = vec![0.0; size * size];
        for (row, chance) in payoffs.iter().zip(&chances) {
            for j in 0..size {
                for k in 0..size {
                    curvature[j * size + k] += chance * (row[j] - means[j]) * (row[k] - means[k]);
                }
            }
        }
        (0..size).for_each(|k| curvature[k * size + k] += barrier / (dual[k] * dual[k]));
        let step = solve(curvature, slope.clone());
        let promise = dot(&step, &slope);
        if promise < 1e-13 {
            return;
        }
        // Step as far as all components stay positive, then as far as the value improves.
        let room = dual.iter().zip(&step).filter(|(_, step)| **step < 0.0).map(|(l, step)| -0.99 * l / step);
        let mut share = room.fold(1.0, f64::min);
        let before = value(payoffs, dual, barrier);
        let moved = |share: f64| dual.iter().zip(&step).map(|(l, step)| l + share * step).collect::<Vec<f64>>();
        let mut next = moved(share);
        while value(payoffs, &next, barrier) > before - 1e-4 * share * promise {
            share /= 2.0;
            if share < 1e-9 {
                return;
            }
            next = moved(share);
        }
        *dual = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::{Stream, unit};

    /// Payoffs with this upper triangle, row after row.
    fn payoffs(size: usize, upper: &[f64]) -> Vec<Vec<f64>> {
        let mut all = vec![vec![0.0; size]; size];
        let places = (0..size).flat_map(|i| (i + 1..size).map(move |j| (i, j)));
        for ((i, j), payoff) in places.zip(upper) {
            (all[i][j], all[j][i]) = (*payoff, -payoff);
        }
        all
    }

    #[track_caller]
    fn near(found: &[f64], expected: &[f64]) {
        let close = found.iter().zip(expected).all(|(one, two)| (one - two).abs() < 1e-3);
        assert!(close && found.len() == expected.len(), "{found:?}, not {expected:?}");
    }

    #[test]
    fn known_mixtures() {
        near(&nash(&payoffs(3, &[0.0, 0.0, 0.0])), &[1.0 / 3.0; 3]);
        // A player that beats all others is the whole mixture.
        near(&nash(&payoffs(3, &[0.1, 0.2, 0.3])), &[1.0, 0.0, 0.0]);
        // A circle: each player is as likely as the payoff between the two others.
        near(&nash(&payoffs(3, &[0.1, -0.3, 0.2])), &[2.0 / 6.0, 3.0 / 6.0, 1.0 / 6.0]);
        // A player that loses to all three of a circle gets no share; a player that is entered twice gets its share in two
        // parts.
        near(&nash(&payoffs(4, &[0.1, -0.3, 0.4, 0.2, 0.4, 0.4])), &[2.0 / 6.0, 3.0 / 6.0, 1.0 / 6.0, 0.0]);
        near(&nash(&payoffs(4, &[0.1, -0.3, 0.0, 0.2, -0.1, 0.3])), &[1.0 / 6.0, 3.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0]);
        assert_eq!(nash(&[vec![0.0]]), [1.0]);
    }

    /// No player beats the mixture, and among equal players the mixture is uniform.
    #[test]
    fn no_strategy_beats_the_nash_mixture() {
        for seed in 0..20_u64 {
            let mut rng = Stream::root(seed).rng();
            let size = 2 + seed as usize % 9;
            let upper: Vec<f64> = (0..size * size).map(|_| unit(&mut rng) - 0.5).collect();
            let all = payoffs(size, &upper);
            let mixture = nash(&all);
            assert!((mixture.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let best = all.iter().map(|row| dot(row, &mixture)).fold(f64::MIN, f64::max);
            assert!(best < 1e-5, "seed {seed}: a player wins {best} against {mixture:?}");
        }
    }

    #[test]
    fn bits_are_pinned() {
        let bits: Vec<u64> = nash(&payoffs(3, &[0.1, -0.3, 0.2])).into_iter().map(f64::to_bits).collect();
        insta::assert_snapshot!(format!("{bits:016x?}"));
    }
}
