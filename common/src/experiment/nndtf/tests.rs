//! The experiment as a whole: the same state however the work is cut up, and words for what is no task.

use super::*;
use crate::{
    config::Config,
    local,
    replica::{Replica, run_digest},
    simd,
    task::{Refusal, run},
};

const SMALL: &str = "experiment = \"nndtf\"\nseed = 5\nreplicas = 2\n[settings]\niterations = 40\nevaluations = 300\n\
                     offspring = 10\n[arms.proposed]\n[arms.\"improved, traditional\"]\nnetwork = \"traditional\"\n\
                     [arms.\"traditional, double\"]\nalgorithm = \"traditional\"\ncoupling = \"final\"\nsweeps = 3\n\
                     [arms.rival]\nnetwork = \"traditional\"\nalgorithm = \"traditional\"\nnumbering = \"right-to-left\"\n\
                     [arms.\"cma-es\"]\nalgorithm = \"cma-es\"\n";

fn run_with(overrides: &[(&str, &str)]) -> Vec<Replica> {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    local::run(&Config::parse("t", SMALL, &overrides).unwrap()).unwrap()
}

#[test]
fn the_digest_is_pinned_and_no_way_of_farming_shows() {
    let whole = run_with(&[]);
    insta::assert_snapshot!(run_digest(&whole));
    for overrides in
        [&[("farming", "evaluations")][..], &[("segment", "1")], &[("segment", "7")], &[("segment", "1000000")]]
    {
        let other = run_with(overrides);
        assert_eq!(run_digest(&whole), run_digest(&other), "{overrides:?}");
        for (one, two) in whole.iter().zip(&other) {
            assert_eq!((one.history(), one.champion()), (two.history(), two.champion()), "{overrides:?}");
        }
    }
    simd::at_each_level(|level| assert_eq!(run_digest(&whole), run_digest(&run_with(&[])), "{level:?}"));
}

/// A replica may go on the other way after every round: a state is a state.
#[test]
fn a_state_can_be_taken_up_by_the_other_way() {
    let config = |farming: &str| {
        Config::parse("t", SMALL, &[("farming".into(), farming.into()), ("segment".into(), "3".into())]).unwrap()
    };
    let (one, two) = (config("segments"), config("evaluations"));
    let whole = run_with(&[]);
    for (arm, expected) in one.arms.iter().map(|arm| &arm.name).zip(whole.chunks(2).map(|pair| &pair[1])) {
        let arm_of = |config: &Config| config.arms.iter().find(|other| other.name == *arm).unwrap().clone();
        let mut replica = Replica::start(&one, &arm_of(&one), 1);
        let mut turn = 0;
        while local::step(&mut replica).unwrap() {
            turn += 1;
            replica = Replica::restore(if turn % 3 == 0 { &one } else { &two }, &replica.save()).unwrap();
        }
        assert_eq!((replica.digest(), replica.history()), (expected.digest(), expected.history()), "{arm}");
    }
}

/// Both genetic algorithms end with a population, whose first fittest is the champion; the evolution strategy has none.
#[test]
fn populations_are_whole_and_the_champion_is_among_them() {
    for replica in run_with(&[("population", "12")]) {
        let (population, champion) = (replica.population(), replica.champion().unwrap());
        if replica.arm() == "cma-es" {
            assert!(population.is_empty());
            continue;
        }
        assert_eq!(population.len(), 12, "{}", replica.arm());
        let fitness = |card: &Card| card.about["fitness"].as_f64().unwrap();
        let best = population.iter().map(fitness).fold(0.0, f64::max);
        assert_eq!(population.iter().find(|card| fitness(card) == best), Some(&champion), "{}", replica.arm());
        assert!(population.iter().any(|card| fitness(card) < best), "{}", replica.arm());
    }
}

#[test]
fn so_many_rounds_as_said() {
    for farming in ["segments", "evaluations"] {
        let overrides = [("farming".to_owned(), farming.to_owned()), ("segment".into(), "9".into())];
        let config = Config::parse("t", SMALL, &overrides).unwrap();
        for replica in local::run(&config).unwrap() {
            let arm = config.arms.iter().find(|arm| arm.name == replica.arm()).unwrap();
            assert_eq!(replica.rounds(), rounds(&arm.settings), "{farming} {}", replica.arm());
        }
    }
}

