//! Programs that tasks ask: somebody's own code, in any language, that runs beside a worker.

use super::Refusal;
use crate::digest::Digest;

/// The programs of one slot of a worker. A program introduces itself with one line and then answers each line with one
/// line. What it answers must be a function of what it is asked, as the output of a task is one of its bytes.
pub trait Programs {
    /// The line with which the program of this name introduced itself.
    ///
    /// # Errors
    /// A [`Refusal`] that says that there is no such program, or how it failed.
    fn introduction(&mut self, name: &str) -> Result<String, Refusal>;

    /// Asks the program of this name the question that this function makes of the question's number, and gives the number
    /// and the answer, which must come within this time, in milliseconds. Numbers differ from question to question, so that
    /// an answer can be told from a late one.
    ///
    /// # Errors
    /// A [`Refusal`] that says that there is no such program, or how it failed. It is stopped then.
    fn ask(&mut self, name: &str, question: &dyn Fn(u64) -> String, within_ms: u64) -> Result<(u64, String), Refusal>;

    /// Whether this is the first time since the program of this name was started that somebody asks so about these words.
    ///
    /// # Errors
    /// A [`Refusal`] that says that there is no such program, or how it failed.
    fn is_first(&mut self, name: &str, words: &str) -> Result<bool, Refusal>;

    /// Says that a program is another one than the task expects, so that the task is not to blame for its refusal.
    fn disown(&mut self);

    /// Stops a program whose answer makes no sense: what it would answer next is unknown.
    fn stop(&mut self, name: &str);
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
    /// Its name on the workers.
    pub name: String,
    /// The hash of what it says of itself and of its answers to fixed questions: workers whose programs have the same may
    /// work on the same run. `None` in a file that does not say it yet.
    pub signature: Option<Digest>,
}
