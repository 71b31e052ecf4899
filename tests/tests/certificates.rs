//! `evoxo certify` and `evoxo challenge`: certificates that are genuine, and all ways to forge one.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use evoxo_common::{digest::Digest, experiment::ResultDigest};
use evoxo_proto::v1;
use evoxo_tests::programs::{evoxo, said};
use prost::Message as _;
use serde_json::{Value, json};

const FILE: &str = "experiment = \"invincible\"\nreplicas = 3\n[settings]\npopulation = 60\ngames = 100\n\
    generations = 8\nslice = 20\n[arms.\"O, 1\"]\npenalty = 1\n[arms.X]\nside = \"X\"\nfitness = \"exact\"\n";

/// A change of a statement.
type Change<'a> = &'a dyn Fn(&mut Value);

/// Computes a file into a directory.
fn run(desk: &Path, file: &str, name: &str, options: &[&str]) {
    fs::write(desk.join("run.toml"), file).expect("a file");
    let (text, status) =
        said(desk, &[&["run", "run.toml", "--workers", "0", "--no-page", "--out", name], options].concat());
    assert_eq!(status, Some(0), "{text}");
}

fn certify(desk: &Path, name: &str, out: &str, options: &[&str]) {
    let (text, status) = said(desk, &[&["certify", name, "--out", out], options].concat());
    assert!(status == Some(0) && text.contains(&format!("challenge {out} --seed TEXT")), "{text}");
}

/// The findings of a challenge, and its exit status.
fn challenge(desk: &Path, file: &str, seed: &str, share: &str) -> (Value, Option<i32>) {
    let output = evoxo(desk, &["challenge", file, "--seed", seed, "--share", share, "--json"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {errors}")), output.status.code())
}

/// The statement in a certificate.
fn statement(desk: &Path, file: &str) -> Value {
    let envelope: Value = serde_json::from_slice(&fs::read(desk.join(file)).expect("a file")).expect("JSON");
    let payload = STANDARD.decode(envelope["payload"].as_str().expect("text")).expect("base64");
    serde_json::from_slice(&payload).expect("JSON")
}

/// Writes a copy of a certificate with another statement and the old signatures.
fn forge(desk: &Path, file: &str, forged: &str, change: impl FnOnce(&mut Value)) {
    let mut envelope: Value = serde_json::from_slice(&fs::read(desk.join(file)).expect("a file")).expect("JSON");
    let mut statement = statement(desk, file);
    change(&mut statement);
    envelope["payload"] = STANDARD.encode(statement.to_string()).into();
    fs::write(desk.join(forged), envelope.to_string()).expect("a file");
}

/// Sets the hash of a file or of the run in a statement.
fn set_hash(statement: &mut Value, name: &str, hash: &str) {
    let subjects = statement["subject"].as_array_mut().expect("a list");
    let subject = subjects.iter_mut().find(|subject| subject["name"] == name).expect("the subject");
    for value in subject["digest"].as_object_mut().expect("hashes").values_mut() {
        *value = hash.into();
    }
}

fn hash_of<'a>(statement: &'a Value, name: &str) -> &'a str {
    let subjects = statement["subject"].as_array().expect("a list");
    let subject = subjects.iter().find(|subject| subject["name"] == name).expect("the subject");
    subject["digest"]["sha256"].as_str().expect("a hash")
}

/// A careful forger makes the digest of the run that of its replicas.
fn set_digest(statement: &mut Value) {
    let replicas = statement["predicate"]["replicas"].as_array().expect("replicas").iter();
    let digests = replicas.map(|it| ResultDigest::parse(it["digest"].as_str().expect("text")).expect("a digest"));
    let digest = ResultDigest::of_run(digests.collect::<Vec<_>>()).to_string();
    statement["predicate"]["digest"] = digest.clone().into();
    set_hash(statement, "run", digest.trim_start_matches("r1:"));
}

