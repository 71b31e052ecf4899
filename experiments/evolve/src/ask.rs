//! The task that asks a program for the next batch of the person's own algorithm.

use bytes::Bytes;
use evoxo_common::task::{Compute, NoPrograms, Programs, Refusal};

use super::{
    algorithm::check_answer,
    messages::{AskOutput, AskTask},
    program::{Asked, refusal},
    task::{NAME, read, shared},
};

/// Asks for a batch.
pub(super) enum Ask {}

impl Compute for Ask {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "ask";
    type Task = AskTask;
    type Output = AskOutput;

    fn run(task: &AskTask, shared: &Bytes) -> Result<AskOutput, Refusal> {
        Self::run_asking(task, shared, &mut NoPrograms)
    }

    fn run_asking(task: &AskTask, shared: &Bytes, programs: &mut dyn Programs) -> Result<AskOutput, Refusal> {
        let settings = read(shared)?.0;
        let name = settings.asked().ok_or_else(|| Refusal("the task has no algorithm of a program".into()))?;
        let mut asked = Asked { name: &name, programs };
        asked.try_out_own(&settings)?;
        asked.batch(&settings, task)
    }

    fn check(task: &AskTask, shared: &Bytes, output: &AskOutput) -> Result<(), Refusal> {
        let settings = read(shared)?.0;
        check_answer(&settings.genome(), task.most, output).map_err(|why| refusal(&settings, &why))
    }

    /// Without a program, a task of a good search and one of a search without a program are refused.
    fn workload() -> Vec<(AskTask, Bytes)> {
        let task = AskTask { id: "main-0-0".into(), seed: 1, most: 10, timeout_ms: 1000, ..AskTask::default() };
        let of = |settings: &str| (task.clone(), shared(settings, Bytes::new()).encode());
        vec![
            of("problem = \"sphere\"\nalgorithm = \"own\"\nown = \"mine\"\n"),
            of("problem = \"sphere\"\nalgorithm = \"ga\"\n"),
        ]
    }
}
