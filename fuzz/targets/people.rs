//! Everything that people send, to a live coordinator whose workers compute what is requested: submissions, orders, drains,
//! and requests about runs and replicas.

#![no_main]

use std::sync::Arc;

use evoxo_coordinator::{
    core::{Request, Response},
    names::check_run_name,
    prepared::Prepared,
    replicas::ReplicaKey,
    saved::replica_of_checkpoint,
    trust::{Holder, Level},
};
use evoxo_fuzz::{
    cluster::Cluster,
    configs::config,
    registry,
    steps::{Step, steps},
};
use evoxo_proto::v1;
use prost::Message as _;

const STEPS_MAX: usize = 40;
/// The most replicas and bytes of a run that is submitted: planning a larger one would only be slow.
const REPLICAS_MAX: u64 = 16;
const BYTES_MAX: u64 = 1 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut cluster = Cluster::over(Arc::default());
    for step in steps(input, STEPS_MAX) {
        let asked = cluster.responses.len();
        let asks = take(&mut cluster, &step);
        assert!(!asks || cluster.responses.len() == asked + 1, "a request has no answer");
    }
});

/// Performs a step. Returns whether it made a request.
fn take(cluster: &mut Cluster, step: &Step) -> bool {
    let name = || {
        let given = String::from_utf8_lossy(&step.bytes).into_owned();
        if step.whom < 128 { ["r", "s", "t", "u"][usize::from(step.whom % 4)].to_owned() } else { given }
    };
    let replica = ReplicaKey { arm: u32::from(step.whom / 16), index: u32::from(step.whom % 16) };
    let request = match step.what % 16 {
        0 => match submission(&step.bytes) {
            Some(request) => request,
            None => return false,
        },
        1 | 2 => {
            let level = Level::of(i32::from(step.whom / 16), 10_000).unwrap_or_default();
            let prepared = config(step.bytes.first().copied().unwrap_or_default());
            Request::Submit { name: name(), prepared, level, submitter: "10.0.0.9".into(), terms: Vec::new() }
        }
        3 => Request::Pause { name: name() },
        4 => Request::Resume { name: name() },
        5 => Request::Cancel { name: name(), delete: step.whom % 8 < 4 },
        6 => Request::Replicas { name: name() },
        7 => Request::Replica { name: name(), replica },
        8 => Request::Objects { name: name() },
        9 => match v1::DrainWorkersRequest::decode(step.bytes.clone()) {
            Ok(named) => Request::Drain(named),
            Err(_) => return false,
        },
        10 => [Request::Workers, Request::Lost, Request::Figures]
            .into_iter()
            .nth(step.whom as usize % 3)
            .expect("there are three"),
        other => {
            let session = u64::from(step.whom % 4);
            let holder = Holder { id: format!("{session:012x}").as_str().into(), trusted: session == 0 };
            match other {
                11 => cluster.greet(session, Some(holder), Cluster::hello()),
                12 => drop(cluster.answer(session, |output| output)),
                13 => cluster.wait(u64::from(step.whom) * 20),
                14 => cluster.leave(session),
                _ => cluster.restart(),
            }
            return false;
        }
    };
    cluster.ask(request);
    if let Some(Ok(Response::Replica(evoxo_coordinator::core::ReplicaAt::Bytes(bytes)))) = cluster.responses.last() {
        // A finished replica must not be accepted as a checkpoint.
        assert!(replica_of_checkpoint(bytes, "main", 0).is_err());
    }
    true
}

/// A submission as the service receives it: a client's message, or only a file.
fn submission(bytes: &bytes::Bytes) -> Option<Request> {
    let request = v1::SubmitRequest::decode(bytes.clone()).unwrap_or_else(|_| v1::SubmitRequest {
        name: "r".into(),
        config: String::from_utf8_lossy(bytes).into_owned(),
        ..v1::SubmitRequest::default()
    });
    let level = Level::of(request.verification, request.sampled_millionths)?;
    check_run_name(&request.name).ok()?;
    let prepared = Prepared::read(registry(), "the submitted file", &request.config).ok()?;
    let small = prepared.replicas() <= REPLICAS_MAX && prepared.least_bytes(BYTES_MAX) <= BYTES_MAX;
    small.then_some(Request::Submit {
        name: request.name,
        prepared,
        level,
        submitter: "10.0.0.9".into(),
        terms: Vec::new(),
    })
}
