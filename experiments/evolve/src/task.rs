//! The task of `evolve`: evaluates candidates with a built-in problem, with a WebAssembly module that comes with the task, or
//! with a program that runs beside the worker.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    settings::Values,
    task::{Compute, NoPrograms, Programs, Refusal},
};
use prost::Message as _;
use rand_core::Rng as _;

use super::{
    algorithm::{ALGORITHMS, AlgorithmKind, BASELINE, Made, SETTING, added, having},
    genome::{Candidate, Genome},
    messages::{EvaluateOutput, EvaluateTask, Evaluation, Item, Shared, Steps},
    notation::Notation,
    problem,
    program::{Asked, Form, Question},
    settings::{FAILURE_BYTES_MAX, OnFailure, SCHEMA, Settings},
    wasm::{self, Counts},
};

/// The kind's name.
pub(super) const NAME: &str = "evolve";

/// The most candidates of a task.
pub const CANDIDATES_MAX: usize = 10_000;
/// The most bytes, as messages, of the candidates that a task makes itself: as many as a task can carry.
const MADE_BYTES_MAX: u64 = 8 << 20;

/// Evaluates candidates.
pub enum Evaluate {}

impl Compute for Evaluate {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "evaluate";
    type Task = EvaluateTask;
    type Output = EvaluateOutput;

    fn run(task: &EvaluateTask, shared: &Bytes) -> Result<EvaluateOutput, Refusal> {
        Self::run_asking(task, shared, &mut NoPrograms)
    }

    fn run_asking(task: &EvaluateTask, shared: &Bytes, programs: &mut dyn Programs) -> Result<EvaluateOutput, Refusal> {
        let (settings, Shared { module, steps, .. }) = read(shared)?;
        let genome = settings.genome();
        let candidates = candidates(task, &settings, &genome, steps.as_ref()).map_err(Refusal)?;
        let evaluations = match settings.built_in() {
            Some(problem) => {
                let seen = |(item, candidate): (&Item, &Candidate)| problem.evaluate_with(candidate, item.seed);
                task.items.iter().zip(&candidates).map(seen).collect()
            }
            None if settings.module_file().is_some() => call(&settings, task, &candidates, &module)?,
            None => ask(&settings, &genome, task, &candidates, programs)?,
        };
        check(&settings, &task.items, &evaluations)?;
        Ok(EvaluateOutput { evaluations })
    }

    fn check(task: &EvaluateTask, shared: &Bytes, output: &EvaluateOutput) -> Result<(), Refusal> {
        check(&read(shared)?.0, &task.items, &output.evaluations)
    }

    fn only(task: EvaluateTask, parts: &[usize]) -> EvaluateTask {
        EvaluateTask { items: parts.iter().map(|part| task.items[*part].clone()).collect(), ..task }
    }

    fn divided(output: EvaluateOutput) -> Vec<EvaluateOutput> {
        output.evaluations.into_iter().map(|evaluation| EvaluateOutput { evaluations: vec![evaluation] }).collect()
    }

    /// Random candidates of every built-in problem, a module, and candidates that are made from their numbers.
    fn workload() -> Vec<(EvaluateTask, Bytes)> {
        let of = |problem: &problem::Problem| {
            let takes = |kind: &AlgorithmKind| problem.objectives.len() <= kind.objectives_max;
            let algorithm = having(takes)[0];
            let length = problem.length.min(12).max(problem.lengths.0);
            let text = format!("problem = \"{}\"\nlength = {length}\nalgorithm = \"{algorithm}\"\n", problem.name);
            let genome = SCHEMA.read(&text).map(|values| Settings::of(&values).genome());
            let genome = genome.unwrap_or_else(|why| panic!("{}: {why}", problem.name));
            let item = |number: u64| {
                let mut rng = Stream::root(number).text("evolve").text("workload").rng();
                let candidate = Some(genome.random(&mut rng).message());
                Item { id: number.to_string(), seed: number, candidate, number }
            };
            (EvaluateTask { items: (0..5).map(item).collect(), timeout_ms: 0 }, shared(&text, Bytes::new()).encode())
        };
        let made = ALGORITHMS.iter().filter_map(|kind| Some(steps(kind.name, &kind.made?)));
        problem::PROBLEMS.iter().map(of).chain([wasm::workload()]).chain(made).collect()
    }
}

/// Candidates that are made from their numbers, some of them beyond the bounds.
fn steps(algorithm: &str, made: &Made) -> (EvaluateTask, Bytes) {
    let text = format!("problem = \"ellipsoid\"\nlength = 7\nalgorithm = \"{algorithm}\"\n{}", made.example);
    let mean = (0..7).map(|gene| f64::from(gene) / 6.0).collect();
    let steps = Some(Steps { stream_high: 1, stream_low: 2, mean });
    let item = |number| Item { id: String::new(), seed: 0, candidate: None, number };
    let task = EvaluateTask { items: (u64::from(u32::MAX)..).take(9).map(item).collect(), timeout_ms: 0 };
    (task, Shared { steps, ..shared(&text, Bytes::new()) }.encode())
}

