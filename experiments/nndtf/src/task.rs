//! The tasks of `nndtf`: evaluating chromosomes and advancing a search.

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    task::{Compute, Refusal},
};
use evoxo_games::player::teacher::BOARDS;

use super::{
    judge::Judge,
    messages::{self, FitnessOutput, FitnessTask, SegmentOutput, SegmentTask},
    network::{self, GENE_MAX, HIDDEN, Kind, RANGE},
    search::Search,
    settings::{CHROMOSOMES_MAX, SCHEMA, SEGMENT_MAX, Settings},
};

/// The kind's name.
pub(super) const NAME: &str = "nndtf";

/// Evaluates chromosomes.
pub enum Fitness {}

impl Compute for Fitness {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "fitness";
    type Task = FitnessTask;
    type Output = FitnessOutput;

    fn run(task: &FitnessTask, _: &Bytes) -> Result<FitnessOutput, Refusal> {
        fitness(task)
    }

    fn check(task: &FitnessTask, _: &Bytes, output: &FitnessOutput) -> Result<(), Refusal> {
        check_fitness(task, output)
    }

    fn workload() -> Vec<(FitnessTask, Bytes)> {
        workload().0.into_iter().map(|task| (task, Bytes::new())).collect()
    }
}

/// Advances a search.
pub enum Segment {}

impl Compute for Segment {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "segment";
    type Task = SegmentTask;
    type Output = SegmentOutput;

    fn run(task: &SegmentTask, _: &Bytes) -> Result<SegmentOutput, Refusal> {
        segment(task)
    }

    fn check(task: &SegmentTask, _: &Bytes, output: &SegmentOutput) -> Result<(), Refusal> {
        check_segment(task, output)
    }

    fn workload() -> Vec<(SegmentTask, Bytes)> {
        workload().1.into_iter().map(|task| (task, Bytes::new())).collect()
    }
}

/// The settings of a task.
fn read_settings(text: &str) -> Result<Settings, Refusal> {
    let values = SCHEMA.read(text).map_err(|why| Refusal(format!("the task's settings: {why}")))?;
    Ok(Settings::of(&values))
}

/// The judge of a task with these settings and training boards.
fn judge(settings: &Settings, boards: &[u32]) -> Result<Judge, Refusal> {
    let mut seen = [false; BOARDS];
    for index in boards {
        match seen.get_mut(*index as usize) {
            None => return Err(Refusal(format!("there is no board {index}: give 0 to {}", BOARDS - 1))),
            Some(true) => return Err(Refusal(format!("board {index} occurs twice"))),
            Some(seen) => *seen = true,
        }
    }
    if boards.is_empty() {
        return Err(Refusal("the task has no boards".into()));
    }
    Ok(Judge::new(settings.architecture(), settings.measure(), boards))
}

/// The search of a segment and its judge.
///
/// # Errors
/// A [`Refusal`] that says what is wrong with the settings or the boards.
pub fn search(task: &SegmentTask) -> Result<(Search, Judge), Refusal> {
    let settings = read_settings(&task.settings)?;
    let stream = Stream::from_words(task.stream_high, task.stream_low);
    Ok((Search::new(&settings, stream), judge(&settings, &task.boards)?))
}

/// Evaluates chromosomes.
///
/// # Errors
/// A [`Refusal`] that says which number is out of range.
fn fitness(task: &FitnessTask) -> Result<FitnessOutput, Refusal> {
    let judge = judge(&read_settings(&task.settings)?, &task.boards)?;
    let count = judge.network().genes();
    let chromosomes = task.genes.chunks(count);
    if !(1..=CHROMOSOMES_MAX).contains(&chromosomes.len()) {
        return Err(Refusal(format!("a task has 1 to {CHROMOSOMES_MAX} chromosomes, not {}", chromosomes.len())));
    }
    for (index, genes) in chromosomes.clone().enumerate() {
        let checked = network::check(count, (-GENE_MAX, GENE_MAX), genes);
        checked.map_err(|why| Refusal(format!("chromosome {index}: {why}")))?;
    }
    Ok(FitnessOutput { sums: chromosomes.map(|genes| judge.sum(genes)).collect() })
}

/// Advances a search.
///
/// # Errors
/// A [`Refusal`] that says what is wrong with the task.
fn segment(task: &SegmentTask) -> Result<SegmentOutput, Refusal> {
    let (search, judge) = search(task)?;
    let genes = judge.network().genes();
    let mut state = task.state.clone().ok_or_else(|| Refusal("the task has no state".into()))?;
    search.check(&state).map_err(Refusal)?;
    if !(1..=SEGMENT_MAX).contains(&task.iterations) {
        return Err(Refusal(format!("a task has 1 to {SEGMENT_MAX} iterations, not {}", task.iterations)));
    }
    let end = state.iteration + task.iterations;
    let mut rows = Vec::new();
    while state.iteration < end && !search.finished(&state) {
        let asked = search.ask(&state);
        let sums: Vec<u64> = asked.genes.chunks(genes).map(|genes| judge.sum(genes)).collect();
        rows.extend(search.tell(&mut state, asked, &sums));
    }
    Ok(SegmentOutput { state: Some(state), rows })
}

