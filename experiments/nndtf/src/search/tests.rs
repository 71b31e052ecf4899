//! Compares each search with its definition, step by step.

use super::*;
use crate::{
    network::{Kind, Network, RANGE},
    settings::SCHEMA,
};

const GENES: usize = Network::paper(Kind::Traditional).genes();

/// The search of a traditional network with these settings, line by line.
fn search(settings: &str) -> Search {
    let values = SCHEMA.read(&format!("network = traditional\n{settings}")).unwrap();
    Search::new(&Settings::of(&values), Stream::from_words(5, 6))
}

/// A search by the improved algorithm.
fn improved(acceptance: f64, iterations: u64) -> String {
    format!("iterations = {iterations}\npopulation = 4\nacceptance = {acceptance}\n")
}

fn traditional(iterations: u64) -> String {
    format!("algorithm = traditional\niterations = {iterations}\npopulation = 6\n")
}

fn adaptation(iterations: u64) -> String {
    format!("algorithm = cma-es\nevaluations = {}\noffspring = 8\nsigma = 0.3\n", 8 * iterations)
}

/// A simple fitness: the closeness of the genes to one half.
fn closeness(genes: &[f32]) -> u64 {
    let far: f64 = genes.iter().map(|gene| f64::from(gene - 0.5).abs()).sum();
    (1e6 * (2.0 - far / genes.len() as f64)) as u64
}

/// Performs one round.
fn step(search: &Search, state: &mut messages::State) -> Option<messages::Row> {
    let asked = search.ask(state);
    assert!(asked.genes.iter().all(|gene| (-1.0..=1.0).contains(gene)));
    let sums: Vec<u64> = asked.genes.chunks(GENES).map(closeness).collect();
    search.tell(state, asked, &sums)
}

#[test]
fn the_first_population_is_evaluated_before_the_first_iteration() {
    for (settings, count) in [(improved(0.5, 10), 4), (traditional(10), 6)] {
        let (search, mut state) = (search(&settings), messages::State::default());
        let asked = search.ask(&state).genes;
        assert_eq!(asked.len(), count * GENES);
        assert_eq!(step(&search, &mut state), None);
        assert_eq!((state.iteration, &state.genes), (0, &asked));
        assert_eq!(state.sums, asked.chunks(GENES).map(closeness).collect::<Vec<_>>());
    }
}

/// The candidates come from two chromosomes of the population. The state keeps the number of the fittest candidate. Its
/// mutants differ from it in one gene, in about half, and in (almost) all genes.
#[test]
fn an_iteration_of_the_improved_algorithm_follows_the_paper() {
    let (search, mut state) = (search(&improved(0.5, 100)), messages::State::default());
    step(&search, &mut state);
    for _ in 0..50 {
        let (before, candidates) = (state.clone(), search.ask(&state).genes);
        let parents = before.genes.chunks(GENES);
        let made = parents.clone().flat_map(|one| parents.clone().map(move |two| (one, two))).any(|(one, two)| {
            evoxo_common::evolve::cross::four_candidates(one, two, 0.1, RANGE).concat() == candidates
        });
        assert!(made);
        step(&search, &mut state);
        assert_eq!((state.iteration, &state.genes), (before.iteration, &before.genes));
        let fittest = candidates.chunks(GENES).map(closeness).max();
        let offspring = &candidates[GENES * (state.offspring as usize - 1)..][..GENES];
        assert_eq!(Some(closeness(offspring)), fittest);
        let mutants = search.ask(&state).genes;
        let changed = |mutant: &[f32]| mutant.iter().zip(offspring).filter(|(new, old)| new != old).count();
        let changed: Vec<usize> = mutants.chunks(GENES).map(changed).collect();
        assert!(changed[0] == 1 && (20..70).contains(&changed[1]) && changed[2] >= GENES - 1, "{changed:?}");
        step(&search, &mut state);
        assert_eq!((state.iteration, state.offspring), (before.iteration + 1, 0));
        replaced_as_the_paper_says(&before, &mutants, &state);
    }
}