/// What the tasks of a batch share: these settings as text, without those that only the search needs, and the module if there
/// is one. An algorithm of another crate is named as [`BASELINE`], so workers need not have it: candidates come with the task.
pub(super) fn shared(settings: &str, module: Bytes) -> Shared {
    Shared { settings: of_task(settings, added()), module, steps: None }
}

/// The settings of tasks, in a program with these added algorithms.
fn of_task(settings: &str, added: &[&AlgorithmKind]) -> String {
    let chosen = |kind: &AlgorithmKind| format!("{SETTING} = \"{}\"", kind.name);
    let is_added = settings.lines().any(|line| added.iter().any(|kind| line == chosen(kind)));
    let foreign = added.iter().flat_map(|kind| kind.parts).flat_map(|part| part.schema.fields());
    let foreign: Vec<&str> = foreign.map(|field| field.name).collect();
    let written = |line: &str| match line.split_once(" = ").map_or(line, |(name, _)| name) {
        "module" | "start" | "recall" => None,
        // The baseline has its own limit.
        "population" if is_added => None,
        SETTING if is_added => Some(chosen(BASELINE) + "\n"),
        name => (!foreign.contains(&name)).then(|| format!("{line}\n")),
    };
    settings.lines().filter_map(written).collect()
}

impl Shared {
    /// Encodes it for [`evoxo_common::task::Task::shared`].
    pub(super) fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}

/// The most settings that are cached: those of the arms of a screen, or of several runs. And the most bytes of a text.
const SETTINGS_MAX: usize = 64;
const SETTINGS_BYTES_MAX: usize = 64 << 10;

/// Decodes what the tasks of a batch share, and reads the settings in it.
pub(super) fn read(shared: &Bytes) -> Result<(Arc<Settings>, Shared), Refusal> {
    let shared = Shared::decode(shared.clone())
        .map_err(|error| Refusal(format!("the shared part of the task cannot be read: {error}")))?;
    let settings = settings_of(&shared.settings).map_err(|why| Refusal(format!("the settings of the task: {why}")))?;
    Ok((settings, shared))
}

/// The settings in this text, from a cache. All tasks of an arm have the same text, and reading it can take longer than
/// evaluating the candidates of a task.
fn settings_of(text: &str) -> Result<Arc<Settings>, String> {
    /// Settings with their texts, the latest last.
    type Known = Vec<(String, Arc<Settings>)>;
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = lock().iter().find(|(of, _)| of == text) {
        return Ok(Arc::clone(known));
    }
    let settings = Arc::new(Settings::of(&SCHEMA.read(text)?));
    if text.len() <= SETTINGS_BYTES_MAX {
        let mut known = lock();
        // Another thread may have read the same text meanwhile.
        if !known.iter().any(|(of, _)| of == text) {
            if known.len() == SETTINGS_MAX {
                known.remove(0);
            }
            known.push((text.to_owned(), Arc::clone(&settings)));
        }
    }
    Ok(settings)
}

/// Evaluates a random candidate with these settings and this module, before a run starts.
///
/// # Errors
/// Those of a task.
pub(super) fn try_out(settings: &Values, module: &[u8]) -> Result<(), Refusal> {
    let mut rng = Stream::root(0).text("evolve").text("module").rng();
    let candidate = Settings::of(settings).genome().random(&mut rng);
    let item = Item { id: "random".into(), seed: rng.next_u64(), candidate: Some(candidate.message()), number: 0 };
    let task = EvaluateTask { items: vec![item], timeout_ms: 0 };
    Evaluate::run(&task, &shared(&settings.to_text(), Bytes::copy_from_slice(module)).encode()).map(drop)
}

/// The candidates of a task: those in its items, or those that are made from their numbers.
fn candidates(
    task: &EvaluateTask,
    settings: &Settings,
    genome: &Genome,
    steps: Option<&Steps>,
) -> Result<Vec<Candidate>, String> {
    let count = task.items.len();
    if count > CANDIDATES_MAX {
        return Err(format!("the task has {count} candidates, more than {CANDIDATES_MAX}"));
    }
    if let Some(steps) = steps {
        let bytes = count as u64 * genome.bytes_max();
        if bytes > MADE_BYTES_MAX {
            return Err(format!("the {count} candidates of the task have {bytes} bytes, more than {MADE_BYTES_MAX}"));
        }
        let made = settings.algorithm.made.ok_or("the task has no candidates, and its algorithm cannot make them")?;
        let given = settings.given();
        let search = given.search(Stream::from_words(steps.stream_high, steps.stream_low));
        let numbers: Vec<u64> = task.items.iter().map(|item| item.number).collect();
        return (made.candidates)(&given, &search, steps, &numbers);
    }
    let candidate = |item: &Item| {
        let message = item.candidate.as_ref().ok_or_else(|| format!("candidate {} is empty", item.id))?;
        genome.candidate(message).map_err(|why| format!("candidate {}: {why}", item.id))
    };
    task.items.iter().map(candidate).collect()
}

