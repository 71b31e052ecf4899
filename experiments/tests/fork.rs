//! Every setting that a kind lets change after a round can really change: nothing before the round differs, the state stays as it
//! is, and something after the round differs.

mod small;

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Config, Replica},
    local, promises,
    settings::{Field, Shape, Value},
};
use evoxo_experiments::registry;
use small::SMALL;

/// Searches with all algorithms, with several kinds of genes, with a window, with islands, and with noise.
const SEARCHES: [&str; 13] = [
    "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 20\ntournament = 3",
    "problem = \"onemax\"\nlength = 12\npopulation = 20\nelite = 0.2",
    "problem = \"tsp\"\nlength = 9\npopulation = 20\nislands = 4\nmigration = 2",
    "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 20\nwindow = 7\nreal_mutation = \"gaussian\"",
    "algorithm = \"ga\"\nproblem = \"noisy-sphere\"\nlength = 3\npopulation = 20\nconfirmations = 2",
    "algorithm = \"cma-es\"\nproblem = \"sphere\"\nlength = 2\nrestarts = \"ipop\"\npopulation = 20",
    "algorithm = \"openai-es\"\nproblem = \"sphere\"\nlength = 4\npopulation = 20",
    "algorithm = \"nsga2\"\nproblem = \"zdt1\"\nlength = 4\npopulation = 20",
    "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\npopulation = 20\ninitial = 20",
    "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\ninitial = 20\nwindow = 5",
    "algorithm = \"nsga3\"\nproblem = \"dtlz2\"\nlength = 4\npopulation = 20",
    "algorithm = \"cma-mae\"\nproblem = \"arm\"\nlength = 4\npopulation = 10\nemitters = 2\ninitial = 20",
    "algorithm = \"pso\"\nproblem = \"sphere\"\nlength = 4\npopulation = 20",
];

/// More files, in which settings matter that do not in the small ones.
const MORE: [&str; 9] = [
    "experiment = \"menace\"\n[settings]\ngames = 300\nslice = 50\nevery = 50\nopponent = \"perfect\"\ndraw = -3\nloss = -4",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 4\ncycles = 12\nmutation = 0.1\nsimilar = \"penalise\"\n\
     similar_share = 0.4\nsimilar_penalty = 30\nfarming = \"couples\"",
    "experiment = \"rules\"\n[settings]\nagents = 4\nrules = 1\ncycles = 12\nmutation = 0\ncycles_per_task = 4",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nfathers = 4\ngenerations = 6\ngames = 20\nmore_mutations = 0.9",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\nmutations = \"clustered\"\nmutation = 0.2\n\
     similar = \"penalise\"\nsimilar_share = 0.3\ngenerator = \"rigged\"\nrigged_share = 0.7\nweak = \"replace\"\nfarming = \"couples\"",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\ngenerator = \"rigged\"\nrigged_share = 1\n\
     weak_at_times = \"replace\"\nweak_cycles = 2\nmutation = 0.5\ncycles_per_task = 1",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small\"\ngames = 40\ntest_every = 10\ntest_games = 20\nsegment_games = 10\n\
     opponent = \"benchmark\"\nschedule = \"linear\"\nepsilon = 0.3\nbiases = \"yes\"",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small-structured\"\ngames = 60\ntest_every = 20\ntest_games = 5\n\
     learners = 3\nepisodes = 2",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nalgorithm = \"traditional\"\nsegment = 9\nmutation = 0.5",
];

/// Other values of a setting, as text.
fn others(field: &Field, value: &Value) -> Vec<String> {
    let texts = match field.shape {
        Shape::Choice(words) => words.iter().map(|(word, _)| (*word).to_owned()).collect(),
        Shape::Integer { .. } | Shape::Signed { .. } => [1, 2, 3, 5, 9, 60].map(|number| number.to_string()).to_vec(),
        _ => ["0.05", "0.3", "0.7", "1", "4"].map(String::from).to_vec(),
    };
    let text = value.to_string();
    texts.into_iter().filter(|other| *other != text.trim_matches('"')).collect()
}

