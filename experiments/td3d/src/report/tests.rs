//! Tables, notes and figures of made-up trials and of a small run.

use super::*;
use crate::{
    arm::{curve, in_paper},
    registry,
    settings::Settings,
    testing::{parse, run},
    trial::{Reached, Test, Trial},
};
use evoxo_common::{
    experiment::Replica,
    rng::{Stream, unit},
};

/// The tests of trials that rise to `end` percent. Each trial deviates a little, by more if `spread` is greater.
fn trials(count: u64, tests: u64, end: f64, spread: f64) -> Vec<Vec<Test>> {
    let trial = |replica: u64| {
        let mut rng = Stream::root(5).word(end as u64).word(replica).rng();
        let off = spread * (unit(&mut rng) - 0.5);
        let test = |index: u64| {
            let share = 1.0 - 1.0 / (1.0 + 8.0 * index as f64 / tests as f64);
            let wins = ((end + off + spread * (unit(&mut rng) - 0.5)) * 10.0 * share).clamp(0.0, 1000.0) as u32;
            Test { games: 10_000 * index, wins, draws: (1000 - wins) / 100, losses: 1000 - wins - (1000 - wins) / 100 }
        };
        (1..=tests).map(test).collect()
    };
    (0..count).map(trial).collect()
}

/// An arm whose trials have these tests. Trials with fewer tests than the first are unfinished.
fn with_trials<'a>(arm: Arm<'a>, trials: &[Vec<Test>]) -> Arm<'a> {
    let trial = |(replica, tests): (usize, &Vec<Test>)| {
        let finished = tests.len() == trials[0].len();
        Trial {
            replica: replica as u32,
            rows: tests.len() as u64,
            finished,
            digest: None,
            failure: None,
            champion: None,
            figures: Reached::of(tests).filter(|_| finished),
        }
    };
    let games = trials.iter().filter_map(|tests| tests.last()).map(|test| test.games).max().unwrap_or(0);
    Arm { trials: trials.iter().enumerate().map(trial).collect(), games, curve: curve(arm.name, trials), ..arm }
}

fn paper_arms(count: u64, tests: u64) -> Vec<Arm<'static>> {
    let arm = |(regime, network): (Regime, &'static facts::Network)| {
        let trials = trials(count, tests, network.reported(regime, Measure::End).mean, 3.0);
        with_trials(arm(regime, network), &trials)
    };
    Regime::BOTH.into_iter().flat_map(|regime| NETWORKS.iter().map(move |network| (regime, network))).map(arm).collect()
}