/// Arms share their boards; replicas and seeds do not.
#[test]
fn training_boards_are_different_and_shared() {
    let boards = training_boards(1, 0, 100);
    assert!(boards.len() == 100 && boards.is_sorted_by(|one, two| one < two));
    assert_eq!(boards, training_boards(1, 0, 100));
    assert_ne!(boards, training_boards(1, 1, 100));
    assert_ne!(boards, training_boards(2, 0, 100));
    assert_eq!(training_boards(1, 0, BOARDS).len(), BOARDS);
    let planned: Vec<Task> = Config::parse("t", SMALL, &[])
        .unwrap()
        .arms
        .iter()
        .map(|arm| {
            let config = Config::parse("t", SMALL, &[]).unwrap();
            Replica::start(&config, arm, 0).plan().remove(0)
        })
        .collect();
    let boards = |task: &Task| match &task.work {
        Some(Work::NndtfSegment(segment)) => segment.judge.clone().unwrap().boards,
        other => panic!("{other:?}"),
    };
    assert!(planned.iter().all(|task| boards(task) == boards(&planned[0])));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let problems = |text: &str| {
        Config::parse("t", &format!("experiment = \"nndtf\"\n[settings]\n{text}"), &[]).unwrap_err().to_string()
    };
    let all = [
        problems("boards = 2424"),
        problems("boards = 0"),
        problems("algorithm = \"traditional\"\npopulation = 9"),
        problems("algorithm = \"cma-es\"\noffspring = 500\nevaluations = 499\nsigma = 0"),
        problems("acceptance = 1.1"),
        problems("network = \"triple\""),
        problems("sweeps = 65"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn tasks_that_make_no_sense_are_refused_with_a_sentence() {
    let [fitness, segment] = super::task::workload();
    let refused = |work: Work| run(&work.into()).unwrap_err().0;
    let fitness = |change: fn(&mut NndtfFitnessTask)| {
        let Some(Work::NndtfFitness(mut task)) = fitness[0].work.clone() else { panic!("it is one") };
        change(&mut task);
        refused(Work::NndtfFitness(task))
    };
    let segment = |change: fn(&mut NndtfSegmentTask)| {
        let Some(Work::NndtfSegment(mut task)) = segment[0].work.clone() else { panic!("it is one") };
        change(&mut task);
        refused(Work::NndtfSegment(task))
    };
    let judge = |change: fn(&mut NndtfJudge)| {
        let Some(Work::NndtfFitness(mut task)) = super::task::workload()[0][0].work.clone() else {
            panic!("it is one")
        };
        change(task.judge.as_mut().unwrap());
        refused(Work::NndtfFitness(task))
    };
    let sentences = [
        fitness(|task| task.judge = None),
        fitness(|task| task.genes.clear()),
        fitness(|task| _ = task.genes.pop()),
        fitness(|task| task.genes[120] = f32::INFINITY),
        fitness(|task| task.genes = vec![0.0; 4097 * 114]),
        judge(|judge| judge.kind = 7),
        judge(|judge| judge.sweeps = 0),
        judge(|judge| judge.boards.clear()),
        judge(|judge| judge.boards[1] = judge.boards[0]),
        judge(|judge| judge.boards = (0..2424).collect()),
        segment(|task| task.search = None),
        segment(|task| task.state = None),
        segment(|task| task.iterations = 0),
        segment(|task| task.state.as_mut().unwrap().iteration = 21),
        segment(|task| task.state.as_mut().unwrap().genes = vec![0.5; 114]),
    ];
    insta::assert_snapshot!(sentences.join("\n"));
}

/// Answers of another shape never come further than this.
#[test]
fn outputs_that_do_not_answer_are_refused() {
    use crate::task::decode_output;
    for task in super::task::workload().concat() {
        let good = run(&task).unwrap();
        assert_eq!(decode_output(&task, &good.encode_to_vec().into()), Ok(good.clone()));
        let bad = |change: &dyn Fn(&mut Output)| {
            let mut output = good.clone();
            change(&mut output);
            let answer: Result<Output, Refusal> = decode_output(&task, &output.encode_to_vec().into());
            assert!(answer.is_err(), "{answer:?}");
        };
        bad(&|output| match &mut output.result {
            Some(output::Result::NndtfFitness(fitness)) => _ = fitness.sums.pop(),
            Some(output::Result::NndtfSegment(segment)) => segment.state = None,
            other => panic!("{other:?}"),
        });
        bad(&|output| match &mut output.result {
            Some(output::Result::NndtfFitness(fitness)) => fitness.sums.push(1),
            Some(output::Result::NndtfSegment(segment)) => segment.state.as_mut().unwrap().iteration -= 1,
            other => panic!("{other:?}"),
        });
        bad(&|output| match &mut output.result {
            Some(output::Result::NndtfFitness(fitness)) => fitness.sums[0] = 41 << 24 | 1,
            Some(output::Result::NndtfSegment(segment)) => segment.state.as_mut().unwrap().sums[0] = u64::MAX,
            other => panic!("{other:?}"),
        });
        bad(&|output| match &mut output.result {
            Some(output::Result::NndtfFitness(fitness)) => fitness.sums.clear(),
            Some(output::Result::NndtfSegment(segment)) => segment.state.as_mut().unwrap().genes[0] = 3.0,
            other => panic!("{other:?}"),
        });
    }
}
