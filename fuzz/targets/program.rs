//! Everything that the programs of users write to workers: their introductions and their answers.

#![no_main]

use std::{collections::VecDeque, sync::OnceLock};

use evoxo_common::{
    experiment::{Config, Replica},
    task::{Encoded, Encoder, Programs, Refusal},
};
use evoxo_fuzz::{
    registry,
    steps::{Step, steps},
};

const FILE: &str = "experiment = \"evolve\"\n[settings]\nproblem = \"program:p\"\nsignature = \"SIGNATURE\"\n\
    evaluations = 8\npopulation = 4\nslice = 2\nobjectives = \"min cost\"\nconstraints = 1\nmeasures = 0\n\
    genome = [{ name = \"x\", type = \"real\", length = 2, low = -1.0, high = 1.0 }]\n";

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut program = Said(steps(input, 8).collect());
    if let Ok(found) = registry().introduce("p", &mut program) {
        assert!(found.iter().all(|(_, id)| id.name == "p" && id.signature.is_some()));
    }
    let mut program = Said(steps(input, 8).collect());
    for task in tasks() {
        if let Ok(output) = registry().run(task, &mut program) {
            let task = registry().decode(task).expect("the task was encoded here");
            assert_eq!(task.check(&output), Ok(output), "the coordinator refuses what a worker has accepted");
        }
    }
    let mut program = Said(steps(input, 8).collect());
    let config = config();
    let asks = config.kind.asks.expect("the kind asks programs");
    drop((asks.settings)(&config.arms[0].settings, &mut program));
});

/// A program that writes these lines, one after another.
struct Said(VecDeque<Step>);

impl Said {
    fn line(&mut self) -> Result<String, Refusal> {
        let step = self.0.pop_front().ok_or_else(|| Refusal("it has ended".into()))?;
        match step.what {
            // The worker's own thread would stop the program before this.
            255 => Err(Refusal("it took too long".into())),
            _ => String::from_utf8(step.bytes.to_vec()).map_err(|_| Refusal("it is not UTF-8".into())),
        }
    }
}

impl Programs for Said {
    fn introduction(&mut self, _: &str) -> Result<String, Refusal> {
        self.line()
    }

    fn ask(&mut self, _: &str, question: &dyn Fn(u64) -> String, _: u64) -> Result<(u64, String), Refusal> {
        assert!(!question(7).contains('\n'), "a question is one line");
        Ok((7, self.line()?))
    }

    fn is_first(&mut self, _: &str, _: &str) -> Result<bool, Refusal> {
        Ok(true)
    }

    fn disown(&mut self) {}

    fn stop(&mut self, _: &str) {}
}

fn config() -> Config {
    let text = FILE.replace("SIGNATURE", &"0".repeat(64));
    Config::parse(registry(), "a file", &text, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The tasks of a run that uses a program.
fn tasks() -> &'static [Encoded] {
    static TASKS: OnceLock<Vec<Encoded>> = OnceLock::new();
    TASKS.get_or_init(|| {
        let config = config();
        let replica = Replica::start(&config, &config.arms[0], 0);
        let mut encoder = Encoder::default();
        replica.plan(0..replica.tasks()).into_iter().map(|task| encoder.encode(task)).collect()
    })
}
