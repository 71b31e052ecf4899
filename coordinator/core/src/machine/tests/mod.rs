//! Tests of single rules of the core. The simulation of whole clusters tests what must always hold.

mod assigned;
mod attempts;
mod cordons;
mod evidence;
mod expiry;
mod failures;
mod forks;
mod labels;
mod lanes;
mod losses;
mod memory;
mod operators;
mod own;
mod people;
mod recall;
mod shares;
mod story;
mod unloading;
mod verification;
mod workers;

use evoxo_common::{
    experiment::{Replica, ResultDigest},
    local,
    task::{Encoded, NoPrograms},
    time::Millis,
};
use evoxo_proto::v1::{self, CloseKind, RunState, from_worker, task_result::Outcome, to_worker};

use super::*;
use story::{Story, registry};

const CONFIG: &str =
    "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 4\npayload_bytes = 16\nreply_bytes = 8";
const ONE_ROUND: &str =
    "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 1\ntasks = 40\npayload_bytes = 16";

fn honest(task: &Encoded) -> Outcome {
    Outcome::Output(registry().run(task, &mut NoPrograms).unwrap())
}

fn panicking(_: &Encoded) -> Outcome {
    Outcome::Failure("it panicked".into())
}

fn expected_digest(config: &str) -> String {
    let prepared = story::prepared(config);
    let replicas = local::run(&prepared.config).unwrap();
    ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string()
}

/// Settings with assignments of a single task.
fn singly() -> Settings {
    Settings { batch: Batch::Tasks(1), ..Settings::default() }
}

fn heartbeat() -> from_worker::Message {
    from_worker::Message::Heartbeat(v1::Heartbeat {})
}
