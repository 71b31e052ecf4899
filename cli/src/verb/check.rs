//! `evoxo check --program rosen="python3 rosen.py"`: checks whether a program always gives the same answers.

use std::{
    io::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use evoxo_common::{
    experiment::{Answer, Asks, Registry},
    settings::Values,
};
use evoxo_worker::{Processes, Program};
use serde_json::{Value, json};

use crate::{
    json,
    say::{stdout, usage, whole},
    source::{Experiment, with_notice},
    stop,
};

/// The program and its candidates.
#[derive(clap::Args)]
#[command(
    after_help = "The same candidates are evaluated several times: again, in reversed order, one at a time, in small \
batches, in a fresh process, and in fresh processes with another PYTHONHASHSEED. Values that differ are shown. \
With a file this is done for each arm that asks the program something different, until one fails. A \
check that finds nothing is not a proof.

Exit status: 0 if all values are the same; 1 if values differ, if no candidate has a value, or if the program \
failed; 2 for wrong usage."
)]
pub(crate) struct Arguments {
    /// The program, for example rosen="python3 rosen.py"
    #[arg(long, value_name = "NAME=COMMAND")]
    program: Program,
    /// An experiment file that asks the program: needed if the program does not declare its genome, or has an algorithm
    file: Option<PathBuf>,
    /// Number of candidates to evaluate
    #[arg(long, value_name = "N", default_value_t = 12, allow_negative_numbers = true, value_parser = whole::<usize>(1, 10_000))]
    candidates: usize,
    /// Print JSON: {"program", "arm", "pure", "candidates", "seconds", "differences", "failed"}
    #[arg(long)]
    json: bool,
}

/// The last processes start at least this long after the first one, so that a clock of whole seconds has advanced.
const CLOCK: Duration = Duration::from_millis(1100);
/// The number of candidates in a small batch.
const BATCH: usize = 5;
/// The hash seed of the first processes, and the seeds of the last ones. Under two different seeds, a set of two strings has
/// the same order half of the time.
const HASH_SEED: u32 = 1;
const OTHER_HASH_SEEDS: [u32; 3] = [2, 3, 4];

/// A way to evaluate the candidates, and the likely cause if their values differ from those of the first run.
type Way = (&'static str, &'static str);

const FIRST: &str = "the first run";
const AGAIN: Way = (
    "the same process once more",
    "the program keeps something from one candidate to the next, or uses a clock or unseeded random numbers",
);
const REVERSED: Way = ("the same process in reversed order", "the value depends on the candidates before it");
const ALONE: Way = ("the same process, one at a time", "the value depends on the candidates of the same batch");
const BATCHES: Way = ("the same process, in small batches", "the value depends on the candidates of the same batch");
const FRESH: Way = (
    "a fresh process",
    "the program uses a clock, unseeded random numbers, or something that differs from start to start",
);
// If a process keeps something when it first sees a candidate, this shows only in a process that has seen other candidates
// before.
const FRESH_REVERSED: Way = ("a fresh process in reversed order", "the value depends on the candidates before it");
const FRESH_SHUFFLED: Way = ("a fresh process, odd numbers first", "the value depends on the candidates before it");
const SEEDED: Way =
    ("a fresh process with another PYTHONHASHSEED", "the program uses the order of a set, or hash() of a text");

/// The answers of one run, by candidate.
struct Run {
    way: Way,
    answers: Vec<Answer>,
}

