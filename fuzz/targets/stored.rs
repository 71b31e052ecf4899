//! Stored objects, whole or damaged, of one or several runs, under right and wrong names. The store loads them, a coordinator
//! starts with them, a worker continues their runs, and people view them.

#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, seal},
};
use evoxo_coordinator::{
    core::Request,
    prepared::Prepared,
    replicas::ReplicaKey,
    saved::{origin_of, replica_of_checkpoint},
};
use evoxo_fuzz::{
    cluster::Cluster,
    configs::config,
    registry,
    steps::{Step, steps},
};
use evoxo_proto::v1;
use object_store::{ObjectStoreExt as _, memory::InMemory, path::Path};
use prost::Message;

const OBJECTS_MAX: usize = 20;
/// The most bytes of a run that is continued: a greedy run would only be slow.
const BYTES_MAX: u64 = 1 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [kind, rest @ ..] = input else { return };
    let objects = Arc::new(InMemory::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for step in steps(rest, OBJECTS_MAX) {
        let Some((name, bytes)) = object(*kind, &step) else { continue };
        let Ok(name) = Path::parse(&name) else { continue };
        runtime.block_on(objects.put(&name, bytes.into())).expect("memory takes it");
    }
    drop(runtime);
    let mut cluster = Cluster::over(objects);
    for run in ["r", "s"] {
        cluster.load(run);
        for arm in 0..2 {
            let replica = ReplicaKey { arm, index: 0 };
            cluster.ask(Request::Replica { name: run.into(), replica });
        }
        cluster.ask(Request::Resume { name: run.into() });
        cluster.ask(Request::Objects { name: run.into() });
    }
    cluster.finish(4);
    cluster.restart();
    cluster.ask(Request::Cancel { name: "r".into(), delete: true });
});

/// The name and the bytes of a step's object.
fn object(kind: u8, step: &Step) -> Option<(String, Bytes)> {
    let prepared = config(kind);
    let run = if step.whom % 8 == 7 { "s" } else { "r" };
    let number = step.whom / 64 + 1;
    let raw = step.what >= 128;
    let body = &step.bytes;
    let sealed = |kind: Kind, own: Option<Bytes>| match raw {
        true => body.clone(),
        false => seal(kind, &own.unwrap_or_else(|| body.clone())),
    };
    let (directory, bytes) = match step.what % 8 {
        // The order of a small run, or one that the input specifies.
        0 => {
            let own = v1::Order { config: prepared.toml.clone(), ..v1::Order::default() };
            return Some((format!("runs/{run}/order/000001-00000{number}"), seal(Kind::Order, &own.encode_to_vec())));
        }
        1 => {
            if v1::Order::decode(body.clone()).is_ok_and(|order| is_greedy(&order.config)) {
                return None;
            }
            return Some((format!("runs/{run}/order/000001-00000{number}"), sealed(Kind::Order, None)));
        }
        2 => ("checkpoint/000001-00000", sealed(Kind::Checkpoint, own_checkpoint(&prepared, body))),
        3 => ("finished/000001-00000", sealed(Kind::Finished, own_finished(&prepared, body))),
        4 => ("doubt/000001-00000", sealed(Kind::Doubt, None)),
        5 => return Some((format!("leader/00000{number}"), sealed(Kind::Epoch, None))),
        6 => return Some((format!("runs/{run}/poison/{}.task", Digest::of(body)), body.clone())),
        _ => return Some((String::from_utf8_lossy(body).into_owned(), body.clone())),
    };
    if let Ok(bytes) = replica_of_checkpoint(&bytes, "main", 0) {
        assert!(!bytes.is_empty());
    }
    let digest = Digest::of(&bytes).short();
    let name = match directory.starts_with("finished") {
        true => format!("runs/{run}/{directory}{number}-000001-{digest}"),
        false => format!("runs/{run}/{directory}{number}-{digest}"),
    };
    Some((name, bytes))
}

fn is_greedy(config: &str) -> bool {
    let read = Prepared::read(registry(), "the order", config);
    read.is_ok_and(|prepared| prepared.replicas() > 16 || prepared.least_bytes(BYTES_MAX) > BYTES_MAX)
}

/// The body with the origin of this build, so that its states are restored.
fn own_checkpoint(prepared: &Prepared, body: &Bytes) -> Option<Bytes> {
    let origin = origin_of(registry(), prepared);
    let own = v1::Checkpoint::decode(body.clone()).ok()?;
    let own = v1::Checkpoint { config_hash: origin.config_hash, signature: origin.signature, ..own };
    Some(own.encode_to_vec().into())
}

fn own_finished(prepared: &Prepared, body: &Bytes) -> Option<Bytes> {
    let origin = origin_of(registry(), prepared);
    let own = v1::Finished::decode(body.clone()).ok()?;
    let own = v1::Finished { config_hash: origin.config_hash, signature: origin.signature, ..own };
    Some(own.encode_to_vec().into())
}
