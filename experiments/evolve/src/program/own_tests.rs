//! Tests of the person's own algorithm: searches with it, the settings that follow from its program, and what it can do wrong.

use evoxo_common::{
    experiment::{Config, Replica},
    task::{Programs, Refusal},
};
use serde_json::{Map, Value, json};

use crate::{
    KIND,
    algorithm::own,
    messages::SearchState,
    registry,
    settings::Settings,
    testing::{parse, states_are_checked},
};

/// A program without a process. Its algorithm steps around the best candidate; its state is that candidate with its value and
/// the number of batches so far.
struct Mine {
    /// What becomes of the answer.
    turned: fn(Value) -> Value,
    questions: u64,
    heard: Vec<String>,
    disowned: bool,
}

const GOOD: fn(Value) -> Value = |answer| answer;

fn mine(turned: fn(Value) -> Value) -> Mine {
    Mine { turned, questions: 0, heard: Vec::new(), disowned: false }
}

/// Genes that the seed and the number of the candidate determine, of real numbers and whole ones.
fn genes(ask: &Value, number: u64) -> Value {
    let seed = u64::from_str_radix(ask["seed"].as_str().unwrap(), 16).unwrap();
    let share = |gene: u64| (seed.rotate_left((7 * gene + 13 * number) as u32) >> 11) as f64 / (1_u64 << 53) as f64;
    let part = |part: &Value| {
        let (low, high) = (part["low"].as_f64().unwrap(), part["high"].as_f64().unwrap());
        let gene = |gene| low + (high - low) * share(gene);
        let genes: Vec<f64> = (0..part["length"].as_u64().unwrap()).map(gene).collect();
        (part["name"].as_str().unwrap().to_owned(), json!(genes))
    };
    Value::Object(Map::from_iter(ask["genome"].as_array().unwrap().iter().map(part)))
}

impl Programs for Mine {
    fn introduction(&mut self, _: &str) -> Result<String, Refusal> {
        Ok(json!({"evoxo": 1, "name": "mine", "algorithms": {"mine": "1"}}).to_string())
    }

    fn ask(&mut self, _: &str, question: &dyn Fn(u64) -> String, _: u64) -> Result<(u64, String), Refusal> {
        self.questions += 1;
        let question: Value = serde_json::from_str(&question(self.questions)).unwrap();
        let ask = &question["ask"];
        let told = ask["told"].as_array().unwrap();
        let batches = match ask["state"].as_str() {
            Some(state) => serde_json::from_str::<u64>(state).unwrap(),
            None => 0,
        };
        assert_eq!(told.is_empty(), batches == 0, "{ask}");
        assert!(told.iter().all(|one| one["f"].is_array() && one["genes"].is_object()), "{ask}");
        let items: Vec<Value> = (0..4 + 3 * (batches % 2)).map(|number| genes(ask, number)).collect();
        let answer = json!({"batch": question["batch"], "state": (batches + 1).to_string(), "items": items});
        Ok((self.questions, (self.turned)(answer).to_string()))
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
    }
}

