//! Tests of programs: the settings that follow from them, how they are tried, and what they can do wrong.

use evoxo_common::{
    experiment::{Config, Replica},
    task::{Programs, Refusal},
};
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    super::{
        KIND,
        messages::{EvaluateOutput, Evaluation},
        settings::Settings,
    },
    Asked, LINE_BYTES_MAX,
};
use crate::{registry, testing::parse};

/// A program without a process, which answers with a function's value.
struct Actor {
    introduction: Value,
    answer: fn(&Value) -> Value,
    /// A line to send instead of the answer.
    instead: Option<&'static str>,
    questions: u64,
    heard: Vec<String>,
    stops: u32,
    disowned: bool,
}

impl Programs for Actor {
    fn introduction(&mut self, _: &str) -> Result<String, Refusal> {
        Ok(self.introduction.to_string())
    }

    fn ask(&mut self, _: &str, question: &dyn Fn(u64) -> String, _: u64) -> Result<(u64, String), Refusal> {
        self.questions += 1;
        let line = question(self.questions);
        assert!(line.len() < LINE_BYTES_MAX, "{} bytes", line.len());
        let question: Value = serde_json::from_str(&line).unwrap();
        let items: Vec<Value> = question["items"].as_array().unwrap().iter().map(self.answer).collect();
        let answer =
            self.instead.map_or_else(|| json!({"batch": question["batch"], "items": items}).to_string(), String::from);
        Ok((self.questions, answer))
    }

    fn is_first(&mut self, _: &str, words: &str) -> Result<bool, Refusal> {
        let first = !self.heard.iter().any(|other| other == words);
        self.heard.push(words.to_owned());
        Ok(first)
    }

    fn disown(&mut self) {
        self.disowned = true;
    }

    fn stop(&mut self, _: &str) {
        self.heard.clear();
        self.stops += 1;
    }
}

/// The sum of squares.
fn sphere(item: &Value) -> Value {
    let genes = item["genes"]["x"].as_array().unwrap();
    json!({"f": [genes.iter().map(|gene| gene.as_f64().unwrap()).map(|x| x * x).sum::<f64>()]})
}

fn actor(answer: fn(&Value) -> Value) -> Actor {
    let genome = json!([{"name": "x", "type": "real", "length": 3, "low": -5, "high": 5.5}]);
    let introduction = json!({"evoxo": 1, "name": "p", "version": "2", "objectives": ["min cost"], "genome": genome});
    Actor { introduction, answer, instead: None, questions: 0, heard: Vec::new(), stops: 0, disowned: false }
}

const PROGRAM: &str = "experiment = \"evolve\"\nreplicas = 2\n[settings]\nproblem = \"program:p\"\nalgorithm = \"ga\"\nevaluations = 300\n\
     population = 20\n";

