//! Experiment `dispatch`: rounds of tasks that do nothing, to measure the overhead of a cluster and to test that it
//! works.
//!
//! Its state is a hash chained over all outputs in task order, so a lost, repeated or swapped output is always noticed.

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::Card,
    digest::Digest,
    experiment::{ArmReplicas, Column, Config, Demand, Experiment, Identity, Kind, arm_json},
    headline::Headline,
    report::{Report, Table},
    rng::Stream,
    settings,
    task::{Compute, Refusal, Task, TaskKind, checked},
};
use prost::Message as _;
use rand_core::Rng as _;
use serde_json::{Value, json};

use messages::{EchoOutput, EchoTask, State};

/// The messages of `dispatch.proto`.
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;

/// The kind's name, as in experiment files.
const NAME: &str = "dispatch";

/// The kind.
pub const KIND: Kind = Kind {
    name: NAME,
    schema: &SCHEMA,
    columns: &[Column { name: "round", doc: "rounds completed" }],
    primary_metric: 0,
    tail: |_| 1,
    is_solution: None,
    ranking: None,
    rounds: |settings| Settings::of(settings).rounds,
    demand: |settings| Settings::of(settings).demand(),
    start: |identity| Box::new(Dispatch::start(identity)),
    restore: |identity, state| Ok(Box::new(Dispatch::restore(identity, state)?)),
    tasks: &[&ECHO],
    asks: None,
    reads: None,
    complete: None,
    cards: &[],
    plays: &[],
    report,
    report_of_result: |_, _| {
        Err("a run of \"dispatch\" only measures a cluster: no report can be made from its result".into())
    },
    headline: |_, _| Headline::default(),
    kernels: &[],
};

settings! {
    /// Rounds of tasks that do nothing, to measure the overhead of a cluster.
    pub struct Settings, names Name, schema SCHEMA {
        /// Number of rounds. Each is planned when the previous one is complete.
        rounds: u64 = length whole(1, 1_000_000, "10"),
        /// Tasks per round.
        tasks: u64 = whole(1, 100_000, "10000"),
        /// Payload of each task, in bytes.
        payload_bytes: u64 = whole(8, 65_536, "1024"),
        /// Bytes that all tasks of a round share. They are sent to each worker once.
        shared_bytes: u64 = whole(0, 1_048_576, "0"),
        /// Length of each output in bytes: the task's payload, then the shared bytes, then zeros.
        reply_bytes: u32 = whole(0, 65_536, "100"),
    }
    check(|_| Vec::new())
}

impl Settings {
    fn demand(&self) -> Demand {
        let Self { rounds, tasks, payload_bytes, shared_bytes, reply_bytes } = *self;
        let output_bytes = u64::from(reply_bytes) + 8;
        Demand {
            tasks,
            task_bytes: payload_bytes + 48,
            shared_bytes,
            output_bytes,
            state_bytes: 48,
            rows: rounds,
            ..Demand::default()
        }
    }
}

/// The only kind of task.
pub static ECHO: TaskKind = TaskKind::of::<Echo>();

/// Returns the beginning of what it was sent.
pub enum Echo {}

/// The longest payload, shared part or reply, in bytes.
const ECHO_BYTES_MAX: usize = 1 << 20;

impl Compute for Echo {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "echo";
    type Task = EchoTask;
    type Output = EchoOutput;

    fn run(task: &EchoTask, shared: &Bytes) -> Result<EchoOutput, Refusal> {
        let reply_bytes = task.reply_bytes as usize;
        if [task.payload.len(), shared.len(), reply_bytes].into_iter().any(|bytes| bytes > ECHO_BYTES_MAX) {
            return Err(Refusal(format!("an echo may carry, share and return at most {ECHO_BYTES_MAX} bytes")));
        }
        let mut payload: Vec<u8> = task.payload.iter().chain(shared).copied().take(reply_bytes).collect();
        payload.resize(reply_bytes, 0);
        Ok(EchoOutput { payload: payload.into() })
    }

    fn check(task: &EchoTask, _: &Bytes, output: &EchoOutput) -> Result<(), Refusal> {
        match output.payload.len() == task.reply_bytes as usize {
            true => Ok(()),
            false => Err(Refusal(format!("an echo of {} bytes, not {}", output.payload.len(), task.reply_bytes))),
        }
    }

    fn workload() -> Vec<(EchoTask, Bytes)> {
        let echo = |reply_bytes| EchoTask { payload: Bytes::from_static(b"evoxo"), reply_bytes };
        vec![(echo(3), Bytes::new()), (echo(8), Bytes::from_static(b"ab"))]
    }
}

/// One replica.
struct Dispatch {
    stream: Stream,
    settings: Settings,
    state: State,
}

