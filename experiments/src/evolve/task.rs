//! The task of `evolve`: evaluates some candidates, by a built-in problem, by a WebAssembly module that the task brings, or by
//! a program beside the worker.

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    settings::Values,
    task::{Compute, NoPrograms, Programs, Refusal, TaskKind},
};
use rand_core::Rng as _;

use super::{
    genome::{Candidate, Genome},
    messages::{EvaluateOutput, EvaluateTask, Evaluation, Item},
    problem,
    program::{Asked, Form, Question},
    settings::{OnFailure, SCHEMA, Settings},
    wasm::{self, Counts},
};

/// The kind's name.
pub(super) const NAME: &str = "evolve";

/// The most candidates of a task.
pub const CANDIDATES_MAX: usize = 10_000;

/// Evaluates candidates.
pub enum Evaluate {}

/// See [`Evaluate`].
pub static EVALUATE: TaskKind = TaskKind::of::<Evaluate>();

impl Compute for Evaluate {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "evaluate";
    type Task = EvaluateTask;
    type Output = EvaluateOutput;

    fn run(task: &EvaluateTask, shared: &Bytes) -> Result<EvaluateOutput, Refusal> {
        Self::run_asking(task, shared, &mut NoPrograms)
    }

    fn run_asking(task: &EvaluateTask, shared: &Bytes, programs: &mut dyn Programs) -> Result<EvaluateOutput, Refusal> {
        let (settings, module) = read(shared)?;
        let genome = settings.genome();
        let candidates = candidates(task, &genome)?;
        let evaluations = match settings.built_in() {
            Some(problem) => candidates.iter().map(problem.evaluate).collect(),
            None if settings.module_file().is_some() => call(&settings, task, &candidates, module)?,
            None => ask(&settings, &genome, task, &candidates, programs)?,
        };
        check(&settings, &task.items, &evaluations)?;
        Ok(EvaluateOutput { evaluations })
    }

    fn check(task: &EvaluateTask, shared: &Bytes, output: &EvaluateOutput) -> Result<(), Refusal> {
        check(&read(shared)?.0, &task.items, &output.evaluations)
    }

    /// Random candidates of every built-in problem, and a module.
    fn workload() -> Vec<(EvaluateTask, Bytes)> {
        let of = |problem: &problem::Problem| {
            let algorithm = if problem.objectives.len() > 1 { "nsga2" } else { "random" };
            let length = problem.length.min(12).max(problem.lengths.0);
            let text = format!("problem = \"{}\"\nlength = {length}\nalgorithm = \"{algorithm}\"\n", problem.name);
            let genome = SCHEMA.read(&text).map(|values| Settings::of(&values).genome());
            let genome = genome.unwrap_or_else(|why| panic!("{}: {why}", problem.name));
            let item = |number: u64| {
                let mut rng = Stream::root(number).text("evolve").text("workload").rng();
                Item { id: number.to_string(), seed: number, candidate: Some(genome.random(&mut rng).message()) }
            };
            (EvaluateTask { items: (0..5).map(item).collect(), timeout_ms: 0 }, Bytes::from(text))
        };
        problem::PROBLEMS.iter().map(of).chain([wasm::workload()]).collect()
    }
}

/// What a task shares with others: these settings as a text, and a module if there is one. [`read`] is the inverse.
pub(super) fn shared(settings: &str, module: &[u8]) -> Bytes {
    // Of a setting as a text there is no empty line.
    let of_task = settings.lines().filter(|line| !line.starts_with("module = ")).map(|line| line.to_owned() + "\n");
    let settings: String = of_task.collect();
    if module.is_empty() { settings.into() } else { [settings.as_bytes(), b"\n", module].concat().into() }
}

/// The settings that a task shares with others, and the bytes of the module.
fn read(shared: &Bytes) -> Result<(Settings, &[u8]), Refusal> {
    let end = shared.windows(2).position(|pair| pair == b"\n\n").map_or(shared.len(), |place| place + 1);
    let (text, module) = (&shared[..end], shared.get(end + 1..).unwrap_or_default());
    let text = std::str::from_utf8(text).map_err(|_| Refusal("the settings of the task are not UTF-8".into()))?;
    let values = SCHEMA.read(text).map_err(|why| Refusal(format!("the settings of the task: {why}")))?;
    Ok((Settings::of(&values), module))
}