/// Computes a fork and its past, and compares them. Says whether they end differently.
fn differs(fork: &Config, at: u64, past: &[Replica]) -> bool {
    let mut differs = false;
    for (past, arm) in past.iter().zip(fork.arms.iter().flat_map(|arm| vec![arm; fork.replicas as usize])) {
        let place = format!("{} {:?}", fork.kind.name, fork.forks);
        let mut replica = Replica::start(fork, arm, past.index());
        while local::step(&mut replica).expect("planned tasks are good") {
            let saved = replica.save();
            let restored = Replica::restore(fork, &saved).expect("the saved state is valid");
            assert!(restored.save() == saved && restored.tasks() == replica.tasks(), "{place}");
            if replica.rounds() == at {
                replica = restored;
            }
        }
        let failure = replica.failure().unwrap_or_default();
        assert!(!failure.contains("cannot change after round"), "{place}: {failure}");
        let common = |replica: &Replica| {
            let links = replica.links().iter().filter(|link| link.round <= at);
            links.map(|link| (link.round, link.rows, link.digest)).collect::<Vec<_>>()
        };
        assert_eq!(common(&replica), common(past), "{place}");
        differs |= replica.digest() != past.digest();
    }
    differs
}

#[test]
fn declared_settings_can_change_after_a_round() {
    let searches = SEARCHES.map(|it| format!("experiment = \"evolve\"\n[settings]\nevaluations = 130\n{it}\n"));
    let files = SMALL.into_iter().chain(MORE).map(String::from);
    let mut without: BTreeSet<(&str, &str)> = BTreeSet::new();
    let kinds = registry().kinds().to_vec();
    for kind in &kinds {
        without.extend(kind.may_change.iter().map(|name| (kind.name, *name)));
        let fields = kind.schema.fields();
        let known = |name: &&str| fields.iter().any(|field| field.name == *name);
        assert!(kind.may_change.iter().all(known), "{}: {:?}", kind.name, kind.may_change);
    }
    for file in files.chain(searches) {
        let one = [("replicas".to_owned(), "1".to_owned())];
        let config = Config::parse(&registry(), "t", &file, &one).unwrap_or_else(|problems| panic!("{problems}"));
        if config.kind.may_change.is_empty() {
            continue;
        }
        let past = local::run(&config).unwrap();
        let rounds = past.iter().map(Replica::rounds).min().unwrap_or(0);
        let of_arm = config.arms[0].settings.clone();
        for (field, value) in of_arm.iter().filter(|(field, _)| config.kind.may_change.contains(&field.name)) {
            for other in others(field, value) {
                for at in [1, rounds / 2] {
                    // Some values do not go with other settings of the file.
                    let Ok(fork) = config.forked(&registry(), at, &[(field.name.into(), other.clone())]) else {
                        continue;
                    };
                    if fork != config && differs(&fork, at, &past) {
                        without.remove(&(config.kind.name, field.name));
                    }
                }
            }
        }
    }
    // No built-in problem has integer genes.
    without.remove(&("evolve", "integer_mutation"));
    assert!(without.is_empty(), "nothing changes with {without:?}");
}

/// A fork keeps the promises of its kind in every round.
#[test]
fn forks_meet_the_contract() {
    for (file, setting, other) in [
        (SMALL[2].to_owned(), "penalty", "1"),
        (SMALL[9].to_owned(), "mutations", "3"),
        (SMALL[12].to_owned(), "mutation", "0.3"),
        (SMALL[21].to_owned(), "alpha", "0.1"),
        (SMALL[23].to_owned(), "outer_rate", "0.5"),
        (format!("experiment = \"evolve\"\n[settings]\nevaluations = 90\n{}\n", SEARCHES[3]), "mutations", "3"),
    ] {
        let config = Config::parse(&registry(), "t", &file, &[("replicas".into(), "2".into())]);
        let config = config.unwrap_or_else(|problems| panic!("{problems}"));
        let fork = config.forked(&registry(), 2, &[(setting.into(), other.into())]);
        let fork = fork.unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(fork.forks.len(), 1);
        let _ = promises::check(&registry(), &fork.to_toml());
    }
}
