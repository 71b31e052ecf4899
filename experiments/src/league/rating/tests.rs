//! Compares ratings with closed forms, figures of other programs, a slow twin, and the true strengths of simulated players.

// The twin must be independent of this crate's functions, and is compared within a tolerance.
#![allow(clippy::disallowed_methods)]

use evoxo_common::{rng::unit, stats::quantile};
use proptest::prelude::*;

use super::*;

/// Results of a player that moves first against another, as in tests/references/ratings.py.
fn results(i: usize, j: usize) -> [f64; 3] {
    [3 + (7 * i + 5 * j) % 11, 1 + (3 * i + j) % 5, 2 + (i + 2 * j) % 4].map(|count| count as f64)
}

fn terms(ratings: &Ratings) -> Vec<f64> {
    ratings.strengths.iter().copied().chain([ratings.first_move, ratings.draw]).collect()
}

#[track_caller]
fn near(found: &[f64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    let all = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= within);
    assert!(all, "{found:?}\n{expected:?}");
}

/// The figures that tests/references/ratings.py prints with evalica 0.4.2 and scipy 1.17.1.
#[test]
fn ratings_match_other_programs() {
    let mut both_colours = Vec::new();
    let mut ordered = Vec::new();
    for i in 0..5 {
        for j in (0..5).filter(|j| *j != i) {
            ordered.push(Meeting { first: i, second: j, results: results(i, j) });
            if i < j {
                let mut mirrored = results(i, j);
                both_colours.push(Meeting { first: i, second: j, results: mirrored });
                mirrored.reverse();
                both_colours.push(Meeting { first: j, second: i, results: mirrored });
            }
        }
    }
    let evalica = [0.9216834, 0.2222865, -0.2498876, -0.1729504, -0.6987070, 0.0, -0.5889845];
    near(&terms(&rate(5, &both_colours)), &evalica, 2e-6);
    let scipy = [0.0760623, -0.0182382, -0.1409281, 0.0446923, 0.0383414, 0.9513335, -0.6006189];
    near(&terms(&rate(5, &ordered)), &scipy, 2e-6);
}

/// The log-likelihood by its definition, with functions of the standard library.
fn slow_likelihood(terms: &[f64], meetings: &[Meeting]) -> f64 {
    let (players, nu) = (terms.len() - 2, terms[terms.len() - 1].exp());
    let of_game = |one: f64, two: f64, results: [f64; 3]| {
        let advantage = (one - two + terms[players]).exp().sqrt();
        let sum = advantage + nu + 1.0 / advantage;
        results[0] * (advantage / sum).ln() + results[1] * (nu / sum).ln() + results[2] * (1.0 / advantage / sum).ln()
    };
    let played: f64 = meetings.iter().map(|it| of_game(terms[it.first], terms[it.second], it.results)).sum();
    let third = [0.1 / 6.0; 3];
    let virtual_ones = terms[..players].iter().map(|one| of_game(*one, 0.0, third) + of_game(0.0, *one, third));
    played + virtual_ones.sum::<f64>()
}

/// The slow twin moves one term after another to its best value by ternary search, then all strengths together, which only
/// the virtual games hold, until nothing moves.
fn slow_rate(players: usize, meetings: &[Meeting]) -> Vec<f64> {
    let mut terms = vec![0.0; players + 2];
    for _ in 0..3000 {
        let before = terms.clone();
        for moved in (0..terms.len()).map(|term| term..term + 1).chain(std::iter::once(0..players)) {
            let by = |step: f64| {
                let mut terms = terms.clone();
                terms[moved.clone()].iter_mut().for_each(|term| *term += step);
                terms
            };
            let (mut low, mut high) = (-2.0, 2.0);
            while high - low > 1e-9 {
                let [one, two] = [low + (high - low) / 3.0, high - (high - low) / 3.0];
                let at = |step: f64| slow_likelihood(&by(step), meetings);
                if at(one) < at(two) { low = one } else { high = two }
            }
            terms = by(f64::midpoint(low, high));
        }
        if before.iter().zip(&terms).all(|(one, two)| (one - two).abs() < 1e-8) {
            break;
        }
    }
    terms
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn a_slow_implementation_finds_the_same_ratings(players in 2..5_usize, seed: u64) {
        let mut rng = Stream::root(seed).rng();
        let mut meetings = Vec::new();
        for first in 0..players {
            for second in (0..players).filter(|second| *second != first) {
                if below(&mut rng, 4) > 0 {
                    let results = [(); 3].map(|()| below(&mut rng, 30) as f64);
                    meetings.push(Meeting { first, second, results });
                }
            }
        }
        let (fast, slow) = (terms(&rate(players, &meetings)), slow_rate(players, &meetings));
        let gain = slow_likelihood(&slow, &meetings) - slow_likelihood(&fast, &meetings);
        prop_assert!(gain < 1e-7, "the twin is {gain} more likely: {fast:?} and {slow:?}");
        // Near its maximum the likelihood is flat, so the twin stops a little beside it.
        prop_assert!(fast.iter().zip(&slow).all(|(one, two)| (one - two).abs() < 1e-3), "{fast:?} and {slow:?}");
    }
}

