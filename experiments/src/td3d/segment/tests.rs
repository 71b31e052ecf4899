//! Tests of the task: invalid messages and outputs of the wrong shape are rejected, and all instruction sets give the same
//! bits.

use super::*;
use crate::td3d::messages::{self, Tally as TallyMessage, Trial as TrialMessage, network};
use evoxo_common::{digest::Digest, simd};
use proptest::prelude::*;
use prost::Message as _;

fn small() -> LearnTask {
    workload().swap_remove(4)
}

fn computed(task: &LearnTask) -> LearnOutput {
    run(task).unwrap()
}

#[test]
fn every_task_of_the_workload_has_an_output_that_fits() {
    for task in workload() {
        let output = computed(&task);
        check(&task, &output).unwrap();
        assert_eq!((output.tests.len(), output.diverged_after), (1, 0));
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let [baseline, avx2, best] = simd::at_each_level(|_| {
        let outputs: Vec<Vec<u8>> = workload().iter().map(|task| computed(task).encode_to_vec()).collect();
        Digest::of_pieces(outputs.iter().map(Vec::as_slice))
    });
    assert_eq!([avx2, best], [baseline; 2]);
}

#[test]
fn invalid_tasks_are_rejected_with_a_reason() {
    fn trial(task: &mut LearnTask) -> &mut TrialMessage {
        task.trial.as_mut().unwrap()
    }
    fn net(task: &mut LearnTask) -> &mut messages::Network {
        trial(task).network.as_mut().unwrap()
    }
    fn learning(task: &mut LearnTask) -> &mut messages::Learning {
        trial(task).learning.as_mut().unwrap()
    }
    let nan = |task: &mut LearnTask| {
        let mut bytes = task.weights.to_vec();
        bytes[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
        task.weights = bytes.into();
    };
    let changes: [&dyn Fn(&mut LearnTask); 26] = [
        &|task| task.trial = None,
        &|task| trial(task).network = None,
        &|task| trial(task).learning = None,
        &|task| net(task).shape = None,
        &|task| net(task).shape.as_mut().unwrap().width = 300,
        &|task| net(task).shape.as_mut().unwrap().k = 1,
        &|task| net(task).first = None,
        &|task| net(task).first = Some(network::First::DenseUnits(5000)),
        &|task| net(task).second = u32::MAX,
        &|task| net(task).activation = 7,
        &|task| learning(task).opponent = 9,
        &|task| learning(task).rate_start = f32::INFINITY,
        &|task| learning(task).rate_end = -1.0,
        &|task| learning(task).games = 0,
        &|task| learning(task).epsilon = f64::NAN,
        &|task| learning(task).gamma = 1.5,
        &|task| (learning(task).rewards_both, learning(task).bootstrapped_end) = (true, false),
        &|task| (learning(task).learns_best, learning(task).learns_explorations) = (true, false),
        &|task| {
            (learning(task).bootstraps_opponents_end, learning(task).learns_opponents_end) = (true, false);
        },
        &|task| learning(task).finished_board = 3,
        &|task| task.weights.truncate(10),
        &nan,
        &|task| task.average = Bytes::new(),
        &|task| task.games = 0,
        &|task| task.test_every = 0,
        &|task| task.first_game = u64::MAX,
    ];
    let messages = changes.iter().map(|change| {
        let mut task = small();
        change(&mut task);
        run(&task).unwrap_err().0
    });
    insta::assert_snapshot!(messages.collect::<Vec<_>>().join("\n"));
}

#[test]
fn outputs_of_the_wrong_shape_are_rejected() {
    let task = small();
    let good = computed(&task);
    check(&task, &good).unwrap();
    // The only test comes after game 102. Weights that had diverged by then were not tested.
    let lost = LearnOutput { diverged_after: 102, ..LearnOutput::default() };
    check(&task, &lost).unwrap();
    check(&task, &LearnOutput { tests: good.tests.clone(), ..lost }).unwrap_err();
    let changes: [&dyn Fn(&mut LearnOutput); 9] = [
        &|output| output.weights.truncate(4),
        &|output| output.average = Bytes::new(),
        &|output| output.weights = vec![0xff; output.weights.len()].into(),
        &|output| output.tests.clear(),
        &|output| output.tests.push(TallyMessage::default()),
        &|output| output.tests[0] = TallyMessage { wins: 3, draws: 2 },
        &|output| output.tests[0] = TallyMessage { wins: u32::MAX, draws: 2 },
        &|output| output.diverged_after = 101,
        &|output| *output = LearnOutput { diverged_after: 98, ..LearnOutput::default() },
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut output = good.clone();
        change(&mut output);
        assert!(check(&task, &output).is_err(), "change {index}");
    }
}

proptest! {
    /// Two tasks, one after the other, give the same result as one.
    #[test]
    fn segments_join(cut in 1..30_u32, test_every in 1..40_u32) {
        let whole = LearnTask { games: 30, test_every, test_games: 2, ..small() };
        let first = computed(&LearnTask { games: cut, ..whole.clone() });
        let (weights, average) = (first.weights, first.average);
        let first_game = whole.first_game + u64::from(cut);
        let mut joined = first.tests;
        let last = if cut < 30 {
            computed(&LearnTask { weights, average, first_game, games: 30 - cut, ..whole.clone() })
        } else {
            LearnOutput { weights, average, ..LearnOutput::default() }
        };
        joined.extend(&last.tests);
        prop_assert_eq!(computed(&whole), LearnOutput { tests: joined, ..last });
    }

    #[test]
    fn a_trial_survives_a_round_trip(
        width in 2..8_u8, height in 1..8_u8, gravity: bool, biases: bool, tanh: bool, benchmark: bool,
        second in 0..65_usize, first in 0..4_usize, bits in 0..8192_u32, finished in 0..3_usize, rate in 0.0..1.0_f32, games in 1..1000_u64, seed: u64,
    ) {
        let bit = |index: u32| bits >> index & 1 == 1;
        let shape = Shape { width, height, depth: 1, k: 2, gravity };
        let activation = if tanh { Activation::Tanh } else { Activation::Logistic };
        let shared = first == 3;
        let first = match first {
            0 => First::Dense { units: 9 },
            1 => First::Lines { detectors: 2 },
            states => First::Tuples { states: states + 1 },
        };
        let architecture = Architecture { shape, first, second, biases, activation, shared };
        let learning = Learning {
            opponent: if benchmark { Opponent::Benchmark } else { Opponent::Itself },
            rate: Rate { start: rate, end: 1.0 - rate, games },
            epsilon: f64::from(rate),
            explores_others: bit(6),
            test_epsilon: 1.0 - f64::from(rate),
            gamma: 1.0 - rate,
            learner_first: bit(0),
            learner_first_in_tests: bit(7),
            output_derivative: bit(1),
            learns_explorations: bit(2),
            each_ply: bit(8),
            learns_opponents_moves: bit(9),
            learns_best: bit(2) && bit(10),
            bootstrapped_end: bit(3),
            rewards_both: bit(3) && bit(11),
            learns_opponents_end: bit(4),
            bootstraps_opponents_end: bit(4) && bit(12),
            finished_board: [FinishedBoard::Skip, FinishedBoard::After, FinishedBoard::Before][finished],
            exact_wins: bit(5),
            averaging_games: games / 2,
        };
        let trial = Trial { architecture, learning, stream: Stream::root(seed) };
        prop_assert_eq!(Trial::read(Some(&trial.write())).unwrap(), trial);
    }
}
