//! A small experiment for the tests of this crate, which knows no real one: its tasks multiply, and the replica sums their
//! outputs.

use std::ops::Range;

use bytes::Bytes;

use crate::{
    experiment::{Config, Demand, Experiment, Identity, Kind, Registry, Standard, fits},
    row, settings,
    settings::{FromValue, Value},
    task::{Compute, Refusal, Task, TaskKind, checked},
};

settings! {
    /// A term.
    pub(crate) struct Term, names TermName, schema TERM {
        /// The number.
        number: u32 = whole(0, 9, "1"),
    }
    check(|_| Vec::new())
}

/// Terms, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms(pub(crate) Vec<Term>);

impl FromValue for Terms {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(Term::of).collect())
    }
}

settings! {
    /// Adds numbers.
    pub(crate) struct Settings, names Name, schema SCHEMA {
        /// Rounds of a replica.
        rounds: u64 = whole(1, 100, "3"),
        /// Tasks per round.
        tasks: u32 = whole(1, 100, "4"),
        /// Not used.
        slice: u32 = execution whole(0, 100, "0"),
        /// Added to the sum.
        terms: Terms = addition list(TERM, 3, ""),
    }
    check(|settings| match settings.rounds {
        99 => vec![(Name::rounds, "rounds is 99, which is not allowed".into())],
        _ => Vec::new(),
    })
}

/// Multiplies a number by the length of the shared bytes plus one.
pub(crate) struct Multiply;

impl Compute for Multiply {
    const EXPERIMENT: &'static str = "sums";
    const WORK: &'static str = "multiply";
    type Task = u64;
    type Output = u64;

    fn run(task: &u64, shared: &Bytes) -> Result<u64, Refusal> {
        task.checked_mul(1 + shared.len() as u64).ok_or_else(|| Refusal(format!("{task} is too large")))
    }

    fn check(task: &u64, _: &Bytes, output: &u64) -> Result<(), Refusal> {
        if output < task { Err(Refusal(format!("{output} is less than {task}"))) } else { Ok(()) }
    }

    fn workload() -> Vec<(u64, Bytes)> {
        vec![(3, Bytes::from_static(b"ab")), (u64::MAX, Bytes::from_static(b"a"))]
    }
}

/// A task with this number.
pub(crate) fn multiply(number: u64) -> Task {
    Task::of::<Multiply>(&number)
}

row! {
    /// A row is a round.
    pub(crate) struct Row, primary sum {
        /// the sum so far
        sum: u64,
    }
}

/// The state of a replica.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct State {
    #[prost(uint64, tag = "1")]
    round: u64,
    #[prost(uint64, tag = "2")]
    sum: u64,
}

pub(crate) struct Sums {
    settings: Settings,
    state: State,
}

impl Experiment for Sums {
    const NAME: &'static str = "sums";
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Multiply>()];
    const MAY_CHANGE: &'static [&'static str] = &["tasks"];
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = Standard;

    fn demand(settings: &Settings) -> Demand {
        let Settings { rounds, tasks, .. } = *settings;
        Demand {
            tasks: tasks.into(),
            task_bytes: 48,
            output_bytes: 16,
            state_bytes: 24,
            rows: rounds,
            ..Demand::default()
        }
    }

    fn first(identity: &Identity<'_, Self>) -> State {
        State { round: 0, sum: identity.settings.terms.0.iter().map(|term| u64::from(term.number)).sum() }
    }

    fn restore(identity: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let settings = identity.settings;
        fits(state.round <= settings.rounds)?;
        Ok(Self { settings, state })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        if self.state.round == self.settings.rounds { 0 } else { self.settings.tasks as usize }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        tasks.map(|index| multiply(self.state.round + index as u64)).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        self.state.sum += outputs.iter().map(checked::<Multiply>).sum::<u64>();
        self.state.round += 1;
        history.push(Row { sum: self.state.sum });
        Ok(())
    }
}

/// The experiment.
pub(crate) const SUMS: Kind = Kind::of::<Sums>();

/// A registry of this experiment only.
pub(crate) fn registry() -> Registry {
    Registry::new([&SUMS])
}

/// A configuration with these arms.
pub(crate) fn config(arms: &str) -> Config {
    let text = format!("experiment = \"sums\"\nreplicas = 2\n{arms}");
    Config::parse(&registry(), "test", &text, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}