/// Two players with so many games that the virtual ones hardly count.
#[test]
fn two_players_have_a_closed_form() {
    let meeting = |first: usize, results: [f64; 3]| Meeting { first, second: 1 - first, results };
    let found = rate(2, &[meeting(0, [6e6, 2e6, 2e6]), meeting(1, [2e6, 2e6, 6e6])]);
    let nu = 2.0 / 12.0_f64.sqrt();
    near(&[found.strengths[0] - found.strengths[1], found.first_move, found.draw], &[3.0_f64.ln(), 0.0, nu.ln()], 1e-6);
    assert!((found.points_above(0, 1) - 400.0 * 3.0_f64.log10()).abs() < 1e-3);
    near(&found.odds(0, 1), &[0.6, 0.2, 0.2], 1e-6);
    // The same strength, but the first move wins nine games of ten.
    let found = rate(2, &[meeting(0, [9e6, 0.0, 1e6]), meeting(1, [9e6, 0.0, 1e6])]);
    near(&[found.strengths[0] - found.strengths[1], found.first_move], &[0.0, 9.0_f64.ln()], 1e-5);
    assert!(found.odds(0, 1)[1] < 1e-6);
}

/// Nobody is infinitely strong, a player without games is as strong as the virtual player, and players that only drew are
/// equal.
#[test]
fn virtual_games_keep_everything_finite() {
    let all_won = [Meeting { first: 0, second: 1, results: [1e6, 0.0, 0.0] }];
    let found = rate(3, &all_won);
    let [one, two, three] = found.strengths[..] else { panic!("three players") };
    assert!(one > 5.0 && two < -5.0 && one < 50.0 && three.abs() < 1e-9, "{found:?}");
    assert!(terms(&found).iter().all(|term| term.is_finite()));
    let drawn = rate(2, &[Meeting { first: 0, second: 1, results: [0.0, 1e4, 0.0] }]);
    assert!(drawn.strengths.iter().all(|strength| strength.abs() < 1e-6) && drawn.draw > 5.0, "{drawn:?}");
    assert_eq!(rate(0, &[]).strengths, Vec::<f64>::new());
}

#[test]
fn bits_are_pinned() {
    let meetings: Vec<Meeting> = (0..4)
        .flat_map(|i| (0..4).filter(move |j| *j != i).map(move |j| (i, j)))
        .map(|(first, second)| Meeting { first, second, results: results(first, second) })
        .collect();
    let bits: Vec<u64> = terms(&rate(4, &meetings)).into_iter().map(f64::to_bits).collect();
    insta::assert_snapshot!(format!("{bits:016x?}"));
}

/// Games of players with these strengths: one for each ordered pair in each block.
fn drawn_games(strengths: &[f64], blocks: usize, stream: Stream) -> (Vec<(usize, usize)>, Vec<u8>) {
    let players = 0..strengths.len();
    let pairs = players.clone().flat_map(|i| players.clone().filter(move |j| *j != i).map(move |j| (i, j)));
    let pairs: Vec<(usize, usize)> = pairs.collect();
    let mut rng = stream.rng();
    let mut game = |(first, second): &(usize, usize)| {
        let [win, draw, _] = odds(strengths[*first] - strengths[*second] + 0.4, -0.5);
        match unit(&mut rng) {
            lot if lot < win => outcome::FIRST,
            lot if lot < win + draw => outcome::DRAW,
            _ => outcome::SECOND,
        }
    };
    let games = (0..blocks).flat_map(|_| pairs.iter().map(&mut game).collect::<Vec<u8>>()).collect();
    (pairs, games)
}

/// In 60 leagues of three players, the interval of the difference holds the true value in about 95 % (the bound is 3 standard
/// deviations of the binomial distribution below).
#[test]
fn intervals_cover_the_true_ratings() {
    let truth = [1.0, 0.3, -0.2];
    let held = |seed: u64| {
        let stream = Stream::root(seed).text("league");
        let (pairs, games) = drawn_games(&truth, 60, stream.text("games"));
        let blocks = Blocks { players: 3, pairs: &pairs, games: &games };
        let found = blocks.resampled(200, stream.text("bootstrap"));
        let of: Vec<f64> = found.iter().map(|it| it.strengths[0] - it.strengths[2]).collect();
        let ends = [0.025, 0.975].map(|p| quantile(&of, p));
        ends[0] < 1.2 && 1.2 < ends[1]
    };
    let count = (0..60).filter(|seed| held(*seed)).count();
    assert!((52..=60).contains(&count), "{count} of 60");
}

#[test]
fn unplayed_games_do_not_count() {
    let pairs = [(0, 1), (1, 0), (0, 2)];
    let games = [outcome::FIRST, outcome::DRAW, outcome::NONE, outcome::SECOND, outcome::FIRST, outcome::NONE];
    let blocks = Blocks { players: 3, pairs: &pairs, games: &games };
    assert_eq!(blocks.count(), 2);
    let results: Vec<[f64; 3]> = blocks.meetings().iter().map(|meeting| meeting.results).collect();
    assert_eq!(results, [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0; 3]]);
    assert_eq!(blocks.meetings()[0].points(), 1.0);
    let stream = Stream::root(1);
    assert_eq!(blocks.resampled(3, stream), blocks.resampled(3, stream));
    assert_ne!(blocks.resampled(9, stream), blocks.resampled(9, stream.word(1)));
}
