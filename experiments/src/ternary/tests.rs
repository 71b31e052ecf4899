//! Tests of `ternary` as a whole.

use serde_json::{Value, json};

use super::*;
use crate::{
    registry,
    testing::{digest, run_text, states_are_checked},
};

const SMALL: &str = "experiment = \"ternary\"\nreplicas = 2\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\n\
    random_games = 6\n[arms.\"short, 3\"]\n[arms.\"short, 9\"]\nalphabet = \"9\"\ncrossover = \"one-point\"\n\
    [arms.\"long, 3\"]\nstrings = \"long\"\nrandom_mover = \"rules\"\n[arms.\"O alone\"]\nside = \"O\"\nopponents = 0\n\
    crossover = \"none\"\n";

#[test]
fn the_report_of_a_small_run_is_pinned_and_readable() {
    let (config, replicas) = run_text(SMALL, &[]);
    let report = config.report(&replicas);
    let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(format!("{}\n{}\n{}", digest(&replicas), tables.join("\n"), report.notes.join("\n")));
    let figures: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(figures, ["win-X", "loss-X", "repairs-X", "win-O", "loss-O", "repairs-O"]);
}

/// The report can be made from a `result.json` alone. A result that lacks something is rejected with the reason.
#[test]
fn a_report_can_be_made_from_a_result() {
    let text = "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nrandom_games = 6\n\
        [arms.long]\nstrings = \"long\"\n[arms.short]\n[arms.\"short, O\"]\nside = \"O\"\n";
    let (config, replicas) = run_text(text, &[("replicas", "3")]);
    let report = config.report(&replicas);
    let mut result = json!({"experiment": "ternary", "seed": config.seed, "replicas": config.replicas});
    result.as_object_mut().unwrap().extend(report.json.as_object().unwrap().clone());
    let result: Value = serde_json::from_str(&result.to_string()).unwrap();
    let again = registry().report_of_result(&result).unwrap();
    assert_eq!((&again.tables, &again.notes, &again.figures), (&report.tables, &report.notes, &report.figures));
    // Only one pair of arms differs in a single compared setting.
    insta::assert_snapshot!(report.tables[2]);
    assert_eq!(report.json["contests"].as_array().map(Vec::len), Some(1));
    let lacks = |change: &dyn Fn(&mut Value), says: &str| {
        let mut result = result.clone();
        change(&mut result["arms"][0]);
        let sentence = registry().report_of_result(&result).unwrap_err();
        assert!(
            sentence.contains("the arm \"long\" of the result cannot be read: ") && sentence.contains(says),
            "{sentence}"
        );
    };
    lacks(&|arm| arm["replicas"] = 3.into(), "expected a sequence");
    lacks(&|arm| arm["replicas"][1]["course"]["broken"] = json!(["x", 2]), "replica 1: ");
    lacks(&|arm| arm["replicas"][1]["odds"]["random"]["win"] = "1/0".into(), "replica 1: \"1/0\" is not a probability");
    lacks(&|arm| arm["curves"]["loss"]["low"] = json!([0.5]), "the curve \"loss\": ");
}

#[test]
fn results_do_not_depend_on_slices() {
    let digest = |slice: &str| self::digest(&run_text(SMALL, &[("slice", slice)]).1);
    assert_eq!(digest("0"), digest("5"));
}

/// Every setting that results may depend on changes the result.
#[test]
fn every_setting_has_an_effect() {
    let base = "experiment = \"ternary\"\nreplicas = 1\n[settings]\npopulation = 10\ngenerations = 4\nopponents = 3\n\
        random_games = 3\n";
    let digest = |key: &str, value: &str| self::digest(&run_text(base, &[(key, value)]).1);
    let same = digest("seed", "1");
    for (key, value) in [
        ("side", "O"),
        ("strings", "long"),
        ("alphabet", "9"),
        ("classes", "symmetries"),
        ("generations", "5"),
        ("population", "11"),
        ("opponents", "4"),
        ("random_games", "4"),
        ("random_mover", "rules"),
        ("penalty", "9.5"),
        ("elite", "5"),
        ("crossover", "one-point"),
        ("crossover_rate", "0.1"),
        ("mutations", "20"),
    ] {
        assert_ne!(digest(key, value), same, "{key} = {value} changes nothing");
    }
}

#[test]
fn saved_states_are_restored_and_others_rejected() {
    let (config, replicas) = run_text(SMALL, &[]);
    let changes: &[&dyn Fn(&mut State)] = &[
        &|state| state.generation = 6,
        &|state| drop(state.populations.pop()),
        &|state| _ = state.populations[0].fitness.pop(),
        &|state| state.populations[0].genomes = vec![9; state.populations[0].genomes.len()].into(),
    ];
    states_are_checked(&config, &replicas, changes);
}

/// Selection and repair work: players lose less often than at the start.
#[test]
fn players_learn() {
    let text =
        "experiment = \"ternary\"\nreplicas = 2\n[settings]\ngenerations = 40\npopulation = 60\nstrings = \"long\"\n";
    for replica in run_text(text, &[]).1 {
        let history = replica.history();
        let (first, last) = (&history[0], &history[39]);
        assert!(last[Row::mean] > first[Row::mean] + 0.3, "mean fitness {} then {}", first[Row::mean], last[Row::mean]);
        assert!(
            last[Row::repairs] < 0.3 * first[Row::repairs],
            "repairs {} then {}",
            first[Row::repairs],
            last[Row::repairs]
        );
    }
}
