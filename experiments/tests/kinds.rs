//! What every kind must keep: its promises and its pinned signatures.

mod small;

use evoxo_common::{
    experiment::{Change, Config, Replica},
    local, promises,
    settings::{Scope, Value},
};
use evoxo_experiments::registry;
use small::SMALL;

#[test]
fn every_kind_meets_its_contract() {
    for file in SMALL {
        let _ = promises::check(&registry(), file);
    }
}

/// If a setting only makes a run longer, a shorter run can be continued to the same end.
#[test]
fn extended_runs_reach_the_same_end() {
    let mut kinds = std::collections::BTreeSet::new();
    for file in SMALL {
        let parse = |overrides: &[(String, String)]| {
            Config::parse(&registry(), "t", file, overrides).unwrap_or_else(|problems| panic!("{problems}"))
        };
        let short = parse(&[]);
        let settings = &short.arms[0].settings;
        let Some((field, value)) = settings.iter().find(|(field, _)| field.scope == Scope::Length) else { continue };
        let Value::Integer(value) = value else { panic!("{} is not a whole number", field.name) };
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
            // The rounds may have ended at other places, except for the last one.
            let end = |replica: &Replica| replica.links().last().map(|link| (link.rows, link.digest));
            assert_eq!(end(&replica), end(&expected), "{file}");
        }
        kinds.insert(short.kind.name);
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["dispatch", "invincible", "league", "menace", "rules", "td3d", "ternary"]
    );
}

/// A learning rate that falls over a whole trial has other values in a longer one.
#[test]
fn a_run_whose_beginning_depends_on_its_length_cannot_be_extended() {
    let config = |games: u32| {
        let file = format!(
            "experiment = \"td3d\"\n[settings]\nnetwork = \"small\"\ngames = {games}\ntest_every = 10\ntest_games = 5\n\
             segment_games = 10\nschedule = \"linear\""
        );
        Config::parse(&registry(), "t", &file, &[]).unwrap()
    };
    let why = "with schedule = \"linear\" the learning rate depends on the games of the whole trial";
    let change = config(40).change_from(&config(20));
    assert_eq!(change, Change::Other(format!("games is 20 there, and 40 here, and {why}")));
    let forked = config(20).forked(&registry(), 1, &[("games".into(), "40".into())]);
    assert!(forked.unwrap_err().to_string().contains(&format!("games cannot change in a fork, because {why}")));
}

/// With the table `[ends]`, replicas of every kind may end early. They then have the first rows of replicas that do not end
/// early.
#[test]
fn replicas_of_every_kind_can_end_before_their_length() {
    let mut ended = std::collections::BTreeSet::new();
    for file in SMALL {
        let ends = format!("{file}\n[ends]\nstagnates = 1\n");
        let parse = |file: &str| Config::parse(&registry(), "t", file, &[]);
        let whole = parse(file).unwrap_or_else(|problems| panic!("{problems}"));
        if let Some(instead) = whole.kind.own_end {
            assert!(parse(&ends).unwrap_err().to_string().contains(instead));
            continue;
        }
        let _ = promises::check(&registry(), &ends);
        let ends = parse(&ends).unwrap_or_else(|problems| panic!("{problems}"));
        let replicas = local::run(&ends).unwrap();
        for (replica, whole) in replicas.iter().zip(local::run(&whole).unwrap()) {
            let rows = replica.history().len();
            assert_eq!(replica.history(), &whole.history()[..rows], "{file}");
            if rows < whole.history().len() {
                ended.insert(ends.kind.name);
            }
        }
        let report = ends.report(&replicas);
        assert!(
            report.notes.iter().any(|note| note.starts_with("[ends]: a row without a better ")),
            "{:?}",
            report.notes
        );
    }
    assert_eq!(
        ended.into_iter().collect::<Vec<_>>(),
        ["invincible", "league", "menace", "nndtf", "rules", "td3d", "ternary"]
    );
}

/// If these change, workers of earlier builds are rejected, and runs give different results.
#[test]
fn the_results_of_this_build_are_pinned() {
    let registry = registry();
    let lines: Vec<String> =
        registry.kinds().iter().map(|kind| format!("{} {}", kind.name, registry.signature(kind))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
