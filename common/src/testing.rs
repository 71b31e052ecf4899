//! A small experiment for the tests of this crate, which knows no real one: tasks that multiply, and the sum of their
//! outputs.

use std::ops::Range;

use bytes::Bytes;

use crate::{
    card::Card,
    experiment::{
        Column, Config, Demand, Experiment, Identity, Kind, Registry, standard_headline, standard_report,
        standard_report_of_result,
    },
    settings,
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

/// See [`Multiply`].
pub(crate) static MULTIPLY: TaskKind = TaskKind::of::<Multiply>();

/// A task with this number.
pub(crate) fn multiply(number: u64) -> Task {
    MULTIPLY.task::<Multiply>(&number)
}

struct Sums {
    settings: Settings,
    round: u64,
    sum: u64,
}

impl Experiment for Sums {
    fn tasks(&self) -> usize {
        if self.round == self.settings.rounds { 0 } else { self.settings.tasks as usize }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        tasks.map(|index| multiply(self.round + index as u64)).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        self.sum += outputs.iter().map(checked::<Multiply>).sum::<u64>();
        self.round += 1;
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        [self.round.to_le_bytes(), self.sum.to_le_bytes()].concat()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        vec![vec![self.sum as f64]]
    }

    fn champion(&self) -> Option<Card> {
        None
    }
}

fn start(identity: Identity<'_>) -> Box<dyn Experiment> {
    let settings = Settings::of(identity.settings);
    let sum = settings.terms.0.iter().map(|term| u64::from(term.number)).sum();
    Box::new(Sums { settings, round: 0, sum })
}

fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Box<dyn Experiment>, String> {
    let (words, []) = state.as_chunks::<8>() else { return Err("the state is cut".into()) };
    let [round, sum] = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()[..] else {
        return Err("the state has other numbers".into());
    };
    Ok(Box::new(Sums { settings: Settings::of(identity.settings), round, sum }))
}

/// The experiment.
pub(crate) const SUMS: Kind = Kind {
    name: "sums",
    schema: &SCHEMA,
    columns: &[Column { name: "sum", doc: "the sum so far" }],
    primary_metric: 0,
    tail: |_| 1,
    is_solution: None,
    ranking: None,
    rounds: |settings| Settings::of(settings).rounds,
    demand: |settings| {
        let Settings { rounds, tasks, .. } = Settings::of(settings);
        Demand {
            tasks: tasks.into(),
            task_bytes: 48,
            output_bytes: 16,
            state_bytes: 16,
            rows: rounds,
            ..Demand::default()
        }
    },
    start,
    restore,
    tasks: &[&MULTIPLY],
    asks: None,
    reads: None,
    complete: None,
    cards: &[],
    plays: &[],
    report: standard_report,
    report_of_result: standard_report_of_result,
    headline: standard_headline,
    kernels: &[],
};

/// A registry of this experiment only.
pub(crate) fn registry() -> Registry {
    Registry::new([&SUMS])
}

/// A configuration with these arms.
pub(crate) fn config(arms: &str) -> Config {
    let text = format!("experiment = \"sums\"\nreplicas = 2\n{arms}");
    Config::parse(&registry(), "test", &text, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}
