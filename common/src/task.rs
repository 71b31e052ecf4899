//! What workers compute: `run` and nothing else.
//!
//! A task's name is a hash of its encoded bytes, so results can be accepted from anyone who computed those bytes; how
//! tasks are encoded and named, and how they travel, is in `encoded`.

mod encoded;

use bytes::Bytes;
use evoxo_proto::{
    TASK_BYTES_MAX,
    v1::{EchoOutput, EchoTask, KindSignature, Output, Task, output, task},
};
use prost::Message as _;

pub use encoded::{Encoded, Kept, Shared, encode};

use crate::{
    digest::Digest,
    experiment::{
        invincible::score,
        nndtf::task as nndtf,
        rules::wire,
        td3d::{part, segment},
        ternary::tournament,
    },
};

/// Why a task cannot be computed, or an output is not the answer to its task: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// The longest payload, shared part or reply of an [`EchoTask`], in bytes.
pub const ECHO_BYTES_MAX: usize = 1 << 20;

/// Computes a task: a pure function, the same bytes in and out on every machine.
///
/// # Errors
/// A [`Refusal`] if the task makes no sense; it is as deterministic as an output.
pub fn run(task: &Task) -> Result<Output, Refusal> {
    let result = match &task.work {
        Some(task::Work::Echo(echo)) => output::Result::Echo(run_echo(echo, &task.shared)?),
        Some(task::Work::TableScore(table_score)) => output::Result::TableScore(score::score(table_score)?),
        Some(task::Work::Learn(learn)) => output::Result::Learn(segment::run(learn)?),
        Some(task::Work::LearnPart(part)) => output::Result::LearnPart(part::run(part, &task.shared)?),
        Some(task::Work::NndtfFitness(fitness)) => output::Result::NndtfFitness(nndtf::fitness(fitness)?),
        Some(task::Work::NndtfSegment(segment)) => output::Result::NndtfSegment(nndtf::segment(segment)?),
        Some(task::Work::RulesCycles(cycles)) => output::Result::RulesCycles(wire::run_cycles(cycles)?),
        Some(task::Work::RulesCouples(couples)) => output::Result::RulesCouples(wire::run_couples(couples)?),
        Some(task::Work::Ternary(ternary)) => output::Result::Ternary(tournament::tournament(ternary, &task.shared)?),
        None => {
            return Err(Refusal(
                "the task has no work this build knows: use a worker of the coordinator's version".into(),
            ));
        }
    };
    Ok(Output { result: Some(result) })
}

/// [`run`] on a whole encoded task.
///
/// # Errors
/// A [`Refusal`] if the bytes are not a task or the task makes no sense.
pub fn run_encoded(bytes: &Bytes) -> Result<Bytes, Refusal> {
    Ok(run(&decode_task(bytes)?)?.encode_to_vec().into())
}

/// Reads a whole task, as [`Encoded::whole`] writes it.
///
/// # Errors
/// A [`Refusal`] if the bytes are too many or not a task.
pub fn decode_task(bytes: &Bytes) -> Result<Task, Refusal> {
    if bytes.len() > TASK_BYTES_MAX {
        return Err(Refusal(format!("the task has {} bytes, more than {TASK_BYTES_MAX}", bytes.len())));
    }
    Task::decode(bytes.clone()).map_err(|error| Refusal(format!("the task's bytes are not a task: {error}")))
}

/// Reads an output and checks that it has the shape of an answer to `task`, so that nothing behind this line needs to
/// distrust it. (Whether it is the right answer only a second computation can tell.)
///
/// # Errors
/// A [`Refusal`] that says what is wrong with it.
pub fn decode_output(task: &Task, bytes: &Bytes) -> Result<Output, Refusal> {
    if bytes.len() > TASK_BYTES_MAX {
        return Err(Refusal(format!("the output has {} bytes, more than {TASK_BYTES_MAX}", bytes.len())));
    }
    let output = Output::decode(bytes.clone()).map_err(|error| Refusal(format!("not an output: {error}")))?;
    match (&task.work, &output.result) {
        (Some(task::Work::Echo(echo)), Some(output::Result::Echo(reply))) => {
            if reply.payload.len() != echo.reply_bytes as usize {
                return Err(Refusal(format!("an echo of {} bytes, not {}", reply.payload.len(), echo.reply_bytes)));
            }
        }
        (Some(task::Work::TableScore(task)), Some(output::Result::TableScore(output))) => score::check(task, output)?,
        (Some(task::Work::Learn(task)), Some(output::Result::Learn(output))) => segment::check(task, output)?,
        (Some(task::Work::LearnPart(part)), Some(output::Result::LearnPart(output))) => {
            part::check(part, &task.shared, output)?;
        }
        (Some(task::Work::NndtfFitness(task)), Some(output::Result::NndtfFitness(output))) => {
            nndtf::check_fitness(task, output)?;
        }
        (Some(task::Work::NndtfSegment(task)), Some(output::Result::NndtfSegment(output))) => {
            nndtf::check_segment(task, output)?;
        }
        (Some(task::Work::RulesCycles(task)), Some(output::Result::RulesCycles(output))) => {
            wire::check_cycles(task, output)?;
        }
        (Some(task::Work::RulesCouples(task)), Some(output::Result::RulesCouples(output))) => {
            wire::check_couples(task, output)?;
        }
        (Some(task::Work::Ternary(task)), Some(output::Result::Ternary(output))) => tournament::check(task, output)?,
        _ => return Err(Refusal(format!("the output is not of the task's kind, {}", kind(task)))),
    }
    Ok(output)
}

