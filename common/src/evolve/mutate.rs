//! Small changes.

use crate::rng::{Generator, below, chance};

/// Redraws `count` different genes at some of these loci: `redraw(rng, locus, old)` gives the new value. Random resetting
/// (Eiben and Smith 2015, section 4.3.1), with the number of changed genes fixed.
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

/// Redraws each gene on its own with probability `numerator` / `denominator`: random resetting (Eiben and Smith 2015,
/// section 4.3.1). Returns how many were redrawn.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exactly_so_many_genes_change(seed: u64, length in 1..60_usize, share in 0.0..=1.0) {
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
}
