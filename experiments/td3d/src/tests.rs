//! Tests of trials: they are independent of how they are divided, pinned, saved and restored. Also tests of settings and
//! their mistakes.

use super::*;
use crate::testing::{self, digest, parse, parse_with};
use evoxo_common::{
    experiment::{Config, Replica},
    local,
    settings::Typed as _,
};
use evoxo_games::{
    board::Geometry,
    net::{
        Architecture, First,
        learn::{Learning, Opponent, Rate},
    },
};
use prost::Message as _;

/// A small trial of each network. Together the trials use most settings.
const SMALL: &str = r#"
experiment = "td3d"
replicas = 1
[settings]
games = 120
test_every = 40
test_games = 6
alpha = 0.05
[arms."small structured"]
network = "small-structured"
[arms."deep structured"]
network = "deep-structured"
detectors = 2
second = 8
averaging_games = 200
[arms.small]
network = "small"
reading = "literal"
opponent = "benchmark"
[arms.deep]
network = "deep"
units = 20
second = 10
schedule = "linear"
opponent = "benchmark"
[arms.wide]
network = "wide"
activation = "tanh"
wins = "exact"
gamma = 0.9
[arms."three in a row"]
network = "deep-structured"
game = "tic-tac-toe"
"#;

fn run(overrides: &[(&str, &str)]) -> Vec<Replica> {
    testing::run(&parse_with(SMALL, overrides))
}