/// The history of a run, with the rows of replica 2 of arm X from another text.
fn with_rows(history: &str, of_replica: &str) -> String {
    let others = history.lines().filter(|line| !line.starts_with("X,2,"));
    others.chain(of_replica.lines().filter(|line| line.starts_with("X,2,"))).map(|line| format!("{line}\n")).collect()
}

fn read(desk: &Path, name: &str) -> String {
    fs::read_to_string(desk.join(name)).expect("text")
}

fn sha256(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

/// The description of a run's directory names all its files with their hashes, the experiment file as the workflow, and the
/// license that somebody wrote into it.
#[test]
fn a_certified_directory_is_a_research_object() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, FILE, "one", &[]);
    fs::write(desk.join("one/my notes.txt"), "seen").expect("a file");
    std::os::unix::fs::symlink(".", desk.join("one/link")).expect("a link");
    let described = || {
        let (text, status) = said(desk, &["certify", "one"]);
        assert_eq!(status, Some(0), "{text}");
        let crate_: Value = serde_json::from_str(&read(desk, "one/ro-crate-metadata.json")).expect("JSON");
        crate_["@graph"].as_array().expect("a list").clone()
    };
    let entity = |graph: &[Value], id: &str| -> Value {
        let mut all = graph.iter().filter(|entity| entity["@id"] == id);
        let found = all.next().unwrap_or_else(|| panic!("{id} is not described"));
        assert!(all.next().is_none(), "{id} is described twice");
        found.clone()
    };
    let graph = described();
    let root = entity(&graph, "./");
    let parts: Vec<&str> =
        root["hasPart"].as_array().expect("a list").iter().filter_map(|it| it["@id"].as_str()).collect();
    assert!(parts.contains(&"my%20notes.txt") && parts.contains(&"certificate.json"), "{parts:?}");
    assert!(parts.contains(&"champions/X-0.json") && !parts.iter().any(|it| it.starts_with("store")), "{parts:?}");
    for part in parts {
        let bytes = fs::read(desk.join("one").join(part.replace("%20", " "))).expect("a file");
        let file = entity(&graph, part);
        assert_eq!(file["sha256"], Digest::of(&bytes).to_string(), "{part}");
        assert_eq!(file["contentSize"], bytes.len().to_string(), "{part}");
    }
    let result: Value = serde_json::from_str(&read(desk, "one/result.json")).expect("JSON");
    assert_eq!(entity(&graph, "#digest")["value"], result["digest"]);
    assert_eq!(entity(&graph, "#run")["instrument"], root["mainEntity"]);
    let workflow = entity(&graph, "config.toml");
    assert_eq!((&root["mainEntity"]["@id"], &workflow["version"]), (&workflow["@id"], &result["config_hash"]));
    for entity_ in &graph {
        for name in ["citation", "instrument", "programmingLanguage", "about", "mentions"] {
            let Some(id) = entity_[name]["@id"].as_str() else { continue };
            entity(&graph, id);
        }
    }

    let text = read(desk, "one/ro-crate-metadata.json");
    let (before, stated) = (root["license"].as_str().expect("a text"), "https://creativecommons.org/licenses/by/4.0/");
    fs::write(desk.join("one/ro-crate-metadata.json"), text.replace(before, stated)).expect("a file");
    assert_eq!(entity(&described(), "./")["license"], stated);
}

