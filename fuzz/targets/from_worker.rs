//! Everything that workers send, to a live coordinator with a run of any kind: whole messages, results with forged hashes and
//! outputs, and sessions that come and go. At the level "verified", the run's digest must be right whatever was sent.

#![no_main]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use evoxo_common::{
    experiment::{Replica, ResultDigest},
    local,
};
use evoxo_coordinator::{
    core::Request,
    trust::{Holder, Level},
};
use evoxo_fuzz::{
    cluster::Cluster,
    configs::{TEXTS, config},
    registry,
    steps::{Step, steps},
};
use evoxo_proto::v1::{self, RunState, from_worker, task_result::Outcome};
use prost::Message as _;

/// The most steps of an input; more would only be slow.
const STEPS_MAX: usize = 40;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [kind, level, rest @ ..] = input else { return };
    let level = match level % 4 {
        0 => Level::Plain,
        1 => Level::Quorum,
        2 => Level::Verified,
        _ => Level::Sampled { millionths: 500_000 },
    };
    let kind = kind % TEXTS.len() as u8;
    let mut cluster = Cluster::over(Arc::default());
    let (name, prepared) = ("r".to_owned(), config(kind));
    cluster.ask(Request::Submit { name, prepared, level, submitter: "10.0.0.9".into(), terms: Vec::new() });
    steps(rest, STEPS_MAX).for_each(|step| take(&mut cluster, level, &step));
    cluster.wait(500);
    if level == Level::Verified && kind < 2 {
        cluster.finish(60);
        let run = &cluster.views["r"];
        if run.state() == RunState::Finished {
            assert_eq!(run.digest, expected(kind), "lies have changed a verified run");
        }
    }
});

fn take(cluster: &mut Cluster, level: Level, step: &Step) {
    let session = u64::from(step.whom % 4);
    // Two identities are the same, so that one of them has several sessions.
    let id = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "aaaaaaaaaaaa"][session as usize];
    let holder = (level != Level::Plain).then(|| Holder { id: id.into(), trusted: false });
    match step.what % 8 {
        0 => {
            let Ok(message) = v1::FromWorker::decode(step.bytes.clone()) else { return };
            cluster.say(session, message);
        }
        1 => {
            let Ok(mut hello) = v1::Hello::decode(step.bytes.clone()) else { return };
            if hello.kinds.is_empty() {
                hello.kinds = registry().signatures();
            }
            cluster.greet(session, holder, hello);
        }
        2 => cluster.greet(session, holder, Cluster::hello()),
        3 => drop(cluster.answer(session, |output| altered(output, &step.bytes))),
        4 => forge(cluster, session, step),
        5 => cluster.leave(session),
        6 => cluster.wait(u64::from(step.whom) * 250),
        _ => match step.whom % 3 {
            0 => cluster.restart(),
            1 => cluster.ask(Request::Pause { name: "r".into() }),
            _ => cluster.ask(Request::Resume { name: "r".into() }),
        },
    }
}

/// The right output, the right output with these bits flipped, or other bytes.
fn altered(output: Bytes, with: &Bytes) -> Bytes {
    match with.as_ref() {
        [] => output,
        [0, rest @ ..] => Bytes::copy_from_slice(rest),
        [1, rest @ ..] => output.iter().zip(rest.iter().chain(std::iter::repeat(&0))).map(|(a, b)| a ^ b).collect(),
        [cut, ..] => output.slice(..output.len().min(usize::from(*cut))),
    }
}

/// A result as the input specifies it, for a task that some session has.
fn forge(cluster: &mut Cluster, session: u64, step: &Step) {
    let Ok(mut result) = v1::TaskResult::decode(step.bytes.clone()) else { return };
    let tasks =
        cluster.assigned.values().flatten().flat_map(|given| given.tasks.iter().map(|task| (given.id, task.hash)));
    let all: Vec<_> = tasks.collect();
    if let Some((id, hash)) = all.get(usize::from(step.whom / 4) % all.len().max(1)) {
        result.hash = Bytes::copy_from_slice(&hash.0);
        result.assignment = if step.what >= 128 { result.assignment } else { *id };
        result.outcome = result.outcome.or(Some(Outcome::Failure("forged".into())));
    }
    let results = vec![result.clone(), result];
    cluster.say(session, v1::FromWorker { message: Some(from_worker::Message::Outputs(v1::Outputs { results })) });
}

/// The digest that a single thread computes.
fn expected(kind: u8) -> String {
    static KNOWN: Mutex<[Option<String>; 2]> = Mutex::new([None, None]);
    let mut known = KNOWN.lock().expect("nothing panics here");
    let compute = || {
        let replicas = local::run(&config(kind).config).expect("a small run can be computed");
        ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string()
    };
    known[usize::from(kind)].get_or_insert_with(compute).clone()
}
