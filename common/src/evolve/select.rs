//! Selection of parents and survivors.

use crate::rng::{Generator, Stream, below, unit};

/// Indices of the `count` fittest individuals, best first; ties go to the lower index. This is truncation selection, and
/// elitism if the chosen individuals stay in the next generation (Eiben and Smith 2015, sections 5.2.1 and 5.3.2).
///
/// # Panics
/// If `count` exceeds the population.
pub fn fittest<F: PartialOrd>(fitness: &[F], count: usize) -> Vec<usize> {
    assert!(count <= fitness.len(), "{count} of {} individuals were asked for", fitness.len());
    let mut order: Vec<usize> = (0..fitness.len()).collect();
    order.sort_by(|&a, &b| fitness[b].partial_cmp(&fitness[a]).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(&b)));
    order.truncate(count);
    order
}

/// The fitter of two individuals drawn with replacement; ties go to the lower index. Binary tournament selection (Eiben
/// and Smith 2015, section 5.2.4; Goldberg and Deb 1991).
pub fn binary_tournament<F: PartialOrd>(rng: &mut Generator, fitness: &[F]) -> usize {
    let one = below(rng, fitness.len() as u64) as usize;
    let two = below(rng, fitness.len() as u64) as usize;
    let (low, high) = (one.min(two), one.max(two));
    if fitness[high] > fitness[low] { high } else { low }
}

/// A generation of `size` individuals: those that `stay`, and the children of as many litters as are needed, numbered from
/// `first`. A litter draws its parents and the changes of their children from the stream below `births` with the litter's
/// number, so litters do not depend on each other. Children beyond `size` are dropped.
pub fn generation<G, L: IntoIterator<Item = G>>(
    births: Stream,
    stay: Vec<G>,
    first: u64,
    size: usize,
    mut litter: impl FnMut(&mut Generator) -> L,
) -> Vec<G> {
    let children = (first..).flat_map(|number| litter(&mut births.word(number).rng()));
    stay.into_iter().chain(children).take(size).collect()
}

/// An individual with probability proportional to its fitness: roulette-wheel selection (Goldberg 1989, page 11). If
/// all fitness is 0, all individuals are equally likely.
///
/// # Panics
/// If a fitness is negative or not finite.
pub fn roulette(rng: &mut Generator, fitness: &[f64]) -> usize {
    assert!(
        fitness.iter().all(|f| f.is_finite() && *f >= 0.0),
        "roulette needs fitness that is finite and not negative"
    );
    let total: f64 = fitness.iter().sum();
    if total <= 0.0 {
        return below(rng, fitness.len() as u64) as usize;
    }
    let mut rest = unit(rng) * total;
    for (index, share) in fitness.iter().enumerate() {
        rest -= share;
        if rest < 0.0 {
            return index;
        }
    }
    // Rounding can leave a remainder, which belongs to the last individual with any share.
    fitness.iter().rposition(|share| *share > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fittest_is_the_head_of_a_stable_sort(fitness in prop::collection::vec(-3..3_i32, 1..40), share in 0.0..=1.0) {
            let count = (fitness.len() as f64 * share) as usize;
            let chosen = fittest(&fitness, count);
            for pair in chosen.windows(2) {
                prop_assert!((-fitness[pair[0]], pair[0]) < (-fitness[pair[1]], pair[1]));
            }
            let worst = chosen.last().map(|&index| (-fitness[index], index));
            let better = |index: &usize| Some((-fitness[*index], *index)) <= worst;
            prop_assert_eq!((0..fitness.len()).filter(better).count(), count);
        }
    }

    #[test]
    fn a_generation_is_filled_litter_by_litter() {
        let births = Stream::root(2);
        let number = |number: u64| below(&mut births.word(number).rng(), 1000);
        let twins = |rng: &mut Generator| [below(rng, 1000); 2];
        let filled = generation(births, vec![1, 2], 5, 5, twins);
        assert_eq!(filled, [1, 2, number(5), number(5), number(6)]);
        assert_eq!(generation(births, vec![1, 2, 3], 0, 2, twins), [1, 2], "there is no room for more");
    }

    #[test]
    fn roulette_selects_in_proportion_to_fitness() {
        let mut rng = Stream::root(1).rng();
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            counts[roulette(&mut rng, &[1.0, 0.0, 2.0, 1.0])] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((counts[2] - 20_000_i32).abs() < 600, "{counts:?}");
        assert!((counts[0] - counts[3]).abs() < 1000, "{counts:?}");
    }

    #[test]
    fn a_tournament_prefers_the_fitter() {
        let mut rng = Stream::root(2).rng();
        let wins = (0..10_000).filter(|_| binary_tournament(&mut rng, &[1, 2]) == 1).count();
        assert!((wins as i32 - 7500).abs() < 260, "the fitter of two wins three of four: {wins}");
        let low = (0..10_000).filter(|_| binary_tournament(&mut rng, &[1, 1]) == 0).count();
        assert!((low as i32 - 7500).abs() < 260, "ties go to the lower index: {low}");
    }
}
