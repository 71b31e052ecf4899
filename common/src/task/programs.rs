//! Programs that tasks ask: a user's own code, in any language, that runs next to a worker.

use serde_json::Value;

use super::Refusal;
use crate::digest::Digest;

/// The programs of one slot of a worker. A program introduces itself with one line, and then answers each line with one line.
/// Its answers must be a function of the questions, just as the output of a task is a function of its bytes.
pub trait Programs {
    /// The line with which the program of this name introduced itself.
    ///
    /// # Errors
    /// A [`Refusal`] that says that there is no such program, or how it failed.
    fn introduction(&mut self, name: &str) -> Result<String, Refusal>;

    /// Asks the program of this name a question, which `question` makes from the question's number. Returns the number and
    /// the answer, which must arrive within this time, in milliseconds. Each question has a different number, so that a late
    /// answer is recognized.
    ///
    /// # Errors
    /// A [`Refusal`] that says that there is no such program, or how it failed. A program that failed is stopped.
    fn ask(&mut self, name: &str, question: &dyn Fn(u64) -> String, within_ms: u64) -> Result<(u64, String), Refusal>;

    /// Whether this is the first call with these words since the program of this name was started.
    ///
    /// # Errors
    /// A [`Refusal`] that says that there is no such program, or how it failed.
    fn is_first(&mut self, name: &str, words: &str) -> Result<bool, Refusal>;

    /// Notes that a program differs from the one that the task expects, so the task is not to blame for its refusal.
    fn disown(&mut self);

    /// Stops a program whose answer makes no sense, because its next answers cannot be trusted.
    fn stop(&mut self, name: &str);
}

/// The kind of experiment that a program serves, if its introduction says so: `{"serves": "KIND", ...}`.
pub(crate) fn serves(introduction: &str) -> Option<String> {
    serde_json::from_str::<Value>(introduction).ok()?.get("serves")?.as_str().map(String::from)
}

/// No programs.
#[derive(Clone, Copy, Debug)]
pub struct NoPrograms;

impl Programs for NoPrograms {
    fn introduction(&mut self, name: &str) -> Result<String, Refusal> {
        Err(Refusal(format!("there is no program {name} here")))
    }

    fn ask(&mut self, name: &str, _: &dyn Fn(u64) -> String, _: u64) -> Result<(u64, String), Refusal> {
        self.introduction(name).map(|line| (0, line))
    }

    fn is_first(&mut self, name: &str, _: &str) -> Result<bool, Refusal> {
        self.introduction(name).map(|_| true)
    }

    fn disown(&mut self) {}

    fn stop(&mut self, _: &str) {}
}

/// A program that tasks ask, and what it computes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramId {
    /// The program's name on the workers.
    pub name: String,
    /// The hash of the program's introduction and of its answers to fixed questions. Workers whose programs have the same
    /// signature may work on the same run. `None` in a file that does not state it yet.
    pub signature: Option<Digest>,
}
