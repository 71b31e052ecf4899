//! Runs as values, through the real program: `evoxo diff`, `cite` and `bisect`.

use std::{fs, path::Path, process::Command};

use evoxo_common::experiment::ResultDigest;
use evoxo_proto::v1;
use evoxo_tests::programs::{evoxo, example, program, said};
use serde_json::Value;

const FILE: &str = "experiment = \"invincible\"\nreplicas = 3\n[settings]\npopulation = 60\ngames = 100\n\
    generations = 5\nslice = 20\n[arms.\"O, 1\"]\npenalty = 1\n[arms.X]\nside = \"X\"\nfitness = \"exact\"\n";

/// The JSON that evoxo prints, and its exit status.
fn json(directory: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = evoxo(directory, &[arguments, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {errors}"));
    (value, output.status.code())
}

/// Computes [`FILE`] with these options into a directory of this name.
fn run(desk: &Path, name: &str, options: &[&str]) {
    fs::write(desk.join("table.toml"), FILE).expect("a file");
    let made = evoxo(desk, &[&["run", "table.toml", "--no-page", "--out", name], options].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

/// Changes a text file.
fn change(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path).expect("text");
    let changed = change(&text);
    assert_ne!(changed, text, "{} is unchanged", path.display());
    fs::write(path, changed).expect("a file");
}

/// Another build: the digests of replica 2 of arm X are other ones from round 3 on, everywhere that they are kept.
fn other_build(directory: &Path) {
    let zero = |round: u64| {
        ResultDigest::of_state(&v1::ReplicaState { rounds: round, replica: 77, ..v1::ReplicaState::default() })
    };
    let mut last = String::new();
    change(&directory.join("digests.csv"), |text| {
        let line = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let rows = fields.get(3).and_then(|rows| rows.parse::<u64>().ok());
            match rows.filter(|rows| line.starts_with("X,2,") && *rows >= 3) {
                Some(rows) => {
                    last = zero(rows).to_string();
                    format!("{},{last}\n", fields[..4].join(","))
                }
                None => format!("{line}\n"),
            }
        };
        text.lines().map(line).collect()
    });
    change(&directory.join("result.json"), |text| {
        let mut result: Value = serde_json::from_str(text).expect("JSON");
        result["arms"][1]["replicas"][2]["digest"] = last.into();
        result.to_string()
    });
}

#[test]
fn a_diff_says_what_differs_and_from_which_round_on() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, "one", &["--workers", "0"]);
    run(desk, "two", &["--workers", "2"]);
    let (text, status) = said(desk, &["diff", "one", "two"]);
    assert!(text.starts_with("equal, 6 of 6 replicas are equal; A is one, and B is two\n"), "{text}");
    assert!(text.contains("no result depends on it") && text.contains("workers") && status == Some(0), "{text}");

    // A setting of one arm.
    run(desk, "costly", &["--workers", "0", "--set", "arms.\"O, 1\".penalty=9"]);
    let (found, status) = json(desk, &["diff", "one", "costly"]);
    assert_eq!(status, Some(1));
    let setting = serde_json::json!([{"of": "O, 1", "name": "penalty", "a": "1", "b": "9"}]);
    assert_eq!(found["settings"], setting);
    let words: Vec<&str> =
        found["replicas"].as_array().expect("replicas").iter().filter_map(|it| it["is"].as_str()).collect();
    assert_eq!(words, ["different", "different", "different", "equal", "equal", "equal"]);
    let first = &found["first"];
    assert_eq!((&first["arm"], &first["replica"]), (&"O, 1".into(), &0.into()));
    assert_eq!(first["number"]["row"], 1);
    assert!(first["computed"]["parted_in_round"].is_u64(), "{found:#}");
    assert!(
        first["computed"]["a"]["as_computed"] == true && first["computed"]["b"]["as_computed"] == true,
        "{found:#}"
    );

    // A longer run begins with the shorter one.
    run(desk, "long", &["--workers", "0", "--set", "generations=8"]);
    let (found, status) = json(desk, &["diff", "one", "long"]);
    let all = found["replicas"].as_array().expect("replicas");
    assert!(status == Some(1) && all.len() == 6 && all.iter().all(|it| it["is"] == "equal so far"), "{found:#}");
    assert!(found["first"].is_null() && found["settings"][0]["of"] == "all arms", "{found:#}");

    // Other digests from row 3 on, with the same configuration: this build says who is right.
    copy(&desk.join("one"), &desk.join("lying"));
    other_build(&desk.join("lying"));
    let (text, status) = said(desk, &["diff", "one", "lying", "--kept"]);
    assert!(text.contains("different, 5 of 6 replicas are equal") && status == Some(1), "{text}");
    assert!(text.contains("The first that differs is replica 2 of arm \"X\"."), "{text}");
    assert!(text.contains("Their histories are equal as far as both go, so it is their states that differ."), "{text}");
    assert!(!text.contains("as this build computes"), "{text}");
    let (found, _) = json(desk, &["diff", "lying", "one", "--recompute"]);
    let computed = &found["first"]["computed"];
    assert_eq!((&computed["a"]["as_computed"], &computed["b"]["as_computed"]), (&false.into(), &true.into()));
    let bracket = found["replicas"].as_array().and_then(|all| all.last()).expect("replicas");
    let [after, by] =
        ["equal_after_round", "different_after_round"].map(|name| bracket[name].as_u64().expect("a round"));
    assert!(after < by && computed["a"]["other_digest_after_round"] == by, "{found:#}");

    // A history that is not the one of its digests is no base for a comparison.
    copy(&desk.join("one"), &desk.join("doctored"));
    let history = desk.join("doctored/history.csv");
    change(&history, |text| text.replacen("X,0,2,", "X,0,2.5,", 1));
    let (text, status) = said(desk, &["diff", "one", "doctored"]);
    assert!(text.contains("is not the history of this run") && status == Some(2), "{text}");
}