#[test]
fn a_trial_does_not_depend_on_its_segments() {
    let whole = run(&[]);
    let lines: Vec<String> = whole
        .iter()
        .map(|replica| format!("{} {} {:?}", replica.arm(), replica.digest(), replica.history().last().unwrap()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    for segment in ["7", "40", "119"] {
        let cut = run(&[("segment_games", segment)]);
        assert_eq!(digest(&cut), digest(&whole), "segments of {segment} games");
        assert!(
            cut.iter()
                .zip(&whole)
                .all(|(cut, whole)| cut.history() == whole.history() && cut.rounds() > whole.rounds())
        );
    }
}

#[test]
fn a_restored_trial_continues() {
    let config = parse_with(SMALL, &[("segment_games", "50")]);
    for replica in local::start(&config) {
        let (mut whole, mut parts) = (Replica::restore(&config, &replica.save()).unwrap(), replica);
        while local::step(&mut whole).unwrap() {
            assert!(local::step(&mut parts).unwrap());
            parts = Replica::restore(&config, &parts.save()).unwrap();
        }
        assert_eq!((parts.save(), parts.digest()), (whole.save(), whole.digest()));
    }
}

/// The first of three replicas ends as planned.
#[test]
fn divergence_ends_a_replica_after_the_same_game_for_all_segments() {
    let text = "experiment = \"td3d\"\nseed = 3\nreplicas = 3\n[settings]\nnetwork = \"deep-structured\"\n\
        games = 40\ntest_every = 20\ntest_games = 2\nalpha = 699999999999\n";
    for segment in ["7", "20"] {
        let replicas = testing::run(&parse_with(text, &[("segment_games", segment)]));
        let ended = |game: u32| Some(format!("ended: the weights are no longer finite after game {game}: lower alpha"));
        let failures: Vec<_> = replicas.iter().map(Replica::failure).collect();
        assert_eq!(failures, [None, ended(19).as_deref(), ended(24).as_deref()], "segments of {segment} games");
        assert_eq!(replicas.iter().map(|replica| replica.history().len()).collect::<Vec<_>>(), [2, 0, 1]);
        assert!(replicas.iter().all(|replica| replica.is_finished()));
    }
}

#[test]
fn a_state_that_the_settings_cannot_produce_is_rejected() {
    let config = parse_with(SMALL, &[("segment_games", "60")]);
    let mut replica = local::start(&config).nth(1).unwrap();
    local::step(&mut replica).unwrap();
    let good = replica.save();
    let state = State::decode(good.state.clone()).unwrap();
    assert_eq!((state.games, state.tests.len()), (60, 1));
    let with = |change: &dyn Fn(&mut State)| {
        let mut state = state.clone();
        change(&mut state);
        Replica::restore(&config, &{
            let mut saved = good.clone();
            saved.state = state.encode_to_vec().into();
            saved
        })
        .map(drop)
    };
    assert_eq!(with(&|_| {}), Ok(()));
    let nan = [&f32::NAN.to_le_bytes(), &state.weights[4..]].concat();
    let changes: [&dyn Fn(&mut State); 8] = [
        &|state| state.games = 121,
        &|state| state.games = 80,
        &|state| state.tests.truncate(0),
        &|state| state.tests[0].wins = 7,
        &|state| state.weights.truncate(8),
        &|state| state.average = Bytes::new(),
        &|state| state.weights = nan.clone().into(),
        &|state| *state = State { tests: state.tests.clone(), ..State::default() },
    ];
    for (index, change) in changes.iter().enumerate() {
        assert!(with(change).unwrap_err().contains("the state does not fit the settings"), "change {index}");
    }
    let mut garbage = good;
    garbage.state = vec![0xff; 9].into();
    assert!(Replica::restore(&config, &garbage).is_err());
}

/// The default settings with these overrides.
fn settings_of(overrides: &[(&str, &str)]) -> Settings {
    Settings::of(&parse_with("experiment = \"td3d\"", overrides).arms[0].settings)
}

/// The initial weights when one more setting has this value.
fn initial(setting: &str, value: &str) -> (Architecture, Vec<f32>) {
    let config = parse_with("experiment = \"td3d\"", &[("network", "deep"), (setting, value)]);
    let identity = Identity::new(&config, &config.arms[0], 0);
    let trial = Td3d::restore(identity, State::default()).unwrap();
    let architecture = trial.trial.architecture;
    (architecture, read_weights(&trial.weights().0, architecture.parameters()).unwrap())
}

#[test]
fn initial_weights_have_the_requested_range() {
    let ((_, half), (_, fifth)) = (initial("initial_weights", "0.5"), initial("initial_weights", "0.2"));
    assert!(half.iter().any(|weight| weight.abs() > 0.49) && half.iter().all(|weight| weight.abs() <= 0.5));
    assert!(half.iter().zip(&fifth).all(|(half, fifth)| *fifth == half * 0.4));
}

#[test]
fn biases_can_start_at_zero() {
    let ((architecture, uniform), (_, zero)) =
        (initial("initial_biases", "uniform"), initial("initial_biases", "zero"));
    for tensor in architecture.tensors() {
        let (uniform, zero) = (&uniform[tensor.range.clone()], &zero[tensor.range.clone()]);
        assert!(uniform.iter().all(|weight| *weight != 0.0), "{}", tensor.name);
        let expected = if tensor.name.ends_with(".bias") { vec![0.0; uniform.len()] } else { uniform.to_vec() };
        assert_eq!(zero, expected, "{}", tensor.name);
    }
}

#[test]
fn presets_are_as_documented_and_single_settings_override_them() {
    let arm = |overrides: &[(&str, &str)]| {
        let settings = settings_of(overrides);
        (settings.learning(), settings.architecture(), settings.reading_followed())
    };
    let nearest = Learning {
        learner_first: true,
        learner_first_in_tests: true,
        bootstrapped_end: true,
        learns_opponents_end: true,
        ..Learning::PLAIN
    };
    let (learning, network, reading) = arm(&[]);
    assert_eq!((learning, network.biases, reading), (nearest, true, "nearest"));
    let literal = Learning {
        learner_first: false,
        learner_first_in_tests: false,
        output_derivative: true,
        learns_explorations: true,
        bootstrapped_end: false,
        ..nearest
    };
    let (learning, network, reading) = arm(&[("reading", "literal")]);
    assert_eq!((learning, network.biases, reading), (literal, false, "literal"));
    for (setting, value) in [
        ("biases", "no"),
        ("exploring", "learn"),
        ("loser", "skip"),
        ("finished_board", "after"),
        ("finished_board", "before"),
        ("last_step", "both"),
        ("exploring", "best"),
        ("wins", "exact"),
        ("activation", "logistic-unhalved"),
        ("test_first_move", "alternating"),
        ("exploring_moves", "others"),
        ("initial_biases", "zero"),
        ("initial_weights", "0.1"),
        ("learns_from", "each-ply"),
        ("test_epsilon", "0.1"),
    ] {
        assert_eq!(arm(&[(setting, value)]).2, "own", "{setting}");
    }
    assert_eq!(arm(&[("opponents_moves", "learn")]).2, "nearest", "it changes nothing in self-play");
    assert_eq!(arm(&[("opponents_moves", "learn"), ("opponent", "benchmark")]).2, "own");
    let (learning, ..) = arm(&[("reading", "literal"), ("test_first_move", "learner")]);
    assert!(!learning.learner_first && learning.learner_first_in_tests);
    let spelled = [("reading", "literal"), ("biases", "yes"), ("output_derivative", "out"), ("exploring", "skip")];
    let spelled = [&spelled[..], &[("first_move", "learner"), ("last_step", "bootstrapped")]].concat();
    assert_eq!(arm(&spelled).2, "nearest", "the values count, not how they are given");
    let (learning, ..) = arm(&[("schedule", "linear"), ("opponent", "benchmark"), ("averaging_games", "300")]);
    let rate = Rate { end: 0.001, ..nearest.rate };
    assert_eq!(learning, Learning { rate, opponent: Opponent::Benchmark, averaging_games: 300, ..nearest });
}

/// Table I of the paper: the number of connections, without biases.
#[test]
fn the_papers_networks_have_the_papers_numbers_of_weights() {
    let expected =
        [("small-structured", 1520), ("deep-structured", 10_976), ("small", 3250), ("deep", 10_976), ("wide", 10_985)];
    for (network, connections) in expected {
        assert_eq!(settings_of(&[("network", network)]).architecture().connections(), connections, "{network}");
    }
    let sized = [("network", "wide"), ("units", "3"), ("second", "2")];
    let architecture = settings_of(&sized).architecture();
    assert_eq!((architecture.first, architecture.second), (First::Dense { units: 3 }, 2));
}

#[test]
fn each_mistake_has_a_message() {
    let cases: &[&[(&str, &str)]] = &[
        &[("network", "deep-structred")],
        &[("reading", "litteral")],
        &[("units", "10")],
        &[("network", "wide"), ("detectors", "2"), ("states", "3")],
        &[("network", "tuples"), ("states", "2")],
        &[("network", "wide"), ("shared", "yes")],
        &[("shared", "yes"), ("detectors", "3")],
        &[("network", "tuples"), ("second", "64")],
        &[("detectors", "16"), ("game", "score-four"), ("second", "64"), ("units", "1025")],
        &[("loser", "bootstrapped")],
        &[("games", "1000"), ("test_every", "300")],
        &[("games", "1000000"), ("test_every", "10")],
        &[("epsilon", "1.5"), ("alpha", "-1"), ("test_games", "0"), ("segment_games", "1000001")],
    ];
    let messages = cases.iter().map(|overrides| {
        let overrides: Vec<(String, String)> =
            overrides.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        match Config::parse(&crate::registry(), "x.toml", "experiment = \"td3d\"", &overrides) {
            Ok(_) => format!("no problem with {overrides:?}"),
            Err(problems) => problems.to_string(),
        }
    });
    insta::assert_snapshot!(messages.collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn a_champion_is_the_network_that_was_tested() {
    let replicas = run(&[]);
    let config = parse(SMALL);
    for (arm, replica) in config.arms.iter().zip(&replicas) {
        let card = replica.champion().unwrap();
        let (network, about) = (card.champion_as::<Network>().unwrap(), &card.about);
        assert_eq!(about["wins"], if arm.name == "wide" { "exact" } else { "learned" });
        let trial = Td3d::restore(Identity::new(&config, arm, 0), State::default()).unwrap().trial;
        let geometry = Geometry::new(trial.architecture.shape).unwrap();
        let tally = segment::test(&trial, &geometry, &network.weights, 120, 0..6);
        assert_eq!(about["strength"]["wins"], tally.wins, "{}", arm.name);
        assert_eq!(about["strength"]["losses"], tally.losses, "{}", arm.name);
        assert_eq!((&about["games"], &about["seed"]), (&120.into(), &1.into()));
    }
    assert!(
        local::start(&config).all(|replica| replica.champion().is_none()),
        "there is no champion before the first game"
    );
}

#[test]
fn rounds_and_columns_fit() {
    let config = parse_with(SMALL, &[("segment_games", "50")]);
    for mut replica in local::start(&config) {
        while local::step(&mut replica).unwrap() {}
        assert_eq!(replica.rounds(), Td3d::rounds(&WithText::of(&config.arms[0].settings)));
        let games: Vec<f64> = replica.history().iter().map(|row| row[Row::games]).collect();
        assert_eq!(games, [40.0, 80.0, 120.0]);
        for row in replica.history() {
            assert_eq!(row[Row::wins] + row[Row::draws] + row[Row::losses], 6.0);
            assert_eq!(row[Row::percent], (row[Row::wins] + row[Row::draws] / 2.0) / 0.06, "percent");
        }
    }
}
