//! Experiment `dispatch`: rounds of tasks that do nothing, to measure the overhead of a cluster and to test that it works.
//!
//! The state is a hash chained over all outputs in task order, so a lost, repeated or swapped output always changes it.

use std::iter::once;

use evoxo_common::{
    digest::Digest,
    experiment::{self, Config, Replica, ReplicaTold, Told},
    headline::Headline,
    prelude::*,
    report::{Report, Table},
};
use rand_core::Rng as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use messages::{EchoOutput, EchoTask, State};

/// The messages of `dispatch.proto`.
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;

/// The kind's name, as in experiment files.
const NAME: &str = "dispatch";

/// The kind.
pub const KIND: Kind = Kind::of::<Dispatch>();

settings! {
    /// Rounds of tasks that do nothing, to measure the overhead of a cluster.
    pub struct Settings, names Name, schema SCHEMA {
        /// Number of rounds. Each is planned when the previous one is complete.
        rounds: u64 = length whole(1, 1_000_000, "10"),
        /// Tasks per round.
        tasks: u64 = whole(1, 100_000, "10000"),
        /// Payload of each task, in bytes.
        payload_bytes: u64 = whole(8, 65_536, "1024"),
        /// Number of bytes that all tasks of a round share. They are sent to each worker once.
        shared_bytes: u64 = whole(0, 1_048_576, "0"),
        /// Length of each output in bytes. It has the task's payload, then the shared bytes, then zeros.
        reply_bytes: u32 = whole(0, 65_536, "100"),
    }
}

row! {
    /// A row is a round.
    struct Row, primary round {
        /// rounds completed
        round: u64,
    }
}

/// Returns the beginning of the bytes that it received.
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

impl Experiment for Dispatch {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Echo>()];
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = Arm;

    fn demand(settings: &Settings) -> Demand {
        let Settings { rounds, tasks, payload_bytes, shared_bytes, reply_bytes } = *settings;
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

    fn restore(Identity { settings, stream, .. }: Identity<'_, Self>, state: State) -> Result<Self, String> {
        fits(state.round <= settings.rounds)?;
        Ok(Self { stream, settings, state })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

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
            Task::of::<Echo>(&EchoTask { payload, reply_bytes: self.settings.reply_bytes }).sharing(shared.clone())
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let outputs = outputs.iter().map(|output| checked::<Echo>(output).payload);
        let pieces: Vec<Bytes> = once(self.state.chain.clone()).chain(outputs).collect();
        let chain = Digest::of_pieces(pieces.iter().map(AsRef::as_ref));
        self.state = State { round: self.state.round + 1, chain: Bytes::copy_from_slice(&chain.0) };
        history.push(Row { round: self.state.round });
        Ok(())
    }
}

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
struct Arm {
    replicas: Vec<ReplicaTold>,
}

impl Told for Arm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        Self { replicas: ReplicaTold::of_all(config, arm, &replicas[arm], |_| None) }
    }

    /// The report has only the amounts of work. Times are not results.
    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        let row = |(arm, Self { replicas }): (&experiment::Arm, &Self)| {
            let settings = Settings::of(&arm.settings);
            // A row of the history is a round.
            let rounds: u64 = replicas.iter().map(|replica| replica.rows).sum();
            let numbers = [
                replicas.len() as u64,
                rounds,
                rounds * settings.tasks,
                settings.payload_bytes,
                settings.shared_bytes,
                settings.reply_bytes.into(),
            ];
            once(arm.name.clone()).chain(numbers.map(|number| number.to_string())).collect()
        };
        let header = ["arm", "replicas", "rounds", "tasks computed", "bytes in", "bytes shared", "bytes out"];
        Ok(Report {
            tables: vec![Table {
                title: "Tasks that do nothing".into(),
                header: header.map(String::from).to_vec(),
                rows: config.arms.iter().zip(arms).map(row).collect(),
            }],
            notes: vec!["Times are in result.json under provenance.".into()],
            json: json!({"summary": {}}),
            figures: Vec::new(),
            maps: Vec::new(),
        })
    }

    /// There is no question, because the experiment measures a cluster.
    fn headline(_: &Config, _: &[Self]) -> Headline {
        Headline::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{parse, run};

    fn echo(payload: &'static [u8], reply_bytes: u32) -> Task {
        Task::of::<Echo>(&EchoTask { payload: Bytes::from_static(payload), reply_bytes })
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
    fn an_echo_of_the_wrong_length_is_rejected() {
        let wrong = echo(b"abc", 3).run().unwrap();
        assert!(echo(b"abc", 2).check(&wrong).unwrap_err().0.contains("3 bytes, not 2"));
        assert!(echo(b"abc", 2).check(&Bytes::new()).is_err());
        assert!(echo(b"abc", 2).check(&Bytes::from_static(&[0xff; 9])).is_err());
    }

    #[test]
    fn the_report_lists_the_computed_work() {
        let text = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 5\n[arms.a]\n[arms.b]\ntasks = 7\n";
        let config = parse(text);
        let report = config.report(&run(&config));
        insta::assert_snapshot!(report.tables[0]);
        assert!(report.figures.is_empty());
    }
}
