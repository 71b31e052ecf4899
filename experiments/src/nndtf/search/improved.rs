//! The improved genetic algorithm (Ling and Lam 2011, section 4; Leung, Lam, Ling and Tam 2003).
//!
//! An iteration has two rounds. Two parents are chosen by the roulette wheel (they may be the same chromosome), and the
//! fittest of their four candidates is the offspring. Three mutants of it are evaluated: one gene redrawn, each gene
//! redrawn with probability 1/2, all genes redrawn. With the probability of acceptance the fittest mutant replaces the
//! worst chromosome even if it is less fit; otherwise each mutant in turn replaces the then worst chromosome, if it is
//! fitter. As in the paper, the offspring itself never joins the population.

use crate::nndtf::messages;

use super::{CHROMOSOMES_MAX, Search, first_greatest, first_least, is_probability, shares};
use crate::nndtf::network::gene;
use evoxo_common::{
    evolve::{cross, mutate, select},
    rng::{below, unit},
};

/// Checks that the parameters are in range.
pub(super) fn check(improved: &messages::Improved) -> Result<(), String> {
    let messages::Improved { population, weight, acceptance } = *improved;
    if !(2..=CHROMOSOMES_MAX as u32).contains(&population) {
        return Err(format!("a population has 2 to {CHROMOSOMES_MAX} chromosomes, not {population}"));
    }
    if !is_probability(weight.into()) || !is_probability(acceptance) {
        return Err(format!("w and pa are from 0 to 1, not {weight} and {acceptance}"));
    }
    Ok(())
}

/// The first population, an iteration's four candidates, or its three mutants.
pub(super) fn ask(search: &Search, improved: &messages::Improved, state: &messages::State) -> Vec<f32> {
    if state.sums.is_empty() {
        return search.random(state, improved.population);
    }
    let mut rng = search.rng(state, "parents");
    let fitness = shares(&state.sums);
    let [mother, father] = [(); 2].map(|()| search.chromosome(&state.genes, select::roulette(&mut rng, &fitness)));
    let candidates = cross::four_candidates(mother, father, improved.weight, search.bounds);
    match state.offspring {
        0 => candidates.concat(),
        chosen => mutants(search, state, &candidates[chosen as usize - 1]).concat(),
    }
}

fn mutants(search: &Search, state: &messages::State, offspring: &[f32]) -> [Vec<f32>; 3] {
    let mut rng = search.rng(state, "mutants");
    let [mut one, mut some, mut all] = [(); 3].map(|()| offspring.to_vec());
    let locus = below(&mut rng, one.len() as u64) as usize;
    one[locus] = gene(&mut rng, search.bounds);
    mutate::redraw_each(&mut rng, &mut some, (1, 2), |rng, _, _| gene(rng, search.bounds));
    all.fill_with(|| gene(&mut rng, search.bounds));
    [one, some, all]
}

/// Updates the state with the fitness of what [`ask`] returned.
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
            (0..3).for_each(|mutant| replace_worst(mutant, false));
        }
        state.offspring = 0;
        state.iteration += 1;
    }
}
