//! Experiment `calls`: calls of a person's function, each computed once on some worker, with their returned values in order.
//! `evoxo.Executor` in Python writes its files (docs/executor.md).
//!
//! Calls and values are texts in base64 that only the person's program understands. The engine passes them on.

mod program;
#[cfg(test)]
mod tests;

use evoxo_common::{
    digest::Digest,
    experiment::{Answer, Answers, Asks, Said},
    prelude::*,
    report::Sheet,
    settings::Values,
    task::{NoPrograms, ProgramId, Programs},
};

use messages::{CallOutput, CallTask, Returned, State};
use program::Function;

/// The messages of `calls.proto`.
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;

/// The kind's name, as in experiment files and introductions of programs.
const NAME: &str = "calls";

/// The kind.
pub const KIND: Kind = Kind::of::<Calls>();

/// The most calls of a run.
pub const CALLS_MAX: usize = 10_000;
/// The most bytes of all calls of a run, as text. A file has at most 1 MiB.
const CALLS_BYTES_MAX: usize = 900 << 10;
/// The most bytes of a returned text, unless the file allows fewer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// The most bytes of a task's returned texts, unless the task has only one call.
const OUTPUT_BYTES: u64 = 4 << 20;
/// The bytes of a message's fields that are not texts, with a margin.
const FRAME_BYTES: u64 = 128;
/// The bytes that frame a text in a message, with a margin.
const TEXT_FRAME_BYTES: u64 = 16;
/// The most characters of a program's name.
const NAME_BYTES_MAX: usize = 64;

settings! {
    /// Calls of your own function, each computed once on some worker. `evoxo.Executor` in Python writes such files
    /// (docs/executor.md).
    pub struct Settings, names Name, schema SCHEMA {
        /// The program that computes the calls, by its name on the workers. Empty: each call returns its own text, to test a
        /// cluster.
        program: String = text(NAME_BYTES_MAX, ""),
        /// The hash of the program's description of itself. Empty: `evoxo run` and `evoxo submit` fill it in.
        signature: String = text(64, ""),
        /// The calls, each a text in base64 that the program understands, separated by commas. At most 10,000.
        calls: String = text(CALLS_BYTES_MAX, "MQ==,Mg==,Mw=="),
        /// The most bytes of a returned value, as text in base64.
        answer_bytes: u32 = whole(64, ANSWER_BYTES_MAX, "65536"),
        /// Calls of a task; fewer if their values could exceed 4 MiB.
        slice: usize = execution whole(1, 1_000, "1"),
        /// The time limit of a call, in seconds. When it is exceeded, the program is stopped and its task fails.
        timeout: u64 = execution whole(1, 604_800, "600"),
    }
    check(|settings| settings.problems())
}

impl Settings {
    fn problems(&self) -> Vec<(Name, String)> {
        let mut found = Vec::new();
        if !self.program.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
            found.push((Name::program, "a program's name has only letters, digits, _, . and -".into()));
        }
        if !self.signature.is_empty() && Digest::from_hex(&self.signature).is_none() {
            let sentence = "signature is not a hash of 64 hexadecimal digits: leave it out, and it is filled in";
            found.push((Name::signature, sentence.into()));
        }
        match self.calls().count() {
            0 => found.push((Name::calls, "there are no calls: give at least one".into())),
            count if count > CALLS_MAX => {
                found.push((Name::calls, format!("there are {count} calls, more than {CALLS_MAX}")));
            }
            _ => found.extend(
                self.calls()
                    .position(|call| !is_base64(call))
                    .map(|place| (Name::calls, format!("call {place} is not a text in base64"))),
            ),
        }
        found
    }

    /// The calls; none if the setting is empty.
    fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.split(',').filter(|_| !self.calls.is_empty())
    }

    /// The calls of a task.
    fn task_calls(&self) -> usize {
        self.slice.min((OUTPUT_BYTES / u64::from(self.answer_bytes)) as usize).max(1)
    }

    /// The time limit of a task, in milliseconds.
    fn task_ms(&self) -> u64 {
        self.timeout * 1000 * self.task_calls() as u64
    }
}

/// Whether a text has the form of base64 with padding, with at least one byte in it.
fn is_base64(text: &str) -> bool {
    let symbols = text.trim_end_matches('=');
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    !symbols.is_empty() && text.len().is_multiple_of(4) && text.len() - symbols.len() <= 2 && symbols.bytes().all(plain)
}

row! {
    /// A row is a call.
    struct Row, primary calls {
        /// calls computed
        calls: u64,
        /// calls that raised an error
        raised: u64,
    }
}

/// Computes calls.
pub enum Call {}

impl Compute for Call {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "call";
    type Task = CallTask;
    type Output = CallOutput;

    fn run(task: &CallTask, shared: &Bytes) -> Result<CallOutput, Refusal> {
        Self::run_asking(task, shared, &mut NoPrograms)
    }

    fn run_asking(task: &CallTask, shared: &Bytes, programs: &mut dyn Programs) -> Result<CallOutput, Refusal> {
        if task.calls.len() > CALLS_MAX || task.calls.iter().any(|call| !is_base64(call)) {
            return Err(Refusal(format!("the task has more than {CALLS_MAX} calls, or one that is not in base64")));
        }
        let returned = match task.program.as_str() {
            "" => task.calls.iter().map(|text| Returned { text: text.clone(), raised: false }).collect(),
            name => Function { name, programs }.call(task)?,
        };
        let output = CallOutput { returned };
        Self::check(task, shared, &output)?;
        Ok(output)
    }