/// The name of a task's kind: its field in `Task.work`.
#[must_use]
pub fn kind(task: &Task) -> &'static str {
    match &task.work {
        Some(task::Work::Echo(_)) => "echo",
        Some(task::Work::TableScore(_)) => "table_score",
        Some(task::Work::Learn(_)) => "learn",
        Some(task::Work::LearnPart(_)) => "learn_part",
        Some(task::Work::NndtfFitness(_)) => "nndtf_fitness",
        Some(task::Work::NndtfSegment(_)) => "nndtf_segment",
        Some(task::Work::RulesCycles(_)) => "rules_cycles",
        Some(task::Work::RulesCouples(_)) => "rules_couples",
        Some(task::Work::Ternary(_)) => "ternary",
        None => "unknown",
    }
}

fn run_echo(echo: &EchoTask, shared: &Bytes) -> Result<EchoOutput, Refusal> {
    let reply_bytes = echo.reply_bytes as usize;
    if [echo.payload.len(), shared.len(), reply_bytes].into_iter().any(|bytes| bytes > ECHO_BYTES_MAX) {
        return Err(Refusal(format!("an echo may carry, share and return at most {ECHO_BYTES_MAX} bytes")));
    }
    let mut payload: Vec<u8> = echo.payload.iter().chain(shared).copied().take(reply_bytes).collect();
    payload.resize(reply_bytes, 0);
    Ok(EchoOutput { payload: payload.into() })
}

/// What this build computes: for each kind of task the hash of its outputs on a fixed workload, sorted by kind. Two
/// builds with the same signature may work on the same run.
#[must_use]
pub fn signature() -> Vec<KindSignature> {
    let echo = vec![task::Work::Echo(EchoTask { payload: Bytes::from_static(b"evoxo"), reply_bytes: 8 }).into()];
    let [nndtf_fitness, nndtf_segment] = nndtf::workload();
    let [rules_couples, rules_cycles] = wire::workloads();
    // Sorted by kind.
    let workloads = [
        echo,
        segment::workload(),
        part::workload(),
        nndtf_fitness,
        nndtf_segment,
        rules_couples,
        rules_cycles,
        score::workload(),
        tournament::workload(),
    ];
    let hash = |tasks: &Vec<Task>| {
        let outputs: Vec<Vec<u8>> = tasks
            .iter()
            .map(|task| run(task).map_or_else(|refusal| refusal.0.into_bytes(), |output| output.encode_to_vec()))
            .collect();
        Digest::of_pieces(outputs.iter().map(Vec::as_slice))
    };
    workloads
        .iter()
        .map(|tasks| KindSignature { kind: kind(&tasks[0]).into(), sha256: Bytes::copy_from_slice(&hash(tasks).0) })
        .collect()
}

/// One hash over a [`signature`], to name a build's behaviour in checkpoints and for people.
#[must_use]
pub fn signature_digest(signature: &[KindSignature]) -> Digest {
    Digest::of_pieces(signature.iter().flat_map(|kind| [kind.kind.as_bytes(), &kind.sha256]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(payload: &'static [u8], reply_bytes: u32) -> Task {
        task::Work::Echo(EchoTask { payload: Bytes::from_static(payload), reply_bytes }).into()
    }

    #[test]
    fn echo_cuts_and_pads() {
        let reply = |task: &Task| match run(task).unwrap().result {
            Some(output::Result::Echo(echo)) => echo.payload,
            other => panic!("{other:?}"),
        };
        assert_eq!(reply(&echo(b"abc", 2)), b"ab".as_slice());
        assert_eq!(reply(&echo(b"abc", 5)), b"abc\0\0".as_slice());
        let sharing = |bytes| Task { shared: bytes, ..echo(b"abc", 5) };
        assert_eq!(reply(&sharing(Bytes::from_static(b"defg"))), b"abcde".as_slice());
        assert_eq!(reply(&sharing(Bytes::from_static(b"d"))), b"abcd\0".as_slice());
        assert!(run(&echo(b"", u32::MAX)).is_err());
        assert!(run(&sharing(vec![0; ECHO_BYTES_MAX + 1].into())).is_err());
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        assert!(run(&Task::default()).is_err());
        assert!(run_encoded(&Bytes::from_static(&[0xff; 9])).is_err());
        let task = echo(b"abc", 2);
        let wrong = run_encoded(&echo(b"abc", 3).encode_to_vec().into()).unwrap();
        assert!(decode_output(&task, &wrong).unwrap_err().0.contains("3 bytes, not 2"));
        assert!(decode_output(&task, &Bytes::new()).is_err());
    }

    #[test]
    fn the_signature_is_pinned() {
        let lines: Vec<String> = signature()
            .iter()
            .map(|kind| format!("{} {}", kind.kind, Digest::from_slice(&kind.sha256).unwrap()))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