#[test]
fn a_share_of_a_certified_run_is_computed_again_from_the_file_alone() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, FILE, "one", &[]);
    let (text, status) = said(desk, &["certify", "one"]);
    assert!(status == Some(0) && text.contains("24 pieces, not signed"), "{text}");
    fs::rename(desk.join("one/certificate.json"), desk.join("c.json")).expect("a move");
    certify(desk, "one", "whole.json", &["--pieces", "6"]);
    let result: Value = serde_json::from_str(&read(desk, "one/result.json")).expect("JSON");
    // The same with the states of a result alone, which are all computed.
    certify(desk, "one/result.json", "alone.json", &[]);
    fs::rename(desk.join("one"), desk.join("elsewhere")).expect("a move");
    for (file, pieces) in [("c.json", 24), ("whole.json", 6), ("alone.json", 24)] {
        let (found, status) = challenge(desk, file, "a lottery", "5%");
        assert_eq!((status, &found["as_computed"]), (Some(0), &true.into()), "{found:#}");
        assert_eq!((&found["pieces"], &found["of_pieces"]), (&1.into(), &pieces.into()));
        assert_eq!((&found["digest"], &found["rounds"]), (&result["digest"], &(48 / pieces).into()));
        let (all, status) = challenge(desk, file, "a lottery", "100%");
        assert_eq!((status, &all["rounds"], &all["chance_to_miss"][0]["chance"]), (Some(0), &48.into(), &0.0.into()));
        let (text, status) = said(desk, &["challenge", file, "--seed", "x", "--against", "elsewhere"]);
        assert!(status == Some(0) && text.starts_with("as computed: 1 of "), "{text}");
    }
    let statement = statement(desk, "c.json");
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicate"]["recomputed"]["share"], 1);
    assert_eq!(hash_of(&statement, "history.csv"), sha256(&read(desk, "elsewhere/history.csv")));
    let card = "champions/X-2.json";
    assert_eq!(hash_of(&statement, card), sha256(&read(desk, &format!("elsewhere/{card}"))));

    // A directory that was changed afterwards, and one whose parts do not fit.
    let champion = desk.join("elsewhere").join(card);
    fs::copy(desk.join("elsewhere/champions/X-1.json"), &champion).expect("a copy");
    let (text, status) = said(desk, &["challenge", "c.json", "--seed", "x", "--against", "elsewhere"]);
    assert!(status == Some(1) && text.contains("champions/X-2.json differs from the computed one"), "{text}");
    let (text, status) = said(desk, &["certify", "elsewhere", "--pieces", "6"]);
    assert!(status == Some(1) && text.contains("champions/X-2.json differs") && text.lines().count() == 1, "{text}");
    run(desk, FILE, "costly", &["--set", "arms.\"O, 1\".penalty=9"]);
    let (text, status) = said(desk, &["challenge", "c.json", "--seed", "x", "--against", "costly"]);
    assert!(status == Some(1) && text.contains("costly has other settings than the certificate"), "{text}");
}

/// Pieces of all kinds of replicas: without a barrier, those that end early, those of a fork, and those of a run that was made
/// longer.
#[test]
fn pieces_of_every_kind_of_replica_are_computed_as_they_were() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    let evolve = "experiment = \"evolve\"\nreplicas = 2\n[settings]\nproblem = \"rosenbrock\"\nlength = 3\n\
        evaluations = 2000\ntarget = \"1e-1\"\n[arms.ga]\nalgorithm = \"ga\"\n[arms.es]\nalgorithm = \"cma-es\"\n";
    let early = format!("{FILE}[ends]\nstagnates = 2\n");
    run(desk, evolve, "evolve", &[]);
    run(desk, &early, "early", &[]);
    run(desk, FILE, "past", &[]);
    let (text, status) = said(
        desk,
        &["fork", "past", "--at", "3", "--set", "penalty=50", "--workers", "0", "--no-page", "--out", "fork"],
    );
    assert_eq!(status, Some(0), "{text}");
    let dispatch = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 10\ntasks = 2\n";
    run(desk, dispatch, "long", &[]);
    run(desk, dispatch, "long", &["--set", "rounds=31"]);
    for name in ["evolve", "early", "fork", "long"] {
        for pieces in ["1", "12"] {
            certify(desk, name, "c.json", &["--pieces", pieces]);
            let (found, status) = challenge(desk, "c.json", "x", "100%");
            assert_eq!(status, Some(0), "{name}: {found:#}");
            assert_eq!(found["rounds"], found["of_rounds"], "{name}");
        }
        assert!(
            statement(desk, "c.json")["predicate"]["replicas"][0]["between"]
                .as_array()
                .is_some_and(|it| !it.is_empty())
        );
    }
}

