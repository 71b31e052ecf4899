//! A finished run continues with more generations, cycles, games, pairs or evaluations. Its files are those of a run that had
//! them from the start.

use std::{fs, path::Path, process::Output};

use evoxo_tests::live::objects_in;
use serde_json::Value;

use crate::{Desk, files, kill, wait_until};

/// A small file of each kind that can be continued, and the setting with the value that makes it longer.
const KINDS: [(&str, &str); 12] = [
    ("experiment = \"dispatch\"\n[settings]\nrounds = 3\ntasks = 4\npayload_bytes = 20", "rounds=5"),
    (
        "experiment = \"invincible\"\n[settings]\npopulation = 30\nfathers = 4\ngenerations = 3\ngames = 20",
        "generations=7",
    ),
    (
        "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 3\nopponents = 4\nrandom_games = 6",
        "generations=5",
    ),
    ("experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\ncycles_per_task = 4", "cycles=21"),
    (
        "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 5\nfarming = \"couples\"\ncouples_per_task = 4",
        "cycles=8",
    ),
    ("experiment = \"menace\"\n[settings]\ngames = 90\nslice = 25\nopponent = \"itself\"", "games=160"),
    (
        "experiment = \"league\"\n[settings]\ngame = \"score-four\"\npairs = 8\nplayers = [{ who = \"random\" }, \
        { who = \"filtered\" }, { who = \"benchmark\" }]",
        "pairs=12",
    ),
    // Rounds of 3 openings. The shorter run ends with a round of one.
    (
        "experiment = \"league\"\n[settings]\ngame = \"connect-four\"\npairs = 7\npairs_a_round = 3\n\
        players = [{ who = \"random\" }, { who = \"filtered\" }]",
        "pairs=10",
    ),
    // Generations of 10; the shorter run ends in the middle of one.
    (
        "experiment = \"evolve\"\n[settings]\nproblem = \"sphere\"\nalgorithm = \"ga\"\nlength = 4\npopulation = 20\nevaluations = 105",
        "evaluations=160",
    ),
    (
        "experiment = \"evolve\"\n[settings]\nproblem = \"zdt1\"\nlength = 4\nalgorithm = \"nsga2\"\npopulation = 20\nwindow = 6\n\
        evaluations = 90",
        "evaluations=150",
    ),
    // A search whose answer is confirmed after its end.
    (
        "experiment = \"evolve\"\n[settings]\nproblem = \"noisy-sphere\"\nlength = 3\nalgorithm = \"cma-es\"\nevaluations = 100\n\
        confirmations = 3",
        "evaluations=200",
    ),
    (
        "experiment = \"evolve\"\n[settings]\nproblem = \"arm\"\nlength = 4\nalgorithm = \"map-elites\"\nevaluations = 250",
        "evaluations=420",
    ),
];

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

/// The files that a run has written, except those that depend on how it was computed.
fn written(desk: &Desk, out: &str) -> Vec<(String, String)> {
    let directory = desk.path(out);
    let champions = directory.join("champions");
    let mut names = vec!["history.csv".to_owned(), "config.toml".to_owned()];
    if champions.is_dir() {
        names.extend(files(&champions).into_iter().map(|name| format!("champions/{name}")));
    }
    names.into_iter().map(|name| (name.clone(), text(&directory.join(name)))).collect()
}

#[test]
fn every_extendable_kind_continues() {
    for (file, longer) in KINDS {
        let desk = Desk::new();
        fs::write(desk.path("table.toml"), file.replace("\n[settings]", "\nreplicas = 2\n[settings]")).expect("a file");
        desk.run(&["--workers", "0", "--out", "on"]);
        let short = desk.result("on")["digest"].clone();
        // More replicas are added at the same time, and the second time there is nothing to do.
        let arguments = ["--set", longer, "--replicas", "3"];
        desk.run(&[&["--workers", "0", "--out", "on"], &arguments[..]].concat());
        let again = desk.run(&[&["--out", "on"], &arguments[..]].concat());
        desk.run(&[&["--workers", "0", "--out", "whole"], &arguments[..]].concat());
        let digest = |out: &str| desk.result(out)["digest"].clone();
        assert_eq!(digest("on"), digest("whole"), "{file}");
        assert!(digest("on") != short && again.contains(digest("on").as_str().expect("a digest")));
        assert_eq!(written(&desk, "on"), written(&desk, "whole"), "{file}");
        assert_eq!(files(&desk.path("on")), files(&desk.path("whole")), "no other file is left");
        assert_eq!(desk.result("on")["provenance"]["legs"].as_array().map(Vec::len), Some(2));
    }
}

