//! The improved genetic algorithm (Ling and Lam 2011, section 4; Leung, Lam, Ling and Tam 2003).
//!
//! An iteration has two rounds. First, the roulette wheel chooses two parents, which may be the same chromosome, and the
//! fittest of their four candidates is the offspring. Then three mutants of the offspring are evaluated: one with one gene
//! redrawn, one with each gene redrawn with probability 1/2, one with all genes redrawn. With the probability of acceptance,
//! the fittest mutant replaces the worst chromosome even if it is less fit. Otherwise each mutant in turn replaces the
//! currently worst chromosome if it is fitter. As in the paper, the offspring itself never joins the population.
//!
//! Readings of the text change four of these steps (`bounds_weigh`, `keeps_offspring`, `parents_differ`, `any_number`), and
//! with `one_gene` each mutant redraws one gene. With `keeps_offspring`, the offspring is judged again together with its
//! mutants and treated like them.

use crate::nndtf::messages;

use super::{CHROMOSOMES_MAX, Search, first_greatest, first_least, is_probability, parents};
use crate::nndtf::network::gene;
use evoxo_common::{
    evolve::{cross, mutate},
    rng::{below, unit},
};

/// Checks that the parameters are in range.
pub(super) fn check(improved: &messages::Improved) -> Result<(), String> {
    let messages::Improved { population, weight, acceptance, .. } = *improved;
    if !(2..=CHROMOSOMES_MAX as u32).contains(&population) {
        return Err(format!("a population has 2 to {CHROMOSOMES_MAX} chromosomes, not {population}"));
    }
    if !is_probability(weight.into()) || !is_probability(acceptance) {
        return Err(format!("w and pa are from 0 to 1, not {weight} and {acceptance}"));
    }
    Ok(())
}

/// The chromosomes to evaluate: the first population, an iteration's four candidates, or its three mutants.
pub(super) fn ask(search: &Search, improved: &messages::Improved, state: &messages::State) -> Vec<f32> {
    if state.sums.is_empty() {
        return search.random(state, improved.population);
    }
    let candidates = candidates(search, improved, state);
    let Some(chosen) = (state.offspring as usize).checked_sub(1) else { return candidates.concat() };
    let offspring = &candidates[chosen];
    let mut mutants = mutants(search, improved, state, offspring).concat();
    if improved.keeps_offspring {
        mutants.extend(offspring);
    }
    mutants
}

fn candidates(search: &Search, improved: &messages::Improved, state: &messages::State) -> [Vec<f32>; 4] {
    let places = parents(&mut search.rng(state, "parents"), &state.sums, improved.parents_differ);
    let [mother, father] = places.map(|place| search.chromosome(&state.genes, place));
    let usual = cross::four_candidates(mother, father, improved.weight, search.bounds);
    if !improved.bounds_weigh {
        return usual;
    }
    let [_, greater, lesser, _] = cross::four_candidates(mother, father, 1.0 - improved.weight, search.bounds);
    let [mean, _, _, middle] = usual;
    [mean, greater, lesser, middle]
}

fn mutants(
    search: &Search,
    improved: &messages::Improved,
    state: &messages::State,
    offspring: &[f32],
) -> [Vec<f32>; 3] {
    let mut rng = search.rng(state, "mutants");
    let mut redraw_one = |mutant: &mut [f32]| {
        let locus = below(&mut rng, mutant.len() as u64) as usize;
        mutant[locus] = gene(&mut rng, search.bounds);
    };
    let [mut one, mut some, mut all] = [(); 3].map(|()| offspring.to_vec());
    redraw_one(&mut one);
    if improved.one_gene {
        redraw_one(&mut some);
        redraw_one(&mut all);
        return [one, some, all];
    }
    let length = some.len() as u64;
    let share = if improved.any_number { (1 + below(&mut rng, length), length) } else { (1, 2) };
    mutate::redraw_each(&mut rng, &mut some, share, |rng, _, _| gene(rng, search.bounds));
    all.fill_with(|| gene(&mut rng, search.bounds));
    [one, some, all]
}

/// Updates the state with the fitness of the chromosomes that [`ask`] returned.
pub(super) fn tell(
    search: &Search,
    improved: &messages::Improved,
    state: &mut messages::State,
    asked: Vec<f32>,
    sums: &[u64],
) {
    if state.sums.is_empty() {
        (state.genes, state.sums) = (asked, sums.to_vec());
    } else if state.offspring == 0 {
        state.offspring = 1 + first_greatest(sums).expect("four candidates were judged") as u32;
    } else {
        let mut replace_worst = |mutant: usize, anyway: bool| {
            let worst = first_least(&state.sums);
            if anyway || sums[mutant] > state.sums[worst] {
                state.sums[worst] = sums[mutant];
                let length = search.genes;
                state.genes[worst * length..][..length].copy_from_slice(search.chromosome(&asked, mutant));
            }
        };
        let accepted = unit(&mut search.stream.word(state.iteration).text("acceptance").rng()) < improved.acceptance;
        if accepted {
            replace_worst(first_greatest(sums).expect("three mutants were judged"), true);
        } else {
            (0..sums.len()).for_each(|mutant| replace_worst(mutant, false));
        }
        state.offspring = 0;
        state.iteration += 1;
    }
}