/// Evaluates a random candidate with these settings and this module, before a run begins.
///
/// # Errors
/// What a task would refuse.
pub(super) fn try_out(settings: &Values, module: &[u8]) -> Result<(), Refusal> {
    let mut rng = Stream::root(0).text("evolve").text("module").rng();
    let candidate = Settings::of(settings).genome().random(&mut rng);
    let item = Item { id: "random".into(), seed: rng.next_u64(), candidate: Some(candidate.message()) };
    let task = EvaluateTask { items: vec![item], timeout_ms: 0 };
    Evaluate::run(&task, &shared(&settings.to_text(), module)).map(drop)
}

fn candidates(task: &EvaluateTask, genome: &Genome) -> Result<Vec<Candidate>, Refusal> {
    if task.items.len() > CANDIDATES_MAX {
        return Err(Refusal(format!("the task has {} candidates, more than {CANDIDATES_MAX}", task.items.len())));
    }
    let candidate = |item: &Item| {
        let message = item.candidate.as_ref().ok_or_else(|| format!("candidate {} is empty", item.id))?;
        genome.candidate(message).map_err(|why| format!("candidate {}: {why}", item.id))
    };
    task.items.iter().map(candidate).collect::<Result<_, String>>().map_err(Refusal)
}

fn call(
    settings: &Settings,
    task: &EvaluateTask,
    candidates: &[Candidate],
    module: &[u8],
) -> Result<Vec<Evaluation>, Refusal> {
    let module = wasm::Module::new(module).map_err(Refusal)?;
    let alphabets = settings.alphabets();
    let counts = Counts {
        objectives: settings.objectives().len(),
        constraints: settings.constraints,
        measures: settings.measures,
    };
    let evaluate = |(item, candidate): (&Item, &Candidate)| {
        let genes = wasm::written(candidate, &alphabets);
        let evaluation = module.evaluate(&genes, item.seed, settings.fuel, counts);
        let evaluation = evaluation.map_err(|why| Refusal(format!("candidate {}: {why}", item.id)))?;
        // The others would only take time.
        check(settings, std::slice::from_ref(item), std::slice::from_ref(&evaluation))?;
        Ok(evaluation)
    };
    task.items.iter().zip(candidates).map(evaluate).collect()
}

fn ask<'a>(
    settings: &Settings,
    genome: &Genome,
    task: &'a EvaluateTask,
    candidates: &'a [Candidate],
    programs: &mut dyn Programs,
) -> Result<Vec<Evaluation>, Refusal> {
    let name = settings.program().ok_or_else(|| Refusal("the task has no problem".into()))?;
    let alphabets = settings.alphabets();
    let form = form(settings, genome, &alphabets);
    let question = |(item, candidate): (&'a Item, &'a Candidate)| Question { id: &item.id, seed: item.seed, candidate };
    let questions: Vec<Question<'_>> = task.items.iter().zip(candidates).map(question).collect();
    Asked { name, programs }.evaluate(&form, &questions, task.timeout_ms.saturating_mul(questions.len() as u64))
}

/// What the answers of the program of these settings must fit.
pub(super) fn form<'a>(settings: &Settings, genome: &'a Genome, alphabets: &'a [String]) -> Form<'a> {
    Form {
        genome,
        alphabets,
        objectives: settings.objectives().len(),
        constraints: settings.constraints,
        measures: settings.measures,
    }
}

/// Checks that there is one good evaluation for each candidate.
fn check(settings: &Settings, items: &[Item], evaluations: &[Evaluation]) -> Result<(), Refusal> {
    if evaluations.len() != items.len() {
        return Err(Refusal(format!("{} evaluations of {} candidates", evaluations.len(), items.len())));
    }
    let counts = [settings.objectives().len(), settings.constraint_count(), settings.measure_count()];
    for (item, evaluation) in items.iter().zip(evaluations) {
        let Evaluation { objectives, constraints, measures, failure } = evaluation;
        if !failure.is_empty() {
            if settings.on_failure == OnFailure::Stop {
                return Err(Refusal(format!(
                    "candidate {} has no value: {failure}; with on_failure = \"worst\" it would count as the worst",
                    item.id
                )));
            }
            continue;
        }
        let lists = [objectives, constraints, measures];
        if lists.map(Vec::len) != counts {
            return Err(Refusal(format!("candidate {} has other numbers than the problem has objectives", item.id)));
        }
        if lists.into_iter().flatten().any(|number| !number.is_finite()) {
            return Err(Refusal(format!("a number of candidate {} is not finite", item.id)));
        }
    }
    Ok(())
}
