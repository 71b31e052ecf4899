//! Tests of one generation against its definition, and of its behaviour under random selection.

use super::*;
use evoxo_common::rng::Stream;

/// The constants for ten coordinates, as the tutorial's formulas and pycma 4.5 give them: mu_eff is 3.167 and c_sigma is
/// 0.2844.
#[test]
fn constants_match_the_tutorial() {
    let strategy = Strategy::new(10, 10, Covariance::Full, true);
    assert_eq!(strategy.mu, 5);
    assert!((strategy.mu_eff - 3.167_299).abs() < 1e-6, "{}", strategy.mu_eff);
    assert!((strategy.c_sigma - 5.167_299 / 18.167_299).abs() < 1e-6);
    assert!((strategy.d_sigma - 1.0 - strategy.c_sigma).abs() < 1e-12);
    assert!((strategy.weights[..5].iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(strategy.weights.windows(2).all(|pair| pair[0] > pair[1]));
    // Negative weights never take away more variance than there is.
    let taken = -strategy.weights[5..].iter().sum::<f64>() * strategy.c_mu * 10.0;
    assert!(taken <= 1.0 - strategy.c_1 - strategy.c_mu + 1e-12, "{taken}");
    let passive = Strategy::new(10, 10, Covariance::Full, false);
    assert!(passive.weights[5..].iter().all(|weight| *weight == 0.0));
}

/// If steps are ranked at random, the matrix stays the same on average: its trace has no systematic drift.
#[test]
fn random_ranking_leaves_the_matrix_unchanged() {
    for (covariance, active) in [
        (Covariance::Full, false),
        (Covariance::Full, true),
        (Covariance::Separable, true),
        (Covariance::Limited, true),
    ] {
        let strategy = Strategy::new(5, 8, covariance, active);
        let mut ratio = Vec::new();
        for replica in 0..40 {
            let mut distribution = strategy.start(vec![0.0; 5], 1.0);
            for generation in 0..100 {
                let mut rng = Stream::root(replica).word(generation).rng();
                let samples: Vec<_> = (0..8).map(|_| strategy.sample(&distribution, &mut rng)).collect();
                assert!(strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>(), 0.0));
                assert!(strategy.decompose(&mut distribution));
            }
            ratio.push(ln(strategy.variance(&distribution, 0) / strategy.variance(&distribution, 4)));
        }
        let mean = ratio.iter().sum::<f64>() / 40.0;
        assert!(mean.abs() < 1.0, "{covariance:?}, active {active}: {mean}");
    }
}

/// The two candidates lie on a line with the mean and the last mean, as far away as random ones, and their normal numbers
/// give their steps. The step size grows if and only if the forward one is ahead.
#[test]
fn the_candidate_pair_lies_along_the_last_step() {
    for covariance in [Covariance::Full, Covariance::Separable, Covariance::Limited] {
        let strategy = Strategy::new(100, 12, covariance, true);
        let mut distribution = strategy.start(vec![0.5; 100], 0.3);
        assert_eq!(strategy.pair(&distribution, &mut Stream::root(1).rng()), None);
        for generation in 0..8 {
            let mut rng = Stream::root(4).word(generation).rng();
            let samples: Vec<_> = (0..12).map(|_| strategy.sample(&distribution, &mut rng)).collect();
            let before = distribution.clone();
            let ahead = if generation < 4 { 0.5 } else { -0.5 };
            assert!(strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>(), ahead));
            assert_eq!(distribution.sigma > before.sigma, distribution.trend > 0.0);
            let shift = distribution.mean.iter().zip(&before.mean).map(|(new, old)| (new - old) / before.sigma);
            assert!(shift.zip(&distribution.shift).all(|(seen, kept)| (seen - kept).abs() < 1e-12));
            assert!(strategy.decompose(&mut distribution));
        }
        let normal = strategy.normal(&mut Stream::root(9).rng());
        let pair = strategy.pair(&distribution, &mut Stream::root(9).rng()).unwrap();
        let square = |vector: &[f64]| vector.iter().map(|entry| entry * entry).sum::<f64>();
        for (sample, sign) in pair.iter().zip([1.0, -1.0]) {
            assert!((square(&sample.normal) / square(&normal) - 1.0).abs() < 1e-9);
            let factor = sign * (square(&sample.step) / square(&distribution.shift)).sqrt();
            let scaled: Vec<f64> = sample.normal.iter().zip(&distribution.scales).map(|(z, d)| z * d).collect();
            let made = match covariance {
                Covariance::Full => strategy.turn(&distribution, &scaled),
                Covariance::Separable => scaled,
                Covariance::Limited => limited::step(&distribution, &sample.normal),
            };
            for ((step, shift), made) in sample.step.iter().zip(&distribution.shift).zip(made) {
                assert!((step - factor * shift).abs() < 1e-9 && (step - made).abs() < 1e-9);
            }
        }
    }
}

