//! Tests of the experiment as a whole: the state does not depend on how the work is divided, and invalid tasks are rejected
//! with a reason.

use super::{
    messages::{FitnessTask, SegmentTask},
    task::{Fitness, Segment},
    *,
};
use crate::testing::{self, digest, parse, parse_with};
use evoxo_common::{
    experiment::{Config, Replica},
    local, simd,
    task::Compute,
};
use prost::Message as _;

const SMALL: &str = "experiment = \"nndtf\"\nseed = 5\nreplicas = 2\n[settings]\niterations = 40\nevaluations = 300\n\
                     offspring = 10\n[arms.proposed]\n[arms.\"improved, traditional\"]\nnetwork = \"traditional\"\n\
                     [arms.\"traditional, double\"]\nalgorithm = \"traditional\"\ncoupling = \"final\"\nsweeps = 3\n\
                     [arms.rival]\nnetwork = \"traditional\"\nalgorithm = \"traditional\"\nnumbering = \"right-to-left\"\n\
                     [arms.\"cma-es\"]\nalgorithm = \"cma-es\"\n";

/// The readings that were added later, all at once. [`FIRST_READINGS`] are the values that equal leaving them out.
const READINGS: &[(&str, &str)] = &[
    ("training", "teacher-play"),
    ("stones", "two-each"),
    ("fitness", "ratio-of-sums"),
    ("occupied", "nothing"),
    ("weighs", "bounds"),
    ("parents", "different"),
    ("joins", "offspring-too"),
    ("some", "any-number"),
    ("births", "couple"),
    ("mutates", "child"),
];
const FIRST_READINGS: [&str; 10] =
    ["uniform", "any", "mean-of-ratios", "nearest", "parents", "any", "mutants", "half", "all", "genes"];

fn run_with(overrides: &[(&str, &str)]) -> Vec<Replica> {
    testing::run(&parse_with(SMALL, overrides))
}

#[test]
fn the_digest_is_pinned_for_every_farming_mode() {
    let whole = run_with(&[]);
    insta::assert_snapshot!(digest(&whole));
    for overrides in
        [&[("farming", "evaluations")][..], &[("segment", "1")], &[("segment", "7")], &[("segment", "1000000")]]
    {
        let other = run_with(overrides);
        assert_eq!(digest(&whole), digest(&other), "{overrides:?}");
        for (one, two) in whole.iter().zip(&other) {
            assert_eq!((one.history(), one.champion()), (two.history(), two.champion()), "{overrides:?}");
        }
    }
    simd::at_each_level(|level| assert_eq!(digest(&whole), digest(&run_with(&[])), "{level:?}"));
}

/// Other numbers of hidden nodes and other bounds give other searches, and both ways of farming agree on them.
#[test]
fn hidden_nodes_and_bounds_are_settings() {
    let config = |overrides: &[(&str, &str)]| parse_with(SMALL, overrides);
    let usual = config(&[]);
    for overrides in [&[("hidden", "4")][..], &[("hidden", "13")], &[("gene_min", "-3"), ("gene_max", "2.5")], READINGS]
    {
        let other = run_with(overrides);
        assert_ne!(config(overrides).hash(), usual.hash());
        let farmed: Vec<(&str, &str)> = overrides.iter().copied().chain([("farming", "evaluations")]).collect();
        assert_eq!(digest(&other), digest(&run_with(&farmed)), "{overrides:?}");
        for replica in &other {
            assert_eq!(Replica::restore(&config(overrides), &replica.save()).unwrap().digest(), replica.digest());
            let card = replica.champion().unwrap();
            let player = card.champion_as::<NetworkPlayer>().unwrap();
            assert_eq!(player.genes().len(), player.network().genes());
        }
    }
    let spelt = config(&[("hidden", "8"), ("gene_min", "-1"), ("gene_max", "1")]);
    assert_eq!(spelt.hash(), usual.hash());
    for ((name, other), first) in READINGS.iter().zip(FIRST_READINGS) {
        assert_eq!(config(&[(name, first)]).hash(), usual.hash(), "{name}");
        assert_ne!(config(&[(name, other)]).hash(), usual.hash(), "{name}");
    }
}