/// The findings.
struct Found {
    expected: Vec<Answer>,
    runs: Vec<Run>,
    /// Seconds for one candidate.
    seconds: f64,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (asks, arms) = arms(arguments, registry)?;
    // Most arms differ in what the program never sees.
    let mut different: Vec<(String, &(String, Values))> = Vec::new();
    for arm in &arms {
        let questions = (asks.questions)(&arm.1);
        if different.iter().all(|(other, _)| *other != questions) {
            different.push((questions, arm));
        }
    }
    let mut checked = None;
    for (_, (arm, values)) in &different {
        let program = Checked { program: &arguments.program, asks, values };
        let found = match (program.check(arguments.candidates), arms.len()) {
            (found, 1) => found?,
            (found, _) => found.with_context(|| format!("arm \"{arm}\""))?,
        };
        let is_good = found.is_good();
        checked = Some((arm, found));
        if !is_good {
            break;
        }
    }
    let (arm, found) = checked.expect("an arm asks the program");
    let name = &arguments.program.name;
    let place = match (found.is_good(), different.len()) {
        _ if arms.len() == 1 => String::new(),
        (false, _) => format!(" in arm \"{arm}\""),
        (true, 1) => format!(" (the same in all {} arms)", arms.len()),
        (true, several) => format!(" of each arm ({several} of {} are different)", arms.len()),
    };
    let text = if arguments.json { json::text(&found.json(name, arm)) } else { found.text(name, &place) };
    write!(stdout(), "{text}")?;
    Ok(if found.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arms that ask the program, by name: from the file, or one from the program alone.
fn arms(arguments: &Arguments, registry: &Registry) -> anyhow::Result<(Asks, Vec<(String, Values)>)> {
    stop::with_programs()?;
    let program = &arguments.program;
    if let Some(file) = &arguments.file {
        let config = Experiment::of(file.clone(), program.clone()).read(registry)?;
        let refusal =
            || usage(format!("{} does not ask a program {}: give a file that does", file.display(), program.name));
        let asks = config.kind.asks.ok_or_else(refusal)?;
        let asked = |values: &Values| (asks.program)(values).is_some_and(|asked| asked.name == program.name);
        let arms = config.arms.into_iter().filter(|arm| asked(&arm.settings)).map(|arm| (arm.name, arm.settings));
        let arms: Vec<(String, Values)> = arms.collect();
        return if arms.is_empty() { Err(refusal()) } else { Ok((asks, arms)) };
    }
    let asks = registry.kinds().iter().find_map(|kind| kind.asks);
    let asks = asks.ok_or_else(|| usage("no kind of experiment of this build asks programs"))?;
    let values = (asks.arm)(&program.name);
    let mut processes = Processes::new(Arc::from([program.clone()]));
    let ask = || (asks.settings)(&values, &mut processes);
    let said = with_notice(std::slice::from_ref(program), ask).map_err(|why| anyhow!(why.to_string()))?;
    Ok((asks, vec![("main".into(), said.iter().fold(values, |values, (name, text)| values.with(name, text)))]))
}

/// The program that is being checked.
struct Checked<'a> {
    program: &'a Program,
    asks: Asks,
    values: &'a Values,
}

impl Checked<'_> {
    fn check(&self, count: usize) -> anyhow::Result<Found> {
        let began = Instant::now();
        let (forward, backward): (Vec<usize>, Vec<usize>) = ((0..count).collect(), (0..count).rev().collect());
        let mut processes = self.processes(HASH_SEED);
        let expected = self.ask(&mut processes, forward.chunks(count))?;
        let asked = Instant::now();
        let mut runs = vec![Run { way: AGAIN, answers: self.ask(&mut processes, forward.chunks(count))? }];
        let seconds = asked.elapsed().as_secs_f64() / count as f64;
        for (way, order, batch) in [(REVERSED, &backward, count), (ALONE, &forward, 1), (BATCHES, &forward, BATCH)] {
            runs.push(Run { way, answers: self.ask(&mut processes, order.chunks(batch))? });
        }
        let odd_first: Vec<usize> = (0..count).skip(1).step_by(2).chain((0..count).step_by(2)).collect();
        for (way, order) in [(FRESH, &forward), (FRESH_REVERSED, &backward), (FRESH_SHUFFLED, &odd_first)] {
            processes = self.processes(HASH_SEED);
            runs.push(Run { way, answers: self.ask(&mut processes, order.chunks(count))? });
        }
        sleep(CLOCK.saturating_sub(began.elapsed()));
        for seed in OTHER_HASH_SEEDS {
            processes = self.processes(seed);
            let answers = self.ask(&mut processes, forward.chunks(count))?;
            let differs = answers != expected;
            runs.push(Run { way: SEEDED, answers });
            if differs {
                break;
            }
        }
        Ok(Found { expected, runs, seconds })
    }