/// Either the best mutant replaced the worst chromosome, or each mutant in turn that was fitter than the worst did.
fn replaced_as_the_paper_says(before: &messages::State, mutants: &[f32], after: &messages::State) {
    let worst = |sums: &[u64]| (0..sums.len()).min_by_key(|index| (sums[*index], *index)).unwrap();
    let mutants: Vec<&[f32]> = mutants.chunks(GENES).collect();
    let put = |state: &mut messages::State, mutant: &[f32]| {
        let at = worst(&state.sums);
        state.sums[at] = closeness(mutant);
        state.genes[at * GENES..][..GENES].copy_from_slice(mutant);
    };
    let mut anyway = before.clone();
    put(
        &mut anyway,
        mutants.iter().copied().reduce(|one, two| if closeness(two) > closeness(one) { two } else { one }).unwrap(),
    );
    let mut in_turn = before.clone();
    for mutant in mutants {
        if closeness(mutant) > in_turn.sums[worst(&in_turn.sums)] {
            put(&mut in_turn, mutant);
        }
    }
    assert!(after.sums == anyway.sums || after.sums == in_turn.sums);
}

/// With pa = 1 the best mutant always joins. With pa = 0 the population never gets worse.
#[test]
fn acceptance_is_a_probability() {
    for (acceptance, always) in [(1.0, true), (0.0, false)] {
        let (search, mut state) = (search(&improved(acceptance, 200)), messages::State::default());
        step(&search, &mut state);
        let mut worse = 0;
        while !search.finished(&state) {
            let least = state.sums.iter().min().copied();
            step(&search, &mut state);
            let best_mutant = search.ask(&state).genes.chunks(GENES).map(closeness).max().unwrap();
            step(&search, &mut state);
            assert!(!always || state.sums.contains(&best_mutant));
            worse += u32::from(state.sums.iter().min().copied() < least);
        }
        assert_eq!(worse > 0, always, "{worse}");
    }
}

/// The best chromosome is never lost. Children are blends of two parents, except for about a tenth of their genes.
#[test]
fn generations_of_the_traditional_algorithm_follow_the_paper() {
    let (search, mut state) = (search(&traditional(300)), messages::State::default());
    step(&search, &mut state);
    let start = state.sums.iter().max().copied();
    while !search.finished(&state) {
        let best = state.sums.iter().max().copied();
        step(&search, &mut state);
        assert!(state.sums.iter().max().copied() >= best);
        assert_eq!(state.genes.chunks(GENES).map(closeness).collect::<Vec<_>>(), state.sums);
    }
    assert!(state.sums.iter().max().copied() > start);
}

/// With `elite = "unless-equalled"`, children that are as fit replace the best chromosome; otherwise only a fitter child does.
#[test]
fn the_elite_survives_until_equalled_or_surpassed() {
    let [equalled, surpassed] = ["unless-equalled", "unless-surpassed"];
    for (setting, child, stays) in
        [(equalled, 6, true), (equalled, 7, false), (surpassed, 7, true), (surpassed, 8, false), (surpassed, 6, true)]
    {
        let search = search(&format!("{}elite = {setting}\n", traditional(10)));
        let mut state = messages::State::default();
        let first = search.ask(&state);
        search.tell(&mut state, first, &[1, 7, 2, 7, 3, 4]);
        let elite = search.chromosome(&state.genes, 1).to_vec();
        let children = search.ask(&state);
        let expected = children.genes.clone();
        search.tell(&mut state, children, &[5, child, 0, 1, 2, 3]);
        let is_there = state.genes.chunks(GENES).position(|genes| genes == elite);
        assert_eq!(is_there, stays.then_some(2), "{setting} {child}");
        assert_eq!(state.sums, [5, child, if stays { 7 } else { 0 }, 1, 2, 3]);
        let others = |genes: &[f32]| [&genes[..2 * GENES], &genes[3 * GENES..]].concat();
        assert_eq!(others(&state.genes), others(&expected));
    }
}

