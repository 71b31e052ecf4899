//! Compares one learner with several workers to the serial learner and to a simple implementation of rounds.

use super::*;
use crate::{
    Row, Td3d,
    arm::in_paper,
    join::difference,
    messages::PartOutput,
    segment::{Learnt, test, train},
    testing::{self, digest, parse},
};
use evoxo_common::{
    experiment::{Config, Experiment, Identity},
    task::Compute as _,
};
use evoxo_games::board::Geometry;
use prost::Message as _;

const TRIAL: &str = "experiment = \"td3d\"\nreplicas = 1\n[settings]\nnetwork = \"small-structured\"\nalpha = \"0.01\"\n\
                     games = 26\ntest_every = 13\ntest_games = 50\n";

fn config(more: &str) -> Config {
    parse(&format!("{TRIAL}{more}\n[arms.\"a\"]\n"))
}

fn start(config: &Config) -> Td3d {
    Td3d::restore(Identity::new(config, &config.arms[0], 0), State::default()).unwrap()
}

/// The tasks of the next round.
fn planned(experiment: &Td3d) -> Vec<Task> {
    experiment.plan(0..experiment.tasks())
}

fn step(experiment: &mut Td3d) -> bool {
    let tasks = planned(experiment);
    let outputs: Vec<Bytes> = tasks.iter().map(|task| task.run().unwrap()).collect();
    if !tasks.is_empty() {
        experiment.absorb(&outputs, &mut Vec::new()).unwrap();
    }
    !tasks.is_empty()
}

/// The state at the end of the trial.
fn end(mut experiment: Td3d) -> State {
    while step(&mut experiment) {}
    experiment.state
}

#[test]
fn one_worker_taken_unchanged_is_the_serial_learner() {
    let serial = config("");
    let expected = end(start(&serial));
    assert_eq!((expected.games, expected.tests.len()), (26, 2));
    for (episodes, over) in [(1, Over::All), (5, Over::Touched), (40, Over::All)] {
        let outer = Outer { over, rate: 1.0, momentum: 0.0 };
        let mut joint = start(&serial);
        joint.joint = Some(Joint { learners: 1, episodes, outer, games: 26, test_every: 13, test_games: 50 });
        assert_eq!(end(joint), expected, "{episodes} games at once");
    }
    assert!(start(&config("learners = 1\nepisodes = 7")).joint.is_none());
}

#[test]
fn the_average_of_one_worker_is_the_serial_result() {
    let settings = "games = 300\ntest_every = 300\naveraging_games = 1000";
    let serial = parse(&format!("{TRIAL}{settings}\n").replacen("games = 26\ntest_every = 13\n", "", 1));
    let mut joint = start(&serial);
    let outer = Outer { over: Over::All, rate: 1.0, momentum: 0.0 };
    joint.joint = Some(Joint { learners: 1, episodes: 100, outer, games: 300, test_every: 300, test_games: 50 });
    let state = end(joint);
    assert!(!state.average.is_empty() && state.average != state.weights);
    assert_eq!(state, end(start(&serial)), "rounds that end where the average is taken");
}

/// A trial computed as its description says, without tasks or updates.
fn by_definition(config: &Config) -> State {
    let Td3d { trial, joint, .. } = start(config);
    let joint = joint.unwrap();
    let geometry = Geometry::new(trial.architecture.shape).unwrap();
    let mut weights = trial.architecture.initial(trial.stream.text("weights"));
    let mut velocity = vec![0.0_f64; weights.len()];
    let (mut played, mut tests) = (0, Vec::new());
    while played < trial.learning.rate.games {
        let mut workers = Vec::new();
        let mut open = true;
        for _ in 0..joint.learners {
            let first = played;
            while open && played - first < joint.episodes {
                played += 1;
                open = !played.is_multiple_of(joint.test_every);
            }
            if played > first {
                let old = Learnt { weights: weights.clone(), average: Vec::new() };
                workers.push(train(&trial, &geometry, &old, first..played).weights);
            }
        }
        for index in 0..weights.len() {
            let old = f64::from(weights[index]);
            let new = workers.iter().map(|weights| f64::from(weights[index]));
            let new: Vec<f64> = new.filter(|new| joint.outer.over == Over::All || *new != old).collect();
            let mean = if new.is_empty() { old } else { new.iter().sum::<f64>() / new.len() as f64 };
            velocity[index] = f64::from((joint.outer.momentum * velocity[index] + old - mean) as f32);
            let step = old - mean + joint.outer.momentum * velocity[index];
            weights[index] = (old - joint.outer.rate * step) as f32;
        }
        if !open {
            tests.push(test(&trial, &geometry, &weights, played, 0..joint.test_games).into());
        }
    }
    let velocity: Vec<f32> = velocity.iter().map(|speed| *speed as f32).collect();
    let velocity = if joint.outer.momentum > 0.0 { write_weights(&velocity) } else { Bytes::new() };
    State { games: played, weights: write_weights(&weights), velocity, tests, ..State::default() }
}

