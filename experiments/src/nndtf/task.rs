//! The tasks of `nndtf`: evaluating chromosomes and advancing a search.

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    task::{Compute, Refusal},
};
use evoxo_games::player::teacher::BOARDS;

use super::{
    judge::Judge,
    measure::{Formula, Measure, Occupied},
    messages::{self, FitnessOutput, FitnessTask, SegmentOutput, SegmentTask, search::Algorithm},
    network::{self, Coupling, GENE_MAX, HIDDEN, HIDDEN_MAX, Kind, Network, Numbering, RANGE, SWEEPS_MAX},
    search::{CHROMOSOMES_MAX, Search},
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

/// The most iterations of one task.
pub const SEGMENT_MAX: u64 = 10_000_000;

/// The judge described by a task.
pub fn judge(task: Option<&messages::Judge>) -> Result<Judge, Refusal> {
    let judge = task.ok_or_else(|| Refusal("the task has no judge".into()))?;
    let network = network(judge)?;
    let mut seen = [false; BOARDS];
    for index in &judge.boards {
        match seen.get_mut(*index as usize) {
            None => return Err(Refusal(format!("there is no board {index}: give 0 to {}", BOARDS - 1))),
            Some(true) => return Err(Refusal(format!("board {index} occurs twice"))),
            Some(seen) => *seen = true,
        }
    }
    if judge.boards.is_empty() {
        return Err(Refusal("the judge has no boards".into()));
    }
    Ok(Judge::new(network, measure(judge), &judge.boards))
}

/// The network described by a judge.
fn network(judge: &messages::Judge) -> Result<Network, Refusal> {
    let kind = match messages::Kind::try_from(judge.kind) {
        Ok(messages::Kind::Double) => Kind::Double,
        Ok(messages::Kind::Traditional) => Kind::Traditional,
        Ok(messages::Kind::Logistic) => Kind::Logistic,
        _ => return Err(Refusal(format!("{} is not a kind of network", judge.kind))),
    };
    let sweeps = judge.sweeps;
    if sweeps > SWEEPS_MAX {
        return Err(Refusal(format!("the nodes read their neighbours 0 to {SWEEPS_MAX} times, not {sweeps}")));
    }
    let hidden = if judge.hidden == 0 { HIDDEN } else { judge.hidden as usize };
    if hidden > HIDDEN_MAX {
        return Err(Refusal(format!("a network has 1 to {HIDDEN_MAX} hidden nodes, not {hidden}")));
    }
    let numbering = if judge.right_to_left { Numbering::RightToLeft } else { Numbering::LeftToRight };
    Ok(Network { kind, hidden, coupling: Coupling { sweeps, in_place: judge.in_place }, numbering })
}

/// The measure described by a judge.
fn measure(judge: &messages::Judge) -> Measure {
    Measure {
        formula: if judge.ratio_of_sums { Formula::RatioOfSums } else { Formula::MeanOfRatios },
        occupied: if judge.occupied_is_nothing { Occupied::Nothing } else { Occupied::Nearest },
    }
}

/// The search of a segment.
fn search(task: &SegmentTask) -> Option<&messages::Search> {
    match (&task.search, &task.bounded_search) {
        (Some(search), None) if search.bounds.is_none() => Some(search),
        (None, Some(search)) if search.bounds.is_some() => Some(search),
        _ => None,
    }
}

/// Evaluates chromosomes.
///
/// # Errors
/// A [`Refusal`] that says which number is out of range.
fn fitness(task: &FitnessTask) -> Result<FitnessOutput, Refusal> {
    let judge = judge(task.judge.as_ref())?;
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
    let judge = judge(task.judge.as_ref())?;
    let genes = judge.network().genes();
    let (search, mut state) = match (search(task), &task.state) {
        (Some(search), Some(state)) => (Search::new(genes, search).map_err(Refusal)?, state.clone()),
        _ => return Err(Refusal("the task has no search or no state".into())),
    };
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
    let judge = task.judge.as_ref().ok_or_else(|| Refusal("the task has no judge".into()))?;
    let count = task.genes.len() / network(judge)?.genes();
    if output.sums.len() != count {
        return Err(Refusal(format!("{} sums for {count} chromosomes", output.sums.len())));
    }
    check_sums(judge, &output.sums)
}

/// Checks that no sum is more than its boards can give. A greater sum would be wrong, and adding such sums could overflow.
fn check_sums(judge: &messages::Judge, sums: &[u64]) -> Result<(), Refusal> {
    let all = measure(judge).whole(&judge.boards);
    match sums.iter().find(|sum| **sum > all) {
        None => Ok(()),
        Some(sum) => Err(Refusal(format!("a sum of {sum} over {} boards, more than {all}", judge.boards.len()))),
    }
}

/// Checks that the search can have an output's state after the task.
///
/// # Errors
/// A [`Refusal`] if it cannot.
fn check_segment(task: &SegmentTask, output: &SegmentOutput) -> Result<(), Refusal> {
    let (Some(judge), Some(search), Some(before), Some(state)) =
        (&task.judge, search(task), &task.state, &output.state)
    else {
        return Err(Refusal("a segment without a judge, a search or a state".into()));
    };
    let end = (before.iteration + task.iterations).min(search.iterations);
    if state.iteration != end {
        return Err(Refusal(format!("a state of iteration {}, not {end}", state.iteration)));
    }
    let steps = before.iteration..=end;
    if output.rows.len() as u64 > task.iterations || output.rows.iter().any(|row| !steps.contains(&row.iteration)) {
        return Err(Refusal("the rows are not of these iterations".into()));
    }
    check_sums(judge, &state.sums)?;
    Search::new(network(judge)?.genes(), search).and_then(|search| search.check(state)).map_err(Refusal)
}

/// A few tasks of each kind that reach every branch of the computation, except 0 sweeps and numbers of hidden nodes other
/// than 8.
fn workload() -> (Vec<FitnessTask>, Vec<SegmentTask>) {
    let stream = Stream::root(1).text("nndtf workload");
    let judge = |kind: messages::Kind, sweeps, right_to_left| messages::Judge {
        kind: kind.into(),
        sweeps,
        right_to_left,
        boards: (0..BOARDS as u32).step_by(60).collect(),
        hidden: 0,
        ratio_of_sums: false,
        occupied_is_nothing: false,
        in_place: false,
    };
    let search = |algorithm| messages::Search {
        algorithm: Some(algorithm),
        iterations: 20,
        stream_high: stream.high(),
        stream_low: stream.low(),
        bounds: None,
    };
    let improved = messages::Improved { population: 6, weight: 0.1, acceptance: 0.5, ..Default::default() };
    let traditional = messages::Traditional {
        population: 6,
        crossover: 0.8,
        mutation: 0.1,
        shape: 5.0,
        keeps_best: true,
        ..Default::default()
    };
    // The same algorithms with all the other readings.
    let other_improved = messages::Improved {
        bounds_weigh: true,
        keeps_offspring: true,
        parents_differ: true,
        any_number: true,
        ..improved
    };
    let other_traditional =
        messages::Traditional { parents_differ: true, one_couple: true, one_gene: true, ..traditional };
    let of_one_gene = messages::Improved { one_gene: true, ..improved };
    let adaptation = Algorithm::Adaptation(messages::Adaptation { offspring: 6, sigma: 0.5 });
    let judges = [
        judge(messages::Kind::Double, 1, false),
        judge(messages::Kind::Double, 3, true),
        judge(messages::Kind::Traditional, 1, false),
        messages::Judge { ratio_of_sums: true, ..judge(messages::Kind::Logistic, 1, false) },
        messages::Judge { occupied_is_nothing: true, ..judge(messages::Kind::Double, 1, true) },
        messages::Judge { in_place: true, ..judge(messages::Kind::Double, 2, false) },
    ];
    let algorithms = [
        Algorithm::Improved(improved),
        Algorithm::Traditional(traditional),
        adaptation,
        Algorithm::Traditional(other_traditional),
        Algorithm::Improved(other_improved),
        Algorithm::Improved(of_one_gene),
    ];
    let fitness = judges.iter().map(|judge| {
        let network = network(judge).expect("it is one of the above");
        let mut rng = stream.text("genes").rng();
        let mut genes: Vec<f32> = (0..3 * network.genes()).map(|_| network::gene(&mut rng, RANGE)).collect();
        // One more chromosome, whose outputs are so near to 0, the middle between cells 4 and 6, that only double precision
        // shows the side.
        let mut near: Vec<f32> = (0..network.genes()).map(|_| network::gene(&mut rng, RANGE)).collect();
        let (weights, last) = near.split_at_mut(network.genes() - if network.kind == Kind::Double { 2 } else { 1 });
        weights.iter_mut().rev().take(HIDDEN).for_each(|weight| *weight *= f32::EPSILON);
        last[0] = 0.0;
        genes.extend(near);
        FitnessTask { judge: Some(judge.clone()), genes }
    });
    let segment = judges.iter().cycle().zip(algorithms).map(|(judge, algorithm)| {
        let state = Some(messages::State::default());
        let search = Some(search(algorithm));
        SegmentTask { judge: Some(judge.clone()), search, state, iterations: 20, bounded_search: None }
    });
    (fitness.collect(), segment.collect())
}