#[test]
fn contradictions_in_a_certificate_are_found_without_computing() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, FILE, "one", &[]);
    certify(desk, "one", "c.json", &[]);
    let replica = |at: &Value, field: &str| at["predicate"]["replicas"][5][field].clone();
    let honest = statement(desk, "c.json");
    let end = |change: &dyn Fn(&mut v1::ReplicaState)| {
        let bytes = STANDARD.decode(replica(&honest, "end").as_str().expect("text")).expect("base64");
        let mut state = v1::ReplicaState::decode(bytes.as_slice()).expect("a state");
        change(&mut state);
        Value::from(STANDARD.encode(state.encode_to_vec()))
    };
    let another = ResultDigest::of_state(&v1::ReplicaState::default()).to_string();
    let changed_row = end(&|state| state.history[6].values[1] += 1.0);
    let changed_champion = end(&|state| {
        let mut bytes = state.state.to_vec();
        *bytes.last_mut().expect("a state") ^= 1;
        state.state = bytes.into();
    });
    let other_card = hash_of(&honest, "champions/X-1.json").to_owned();
    let refused = |change: &dyn Fn(&mut Value), why: &str| {
        forge(desk, "c.json", "forged.json", |it| change(it));
        let (text, status) = said(desk, &["challenge", "forged.json", "--seed", "x"]);
        assert!(text.contains(why) && status == Some(1), "{why}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    };
    refused(&|it| set_hash(it, "champions/X-2.json", &other_card), "the hash of champions/X-2.json is not");
    refused(&|it| set_hash(it, "history.csv", &"0".repeat(64)), "the hash of history.csv is not");
    refused(
        &|it| it["predicate"]["replicas"][5]["digest"] = another.clone().into(),
        "replica 2, round 8: the digest is given as",
    );
    refused(&|it| it["predicate"]["digest"] = another.clone().into(), "its list of files cannot be read");
    refused(
        &|it| {
            it["predicate"]["digest"] = another.clone().into();
            set_hash(it, "run", another.trim_start_matches("r1:"));
        },
        "the digest of the run is given as",
    );
    refused(&|it| it["predicate"]["replicas"][5]["end"] = changed_row.clone(), "replica 2, round 8: ");
    refused(&|it| it["predicate"]["replicas"][5]["end"] = changed_champion.clone(), "replica 2, round 8: ");
    refused(
        &|it| it["predicate"]["replicas"][5]["between"][1]["digest"] = another.clone().into(),
        "replica 2, round 4: ",
    );
    refused(
        &|it| {
            let text = it["predicate"]["configuration"].as_str().expect("text").replace("penalty = 1", "penalty = 2");
            it["predicate"]["configuration"] = text.into();
        },
        "its configuration has the hash",
    );
    refused(&|it| drop(it["predicate"]["replicas"].as_array_mut().map(Vec::pop)), "it has not all replicas");
    refused(&|it| it["predicate"]["replicas"].as_array_mut().expect("a list").swap(0, 1), "it has not the replicas");
}

/// What a forger with all tools can do: everything fits, and only computing shows it.
#[test]
fn careful_forgeries_are_found_when_their_pieces_are_drawn() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, FILE, "one", &[]);
    certify(desk, "one", "c.json", &[]);
    run(desk, FILE, "costly", &["--set", "arms.\"O, 1\".penalty=9"]);
    certify(desk, "costly", "costly.json", &["--pieces", "24"]);
    run(desk, FILE, "lucky", &["--seed", "2"]);
    certify(desk, "lucky", "lucky.json", &["--pieces", "24"]);

    // The results of another penalty under this settings table: half of the pieces are wrong.
    let honest = statement(desk, "c.json");
    forge(desk, "costly.json", "table.json", |it| {
        for field in ["configuration", "config_hash"] {
            it["predicate"][field] = honest["predicate"][field].clone();
        }
    });
    let (found, status) = challenge(desk, "table.json", "x", "100%");
    assert!(status == Some(1) && found["differences"].as_array().is_some_and(|all| all.len() >= 3), "{found:#}");
    let caught = (0..10).filter(|seed| challenge(desk, "table.json", &seed.to_string(), "20%").1 == Some(1)).count();
    assert!(caught >= 8, "{caught} of 10");

    // The champion of a run with another seed, in place of that of one replica: its 4 of 24 pieces are wrong.
    let lucky = statement(desk, "lucky.json");
    let card = "champions/X-2.json";
    forge(desk, "c.json", "champion.json", |it| {
        it["predicate"]["replicas"][5] = lucky["predicate"]["replicas"][5].clone();
        set_hash(it, card, hash_of(&lucky, card));
        let history = with_rows(&read(desk, "one/history.csv"), &read(desk, "lucky/history.csv"));
        set_hash(it, "history.csv", &sha256(&history));
        set_digest(it);
    });
    let mut outcomes = [0; 2];
    for seed in 0..16 {
        let (found, status) = challenge(desk, "champion.json", &seed.to_string(), "12.5%");
        let is_drawn =
            found["drawn"].as_array().expect("a list").iter().any(|it| it["arm"] == "X" && it["replica"] == 2);
        // Pieces between two states of the other run are wrong too, because the seed is another one.
        assert_eq!(status, Some(i32::from(is_drawn)), "{found:#}");
        outcomes[usize::from(is_drawn)] += 1;
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");

    // A better last row of a curve, with all digests and hashes made to fit: one piece is wrong.
    forge(desk, "c.json", "curve.json", |it| {
        let old = it["predicate"]["replicas"][5]["digest"].as_str().expect("text").to_owned();
        let bytes = STANDARD.decode(it["predicate"]["replicas"][5]["end"].as_str().expect("text")).expect("base64");
        let mut state = v1::ReplicaState::decode(bytes.as_slice()).expect("a state");
        let row = state.history.last_mut().expect("rows");
        row.values[1] += 1.0;
        let forged_row = format!("X,2,{},{},", row.values[0], row.values[1]);
        let digest = ResultDigest::of_state(&state).to_string();
        let chain = state.chain.as_mut().expect("digests");
        let raw: Vec<u8> = Digest::from_hex(digest.trim_start_matches("r1:")).expect("a digest").0.to_vec();
        chain.digests = [&chain.digests[..chain.digests.len() - 32], &raw].concat().into();
        let replica = &mut it["predicate"]["replicas"][5];
        replica["end"] = STANDARD.encode(state.encode_to_vec()).into();
        replica["digest"] = digest.clone().into();
        replica["digests"].as_array_mut().and_then(|all| all.last_mut()).expect("digests")["digest"] =
            digest.clone().into();
        let rows = read(desk, "one/history.csv");
        let last = rows.lines().rfind(|line| line.starts_with("X,2,")).expect("a row").to_owned();
        let tail = last.splitn(5, ',').nth(4).expect("more columns");
        set_hash(it, "history.csv", &sha256(&rows.replace(&last, &format!("{forged_row}{tail}"))));
        set_hash(it, card, &sha256(&read(desk, &format!("one/{card}")).replace(&old, &digest)));
        set_digest(it);
    });
    let (found, status) = challenge(desk, "curve.json", "x", "100%");
    let differences = found["differences"].as_array().expect("a list");
    assert!(status == Some(1) && differences.len() == 1, "{found:#}");
    assert!(
        differences[0]["what"].as_str().is_some_and(|it| it.contains("in row 8, but the computed value is")),
        "{found:#}"
    );
    assert_eq!((&differences[0]["replica"], &differences[0]["round"]), (&2.into(), &8.into()));
}

