//! Tests of the task: invalid messages and outputs of the wrong shape are rejected, and all instruction sets give the same
//! bits.

use super::*;
use crate::messages::Tally as TallyMessage;
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
    fn set(task: &mut LearnTask, more: &str) {
        task.trial.as_mut().unwrap().settings.push_str(more);
    }
    let nan = |task: &mut LearnTask| {
        let mut bytes = task.weights.to_vec();
        bytes[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
        task.weights = bytes.into();
    };
    let changes: [&dyn Fn(&mut LearnTask); 13] = [
        &|task| task.trial = None,
        &|task| set(task, "network = huge\n"),
        &|task| set(task, "units = 5\n"),
        &|task| set(task, "network = planes\ndetectors = 0\n"),
        &|task| set(task, "epsilon = 1.5\n"),
        &|task| set(task, "games = 0\n"),
        &|task| set(task, "test_every = 30\n"),
        &|task| set(task, "rate = 1\n"),
        &|task| task.weights.truncate(10),
        &nan,
        &|task| task.average = Bytes::new(),
        &|task| task.games = 0,
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
    // The only test comes after game 100. Weights that had diverged by then were not tested.
    let lost = LearnOutput { diverged_after: 100, ..LearnOutput::default() };
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
        &|output| output.diverged_after = 99,
        &|output| *output = LearnOutput { diverged_after: 96, ..LearnOutput::default() },
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
    fn segments_join(cut in 1..30_u32, test_every in 1..40_u64) {
        let mut whole = LearnTask { games: 30, ..small() };
        let settings = format!("games = {}\ntest_every = {test_every}\ntest_games = 2\n", 1000 * test_every);
        whole.trial.as_mut().unwrap().settings.push_str(&settings);
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
}
