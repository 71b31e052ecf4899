//! Tests of the readings of both genetic algorithms, each against its definition.

use super::*;
use crate::{
    network::{Kind, Network},
    settings::SCHEMA,
};

const GENES: usize = Network::paper(Kind::Traditional).genes();

/// The search of a traditional network with these settings, line by line.
fn search(settings: &str) -> Search {
    let values = SCHEMA.read(&format!("network = traditional\niterations = 500\n{settings}")).unwrap();
    Search::new(&Settings::of(&values), Stream::from_words(5, 6))
}

fn improved(reading: &str) -> Search {
    search(&format!("population = 4\n{reading}"))
}

fn traditional(reading: &str) -> Search {
    search(&format!("algorithm = traditional\npopulation = 6\ncrossover = 0\nmutation = 0\n{reading}"))
}

/// The state after the first population, with these sums.
fn begun(search: &Search, sums: &[u64]) -> messages::State {
    let mut state = messages::State::default();
    let first = search.ask(&state);
    search.tell(&mut state, first, sums);
    state
}

fn chromosomes(genes: &[f32]) -> Vec<&[f32]> {
    genes.chunks(GENES).collect()
}

/// If w = 0.1 is the share of the bounds, the second candidate is 0.1 of the bound plus 0.9 of the parent's gene. The first
/// and the last candidate stay the same.
#[test]
fn w_may_be_the_share_of_the_bounds() {
    let [usual, other] = [improved(""), improved("weighs = bounds\n")];
    let state = begun(&usual, &[5, 0, 0, 0]);
    let [one, two] = [usual.ask(&state).genes, other.ask(&state).genes];
    let (one, two) = (chromosomes(&one), chromosomes(&two));
    assert_eq!([one[0], one[3]], [two[0], two[3]]);
    for (gene, parent) in chromosomes(&state.genes)[0].iter().enumerate() {
        let near = |value: f32, expected: f32| assert!((value - expected).abs() < 1e-6, "{value} {expected}");
        near(one[1][gene], 0.9 + 0.1 * parent);
        near(two[1][gene], 0.1 + 0.9 * parent);
        near(one[2][gene], -0.9 + 0.1 * parent);
        near(two[2][gene], -0.1 + 0.9 * parent);
    }
}

/// An offspring that is kept is judged after its mutants, and joins the population if it is fitter than the worst chromosome.
#[test]
fn offspring_may_join_the_population() {
    for keeps in [false, true] {
        let joins = if keeps { "offspring-too" } else { "mutants" };
        let search = improved(&format!("joins = {joins}\nacceptance = 0\n"));
        let mut state = begun(&search, &[5, 6, 7, 8]);
        let candidates = search.ask(&state);
        let offspring = chromosomes(&candidates.genes)[2].to_vec();
        search.tell(&mut state, candidates, &[1, 2, 9, 3]);
        let mutants = search.ask(&state);
        let asked = chromosomes(&mutants.genes);
        assert_eq!((asked.len(), asked.get(3).copied()), if keeps { (4, Some(&offspring[..])) } else { (3, None) });
        search.tell(&mut state, mutants, if keeps { &[1, 1, 1, 9] } else { &[1, 1, 1] });
        assert_eq!(state.sums, if keeps { [9, 6, 7, 8] } else { [5, 6, 7, 8] });
        assert_eq!(chromosomes(&state.genes)[0] == offspring, keeps);
        assert_eq!(search.evaluations(3), 4 + 3 * (7 + u64::from(keeps)));
    }
}

/// If only one chromosome has any fitness, it becomes both parents, unless they must differ.
#[test]
fn parents_may_be_required_to_differ() {
    for differ in [false, true] {
        let search = improved(if differ { "parents = different\n" } else { "" });
        let state = begun(&search, &[0, 0, 5, 0]);
        let mean = chromosomes(&search.ask(&state).genes)[0].to_vec();
        assert_eq!(mean != chromosomes(&state.genes)[2], differ);
    }
    let mut rng = Stream::root(1).rng();
    for _ in 0..1000 {
        let [mother, father] = parents(&mut rng, &[3, 1, 0, 2], Parents::Different);
        assert!(mother != father && mother < 4 && father < 4);
    }
}

