//! Tests of `menace` as a whole.

use serde_json::{Value, json};

use super::*;
use crate::{
    registry,
    testing::{digest, problems, run_text, states_are_checked},
};
use evoxo_common::experiment::Replica;

const SMALL: &str = "experiment = \"menace\"\nreplicas = 2\n[settings]\ngames = 60\nevery = 20\n[arms.random]\n\
    [arms.perfect]\nopponent = \"perfect\"\nempty = \"resign\"\n[arms.itself]\nopponent = \"itself\"\nside = \"O\"\n\
    moves = \"all\"\n";

#[test]
fn the_report_of_a_small_run_is_pinned_and_readable() {
    let (config, replicas) = run_text(SMALL, &[]);
    let report = config.report(&replicas);
    insta::assert_snapshot!(format!("{}\n{}\n{}", digest(&replicas), report.tables[0], report.notes.join("\n")));
    let figures: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(figures, ["perfect_draw", "lost"]);
    let places: Vec<f64> = report.figures[0].series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(places, [20.0, 40.0, 60.0], "the axis has games, not rows");
}

/// The report can be made from a `result.json` alone. A result that lacks something is rejected with the reason.
#[test]
fn a_report_can_be_made_from_a_result() {
    let (config, replicas) = run_text(SMALL, &[]);
    let report = config.report(&replicas);
    let mut result = json!({"experiment": "menace", "seed": config.seed, "replicas": config.replicas});
    result.as_object_mut().unwrap().extend(report.json.as_object().unwrap().clone());
    let result: Value = serde_json::from_str(&result.to_string()).unwrap();
    assert_eq!(registry().report_of_result(&result).as_ref(), Ok(&report));
    for (says, place) in [("expected a sequence", "/arms/1/last"), ("the curve \"lost\"", "/arms/1/curves/lost/low")] {
        let mut cut = result.clone();
        *cut.pointer_mut(place).unwrap() = "x".into();
        let sentence = registry().report_of_result(&cut).unwrap_err();
        assert!(sentence.contains("the arm \"perfect\" of the result cannot be read: ") && sentence.contains(says));
    }
}

#[test]
fn results_do_not_depend_on_slices() {
    let whole = run_text(SMALL, &[]).1;
    for slice in ["1", "7", "25", "60"] {
        let parts = run_text(SMALL, &[("slice", slice)]).1;
        assert_eq!(digest(&parts), digest(&whole));
        let history = |replicas: &[Replica]| replicas.iter().map(|it| it.history().to_vec()).collect::<Vec<_>>();
        assert_eq!(history(&parts), history(&whole));
    }
}

/// Every setting that results may depend on changes the result.
#[test]
fn every_setting_has_an_effect() {
    let base = "experiment = \"menace\"\nreplicas = 1\n[settings]\ngames = 100\nevery = 10\n";
    let digest = |key: &str, value: &str| self::digest(&run_text(base, &[(key, value)]).1);
    let same = digest("seed", "1");
    for (key, value) in [
        ("side", "O"),
        ("opponent", "perfect"),
        ("opponent", "itself"),
        ("games", "110"),
        ("moves", "all"),
        ("beads_1", "5"),
        ("beads_2", "5"),
        ("beads_3", "5"),
        ("beads_4", "5"),
        ("win", "4"),
        ("draw", "0"),
        ("loss", "-2"),
    ] {
        assert_ne!(digest(key, value), same, "{key} = {value} changes nothing");
    }
    // Against a perfect player, boxes become empty.
    let perfect = [("opponent", "perfect"), ("empty", "resign")];
    assert_ne!(self::digest(&run_text(base, &perfect).1), self::digest(&run_text(base, &perfect[..1]).1));
    let sentence = problems("experiment = \"menace\"\n[settings]\ngames = 105\n").to_string();
    assert!(sentence.contains("games is 105, which is not a multiple of every, 10"), "{sentence}");
}

#[test]
fn saved_states_are_restored_and_others_rejected() {
    let (config, replicas) = run_text(SMALL, &[]);
    let changes: &[&dyn Fn(&mut State)] = &[
        &|state| state.games = 80,
        &|state| state.games = 59,
        &|state| _ = state.beads.pop(),
        &|state| state.beads[0] = u32::MAX,
        &|state| {
            if state.other_beads.pop().is_none() {
                state.other_beads.push(1);
            }
        },
    ];
    states_are_checked(&config, &replicas, changes);
}

/// Machines learn from every opponent. After 400 games against a random mover, X wins more often than a random player (58 %).
/// Against a perfect player it draws more often than at the start.
#[test]
fn machines_learn() {
    let text = "experiment = \"menace\"\nreplicas = 6\n[settings]\ngames = 400\n[arms.random]\n[arms.perfect]\n\
        opponent = \"perfect\"\n[arms.itself]\nopponent = \"itself\"\n";
    let (_, replicas) = run_text(text, &[]);
    let mean = |arm: &str, row: usize, column: usize| {
        let rows = replicas.iter().filter(|replica| replica.arm() == arm).map(|replica| replica.history()[row][column]);
        rows.sum::<f64>() / 6.0
    };
    assert!(mean("random", 39, Row::win) > 0.65, "{}", mean("random", 39, Row::win));
    for arm in ["perfect", "itself"] {
        let [first, last] = [0, 39].map(|row| mean(arm, row, Row::perfect_draw));
        assert!(last > first + 0.1, "{arm}: {first} then {last}");
    }
}
