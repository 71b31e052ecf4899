//! The protocol with programs that compute calls: one line of JSON in each direction.

use evoxo_common::{
    digest::Digest,
    task::{Programs, Refusal},
    text::beginning,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    NAME,
    messages::{CallTask, Returned},
};

/// The version of the protocol.
const PROTOCOL: u64 = 1;
/// The most bytes of an answer that are shown in a message.
const SHOWN_MAX: usize = 120;

/// A program's description of itself.
#[derive(Deserialize)]
struct Introduction {
    evoxo: u64,
    serves: String,
    name: String,
    version: String,
}

/// A program of this name, among the programs of a worker.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) programs: &'a mut dyn Programs,
}

impl Function<'_> {
    fn refuse<T>(&mut self, why: &str) -> Result<T, Refusal> {
        self.programs.stop(self.name);
        Err(Refusal(format!("the program {} {why}", self.name)))
    }

    /// The hash of the program's name and version.
    pub(super) fn signature(&mut self) -> Result<Digest, Refusal> {
        let line = self.programs.introduction(self.name)?;
        let introduction = serde_json::from_str(&line).ok();
        let Some(Introduction { evoxo: PROTOCOL, serves, name, version }) = introduction else {
            return self.refuse(&format!(
                "does not introduce itself as a function: its first line must be {{\"evoxo\":{PROTOCOL},\"serves\":\"{NAME}\",\
                 \"name\":...,\"version\":...}}, and is {:?}",
                beginning(&line, SHOWN_MAX)
            ));
        };
        if serves != NAME {
            return self.refuse(&format!("serves experiments of the kind {serves:?}, not {NAME}"));
        }
        if name != self.name {
            return self.refuse(&format!("calls itself {name:?}: give it as --program {name}=COMMAND"));
        }
        Ok(Digest::of(json!([serves, name, version]).to_string().as_bytes()))
    }

    /// Computes the calls of a task.
    pub(super) fn call(&mut self, task: &CallTask) -> Result<Vec<Returned>, Refusal> {
        let line =
            |number| json!({"batch": number, "answer_bytes": task.answer_bytes, "calls": task.calls}).to_string();
        let (number, answer) = self.programs.ask(self.name, &line, task.timeout_ms)?;
        match read(number, &answer) {
            Some(returned) => Ok(returned),
            None => self.refuse(&format!(
                "gave a wrong answer: it must be {{\"batch\":{number},\"returned\":[...]}}, each entry with \"text\" and \
                 \"raised\", and is {:?}",
                beginning(&answer, SHOWN_MAX)
            )),
        }
    }
}

/// The values in an answer to the question with this number; none if it has another form.
fn read(number: u64, answer: &str) -> Option<Vec<Returned>> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let one = |one: &Value| {
        Some(Returned { text: one.get("text")?.as_str()?.to_owned(), raised: one.get("raised")?.as_bool()? })
    };
    answer.get("returned").filter(|_| answer["batch"] == number)?.as_array()?.iter().map(one).collect()
}
