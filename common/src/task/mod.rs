//! Tasks: the work of workers. A task is a pure function of its bytes.
//!
//! A kind of task is a value, [`TaskKind`], which [`Compute`] makes from an experiment's own messages; only a
//! [`Registry`](crate::experiment::Registry) knows all kinds. A task is identified by a hash of its encoded bytes, so results
//! can be accepted from any worker that computed these bytes. `encoded` has the encoding, the hash and the form in messages.

mod encoded;
mod programs;

use bytes::Bytes;
use evoxo_proto::TASK_BYTES_MAX;
use prost::Message;

pub use encoded::{Encoded, Encoder, Shared, SharedCache};
pub(crate) use programs::serves;
pub use programs::{NoPrograms, ProgramId, Programs};

use crate::digest::Digest;

/// The reason why a task cannot be computed, or why an output does not fit its task: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// A kind of task, with its experiment's own messages.
pub trait Compute {
    /// The kind of experiment.
    const EXPERIMENT: &'static str;
    /// The kind of its tasks: the field `work` of a task.
    const WORK: &'static str;
    /// The body of a task.
    type Task: Message + Default;
    /// The output of a task.
    type Output: Message + Default;

    /// Computes a task, given the bytes that it shares with others. It must be a pure function with the same output bytes on
    /// every machine.
    ///
    /// # Errors
    /// A [`Refusal`] if the task is invalid; it is as deterministic as an output.
    fn run(task: &Self::Task, shared: &Bytes) -> Result<Self::Output, Refusal>;

    /// Computes a task on a worker with programs, for tasks that ask one of them.
    ///
    /// # Errors
    /// The same as for [`Self::run`]. Also if a program fails, which need not be deterministic.
    fn run_asking(task: &Self::Task, shared: &Bytes, _: &mut dyn Programs) -> Result<Self::Output, Refusal> {
        Self::run(task, shared)
    }

    /// Checks that an output fits its task, so that code that uses it later can rely on it. (Only a second computation can
    /// tell whether it is correct.)
    ///
    /// # Errors
    /// A [`Refusal`] that says what is wrong with the output.
    fn check(task: &Self::Task, shared: &Bytes, output: &Self::Output) -> Result<(), Refusal>;

    /// The same task with only these of its parts, in this order, for kinds whose tasks have
    /// [several parts](Recallable::parts). By default a task is a single part.
    fn only(task: Self::Task, _parts: &[usize]) -> Self::Task {
        task
    }

    /// The output of each part of a task, as if it were the task's only part. The encoded outputs of all parts, one after the
    /// other, are the encoded output of the task.
    fn divided(output: Self::Output) -> Vec<Self::Output> {
        vec![output]
    }

    /// A few tasks, with their shared bytes, that reach every branch of the computation. The hash of their outputs is part of
    /// the kind's behaviour signature.
    fn workload() -> Vec<(Self::Task, Bytes)>;
}

/// A kind of task: [`Compute`] as a value.
pub struct TaskKind {
    /// The kind of experiment.
    pub experiment: &'static str,
    /// The kind of its tasks.
    pub work: &'static str,
    run: fn(&Bytes, &Bytes, &mut dyn Programs) -> Result<Bytes, Refusal>,
    check: fn(&Bytes, &Bytes, &Bytes) -> Result<Bytes, Refusal>,
    only: fn(&Bytes, &[usize]) -> Bytes,
    divided: fn(&Bytes) -> Vec<Bytes>,
    workload: fn() -> Vec<(Bytes, Bytes)>,
}

impl TaskKind {
    /// The kind of task that `C` defines.
    #[must_use]
    pub const fn of<C: Compute>() -> Self {
        Self {
            experiment: C::EXPERIMENT,
            work: C::WORK,
            run: |body, shared, programs| Ok(C::run_asking(&read(body)?, shared, programs)?.encode_to_vec().into()),
            check: |body, shared, output| {
                let output: C::Output = decode("the output", output)?;
                C::check(&read(body)?, shared, &output)?;
                Ok(output.encode_to_vec().into())
            },
            only: |body, parts| {
                let task = C::Task::decode(body.clone()).expect("a task was planned by its kind");
                C::only(task, parts).encode_to_vec().into()
            },
            divided: |output| C::divided(checked::<C>(output)).iter().map(|part| part.encode_to_vec().into()).collect(),
            workload: || {
                C::workload().into_iter().map(|(body, shared)| (body.encode_to_vec().into(), shared)).collect()
            },
        }
    }