#[test]
fn signatures_show_who_made_a_certificate_and_that_it_is_whole() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    run(desk, FILE, "one", &[]);
    let access = evoxo_access::Authority::create(desk, evoxo_access::now_s()).expect("an authority");
    let identity = evoxo_access::Identity { id: evoxo_access::Id::draw(), role: evoxo_access::Role::Operator };
    for name in ["me", "you"] {
        let file = evoxo_access::AccessFile::made_by(&access, &identity, evoxo_access::now_s(), 60).expect("a key");
        file.store(&desk.join(format!("{name}.access"))).expect("a file");
        let key = evoxo_access::SigningKey::read(&desk.join(format!("{name}.access"))).expect("a key");
        fs::write(desk.join(format!("{name}.pub")), key.public().to_pem()).expect("a file");
        certify(desk, "one", &format!("{name}.json"), &["--key", &format!("{name}.access")]);
    }
    certify(desk, "one", "unsigned.json", &[]);
    let refused = |file: &str, trust: &[&str], why: &str| {
        let (text, status) = said(desk, &[&["challenge", file, "--seed", "x"], trust].concat());
        assert!(text.contains(why) && text.lines().count() == 1 && status != Some(0), "{file}: {text}");
    };
    let (text, status) = said(desk, &["challenge", "me.json", "--seed", "x", "--trust", "me.pub"]);
    assert!(status == Some(0) && text.contains("signed by the trusted key"), "{text}");
    let (text, status) = said(desk, &["challenge", "me.json", "--seed", "x"]);
    assert!(status == Some(0) && text.contains("only with --trust"), "{text}");
    let trust = ["--trust", "me.pub"];
    refused("you.json", &trust, "is signed by the key");
    refused("unsigned.json", &trust, "is not signed, but it should be by the key");
    refused("me.json", &["--trust", "me.json"], "has no public key");
    let later = |it: &mut Value| it["predicate"]["made"] = "2020-01-01T00:00:00Z".into();
    forge(desk, "me.json", "changed.json", later);
    refused("changed.json", &trust, "it was changed after signing");
    refused("changed.json", &[], "it was changed after signing");
    let (text, status) = said(desk, &["certify", "one", "--key", "me.pub"]);
    assert!(text.contains("has no private key that can sign") && status == Some(1), "{text}");

    let text = read(desk, "me.json");
    fs::write(desk.join("cut.json"), &text[..text.len() / 2]).expect("a file");
    refused("cut.json", &[], "is not a whole certificate");
    refused("one/result.json", &[], "is not a whole certificate");
    refused("nowhere.json", &[], "file not found");
    let changes: [(Change, &str); 6] = [
        (&|it| it["predicateType"] = "urn:evoxo:certificate:v2".into(), "has the format v2, and this build reads v1"),
        (&|it| it["predicateType"] = "https://slsa.dev/provenance/v1".into(), "a statement of another kind"),
        (
            &|it| it["predicate"]["signature"] = "0".repeat(64).into(),
            "is of a build whose tasks of invincible have other",
        ),
        (&|it| it["predicate"]["made"] = "2999-01-01T00:00:00Z".into(), "which is in the future"),
        (
            &|it| {
                let text = it["predicate"]["configuration"].as_str().expect("text").replace("invincible", "divination");
                it["predicate"]["configuration"] = text.into();
            },
            "has a configuration that this build does not know",
        ),
        (&|it| it["predicate"]["replicas"] = json!([{"arm": "X"}]), "is damaged"),
    ];
    for (change, why) in changes {
        forge(desk, "unsigned.json", "forged.json", change);
        refused("forged.json", &[], why);
    }
    let (text, status) = said(desk, &["challenge", "me.json", "--seed", ""]);
    assert!(status == Some(2), "{text}");
}
