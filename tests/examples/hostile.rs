//! `hostile coordinator ...`: a coordinator in which a task of `dispatch` does harm when the coordinator itself computes it.
//! Everything else is as in `evoxo-coordinator`, including the signature. The variable `HARM` selects the harm.

use std::process::ExitCode;

use bytes::Bytes;
use clap::Parser;
use evoxo_common::{
    experiment::{Kind, Registry},
    task::{Compute, Refusal, TaskKind},
};
use evoxo_experiments::dispatch::{
    self,
    messages::{EchoOutput, EchoTask},
};

struct Harm;

impl Compute for Harm {
    const EXPERIMENT: &'static str = "dispatch";
    const WORK: &'static str = "echo";
    type Task = EchoTask;
    type Output = EchoOutput;

    fn run(task: &EchoTask, shared: &Bytes) -> Result<EchoOutput, Refusal> {
        // The coordinator computes the fixed workload, too.
        if task.payload == "evoxo" {
            let mut payload: Vec<u8> =
                task.payload.iter().chain(shared).copied().take(task.reply_bytes as usize).collect();
            payload.resize(task.reply_bytes as usize, 0);
            return Ok(EchoOutput { payload: payload.into() });
        }
        match std::env::var("HARM").unwrap_or_default().as_str() {
            "abort" => std::process::abort(),
            "exit" => std::process::exit(0),
            "panic" => panic!("a task that panics"),
            "stack" => Err(Refusal(deeper(1).to_string())),
            "memory" => {
                // Memory that is not written to is not allocated, but the limit counts it.
                let pieces: Vec<Vec<u8>> = (0..1 << 20).map(|_| Vec::with_capacity(64 << 20)).collect();
                Err(Refusal(pieces.len().to_string()))
            }
            "loop" => loop {
                std::hint::spin_loop();
            },
            "length" => Ok(EchoOutput { payload: vec![0; 64 << 20].into() }),
            other => Err(Refusal(format!("there is no harm {other:?}"))),
        }
    }

    fn check(task: &EchoTask, _: &Bytes, output: &EchoOutput) -> Result<(), Refusal> {
        let right = output.payload.len() == task.reply_bytes as usize;
        if right { Ok(()) } else { Err(Refusal("the length is wrong".into())) }
    }

    fn workload() -> Vec<(EchoTask, Bytes)> {
        let echo = |reply_bytes| EchoTask { payload: Bytes::from_static(b"evoxo"), reply_bytes };
        vec![(echo(3), Bytes::new()), (echo(8), Bytes::from_static(b"ab"))]
    }
}

/// Recursion without an end, which the compiler cannot turn into a loop.
#[expect(unconditional_recursion, reason = "this is the harm")]
fn deeper(level: u64) -> u64 {
    let here = std::hint::black_box([level; 64]);
    here[0] + deeper(level + 1) + here[63]
}

const KIND: Kind = {
    let mut kind = dispatch::KIND;
    kind.tasks = &[TaskKind::of::<Harm>()];
    kind
};

#[derive(Parser)]
enum Verb {
    Coordinator(evoxo_coordinator::cli::Arguments),
}

fn main() -> ExitCode {
    evoxo_process::begin(evoxo_process::build());
    let Verb::Coordinator(arguments) = evoxo_process::parsed();
    let honest = evoxo_experiments::registry();
    let kinds = honest.kinds().iter().map(|kind| if kind.name == KIND.name { &KIND } else { *kind });
    match evoxo_coordinator::run(&arguments, Registry::new(kinds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            evoxo_process::say_failure(error);
            ExitCode::FAILURE
        }
    }
}
