//! Mutation of whole numbers between two bounds.

use crate::{
    math::{ln, pow},
    rng::{Generator, below, chance, unit},
};
use rand_core::Rng as _;

/// A whole number from `low` to `high`, each equally likely.
///
/// # Panics
/// If `low` is greater than `high`.
pub fn draw(rng: &mut Generator, (low, high): (i64, i64)) -> i64 {
    assert!(low <= high, "a whole number from {low} to {high} was asked for");
    let above = match high.abs_diff(low).checked_add(1) {
        Some(count) => below(rng, count),
        None => rng.next_u64(),
    };
    low.wrapping_add_unsigned(above)
}

/// Moves each gene with probability `rate`, up or down with equal probability, by 1 or more. The length has a geometric
/// distribution with this mean, like the steps of G. Rudolph, "An Evolutionary Algorithm for Integer Programming", PPSN III,
/// 1994, which have the greatest entropy for their mean. A step beyond a bound is mirrored at the edge of the range, half a
/// number outside it; if the mirrored step leads back to the gene, it is drawn again. Returns how many genes were changed.
///
/// # Panics
/// If `mean` is less than 1.
pub fn step(rng: &mut Generator, genome: &mut [i64], (low, high): (i64, i64), mean: f64, rate: f64) -> usize {
    assert!(mean >= 1.0, "steps of length {mean}");
    move_each(rng, genome, (low, high), rate, |rng| {
        // The number of failures before a success with probability 1 / mean has the mean `mean - 1`.
        let failures = if mean > 1.0 { (ln(1.0 - unit(rng)) / ln(1.0 - 1.0 / mean)).floor() } else { 0.0 };
        (failures as u64).saturating_add(1)
    })
}

/// Moves each gene with probability `rate`, up or down with equal probability, by 1 up to the whole range. A length has a
/// probability in proportion to ln(1 + 1/length), which is nearly 1/length. So steps of every order of magnitude are equally
/// likely, and no mean has to be chosen: B. Doerr, C. Doerr and T. Kötzing, "Static and Self-Adjusting Mutation Strengths for
/// Multi-valued Decision Variables", Algorithmica 80, 2018 (the harmonic operator).
///
/// A step beyond a bound is mirrored at the edge of the range, half a number outside it; if the mirrored step leads back to
/// the gene, it is drawn again. Without selection, all numbers are therefore about equally frequent. Returns how many genes
/// were changed.
pub fn harmonic(rng: &mut Generator, genome: &mut [i64], (low, high): (i64, i64), rate: f64) -> usize {
    move_each(rng, genome, (low, high), rate, |rng| log_uniform(rng, high.abs_diff(low)))
}

/// Moves each gene with probability `rate`, up or down with equal probability. The length is drawn again until the gene
/// becomes another number. Returns how many genes were changed.
fn move_each(
    rng: &mut Generator,
    genome: &mut [i64],
    (low, high): (i64, i64),
    rate: f64,
    length: impl Fn(&mut Generator) -> u64,
) -> usize {
    let mut count = 0;
    for gene in genome.iter_mut().filter(|_| low < high) {
        if unit(rng) >= rate {
            continue;
        }
        let before = *gene;
        while *gene == before {
            *gene = mirrored(before, length(rng), chance(rng, 1, 2), (low, high));
        }
        count += 1;
    }
    count
}

/// A whole number from 1 to `most`, whose logarithm is uniform before it is rounded down.
fn log_uniform(rng: &mut Generator, most: u64) -> u64 {
    (pow(most as f64 + 1.0, unit(rng)) as u64).clamp(1, most)
}