fn call(
    settings: &Settings,
    task: &EvaluateTask,
    candidates: &[Candidate],
    module: &[u8],
) -> Result<Vec<Evaluation>, Refusal> {
    let module = wasm::Module::new(module).map_err(Refusal)?;
    let (notations, activity) = (settings.notations(), settings.activity());
    let counts = Counts {
        objectives: settings.objectives().len(),
        constraints: settings.constraints,
        measures: settings.measures,
    };
    let evaluate = |(item, candidate): (&Item, &Candidate)| {
        let genes = wasm::written(candidate, &notations, &activity);
        let evaluation = module.evaluate(&genes, item.seed, settings.fuel, counts);
        let evaluation = evaluation.map_err(|why| Refusal(format!("candidate {}: {why}", item.id)))?;
        // Fail at once: evaluating the other candidates would only take time.
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
    let notations = settings.notations();
    let form = form(settings, genome, &notations);
    let question = |(item, candidate): (&'a Item, &'a Candidate)| Question { id: &item.id, seed: item.seed, candidate };
    let questions: Vec<Question<'_>> = task.items.iter().zip(candidates).map(question).collect();
    let mut asked = Asked { name, programs };
    asked.try_out(settings)?;
    asked.evaluate(&form, &questions, task.timeout_ms.saturating_mul(questions.len() as u64))
}

/// The shape of the answers that the program of these settings must give.
pub(super) fn form<'a>(settings: &Settings, genome: &'a Genome, notations: &'a [Notation]) -> Form<'a> {
    Form {
        genome,
        notations,
        activity: settings.activity(),
        objectives: settings.objectives().len(),
        constraints: settings.constraints,
        measures: settings.measures,
    }
}

/// Checks that there is one valid evaluation for each candidate.
fn check(settings: &Settings, items: &[Item], evaluations: &[Evaluation]) -> Result<(), Refusal> {
    if evaluations.len() != items.len() {
        return Err(Refusal(format!("there are {} evaluations for {} candidates", evaluations.len(), items.len())));
    }
    let counts = settings.counts();
    for (item, evaluation) in items.iter().zip(evaluations) {
        let Evaluation { objectives, constraints, measures, failure } = evaluation;
        let lists = [objectives, constraints, measures];
        if !failure.is_empty() {
            if failure.len() > FAILURE_BYTES_MAX || lists.iter().any(|list| !list.is_empty()) {
                return Err(Refusal(format!(
                    "candidate {} has no value, but it has numbers or a reason of more than {FAILURE_BYTES_MAX} bytes",
                    item.id
                )));
            }
            if settings.on_failure == OnFailure::Stop {
                return Err(Refusal(format!(
                    "candidate {} has no value: {failure}; with on_failure = \"worst\" it would count as the worst",
                    item.id
                )));
            }
            continue;
        }
        if lists.map(Vec::len) != counts {
            return Err(Refusal(format!(
                "candidate {} does not have as many objectives, constraints and measures as the problem",
                item.id
            )));
        }
        if lists.into_iter().flatten().any(|number| !number.is_finite()) {
            return Err(Refusal(format!("a number of candidate {} is not finite", item.id)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use evoxo_common::experiment::Replica;

    use super::{super::algorithm::Nsga2, *};
    use crate::testing::parse;

    /// Workers need not have an added algorithm: tasks name another one, with settings that it accepts.
    #[test]
    fn tasks_do_not_name_an_added_algorithm() {
        let mut added = AlgorithmKind::of::<Nsga2>();
        added.name = "added";
        let of_task = |algorithm: &str| {
            let search = "population = 5000\nwindow = 7\ncrossover = 0.50\nrecall = \"yes\"\n";
            of_task(&format!("problem = \"zdt1\"\nalgorithm = \"{algorithm}\"\n{search}"), &[&added])
        };
        let text = of_task("added");
        assert_eq!(text, "problem = \"zdt1\"\nalgorithm = \"random\"\nwindow = 7\n");
        assert!(SCHEMA.read(&text).is_ok());
        let other = "problem = \"zdt1\"\nalgorithm = \"nsga2\"\npopulation = 5000\nwindow = 7\n";
        assert_eq!(of_task("nsga2"), other, "the settings of the added algorithm are unknown to workers");
    }

    /// More settings than the cache has places for. Invalid settings are not cached.
    #[test]
    fn settings_are_those_of_their_text() {
        let of = |length: &str| {
            let text = format!("problem = \"sphere\"\nalgorithm = \"ga\"\nlength = {length}\n");
            read(&shared(&text, Bytes::new()).encode())
        };
        for _ in 0..2 {
            for length in 2..SETTINGS_MAX + 5 {
                assert_eq!(of(&length.to_string()).unwrap().0.length, length);
            }
            assert!(of("-1").unwrap_err().0.starts_with("the settings of the task: "));
        }
    }

    /// The tasks of openai-es have no genes. The candidates that a worker makes from their numbers equal those of the
    /// algorithm, bit for bit, however a batch is cut up.
    #[test]
    fn workers_make_the_same_candidates_as_the_algorithm() {
        let files = [
            "problem = \"ellipsoid\"\nlength = 13\nslice = 1",
            "problem = \"ellipsoid\"\nlength = 8\nslice = 3\nbounds = \"begin\"",
            "problem = \"g06\"\nslice = 20", // two parts with different bounds
        ];
        for file in files {
            let config = parse(&format!(
                "experiment = \"evolve\"\nseed = 9\nreplicas = 2\n[settings]\nalgorithm = \"openai-es\"\nsigma = 0.4\n\
                 evaluations = 70\npopulation = 20\n{file}\n"
            ));
            let settings = Settings::of(&config.arms[0].settings);
            let stream = Stream::root(9).text(NAME).text("main").word(1);
            let given = settings.given();
            let mut algorithm = settings.algorithm.begin(&given, given.search(stream), None).unwrap();
            let mut replica = Replica::start(&config, &config.arms[0], 1);
            while !replica.is_finished() {
                let (tasks, mut made) = (replica.plan(0..replica.tasks()), Vec::new());
                for task in &tasks {
                    let (settings, shared) = read(&task.shared).unwrap();
                    let body = EvaluateTask::decode(task.body.clone()).unwrap();
                    assert!(body.items.iter().all(|item| item.candidate.is_none()));
                    made.extend(candidates(&body, &settings, &settings.genome(), shared.steps.as_ref()).unwrap());
                }
                let asked = algorithm.ask(0..algorithm.size());
                let bytes = |all: &[Candidate]| -> Vec<Vec<u8>> {
                    all.iter().map(|candidate| candidate.message().encode_to_vec()).collect()
                };
                assert_eq!(bytes(&made), bytes(&asked));
                let outputs: Vec<Bytes> = tasks.iter().map(|task| task.run().unwrap()).collect();
                let problem = settings.built_in().unwrap();
                let evaluations: Vec<_> = asked.iter().map(|candidate| problem.minimised(candidate)).collect();
                algorithm.tell(&evaluations);
                replica.absorb(&outputs);
            }
        }
    }

    /// Invalid tasks without genes. Each is rejected with a sentence.
    #[test]
    fn invalid_means_are_rejected_with_a_reason() {
        let openai_es = having(|kind| kind.made.is_some())[0];
        let (task, bytes) = steps(openai_es, &ALGORITHMS.iter().find_map(|kind| kind.made).unwrap());
        let good = read(&bytes).unwrap().1;
        let refused = |task: &EvaluateTask, from: &str, to: &str, mean: Vec<f64>| {
            let settings = good.settings.replace(from, to);
            let steps = good.steps.clone().map(|steps| Steps { mean, ..steps });
            Evaluate::run(task, &Shared { settings, steps, ..good.clone() }.encode()).unwrap_err().0
        };
        let items = vec![Item::default(); CANDIDATES_MAX];
        let many = EvaluateTask { items, ..task.clone() };
        let sentences = [
            refused(&task, "", "", vec![0.5; 6]),
            refused(
                &task,
                "\"ellipsoid\"\nlength = 7\nalgorithm = \"openai-es\"\nsigma = 0.3",
                "\"onemax\"\nalgorithm = \"ga\"",
                vec![0.5; 7],
            ),
            refused(&many, "length = 7", "length = 1000", vec![0.5; 1000]),
            Evaluate::run(&task, &Bytes::from_static(b"problem")).unwrap_err().0,
        ];
        insta::assert_snapshot!(sentences.join("\n"));
        // A coordinate that is not a number goes to the middle, as in the algorithm.
        let steps = Some(Steps { stream_high: 1, stream_low: 2, mean: vec![f64::NAN; 7] });
        assert!(Evaluate::run(&task, &Shared { steps, ..good }.encode()).is_ok());
    }
}