    /// A process that has not started yet, with this seed for Python's hashes.
    fn processes(&self, hash_seed: u32) -> Processes {
        let command = format!("export PYTHONHASHSEED={hash_seed}\n{}", self.program.command);
        Processes::new(Arc::from([Program { name: self.program.name.clone(), command }]))
    }

    /// The answers to all candidates, in the order of their numbers. The candidates are asked for in these batches.
    fn ask<'b>(
        &self,
        processes: &mut Processes,
        batches: impl Iterator<Item = &'b [usize]>,
    ) -> anyhow::Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for batch in batches {
            let said = (self.asks.answers)(self.values, batch, processes).map_err(|why| anyhow!(why.to_string()))?;
            answers.extend(batch.iter().copied().zip(said));
        }
        answers.sort_by_key(|(number, _)| *number);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}

impl Found {
    /// The runs in which some candidates have other values, with the numbers of these candidates.
    fn differences(&self) -> Vec<(&Run, Vec<usize>)> {
        let differing = |run: &Run| -> Vec<usize> {
            (0..self.expected.len()).filter(|number| run.answers[*number] != self.expected[*number]).collect()
        };
        self.runs.iter().map(|run| (run, differing(run))).filter(|(_, numbers)| !numbers.is_empty()).collect()
    }

    /// Whether something can be evolved with the program.
    fn is_good(&self) -> bool {
        self.differences().is_empty() && !self.has_no_value()
    }

    /// Whether every candidate failed, for example because its value is NaN.
    fn has_no_value(&self) -> bool {
        self.expected.iter().all(|answer| answer.said.is_err())
    }

    /// The findings in words. `arms` says to what the last sentence applies, if there are several arms.
    fn text(&self, name: &str, arms: &str) -> String {
        let (mut lines, differences) = (Vec::new(), self.differences());
        for (run, numbers) in &differences {
            let (first, (way, why)) = (numbers[0], run.way);
            let more = if numbers.len() > 1 { format!(", and {} more", numbers.len() - 1) } else { String::new() };
            let what = self.expected[first].what;
            lines.push(format!("candidate {first} ({what}){more}: other values in {way}: {why}"));
            lines.push(format!("  {FIRST}: {}", words(&self.expected[first])));
            lines.push(format!("  {way}: {}", words(&run.answers[first])));
        }
        for (number, answer) in self.expected.iter().enumerate() {
            if let Err(why) = &answer.said {
                lines.push(format!("candidate {number} ({}) failed: {why}", answer.what));
            }
        }
        lines.push(match differences.is_empty() {
            _ if self.has_no_value() => {
                format!(
                    "{name} has no value for any of the {} candidates{arms}: nothing can be evolved with it",
                    self.expected.len()
                )
            }
            false => format!("{name} is not pure{arms}: its values must follow from the genes and the seed alone"),
            true => format!(
                "{name} is pure as far as {} candidates{arms} show; one candidate takes {}",
                self.expected.len(),
                duration(self.seconds)
            ),
        });
        lines.join("\n") + "\n"
    }

    fn json(&self, name: &str, arm: &str) -> Value {
        let differences = self.differences();
        let difference = |(run, numbers): &(&Run, Vec<usize>)| {
            let (way, why) = run.way;
            json!({
                "run": way,
                "why": why,
                "candidates": numbers,
                "first": words(&self.expected[numbers[0]]),
                "then": words(&run.answers[numbers[0]]),
            })
        };
        let failed =
            |(number, answer): (usize, &Answer)| Some(json!({"candidate": number, "why": answer.said.as_ref().err()?}));
        json!({
            "program": name,
            // The one that failed, or the last one.
            "arm": arm,
            "pure": differences.is_empty(),
            "candidates": self.expected.len(),
            "seconds": self.seconds,
            "differences": differences.iter().map(difference).collect::<Value>(),
            "failed": self.expected.iter().enumerate().filter_map(failed).collect::<Value>(),
        })
    }
}

fn words(answer: &Answer) -> String {
    answer.said.clone().unwrap_or_else(|why| format!("no value: {why}"))
}

fn duration(seconds: f64) -> String {
    match seconds {
        1.0.. => format!("{seconds:.1} s"),
        1e-3.. => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{:.1} us", seconds * 1e6),
    }
}
