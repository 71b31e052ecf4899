//! The traditional genetic algorithm of the paper's comparison: roulette wheel, arithmetic crossover, non-uniform mutation
//! (Michalewicz 1996).
//!
//! The paper gives the probabilities and the shape of the mutation, and no more. Our choices: generations; pairs of
//! parents are drawn by the roulette wheel and have two children, crossed with one random share per pair, or else
//! copies; each gene of a child is mutated independently; the best of the previous generation replaces the worst child
//! unless a child is as fit, or (`keeps_best`) unless a child is fitter.

use crate::nndtf::messages;

use super::{CHROMOSOMES_MAX, Search, first_greatest, first_least, is_probability, shares};
use evoxo_common::{
    evolve::{cross, mutate, select},
    rng::unit,
};

/// Checks that the parameters are in range.
pub(super) fn check(traditional: &messages::Traditional) -> Result<(), String> {
    let messages::Traditional { population, crossover, mutation, shape, keeps_best: _ } = *traditional;
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

/// The first population, or an iteration's children.
pub(super) fn ask(search: &Search, traditional: &messages::Traditional, state: &messages::State) -> Vec<f32> {
    if state.sums.is_empty() {
        return search.random(state, traditional.population);
    }
    let mut rng = search.rng(state, "births");
    let fitness = shares(&state.sums);
    let progress = (state.iteration as f64 / search.iterations as f64, traditional.shape);
    let mut children = Vec::with_capacity(state.genes.len());
    for _ in 0..traditional.population / 2 {
        let [mother, father] = [(); 2].map(|()| search.chromosome(&state.genes, select::roulette(&mut rng, &fitness)));
        let couple = match unit(&mut rng) < traditional.crossover {
            true => cross::arithmetic(mother, father, unit(&mut rng) as f32),
            false => [mother.to_vec(), father.to_vec()],
        };
        for mut child in couple {
            mutate::non_uniform(&mut rng, &mut child, search.bounds, traditional.mutation, progress);
            children.extend(child);
        }
    }
    children
}

/// Updates the state with the fitness of what [`ask`] returned.
pub(super) fn tell(
    search: &Search,
    traditional: &messages::Traditional,
    state: &mut messages::State,
    mut asked: Vec<f32>,
    sums: &[u64],
) {
    let mut sums = sums.to_vec();
    if let Some(best) = first_greatest(&state.sums) {
        let beaten_from = state.sums[best] + u64::from(traditional.keeps_best);
        if sums.iter().all(|sum| *sum < beaten_from) {
            let (worst, length) = (first_least(&sums), search.genes);
            sums[worst] = state.sums[best];
            asked[worst * length..][..length].copy_from_slice(search.chromosome(&state.genes, best));
        }
        state.iteration += 1;
    }
    (state.genes, state.sums) = (asked, sums);
}
