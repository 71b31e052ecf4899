//! Mutation of whole numbers between two bounds.

use crate::{
    math::ln,
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

/// Moves each gene with probability `rate`, up or down with equal chances, by 1 or more: the length has a geometric
/// distribution of this mean, as the steps of G. Rudolph, "An Evolutionary Algorithm for Integer Programming", PPSN
/// III, 1994, which have the greatest entropy for their mean. A step that leads outside ends at the bound; who is at a
/// bound moves away from it. Returns how many genes were changed.
///
/// # Panics
/// If `mean` is less than 1.
pub fn step(rng: &mut Generator, genome: &mut [i64], (low, high): (i64, i64), mean: f64, rate: f64) -> usize {
    assert!(mean >= 1.0, "steps of length {mean}");
    let mut count = 0;
    for gene in genome.iter_mut().filter(|_| low < high) {
        if unit(rng) >= rate {
            continue;
        }
        // The number of failures before a success of probability 1 / mean has the mean `mean - 1`.
        let failures = if mean > 1.0 { (ln(1.0 - unit(rng)) / ln(1.0 - 1.0 / mean)).floor() } else { 0.0 };
        let length = (failures as u64).saturating_add(1);
        let up = chance(rng, 1, 2);
        *gene = match (up || *gene == low) && *gene != high {
            true => gene.saturating_add_unsigned(length).min(high),
            false => gene.saturating_sub_unsigned(length).max(low),
        };
        count += 1;
    }
    count
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
            step(&mut rng, &mut genome, bounds, mean, 1.0);
            prop_assert!(genome.iter().all(|gene| (bounds.0..=bounds.1).contains(gene)));
            prop_assert!(one == two || genome.iter().zip(&before).all(|(new, old)| new != old));
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
    fn steps_have_their_mean_and_no_direction() {
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
}
