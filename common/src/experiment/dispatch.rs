//! Experiment `dispatch`: rounds of tasks that do nothing, to measure what a cluster costs and to test that it is one.
//!
//! Its state is a hash chained over all outputs in task order, so a lost, repeated or swapped output cannot hide.

use bytes::Bytes;
use evoxo_proto::v1::{DispatchState, EchoTask, Output, Task, output, task};
use prost::Message as _;
use rand_core::Rng as _;
use serde_json::{Value, json};

use super::{Column, Experiment, Identity};
use crate::{
    card::Card,
    config::{Config, Field, Schema, Scope, Shape},
    digest::Digest,
    finale::{Finale, Table, replica_json, settings_json},
    replica::Replica,
    rng::Stream,
};

/// See [`super::Kind::columns`].
pub const COLUMNS: &[Column] = &[Column { name: "round", doc: "rounds absorbed" }];

/// The settings.
pub static SCHEMA: Schema = Schema {
    summary: "Rounds of tasks that do nothing, to measure what a cluster costs.",
    fields: &[
        Field {
            name: "rounds",
            doc: "Rounds, each planned when the one before is absorbed.",
            shape: Shape::Integer { min: 1, max: 1_000_000 },
            default: "10",
            scope: Scope::What,
        },
        Field {
            name: "tasks",
            doc: "Tasks of a round.",
            shape: Shape::Integer { min: 1, max: 100_000 },
            default: "10000",
            scope: Scope::What,
        },
        Field {
            name: "payload_bytes",
            doc: "Bytes that a task carries.",
            shape: Shape::Integer { min: 8, max: 65_536 },
            default: "1024",
            scope: Scope::What,
        },
        Field {
            name: "shared_bytes",
            doc: "Bytes that all tasks of a round share: they travel once to each worker.",
            shape: Shape::Integer { min: 0, max: 1_048_576 },
            default: "0",
            scope: Scope::What,
        },
        Field {
            name: "reply_bytes",
            doc: "Bytes that its output carries: the task's own, then the shared ones, then zeros.",
            shape: Shape::Integer { min: 0, max: 65_536 },
            default: "100",
            scope: Scope::What,
        },
    ],
    check: |_| Vec::new(),
};

/// One replica.
pub struct Dispatch {
    stream: Stream,
    rounds: u64,
    tasks: u64,
    payload_bytes: usize,
    shared_bytes: usize,
    reply_bytes: u32,
    state: DispatchState,
}

impl Dispatch {
    /// Before the first round.
    #[must_use]
    pub fn start(identity: Identity<'_>) -> Self {
        let settings = identity.settings;
        let replica = u64::from(identity.replica);
        Self {
            stream: Stream::root(identity.seed).text("dispatch").text(identity.arm).word(replica),
            rounds: settings.integer("rounds"),
            tasks: settings.integer("tasks"),
            payload_bytes: settings.integer("payload_bytes") as usize,
            shared_bytes: settings.integer("shared_bytes") as usize,
            reply_bytes: settings.integer("reply_bytes") as u32,
            state: DispatchState::default(),
        }
    }

    /// As saved.
    ///
    /// # Errors
    /// A sentence if the bytes are not a state.
    pub fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = DispatchState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        if state.round > fresh.rounds {
            return Err(format!("the state is of round {}, and there are only {}", state.round, fresh.rounds));
        }
        Ok(Self { state, ..fresh })
    }
}

/// What it says at the end: what was computed, since how long it took is not a result.
#[must_use]
pub fn finale(config: &Config, arms: &[(usize, Vec<&Replica>)]) -> Finale {
    let row = |(index, replicas): &(usize, Vec<&Replica>)| {
        let settings = &config.arms[*index].settings;
        let rounds: u64 = replicas.iter().map(|replica| replica.rounds()).sum();
        let count = |name: &str| settings.integer(name).to_string();
        let tasks = (rounds * settings.integer("tasks")).to_string();
        vec![
            config.arms[*index].name.clone(),
            replicas.len().to_string(),
            rounds.to_string(),
            tasks,
            count("payload_bytes"),
            count("shared_bytes"),
            count("reply_bytes"),
        ]
    };
    let header = ["arm", "replicas", "rounds", "tasks computed", "bytes in", "bytes shared", "bytes out"];
    let arm_json = |(index, replicas): &(usize, Vec<&Replica>)| {
        let replicas: Vec<Value> = replicas.iter().map(|replica| replica_json(config, *index, replica)).collect();
        json!({"name": config.arms[*index].name, "settings": settings_json(config, *index), "replicas": replicas})
    };
    Finale {
        tables: vec![Table {
            title: "Tasks that do nothing".into(),
            header: header.map(String::from).to_vec(),
            rows: arms.iter().map(row).collect(),
        }],
        notes: vec!["How long it took is in result.json under provenance.".into()],
        json: json!({"arms": arms.iter().map(arm_json).collect::<Vec<_>>(), "summary": {}}),
        figures: Vec::new(),
    }
}

impl Experiment for Dispatch {
    fn plan(&self) -> Vec<Task> {
        if self.state.round == self.rounds {
            return Vec::new();
        }
        let round = self.stream.word(self.state.round);
        let fill = |stream: Stream, length| {
            let mut bytes = vec![0; length];
            stream.rng().fill_bytes(&mut bytes);
            Bytes::from(bytes)
        };
        let shared = fill(round.text("shared"), self.shared_bytes);
        let task = |index| {
            let payload = fill(round.word(index), self.payload_bytes);
            let echo = EchoTask { payload, reply_bytes: self.reply_bytes };
            Task { work: Some(task::Work::Echo(echo)), shared: shared.clone() }
        };
        (0..self.tasks).map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String> {
        let mut pieces = vec![self.state.chain.clone()];
        pieces.extend(outputs.iter().map(|output| match &output.result {
            Some(output::Result::Echo(echo)) => echo.payload.clone(),
            _ => Bytes::new(),
        }));
        let chain = Digest::of_pieces(pieces.iter().map(AsRef::as_ref));
        self.state = DispatchState { round: self.state.round + 1, chain: Bytes::copy_from_slice(&chain.0) };
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        vec![vec![self.state.round as f64]]
    }

    fn champion(&self) -> Option<Card> {
        None
    }
}