/// The file, completed with the settings that follow from the program.
fn signed(text: &str, programs: &mut Actor) -> Config {
    let config = parse(text);
    let said = (KIND.asks.unwrap().settings)(&config.arms[0].settings, programs).unwrap();
    let said: Vec<(String, String)> = said.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Config::parse(&registry(), "t", text, &said).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn omitted_settings_come_from_the_program() {
    let config = signed(PROGRAM, &mut actor(sphere));
    let settings = Settings::of(&config.arms[0].settings);
    assert_eq!((settings.objectives.as_str(), settings.signature.len()), ("min cost", 64));
    assert_eq!(settings.genome.0[0].high.to_f64(), 5.5);
    assert_eq!(config.programs()[0].signature.unwrap().to_string(), settings.signature);
    // Another function or another version has another signature, and a file with the old signature does not fit it.
    let signature = |programs: &mut Actor| (KIND.asks.unwrap().signature)("p", programs).unwrap().to_string();
    assert_eq!(signature(&mut actor(sphere)), settings.signature);
    assert_ne!(signature(&mut actor(|_| json!({"f": [0.5]}))), settings.signature);
    let mut later = actor(sphere);
    later.introduction["version"] = "3".into();
    assert_ne!(signature(&mut later), settings.signature);
    let mut with_constraints = actor(|item| json!({"f": sphere(item)["f"], "g": [0.0]}));
    with_constraints.introduction["constraints"] = json!(["g1"]);
    let sentence = |text: &str, programs: &mut Actor| {
        let values = parse(text).arms.swap_remove(0).settings;
        (KIND.asks.unwrap().settings)(&values, programs).unwrap_err().0
    };
    let signed_text = config.to_toml();
    let mut sentences = vec![
        sentence(&signed_text, &mut later),
        sentence(&format!("{PROGRAM}objectives = \"max cost\"\n"), &mut actor(sphere)),
        sentence(&format!("{PROGRAM}constraints = 2\n"), &mut with_constraints),
        sentence(&format!("{PROGRAM}genome = [{{ length = 4, low = -5, high = 5.5 }}]\n"), &mut actor(sphere)),
    ];
    // Another version of the program has other objectives.
    let mut turned = actor(sphere);
    turned.introduction["objectives"] = json!(["max gain"]);
    assert!(
        sentence(&signed_text, &mut turned).starts_with("the program p is not the one with which this run was started")
    );
    let mut bare = actor(sphere);
    bare.introduction.as_object_mut().unwrap().remove("genome");
    sentences.push(sentence(PROGRAM, &mut bare));
    let signatures = sentences.join("\n").replace(&signature(&mut later)[..16], "[later]");
    insta::assert_snapshot!(signatures.replace(&settings.signature[..16], "[signature]"));
}

/// A program that leaves its genome to the file is tried with candidates of that genome, by the client and by each worker.
#[test]
fn a_program_without_a_genome_is_tried_with_the_files_genome() {
    let bare = |answer| {
        let mut bare = actor(answer);
        bare.introduction.as_object_mut().unwrap().remove("genome");
        bare
    };
    let text = format!("{PROGRAM}genome = [{{ length = 3, low = -5, high = 5.5 }}]\n");
    let config = signed(&text, &mut bare(sphere));
    let answers = |config: &Config| Settings::of(&config.arms[0].settings).answers;
    assert_eq!(answers(&config).len(), 64);
    assert_eq!(answers(&signed(PROGRAM, &mut actor(sphere))), "", "the answers are in the signature");
    let mut silent = bare(sphere);
    silent.introduction["canned"] = 0.into();
    assert_eq!(answers(&signed(&text, &mut silent)), "");
    // A worker tries its program once, and once more after a restart.
    let task = replica_task(&config);
    let mut programs = bare(sphere);
    for questions in [2, 3] {
        task.run_asking(&mut programs).unwrap();
        assert_eq!(programs.questions, questions);
    }
    programs.stop("p");
    task.run_asking(&mut programs).unwrap();
    assert_eq!(programs.questions, 5);
    // Another program with the same description.
    let other: fn(&Value) -> Value = |_| json!({"f": [0.5]});
    let mut programs = bare(other);
    for stops in [1, 2] {
        let refused = task.run_asking(&mut programs).unwrap_err().0;
        assert!(
            refused.starts_with("the program p of this worker gives different answers than the one with which"),
            "{refused}"
        );
        assert_eq!((programs.stops, programs.disowned), (stops, true));
    }
    let values = parse(&config.to_toml()).arms.swap_remove(0).settings;
    let refused = (KIND.asks.unwrap().settings)(&values, &mut programs).unwrap_err().0;
    assert!(
        refused.starts_with("the program p is not the one with which this run was started: the hash of"),
        "{refused}"
    );
    assert!((KIND.asks.unwrap().settings)(&values, &mut bare(sphere)).unwrap().is_empty());
}

/// A run with a program has the same results as one with the same function built in, except for the names.
#[test]
fn a_program_is_searched_like_a_function() {
    let mut programs = actor(sphere);
    let config = signed(PROGRAM, &mut programs);
    let mut replica = Replica::start(&config, &config.arms[0], 0);
    while !replica.is_finished() {
        let tasks = replica.plan(0..replica.tasks());
        let outputs: Vec<_> = tasks.iter().map(|task| task.run_asking(&mut programs).unwrap()).collect();
        replica.absorb(&outputs);
    }
    assert_eq!(replica.history().last().unwrap()[0], 300.0);
    let card = replica.champion().unwrap().write("c").0;
    let card: Value = serde_json::from_str(&card).unwrap();
    let value = sphere(&card)["f"][0].as_f64().unwrap();
    assert_eq!(card["objectives"]["min cost"].as_f64(), Some(value));
    let settings = Settings::of(&config.arms[0].settings);
    assert_eq!(card["version"].as_str(), Some(&settings.signature[..16]));
    assert!(value < 1.0, "{value}");
    let refused = replica_task(&config).run().unwrap_err();
    assert_eq!(refused.0, "there is no program p here");
}

fn replica_task(config: &Config) -> evoxo_common::task::Task {
    Replica::start(config, &config.arms[0], 0).plan(0..1).swap_remove(0)
}

/// What a program can do wrong. In each case there is a clear message, and the program is stopped.
#[test]
fn wrong_answers_are_rejected_with_a_reason() {
    let config = signed(PROGRAM, &mut actor(sphere));
    let task = replica_task(&config);
    let answers: [fn(&Value) -> Value; 8] = [
        |_| json!({"f": [1.0, 2.0]}),
        |_| json!({"f": "1"}),
        |_| json!({"f": [null]}),
        |_| json!({"g": [1.0]}),
        |_| json!({"fail": 3}),
        |_| json!(7),
        |_| json!({"fail": "it diverged\nand more"}),
        |_| json!({"fail": "\n"}),
    ];
    let mut sentences: Vec<String> =
        answers.iter().map(|answer| task.run_asking(&mut actor(*answer)).unwrap_err().0).collect();
    let lines = [
        "hello",
        "{\"batch\": 1, \"items\": [{\"f\": [NaN]}]}",
        "{\"batch\": 9, \"items\": []}",
        "{\"batch\": 1, \"items\": []}",
        "{\"batch\": 1, \"items\": [{\"f\": [1]}, {\"f\": [1]}]}",
        "[]",
    ];
    for line in lines {
        let mut programs = Actor { instead: Some(line), ..actor(sphere) };
        sentences.push(task.run_asking(&mut programs).unwrap_err().0);
        assert_eq!(programs.stops, 1, "{line}");
    }
    let introductions = [
        json!({"evoxo": 2, "name": "p", "objectives": []}),
        json!({"evoxo": 1, "name": "q", "objectives": []}),
        json!([]),
    ];
    let with = |key: &str, value: Value| {
        let mut introduction = actor(sphere).introduction;
        introduction[key] = value;
        introduction
    };
    let crossed = json!([{"name": "x", "type": "real", "length": 3, "low": 2, "high": -2}]);
    let mut unseen = with("genome", crossed.clone());
    unseen["canned"] = 0.into();
    let introductions = introductions.into_iter().chain([
        with("objectives", json!([])),
        with("objectives", json!(["min cost", "gain"])),
        with("objectives", json!(["min cost,time"])),
        with("genome", crossed),
        unseen,
        with("genome", json!([{"name": "x", "low": [1]}])),
    ]);
    for introduction in introductions {
        let mut programs = Actor { introduction, ..actor(sphere) };
        sentences.push(Asked { name: "p", programs: &mut programs }.signature().unwrap_err().0);
    }
    insta::assert_snapshot!(sentences.join("\n"));
}

/// With `on_failure = "worst"` a candidate without a value counts, and never becomes the best.
#[test]
fn failures_rank_last() {
    let text = format!("{PROGRAM}on_failure = \"worst\"\n");
    let odd: fn(&Value) -> Value =
        |item| match item["seed"].as_str().unwrap().ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']) {
            true => json!({"fail": "odd"}),
            false => sphere(item),
        };
    let mut programs = actor(odd);
    let config = signed(&text, &mut programs);
    let mut replica = Replica::start(&config, &config.arms[0], 0);
    while !replica.is_finished() {
        let outputs: Vec<_> =
            replica.plan(0..replica.tasks()).iter().map(|task| task.run_asking(&mut programs).unwrap()).collect();
        replica.absorb(&outputs);
    }
    let last = replica.history().last().unwrap();
    assert!((100.0..200.0).contains(&last[4]), "about half of 300 failed: {last:?}");
    assert!(last[1] < 10.0, "{last:?}");
    let report = config.report(&[replica]);
    assert!(report.notes[0].contains("had no value"), "{:?}", report.notes);
}