    /// The fixed workload with its outputs, or with the sentences of refusals.
    #[must_use]
    pub fn workload(&'static self) -> Vec<(Task, Bytes)> {
        let compute = |(body, shared)| {
            let task = Task { kind: self, body, shared, recallable: None };
            let output = task.run().unwrap_or_else(|refusal| refusal.0.into_bytes().into());
            (task, output)
        };
        (self.workload)().into_iter().map(compute).collect()
    }

    /// The output of each part of a task, given the task's [checked](Task::check) output.
    ///
    /// # Panics
    /// If the output was not checked.
    #[must_use]
    pub fn divided(&self, output: &Bytes) -> Vec<Bytes> {
        (self.divided)(output)
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

/// What the outputs of a task's parts depend on. An output is worth recalling if computing it takes longer than that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recallable {
    /// The name of what is computed, for example of a function with all its settings.
    pub problem: Digest,
    /// The name of each part: a hash of everything that its output depends on, including the problem. Parts with the same name
    /// have the same output, whatever runs and tasks they belong to.
    pub parts: Vec<Digest>,
    /// The seed of each part, if its name promises that the output does not depend on it; otherwise 0.
    pub seeds: Vec<u64>,
}

/// One unit of work.
#[derive(Clone, Debug)]
pub struct Task {
    /// The kind of task.
    pub kind: &'static TaskKind,
    /// The encoded body.
    pub body: Bytes,
    /// Bytes that other tasks have too, such as the weights from which all workers of a round start; may be empty. They are
    /// sent once per session.
    pub shared: Bytes,
    /// The names of the task's parts, if their outputs are worth recalling. No part of the encoded task.
    pub recallable: Option<Recallable>,
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        let of = |task: &Self| (task.kind.experiment, task.kind.work);
        of(self) == of(other) && self.body == other.body && self.shared == other.shared
    }
}

impl Eq for Task {}

impl Task {
    /// A task of the kind that `C` defines, without shared bytes.
    #[must_use]
    pub fn of<C: Compute>(body: &C::Task) -> Self {
        Self {
            kind: const { &TaskKind::of::<C>() },
            body: body.encode_to_vec().into(),
            shared: Bytes::new(),
            recallable: None,
        }
    }

    /// The same task with these shared bytes.
    #[must_use]
    pub fn sharing(self, shared: Bytes) -> Self {
        Self { shared, ..self }
    }

    /// The same task, whose outputs can be recalled by these names.
    #[must_use]
    pub fn recalled_by(self, recallable: Option<Recallable>) -> Self {
        Self { recallable, ..self }
    }

    /// The same task with only these of its parts, in this order. They have no names.
    ///
    /// # Panics
    /// If the task was not planned by its kind, or does not have these parts.
    #[must_use]
    pub fn only(&self, parts: &[usize]) -> Self {
        Self { body: (self.kind.only)(&self.body, parts), recallable: None, ..self.clone() }
    }

    /// Computes the task; returns its encoded output.
    ///
    /// # Errors
    /// The [`Refusal`] of an invalid task.
    pub fn run(&self) -> Result<Bytes, Refusal> {
        self.run_asking(&mut NoPrograms)
    }

    /// Computes the task with these programs; returns its encoded output.
    ///
    /// # Errors
    /// The [`Refusal`] of an invalid task, or of a program that fails.
    pub fn run_asking(&self, programs: &mut dyn Programs) -> Result<Bytes, Refusal> {
        (self.kind.run)(&self.body, &self.shared, programs)
    }

    /// Checks an output and returns it in its canonical form, in which equal outputs have equal bytes.
    ///
    /// # Errors
    /// A [`Refusal`] that says what is wrong with the output.
    pub fn check(&self, output: &Bytes) -> Result<Bytes, Refusal> {
        (self.kind.check)(&self.body, &self.shared, output)
    }
}

/// Decodes an output that was checked.
///
/// # Panics
/// If the output was not checked.
#[must_use]
pub fn checked<C: Compute>(output: &Bytes) -> C::Output {
    C::Output::decode(output.clone()).expect("outputs are checked before they are absorbed")
}
