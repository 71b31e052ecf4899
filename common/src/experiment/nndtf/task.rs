//! The tasks of `nndtf`: judging chromosomes, and moving a search on.

use evoxo_proto::v1::{
    NndtfAdaptation, NndtfFitnessOutput, NndtfFitnessTask, NndtfImproved, NndtfJudge, NndtfKind, NndtfSearch,
    NndtfSegmentOutput, NndtfSegmentTask, NndtfState, NndtfTraditional, Task, nndtf_search::Algorithm, task,
};

use super::{
    judge::{Judge, WHOLE},
    network::{self, Coupling, Kind, Network, Numbering, SWEEPS_MAX},
    search::{CHROMOSOMES_MAX, Search},
    teacher::BOARDS,
};
use crate::{rng::Stream, task::Refusal};

/// The most iterations of one task.
pub const SEGMENT_MAX: u64 = 10_000_000;

/// The judge of a task.
fn judge(task: Option<&NndtfJudge>) -> Result<Judge, Refusal> {
    let judge = task.ok_or_else(|| Refusal("the task has no judge".into()))?;
    let kind = kind(judge)?;
    if !(1..=SWEEPS_MAX).contains(&judge.sweeps) {
        return Err(Refusal(format!("the nodes read their neighbours 1 to {SWEEPS_MAX} times, not {}", judge.sweeps)));
    }
    let mut seen = [false; BOARDS];
    for index in &judge.boards {
        match seen.get_mut(*index as usize) {
            None => return Err(Refusal(format!("there is no board {index}: they are 0 to {}", BOARDS - 1))),
            Some(true) => return Err(Refusal(format!("board {index} is there twice"))),
            Some(seen) => *seen = true,
        }
    }
    if judge.boards.is_empty() {
        return Err(Refusal("there is no board to judge by".into()));
    }
    let numbering = if judge.right_to_left { Numbering::RightToLeft } else { Numbering::LeftToRight };
    let network = Network { kind, coupling: Coupling { sweeps: judge.sweeps }, numbering };
    Ok(Judge::new(network, &judge.boards))
}

fn kind(judge: &NndtfJudge) -> Result<Kind, Refusal> {
    match NndtfKind::try_from(judge.kind) {
        Ok(NndtfKind::Double) => Ok(Kind::Double),
        Ok(NndtfKind::Traditional) => Ok(Kind::Traditional),
        _ => Err(Refusal(format!("{} is not a kind of network", judge.kind))),
    }
}

/// Judges chromosomes.
///
/// # Errors
/// A [`Refusal`] that says which figure is out of range.
pub fn fitness(task: &NndtfFitnessTask) -> Result<NndtfFitnessOutput, Refusal> {
    let judge = judge(task.judge.as_ref())?;
    let kind = judge.network().kind;
    let chromosomes = task.genes.chunks(kind.genes());
    if !(1..=CHROMOSOMES_MAX).contains(&chromosomes.len()) {
        return Err(Refusal(format!("a task has 1 to {CHROMOSOMES_MAX} chromosomes, not {}", chromosomes.len())));
    }
    for (index, genes) in chromosomes.clone().enumerate() {
        network::check(kind, genes).map_err(|why| Refusal(format!("chromosome {index}: {why}")))?;
    }
    Ok(NndtfFitnessOutput { sums: chromosomes.map(|genes| judge.sum(genes)).collect() })
}

/// Moves a search on.
///
/// # Errors
/// A [`Refusal`] that says what is wrong with the task.
pub fn segment(task: &NndtfSegmentTask) -> Result<NndtfSegmentOutput, Refusal> {
    let judge = judge(task.judge.as_ref())?;
    let kind = judge.network().kind;
    let (search, mut state) = match (&task.search, &task.state) {
        (Some(search), Some(state)) => (Search::new(kind, search).map_err(Refusal)?, state.clone()),
        _ => return Err(Refusal("the task has no search or no state".into())),
    };
    search.check(&state).map_err(Refusal)?;
    if !(1..=SEGMENT_MAX).contains(&task.iterations) {
        return Err(Refusal(format!("a task moves on by 1 to {SEGMENT_MAX} iterations, not {}", task.iterations)));
    }
    let end = state.iteration + task.iterations;
    let mut rows = Vec::new();
    while state.iteration < end && !search.finished(&state) {
        let asked = search.ask(&state);
        let sums: Vec<u64> = asked.genes.chunks(kind.genes()).map(|genes| judge.sum(genes)).collect();
        rows.extend(search.tell(&mut state, asked, &sums));
    }
    Ok(NndtfSegmentOutput { state: Some(state), rows })
}