/// A program's constraints and measures keep their names.
#[test]
fn constraints_and_measures_use_the_programs_names() {
    let mut programs = actor(|item| json!({"f": sphere(item)["f"], "g": [-1, 0], "m": [0.5, 1]}));
    programs.introduction["constraints"] = json!(["late", "heavy"]);
    programs.introduction["measures"] = json!(["speed", "weight"]);
    let named = Settings::of(&signed(PROGRAM, &mut programs).arms[0].settings);
    assert_eq!(named.constraints_by_name(), ["late", "heavy"]);
    assert_eq!([0, 1, 2].map(|index| named.measure_name(index)), ["speed", "weight", "measure 3"]);
    // A name that a file cannot contain.
    programs.introduction["measures"] = json!(["speed, m/s", "weight"]);
    let unnamed = Settings::of(&signed(PROGRAM, &mut programs).arms[0].settings);
    assert_eq!((unnamed.measures, unnamed.measure_name(0)), (2, "measure 1".into()));
    assert_eq!(unnamed.constraints_by_name(), ["late", "heavy"]);
}

/// The finished replicas of a run whose tasks use this program.
fn finished(config: &Config, programs: &mut Actor) -> Vec<Replica> {
    let run = |number| {
        let mut replica = Replica::start(config, &config.arms[0], number);
        while !replica.is_finished() {
            let tasks = replica.plan(0..replica.tasks());
            let outputs: Vec<_> = tasks.iter().map(|task| task.run_asking(programs).unwrap()).collect();
            replica.absorb(&outputs);
        }
        replica
    };
    (0..config.replicas).map(run).collect()
}