/// A file with these settings, completed by the program.
fn signed(settings: &str, evaluations: u64) -> Config {
    let text = format!(
        "experiment = \"evolve\"\nseed = 3\nreplicas = 1\n[settings]\nalgorithm = \"own\"\nown = \"mine\"\nevaluations = \
         {evaluations}\n{settings}\n"
    );
    let said = (KIND.asks.unwrap().settings)(&parse(&text).arms[0].settings, &mut mine(GOOD)).unwrap();
    let said: Vec<(String, String)> = said.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Config::parse(&registry(), "t", &text, &said).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Computes a round; false at the end.
fn step(replica: &mut Replica, demand: &evoxo_common::experiment::Demand) -> bool {
    if replica.is_finished() {
        return false;
    }
    let (tasks, mut programs) = (replica.plan(0..replica.needed()), mine(GOOD));
    let only = if tasks.len() == 1 { demand.only_bytes } else { 0 };
    let outputs: Vec<_> = tasks
        .iter()
        .map(|task| {
            let output = task.run_asking(&mut programs).unwrap();
            assert_eq!(task.check(&output).as_ref(), Ok(&output));
            assert!(task.body.len() as u64 <= demand.task_bytes.max(only) && tasks.len() as u64 <= demand.tasks);
            assert!(output.len() as u64 <= demand.output_bytes.max(only));
            output
        })
        .collect();
    replica.absorb(&outputs);
    true
}

fn run(config: &Config) -> Replica {
    let mut replica = Replica::start(config, &config.arms[0], 0);
    while step(&mut replica, &(KIND.demand)(&config.arms[0].settings)) {}
    replica
}

/// With one objective, several, noise, constraints and a target.
const SEARCHES: [&str; 5] = [
    "problem = \"sphere\"\nlength = 3\nslice = 1",
    "problem = \"zdt1\"\nlength = 4",
    "problem = \"noisy-sphere\"\nlength = 2\nconfirmations = 2",
    "problem = \"g06\"\nslice = 3",
    "problem = \"sphere\"\nlength = 2\ntarget = \"1\"",
];

#[test]
fn a_search_can_be_stopped_after_every_round() {
    for settings in SEARCHES {
        let config = signed(settings, 90);
        let demand = (KIND.demand)(&config.arms[0].settings);
        let (straight, mut replica) = (run(&config), Replica::start(&config, &config.arms[0], 0));
        let mut rounds = 0;
        while step(&mut replica, &demand) {
            let saved = replica.save();
            assert!(saved.state.len() as u64 <= demand.state_bytes);
            replica = Replica::restore(&config, &saved).unwrap();
            rounds += 1;
            assert!(rounds <= (KIND.rounds)(&config.arms[0].settings), "{settings}");
        }
        assert_eq!(replica.digest(), straight.digest(), "{settings}");
        let last = straight.history().last().unwrap();
        assert_eq!(last[0] < 90.0, settings.contains("target"), "{settings}: {last:?}");
    }
}

/// The end of a shorter search may have cut off a batch; the program is not asked for it again.
#[test]
fn a_longer_search_continues_a_shorter_one() {
    for settings in SEARCHES {
        let config = signed(settings, 90);
        let straight = run(&config);
        for end in [1, 3, 4, 7, 11, 30, 89] {
            let shorter = run(&signed(settings, end));
            let mut replica =
                Replica::restore(&config, &Replica::lengthened(&config, shorter.save()).unwrap()).unwrap();
            while step(&mut replica, &(KIND.demand)(&config.arms[0].settings)) {}
            assert_eq!(replica.history(), straight.history(), "{settings} {end}");
            assert!(replica.save() == straight.save(), "{settings} {end}: the states differ");
        }
    }
}

#[test]
fn the_configuration_has_the_programs_signature() {
    let config = signed("", 20);
    let settings = Settings::of(&config.arms[0].settings);
    let [program] = &config.programs()[..] else { panic!("one program") };
    let own = own(&settings.own);
    assert_eq!((program.name.as_str(), own.own_answers.len()), ("mine", 64));
    assert_eq!(program.signature.unwrap().to_string(), own.own_signature);
    let asks = KIND.asks.unwrap();
    let ones: fn(Value) -> Value = |mut answer| {
        answer["state"] = (answer["state"].as_str().unwrap().to_owned() + " ").into();
        answer
    };
    // The same program has nothing to add, and another one does not fit.
    assert!((asks.settings)(&config.arms[0].settings, &mut mine(GOOD)).unwrap().is_empty());
    let refused = (asks.settings)(&config.arms[0].settings, &mut mine(ones)).unwrap_err().0;
    assert!(refused.starts_with("the algorithm mine of the program mine is not the one with which"), "{refused}");
    let task = Replica::start(&config, &config.arms[0], 0).plan(0..1).swap_remove(0);
    let mut other = mine(ones);
    let refused = task.run_asking(&mut other).unwrap_err().0;
    assert!(refused.contains("has an algorithm with other batches") && other.disowned, "{refused}");
    // A program whose fixed questions fail is tried again with the next task.
    let mut failing = mine(|answer| json!({"batch": answer["batch"], "fail": "no\u{7} library"}));
    for _ in 0..2 {
        let refused = task.run_asking(&mut failing).unwrap_err().0;
        assert!(refused.contains("no library") && failing.heard.is_empty(), "{refused}");
    }
    assert_eq!(task.run().unwrap_err().0, "there is no program mine here");
    let unknown = parse("experiment = \"evolve\"\n[settings]\nalgorithm = \"own\"\nown = \"yours\"\n");
    let refused = (asks.settings)(&unknown.arms[0].settings, &mut mine(GOOD)).unwrap_err().0;
    assert!(refused.contains("calls itself \"mine\""), "{refused}");
}

#[test]
fn wrong_batches_are_rejected_with_a_reason() {
    let config = signed("length = 2\npopulation = 8\n", 20);
    let task = Replica::start(&config, &config.arms[0], 0).plan(0..1).swap_remove(0);
    let wrong: [fn(Value) -> Value; 13] = [
        |_| json!(7),
        |answer| json!({"batch": answer["batch"]}),
        |answer| json!({"batch": answer["batch"], "state": "1"}),
        |answer| json!({"batch": answer["batch"], "state": 1, "items": []}),
        |answer| json!({"batch": answer["batch"], "fail": "ask raised ValueError: no"}),
        |answer| json!({"batch": answer["batch"], "fail": 3}),
        |answer| json!({"batch": answer["batch"], "state": "1", "items": []}),
        |answer| json!({"batch": answer["batch"], "state": "", "items": [[0.5, 0.5]]}),
        |answer| json!({"batch": answer["batch"], "state": "1", "items": vec![answer["items"][0].clone(); 9]}),
        |answer| json!({"batch": answer["batch"], "state": "1", "items": [[0.5, 1.0], [0.5]]}),
        |answer| json!({"batch": answer["batch"], "state": "1", "items": [[0.5, 99.0]]}),
        |answer| json!({"batch": answer["batch"], "state": "1", "items": [[0.5, null]]}),
        |answer| json!({"batch": answer["batch"], "state": "1".repeat(2 << 20), "items": [[0.5, 0.5]]}),
    ];
    let sentence = |turned: &fn(Value) -> Value| {
        // The fixed questions come first, so they are what fails.
        task.run_asking(&mut mine(*turned)).unwrap_err().0
    };
    insta::assert_snapshot!(wrong.iter().map(sentence).collect::<Vec<_>>().join("\n"));
}

/// A process may keep what `save` does not return. The fixed questions are asked again, so that this is noticed before the run.
#[test]
fn a_batch_that_depends_on_what_was_asked_before_is_rejected() {
    use std::sync::atomic::{AtomicU64, Ordering};

    static ASKED: AtomicU64 = AtomicU64::new(0);
    let text = "experiment = \"evolve\"\n[settings]\nalgorithm = \"own\"\nown = \"mine\"\n";
    let counts: fn(Value) -> Value = |mut answer| {
        // The answers of a class that keeps its state in a global.
        answer["state"] = (1 + ASKED.fetch_add(1, Ordering::Relaxed)).to_string().into();
        answer
    };
    let refused = (KIND.asks.unwrap().settings)(&parse(text).arms[0].settings, &mut mine(counts)).unwrap_err().0;
    assert!(refused.contains("it returns another batch when it is asked the same again"), "{refused}");
}

#[test]
fn states_of_other_searches_are_rejected() {
    use crate::messages::OwnState;
    use prost::Message as _;

    let config = signed("problem = \"zdt1\"\nlength = 4\n", 35);
    let turned = |state: &mut SearchState, turn: fn(&mut OwnState)| {
        let mut own = OwnState::decode(state.algorithm.clone()).unwrap();
        turn(&mut own);
        state.algorithm = own.encode_to_vec().into();
    };
    let changes: [&dyn Fn(&mut SearchState); 6] = [
        &|state| turned(state, |own| own.births += 1),
        &|state| turned(state, |own| own.batch.clear()),
        &|state| turned(state, |own| own.state = "x".repeat(2 << 20)),
        &|state| turned(state, |own| own.kept.truncate(3)),
        &|state| turned(state, |own| own.told = own.kept.clone()),
        &|state| turned(state, |own| own.batch[0].parts.clear()),
    ];
    // The end has cut off a batch, so the state has the batch.
    states_are_checked(&config, &[run(&config)], &changes);
}
