//! The headline of each kind: which arms it compares, by which figure, and what it says the replicas share.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test that reads the committed results, and prints their headlines when asked to"
)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use evoxo_common::{
    conclusion::of_result,
    experiment::{Config, Replica, small::whole},
    headline::{Answer, Headline},
    local,
};
use evoxo_experiments::registry;
use serde_json::Value;

/// The committed results, each with its path below docs/reproduction.
fn committed() -> Vec<(String, Config, Value)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reproduction");
    let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = below(root.clone()).filter(|path| path.is_dir()).flat_map(below);
    let results = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let read = |path: PathBuf| {
        let result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let mut result = whole(result).unwrap();
        let config = Config::of_result(&registry(), &result).unwrap();
        // A small result lacks what the report computes again.
        let report = registry().report_of_result(&result).unwrap();
        report.json.as_object().unwrap().iter().for_each(|(key, value)| result[key] = value.clone());
        (path.strip_prefix(&root).unwrap().display().to_string(), config, result)
    };
    let mut all: Vec<_> = results.map(read).collect();
    all.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    all
}

fn headline(config: &Config, result: &Value) -> Headline {
    (config.kind.headline)(config, result["arms"].as_array().unwrap())
}

/// The conclusion of a committed result.
fn said(name: &str) -> String {
    let (_, config, result) = committed().into_iter().find(|(path, ..)| path == name).unwrap();
    of_result(&config, &result)
}

#[test]
fn every_committed_result_has_its_headline() {
    for (path, config, result) in committed() {
        let sentence = of_result(&config, &result);
        // With HEADLINES=1 they are printed for reading.
        if std::env::var_os("HEADLINES").is_some() {
            println!("== {path}\n{sentence}");
        }
        assert!(!sentence.ends_with(", finished.") && sentence.len() > 60, "{path}: {sentence}");
        assert!(!sentence.contains("P = ") || sentence.contains('?'), "a P without its question in {path}: {sentence}");
        let Headline { questions, .. } = headline(&config, &result);
        let mut arms = BTreeSet::new();
        for question in &questions {
            assert!(question.arms.iter().all(|arm| arms.insert(arm.arm.clone())), "{path}: an arm is in two questions");
            assert!(question.arms.iter().all(|arm| !arm.values.is_empty()), "{path}: an arm without figures");
            if let Answer::Pairs(pairs) = &question.by {
                assert!(pairs.iter().flatten().all(|place| *place < question.arms.len()), "{path}");
            }
        }
        assert_eq!(arms.len(), config.arms.len(), "{path}");
    }
}

#[test]
fn headlines_agree_with_tables() {
    // Replicas of the same number have the same boards. A difference that is hidden by the variation between boards shows in
    // pairs.
    let paired = said("nndtf/result-paper.json");
    assert!(
        paired.starts_with("Is another contestant fitter than \"proposed\"? By fitness on 100 training boards:"),
        "{paired}"
    );
    assert!(
        paired.contains("\"proposed\" over \"traditional\" by") && paired.contains("(hardly chance, P = 0.0"),
        "{paired}"
    );
    assert!(paired.contains("t-test paired by replica: same training boards"), "{paired}");
    // Arms with another measure of fitness get a question of their own.
    let found = said("nndtf/result-found.json");
    assert!(found.contains("No other arm can be compared with \"proposed\""), "{found}");
    let source = said("invincible/result-all.json");
    assert!(source.contains("O never loses in 0, 7 and 20 of 20 replicas if a loss costs 1, 6.5 and 100."), "{source}");
    assert!(!source.contains("\"X, loss costs 100\""), "{source}");
    // In the last single test, the arm with 4 units was ahead.
    let detectors = said("td3d/result-detectors.json");
    let first = detectors.split("By % won").nth(1).and_then(|rest| rest.split('"').nth(1));
    assert_eq!(first, Some("8 units"), "{detectors}");
    let arguments = said("ternary/result-all.json");
    assert!(arguments.contains("As X, do shorter strings win more, and do smaller alphabets win more?"), "{arguments}");
    let with = said("rules/result-best.json");
    assert!(with.starts_with("Is the best agent of another arm stronger than that of"), "{with}");
    let screen = said("nndtf/result-screen.json");
    assert!(screen.starts_with("Which settings move best at the end (more is better)? "), "{screen}");
}

/// Replicas are ranked by the figure of the headline.
#[test]
fn the_best_replica_has_the_greatest_figure() {
    let files = [
        "experiment = \"td3d\"\nreplicas = 3\n[settings]\nnetwork = \"small-structured\"\ngames = 50\ntest_every = 5\ntest_games = 20\n",
        "experiment = \"rules\"\nreplicas = 3\n[settings]\nagents = 12\nrules = 30\ncycles = 200\n",
        "experiment = \"invincible\"\nreplicas = 2\n[settings]\npopulation = 20\ngames = 20\nfathers = 4\ngenerations = 3\n",
    ];
    for text in files {
        let config = Config::parse(&registry(), "t", text, &[]).unwrap();
        let replicas: Vec<Replica> = local::run(&config).unwrap();
        let Headline { questions, .. } = headline(&config, &config.report(&replicas).json);
        for (replica, (number, figure)) in replicas.iter().zip(&questions[0].arms[0].values) {
            let column = config.kind.primary_metric;
            let own = config.kind.figure(column, replica.history()).unwrap();
            assert!(replica.index() == *number && (own - figure).abs() < 1e-6, "{}: {own} {figure}", config.kind.name);
        }
        let ends = |replica: &Replica| config.kind.figure(config.kind.primary_metric, replica.history());
        let lasts = |replica: &Replica| replica.history().last().map(|row| row[config.kind.primary_metric]);
        let averaged = (config.kind.tail)(replicas[0].history().len()) > 1;
        assert_eq!(replicas.iter().any(|it| ends(it) != lasts(it)), averaged, "{}", config.kind.name);
    }
}

/// Arms that share nothing are not called paired, and arms that are called paired by boards do share them.
#[test]
fn only_replicas_of_nndtf_share_anything() {
    for (path, config, result) in committed() {
        let shared = headline(&config, &result).questions.iter().any(|question| question.shared.is_some());
        assert!(!shared || config.kind.name == "nndtf", "{path}");
    }
    let boards = |seed| {
        use evoxo_experiments::nndtf::boards::{Source, training_boards};
        training_boards(seed, 3, Source::USUAL, 50)
    };
    assert!(boards(1) == boards(1) && boards(1) != boards(2));
}