/// Either half of the genes are redrawn, or any share of them, so sometimes few and sometimes nearly all.
#[test]
fn some_genes_may_be_any_number() {
    let changed = |search: &Search| -> Vec<usize> {
        let mut state = begun(search, &[5, 6, 7, 8]);
        let count = |_| {
            let candidates = search.ask(&state);
            let offspring = chromosomes(&candidates.genes)[0].to_vec();
            search.tell(&mut state, candidates, &[1, 0, 0, 0]);
            let mutants = search.ask(&state);
            let some = chromosomes(&mutants.genes)[1].to_vec();
            search.tell(&mut state, mutants, &[1, 2, 3]);
            some.iter().zip(&offspring).filter(|(new, old)| new != old).count()
        };
        (0..200).map(count).collect()
    };
    let [half, any] = [improved(""), improved("some = any-number\n")].map(|it| changed(&it));
    assert!(half.iter().all(|count| (20..70).contains(count)));
    assert!(any.iter().any(|count| *count < 10) && any.iter().any(|count| *count > 80));
}

/// Each of the three mutants differs from the offspring in one gene, and the mutants differ from each other.
#[test]
fn each_mutant_may_have_one_gene() {
    let search = improved("mutants = one-gene\n");
    let mut state = begun(&search, &[5, 6, 7, 8]);
    let mut alike = 0;
    for _ in 0..200 {
        let candidates = search.ask(&state);
        let offspring = chromosomes(&candidates.genes)[0].to_vec();
        search.tell(&mut state, candidates, &[1, 0, 0, 0]);
        let mutants = search.ask(&state);
        let all = chromosomes(&mutants.genes).iter().map(|mutant| mutant.to_vec()).collect::<Vec<_>>();
        assert_eq!(all.len(), 3);
        for mutant in &all {
            assert_eq!(mutant.iter().zip(&offspring).filter(|(new, old)| new != old).count(), 1);
        }
        alike += usize::from(all[0] == all[1] || all[1] == all[2]);
        search.tell(&mut state, mutants, &[1, 2, 3]);
    }
    assert_eq!(alike, 0);
}

/// Two children take the places of their parents, and the others stay. The best chromosome comes back if it was a parent and
/// no child is as fit.
#[test]
fn an_iteration_may_have_a_single_couple() {
    let search = traditional("births = couple\nparents = different\n");
    let (mut lost, mut stayed) = (0, 0);
    let mut state = begun(&search, &[1, 2, 3, 4, 5, 60]);
    while !search.finished(&state) {
        let children = search.ask(&state);
        assert_eq!(chromosomes(&children.genes).len(), 2);
        let before = state.clone();
        search.tell(&mut state, children, &[7, 8]);
        let changed = (0..6).filter(|place| before.sums[*place] != state.sums[*place]).count();
        // The places that may change: those of both parents, and that of the worst, where the best may come back.
        assert!(changed <= 3, "{before:?} {state:?}");
        assert_eq!(state.sums.iter().max(), Some(&60));
        assert_eq!(state.sums.iter().filter(|sum| **sum == 60).count(), 1);
        let moved = before.sums.iter().position(|sum| *sum == 60) != state.sums.iter().position(|sum| *sum == 60);
        if moved { lost += 1 } else { stayed += 1 }
    }
    assert!(lost > 0 && stayed > 0, "{lost} {stayed}");
    assert_eq!(search.evaluations(500), 6 + 1000);
}

/// A chromosome that is both parents is replaced by the fitter child.
#[test]
fn the_fitter_child_of_a_single_parent_survives() {
    let search = traditional("births = couple\n");
    for sums in [[7, 8], [8, 7]] {
        let mut state = begun(&search, &[0, 0, 5, 0, 0, 0]);
        let children = search.ask(&state);
        search.tell(&mut state, children, &sums);
        assert_eq!(state.sums, [0, 0, 8, 0, 0, 0]);
    }
}

/// With a probability of 1 every child has one mutated gene, and some genes stay.
#[test]
fn a_child_may_be_mutated_in_one_gene() {
    for (one_gene, expected) in [(true, 1), (false, GENES)] {
        let search = traditional(if one_gene { "mutation = 1\nmutates = child\n" } else { "mutation = 1\n" });
        let state = begun(&search, &[0, 0, 5, 0, 0, 0]);
        let children = search.ask(&state).genes;
        for child in chromosomes(&children) {
            let parent = chromosomes(&state.genes)[2];
            assert_eq!(child.iter().zip(parent).filter(|(new, old)| new != old).count(), expected);
        }
    }
}