/// An arm of the paper that has no trials.
fn arm(regime: Regime, network: &'static facts::Network) -> Arm<'static> {
    Arm {
        name: [["ss self", "ds self", "s self", "d self", "w self"], ["ss", "ds", "s", "d", "w"]][regime as usize]
            [NETWORKS.iter().position(|other| other == network).unwrap_or(0)],
        paper: Some((network, regime)),
        reading: "nearest",
        connections: network.weights,
        parameters: network.weights + 100,
        ..own("", Vec::new())
    }
}

fn own(name: &'static str, trials: Vec<Vec<Test>>) -> Arm<'static> {
    let arm = Arm {
        name,
        paper: None,
        reading: "nearest",
        connections: 1,
        parameters: 2,
        trials: Vec::new(),
        games: 0,
        curve: Series { name: name.into(), points: Vec::new() },
    };
    with_trials(arm, &trials)
}

fn text(report: &Report) -> String {
    let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
    format!("{}\n{}", tables.join("\n"), report.notes.join("\n"))
}

#[test]
fn the_papers_tables() {
    let report = of_arms(&paper_arms(4, 100));
    insta::assert_snapshot!("paper", text(&report));
    let figures: Vec<(&str, usize)> = report.figures.iter().map(|f| (f.name.as_str(), f.series.len())).collect();
    assert_eq!(figures, [("figure-3-self-play", 5), ("figure-4-benchmark", 5)]);
    let last = report.figures[0].series[1].points.last().unwrap();
    assert!(last.x == 1000.0 && last.low <= last.mean && last.mean <= last.high, "{last:?}");
    assert_eq!(report.json["claims"]["nearest"].as_array().unwrap().len(), facts::CLAIMS.len());
    insta::assert_snapshot!(
        "paper_json",
        format!("{:#}\n{:#}", report.json["summary"]["ds self"], report.json["claims"]["nearest"][0])
    );
}

#[test]
fn other_arms() {
    let mut better = trials(5, 10, 97.0, 3.0);
    better[4].truncate(3);
    let mut arms = vec![own("plain", trials(5, 10, 60.0, 8.0)), own("better", better)];
    arms.push(own("one", trials(1, 10, 70.0, 1.0)));
    arms.push(own("waiting", trials(0, 0, 70.0, 1.0)));
    let report = of_arms(&arms);
    insta::assert_snapshot!("other", text(&report));
    let shown: Vec<(&str, usize)> = report.figures.iter().map(|f| (f.name.as_str(), f.series.len())).collect();
    assert_eq!(shown, [("arms", 3)]);
    let strong = of_arms(&[own("strong", trials(2, 200, 108.0, 0.5)), own("plain", trials(2, 200, 60.0, 8.0))]);
    assert_eq!(strong.figures.iter().map(|f| f.y_range).collect::<Vec<_>>(), [None, Some(TOP)]);
}

/// An arm with too few trials to be compared does not change the differences of the other arms.
#[test]
fn differences_are_listed_with_their_arms() {
    let others = |between: Vec<Arm<'static>>| {
        let mut arms = vec![own("plain", trials(5, 10, 60.0, 8.0))];
        arms.extend(between);
        arms.extend([own("better", trials(5, 10, 97.0, 3.0)), own("worse", trials(5, 10, 57.0, 8.0))]);
        let rows = of_arms(&arms).tables[0].rows.clone();
        rows[rows.len() - 2..].to_vec()
    };
    let rows = others(Vec::new());
    assert!(rows.iter().flatten().all(|cell| !cell.is_empty()), "{rows:?}");
    assert_eq!(others(vec![own("one", trials(1, 10, 70.0, 1.0)), own("waiting", Vec::new())]), rows);
}

/// The result for the claim that the small networks are equal at the end, if they end around these percentages.
fn of_equality(count: u64, ends: [f64; 2], spread: f64) -> Value {
    let mut arms = paper_arms(count, 100);
    for (network, end) in ["small-structured", "small"].into_iter().zip(ends) {
        let of = (facts::network(network).unwrap(), Regime::Benchmark);
        let arm = arms.iter_mut().find(|arm| arm.paper == Some(of)).unwrap();
        *arm = with_trials(self::arm(of.1, of.0), &trials(count, 100, end, spread));
    }
    let claims = of_arms(&arms).json["claims"]["nearest"].clone();
    let mut equal = claims.as_array().unwrap().iter().filter(|claim| claim["claim"]["differs"] == false);
    equal.find(|claim| claim["claim"]["measure"] == "end").unwrap().clone()
}

/// Seeing no difference is not equality.
#[test]
fn equality_is_shown_or_refuted_or_undecided() {
    let verdict = |count, ends, spread| {
        let claim = of_equality(count, ends, spread);
        assert_eq!(claim["margin"], 3.0);
        claim["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(10, [90.0, 90.5], 2.0), "yes");
    assert_eq!(verdict(10, [90.0, 75.0], 2.0), "no: they differ");
    assert_eq!(verdict(10, [90.0, 90.5], 25.0), "undecided");
    // There is a difference, but it is as likely to be within the margin as beyond it.
    assert_eq!(verdict(10, [90.0, 86.5], 2.0), "undecided");
}

/// With three trials, P of the rank test is at least 0.1. The test is therefore not made, and a note says how many trials it
/// needs.
#[test]
fn tests_that_cannot_reach_significance_are_not_printed() {
    for (count, printed) in [(3, false), (6, false), (7, true)] {
        let report = of_arms(&paper_arms(count, 100));
        let table = report.tables.iter().find(|table| table.title.contains("claims")).unwrap();
        assert_eq!(table.header.iter().any(|name| name == "P by U"), printed, "{count}");
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{count}");
        let said = report.notes.iter().filter(|note| note.contains("that takes 7 trials")).count();
        assert_eq!(said, usize::from(!printed), "{count}: {:?}", report.notes);
        let claims = report.json["claims"]["nearest"].as_array().unwrap();
        assert!(claims.iter().all(|claim| claim["rank_test"].is_null() != printed), "{count}");
        // A claim that only the t-test can show is confirmed.
        assert!(claims.iter().any(|claim| claim["verdict"] == "yes"), "{count}");
    }
}

#[test]
fn medians_of_games_have_intervals() {
    let games = |reached: &[u64], of: usize| {
        let all = reached.iter().map(|games| Some(1000 * games)).chain(std::iter::repeat(None));
        games_text(&all.take(of).collect::<Vec<_>>())
    };
    assert_eq!(games(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 10), "5.5 (2 to 9)");
    assert_eq!(games(&[1, 2, 3, 4, 5, 6], 10), "5.5 (2 to never)");
    assert_eq!(games(&[1, 2], 10), "never (2 to never)");
    assert_eq!(games(&[1], 10), "never");
    assert_eq!((games(&[1, 2, 3], 3), games(&[], 10)), ("2".into(), "-".into()));
}

#[test]
fn two_interpretations_are_distinguished() {
    let mut arms = paper_arms(2, 5);
    let literal = paper_arms(2, 5).into_iter().map(|arm| Arm { reading: "literal", ..arm });
    arms.extend(literal);
    let report = of_arms(&arms);
    assert_eq!(report.tables.len(), 7);
    let names: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "figure-3-self-play-nearest",
            "figure-4-benchmark-nearest",
            "figure-3-self-play-literal",
            "figure-4-benchmark-literal"
        ]
    );
    assert!(report.notes.iter().any(|note| note.contains("1,000,000 games, these 50,000")), "{:?}", report.notes);
}

#[test]
fn an_unfinished_run_has_a_report() {
    let mut arms = paper_arms(0, 0);
    assert!(of_arms(&arms).figures.is_empty());
    arms.push(own("new", Vec::new()));
    assert!(of_arms(&arms).tables.iter().any(|table| table.title.starts_with("All arms")));
}

const SMALL: &str = "experiment = \"td3d\"\nreplicas = 2\n[settings]\ngames = 40\ntest_every = 10\ntest_games = 10\n\
    [arms.\"small, self\"]\nnetwork = \"small\"\n[arms.\"wide, self\"]\nnetwork = \"wide\"\n\
    [arms.own]\nnetwork = \"small\"\nwins = \"exact\"\nopponent = \"benchmark\"\n";

/// The report computed from `result.json` is the one shown at the end of the run.
#[test]
fn a_report_from_a_result_equals_the_original() {
    let config = parse(SMALL);
    let mut replicas = run(&config);
    // One replica has not begun.
    replicas[0] = Replica::start(&config, &config.arms[0], 0);
    let whole = config.report(&replicas);
    let papers: Vec<bool> = config.arms.iter().map(|arm| in_paper(&Settings::of(&arm.settings)).is_some()).collect();
    assert_eq!(papers, [true, true, false]);
    let mut result = json!({"experiment": "td3d", "seed": config.seed, "replicas": config.replicas, "provenance": {}});
    result.as_object_mut().unwrap().extend(whole.json.as_object().unwrap().clone());
    let text = result.to_string();
    let again = registry().report_of_result(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(again.tables, whole.tables);
    assert_eq!(again, whole);
    assert!(whole.notes.iter().any(|note| note.contains("Not finished yet: 1 of")), "{:?}", whole.notes);
    result["arms"][2]["replicas"][1]["failure"] = "ended in a test".into();
    let failed = registry().report_of_result(&result).unwrap();
    assert_eq!(failed.notes.last().unwrap(), "Replica 1 of own ended in a test.");
    assert_eq!(failed.json["summary"]["own"]["trials"], 1);
    for (old, new, says) in [
        ("\"td3d\"", "\"invincible\"", "not valid in this build"),
        ("\"seed\"", "\"speed\"", "not the result of a run"),
        ("\"games\":\"40\"", "\"games\":\"forty\"", "games is forty"),
        ("\"games\":40,", "\"game\":40,", "missing field `games`"),
        ("\"low\":[", "\"low\":[0.5,", "the curve \"percent\": "),
        ("\"end\":", "\"ends\":", "missing field `end`"),
    ] {
        let broken: Value = serde_json::from_str(&text.replacen(old, new, 1)).unwrap();
        let sentence = registry().report_of_result(&broken).unwrap_err();
        assert!(sentence.contains(says), "{new}: {sentence}");
    }
}
