//! What every kind must keep: its promises, and pinned signatures.

use evoxo_common::{
    experiment::{Change, Config, Replica},
    local, promises,
    settings::{Scope, Value},
};
use evoxo_experiments::registry;

/// A small file of each kind, or several if its rounds can differ.
const SMALL: [&str; 23] = [
    "experiment = \"dispatch\"\n[settings]\nrounds = 3\ntasks = 5\npayload_bytes = 100\nreply_bytes = 50\nshared_bytes = 9",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nfathers = 4\ngenerations = 4\ngames = 20\nslice = 7",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nside = \"X\"\ngenerations = 4\nfitness = \"exact\"",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\ngenerations = 4\ngames = 20\nwin = 3\ndraw = 1\npenalty = 0.5",
    "experiment = \"league\"\nreplicas = 1",
    "experiment = \"league\"\nplayers = [{ who = \"random\" }, { who = \"filtered\" }, { who = \"alpha-beta:1\" }]\n\
     [settings]\ngame = \"connect-four\"\npairs = 7\npairs_a_round = 3",
    "experiment = \"menace\"\n[settings]\ngames = 60\nslice = 25",
    "experiment = \"menace\"\n[settings]\ngames = 60\nside = \"O\"\nopponent = \"itself\"\nmoves = \"all\"\nevery = 30\nslice = 9",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nrandom_games = 6\nslice = 5",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 0\nstrings = \"long\"\nside = \"O\"",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nclasses = \"symmetries\"\nslice = 5",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\ncycles_per_task = 4",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\nfarming = \"couples\"\ncouples_per_task = 4",
    "experiment = \"rules\"\n[settings]\nagents = 6\nrules = 300\ncycles = 5\ncycles_per_task = 2",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nevaluations = 300\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nfarming = \"evaluations\"\nalgorithm = \"traditional\"",
    "experiment = \"nndtf\"\n[settings]\nevaluations = 300\noffspring = 10\nalgorithm = \"cma-es\"\nsegment = 3",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nhidden = 5\ngene_min = -2\ngene_max = 3\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nfitness = \"ratio-of-sums\"\njoins = \"offspring-too\"\n\
     parents = \"different\"\nsome = \"any-number\"\nweighs = \"bounds\"\ntraining = \"teacher-play\"\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nalgorithm = \"traditional\"\nnetwork = \"logistic\"\n\
     births = \"couple\"\nmutates = \"child\"\noccupied = \"nothing\"\nstones = \"two-each\"\nsegment = 9",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small\"\ngames = 40\ntest_every = 10\ntest_games = 5\nsegment_games = 15",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"tuples\"\ngames = 20\ntest_every = 10\ntest_games = 50\nlearners = 3\n\
     momentum = \"0.9\"\naveraging_games = 30",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small-structured\"\ngames = 30\ntest_every = 15\ntest_games = 5\n\
     learners = 4",
];

#[test]
fn every_kind_keeps_its_promises() {
    for file in SMALL {
        let _ = promises::check(&registry(), file);
    }
}

/// Where a setting says that more of it only makes a run longer, what a shorter run has computed goes on to the same end.
#[test]
fn shorter_runs_go_on_to_the_same_end() {
    let mut kinds = std::collections::BTreeSet::new();
    for file in SMALL {
        let parse = |overrides: &[(String, String)]| {
            Config::parse(&registry(), "t", file, overrides).unwrap_or_else(|problems| panic!("{problems}"))
        };
        let short = parse(&[]);
        let settings = &short.arms[0].settings;
        let Some((field, value)) = settings.iter().find(|(field, _)| field.scope == Scope::Length) else { continue };
        let Value::Integer(value) = value else { panic!("{} is no whole number", field.name) };
        let long = parse(&[(field.name.into(), (2 * value).to_string())]);
        assert_eq!(short.change_from(&short), Change::None);
        assert!(matches!(long.change_from(&short), Change::Longer(_)));
        assert!(matches!(short.change_from(&long), Change::Other(_)));
        let expected = local::run(&long).unwrap();
        for (short, expected) in local::run(&short).unwrap().into_iter().zip(expected) {
            let mut replica = Replica::restore(&long, &Replica::lengthened(&long, short.save()).unwrap()).unwrap();
            while local::step(&mut replica).unwrap() {}
            assert_eq!(replica.digest(), expected.digest(), "{file}");
            assert_eq!(replica.history(), expected.history(), "{file}");
        }
        kinds.insert(short.kind.name);
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["dispatch", "invincible", "league", "menace", "rules", "ternary"]
    );
}

/// A change of these keeps workers of earlier builds out, and changes what runs compute.
#[test]
fn what_this_build_computes_is_pinned() {
    let registry = registry();
    let lines: Vec<String> =
        registry.kinds().iter().map(|kind| format!("{} {}", kind.name, registry.signature(kind))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
