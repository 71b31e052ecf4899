//! Compares each search with its definition, step by step.

use crate::nndtf::messages;

use super::*;
use crate::nndtf::network::{Kind, Network};

const GENES: usize = Network::paper(Kind::Traditional).genes();

fn search(algorithm: Algorithm, iterations: u64) -> Search {
    bounded(algorithm, iterations, None)
}

fn bounded(algorithm: Algorithm, iterations: u64, bounds: Option<messages::Bounds>) -> Search {
    let message = messages::Search { algorithm: Some(algorithm), iterations, stream_high: 5, stream_low: 6, bounds };
    Search::new(GENES, &message).unwrap()
}

fn improved(acceptance: f64) -> Algorithm {
    Algorithm::Improved(messages::Improved { population: 4, weight: 0.1, acceptance, ..Default::default() })
}

fn traditional() -> Algorithm {
    elitist(false)
}

fn elitist(keeps_best: bool) -> Algorithm {
    Algorithm::Traditional(messages::Traditional {
        population: 6,
        crossover: 0.8,
        mutation: 0.1,
        shape: 5.0,
        keeps_best,
        ..Default::default()
    })
}

fn adaptation() -> Algorithm {
    Algorithm::Adaptation(messages::Adaptation { offspring: 8, sigma: 0.3 })
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
    for (algorithm, count) in [(improved(0.5), 4), (traditional(), 6)] {
        let (search, mut state) = (search(algorithm, 10), messages::State::default());
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
    let (search, mut state) = (search(improved(0.5), 100), messages::State::default());
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
        let (search, mut state) = (search(improved(acceptance), 200), messages::State::default());
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
    let (search, mut state) = (search(traditional(), 300), messages::State::default());
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

/// Without `keeps_best`, children that are as fit replace the best chromosome; with it, only a fitter child does.
#[test]
fn the_elite_survives_until_equalled_or_surpassed() {
    for (keeps_best, child, stays) in
        [(false, 6, true), (false, 7, false), (true, 7, true), (true, 8, false), (true, 6, true)]
    {
        let search = search(elitist(keeps_best), 10);
        let mut state = messages::State::default();
        let first = search.ask(&state);
        search.tell(&mut state, first, &[1, 7, 2, 7, 3, 4]);
        let elite = search.chromosome(&state.genes, 1).to_vec();
        let children = search.ask(&state);
        let expected = children.genes.clone();
        search.tell(&mut state, children, &[5, child, 0, 1, 2, 3]);
        let is_there = state.genes.chunks(GENES).position(|genes| genes == elite);
        assert_eq!(is_there, stays.then_some(2), "{keeps_best} {child}");
        assert_eq!(state.sums, [5, child, if stays { 7 } else { 0 }, 1, 2, 3]);
        let others = |genes: &[f32]| [&genes[..2 * GENES], &genes[3 * GENES..]].concat();
        assert_eq!(others(&state.genes), others(&expected));
    }
}

/// All searches improve on an easy problem, and cma-es improves most.
#[test]
fn all_searches_improve() {
    let reached = |algorithm, iterations| {
        let (search, mut state) = (search(algorithm, iterations), messages::State::default());
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
        [reached(improved(0.5), 2000), reached(traditional(), 2000), reached(adaptation(), 1500)];
    insta::assert_snapshot!(format!("{improved} {traditional} {adaptation}"));
    assert!(improved > 1_500_000 && traditional > 1_500_000 && adaptation > 1_990_000);
}

/// Genes stay within any bounds, reach beyond the paper's bounds, and invalid bounds are rejected.
#[test]
fn genes_stay_within_their_bounds() {
    let (least, most) = (-0.3, 2.7);
    for algorithm in [improved(0.5), traditional(), adaptation()] {
        let (search, mut state) =
            (bounded(algorithm, 60, Some(messages::Bounds { least, most })), messages::State::default());
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
    for (least, most) in [(1.0, 1.0), (2.0, -2.0), (f32::NAN, 1.0), (-1.0, f32::INFINITY), (-1001.0, 0.0)] {
        let bounds = Some(messages::Bounds { least, most });
        let message = messages::Search { algorithm: Some(improved(0.5)), iterations: 1, bounds, ..Default::default() };
        assert!(Search::new(GENES, &message).unwrap_err().contains("give bounds from -1000 to 1000"));
    }
}

/// If all individuals are equally fit, the search has no direction, but its numbers remain finite.
#[test]
fn equal_fitness_keeps_numbers_finite() {
    let search = search(Algorithm::Adaptation(messages::Adaptation { offspring: 4, sigma: 1000.0 }), 3000);
    let mut state = messages::State::default();
    while !search.finished(&state) {
        let asked = search.ask(&state);
        search.tell(&mut state, asked, &[7; 4]);
        assert_eq!(search.check(&state), Ok(()));
    }
}

#[test]
fn settings_out_of_range_are_rejected_with_a_reason() {
    let refused = |algorithm, iterations| {
        let message = messages::Search { algorithm, iterations, stream_high: 0, stream_low: 0, bounds: None };
        Search::new(114, &message).unwrap_err()
    };
    let sentences = [
        refused(None, 1),
        refused(Some(improved(0.5)), 0),
        refused(Some(improved(f64::NAN)), 1),
        refused(Some(Algorithm::Improved(messages::Improved { population: 1, ..Default::default() })), 1),
        refused(
            Some(Algorithm::Traditional(messages::Traditional {
                population: 7,
                crossover: 0.8,
                mutation: 0.1,
                shape: 5.0,
                ..Default::default()
            })),
            1,
        ),
        refused(
            Some(Algorithm::Traditional(messages::Traditional {
                population: 8,
                crossover: 1.8,
                mutation: 0.1,
                shape: 5.0,
                ..Default::default()
            })),
            1,
        ),
        refused(
            Some(Algorithm::Traditional(messages::Traditional {
                population: 8,
                crossover: 0.8,
                mutation: 0.1,
                shape: -1.0,
                ..Default::default()
            })),
            1,
        ),
        refused(Some(Algorithm::Adaptation(messages::Adaptation { offspring: 3, sigma: 0.3 })), 1),
        refused(Some(Algorithm::Adaptation(messages::Adaptation { offspring: 8, sigma: 0.0 })), 1),
    ];
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn mismatched_states_are_rejected() {
    let search = search(improved(0.5), 10);
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
