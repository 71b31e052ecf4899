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

use crate::nndtf::messages;

use super::{CHROMOSOMES_MAX, Search, first_greatest, first_least, is_probability, parents};
use evoxo_common::{
    evolve::{cross, mutate},
    rng::{Generator, below, unit},
};

/// Checks that the parameters are in range.
pub(super) fn check(traditional: &messages::Traditional) -> Result<(), String> {
    let messages::Traditional { population, crossover, mutation, shape, .. } = *traditional;
    if !(2..=CHROMOSOMES_MAX as u32).contains(&population) || population % 2 == 1 {
        return Err(format!(
            "a population of pairs has 2 to {CHROMOSOMES_MAX} chromosomes, an even number, not {population}"
        ));
    }
    if !is_probability(crossover) || !is_probability(mutation) {
        return Err(format!("probabilities are from 0 to 1, not {crossover} and {mutation}"));
    }
    if !(0.0..=1000.0).contains(&shape) {
        return Err(format!("the shape of the mutation is from 0 to 1000, not {shape}"));
    }
    Ok(())
}

/// The chromosomes to evaluate: the first population, or an iteration's children.
pub(super) fn ask(search: &Search, traditional: &messages::Traditional, state: &messages::State) -> Vec<f32> {
    if state.sums.is_empty() {
        return search.random(state, traditional.population);
    }
    let mut rng = search.rng(state, "births");
    let progress = (state.iteration as f64 / search.iterations as f64, traditional.shape);
    let mut children = Vec::with_capacity(state.genes.len());
    for _ in 0..births(traditional) / 2 {
        let places = parents(&mut rng, &state.sums, traditional.parents_differ);
        let [mother, father] = places.map(|place| search.chromosome(&state.genes, place));
        let couple = match unit(&mut rng) < traditional.crossover {
            true => cross::arithmetic(mother, father, unit(&mut rng) as f32),
            false => [mother.to_vec(), father.to_vec()],
        };
        for mut child in couple {
            let (genes, probability) = mutable(&mut rng, traditional, &mut child);
            mutate::non_uniform(&mut rng, genes, search.bounds, probability, progress);
            children.extend(child);
        }
    }
    children
}

/// The number of children per iteration.
pub(super) const fn births(traditional: &messages::Traditional) -> u32 {
    if traditional.one_couple { 2 } else { traditional.population }
}

/// The genes of a child that may be mutated, and the probability that each of them is mutated.
fn mutable<'a>(rng: &mut Generator, traditional: &messages::Traditional, child: &'a mut [f32]) -> (&'a mut [f32], f64) {
    if !traditional.one_gene {
        return (child, traditional.mutation);
    }
    let locus = below(rng, child.len() as u64) as usize;
    (&mut child[locus..=locus], traditional.mutation)
}

/// Updates the state with the fitness of the chromosomes that [`ask`] returned.
pub(super) fn tell(
    search: &Search,
    traditional: &messages::Traditional,
    state: &mut messages::State,
    asked: Vec<f32>,
    sums: &[u64],
) {
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
    if traditional.one_couple {
        let [mother, father] = parents(&mut search.rng(state, "births"), &state.sums, traditional.parents_differ);
        // A chromosome that is both parents is replaced by the fitter child.
        let [one, two] = if mother == father && sums[0] > sums[1] { [1, 0] } else { [0, 1] };
        for (place, (genes, sum)) in [(mother, children(one)), (father, children(two))] {
            put(state, place, genes, sum);
        }
        best_is_gone = best == mother || best == father;
    } else {
        (state.genes, state.sums) = (asked, sums.to_vec());
    }
    let beaten_from = former.sums[best] + u64::from(traditional.keeps_best);
    if best_is_gone && state.sums.iter().all(|sum| *sum < beaten_from) {
        let worst = first_least(&state.sums);
        put(state, worst, search.chromosome(&former.genes, best), former.sums[best]);
    }
    state.iteration += 1;
}