#[test]
fn rounds_match_the_reference() {
    for settings in [
        "learners = 3\nepisodes = 2",
        "learners = 3\nepisodes = 2\njoin = \"all\"",
        "learners = 2\nepisodes = 4\nouter_rate = \"0.7\"\nmomentum = \"0.9\"",
        "learners = 1\nepisodes = 5\nouter_rate = \"0.5\"",
    ] {
        let config = config(settings);
        let (state, expected) = (end(start(&config)), by_definition(&config));
        assert_eq!((state.games, state.velocity.len()), (expected.games, expected.velocity.len()), "{settings}");
        let numbers = |state: &State| {
            let bytes = [state.weights.clone(), state.velocity.clone()];
            bytes.iter().flat_map(|bytes| from_bytes(bytes).collect::<Vec<f32>>()).collect::<Vec<f32>>()
        };
        for (fast, expected) in numbers(&state).into_iter().zip(numbers(&expected)) {
            // The last bits of a sum of doubles seldom show in a float. Many games would amplify the difference, but there
            // are few here.
            assert!((fast - expected).abs() < 1e-5, "{settings}: {fast} {expected}");
        }
        let wins = |state: &State| state.tests.iter().map(|tally| tally.wins).collect::<Vec<_>>();
        assert_eq!(wins(&state).len(), 2);
        assert!(wins(&state).iter().zip(wins(&expected)).all(|(one, other)| one.abs_diff(other) <= 2), "{settings}");
    }
}

#[test]
fn rounds_are_counted_and_end_at_tests() {
    let config = config("learners = 3\nepisodes = 2");
    let mut experiment = start(&config);
    let mut games = Vec::new();
    while step(&mut experiment) {
        games.push(experiment.state.games);
    }
    assert_eq!(games, [6, 12, 13, 13, 19, 25, 26, 26], "each test is a separate round");
    assert_eq!(experiment.joint.unwrap().rounds(), 8);
    let replicas = testing::run(&config);
    let tests: Vec<f64> = replicas[0].history().iter().map(|row| row[Row::games]).collect();
    assert_eq!(tests, [13.0, 26.0]);
}

#[test]
fn a_test_in_parts_is_the_test() {
    for (learners, parts) in [(1, 1), (2, 2), (7, 3), (64, 3)] {
        let config = config(&format!("learners = {learners}\nepisodes = 13\nouter_rate = \"0.9\""));
        let mut experiment = start(&config);
        step(&mut experiment);
        assert_eq!(experiment.tasks(), parts);
        step(&mut experiment);
        let geometry = Geometry::new(experiment.trial.architecture.shape).unwrap();
        let weights: Vec<f32> = from_bytes(&experiment.state.weights).collect();
        let whole: Tally = test(&experiment.trial, &geometry, &weights, 13, 0..50).into();
        assert_eq!(experiment.state.tests, [whole]);
    }
}

#[test]
fn a_state_is_restored_after_any_round_or_rejected() {
    let config = config("learners = 2\nepisodes = 4\nouter_rate = \"0.7\"\nmomentum = \"0.9\"\naveraging_games = 500");
    let identity = || Identity::new(&config, &config.arms[0], 0);
    let expected = end(start(&config));
    let mut experiment = start(&config);
    loop {
        let saved = experiment.save();
        let mut restored = Td3d::restore(identity(), saved.clone()).unwrap();
        assert_eq!(restored.save(), saved);
        let more = step(&mut restored);
        experiment = restored;
        if !more {
            break;
        }
    }
    assert_eq!(experiment.state, expected);
    let with = |change: fn(&mut State)| {
        let mut state = expected.clone();
        change(&mut state);
        Td3d::restore(identity(), state).map(|_| ())
    };
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(with(|state| state.tests.truncate(1)), Ok(()), "the last test may be due");
    let bad: [fn(&mut State); 5] = [
        |state| state.tests.clear(),
        |state| state.games = 25,
        |state| state.velocity = Bytes::new(),
        |state| state.velocity = state.velocity.slice(4..),
        |state| state.average = Bytes::new(),
    ];
    assert!(bad.into_iter().all(|change| with(change).is_err()));
}

