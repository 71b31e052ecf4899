//! `evoxo schema result`: committed results conform to it, and so does the output of a run of every kind; and the checker
//! finds faults.

use std::{fs, path::Path, process::Command};

use evoxo_tests::{programs::program, registry, reproduction::results, schema::faults};
use serde_json::{Value, json};

/// A small run of each kind.
const SMALL: [(&str, &str); 10] = [
    ("calls", ""),
    ("dispatch", "[settings]\nrounds = 2\ntasks = 3\npayload_bytes = 10\nreply_bytes = 10\n"),
    ("evolve", "[settings]\nproblem = \"rosenbrock\"\nlength = 2\nevaluations = 90\n[arms.a]\n[arms.b]\nlength = 3\n"),
    (
        "invincible",
        "[settings]\npopulation = 60\ngames = 100\ngenerations = 3\nslice = 20\n[arms.O]\n[arms.X]\nside = \"X\"\n",
    ),
    ("league", "[settings]\nopenings = 1\n[[players]]\nwho = \"random\"\n[[players]]\nwho = \"perfect\"\n"),
    (
        "menace",
        "[ends]\nstagnates = 9\n[settings]\ngames = 40\n[arms.a]\n[arms.b]\nside = \"O\"\nopponent = \"perfect\"\n",
    ),
    ("nndtf", "[settings]\nboards = 30\niterations = 5\nevaluations = 200\npopulation = 8\n"),
    ("rules", "[settings]\nagents = 12\nrules = 30\ncycles = 9\n"),
    (
        "td3d",
        "[settings]\ngames = 200\ntest_every = 100\ntest_games = 10\nnetwork = \"small\"\n\
        [screen.factors]\nA.biases = [\"no\", \"yes\"]\nB.alpha = [0.005, 0.01]\n",
    ),
    (
        "ternary",
        "[settings]\ngenerations = 3\npopulation = 6\nopponents = 2\nrandom_games = 2\n[[fork]]\nat = 1\n\
        [fork.settings]\nmutations = 2\n",
    ),
];

fn schema() -> Value {
    let output = Command::new(program("evoxo")).args(["schema", "result"]).output().expect("evoxo starts");
    serde_json::from_slice(&output.stdout).expect("a schema")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a result")).expect("JSON")
}

#[test]
fn committed_results_conform() {
    let schema = schema();
    let results = results();
    assert!(results.len() > 20, "only {} results", results.len());
    let mut fractions = 0;
    for path in results {
        // Committed results are small; this command prints their usual form.
        let output =
            Command::new(program("evoxo")).args(["report", "--json"]).arg(&path).output().expect("the program starts");
        let name = path.display();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(faults(&schema, &result), Vec::<String>::new(), "{name}");
        assert!(result["schema"] == 1 && result["conclusion"].is_string(), "{name}");
        fractions += fractions_with_numbers(&result);
    }
    assert!(fractions > 1000, "numbers next to {fractions} fractions");
}

/// The names of arms that have no curve with a point.
fn without_curve(result: &Value) -> Vec<&Value> {
    let points = |curve: &&Value| curve["mean"].as_array().map_or(0, Vec::len);
    let has_one = |arm: &&Value| {
        let all = arm["curves"].as_object().map(|curves| curves.values().collect::<Vec<_>>());
        all.unwrap_or_else(|| vec![&arm["curve"]]).iter().any(|curve| points(curve) > 0)
    };
    result["arms"].as_array().expect("arms").iter().filter(|arm| !has_one(arm)).map(|arm| &arm["name"]).collect()
}

/// How many chances to win are written as exact fractions. Each must have a number next to it, except in settings.
fn fractions_with_numbers(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(fractions_with_numbers).sum(),
        Value::Object(entries) => {
            let here = entries.get("win").is_some_and(Value::is_string);
            assert!(!here || entries.get("win_number").is_some_and(Value::is_number), "no number next to {value}");
            let others = entries.iter().filter(|(key, _)| *key != "settings").map(|(_, value)| value);
            usize::from(here) + others.map(fractions_with_numbers).sum::<usize>()
        }
        _ => 0,
    }
}

#[test]
fn the_output_of_every_kind_conforms_and_errors_do_not() {
    let (schema, desk) = (schema(), tempfile::tempdir().expect("a temporary directory"));
    let known: Vec<&str> = SMALL.iter().map(|(kind, _)| *kind).collect();
    assert!(registry().kinds().iter().all(|kind| known.contains(&kind.name)), "a kind has no small run here");
    let mut fractions = 0;
    for (kind, settings) in SMALL {
        let file = desk.path().join(format!("{kind}.toml"));
        fs::write(&file, format!("experiment = \"{kind}\"\nreplicas = 2\n{settings}")).expect("a file");
        let out = desk.path().join(kind);
        let mut run = Command::new(program("evoxo"));
        let output =
            run.arg("run").arg(&file).args(["--workers", "0", "--out"]).arg(&out).output().expect("the program starts");
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let result = read(&out.join("result.json"));
        assert_eq!(faults(&schema, &result), Vec::<String>::new(), "{kind}");
        // Results of this build have all properties.
        let all = schema["properties"].as_object().expect("properties").keys();
        let of_kinds = ["claims", "contests", "ends", "forks", "screen"];
        let missing = all.filter(|name| !of_kinds.contains(&name.as_str()) && result.get(*name).is_none());
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new(), "{kind}");
        assert_eq!(result.get("screen").is_some(), kind == "td3d", "{kind}");
        assert_eq!(result.get("ends").is_some(), kind == "menace", "{kind}");
        assert_eq!(result.get("forks").is_some(), kind == "ternary", "{kind}");
        assert!(kind == "dispatch" || without_curve(&result).is_empty(), "{kind}: no curve in {result}");
        fractions += fractions_with_numbers(&result);
        for (change, fault) in [
            (json!({"seed": -1}), "result.seed is -1, and its minimum must be 0"),
            (json!({"state": "done"}), "result.state is \"done\", and its enum must be"),
            (json!({"arms": [{"name": "a", "settings": {"b": 1}, "replicas": []}]}), "result.arms[0].settings.b is 1"),
            (json!({"notes": [7]}), "result.notes[0] is 7, and its type must be \"string\""),
        ] {
            let mut wrong = result.clone();
            wrong.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
            let found = faults(&schema, &wrong);
            assert!(found.len() == 1 && found[0].starts_with(fault), "{found:?}");
        }
    }
    assert!(fractions > 4, "numbers next to fractions");
    assert_eq!(faults(&schema, &json!({})).len(), 8, "all required keys are reported");
}
