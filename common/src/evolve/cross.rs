//! Children of two parents of equal length.

use crate::rng::{Generator, below, chance};

/// One-point crossover (Eiben and Smith 2015, section 4.2.2): a cut strictly inside the genome; heads are kept, tails are
/// exchanged.
///
/// # Panics
/// If the parents differ in length or have fewer than two genes.
pub fn one_point<G: Copy>(rng: &mut Generator, mother: &[G], father: &[G]) -> [Vec<G>; 2] {
    assert!(
        mother.len() == father.len() && mother.len() >= 2,
        "crossover needs parents of equal length, two genes or more"
    );
    let cut = 1 + below(rng, mother.len() as u64 - 1) as usize;
    exchange(mother, father, cut..mother.len())
}

/// Two-point crossover (Eiben and Smith 2015, section 4.2.2, n = 2): the part between two random cuts is exchanged. The
/// cuts differ and may be anywhere from before the first gene to after the last, but not both at the ends.
///
/// # Panics
/// If the parents differ in length or have fewer than two genes.
pub fn two_point<G: Copy>(rng: &mut Generator, mother: &[G], father: &[G]) -> [Vec<G>; 2] {
    assert!(
        mother.len() == father.len() && mother.len() >= 2,
        "crossover needs parents of equal length, two genes or more"
    );
    loop {
        let one = below(rng, mother.len() as u64 + 1) as usize;
        let two = below(rng, mother.len() as u64 + 1) as usize;
        let (start, end) = (one.min(two), one.max(two));
        if start < end && end - start < mother.len() {
            return exchange(mother, father, start..end);
        }
    }
}

/// Uniform crossover (Syswerda 1989; Eiben and Smith 2015, section 4.2.2): each gene is exchanged with probability 1/2.
///
/// # Panics
/// If the parents differ in length.
pub fn uniform<G: Copy>(rng: &mut Generator, mother: &[G], father: &[G]) -> [Vec<G>; 2] {
    assert_eq!(mother.len(), father.len(), "crossover needs parents of equal length");
    let (mut first, mut second) = (mother.to_vec(), father.to_vec());
    for (one, two) in first.iter_mut().zip(&mut second) {
        if chance(rng, 1, 2) {
            std::mem::swap(one, two);
        }
    }
    [first, second]
}

fn exchange<G: Copy>(mother: &[G], father: &[G], range: std::ops::Range<usize>) -> [Vec<G>; 2] {
    let (mut first, mut second) = (mother.to_vec(), father.to_vec());
    first[range.clone()].copy_from_slice(&father[range.clone()]);
    second[range.clone()].copy_from_slice(&mother[range]);
    [first, second]
}

/// Whole arithmetic crossover (Eiben and Smith 2015, section 4.4.2; Michalewicz 1996): one child is `share` of one parent
/// plus the rest of the other, gene by gene; the other child is the mirror image.
///
/// # Panics
/// If the parents differ in length.
#[must_use]
pub fn arithmetic(mother: &[f32], father: &[f32], share: f32) -> [Vec<f32>; 2] {
    assert_eq!(mother.len(), father.len(), "crossover needs parents of equal length");
    let blend = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| share * a + (1.0 - share) * b).collect();
    [blend(mother, father), blend(father, mother)]
}

/// The four candidates of two parents whose genes are from `low` to `high` (Leung, Lam, Ling and Tam 2003, equations 7 to 12;
/// Ling and Lam 2011, equations 23 to 28). They are the parents' mean; the greater gene of the two, with the share `1 -
/// weight` of the upper bound; the lesser gene, with that share of the lower bound; and the mean, with that share of the
/// middle.
///
/// # Panics
/// If the parents differ in length.
#[must_use]
pub fn four_candidates(mother: &[f32], father: &[f32], weight: f32, (low, high): (f32, f32)) -> [Vec<f32>; 4] {
    assert_eq!(mother.len(), father.len(), "crossover needs parents of equal length");
    let rest = 1.0 - weight;
    let each = |gene: &dyn Fn(f32, f32) -> f32| mother.iter().zip(father).map(|(a, b)| gene(*a, *b)).collect();
    [
        each(&|a, b| (a + b) / 2.0),
        each(&|a, b| high * rest + a.max(b) * weight),
        each(&|a, b| low * rest + a.min(b) * weight),
        each(&|a, b| ((high + low) * rest + (a + b) * weight) / 2.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_gene_comes_from_one_parent(seed: u64, length in 2..50_usize) {
            let (mother, father) = (vec![false; length], vec![true; length]);
            let mut rng = Stream::root(seed).rng();
            let [one, two] = one_point(&mut rng, &mother, &father);
            prop_assert_eq!(one.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1);
            prop_assert!(one.iter().zip(&two).all(|(a, b)| a != b));
            let [one, two] = two_point(&mut rng, &mother, &father);
            let changes = one.windows(2).filter(|pair| pair[0] != pair[1]).count();
            prop_assert!((1..=2).contains(&changes), "{one:?}");
            prop_assert!(one.iter().zip(&two).all(|(a, b)| a != b));
            let [one, two] = uniform(&mut rng, &mother, &father);
            prop_assert!(one.iter().zip(&two).all(|(a, b)| a != b));
        }
    }

    #[test]
    fn uniform_crossover_takes_half_of_the_genes() {
        let [child, _] = uniform(&mut Stream::root(1).rng(), &[0; 10_000], &[1; 10_000]);
        let taken = child.iter().sum::<i32>();
        assert!((taken - 5_000).abs() < 300, "{taken}");
    }

    #[test]
    fn arithmetic_children_lie_between_their_parents() {
        assert_eq!(arithmetic(&[0.0, 1.0], &[1.0, 1.0], 0.25), [vec![0.75, 1.0], vec![0.25, 1.0]]);
    }

    #[test]
    fn candidates_follow_the_published_equations() {
        let candidates = four_candidates(&[0.5, -1.0], &[-0.25, 1.0], 0.25, (-2.0, 1.0));
        assert_eq!(candidates[0], [0.125, 0.0]);
        assert_eq!(candidates[1], [0.75 + 0.125, 0.75 + 0.25]);
        assert_eq!(candidates[2], [-1.5 - 0.0625, -1.5 - 0.25]);
        assert_eq!(candidates[3], [(-0.75 + 0.0625) / 2.0, -0.375]);
    }
}
