//! Writes the first inputs for fuzzing: for every target, one of each sort that it knows. `.ci/fuzz seeds` runs this program.

use std::{fs, path::Path};

use bytes::Bytes;
use evoxo_common::{digest::Digest, experiment::Replica, task::NoPrograms};
use evoxo_fuzz::{
    cluster::Cluster,
    configs::{TEXTS, config},
    steps::step,
};
use evoxo_proto::v1::{self, from_worker, task_result::Outcome, to_worker};
use prost::Message as _;

/// The most bytes of a state that becomes an input.
const STATE_BYTES_MAX: usize = 8000;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let directory = corpus.join(target);
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join(name), bytes).expect("a file");
    };
    for (number, text) in TEXTS.iter().enumerate() {
        let kind = number as u8;
        write("experiment_file", &format!("kind-{kind}"), text.as_bytes());
        for level in 0..4 {
            write("from_worker", &format!("kind-{kind}-level-{level}"), &of_workers(kind, level));
        }
        write("to_worker", &format!("kind-{kind}"), &of_coordinator(kind));
        write("stored", &format!("kind-{kind}"), &stored(kind));
        write("people", &format!("kind-{kind}"), &of_people(kind));
    }
    let mut champions: Vec<(String, Bytes)> = Vec::new();
    for kind in 0..TEXTS.len() as u8 {
        champions.extend(champion(kind));
    }
    for (number, (text, beside)) in champions.iter().enumerate().filter(|(_, (text, _))| text.len() < 5000) {
        let length = u16::try_from(text.len()).expect("a short card").to_le_bytes();
        let whole = [&[1, length[0], length[1]], text.as_bytes(), beside].concat();
        write("card", &format!("champion-{number}"), &whole);
        if !beside.is_empty() {
            write("card", &format!("alone-{number}"), &[&[0, 0, 0], beside.as_ref()].concat());
        }
    }
}

/// A worker joins, computes, sends a wrong output and a failure, ends and comes back.
fn of_workers(kind: u8, level: u8) -> Vec<u8> {
    let hello = v1::Hello { kinds: Vec::new(), ..Cluster::hello() }.encode_to_vec();
    let heartbeat = from_worker::Message::Heartbeat(v1::Heartbeat {});
    let drain = from_worker::Message::Drain(v1::Drain {});
    let message = |message| v1::FromWorker { message: Some(message) }.encode_to_vec();
    let output = v1::TaskResult { outcome: Some(Outcome::Output(Bytes::from_static(&[8, 1]))), ..Default::default() };
    let hash = Bytes::copy_from_slice(&Digest::of(b"no task").0);
    let results = vec![v1::TaskResult { hash, ..output.clone() }];
    let outputs = from_worker::Message::Outputs(v1::Outputs { results });
    [
        vec![kind, level],
        step(1, 0, &hello),
        step(2, 1, &[]),
        step(3, 0, &[]),
        step(0, 0, &message(heartbeat)),
        step(3, 1, &[1, 255]),
        step(4, 0, &output.encode_to_vec()),
        step(0, 1, &message(outputs)),
        step(2, 2, &[]),
        step(6, 8, &[]),
        step(3, 2, &[]),
        step(0, 2, &message(drain)),
        step(5, 0, &[]),
        step(2, 0, &[]),
        step(7, 0, &[]),
        step(2, 3, &[]),
        step(3, 3, &[]),
    ]
    .concat()
}

/// A session with whole and altered tasks that ends, another one, and a request to leave.
fn of_coordinator(kind: u8) -> Vec<u8> {
    let leave = to_worker::Message::Leave(v1::Leave { reason: "a test".into() });
    let leave = v1::ToWorker { message: Some(leave) }.encode_to_vec();
    let (connect, welcome, accept) = (step(1, 0, &[]), step(2, 0, &[]), step(5, 0, &[]));
    let session = [connect, welcome, step(3, 1, &[]), step(3, 34, &[0, 0, 0, 1]), step(3, 3, &[])].concat();
    let computing: Vec<u8> = (0..6).flat_map(|slot| step(4, slot, &[])).collect();
    let end = [step(6, 4, &[]), accept, step(1, 0, &[]), step(6, 200, &[])].concat();
    [vec![kind], session.clone(), computing.clone(), end, session, computing, step(0, 0, &leave), step(6, 8, &[])]
        .concat()
}

/// A person submits a run, a worker computes it, and the person makes every request, drains workers and cancels the run.
fn of_people(kind: u8) -> Vec<u8> {
    let request =
        v1::SubmitRequest { name: "s".into(), config: TEXTS[usize::from(kind)].into(), ..v1::SubmitRequest::default() };
    let drain = v1::DrainWorkersRequest { names: vec!["w".into()], sessions: vec![1], host: String::new() };
    let mut steps = vec![step(1, 0, &[kind]), step(0, 0, &request.encode_to_vec()), step(11, 0, &[])];
    steps.extend((0..4).map(|_| step(12, 0, &[])));
    steps.push(step(13, 20, &[]));
    steps.extend([3, 4, 6, 7, 8, 10].map(|what| step(what, 0, &[])));
    steps.push(step(9, 0, &drain.encode_to_vec()));
    steps.extend([step(15, 0, &[]), step(7, 0, &[]), step(5, 6, &[]), step(5, 0, &[])]);
    steps.concat()
}

/// An order, a checkpoint of a half-finished run, a finished replica, and a doubt.
fn stored(kind: u8) -> Vec<u8> {
    let prepared = config(kind);
    let mut replica = Replica::start(&prepared.config, &prepared.config.arms[0], 0);
    let checkpoint = |replica: &Replica| v1::Checkpoint { replicas: vec![replica.save()], ..Default::default() };
    round(&mut replica);
    let middle = checkpoint(&replica).encode_to_vec();
    while !replica.is_finished() {
        round(&mut replica);
    }
    let finished = v1::Finished { replica: Some(replica.save()), ..Default::default() }.encode_to_vec();
    let doubt = v1::Doubt { task: "00".into(), arm: "main".into(), worker: "w".into(), ..Default::default() };
    let order = v1::Order { config: TEXTS[usize::from(kind)].into(), ..Default::default() };
    let mut steps = vec![step(0, 0, &[])];
    // Large states would only make all inputs slow.
    let bodies = [(2, &middle), (3, &finished)].into_iter().filter(|(_, body)| body.len() < STATE_BYTES_MAX);
    steps.extend(bodies.map(|(what, body)| step(what, 0, body)));
    steps.push(step(4, 0, &doubt.encode_to_vec()));
    steps.push(step(1, 7, &order.encode_to_vec()));
    steps.push(step(7, 0, b"runs/r/checkpoint/000001-000009-0123456789abcdef"));
    [vec![kind], steps.concat()].concat()
}

fn round(replica: &mut Replica) {
    let tasks = replica.plan(0..replica.needed());
    let outputs: Vec<Bytes> =
        tasks.iter().map(|task| task.run_asking(&mut NoPrograms).expect("a task of a small run")).collect();
    replica.absorb(&outputs);
}

/// The champion of a small run: its card, and the file that the card names.
fn champion(kind: u8) -> Option<(String, Bytes)> {
    let prepared = config(kind);
    let mut replica = Replica::start(&prepared.config, &prepared.config.arms[0], 0);
    while !replica.is_finished() {
        round(&mut replica);
    }
    let (text, file) = replica.champion()?.write("champion");
    Some((text, file.map(|(_, bytes)| bytes.into()).unwrap_or_default()))
}