/// All searches improve on an easy problem, and cma-es improves most.
#[test]
fn all_searches_improve() {
    let reached = |settings: &str, iterations| {
        let (search, mut state) = (search(settings), messages::State::default());
        let mut rows = Vec::new();
        while !search.finished(&state) {
            rows.extend(step(&search, &mut state));
            assert_eq!(search.check(&state), Ok(()));
        }
        assert_eq!(
            rows.last().map(|row| (row.iteration, Some(row.best))),
            Some((iterations, state.sums.iter().max().copied()))
        );
        assert_eq!(rows.len() as u64, iterations.div_ceil(iterations.div_ceil(100)));
        closeness(champion(GENES, &state).unwrap().0)
    };
    let [improved, traditional, adaptation] =
        [(improved(0.5, 2000), 2000), (traditional(2000), 2000), (adaptation(1500), 1500)]
            .map(|(settings, iterations)| reached(&settings, iterations));
    insta::assert_snapshot!(format!("{improved} {traditional} {adaptation}"));
    assert!(improved > 1_500_000 && traditional > 1_500_000 && adaptation > 1_990_000);
}

/// Genes stay within any bounds, and reach beyond the paper's bounds.
#[test]
fn genes_stay_within_their_bounds() {
    let (least, most) = (-0.3, 2.7);
    for settings in [improved(0.5, 60), traditional(60), adaptation(60)] {
        let bounded = format!("{settings}gene_min = {least}\ngene_max = {most}\n");
        let (search, mut state) = (search(&bounded), messages::State::default());
        let mut beyond = 0;
        while !search.finished(&state) {
            let asked = search.ask(&state);
            assert!(asked.genes.iter().all(|gene| (least..=most).contains(gene)));
            beyond += asked.genes.iter().filter(|gene| **gene > 1.0).count();
            let sums: Vec<u64> = asked.genes.chunks(GENES).map(closeness).collect();
            search.tell(&mut state, asked, &sums);
            assert_eq!(search.check(&state), Ok(()));
        }
        assert!(beyond > 1000, "{beyond}");
    }
}

/// If all individuals are equally fit, the search has no direction, but its numbers remain finite.
#[test]
fn equal_fitness_keeps_numbers_finite() {
    let search = search("algorithm = cma-es\nevaluations = 12000\noffspring = 4\nsigma = 10\n");
    let mut state = messages::State::default();
    while !search.finished(&state) {
        let asked = search.ask(&state);
        search.tell(&mut state, asked, &[7; 4]);
        assert_eq!(search.check(&state), Ok(()));
    }
}

#[test]
fn mismatched_states_are_rejected() {
    let search = search(&improved(0.5, 10));
    let mut good = messages::State::default();
    (0..3).for_each(|_| _ = step(&search, &mut good));
    assert_eq!(search.check(&good), Ok(()));
    let with = |change: fn(&mut messages::State)| {
        let mut state = good.clone();
        change(&mut state);
        search.check(&state).unwrap_err()
    };
    assert!(with(|state| state.iteration = 11).contains("only 10"));
    assert!(with(|state| state.genes.truncate(7)).contains("the number of genes"));
    assert!(with(|state| state.genes[3] = 1.5).contains("gene 3 is 1.5"));
    assert!(with(|state| state.genes[3] = f32::NAN).contains("gene 3 is NaN"));
    assert!(with(|state| state.offspring = 5).contains("does not fit"));
    assert!(with(|state| state.distribution = vec![1.0]).contains("does not fit"));
    let shorter = |state: &mut messages::State| {
        state.sums.pop();
        state.genes.truncate(3 * GENES);
    };
    assert!(with(shorter).contains("does not fit"));
}
