//! The improved genetic algorithm (Ling and Lam 2011, section 4; Leung, Lam, Ling and Tam 2003).
//!
//! An iteration has two rounds. First, the roulette wheel chooses two parents, which may be the same chromosome, and the
//! fittest of their four candidates is the offspring. Then three mutants of the offspring are evaluated: one with one gene
//! redrawn, one with each gene redrawn with probability 1/2, one with all genes redrawn. With the probability of acceptance,
//! the fittest mutant replaces the worst chromosome even if it is less fit. Otherwise each mutant in turn replaces the
//! currently worst chromosome if it is fitter. As in the paper, the offspring itself never joins the population.
//!
//! Readings of the text change four of these steps (the settings `weighs`, `joins`, `parents` and `some`), and with the
//! setting `mutants` each mutant redraws one gene. If the offspring may join, it is judged again together with its mutants
//! and treated like them.

use crate::{
    messages,
    network::gene,
    settings::{Joins, Mutants, SomeGenes, Weighs},
};

use super::{Search, first_greatest, first_least, parents};
use evoxo_common::{
    evolve::{cross, mutate},
    rng::{below, unit},
};

/// The chromosomes to evaluate: the first population, an iteration's four candidates, or its three mutants.
pub(super) fn ask(search: &Search, state: &messages::State) -> Vec<f32> {
    if state.sums.is_empty() {
        return search.random(state);
    }
    let candidates = candidates(search, state);
    let Some(chosen) = (state.offspring as usize).checked_sub(1) else { return candidates.concat() };
    let offspring = &candidates[chosen];
    let mut mutants = mutants(search, state, offspring).concat();
    if search.settings.joins == Joins::OffspringToo {
        mutants.extend(offspring);
    }
    mutants
}

fn candidates(search: &Search, state: &messages::State) -> [Vec<f32>; 4] {
    let places = parents(&mut search.rng(state, "parents"), &state.sums, search.settings.parents);
    let [mother, father] = places.map(|place| search.chromosome(&state.genes, place));
    let weight = search.settings.weight.to_f64() as f32;
    let usual = cross::four_candidates(mother, father, weight, search.bounds);
    if search.settings.weighs == Weighs::Parents {
        return usual;
    }
    let [_, greater, lesser, _] = cross::four_candidates(mother, father, 1.0 - weight, search.bounds);
    let [mean, _, _, middle] = usual;
    [mean, greater, lesser, middle]
}

fn mutants(search: &Search, state: &messages::State, offspring: &[f32]) -> [Vec<f32>; 3] {
    let mut rng = search.rng(state, "mutants");
    let mut redraw_one = |mutant: &mut [f32]| {
        let locus = below(&mut rng, mutant.len() as u64) as usize;
        mutant[locus] = gene(&mut rng, search.bounds);
    };
    let [mut one, mut some, mut all] = [(); 3].map(|()| offspring.to_vec());
    redraw_one(&mut one);
    if search.settings.mutants == Mutants::OneGene {
        redraw_one(&mut some);
        redraw_one(&mut all);
        return [one, some, all];
    }
    let length = some.len() as u64;
    let share = match search.settings.some {
        SomeGenes::AnyNumber => (1 + below(&mut rng, length), length),
        SomeGenes::Half => (1, 2),
    };
    mutate::redraw_each(&mut rng, &mut some, share, |rng, _, _| gene(rng, search.bounds));
    all.fill_with(|| gene(&mut rng, search.bounds));
    [one, some, all]
}

/// Updates the state with the fitness of the chromosomes that [`ask`] returned.
pub(super) fn tell(search: &Search, state: &mut messages::State, asked: Vec<f32>, sums: &[u64]) {
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
        let drawn = unit(&mut search.stream.word(state.iteration).text("acceptance").rng());
        let accepted = drawn < search.settings.acceptance.to_f64();
        if accepted {
            replace_worst(first_greatest(sums).expect("three mutants were judged"), true);
        } else {
            (0..sums.len()).for_each(|mutant| replace_worst(mutant, false));
        }
        state.offspring = 0;
        state.iteration += 1;
    }
}