impl Dispatch {
    /// The replica before its first round.
    fn start(identity: Identity<'_>) -> Self {
        let stream = Stream::root(identity.seed).text("dispatch").text(identity.arm).word(identity.replica.into());
        Self { stream, settings: Settings::of(identity.settings), state: State::default() }
    }

    /// Restores a saved state, or says why the bytes are not a state.
    fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = State::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        let rounds = fresh.settings.rounds;
        if state.round > rounds {
            return Err(format!("the state is of round {}, but the run has only {rounds} rounds", state.round));
        }
        Ok(Self { state, ..fresh })
    }
}

impl Experiment for Dispatch {
    fn tasks(&self) -> usize {
        if self.state.round == self.settings.rounds { 0 } else { self.settings.tasks as usize }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let round = self.stream.word(self.state.round);
        let fill = |stream: Stream, length: u64| {
            let mut bytes = vec![0; length as usize];
            stream.rng().fill_bytes(&mut bytes);
            Bytes::from(bytes)
        };
        let shared = fill(round.text("shared"), self.settings.shared_bytes);
        let task = |index| {
            let payload = fill(round.word(index as u64), self.settings.payload_bytes);
            ECHO.task::<Echo>(&EchoTask { payload, reply_bytes: self.settings.reply_bytes }).sharing(shared.clone())
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        let outputs = outputs.iter().map(|output| checked::<Echo>(output).payload);
        let pieces: Vec<Bytes> = std::iter::once(self.state.chain.clone()).chain(outputs).collect();
        let chain = Digest::of_pieces(pieces.iter().map(AsRef::as_ref));
        self.state = State { round: self.state.round + 1, chain: Bytes::copy_from_slice(&chain.0) };
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

/// The amounts of work. Times are not results, so they are not here.
fn report(config: &Config, arms: &[ArmReplicas<'_>]) -> Report {
    let row = |(arm, replicas): &ArmReplicas<'_>| {
        let settings = Settings::of(&config.arms[*arm].settings);
        let rounds: u64 = replicas.iter().map(|replica| replica.rounds()).sum();
        let numbers = [
            replicas.len() as u64,
            rounds,
            rounds * settings.tasks,
            settings.payload_bytes,
            settings.shared_bytes,
            settings.reply_bytes.into(),
        ];
        std::iter::once(config.arms[*arm].name.clone()).chain(numbers.map(|number| number.to_string())).collect()
    };
    let header = ["arm", "replicas", "rounds", "tasks computed", "bytes in", "bytes shared", "bytes out"];
    let arms_json: Vec<Value> = arms.iter().map(|(arm, replicas)| arm_json(config, *arm, replicas)).collect();
    Report {
        tables: vec![Table {
            title: "Tasks that do nothing".into(),
            header: header.map(String::from).to_vec(),
            rows: arms.iter().map(row).collect(),
        }],
        notes: vec!["Times are in result.json under provenance.".into()],
        json: json!({"arms": arms_json, "summary": {}}),
        figures: Vec::new(),
        maps: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{parse, run};

    fn echo(payload: &'static [u8], reply_bytes: u32) -> Task {
        ECHO.task::<Echo>(&EchoTask { payload: Bytes::from_static(payload), reply_bytes })
    }

    #[test]
    fn echo_cuts_and_pads() {
        let reply = |task: &Task| checked::<Echo>(&task.run().unwrap()).payload;
        assert_eq!(reply(&echo(b"abc", 2)), b"ab".as_slice());
        assert_eq!(reply(&echo(b"abc", 5)), b"abc\0\0".as_slice());
        let sharing = |bytes| echo(b"abc", 5).sharing(bytes);
        assert_eq!(reply(&sharing(Bytes::from_static(b"defg"))), b"abcde".as_slice());
        assert_eq!(reply(&sharing(Bytes::from_static(b"d"))), b"abcd\0".as_slice());
        assert!(echo(b"", u32::MAX).run().is_err());
        assert!(sharing(vec![0; ECHO_BYTES_MAX + 1].into()).run().is_err());
    }

    #[test]
    fn an_echo_of_another_length_is_refused() {
        let wrong = echo(b"abc", 3).run().unwrap();
        assert!(echo(b"abc", 2).check(&wrong).unwrap_err().0.contains("3 bytes, not 2"));
        assert!(echo(b"abc", 2).check(&Bytes::new()).is_err());
        assert!(echo(b"abc", 2).check(&Bytes::from_static(&[0xff; 9])).is_err());
    }

    #[test]
    fn the_report_says_what_was_computed() {
        let text = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 5\n[arms.a]\n[arms.b]\ntasks = 7\n";
        let config = parse(text);
        let report = config.report(&run(&config));
        insta::assert_snapshot!(report.tables[0]);
        assert!(report.figures.is_empty());
    }
}