/// A replica may change its way of farming after every round, because both ways use the same state.
#[test]
fn a_state_can_be_continued_in_the_other_farming_mode() {
    let config = |farming: &str| parse_with(SMALL, &[("farming", farming), ("segment", "3")]);
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

/// Both genetic algorithms end with a population, and the champion is the first of its fittest chromosomes. The evolution
/// strategy has no population.
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
fn replicas_take_the_announced_number_of_rounds() {
    for farming in ["segments", "evaluations"] {
        let config = parse_with(SMALL, &[("farming", farming), ("segment", "9")]);
        for replica in testing::run(&config) {
            let arm = config.arms.iter().find(|arm| arm.name == replica.arm()).unwrap();
            assert_eq!(replica.rounds(), (KIND.rounds)(&arm.settings), "{farming} {}", replica.arm());
        }
    }
}

/// Arms share their boards.
#[test]
fn training_boards_are_shared() {
    let config = parse(SMALL);
    let planned: Vec<Task> =
        config.arms.iter().map(|arm| Replica::start(&config, arm, 0).plan(0..1).remove(0)).collect();
    let boards = |task: &Task| SegmentTask::decode(task.body.clone()).unwrap().boards;
    assert!(planned.iter().all(|task| boards(task) == boards(&planned[0])));
}

#[test]
fn invalid_settings_are_rejected() {
    let problems = |text: &str| testing::problems(&format!("experiment = \"nndtf\"\n[settings]\n{text}")).to_string();
    let all = [
        problems("boards = 2424"),
        problems("boards = 0"),
        problems("algorithm = \"traditional\"\npopulation = 9"),
        problems("algorithm = \"cma-es\"\noffspring = 500\nevaluations = 499\nsigma = 0"),
        problems("acceptance = 1.1"),
        problems("network = \"triple\""),
        problems("sweeps = 65"),
        problems("hidden = 17"),
        problems("gene_min = 1"),
        problems("boards = 757\nstones = \"two-each\""),
        problems("boards = 2000\ntraining = \"teacher-play\""),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn contradictory_tasks_are_rejected_with_a_reason() {
    let fitness = |change: fn(&mut FitnessTask)| {
        let (mut task, shared) = Fitness::workload().remove(0);
        change(&mut task);
        Fitness::run(&task, &shared).unwrap_err().0
    };
    let segment = |change: fn(&mut SegmentTask)| {
        let (mut task, shared) = Segment::workload().remove(0);
        change(&mut task);
        Segment::run(&task, &shared).unwrap_err().0
    };
    let sentences = [
        fitness(|task| task.settings = "network = triple\n".into()),
        fitness(|task| task.settings = "hidden = 17\n".into()),
        fitness(|task| task.settings = "nodes = 3\n".into()),
        fitness(|task| task.settings = "x".into()),
        fitness(|task| task.genes.clear()),
        fitness(|task| _ = task.genes.pop()),
        fitness(|task| task.genes[120] = f32::INFINITY),
        fitness(|task| task.genes = vec![0.0; 4097 * 114]),
        fitness(|task| task.boards.clear()),
        fitness(|task| task.boards[1] = task.boards[0]),
        fitness(|task| task.boards = (0..2424).collect()),
        segment(|task| task.settings.push_str("gene_min = 1\n")),
        segment(|task| task.state = None),
        segment(|task| task.iterations = 0),
        segment(|task| task.state.as_mut().unwrap().iteration = 21),
        segment(|task| task.state.as_mut().unwrap().genes = vec![0.5; 114]),
    ];
    insta::assert_snapshot!(sentences.join("\n"));
}

/// An output of the wrong shape is rejected.
#[test]
fn outputs_of_the_wrong_shape_are_rejected() {
    fn refused<C: Compute>(changes: &[fn(&mut C::Output)]) {
        for (task, shared) in C::workload() {
            let good = C::run(&task, &shared).unwrap();
            assert_eq!(C::check(&task, &shared, &good), Ok(()));
            for (number, change) in changes.iter().enumerate() {
                let mut output = C::run(&task, &shared).unwrap();
                change(&mut output);
                assert!(C::check(&task, &shared, &output).is_err(), "change {number}");
            }
        }
    }
    refused::<Fitness>(&[
        |output| _ = output.sums.pop(),
        |output| output.sums.push(1),
        |output| output.sums[0] = 41 << 24 | 1,
        |output| output.sums.clear(),
    ]);
    refused::<Segment>(&[
        |output| output.state = None,
        |output| output.state.as_mut().unwrap().iteration -= 1,
        |output| output.state.as_mut().unwrap().sums[0] = u64::MAX,
        |output| output.state.as_mut().unwrap().genes[0] = 3.0,
    ]);
}
