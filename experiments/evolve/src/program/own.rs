//! The conversation with a program about the person's own algorithm. Each question is complete: it has the algorithm's saved
//! state and the values of the last batch, so that any process of the program can answer it.

use std::collections::BTreeMap;

use evoxo_common::{
    digest::Digest,
    experiment::Said,
    rng::{Generator, Stream, unit},
    task::Refusal,
    text::beginning,
};
use prost::Message as _;
use rand_core::Rng as _;
use serde_json::{Map, Value, json};

use super::{Asked, CANNED_TURNS, LINE_BYTES_MAX, number_of, shown};
use crate::{
    activity::Activity,
    algorithm::{Listed as _, OwnAlgorithm, check_answer, own},
    evaluation::Evaluation,
    genome::Genome,
    messages::{AskOutput, AskTask, Individual},
    notation::Notation,
    settings::Settings,
    start,
};

/// The most bytes of the reason why there is no batch.
const FAIL_BYTES_MAX: usize = 1000;

impl Asked<'_> {
    /// The next batch of the person's own algorithm.
    pub(crate) fn batch(&mut self, settings: &Settings, task: &AskTask) -> Result<AskOutput, Refusal> {
        let (genome, notations) = (settings.genome(), settings.notations());
        let question = question(settings, &genome, &notations, task).map_err(Refusal)?;
        if question.len() + super::FRAME_BYTES > LINE_BYTES_MAX {
            return Err(refusal(
                settings,
                &format!("its question has {} bytes: set a smaller population", question.len()),
            ));
        }
        let line = |number| format!("{{\"batch\":{number},\"ask\":{question}}}");
        let (number, answer) = self.programs.ask(self.name, &line, task.timeout_ms)?;
        let read = match read(&genome, &notations, &settings.activity(), number, &answer) {
            Ok(read) => read,
            Err(why) => return self.refuse(&format!("gave a wrong answer: {why}; it wrote {}", shown(&answer))),
        };
        let output = read.and_then(|output| check_answer(&genome, task.most, &output).map(|()| output));
        output.map_err(|why| refusal(settings, &why))
    }

    /// The settings that follow from the program of the person's own algorithm, or an error if it does not have this algorithm.
    pub(crate) fn settings_of_own(&mut self, settings: &Settings) -> Result<Vec<Said>, Refusal> {
        let own = own(&settings.own);
        let algorithms = self.introduction()?.algorithms;
        if !algorithms.contains_key(&own.own) {
            let has: Vec<&str> = algorithms.keys().map(String::as_str).collect();
            let has = if has.is_empty() { "it has none".into() } else { format!("it has {}", has.join(", ")) };
            return Err(Refusal(format!("the program {} has no algorithm {:?}: {has}", self.name, own.own)));
        }
        // The program of a problem has its signature in the problem's own setting.
        let signature = if settings.program().is_some() { String::new() } else { self.signature()?.to_string() };
        let answers = self.answers_of_own(settings)?;
        let mut follow = Vec::new();
        for (key, is, of_run) in
            [("own_signature", signature, &own.own_signature), ("own_answers", answers, &own.own_answers)]
        {
            if of_run.is_empty() && !is.is_empty() {
                follow.push((key, is));
            } else if *of_run != is {
                return Err(Refusal(format!(
                    "the algorithm {} of the program {} is not the one with which this run was started; start a new run, or use \
                     the old program",
                    own.own, self.name
                )));
            }
        }
        Ok(follow)
    }

    /// Tries the person's own algorithm with fixed questions, once after each start of the program.
    pub(crate) fn try_out_own(&mut self, settings: &Settings) -> Result<(), Refusal> {
        let expected = own(&settings.own).own_answers;
        if expected.is_empty() || !self.programs.is_first(self.name, &expected)? {
            return Ok(());
        }
        let answers = self.answers_of_own(settings).inspect_err(|_| {
            // The next task must try it again.
            self.programs.stop(self.name);
        })?;
        if answers == expected {
            return Ok(());
        }
        self.programs.disown();
        self.refuse(
            "of this worker has an algorithm with other batches than the one with which the run was started: give the worker \
             that program; if it has it, `evoxo check` with the file shows whether the algorithm returns the same twice",
        )
    }

    /// The hash of the algorithm's answers to fixed questions.
    fn answers_of_own(&mut self, settings: &Settings) -> Result<String, Refusal> {
        let answers = self.conversation(settings, 0)?;
        Ok(Digest::of_pieces(
            answers.iter().map(AskOutput::encode_to_vec).collect::<Vec<_>>().iter().map(Vec::as_slice),
        )
        .to_string())
    }

    /// The first batches of the person's own algorithm in a search with drawn values, which this number determines.
    pub(crate) fn conversation(&mut self, settings: &Settings, number: u64) -> Result<Vec<AskOutput>, Refusal> {
        let most = OwnAlgorithm::settings(&settings.given()).batch as u64;
        let (mut told, mut all, mut asked) = (Vec::new(), Vec::<AskOutput>::new(), Vec::new());
        for turn in 0..CANNED_TURNS {
            let mut rng = Stream::root(0).text("evolve").text("own").word(number).word(turn).rng();
            let task = AskTask {
                id: format!("canned-{number}-{turn}"),
                seed: rng.next_u64(),
                state: all.last().map(|last| last.state.clone()).unwrap_or_default(),
                told: std::mem::take(&mut told),
                most,
                timeout_ms: settings.timeout * 1000,
            };
            let output = self.batch(settings, &task)?;
            let drawn = |candidate: &_| Individual {
                candidate: Some(Clone::clone(candidate)),
                evaluation: Some(evaluation(settings, &mut rng).message()),
            };
            told = output.candidates.iter().map(drawn).collect();
            all.push(output);
            asked.push(task);
        }
        // A run asks in any order, and its processes share nothing.
        for (task, output) in asked.iter().zip(&all).rev() {
            if self.batch(settings, task)? != *output {
                let why = "it returns another batch when it is asked the same again: it keeps something that save does not \
                           return, or uses a clock or other random numbers";
                return Err(refusal(settings, why));
            }
        }
        Ok(all)
    }
}