/// A cluster continues what was computed on one thread. Killed at any time, it continues again.
#[test]
fn a_longer_run_survives_kills() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--out", "on"]);
    let longer = ["--set", "generations=60", "--out"];
    desk.run(&[&longer[..], &["whole", "--workers", "0"]].concat());
    // As if it had been killed between its two renames.
    fs::rename(desk.path("on/store"), desk.path("on/store.before")).expect("a directory");
    fs::create_dir(desk.path("on/store.new")).expect("a directory");
    let mut child = desk.command(&[&longer[..], &["on", "--workers", "2"]].concat()).spawn().expect("evoxo starts");
    let checkpoints = desk.path("on/store/runs/table/checkpoint");
    wait_until("the longer run has begun", || !objects_in(&checkpoints).is_empty());
    kill("-KILL", child.id());
    child.wait().expect("the process ends");
    desk.run(&[&longer[..], &["on", "--workers", "2"]].concat());
    assert_eq!(desk.result("on")["digest"], desk.result("whole")["digest"]);
    assert_eq!(written(&desk, "on"), written(&desk, "whole"));
}

/// If a greater number changes what was computed before, or if the number is smaller, the directory is refused with that
/// number, and stays unchanged.
#[test]
fn other_changes_are_rejected() {
    let desk = Desk::new();
    let networks =
        "experiment = \"nndtf\"\nreplicas = 1\n[settings]\nboards = 9\nalgorithm = \"traditional\"\niterations = 5\n";
    let invincible = text(&desk.path("table.toml"));
    for (file, change, says) in [
        (networks, "iterations=6", "iterations is 5 there, and 6 here"),
        (invincible.as_str(), "generations=11", "generations is 12 there, and 11 here"),
        (invincible.as_str(), "games=501", "games is 500 there, and 501 here"),
    ] {
        fs::write(desk.path("table.toml"), file).expect("a file");
        let out = change.split('=').next().expect("a name");
        desk.run(&["--workers", "0", "--out", out]);
        let before = (files(&desk.path(out)), written(&desk, out));
        let Output { status, stderr, .. } =
            desk.command(&["--set", change, "--out", out]).output().expect("evoxo starts");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && said.contains(says) && said.contains("other settings"), "{said}");
        assert_eq!((files(&desk.path(out)), written(&desk, out)), before);
    }
}

/// A run's directory is shown with all its players, as text and as JSON, whether their cards were written or not.
#[test]
fn all_players_of_a_run_are_shown() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--set", "population=20", "--set", "generations=2", "--replicas", "2"]);
    let show = |arguments: &[&str]| {
        let program = evoxo_tests::programs::program("evoxo");
        let output =
            std::process::Command::new(program).current_dir(desk.path("")).arg("show").args(arguments).output();
        output.expect("evoxo starts")
    };
    let json: Value =
        serde_json::from_slice(&show(&["out/table", "--populations", "--json", "--first", "1"]).stdout).expect("JSON");
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(2 * 2 * 20));
    assert!(json["X-1-19"][0]["board"].is_string(), "{json}");
    let shown = String::from_utf8(show(&["out/table", "--populations", "--first", "1"]).stdout).expect("text");
    assert!(shown.matches("A table that plays X").count() == 40 && shown.contains("O-1-0-0: "), "{shown}");
    // Without a request for all players, the champions are shown: from the store or, after a fetch, from their cards.
    let champions = show(&["out/table", "--json"]).stdout;
    fs::remove_dir_all(desk.path("out/table/store")).expect("a directory");
    assert_eq!(show(&["out/table", "--json"]).stdout, champions);
    let json: Value = serde_json::from_slice(&show(&["out/table", "--json"]).stdout).expect("JSON");
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(4), "the JSON output has the champions");
}
