//! A build of evoxo with a flaw: from the round in `FLAWED_ROUND` on, one bit of a replica's state is wrong. It answers what
//! `evoxo bisect` asks (`probe`), lets the real program compute, and changes the state that it saved. `FLAWED_EVOXO` is the
//! path of the real program.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use evoxo_common::experiment::ResultDigest;
use evoxo_proto::v1::ReplicaState;
use prost::Message as _;
use serde_json::{Value, json};

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is set"))
}

/// What the real program says with these arguments.
fn real(arguments: &[String]) -> Option<Value> {
    let output = Command::new(variable("FLAWED_EVOXO")).args(arguments).output().expect("the real program starts");
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn main() -> ExitCode {
    let flawed: u64 = variable("FLAWED_ROUND").parse().expect("a round");
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let after =
        |arguments: &[String], name: &str| arguments.iter().position(|word| word == name).map(|place| place + 1);
    let to = after(&arguments, "--to").expect("the round");
    let save = PathBuf::from(&arguments[after(&arguments, "--save").expect("a file")]);
    let last: u64 = arguments[to].parse().expect("a round");
    let begins = after(&arguments, "--from").map(|place| {
        let state = fs::read(&arguments[place]).expect("a state");
        ReplicaState::decode(state.as_slice()).expect("a state").rounds
    });
    if last < flawed || begins.is_some_and(|round| round >= flawed) {
        return real(&arguments).map_or(ExitCode::FAILURE, print);
    }
    arguments[to] = flawed.to_string();
    let Some(mut said) = real(&arguments) else { return ExitCode::FAILURE };
    let mut state = ReplicaState::decode(fs::read(&save).expect("a state").as_slice()).expect("a state");
    let mut bytes = state.state.to_vec();
    *bytes.last_mut().expect("a state has bytes") ^= 1;
    state.state = bytes.into();
    said["digest"] = json!(ResultDigest::of_state(&state).to_string());
    fs::write(&save, state.encode_to_vec()).expect("a file");
    if last > flawed {
        arguments[to] = last.to_string();
        if let Some(place) = after(&arguments, "--from") {
            arguments.drain(place - 1..=place);
        }
        arguments.extend(["--from".into(), save.display().to_string()]);
        let Some(further) = real(&arguments) else { return ExitCode::FAILURE };
        said = further;
    }
    print(said)
}

#[expect(clippy::print_stdout, reason = "what bisect reads")]
fn print(said: Value) -> ExitCode {
    println!("{said}");
    ExitCode::SUCCESS
}