#[test]
fn diverging_weights_end_the_replica_with_a_reason() {
    let config = config("learners = 2\nepisodes = 4\nouter_rate = 10");
    let mut experiment = start(&config);
    step(&mut experiment);
    let huge = vec![f32::MAX; experiment.trial.architecture.parameters()];
    let update = difference(&vec![0.0; huge.len()], &huge);
    let part = Some(part_output::Part::Update(update));
    let output = Bytes::from(PartOutput { part }.encode_to_vec());
    let mut rows = Vec::new();
    let why = experiment.absorb(&[output.clone(), output], &mut rows).unwrap_err();
    assert_eq!(why, "the weights are no longer finite when joined after game 13: lower alpha or outer_rate");
    assert!(rows.is_empty() && experiment.champion().is_none());
    let restored = Td3d::restore(Identity::new(&config, &config.arms[0], 0), experiment.save()).unwrap();
    assert_eq!(restored.state, experiment.state);
}

/// If this digest changes, every such run gives different results.
#[test]
fn the_digest_is_pinned() {
    let config = config("learners = 3\nepisodes = 2\nouter_rate = \"0.7\"\nmomentum = \"0.9\"");
    insta::assert_snapshot!(digest(&testing::run(&config)));
}

#[test]
fn invalid_parts_are_rejected_with_a_reason() {
    let experiment = start(&config("learners = 2"));
    let planned = planned(&experiment).remove(0);
    let shared = planned.shared.clone();
    let run = |part, shared: &Bytes| {
        PartOfRound::run(&PartTask { trial: Some(experiment.message.clone()), part }, shared)
            .map(drop)
            .map_err(|why| why.0)
    };
    let learn = |first_game, games| Some(Part::Learn(LearnGames { first_game, games }));
    let test = |first_game, games| Some(Part::Test(TestGames { played: 3, first_game, games }));
    assert_eq!(run(learn(u64::MAX - 2, 2), &shared), Ok(()));
    assert_eq!(run(test(99_999, 1), &shared), Ok(()));
    for (part, sentence) in [
        (None, "neither games to learn from"),
        (learn(0, 0), "0 games from 0 on are not part of a trial"),
        (learn(0, 1_000_001), "1000001 games"),
        (learn(u64::MAX, 1), "not part of a trial"),
        (test(0, 0), "0 games from 0 on are not part of a test"),
        (test(99_999, 2), "not part of a test"),
        (test(u32::MAX, 2), "not part of a test"),
    ] {
        let why = run(part, &shared).unwrap_err();
        assert!(why.contains(sentence), "{why}");
    }
    assert!(run(learn(0, 1), &shared.slice(4..)).unwrap_err().contains("weights of 4 bytes"));
    assert!(run(learn(0, 1), &Bytes::new()).is_err());
    assert!(PartOfRound::run(&PartTask::default(), &shared).is_err());
}

#[test]
fn outputs_of_the_wrong_shape_are_rejected() {
    let mut experiment = start(&config("learners = 2\nepisodes = 7"));
    let learns = planned(&experiment).remove(0);
    step(&mut experiment);
    let tests = planned(&experiment).remove(0);
    let answer =
        |task: &Task, part| task.check(&PartOutput { part }.encode_to_vec().into()).map(drop).map_err(|why| why.0);
    let weights = experiment.trial.architecture.parameters();
    let update = |values: usize| {
        let changed = vec![0; weights.div_ceil(8)].into();
        part_output::Part::Update(WeightUpdate { changed, values: vec![0; values].into() })
    };
    let tally = |wins, draws| part_output::Part::Tally(Tally { wins, draws });
    assert_eq!(answer(&learns, Some(update(0))), Ok(()));
    assert_eq!(answer(&tests, Some(tally(20, 5))), Ok(()));
    for (task, part, sentence) in [
        (&learns, Some(update(8)), "and 8 of values"),
        (&learns, Some(tally(1, 1)), "the task is a test"),
        (&learns, None, "the task is a test"),
        (&tests, Some(update(0)), "the output is an update"),
        (&tests, Some(tally(20, 6)), "20 wins and 6 draws in 25 games of a test"),
        (&tests, Some(tally(u32::MAX, u32::MAX)), "4294967295 wins"),
    ] {
        let why = answer(task, part).unwrap_err();
        assert!(why.contains(sentence), "{why}");
    }
}

#[test]
fn useless_settings_are_reported() {
    let problems = |settings: &str| testing::problems(&format!("{TRIAL}{settings}\n")).to_string();
    assert!(problems("momentum = 1").contains("would never stop moving"));
    assert!(problems("outer_rate = 0").contains("nothing would be learnt"));
    assert!(problems("learners = 257").contains("from 1 to 256"));
}

#[test]
fn arms_of_several_workers_are_not_in_the_papers_tables() {
    let text = "experiment = \"td3d\"\n[arms.serial]\n[arms.joint]\nlearners = 4\n";
    let config = parse(text);
    let in_paper = [0, 1].map(|arm| in_paper(&Settings::of(&config.arms[arm].settings)).is_some());
    assert_eq!(in_paper, [true, false]);
}
