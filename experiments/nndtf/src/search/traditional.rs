//! The traditional genetic algorithm of the paper's comparison: roulette wheel, arithmetic crossover, non-uniform mutation
//! (Michalewicz 1996).
//!
//! The paper gives only the probabilities and the shape of the mutation. The rest is our choice. The algorithm works in
//! generations. The roulette wheel draws pairs of parents, and each pair has two children, which are crossed with one random
//! share per pair or else are copies. Each gene of a child is mutated independently. The best chromosome of the previous
//! generation replaces the worst child unless a child is as fit, or, with `keeps_best`, unless a child is fitter.
//!
//! Readings of the text change three of these steps. With `one_couple`, an iteration has one couple, whose children take the
//! places of their parents. With `parents_differ`, the two parents are different chromosomes. With `one_gene`, a child is
//! mutated in at most one gene.

use crate::{
    messages,
    settings::{Births, Elite, Mutates, Settings},
};

use super::{Search, first_greatest, first_least, parents};
use evoxo_common::{
    evolve::{cross, mutate},
    rng::{Generator, below, unit},
};

/// The chromosomes to evaluate: the first population, or an iteration's children.
pub(super) fn ask(search: &Search, state: &messages::State) -> Vec<f32> {
    if state.sums.is_empty() {
        return search.random(state);
    }
    let mut rng = search.rng(state, "births");
    let progress = (state.iteration as f64 / search.iterations as f64, search.settings.shape.to_f64());
    let mut children = Vec::with_capacity(state.genes.len());
    for _ in 0..births(&search.settings) / 2 {
        let places = parents(&mut rng, &state.sums, search.settings.parents);
        let [mother, father] = places.map(|place| search.chromosome(&state.genes, place));
        let couple = match unit(&mut rng) < search.settings.crossover.to_f64() {
            true => cross::arithmetic(mother, father, unit(&mut rng) as f32),
            false => [mother.to_vec(), father.to_vec()],
        };
        for mut child in couple {
            let (genes, probability) = mutable(&mut rng, &search.settings, &mut child);
            mutate::non_uniform(&mut rng, genes, search.bounds, probability, progress);
            children.extend(child);
        }
    }
    children
}

/// The number of children per iteration.
pub(super) fn births(settings: &Settings) -> u32 {
    if settings.births == Births::Couple { 2 } else { settings.population }
}

/// The genes of a child that may be mutated, and the probability that each of them is mutated.
fn mutable<'a>(rng: &mut Generator, settings: &Settings, child: &'a mut [f32]) -> (&'a mut [f32], f64) {
    let probability = settings.mutation.to_f64();
    if settings.mutates == Mutates::Genes {
        return (child, probability);
    }
    let locus = below(rng, child.len() as u64) as usize;
    (&mut child[locus..=locus], probability)
}

/// Updates the state with the fitness of the chromosomes that [`ask`] returned.
pub(super) fn tell(search: &Search, state: &mut messages::State, asked: Vec<f32>, sums: &[u64]) {
    let Some(best) = first_greatest(&state.sums) else {
        (state.genes, state.sums) = (asked, sums.to_vec());
        return;
    };
    let former = state.clone();
    let put = |state: &mut messages::State, place: usize, genes: &[f32], sum: u64| {
        state.sums[place] = sum;
        state.genes[place * search.genes..][..search.genes].copy_from_slice(genes);
    };
    let children = |child: usize| (search.chromosome(&asked, child), sums[child]);
    let mut best_is_gone = true;
    if search.settings.births == Births::Couple {
        let [mother, father] = parents(&mut search.rng(state, "births"), &state.sums, search.settings.parents);
        // A chromosome that is both parents is replaced by the fitter child.
        let [one, two] = if mother == father && sums[0] > sums[1] { [1, 0] } else { [0, 1] };
        for (place, (genes, sum)) in [(mother, children(one)), (father, children(two))] {
            put(state, place, genes, sum);
        }
        best_is_gone = best == mother || best == father;
    } else {
        (state.genes, state.sums) = (asked, sums.to_vec());
    }
    let beaten_from = former.sums[best] + u64::from(search.settings.elite == Elite::UnlessSurpassed);
    if best_is_gone && state.sums.iter().all(|sum| *sum < beaten_from) {
        let worst = first_least(&state.sums);
        put(state, worst, search.chromosome(&former.genes, best), former.sums[best]);
    }
    state.iteration += 1;
}
