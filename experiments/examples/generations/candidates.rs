//! Which of the improved algorithm's four candidates wins, and which mutant brings a new best chromosome.

use evoxo_common::{
    experiment::{Config, Replica},
    report::Table,
    task::Compute,
};
use evoxo_experiments::nndtf::{
    judge::Judge,
    messages::{SegmentTask, State},
    search::Search,
    settings::Algorithm,
    task::{self, Segment},
};
use prost::Message;

use super::{figure, replicas};

/// The iterations at which the reported phases end. Another phase has the remaining iterations.
const PHASES: [u64; 3] = [100, 1_000, 10_000];

/// The counts of one replica in one phase.
#[derive(Clone, Copy, Default)]
struct Phase {
    iterations: f64,
    /// For each candidate: the number of iterations in which it is the fittest. Equally fit candidates share an iteration.
    wins: [f64; 4],
    /// The number of iterations whose fittest candidate is fitter than every chromosome of the population.
    offspring_leads: f64,
    /// For each mutant: the number of iterations in which it becomes the best chromosome so far.
    new_best: [f64; 3],
}

/// The search of a replica and its judge, taken from its first task.
fn search(replica: &mut Replica) -> Option<(Search, Judge)> {
    let tasks = replica.plan(0..1);
    assert_eq!(tasks[0].kind.work, Segment::WORK, "give farming=segments");
    let task = SegmentTask::decode(&tasks[0].body[..]).expect("a task of this kind");
    let (search, judge) = task::search(&task).expect("a task that a replica planned");
    (search.algorithm() == Algorithm::Improved).then_some((search, judge))
}

fn phases(search: &Search, judge: &Judge) -> [Phase; PHASES.len() + 1] {
    let mut phases = [Phase::default(); PHASES.len() + 1];
    let (mut state, mut best) = (State::default(), 0);
    while !search.finished(&state) {
        let asked = search.ask(&state);
        let sums: Vec<u64> = asked.genes.chunks(judge.network().genes()).map(|genes| judge.sum(genes)).collect();
        let phase = &mut phases[PHASES.iter().filter(|end| **end <= state.iteration).count()];
        let leader = state.sums.iter().max().copied();
        let fittest = sums.iter().max().copied().expect("a search asks for something");
        match (leader, state.offspring) {
            (None, _) => {}
            (Some(leader), 0) => {
                let shared = sums.iter().filter(|sum| **sum == fittest).count() as f64;
                for (wins, sum) in phase.wins.iter_mut().zip(&sums) {
                    *wins += if *sum == fittest { 1.0 / shared } else { 0.0 };
                }
                phase.iterations += 1.0;
                phase.offspring_leads += f64::from(fittest > leader);
            }
            (Some(_), _) if fittest > best => {
                let first = sums.iter().position(|sum| *sum == fittest).expect("one of them is the fittest");
                phase.new_best[first.min(2)] += 1.0;
            }
            (Some(_), _) => {}
        }
        search.tell(&mut state, asked, &sums);
        best = best.max(state.sums.iter().max().copied().unwrap_or(0));
    }
    phases
}

pub(super) fn table(config: &Config) -> Table {
    let mut seen: Vec<Vec<[Phase; PHASES.len() + 1]>> = vec![Vec::new(); config.arms.len()];
    for (arm, mut replica) in replicas(config) {
        if let Some((search, judge)) = search(&mut replica) {
            seen[arm].push(phases(&search, &judge));
        }
    }
    let row = |arm: usize, phase: usize| {
        let figure_of = |part: &dyn Fn(&Phase) -> f64, decimals| {
            let of_replicas: Vec<f64> = seen[arm].iter().map(|phases| part(&phases[phase])).collect();
            figure(&of_replicas, decimals)
        };
        let share = |part: fn(&Phase) -> f64| figure_of(&|it| 100.0 * part(it) / it.iterations, 1);
        let count = |part: fn(&Phase) -> f64| figure_of(&part, 1);
        let from = if phase == 0 { 0 } else { PHASES[phase - 1] };
        let until = PHASES.get(phase).map_or_else(String::new, u64::to_string);
        [
            config.arms[arm].name.clone(),
            format!("{} to {until}", from + 1),
            share(|it| it.wins[0]),
            share(|it| it.wins[1]),
            share(|it| it.wins[2]),
            share(|it| it.wins[3]),
            share(|it| it.offspring_leads),
            count(|it| it.new_best[0]),
            count(|it| it.new_best[1]),
            count(|it| it.new_best[2]),
        ]
        .into()
    };
    let rows = (0..config.arms.len()).flat_map(|arm| (0..=PHASES.len()).map(move |phase| (arm, phase)));
    let computed = |(arm, phase): &(usize, usize)| seen[*arm].iter().any(|phases| phases[*phase].iterations > 0.0);
    let header = [
        "arm",
        "iterations",
        "mean",
        "upper bounds",
        "lower bounds",
        "middle",
        "fitter than all ten",
        "one gene",
        "some genes",
        "all genes",
    ];
    Table {
        title:
            "Which candidate is the fittest, % of iterations, and new best chromosomes by mutant: mean ± 95 % interval"
                .into(),
        header: header.map(String::from).into(),
        rows: rows.filter(computed).map(|(arm, phase)| row(arm, phase)).collect(),
    }
}