/// Checks that an output has one sum for each chromosome.
///
/// # Errors
/// A [`Refusal`] if the number differs.
fn check_fitness(task: &FitnessTask, output: &FitnessOutput) -> Result<(), Refusal> {
    let settings = read_settings(&task.settings)?;
    let count = task.genes.len() / settings.architecture().genes();
    if output.sums.len() != count {
        return Err(Refusal(format!("{} sums for {count} chromosomes", output.sums.len())));
    }
    check_sums(&settings, &task.boards, &output.sums)
}

/// Checks that no sum is more than its boards can give. A greater sum would be wrong, and adding such sums could overflow.
fn check_sums(settings: &Settings, boards: &[u32], sums: &[u64]) -> Result<(), Refusal> {
    let all = settings.measure().whole(boards);
    match sums.iter().find(|sum| **sum > all) {
        None => Ok(()),
        Some(sum) => Err(Refusal(format!("a sum of {sum} over {} boards, more than {all}", boards.len()))),
    }
}

/// Checks that the search can have an output's state after the task.
///
/// # Errors
/// A [`Refusal`] if it cannot.
fn check_segment(task: &SegmentTask, output: &SegmentOutput) -> Result<(), Refusal> {
    let settings = read_settings(&task.settings)?;
    let (Some(before), Some(state)) = (&task.state, &output.state) else {
        return Err(Refusal("a segment without a state".into()));
    };
    let end = (before.iteration + task.iterations).min(settings.search_iterations());
    if state.iteration != end {
        return Err(Refusal(format!("a state of iteration {}, not {end}", state.iteration)));
    }
    let steps = before.iteration..=end;
    if output.rows.len() as u64 > task.iterations || output.rows.iter().any(|row| !steps.contains(&row.iteration)) {
        return Err(Refusal("the rows are not of these iterations".into()));
    }
    check_sums(&settings, &task.boards, &state.sums)?;
    Search::new(&settings, Stream::from_words(task.stream_high, task.stream_low)).check(state).map_err(Refusal)
}

/// A few tasks of each kind that reach every branch of the computation, except 0 sweeps and numbers of hidden nodes other
/// than 8.
fn workload() -> (Vec<FitnessTask>, Vec<SegmentTask>) {
    let stream = Stream::root(1).text("nndtf workload");
    let boards: Vec<u32> = (0..BOARDS as u32).step_by(60).collect();
    let judges = [
        "",
        "coupling = final\nsweeps = 3\nnumbering = right-to-left\n",
        "network = traditional\n",
        "network = logistic\nfitness = ratio-of-sums\n",
        "occupied = nothing\nnumbering = right-to-left\n",
        "coupling = in-place\nsweeps = 2\n",
    ];
    // The genetic algorithms come once as they are, and then with all their other readings.
    let improved = "iterations = 20\npopulation = 6\n";
    let traditional = "algorithm = traditional\niterations = 20\npopulation = 6\nelite = unless-surpassed\n";
    let algorithms = [
        improved.into(),
        traditional.into(),
        "algorithm = cma-es\nevaluations = 120\noffspring = 6\n".into(),
        [traditional, "parents = different\nbirths = couple\nmutates = child\n"].concat(),
        [improved, "weighs = bounds\njoins = offspring-too\nparents = different\nsome = any-number\n"].concat(),
        [improved, "mutants = one-gene\n"].concat(),
    ];
    let fitness = judges.iter().map(|settings| {
        let network = read_settings(settings).expect("good settings").architecture();
        let mut rng = stream.text("genes").rng();
        let mut genes: Vec<f32> = (0..3 * network.genes()).map(|_| network::gene(&mut rng, RANGE)).collect();
        // One more chromosome, whose outputs are so near to 0, the middle between cells 4 and 6, that only double precision
        // shows the side.
        let mut near: Vec<f32> = (0..network.genes()).map(|_| network::gene(&mut rng, RANGE)).collect();
        let (weights, last) = near.split_at_mut(network.genes() - if network.kind == Kind::Double { 2 } else { 1 });
        weights.iter_mut().rev().take(HIDDEN).for_each(|weight| *weight *= f32::EPSILON);
        last[0] = 0.0;
        genes.extend(near);
        FitnessTask { settings: (*settings).into(), boards: boards.clone(), genes }
    });
    let segment = judges.iter().zip(algorithms).map(|(judge, algorithm): (_, String)| SegmentTask {
        settings: [judge, &*algorithm].concat(),
        boards: boards.clone(),
        stream_high: stream.high(),
        stream_low: stream.low(),
        state: Some(messages::State::default()),
        iterations: 20,
    });
    (fitness.collect(), segment.collect())
}
