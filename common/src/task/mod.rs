//! Tasks: what workers compute. A task is a pure function of its bytes.
//!
//! A kind of task is a value, [`TaskKind`], which an experiment makes of its own messages with [`Compute`]; which kinds
//! there are only a [`Registry`](crate::experiment::Registry) knows. A task's name is a hash of its encoded bytes, so
//! results can be accepted from anyone who computed those bytes; how tasks are encoded and named, and how they travel, is in
//! `encoded`.

mod encoded;

use bytes::Bytes;
use evoxo_proto::TASK_BYTES_MAX;
use prost::Message;

pub use encoded::{Encoded, Encoder, Shared, SharedCache};

use crate::digest::Digest;

/// Why a task cannot be computed, or an output is not the answer to its task: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// A kind of task in terms of its experiment's own messages.
pub trait Compute {
    /// The kind of experiment.
    const EXPERIMENT: &'static str;
    /// Which of its tasks, as in the field `work` of a task.
    const WORK: &'static str;
    /// The body of a task.
    type Task: Message + Default;
    /// Its output.
    type Output: Message + Default;

    /// Computes a task with the bytes that it shares with others: a pure function, the same bytes in and out on every
    /// machine.
    ///
    /// # Errors
    /// A [`Refusal`] if the task makes no sense; it is as deterministic as an output.
    fn run(task: &Self::Task, shared: &Bytes) -> Result<Self::Output, Refusal>;

    /// Checks that an output has the shape of an answer to the task, so that nothing behind this line needs to distrust it.
    /// (Whether it is the right answer only a second computation can tell.)
    ///
    /// # Errors
    /// A [`Refusal`] that says what is wrong with it.
    fn check(task: &Self::Task, shared: &Bytes, output: &Self::Output) -> Result<(), Refusal>;

    /// A few tasks with their shared bytes that touch every branch of the computation: the hash of their outputs is part of
    /// the kind's behaviour signature.
    fn workload() -> Vec<(Self::Task, Bytes)>;
}

/// A kind of task: [`Compute`] as a value.
pub struct TaskKind {
    /// The kind of experiment.
    pub experiment: &'static str,
    /// Which of its tasks.
    pub work: &'static str,
    run: fn(&Bytes, &Bytes) -> Result<Bytes, Refusal>,
    check: fn(&Bytes, &Bytes, &Bytes) -> Result<Bytes, Refusal>,
    workload: fn() -> Vec<(Bytes, Bytes)>,
}

impl TaskKind {
    /// The kind that computes like this.
    #[must_use]
    pub const fn of<C: Compute>() -> Self {
        Self {
            experiment: C::EXPERIMENT,
            work: C::WORK,
            run: |body, shared| Ok(C::run(&read(body)?, shared)?.encode_to_vec().into()),
            check: |body, shared, output| {
                let output: C::Output = decode("the output", output)?;
                C::check(&read(body)?, shared, &output)?;
                Ok(output.encode_to_vec().into())
            },
            workload: || {
                C::workload().into_iter().map(|(body, shared)| (body.encode_to_vec().into(), shared)).collect()
            },
        }
    }

    /// A task of this kind that shares nothing.
    ///
    /// # Panics
    /// If the body is not of this kind: see [`Task::sharing`] for how it is used.
    #[must_use]
    pub fn task<C: Compute>(&'static self, body: &C::Task) -> Task {
        assert_eq!((self.experiment, self.work), (C::EXPERIMENT, C::WORK), "a body of another kind of task");
        Task { kind: self, body: body.encode_to_vec().into(), shared: Bytes::new() }
    }

    /// The fixed workload, computed: its tasks, each with its output, or the sentence of its refusal.
    #[must_use]
    pub fn workload(&'static self) -> Vec<(Task, Bytes)> {
        let compute = |(body, shared)| {
            let task = Task { kind: self, body, shared };
            let output = task.run().unwrap_or_else(|refusal| refusal.0.into_bytes().into());
            (task, output)
        };
        (self.workload)().into_iter().map(compute).collect()
    }

    /// The hash of the outputs of the fixed workload.
    #[must_use]
    pub fn signature(&'static self) -> Digest {
        let computed = self.workload();
        Digest::of_pieces(computed.iter().map(|(_, output)| output.as_ref()))
    }
}

impl std::fmt::Debug for TaskKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.experiment, self.work)
    }
}

/// The body of a task.
fn read<T: Message + Default>(body: &Bytes) -> Result<T, Refusal> {
    decode("the task", body)
}

fn decode<T: Message + Default>(what: &str, bytes: &Bytes) -> Result<T, Refusal> {
    if bytes.len() > TASK_BYTES_MAX {
        return Err(Refusal(format!("{what} has {} bytes, more than {TASK_BYTES_MAX}", bytes.len())));
    }
    T::decode(bytes.clone()).map_err(|error| Refusal(format!("{what} cannot be read: {error}")))
}

/// One unit of work.
#[derive(Clone, Debug)]
pub struct Task {
    /// What to do.
    pub kind: &'static TaskKind,
    /// A message of the kind's, encoded.
    pub body: Bytes,
    /// Bytes that other tasks have too, such as the weights from which all workers of a round begin; may be empty. They
    /// travel once a session.
    pub shared: Bytes,
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        let of = |task: &Self| (task.kind.experiment, task.kind.work);
        of(self) == of(other) && self.body == other.body && self.shared == other.shared
    }
}

impl Eq for Task {}

impl Task {
    /// The same task with these shared bytes.
    #[must_use]
    pub fn sharing(self, shared: Bytes) -> Self {
        Self { shared, ..self }
    }

    /// Computes it: its encoded output.
    ///
    /// # Errors
    /// The [`Refusal`] of a task that makes no sense.
    pub fn run(&self) -> Result<Bytes, Refusal> {
        (self.kind.run)(&self.body, &self.shared)
    }

    /// Checks an output and gives it in its canonical form: two outputs that say the same are the same bytes.
    ///
    /// # Errors
    /// A [`Refusal`] that says what is wrong with it.
    pub fn check(&self, output: &Bytes) -> Result<Bytes, Refusal> {
        (self.kind.check)(&self.body, &self.shared, output)
    }
}

/// An output that was checked, in the messages of its experiment.
///
/// # Panics
/// If it was not.
#[must_use]
pub fn checked<C: Compute>(output: &Bytes) -> C::Output {
    C::Output::decode(output.clone()).expect("outputs are checked before they are absorbed")
}