#[test]
fn runs_that_cannot_be_compared_are_refused_in_a_sentence() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, "one", &["--workers", "0", "--replicas", "1"]);
    fs::write(desk.join("other.toml"), "experiment = \"dispatch\"\nreplicas = 1\n[settings]\ntasks = 2\n")
        .expect("a file");
    assert!(evoxo(desk, &["run", "other.toml", "--workers", "0", "--out", "other"]).status.success());
    let (text, status) = said(desk, &["diff", "one", "other"]);
    assert!(text.contains("two kinds of experiments") && status == Some(1), "{text}");

    let refused = |name: &str, spoil: &dyn Fn(&Path), why: &str| {
        let bad = desk.join(name);
        copy(&desk.join("one"), &bad);
        spoil(&bad);
        let (text, status) = said(desk, &["diff", "one", name]);
        assert!(text.contains(why) && status == Some(2) && text.lines().count() == 1, "{name}: {text}");
    };
    refused("early", &|it| change(&it.join("result.json"), |text| text.replace("\"r1:", "\"")), "an earlier build");
    refused("torn", &|it| change(&it.join("digests.csv"), |text| text[..text.len() - 9].into()), "is damaged");
    refused("cut", &|it| change(&it.join("result.json"), |text| text[..text.len() / 2].into()), "is not JSON");
    refused("mixed", &|it| drop(fs::copy(desk.join("other/digests.csv"), it.join("digests.csv"))), "writes both again");
    let (text, status) = said(desk, &["diff", "one", "nowhere"]);
    assert!(text.contains("file not found") && status == Some(2), "{text}");
}

#[test]
fn a_citation_has_what_a_paper_needs() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, "one", &["--workers", "0", "--replicas", "1"]);
    let (cited, status) = json(desk, &["cite", "one"]);
    assert_eq!(status, Some(0));
    let result: Value = serde_json::from_slice(&fs::read(desk.join("one/result.json")).expect("a file")).expect("JSON");
    assert_eq!((&cited["digest"], &cited["config_hash"]), (&result["digest"], &result["config_hash"]));
    assert_eq!(cited["cost"], serde_json::json!({"replicas": 2, "rounds": result["rounds"], "generations": 10}));
    let (text, _) = said(desk, &["cite", "one"]);
    assert!(text.contains("@software{evoxo,") && text.contains("An Invincible Genetic Algorithm"), "{text}");

    // The command makes the run again, also from the result alone.
    fs::copy(desk.join("one/result.json"), desk.join("alone.json")).expect("a copy");
    let (alone, _) = json(desk, &["cite", "alone.json"]);
    assert!(
        alone["command"].as_str().is_some_and(|it| it.contains("cite alone.json --config > again.toml && ")),
        "{alone}"
    );
    fs::write(desk.join("again.toml"), evoxo(desk, &["cite", "alone.json", "--config"]).stdout).expect("a file");
    assert!(evoxo(desk, &["run", "again.toml", "--workers", "0", "--out", "again"]).status.success());
    assert_eq!(json(desk, &["cite", "again"]).0["digest"], result["digest"]);
    assert_eq!(said(desk, &["diff", "one", "again"]).1, Some(0));
}

#[test]
fn a_planted_bit_is_found_within_twelve_probes() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    let file = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 2000\ntasks = 1\npayload_bytes = 8\n";
    fs::write(desk.join("many.toml"), file).expect("a file");
    assert!(evoxo(desk, &["run", "many.toml", "--workers", "0", "--out", "many"]).status.success());
    let (real, flawed) = (program("evoxo"), example("flawed"));
    let bisect = |round: u64, options: &[&str]| {
        let output = Command::new(&real)
            .current_dir(desk)
            .env("FLAWED_EVOXO", &real)
            .env("FLAWED_ROUND", round.to_string())
            .args(["bisect", "many", "--threads", "1", "--old"])
            .arg(&real)
            .arg("--new")
            .arg(&flawed)
            .args(options)
            .output()
            .expect("evoxo starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    };
    let (text, errors, status) = bisect(731, &["--json"]);
    assert_eq!(status, Some(1), "{text}{errors}");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let first = &found["first"];
    assert_eq!((&first["round"], &first["arm"], &first["replica"]), (&731.into(), &"main".into(), &0.into()));
    assert!(found["probes"].as_u64().is_some_and(|probes| probes <= 12), "{found:#}");
    let values = first["state_byte"]["values"].as_array().expect("two values");
    assert_eq!(values[0].as_u64().map(|old| old ^ 1), values[1].as_u64(), "{found:#}");
    for round in [1, 2000] {
        let (text, errors, status) = bisect(round, &["--replica", "1"]);
        assert!(
            text.starts_with(&format!("Round {round} of 2000 is the first")) && status == Some(1),
            "{text}{errors}"
        );
    }
    let (text, errors, status) = bisect(2001, &[]);
    let same = "Both builds compute the same in every round: 2 replicas, 2 probes.\n";
    assert!(text == same && status == Some(0), "{text}{errors}");
    let (text, status) = said(desk, &["bisect", "many", "--old", "/bin/true", "--new", "/bin/true"]);
    assert!(text.contains("/bin/true does not answer as a build of evoxo does") && status == Some(2), "{text}");
    let (text, status) = said(desk, &["bisect", "many", "--old", "nowhere", "--new", "nowhere"]);
    assert!(text.contains("nowhere cannot be started") && status == Some(2), "{text}");
}
