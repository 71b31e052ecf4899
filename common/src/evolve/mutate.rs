//! Mutation operators.

use crate::{
    math::{exp, ln},
    ratio::Ratio,
    rng::{Generator, below, chance, unit},
};

/// Redraws `count` different genes out of these loci: `redraw(rng, locus, old)` returns the new value. Random resetting
/// (Eiben and Smith 2015, section 4.3.1), with a fixed number of changed genes.
///
/// # Panics
/// If there are fewer than `count` loci.
pub fn redraw<G: Copy>(
    rng: &mut Generator,
    genome: &mut [G],
    loci: &[usize],
    count: usize,
    mut redraw: impl FnMut(&mut Generator, usize, G) -> G,
) {
    assert!(count <= loci.len(), "{count} mutations at {} loci were asked for", loci.len());
    let mut changed: Vec<usize> = Vec::with_capacity(count);
    while changed.len() < count {
        let locus = loci[below(rng, loci.len() as u64) as usize];
        if !changed.contains(&locus) {
            genome[locus] = redraw(rng, locus, genome[locus]);
            changed.push(locus);
        }
    }
}

/// Redraws each gene independently with probability `numerator` / `denominator`: random resetting (Eiben and Smith 2015,
/// section 4.3.1). Returns how many genes were redrawn.
pub fn redraw_each<G: Copy>(
    rng: &mut Generator,
    genome: &mut [G],
    (numerator, denominator): (u64, u64),
    mut redraw: impl FnMut(&mut Generator, usize, G) -> G,
) -> usize {
    let mut count = 0;
    for (locus, gene) in genome.iter_mut().enumerate() {
        if chance(rng, numerator, denominator) {
            *gene = redraw(rng, locus, *gene);
            count += 1;
        }
    }
    count
}

/// Moves each gene independently with this probability, up or down with equal probability, by (1 - r^e) of its distance from
/// that bound, where r is uniform in (0, 1] and e is (1 - `progress`)^`shape`. Moves are long at the beginning of a run and
/// almost nothing at its end. Non-uniform mutation (Michalewicz 1996, section 6.2). Returns how many genes moved.
///
/// # Panics
/// If `progress` is not from 0 up to, but not including, 1.
pub fn non_uniform(
    rng: &mut Generator,
    genome: &mut [f32],
    (low, high): (f32, f32),
    probability: f64,
    (progress, shape): (f64, f64),
) -> usize {
    assert!((0.0..1.0).contains(&progress), "a mutation at {progress} of the way");
    let exponent = exp(shape * ln(1.0 - progress));
    let mut count = 0;
    for gene in genome {
        if unit(rng) < probability {
            let up = chance(rng, 1, 2);
            let far = 1.0 - exp(exponent * ln(1.0 - unit(rng)));
            let end = if up { high } else { low };
            *gene = (f64::from(*gene) + f64::from(end - *gene) * far) as f32;
            count += 1;
        }
    }
    count
}

/// Whether [`redraw_chain`] can reach this rate if it continues a run of redrawn genes with probability `again`; runs must
/// not be too short for that.
#[must_use]
pub fn is_chain(rate: Ratio, again: Ratio) -> bool {
    rate * (Ratio::ONE - again) <= Ratio::ONE - rate
}