/// A coordinator accepts no longer output than the kind declares, and characters may take several bytes.
#[test]
fn failures_fit_an_output_in_any_language() {
    let mut programs = actor(|_| json!({"fail": "ж".repeat(200)}));
    let config = signed(&format!("{PROGRAM}on_failure = \"worst\"\n"), &mut programs);
    let output = replica_task(&config).run_asking(&mut programs).unwrap();
    assert!(output.len() as u64 <= (KIND.demand)(&config.arms[0].settings).output_bytes, "{} bytes", output.len());
    assert_eq!(EvaluateOutput::decode(output).unwrap().evaluations[0].failure, "ж".repeat(60));
}

#[test]
fn impossible_declarations_are_rejected() {
    let many = |count: usize| json!((0..count).map(|number| format!("n{number}")).collect::<Vec<String>>());
    let bits = |name: &str, length: usize| json!({"name": name, "type": "bits", "length": length});
    let declared = [
        ("measures", many(11), "declares more than a run can have: measures is 11, but must be"),
        ("constraints", many(101), "declares more than a run can have: constraints is 101, but must be"),
        ("objectives", json!([format!("min {}", "x".repeat(400))]), "declares more than a run can have: objectives is"),
        ("objectives", json!(["min cost", "max cost"]), "has two objectives called \"cost\": give each"),
        ("measures", json!(["a", "b", "a"]), "has two measures called \"a\": give each"),
        ("genome", json!([bits("x", 1), bits("y", 1), bits("x", 1)]), "two parts are called x: give each"),
        ("genome", json!([bits("x", 50_000), bits("y", 50_001)]), "it has 100001 genes, more than 100000"),
    ];
    for (key, value, sentence) in declared {
        let mut programs = actor(sphere);
        programs.introduction[key] = value;
        let said = Asked { name: "p", programs: &mut programs }.signature().unwrap_err().0;
        assert!(said.contains(sentence), "{said}");
    }
}

/// The answers to several requests come back in the order of the candidates.
#[test]
fn long_batches_are_split_into_several_lines() {
    let mut programs =
        actor(|item| json!({"f": [item["id"].as_str().unwrap()["canned-".len()..].parse::<f64>().unwrap()]}));
    let bound = 1_000_000_000_000_i64;
    programs.introduction["genome"] =
        json!([{"name": "x", "type": "integer", "length": 100_000, "low": -bound, "high": bound}]);
    programs.introduction["canned"] = 20.into();
    let mut asked = Asked { name: "p", programs: &mut programs };
    let introduction = asked.introduction().unwrap();
    let (parts, _) = asked.genome(&introduction.genome).unwrap();
    let answers = asked.canned(&introduction, &parts).unwrap();
    let told = answers.iter().map(|answer| Evaluation::decode(answer.as_slice()).unwrap().objectives[0]);
    assert!(told.eq((0..20).map(f64::from)), "{answers:?}");
    assert_eq!(programs.questions, 2);
}

/// Sums that overflow: the constraint violation, and the objectives of all replicas.
#[test]
fn the_largest_floats_are_reported() {
    let mut programs = actor(|_| json!({"f": [1.7e308], "g": [-1.0, -1.0]}));
    programs.introduction["constraints"] = json!(["a", "b"]);
    let config = signed(PROGRAM, &mut programs);
    let report = config.report(&finished(&config, &mut programs));
    assert_eq!(report.json["summary"]["main"]["best"]["mean"].as_f64(), Some(1.7e308));
    assert_eq!(report.tables[0].rows[0][2], "1.70e308 ± 0");
    programs.answer = |_| json!({"f": [1.0], "g": [1.7e308, 1.7e308]});
    let config = signed(PROGRAM, &mut programs);
    let replicas = finished(&config, &mut programs);
    assert!(replicas.iter().all(|it| it.failure().is_none() && it.history().last().unwrap()[3] == f64::MAX));
    assert_eq!(config.report(&replicas).tables[0].rows[0][1..3], ["0 of 2", "none is feasible"]);
}
