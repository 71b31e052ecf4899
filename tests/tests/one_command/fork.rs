//! `evoxo fork`: a run that begins as another one and goes on with other settings.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use evoxo_tests::{live::objects_in, programs::program};
use serde_json::Value;

use crate::{Desk, kill, wait_until};

/// The command, with a fork of the arm "O, 1" in the run `parent`.
fn fork(desk: &Desk, arguments: &[&str]) -> Command {
    let mut command = Command::new(program("evoxo"));
    command.current_dir(desk.path("")).args(["fork", "parent"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const CHANGE: [&str; 4] = ["--at", "5", "--set", "arms.\"O, 1\".penalty=50"];

/// What the command prints to both outputs, and its status.
fn said(desk: &Desk, arguments: &[&str]) -> (String, Option<i32>) {
    let output = fork(desk, arguments).output().expect("evoxo starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code())
}

/// Forks into a directory of this name, successfully.
fn forked(desk: &Desk, out: &str, arguments: &[&str]) -> String {
    let (text, status) = said(desk, &[arguments, &["--out", out]].concat());
    assert_eq!(status, Some(0), "{text}");
    text
}

fn change(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path).expect("text");
    let changed = change(&text);
    assert_ne!(changed, text, "{} is unchanged", path.display());
    fs::write(path, changed).expect("a file");
}

#[test]
fn a_fork_has_one_digest_everywhere_and_parts_after_its_round() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--out", "parent"]);
    let text = forked(&desk, "none", &[&CHANGE[..], &["--workers", "0"]].concat());
    let sentence = "After round 5, penalty changes from 1 to 50 (arm \"O, 1\").";
    assert!(text.contains(&format!("- {sentence}\n")) && text.contains(&format!("note: {sentence}\n")), "{text}");
    let digest = |out: &str| desk.result(out)["digest"].clone();
    for workers in ["1", "3"] {
        forked(&desk, workers, &[&CHANGE[..], &["--workers", workers]].concat());
        assert_eq!(digest(workers), digest("none"));
    }
    // The file alone says what is computed, to every command.
    fs::copy(desk.path("none/config.toml"), desk.path("table.toml")).expect("a file");
    desk.run(&["--workers", "2", "--out", "file"]);
    assert_eq!(digest("file"), digest("none"));
    let evoxo = |arguments: &[&str]| {
        let output = Command::new(program("evoxo")).current_dir(desk.path("")).args(arguments).output();
        let output = output.expect("evoxo starts");
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
    };
    let (verified, status) = evoxo(&["verify", "none"]);
    assert!(verified.starts_with("as computed: all 6 replicas") && status == Some(0), "{verified}");
    let (report, _) = evoxo(&["report", "none/result.json"]);
    assert!(report.contains(sentence), "{report}");
    let (diff, status) = evoxo(&["diff", "parent", "none", "--json"]);
    let diff: Value = serde_json::from_str(&diff).expect("JSON");
    assert_eq!(status, Some(1));
    assert_eq!(diff["first"]["computed"]["parted_in_round"], 6, "{diff:#}");
    // The two futures are compared by pairs of replicas; those of the arm that did not change are equal.
    let tested = &diff["tested"];
    assert!(tested["test"].as_str().is_some_and(|test| test.starts_with("a paired t-test")), "{tested}");
    let mut of_x = tested["tests"].as_array().into_iter().flatten().filter(|test| test["arm"] == "X");
    assert_eq!(of_x.next().and_then(|test| test["p"].as_f64()), Some(1.0), "{tested}");
    assert!(
        evoxo(&["diff", "parent", "none"])
            .0
            .contains("\nIs the difference due to chance? Final worth of each replica\n")
    );
    let words: Vec<&str> =
        diff["replicas"].as_array().into_iter().flatten().filter_map(|it| it["is"].as_str()).collect();
    assert_eq!(words, ["different", "different", "different", "equal", "equal", "equal"]);
    assert_eq!(diff["notes"], serde_json::json!([format!("B: {sentence}")]));
    // A fork of the fork, and more replicas; a fork without a change.
    let parent = desk.path("parent");
    let again = [
        "fork",
        "none",
        "--at",
        "8",
        "--set",
        "arms.X.penalty=1",
        "--replicas",
        "4",
        "--workers",
        "0",
        "--out",
        "again",
    ];
    assert_eq!(evoxo(&again).1, Some(0));
    assert_eq!(desk.result("again")["forks"].as_array().map(Vec::len), Some(2));
    assert_eq!(desk.result("again")["arms"][0]["replicas"][1], desk.result("none")["arms"][0]["replicas"][1]);
    let same = forked(&desk, "same", &["--at", "5", "--workers", "0"]);
    assert!(same.contains("no setting changes, so this is the run in parent itself"), "{same}");
    assert_eq!(digest("same"), digest("parent"));
    // The experiment file goes to standard output, also from a result without its directory.
    fs::copy(parent.join("result.json"), desk.path("alone.json")).expect("a file");
    let (file, _) = evoxo(&[&["fork", "alone.json"], &CHANGE[..], &["--config"]].concat());
    assert_eq!(file, fs::read_to_string(desk.path("none/config.toml")).expect("a file"));
}

/// A fork is killed and continues; a fork of a killed run uses its checkpoint, and one of a finished run the states that it keeps.
#[test]
fn forks_survive_kills_and_use_stored_states() {
    let desk = Desk::new();
    let checkpoints = desk.path("parent/store/runs/table/checkpoint");
    let has_checkpoint = || !objects_in(&checkpoints).is_empty();
    // Checkpoints begin after three seconds, and a fast machine may finish the run before that.
    let mut games = 10_000;
    let games = loop {
        let games_set = format!("games={games}");
        let long = ["--set", "generations=100", "--set", &games_set, "--set", "keep=64 MiB", "--out", "parent"];
        let mut child = desk.command(&[&long[..], &["--workers", "2"]].concat()).spawn().expect("evoxo starts");
        wait_until("the run has a checkpoint or ends", || has_checkpoint() || desk.path("parent/result.json").exists());
        let found = has_checkpoint();
        kill("-KILL", child.id());
        child.wait().expect("the process ends");
        if found {
            break games_set;
        }
        fs::remove_dir_all(desk.path("parent")).expect("a directory");
        games *= 3;
    };
    let long = ["--set", "generations=100", "--set", &games, "--set", "keep=64 MiB", "--out"];
    let change = ["--at", "99", "--set", "penalty=50", "--out"];
    let begin = |out: &str, workers: &str| {
        let command = &[&change[..], &[out, "--workers", workers]].concat();
        let mut child = fork(&desk, command).spawn().expect("evoxo starts");
        let finished = desk.path(out).join("store/runs/parent-fork/finished");
        wait_until("a replica of the fork is finished", || !objects_in(&finished).is_empty());
        kill("-KILL", child.id());
        child.wait().expect("the process ends");
        forked(&desk, out, &[&change[..4], &["--workers", workers]].concat());
    };
    begin("killed", "3");
    forked(&desk, "stored", &[&change[..4], &["--workers", "2"]].concat());
    let uses_a_state = |out: &str| {
        let provenance = desk.result(out)["provenance"].clone();
        assert!(provenance["legs"][0]["rounds"][0].as_u64() > Some(0), "no stored state was used: {provenance}");
    };
    uses_a_state("stored");
    desk.run(&[&long[..], &["parent", "--workers", "2"]].concat());
    let runs = desk.path("parent/store/runs/table");
    let there = |kind: &str| objects_in(&runs.join(kind)).len();
    assert!(there("checkpoint") == 0 && there("kept") > 0, "{} states are kept", there("kept"));
    forked(&desk, "kept", &[&change[..4], &["--workers", "2"]].concat());
    uses_a_state("kept");
    fs::copy(desk.path("kept/config.toml"), desk.path("table.toml")).expect("a file");
    desk.run(&["--workers", "0", "--out", "whole"]);
    for out in ["killed", "stored", "kept"] {
        assert_eq!(desk.result(out)["digest"], desk.result("whole")["digest"], "{out}");
    }
}

#[test]
fn what_cannot_be_forked_is_refused_in_a_sentence() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--out", "parent", "--replicas", "1"]);
    for (arguments, sentence) in [
        (
            ["--at", "5", "--set", "fathers=3"],
            "fathers cannot change after a round; these settings of invincible can: penalty",
        ),
        (["--at", "5", "--set", "penalti=3"], "parent cannot be forked: --set penalti: unknown setting \"penalti\""),
        (["--at", "5", "--set", "seed=3"], "only settings and replicas can change in a fork"),
        (["--at", "12", "--set", "penalty=3"], "so it cannot fork after round 12: give 1 to 11"),
        (["--at", "0", "--set", "penalty=3"], "give a whole number from 1 to"),
    ] {
        let (text, status) = said(&desk, &[&arguments[..], &["--out", "refused"]].concat());
        assert!(text.contains(sentence) && status == Some(2), "{text}");
        assert!(!desk.path("refused").exists());
    }
    let (text, status) = said(&desk, &[&CHANGE[..], &["--out", "parent"]].concat());
    assert!(
        text.contains("parent contains a run with other settings (the tables [[fork]] differ)") && status == Some(2),
        "{text}"
    );
    // Digests that this build does not compute are noticed.
    change(&desk.path("parent/digests.csv"), |text| {
        let line = text.lines().find(|line| line.starts_with("\"O, 1\",0,3,")).expect("round 3");
        let other = text.lines().find(|line| line.starts_with("X,0,3,")).and_then(|line| line.rsplit(',').next());
        text.replace(line.rsplit(',').next().expect("a digest"), other.expect("a digest"))
    });
    let (text, status) = said(&desk, &[&CHANGE[..], &["--workers", "0", "--out", "of-forged"]].concat());
    let sentence = "replica 0 of arm \"O, 1\" differs from the one in parent after round 3, before the fork";
    assert!(text.contains(sentence) && status == Some(1), "{text}");
    // Another build.
    let signature = desk.result("parent")["provenance"]["signature"].as_str().expect("a signature").to_owned();
    change(&desk.path("parent/result.json"), |text| text.replace(&signature, &"0".repeat(64)));
    let (text, status) = said(&desk, &[&CHANGE[..], &["--out", "other"]].concat());
    assert!(text.contains("by a build whose tasks of invincible have other results") && status == Some(2), "{text}");
}