/// Whether an output has one sum for each chromosome.
///
/// # Errors
/// A [`Refusal`] if it has not.
pub fn check_fitness(task: &NndtfFitnessTask, output: &NndtfFitnessOutput) -> Result<(), Refusal> {
    let judge = task.judge.as_ref().ok_or_else(|| Refusal("the task has no judge".into()))?;
    let count = task.genes.len() / kind(judge)?.genes();
    if output.sums.len() != count {
        return Err(Refusal(format!("{} sums for {count} chromosomes", output.sums.len())));
    }
    check_sums(judge, &output.sums)
}

/// Whether sums are of shares: more than all of them would be a lie, and might be more than can be added up.
fn check_sums(judge: &NndtfJudge, sums: &[u64]) -> Result<(), Refusal> {
    let all = judge.boards.len() as u64 * u64::from(WHOLE);
    match sums.iter().find(|sum| **sum > all) {
        None => Ok(()),
        Some(sum) => {
            Err(Refusal(format!("a sum of {sum} over {} boards, which is more than {all}", judge.boards.len())))
        }
    }
}

/// Whether an output's state is one that the search can have after the task.
///
/// # Errors
/// A [`Refusal`] if it is not.
pub fn check_segment(task: &NndtfSegmentTask, output: &NndtfSegmentOutput) -> Result<(), Refusal> {
    let (Some(judge), Some(search), Some(before), Some(state)) =
        (&task.judge, &task.search, &task.state, &output.state)
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
    Search::new(kind(judge)?, search).and_then(|search| search.check(state)).map_err(Refusal)
}

/// A few tasks of each kind, for the behaviour signature: every branch of the computation.
#[must_use]
pub fn workload() -> [Vec<Task>; 2] {
    let stream = Stream::root(1).text("nndtf workload");
    let judge = |kind: NndtfKind, sweeps, right_to_left| NndtfJudge {
        kind: kind.into(),
        sweeps,
        right_to_left,
        boards: (0..BOARDS as u32).step_by(60).collect(),
    };
    let search = |algorithm| NndtfSearch {
        algorithm: Some(algorithm),
        iterations: 20,
        stream_high: stream.high(),
        stream_low: stream.low(),
    };
    let improved = Algorithm::Improved(NndtfImproved { population: 6, weight: 0.1, acceptance: 0.5 });
    let traditional = Algorithm::Traditional(NndtfTraditional {
        population: 6,
        crossover: 0.8,
        mutation: 0.1,
        shape: 5.0,
        keeps_best: true,
    });
    let adaptation = Algorithm::Adaptation(NndtfAdaptation { offspring: 6, sigma: 0.5 });
    let judges = [
        judge(NndtfKind::Double, 1, false),
        judge(NndtfKind::Double, 3, true),
        judge(NndtfKind::Traditional, 1, false),
    ];
    let fitness = judges.iter().map(|judge| {
        let kind = kind(judge).expect("it is one of the two");
        let mut rng = stream.text("genes").rng();
        let mut genes: Vec<f32> = (0..3 * kind.genes()).map(|_| network::gene(&mut rng)).collect();
        // One more, whose outputs lie so near to 0, the middle between cells 4 and 6, that only double precision tells on
        // which side.
        let mut near: Vec<f32> = (0..kind.genes()).map(|_| network::gene(&mut rng)).collect();
        let (weights, last) = near.split_at_mut(kind.genes() - if kind == Kind::Double { 2 } else { 1 });
        weights.iter_mut().rev().take(network::HIDDEN).for_each(|weight| *weight *= f32::EPSILON);
        last[0] = 0.0;
        genes.extend(near);
        task::Work::NndtfFitness(NndtfFitnessTask { judge: Some(judge.clone()), genes }).into()
    });
    let segment = judges.iter().zip([improved, traditional, adaptation]).map(|(judge, algorithm)| {
        let state = Some(NndtfState::default());
        let search = Some(search(algorithm));
        let segment = NndtfSegmentTask { judge: Some(judge.clone()), search, state, iterations: 20 };
        task::Work::NndtfSegment(segment).into()
    });
    [fitness.collect(), segment.collect()]
}