/// A coordinate that is too long is shortened to the limit. Its correlations and the other coordinates do not change.
#[test]
fn long_coordinates_are_shortened() {
    for covariance in [Covariance::Full, Covariance::Separable, Covariance::Limited] {
        let strategy = Strategy::new(4, 8, covariance, true);
        let mut distribution = strategy.start(vec![0.0; 4], 0.3);
        for generation in 0..20 {
            let mut rng = Stream::root(3).word(generation).rng();
            let samples: Vec<_> = (0..8).map(|_| strategy.sample(&distribution, &mut rng)).collect();
            assert!(strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>(), 0.0));
            assert!(strategy.decompose(&mut distribution));
        }
        let deviation = |of: &Distribution, index| of.sigma * strategy.variance(of, index).sqrt();
        let mut lengths: Vec<f64> = (0..4).map(|index| deviation(&distribution, index)).collect();
        lengths.sort_by(f64::total_cmp);
        let most = (lengths[1] + lengths[2]) / 2.0;
        let before = distribution.clone();
        strategy.limit(&mut distribution, most);
        let factor = |index| (most / deviation(&before, index)).min(1.0);
        for index in 0..4 {
            let wanted = deviation(&before, index).min(most);
            assert!((deviation(&distribution, index) / wanted - 1.0).abs() < 1e-12);
            assert!((distribution.path[index] - factor(index) * before.path[index]).abs() < 1e-12);
            for below in index + 1..if covariance == Covariance::Full { 4 } else { 0 } {
                let wanted = factor(index) * factor(below) * before.covariance[index * 4 + below];
                assert!((distribution.covariance[index * 4 + below] - wanted).abs() < 1e-12);
            }
        }
        assert_eq!((distribution.sigma, &distribution.mean), (before.sigma, &before.mean));
    }
}

/// A mirrored distribution draws the mirror images of the same candidates, and has the mirror image of the matrix.
#[test]
fn mirrored_distributions_draw_mirror_images() {
    let strategy = Strategy::new(4, 8, Covariance::Full, true);
    let mut before = strategy.start(vec![0.0; 4], 0.3);
    for generation in 0..30 {
        let mut rng = Stream::root(8).word(generation).rng();
        let samples: Vec<_> = (0..8).map(|_| strategy.sample(&before, &mut rng)).collect();
        assert!(strategy.update(&mut before, &samples.iter().collect::<Vec<_>>(), 0.0));
        assert!(strategy.decompose(&mut before));
    }
    let mut after = before.clone();
    strategy.mirror(&mut after, 2, 7.0);
    let sign = |index: usize| if index == 2 { -1.0 } else { 1.0 };
    let [first, second] = [&before, &after].map(|of| strategy.sample(of, &mut Stream::root(1).rng()).step);
    for j in 0..4 {
        assert_eq!(
            [second[j], after.path[j], after.path_sigma[j]],
            [first[j], before.path[j], before.path_sigma[j]].map(|entry| sign(j) * entry)
        );
        for i in j..4 {
            assert_eq!(after.covariance[j * 4 + i], sign(i) * sign(j) * before.covariance[j * 4 + i]);
        }
    }
    assert_eq!(after.mean, [&before.mean[..2], &[7.0], &before.mean[3..]].concat());
}

/// The update follows its definition, entry by entry, in a generation with rotated axes.
#[test]
fn the_update_agrees_with_the_definition() {
    let strategy = Strategy::new(4, 6, Covariance::Full, true);
    let mut distribution = strategy.start(vec![0.5; 4], 0.3);
    for generation in 0..12 {
        let mut rng = Stream::root(7).word(generation).rng();
        let samples: Vec<_> = (0..6).map(|_| strategy.sample(&distribution, &mut rng)).collect();
        let before = distribution.clone();
        assert!(strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>(), 0.0));
        let path = &distribution.path;
        let calm = path.iter().zip(&before.path).any(|(new, old)| (new - (1.0 - strategy.c_c) * old).abs() > 1e-12);
        for j in 0..4 {
            for i in j..4 {
                let mut sum = 1.0 - strategy.c_1 - strategy.c_mu * strategy.weights.iter().sum::<f64>();
                sum += if calm { 0.0 } else { strategy.c_1 * strategy.c_c * (2.0 - strategy.c_c) };
                sum *= before.covariance[j * 4 + i];
                sum += strategy.c_1 * path[i] * path[j];
                for (weight, Sample { normal: z, step: y }) in strategy.weights.iter().zip(&samples) {
                    let length: f64 = z.iter().map(|z| z * z).sum();
                    let weight = if *weight < 0.0 { weight * 4.0 / length } else { *weight };
                    sum += strategy.c_mu * weight * y[i] * y[j];
                }
                assert!((sum - distribution.covariance[j * 4 + i]).abs() < 1e-12, "entry {i} {j}");
            }
        }
        assert!(strategy.decompose(&mut distribution));
    }
}