/// The refusal of what the person's own algorithm returned.
pub(crate) fn refusal(settings: &Settings, why: &str) -> Refusal {
    Refusal(format!("the algorithm {}: {why}", own(&settings.own).own))
}

/// An evaluation with drawn numbers.
fn evaluation(settings: &Settings, rng: &mut Generator) -> Evaluation {
    let [objectives, constraints, measures] =
        settings.counts().map(|count| (0..count).map(|_| unit(rng)).collect::<Vec<f64>>());
    // As many constraints are met as not.
    let constraints = constraints.iter().map(|number| number - 0.5).collect();
    Evaluation { objectives, constraints, measures, failed: false }
}

/// A question, without its number.
fn question(settings: &Settings, genome: &Genome, notations: &[Notation], task: &AskTask) -> Result<String, String> {
    let own = own(&settings.own);
    let given: Value =
        serde_json::from_str(&own.own_settings).map_err(|why| format!("own_settings is not JSON: {why}"))?;
    let mut parts: Vec<Value> =
        genome.parts.iter().zip(notations).map(|(part, notation)| notation.declaration(part)).collect();
    for (part, declared) in parts.iter_mut().zip(&settings.genome.0).filter(|(_, declared)| !declared.when.is_empty()) {
        part["when"] = declared.when.as_str().into();
    }
    let told = |one: &Individual| -> Result<Value, String> {
        let (candidate, evaluation) = (one.candidate.as_ref(), one.evaluation.as_ref());
        let (candidate, evaluation) = candidate.zip(evaluation).ok_or("a candidate of the last batch has no value")?;
        let candidate = genome.candidate(candidate)?;
        let genes = genome.parts.iter().zip(notations).zip(&candidate.parts);
        let genes: Map<String, Value> =
            genes.map(|((part, notation), genes)| (part.name.clone(), notation.json(genes))).collect();
        Ok(match evaluation.failure.is_empty() {
            true => json!({
                "genes": genes, "f": evaluation.objectives, "g": evaluation.constraints, "m": evaluation.measures,
            }),
            false => json!({"genes": genes, "fail": true}),
        })
    };
    let objectives: Vec<String> = settings.objectives().into_iter().map(|(_, name)| name).collect();
    Ok(json!({
        "algorithm": own.own,
        "settings": given,
        "genome": parts,
        "objectives": objectives,
        "constraints": settings.constraints_by_name(),
        "measures": settings.measures_by_name(),
        "id": task.id,
        "seed": format!("{:016x}", task.seed),
        "most": task.most,
        "state": if task.state.is_empty() { Value::Null } else { task.state.as_str().into() },
        "told": task.told.iter().map(told).collect::<Result<Vec<Value>, String>>()?,
    })
    .to_string())
}

/// An answer. The inner error is what the algorithm reports itself, or what is wrong with its batch; the outer one is a line
/// that is not an answer.
fn read(
    genome: &Genome,
    notations: &[Notation],
    activity: &Activity,
    number: u64,
    answer: &str,
) -> Result<Result<AskOutput, String>, String> {
    let answer = number_of(number, answer)?;
    if let Some(fail) = answer.get("fail") {
        let fail = fail.as_str().filter(|text| !text.is_empty()).ok_or("\"fail\" must be a sentence")?;
        let plain: String = fail.chars().filter(|letter| !letter.is_control()).collect();
        return Ok(Err(beginning(&plain, FAIL_BYTES_MAX).to_owned()));
    }
    let state = answer["state"].as_str().ok_or("it has no text \"state\"")?.to_owned();
    let items = answer["items"].as_array().ok_or("it has no list \"items\"")?;
    let candidate = |(index, item): (usize, &Value)| {
        let read = start::candidate(item.clone(), genome, notations, activity).map(|candidate| candidate.message());
        read.map_err(|why| format!("candidate {} of its batch: {why}", index + 1))
    };
    let candidates: Result<Vec<_>, String> = items.iter().enumerate().map(candidate).collect();
    Ok(candidates.map(|candidates| AskOutput { state, candidates }))
}

/// The algorithms of a program, each with its version.
pub(super) type Algorithms = BTreeMap<String, String>;