/// Redraws genes with the overall probability `rate`, but in runs: with probability `again` after a gene that was redrawn,
/// and otherwise with `rate` (1 - `again`) / (1 - `rate`). So the share of redrawn genes is `rate` everywhere (a stationary
/// Markov chain with two states along the genome). If `again` equals `rate`, genes are independent. Returns how many genes
/// were redrawn.
///
/// # Panics
/// If a number is not a probability, or if [`is_chain`] is false.
pub fn redraw_chain<G: Copy>(
    rng: &mut Generator,
    genome: &mut [G],
    rate: Ratio,
    again: Ratio,
    mut redraw: impl FnMut(&mut Generator, usize, G) -> G,
) -> usize {
    let sensible = [rate, again].into_iter().all(|share| (Ratio::ZERO..=Ratio::ONE).contains(&share));
    assert!(sensible && is_chain(rate, again), "no chain redraws {rate} of all genes and {again} after a redrawn one");
    let afresh = if rate == Ratio::ONE { rate } else { rate * (Ratio::ONE - again) / (Ratio::ONE - rate) };
    let (mut count, mut next) = (0, rate);
    for (locus, gene) in genome.iter_mut().enumerate() {
        let drawn = chance(rng, next.numerator() as u64, next.denominator() as u64);
        if drawn {
            *gene = redraw(rng, locus, *gene);
            count += 1;
        }
        next = if drawn { again } else { afresh };
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
        fn exactly_the_given_number_of_genes_change(seed: u64, length in 1..60_usize, share in 0.0..=1.0) {
            let count = (length as f64 * share) as usize;
            let mut genome = vec![0_u8; length];
            let loci: Vec<usize> = (0..length).step_by(2).collect();
            let count = count.min(loci.len());
            redraw(&mut Stream::root(seed).rng(), &mut genome, &loci, count, |_, _, old| old + 1);
            prop_assert_eq!(genome.iter().step_by(2).filter(|gene| **gene == 1).count(), count);
            prop_assert!(genome.iter().skip(1).step_by(2).all(|gene| *gene == 0));
        }
    }

    #[test]
    fn each_gene_changes_at_its_rate() {
        let mut genome = vec![0_u8; 100_000];
        let count = redraw_each(&mut Stream::root(3).rng(), &mut genome, (1, 10), |_, _, _| 1);
        assert_eq!(genome.iter().filter(|gene| **gene == 1).count(), count);
        assert!((count as i32 - 10_000).abs() < 570, "{count}");
    }

    #[test]
    fn non_uniform_mutations_shrink_and_stay_inside() {
        let mut rng = Stream::root(4).rng();
        let mut moved = |progress| {
            let mut genome = vec![0.5_f32; 10_000];
            let count = non_uniform(&mut rng, &mut genome, (-1.0, 1.0), 0.1, (progress, 5.0));
            assert!((count as i32 - 1000).abs() < 180, "{count}");
            assert!(genome.iter().all(|gene| (-1.0..=1.0).contains(gene)));
            let up = genome.iter().filter(|gene| **gene > 0.5).count();
            assert!((up as i32 - 500).abs() < 140 || progress > 0.9, "{up}");
            genome.iter().map(|gene| (gene - 0.5).abs()).sum::<f32>() / count as f32
        };
        let means = [moved(0.0), moved(0.5), moved(0.999_99)];
        // At first, genes move half of the distance on average: a quarter up and three quarters down, halved again.
        assert!((means[0] - 0.5).abs() < 0.05 && means[1] < 0.06 && means[2] < 1e-6, "{means:?}");
    }

    #[test]
    fn a_chain_keeps_the_rate_and_makes_runs() {
        let mut genome = vec![false; 200_000];
        let (rate, again) = (Ratio::new(1, 10), Ratio::new(1, 2));
        let count = redraw_chain(&mut Stream::root(4).rng(), &mut genome, rate, again, |_, _, _| true);
        assert_eq!(genome.iter().filter(|gene| **gene).count(), count);
        // Runs have two genes on average: the deviation is about 1.7 times that of independent genes, 134.
        assert!((count as i32 - 20_000).abs() < 1400, "{count}");
        let pairs = genome.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        assert!((pairs / count as f64 - 0.5).abs() < 0.03, "{pairs} of {count}");
        // The first gene counts too: over many genomes, it is redrawn at the rate.
        let first = (0..10_000).filter(|seed| {
            let mut genome = [0];
            redraw_chain(&mut Stream::root(*seed).rng(), &mut genome, rate, again, |_, _, _| 1) == 1
        });
        assert!((first.count() as i32 - 1000).abs() < 180);
        let all = redraw_chain(&mut Stream::root(5).rng(), &mut genome, Ratio::ONE, Ratio::ONE, |_, _, _| false);
        assert_eq!(all, genome.len());
        assert!(is_chain(again, again) && is_chain(Ratio::new(2, 3), again) && !is_chain(Ratio::new(3, 4), again));
    }
}
