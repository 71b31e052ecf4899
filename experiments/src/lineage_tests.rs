//! The births of kinds without a search of their own agree with their populations.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::{
    card::Card,
    experiment::{Origin, Replica, mark, words},
    local,
};
use evoxo_games::table::TableGenome;

use crate::{rules::agent::Agent, ternary::player::Ternary, testing::parse};

/// The genes of a player of one of these kinds.
fn genes(card: &Card) -> Vec<u64> {
    let table = card.champion_as::<TableGenome>().map(|table| words(table.genes()));
    let string = || card.champion_as::<Ternary>().map(|string| words(&string.genome));
    let agent = || card.champion_as::<Agent>().map(|agent| agent.rules.iter().map(|rule| rule.code().into()).collect());
    table.or_else(string).or_else(agent).unwrap_or_else(|| panic!("another kind of card"))
}

/// Everybody in a population was born, from parents that were born before, with the genes that the birth says; and all of
/// these operators made genes.
fn check(file: &str, plays_first: bool, wanted: &[Origin]) {
    let config = parse(file);
    let mut replica = Replica::start(&config, &config.arms[0], 0);
    let (mut born, mut all, mut made) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    while !replica.is_finished() {
        let births = replica.births();
        let before = replica.population();
        local::step(&mut replica).unwrap();
        let after = replica.population();
        // New tables have not played yet; strings and agents have, and are known only afterwards.
        let known = if plays_first { &after } else { &before };
        all.extend(before.iter().chain(&after).map(genes).map(|genes| (mark(&genes), genes)));
        for birth in births.generations.into_iter().flatten() {
            assert!(birth.parents.iter().all(|parent| born.contains(parent)), "{file}");
            born.insert(birth.mark);
            made.extend(birth.origins.iter().map(|origin| origin.name()));
            let Some(own) = all.get(&birth.mark) else { continue };
            for (gene, origin) in birth.origins.iter().enumerate() {
                let parents = birth.parents.iter().map(|parent| all.get(parent).map(|genes| genes[gene]));
                let parents: Vec<Option<u64>> = parents.collect();
                match origin {
                    Origin::Parent(place) => {
                        assert!(parents[usize::from(*place)].is_none_or(|gene_of| gene_of == own[gene]), "{file}");
                    }
                    Origin::First => assert!(parents.is_empty(), "{file}"),
                    Origin::Crossover | Origin::Mutation | Origin::Repair => {}
                }
            }
        }
        assert!(known.iter().all(|card| born.contains(&mark(&genes(card)))), "{file}");
        let champion = replica.champion().map(|card| genes(&card));
        assert_eq!(replica.births().champion, champion, "{file}");
        assert!(champion.is_some_and(|genes| born.contains(&mark(&genes))), "{file}");
    }
    let wanted: BTreeSet<&str> = wanted.iter().map(|origin| origin.name()).collect();
    assert_eq!(made, wanted, "{file}");
}

#[test]
fn everybody_descends_from_the_first_population() {
    let [first, parent, mutation, repair] = [Origin::First, Origin::Parent(0), Origin::Mutation, Origin::Repair];
    check(
        "experiment = \"invincible\"\n[settings]\npopulation = 30\nfathers = 4\ngenerations = 6\ngames = 20\n\
         more_mutations = 0.9",
        false,
        &[first, parent, mutation],
    );
    for alphabet in ["alphabet = \"3\"", "alphabet = \"9\"\ncrossover = \"one-point\"\nside = \"O\""] {
        let file =
            "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nrandom_games = 6";
        check(&format!("{file}\n{alphabet}"), true, &[first, parent, mutation, repair]);
    }
    for farming in ["cycles_per_task = 1", "farming = \"couples\""] {
        let file = "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\nmutation = 0.2";
        check(&format!("{file}\n{farming}"), true, &[first, parent, mutation]);
        let weak = "weak = \"replace\"\nrepeated = \"replace\"\nplayers = \"by-weight\"\nparents = \"random\"";
        check(&format!("{file}\n{farming}\n{weak}"), true, &[first, parent, mutation, repair]);
    }
}

/// A candidate that was made before a change of settings has the parents that it had without the change.
#[test]
fn births_before_a_fork_are_those_of_its_past() {
    let file = "experiment = \"evolve\"\n[settings]\nproblem = \"onemax\"\nalgorithm = \"ga\"\nlength = 12\n\
                population = 6\nwindow = 4\n\
                evaluations = 60\nbaseline = \"none\"\n";
    let births = |fork: &str| {
        let config = parse(&format!("{file}{fork}"));
        let mut replica = Replica::start(&config, &config.arms[0], 0);
        let mut all = Vec::new();
        while !replica.is_finished() {
            all.push(replica.births().generations);
            local::step(&mut replica).unwrap();
        }
        all
    };
    let past = births("mutations = 1\n");
    for at in [20, 21, 33] {
        let fork = births(&format!("mutations = 9\n[[fork]]\nat = {at}\n[fork.settings]\nmutations = 1\n"));
        assert_eq!(fork[..=at], past[..=at]);
        assert_ne!(fork, past);
    }
}

/// A round may have many cycles: their births are those of as many rounds of one cycle.
#[test]
fn births_do_not_depend_on_the_grain() {
    let births = |farming: &str| {
        let config = parse(&format!(
            "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\nweak = \"replace\"\n{farming}"
        ));
        let mut replica = Replica::start(&config, &config.arms[0], 0);
        let mut all = Vec::new();
        while !replica.is_finished() {
            all.append(&mut replica.births().generations);
            local::step(&mut replica).unwrap();
        }
        all
    };
    let one = births("cycles_per_task = 1");
    assert_eq!(one.len(), 10);
    assert!(one == births("cycles_per_task = 4") && one == births("farming = \"couples\""));
}