    fn check(task: &CallTask, _: &Bytes, CallOutput { returned }: &CallOutput) -> Result<(), Refusal> {
        if returned.len() != task.calls.len() {
            return Err(Refusal(format!("there are {} values for {} calls", returned.len(), task.calls.len())));
        }
        let most = u64::from(task.answer_bytes).min(ANSWER_BYTES_MAX) as usize;
        match returned.iter().position(|Returned { text, .. }| text.len() > most || !is_base64(text)) {
            None => Ok(()),
            Some(place) => Err(Refusal(format!(
                "the value of call {place} of the task has more than {most} bytes, or is not in base64"
            ))),
        }
    }

    /// Calls that return themselves, one that returns too much, and one of a program that is not there.
    fn workload() -> Vec<(CallTask, Bytes)> {
        let task = |program: &str, calls: &[&str]| {
            let calls = calls.iter().copied().map(String::from).collect();
            (CallTask { program: program.into(), calls, answer_bytes: 8, timeout_ms: 1000 }, Bytes::new())
        };
        vec![task("", &["MQ==", "Mg=="]), task("", &["MTIzNDU2Nzg5"]), task("f", &["MQ=="]), task("", &["*"])]
    }
}

/// How the tasks use programs.
const ASKS: Asks = Asks {
    program: |values| {
        let Settings { program, signature, .. } = Settings::of(values);
        (!program.is_empty()).then(|| ProgramId { name: program, signature: Digest::from_hex(&signature) })
    },
    is_default: false,
    signature: |name, programs| Function { name, programs }.signature(),
    settings: said,
    arm: |name| SCHEMA.defaults().with("program", name),
    questions: Values::to_text,
    answers,
};

/// The settings that follow from the program: its signature.
fn said(values: &Values, programs: &mut dyn Programs) -> Result<Vec<Said>, Refusal> {
    let settings = Settings::of(values);
    let own = Function { name: &settings.program, programs }.signature()?.to_string();
    match settings.signature.as_str() {
        "" => Ok(vec![("signature", own)]),
        of_run if of_run == own => Ok(Vec::new()),
        _ => Err(Refusal(format!(
            "the program {} is not the one with which this run was started: start a new run, or use the old program",
            settings.program
        ))),
    }
}

/// What the program returns for calls of the file, for `evoxo check`.
fn answers(values: &Values, numbers: &[usize], programs: &mut dyn Programs) -> Answers {
    let settings = Settings::of(values);
    let all: Vec<&str> = settings.calls().collect();
    let task = CallTask {
        program: settings.program.clone(),
        calls: numbers.iter().map(|number| all[number % all.len()].to_owned()).collect(),
        answer_bytes: settings.answer_bytes,
        timeout_ms: settings.timeout.saturating_mul(1000 * numbers.len() as u64),
    };
    let said = |Returned { text, raised }: Returned| if raised { Err(text) } else { Ok(text) };
    let output = Call::run_asking(&task, &Bytes::new(), programs)?;
    Ok(output.returned.into_iter().map(|one| Answer { what: "a call of the file", said: said(one) }).collect())
}

/// One replica.
struct Calls {
    settings: Settings,
    calls: Vec<String>,
    state: State,
}

impl Calls {
    /// How many calls raised an error.
    fn raised(&self) -> u64 {
        self.state.returned.iter().filter(|one| one.raised).count() as u64
    }
}

impl Experiment for Calls {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Call>()];
    const ASKS: Option<Asks> = Some(ASKS);
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = Standard;

    fn demand(settings: &Settings) -> Demand {
        let (count, longest) =
            settings.calls().fold((0, 0), |(count, longest), call| (count + 1, longest.max(call.len())));
        let of_task = settings.task_calls() as u64;
        let answer = u64::from(settings.answer_bytes) + TEXT_FRAME_BYTES;
        Demand {
            tasks: count,
            task_bytes: (of_task * (longest as u64 + TEXT_FRAME_BYTES)).min(2 * CALLS_BYTES_MAX as u64) + FRAME_BYTES,
            output_bytes: of_task * answer,
            state_bytes: count * answer,
            rows: count,
            task_ms: if settings.program.is_empty() { 0 } else { settings.task_ms() },
            ..Demand::default()
        }
    }

    fn restore(Identity { settings, .. }: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let calls: Vec<String> = settings.calls().map(str::to_owned).collect();
        let most = settings.answer_bytes as usize;
        fits(state.returned.len() <= calls.len())?;
        fits(state.returned.iter().all(|one| one.text.len() <= most && is_base64(&one.text)))?;
        Ok(Self { settings, calls, state })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        (self.calls.len() - self.state.returned.len()).div_ceil(self.settings.task_calls())
    }

    /// Calls do not wait for each other.
    fn has_barrier(&self) -> bool {
        false
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let (left, slice) = (&self.calls[self.state.returned.len()..], self.settings.task_calls());
        let task = |calls: &[String]| {
            Task::of::<Call>(&CallTask {
                program: self.settings.program.clone(),
                calls: calls.to_vec(),
                answer_bytes: self.settings.answer_bytes,
                timeout_ms: self.settings.task_ms(),
            })
        };
        left.chunks(slice).skip(tasks.start).take(tasks.len()).map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let mut raised = self.raised();
        for one in outputs.iter().flat_map(|output| checked::<Call>(output).returned) {
            raised += u64::from(one.raised);
            self.state.returned.push(one);
            history.push(Row { calls: self.state.returned.len() as u64, raised });
        }
        Ok(())
    }

    /// What the calls returned, in order.
    fn sheet(&self) -> Option<Sheet> {
        let row = |one: &Returned| vec![if one.raised { "1" } else { "0" }.into(), one.text.clone()];
        Some(Sheet {
            name: "returned",
            header: ["raised", "text"].map(String::from).to_vec(),
            rows: self.state.returned.iter().map(row).collect(),
        })
    }
}
