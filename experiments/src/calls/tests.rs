//! Tests of the kind: a run's values, wrong files and states, and what programs do wrong.

use evoxo_common::experiment::Config;
use serde_json::{Value, json};

use super::*;
use crate::{
    registry,
    testing::{digest, parse, problems, run, states_are_checked},
};

/// A program without a process.
struct Actor {
    introduction: Value,
    answer: fn(&Value) -> Value,
    stops: u32,
}

impl Programs for Actor {
    fn introduction(&mut self, _: &str) -> Result<String, Refusal> {
        Ok(self.introduction.to_string())
    }

    fn ask(&mut self, _: &str, question: &dyn Fn(u64) -> String, _: u64) -> Result<(u64, String), Refusal> {
        let question: Value = serde_json::from_str(&question(7)).unwrap();
        Ok((7, (self.answer)(&question).to_string()))
    }

    fn is_first(&mut self, _: &str, _: &str) -> Result<bool, Refusal> {
        Ok(true)
    }

    fn disown(&mut self) {}

    fn stop(&mut self, _: &str) {
        self.stops += 1;
    }
}

fn actor(answer: fn(&Value) -> Value) -> Actor {
    Actor { introduction: json!({"evoxo": 1, "serves": "calls", "name": "f", "version": "1"}), answer, stops: 0 }
}

/// Returns the call, or raises it if it is "Mg==".
fn echo(question: &Value) -> Value {
    let calls = question["calls"].as_array().unwrap().iter();
    let returned: Vec<Value> = calls.map(|call| json!({"text": call, "raised": call == "Mg=="})).collect();
    json!({"batch": question["batch"], "returned": returned})
}

const FILE: &str = "experiment = \"calls\"\nreplicas = 1\n[settings]\n";

fn task(calls: &[&str]) -> CallTask {
    let calls = calls.iter().copied().map(String::from).collect();
    CallTask { program: "f".into(), calls, answer_bytes: 64, timeout_ms: 1000 }
}

#[test]
fn values_are_those_of_the_calls_in_order_however_they_are_cut_up() {
    let of = |slice: usize| {
        let config = parse(&format!("{FILE}calls = \"MQ==,Mg==,Mw==,NA==,NQ==\"\nslice = {slice}\n"));
        let replicas = run(&config);
        (replicas[0].sheet().unwrap(), digest(&replicas), replicas[0].history().to_vec())
    };
    let whole = of(5);
    assert_eq!(
        whole.0.rows.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(),
        ["MQ==", "Mg==", "Mw==", "NA==", "NQ=="]
    );
    assert_eq!(whole.2.last().unwrap(), &[5.0, 0.0]);
    for slice in 1..5 {
        assert_eq!(of(slice), whole);
    }
}

#[test]
fn wrong_files_and_states_are_rejected() {
    let many = vec!["MQ=="; CALLS_MAX + 1].join(",");
    for (settings, sentence) in [
        ("program = \"a b\"", "only letters"),
        ("signature = \"12\"", "64 hexadecimal digits"),
        ("calls = \"\"", "there are no calls"),
        ("calls = \"MQ==,,Mw==\"", "call 1 is not"),
        ("calls = \"MQ==,M=Q=\"", "call 1 is not"),
        ("calls = \"MQ\"", "call 0 is not"),
        (&format!("calls = \"{many}\""), "10001 calls"),
    ] {
        let said = problems(&format!("{FILE}{settings}\n")).to_string();
        assert!(said.contains(sentence), "{said}");
    }
    let config = parse(FILE);
    let wrong = |state: &mut State| state.returned[0].text = "?".into();
    let long = |state: &mut State| state.returned[0].text = "MTIz".repeat(20_000);
    let more = |state: &mut State| state.returned.extend(state.returned.clone());
    states_are_checked::<State>(&config, &run(&config), &[&wrong, &long, &more]);
}

#[test]
fn a_program_computes_calls_and_its_wrong_answers_are_refused() {
    let mut good = actor(echo);
    let output = Call::run_asking(&task(&["MQ==", "Mg=="]), &Bytes::new(), &mut good).unwrap();
    assert_eq!(output.returned.iter().map(|one| one.raised).collect::<Vec<_>>(), [false, true]);
    type Answer = fn(&Value) -> Value;
    let wrong: [(Answer, &str); 5] = [
        (|_| json!(3), "wrong answer"),
        (|_| json!({"batch": 6, "returned": []}), "wrong answer"),
        (|_| json!({"batch": 7, "returned": [{"text": 1, "raised": false}]}), "wrong answer"),
        (|_| json!({"batch": 7, "returned": []}), "0 values for 1 calls"),
        (|_| json!({"batch": 7, "returned": [{"text": "MTIz".repeat(17), "raised": false}]}), "more than 64 bytes"),
    ];
    for (answer, sentence) in wrong {
        let said = Call::run_asking(&task(&["MQ=="]), &Bytes::new(), &mut actor(answer)).unwrap_err();
        assert!(said.0.contains(sentence), "{said}");
    }
    assert!(Call::run(&task(&["MQ=="]), &Bytes::new()).unwrap_err().0.contains("no program f"));
}

/// A worker offers a program only for the kind that the program serves.
#[test]
fn programs_are_introduced_to_the_kind_that_they_serve() {
    let introduced = registry().introduce("f", &mut actor(echo)).unwrap();
    assert_eq!(introduced.iter().map(|(kind, _)| kind.name).collect::<Vec<_>>(), ["calls"]);
    let mut other = actor(echo);
    other.introduction["serves"] = "chess".into();
    assert!(registry().introduce("f", &mut other).unwrap_err().0.contains("\"chess\""));
    other.introduction = json!({"evoxo": 1, "serves": "calls", "name": "g", "version": "1"});
    assert!(registry().introduce("f", &mut other).unwrap_err().0.contains("calls itself \"g\""));
    other.introduction = json!({"evoxo": 1, "serves": "calls", "name": "f"});
    assert!(registry().introduce("f", &mut other).unwrap_err().0.contains("introduce itself as a function"));
    assert_eq!(other.stops, 2);
}

#[test]
fn the_signature_of_a_run_is_that_of_its_program() {
    let file = format!("{FILE}program = \"f\"\n");
    let config = parse(&file);
    let said = (ASKS.settings)(&config.arms[0].settings, &mut actor(echo)).unwrap();
    let [("signature", signature)] = &said[..] else { panic!("{said:?}") };
    let overrides = [("signature".to_owned(), signature.clone())];
    let signed = Config::parse(&registry(), "t", &file, &overrides).unwrap();
    assert_eq!((ASKS.settings)(&signed.arms[0].settings, &mut actor(echo)), Ok(Vec::new()));
    let mut later = actor(echo);
    later.introduction["version"] = "2".into();
    assert!((ASKS.settings)(&signed.arms[0].settings, &mut later).unwrap_err().0.contains("not the one"));
    // `evoxo check` asks about the calls of the file, again and again.
    let answers = (ASKS.answers)(&config.arms[0].settings, &[0, 1, 3], &mut actor(echo)).unwrap();
    let said: Vec<_> = answers.into_iter().map(|answer| answer.said).collect();
    assert_eq!(said, [Ok("MQ==".into()), Err("Mg==".into()), Ok("MQ==".into())]);
}
