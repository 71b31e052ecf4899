//! `evoxo verify`: results that are as computed, and results that were doctored.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bytes::Bytes;
use evoxo_common::{
    envelope::{Kind, open, seal},
    experiment::ResultDigest,
};
use evoxo_coordinator::pack::{pack, split};
use evoxo_proto::v1;
use evoxo_tests::programs::{evoxo, program};
use prost::Message as _;
use serde_json::Value;

const FILE: &str = "experiment = \"invincible\"\nreplicas = 3\n[settings]\npopulation = 60\ngames = 100\n\
    generations = 5\nslice = 20\n[arms.\"O, 1\"]\npenalty = 1\n[arms.X]\nside = \"X\"\nfitness = \"exact\"\n";

/// Computes [`FILE`], or whatever the results in "good" lack.
fn run(desk: &Path) {
    fs::write(desk.join("table.toml"), FILE).expect("a file");
    let made = evoxo(desk, &["run", "table.toml", "--workers", "0", "--out", "good"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The output of `evoxo verify`, and its exit status.
fn verify(directory: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = evoxo(directory, &[&["verify"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).expect("a copy");
        }
    }
}

fn change_text(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path).expect("text");
    let changed = change(&text);
    assert_ne!(changed, text, "{} is unchanged", path.display());
    fs::write(path, changed).expect("a file");
}

fn change_result(directory: &Path, change: impl FnOnce(&mut Value)) {
    change_text(&directory.join("result.json"), |text| {
        let mut result: Value = serde_json::from_str(text).expect("JSON");
        change(&mut result);
        result.to_string()
    });
}

/// The objects of finished replicas, or of their copies, in the store of a run.
fn objects(directory: &Path, of: &str) -> Vec<PathBuf> {
    let found = fs::read_dir(directory.join("store/runs/table").join(of)).expect("a store");
    let mut objects: Vec<PathBuf> = found.map(|it| it.expect("an entry").path()).collect();
    objects.sort();
    objects
}

/// The sealed replicas in an object.
fn replicas_in(object: &Path) -> Vec<Bytes> {
    split(&fs::read(object).expect("an object").into()).expect("it is good")
}

/// Replaces the first replica of the first arm in the store by another one, with a valid checksum. Returns its object.
fn change_state(directory: &Path, change: impl FnOnce(&mut v1::ReplicaState)) -> PathBuf {
    let read = |sealed: &Bytes| v1::Finished::decode(open(Kind::Finished, sealed).expect("it is good")).expect("one");
    let is_first = |sealed: &Bytes| read(sealed).replica.is_some_and(|it| it.arm == "O, 1" && it.replica == 0);
    let has_first = |object: &PathBuf| replicas_in(object).iter().any(is_first);
    let path = objects(directory, "finished").into_iter().find(has_first).expect("the store has it");
    let mut replicas = replicas_in(&path);
    let first = replicas.iter_mut().find(|sealed| is_first(sealed)).expect("it is there");
    let mut stored = read(first);
    change(stored.replica.as_mut().expect("a replica"));
    *first = seal(Kind::Finished, &stored.encode_to_vec());
    fs::write(&path, pack(&replicas)).expect("an object");
    path
}

/// A careful forger changes the digest of a replica and that of the run, so that they agree.
fn change_digests(result: &mut Value) {
    let another = ResultDigest::of_state(&v1::ReplicaState::default());
    result["arms"][1]["replicas"][2]["digest"] = another.to_string().into();
    let digests = result["arms"].as_array().expect("arms").iter().flat_map(|arm| {
        let replicas = arm["replicas"].as_array().expect("replicas").iter();
        replicas.map(|replica| ResultDigest::parse(replica["digest"].as_str().expect("text")).expect("a digest"))
    });
    result["digest"] = ResultDigest::of_run(digests.collect::<Vec<ResultDigest>>()).to_string().into();
}

/// A forger changes the digest of a replica after its first round.
fn change_link(directory: &Path) {
    change_text(&directory.join("digests.csv"), |text| {
        let line = text.lines().find(|line| line.starts_with("X,1,")).expect("a digest of the replica");
        let digest = line.rsplit(',').next().expect("five fields");
        text.replace(digest, &format!("r1:{}", "0".repeat(64)))
    });
}

/// A bit of a stored replica flips, in both of its objects.
fn damage_state(directory: &Path) {
    let path = change_state(directory, |_| {});
    let mut bytes = fs::read(&path).expect("an object");
    bytes[40] ^= 1;
    let copies = directory.join("store/runs/table/finished-copy");
    fs::write(copies.join(path.file_name().expect("a name")), &bytes).expect("an object");
    fs::write(path, bytes).expect("an object");
}

/// The first line of a text that lists differences.
fn headline(text: &str) -> String {
    let count = text.lines().filter(|line| line.starts_with("  ")).count();
    let ending = if count == 1 { "" } else { "s" };
    format!("not as computed: {count} difference{ending}; computed again were all 6 replicas")
}

#[test]
fn genuine_results_pass_and_forged_ones_are_found() {
    let desk = tempfile::tempdir().expect("a directory");
    run(desk.path());
    let good = desk.path().join("good");
    let (text, status) = verify(desk.path(), &["good", "--threads", "2"]);
    assert!(text.starts_with("as computed: all 6 replicas, 30 rounds; digest "), "{text}");
    assert_eq!(status, Some(0));
    let (text, status) = verify(desk.path(), &["good/result.json", "--share", "20%", "--seed", "7"]);
    assert!(text.starts_with("as computed: 2 of 6 replicas, 10 of 30 rounds (--seed 7)"), "{text}");
    assert!(
        text.contains("result.json was given alone, so history.csv was not compared")
            && text.contains("curves and figures of replicas in result.json were not computed again")
            && status == Some(0),
        "{text}"
    );

    let doctored = |change: &dyn Fn(&Path), said: &str| {
        let bad = desk.path().join("bad");
        drop(fs::remove_dir_all(&bad));
        copy(&good, &bad);
        change(&bad);
        let (text, status) = verify(desk.path(), &["bad"]);
        assert!(text.starts_with(&headline(&text)) && text.contains(said), "{said}:\n{text}");
        assert_eq!(status, Some(1), "{text}");
        text
    };
    // The last row of a replica: the sentence names the round.
    let row = |directory: &Path| {
        change_text(&directory.join("history.csv"), |text| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let rows = lines.iter_mut().filter(|line| line.starts_with("X,1,"));
            *rows.last().expect("rows") += "5";
            lines.join("\n") + "\n"
        });
    };
    doctored(&row, "arm \"X\", replica 1, round 5: history.csv has ");
    let no_rows = |directory: &Path| {
        let keep = |line: &&str| !line.starts_with("X,2,");
        let path = directory.join("history.csv");
        change_text(&path, |text| text.lines().filter(keep).collect::<Vec<_>>().join("\n") + "\n");
    };
    doctored(&no_rows, "arm \"X\", replica 2, round 1: history.csv has only 0 of its rows");
    let digest = |directory: &Path| {
        change_result(directory, |result| result["digest"] = format!("r1:{}", "0".repeat(64)).into());
    };
    doctored(&digest, "but its replicas' digests give ");
    doctored(&change_link, "arm \"X\", replica 1, round 5: digests.csv has r1:0000");
    let digests = |directory: &Path| change_result(directory, change_digests);
    doctored(&digests, "arm \"X\", replica 2, round 5: result.json has the digest ");
    let table = |directory: &Path| {
        change_result(directory, |result| {
            let entry = result["arms"][0]["replicas"][0].as_object_mut().expect("a replica");
            let (_, figure) = entry.iter_mut().find(|(_, value)| value.is_f64()).expect("a figure of the table");
            *figure = 0.123_f64.into();
        });
    };
    doctored(&table, "result.json has 0.123 as arms[0].replicas[0].");
    let state = |directory: &Path| drop(change_state(directory, |state| state.rounds += 1));
    doctored(&state, "arm \"O, 1\", replica 0, round 5: the state in store/runs/table/finished/");
    doctored(&damage_state, "has changed since it was written");
    let champion = |directory: &Path| {
        let cards = fs::read_dir(directory.join("champions")).expect("champions");
        let card = cards.flatten().map(|entry| entry.path()).max().expect("one");
        change_text(&card, |text| text.replacen('1', "2", 1));
    };
    doctored(&champion, "differs from the computed one");

    // With a share, a wrong replica is found if it is drawn; `--json` has the findings.
    row(&good);
    let (text, status) = verify(desk.path(), &["good", "--share", "100%", "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&found["as_computed"], status), (&Value::Bool(false), Some(1)));
    let difference = &found["differences"][0];
    assert_eq!((&difference["arm"], &difference["round"]), (&"X".into(), &5.into()), "{text}");
    let outcomes = (0..8).map(|seed| verify(desk.path(), &["good", "--share", "30%", "--seed", &seed.to_string()]).1);
    let missed = outcomes.filter(|status| *status == Some(0)).count();
    assert!((1..8).contains(&missed), "2 of 6 replicas miss it sometimes: {missed} of 8 times");
}

/// The sentence may be worded by another build. Whoever changed it, the right one is shown.
#[test]
fn a_changed_conclusion_is_reported() {
    let desk = tempfile::tempdir().expect("a directory");
    run(desk.path());
    let result = desk.path().join("good/result.json");
    change_text(&result, |text| text.replace("\"conclusion\": \"", "\"conclusion\": \"Nobody knows. "));
    let output = evoxo(desk.path(), &["verify", "good/result.json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let told = "the conclusion in result.json differs from this build's, which is: ";
    assert!(output.status.success() && said.contains(told), "{said}");
}

/// The digests of most rounds are not kept. They are computed on request, and must fit the kept ones.
#[test]
fn the_digest_after_any_round_is_shown() {
    let desk = tempfile::tempdir().expect("a directory");
    let file = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 60\ntasks = 3\n";
    fs::write(desk.path().join("d.toml"), file).expect("a file");
    let made = evoxo(desk.path(), &["run", "d.toml", "--workers", "0", "--out", "good"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let csv = desk.path().join("good/digests.csv");
    let digest = |more: &[&str]| {
        let output = evoxo(desk.path(), &[&["digest", "good", "--json"], more].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let rounds = |json: Value| -> Vec<Value> {
            let replicas = json["replicas"].as_array().expect("replicas").iter();
            replicas.map(|replica| replica["rounds"][0].clone()).collect()
        };
        (serde_json::from_slice(&output.stdout).map(rounds).unwrap_or_default(), told)
    };
    let (kept, told) = digest(&["--round", "48"]);
    assert!(kept.len() == 2 && kept[0] != kept[1] && told.is_empty(), "{told}");
    // One replica has lost its digest after this round.
    change_text(&csv, |text| {
        text.lines().filter(|line| !line.contains(",1,48,")).map(|line| format!("{line}\n")).collect()
    });
    let (computed, told) = digest(&["--round", "48"]);
    assert_eq!(computed, kept);
    assert!(told.contains("the digest after round 48 is not kept: 1 replica is computed again"), "{told}");
    let (other, told) = digest(&["--round", "53", "--replica", "1"]);
    assert!(other.len() == 1 && other[0]["round"] == 53 && other[0]["digest"] != kept[1]["digest"], "{told}");
    let (none, told) = digest(&["--round", "61"]);
    assert!(none.is_empty() && told.contains("none of these replicas has 61 rounds"), "{told}");
    let (none, told) = digest(&["--round", "0"]);
    assert!(none.is_empty() && !told.is_empty(), "{told}");
    // The digest of an earlier round was changed.
    change_text(&csv, |text| {
        let line = text.lines().find(|line| line.contains(",1,40,")).expect("round 40 is stored");
        let digest = line.rsplit(',').next().expect("five fields");
        text.replace(digest, &format!("r1:{}", "0".repeat(64)))
    });
    let (none, told) = digest(&["--round", "53"]);
    assert!(none.is_empty() && told.contains("another digest after round 40 than this build computes"), "{told}");
}

/// The state of each replica is in the store, if there is a store.
#[test]
fn a_replica_missing_from_the_store_is_found() {
    let desk = tempfile::tempdir().expect("a directory");
    run(desk.path());
    let lacks = |change: &dyn Fn(&[PathBuf])| {
        let bad = desk.path().join("bad");
        drop(fs::remove_dir_all(&bad));
        copy(&desk.path().join("good"), &bad);
        ["finished", "finished-copy"].iter().for_each(|of| change(&objects(&bad, of)));
        let (text, status) = verify(desk.path(), &["bad", "--share", "1%"]);
        assert_eq!(status, Some(1), "{text}");
        text.matches("its state is missing in store/runs/table/finished").count()
    };
    let all: Vec<Vec<Bytes>> =
        objects(&desk.path().join("good"), "finished").iter().map(|object| replicas_in(object)).collect();
    let first = &all[0];
    let remove = |object: &PathBuf| fs::remove_file(object).expect("an object");
    assert_eq!(lacks(&|objects| remove(&objects[0])), first.len());
    // Objects have one replica or several, as they were finished: the other one may be in another object.
    let other = all.iter().flatten().next_back().expect("six replicas").clone();
    let another = [&[other], &first[1..]].concat();
    assert_eq!(
        lacks(&|objects| fs::write(&objects[0], pack(&another)).expect("an object")),
        1,
        "another replica in its place does not count"
    );
    assert_eq!(lacks(&|objects| objects.iter().for_each(remove)), 6);
    fs::remove_dir_all(desk.path().join("good/store")).expect("a store");
    assert_eq!(verify(desk.path(), &["good", "--share", "1%"]).1, Some(0), "fetched results have no store");
}

/// Damaged replicas are computed again and stored next to what is left of them.
#[test]
fn a_repaired_run_matches_the_computed_one() {
    let desk = tempfile::tempdir().expect("a directory");
    let run = || run(desk.path());
    run();
    let path = change_state(&desk.path().join("good"), |_| {});
    let damage = |path: &Path| {
        let bytes = fs::read(path).expect("an object");
        fs::write(path, &bytes[1..]).expect("an object");
    };
    damage(&path);
    let (text, status) = verify(desk.path(), &["good"]);
    assert!(text.contains("it is not needed, because other objects hold all replicas") && status == Some(0), "{text}");
    let name = path.file_name().expect("a name");
    damage(&desk.path().join("good/store/runs/table/finished-copy").join(name));
    let (text, status) = verify(desk.path(), &["good"]);
    assert!(text.starts_with("not as computed") && status == Some(1), "{text}");
    // The status does not depend on whether anybody reads the output: `evoxo verify good | head -0`.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let unread =
        Command::new(program("evoxo")).current_dir(desk.path()).args(["verify", "good"]).stdout(writer).status();
    assert_eq!(unread.expect("evoxo starts").code(), Some(1));
    run();
    let (text, status) = verify(desk.path(), &["good"]);
    assert!(text.contains("it is not needed, because other objects hold all replicas") && status == Some(0), "{text}");
    // Without results there is nothing to verify.
    fs::remove_file(desk.path().join("good/result.json")).expect("the file exists");
    let (text, status) = verify(desk.path(), &["good"]);
    assert!(
        text.contains("which a run writes when it is finished or stopped by Ctrl-C: the command") && status == Some(2),
        "{text}"
    );
}

#[test]
fn unverifiable_results_are_rejected_with_a_reason() {
    let desk = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(desk.path().join(name), text).expect("a file");
    write("x.json", "{\"experiment\": \"invincible\"}");
    write("y.json", "[1");
    for (arguments, said, expected) in [
        (&["none"][..], "file not found", 2),
        (&["x.json"], "it is not the result of a run", 1),
        (&["y.json"], "give a result.json, or a directory", 1),
        (&["x.json", "--share", "7"], "give a share from 0.0001% to 100%", 2),
    ] {
        let (text, status) = verify(desk.path(), arguments);
        assert!(text.contains(said) && status == Some(expected), "{arguments:?}: {status:?} {text}");
    }
}