/// The number `length` above or below another one, mirrored at the edges of the range, half a number outside its bounds. So
/// moving from one number to another is as likely as moving back.
fn mirrored(from: i64, length: u64, up: bool, (low, high): (i64, i64)) -> i64 {
    let (numbers, length) = (i128::from(high) - i128::from(low) + 1, i128::from(length));
    let place = (i128::from(from) - i128::from(low) + if up { length } else { -length }).rem_euclid(2 * numbers);
    let place = if place < numbers { place } else { 2 * numbers - 1 - place };
    i64::try_from(i128::from(low) + place).expect("the place lies within the range")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn genes_stay_between_the_bounds_and_move(seed: u64, one: i64, two: i64, mean in 1.0..1e19_f64) {
            let (mut rng, bounds) = (Stream::root(seed).rng(), (one.min(two), one.max(two)));
            let mut genome: Vec<i64> = (0..20).map(|_| draw(&mut rng, bounds)).collect();
            (genome[0], genome[1]) = bounds;
            let before = genome.clone();
            let others = before.clone();
            for mut genome in [genome, others] {
                match mean < 10.0 {
                    true => step(&mut rng, &mut genome, bounds, mean, 1.0),
                    false => harmonic(&mut rng, &mut genome, bounds, 1.0),
                };
                prop_assert!(genome.iter().all(|gene| (bounds.0..=bounds.1).contains(gene)));
                prop_assert!(one == two || genome.iter().zip(&before).all(|(new, old)| new != old));
            }
        }
    }

    #[test]
    fn all_numbers_are_drawn() {
        let mut rng = Stream::root(1).rng();
        let mut counts = [0_i32; 5];
        (0..10_000).for_each(|_| counts[(draw(&mut rng, (-2, 2)) + 2) as usize] += 1);
        assert!(counts.iter().all(|count| (count - 2000).abs() < 250), "{counts:?}");
        let (least, most) = (i64::MIN, i64::MAX);
        let negative = (0..10_000).filter(|_| draw(&mut rng, (least, most)) < 0).count();
        assert!((negative as i32 - 5000).abs() < 300, "{negative}");
    }

    #[test]
    fn steps_have_the_expected_mean_size_and_no_bias() {
        for mean in [1.0, 1.5, 40.0] {
            let mut genome = vec![0; 50_000];
            let count = step(&mut Stream::root(2).rng(), &mut genome, (-1_000_000, 1_000_000), mean, 0.5);
            assert!((count as i32 - 25_000).abs() < 700, "{count}");
            let length = genome.iter().map(|gene| gene.abs()).sum::<i64>() as f64 / count as f64;
            assert!((length / mean - 1.0).abs() < 0.04, "{length} instead of {mean}");
            let drift = genome.iter().sum::<i64>() as f64 / count as f64;
            assert!(drift.abs() < 0.06 * mean, "{drift}");
        }
    }

    /// Without selection, no number is visited more often or less often than others, not even a bound. With steps of a tenth
    /// of a small range, a bound got 0.56 or 2.4 times its share. Each gene moves a thousand times.
    #[test]
    fn bounds_are_visited_as_often_as_other_numbers() {
        let kinds: [fn(&mut Generator, &mut [i64]) -> usize; 3] = [
            |rng, genome| step(rng, genome, (0, 9), 1.9, 0.9),
            |rng, genome| step(rng, genome, (0, 9), 6.0, 0.9),
            |rng, genome| harmonic(rng, genome, (0, 9), 0.9),
        ];
        for (number, moved) in kinds.iter().enumerate() {
            let (mut rng, mut genome, mut counts) = (Stream::root(5).rng(), [0; 50], [0_u32; 10]);
            for _ in 0..1000 {
                moved(&mut rng, &mut genome);
                genome.iter().for_each(|gene| counts[*gene as usize] += 1);
            }
            let shares = counts.map(|count| f64::from(count) / 5000.0);
            assert!(shares.iter().all(|share| (0.75..1.25).contains(share)), "kind {number}: {shares:?}");
        }
    }

    /// The length of a harmonic step from the middle of a long range has a uniform logarithm, so every order of magnitude is
    /// equally frequent.
    #[test]
    fn harmonic_steps_are_of_every_size() {
        let mut genome = vec![0; 60_000];
        harmonic(&mut Stream::root(3).rng(), &mut genome, (-499_999, 500_000), 1.0);
        let mut counts = [0_i32; 6];
        for gene in genome {
            counts[gene.abs().to_string().len() - 1] += 1;
        }
        // Lengths above 500,000 are mirrored, but there are few of them.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 600), "{counts:?}");
    }
}
