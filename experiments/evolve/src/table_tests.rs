//! Tests of what holds for every algorithm, because it follows from the table of algorithms.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Config, template},
    promises,
};

use super::{
    KIND,
    algorithm::{ALGORITHMS, AlgorithmKind},
    problem::PROBLEMS,
    settings::SCHEMA,
};
use crate::{
    registry,
    testing::{digest, parse, run},
};

/// Settings for searches with this algorithm: for each number of objectives that it can search, the first built-in problem.
fn settings(kind: &AlgorithmKind) -> Vec<String> {
    let mut objectives = BTreeSet::new();
    let fits = |problem: &&super::problem::Problem| {
        let text = format!("algorithm = \"{}\"\nproblem = \"{}\"\n", kind.name, problem.name);
        SCHEMA.read(&text).is_ok() && objectives.insert(problem.objectives.len())
    };
    let problems: Vec<_> = PROBLEMS.iter().filter(fits).collect();
    assert!(!problems.is_empty(), "no built-in problem is for {}", kind.name);
    let text = |problem: &&super::problem::Problem| {
        format!("algorithm = \"{}\"\nproblem = \"{}\"\nevaluations = 90\npopulation = 20\n", kind.name, problem.name)
    };
    problems.iter().map(text).collect()
}

#[test]
fn every_algorithm_of_the_table_meets_the_contract() {
    // A program's own algorithm is tested with its program (`program/tests.rs`).
    for kind in ALGORITHMS.iter().filter(|kind| !kind.asks) {
        let windows = ["", "window = 7\n"].into_iter().take(if kind.has_windows() { 2 } else { 1 });
        for window in windows {
            for settings in settings(kind) {
                let file = format!("experiment = \"evolve\"\nreplicas = 2\n[settings]\n{settings}{window}");
                assert!(promises::check(&registry(), &file).starts_with("r1:"), "{file}");
            }
        }
    }
}

#[test]
fn every_algorithm_of_the_table_is_documented() {
    let docs = include_str!("../../../docs/algorithms.md");
    for kind in ALGORITHMS {
        assert!(docs.contains(&format!("\n## {}\n", kind.name)), "docs/algorithms.md has no section on {}", kind.name);
        for field in kind.parts.iter().flat_map(|part| part.schema.fields()) {
            assert!(
                docs.contains(&format!("`{}`", field.name)),
                "docs/algorithms.md does not say what {} is",
                field.name
            );
        }
    }
}

/// A setting belongs to one part only, and the template for an algorithm shows only the settings of its own parts.
#[test]
fn a_template_shows_the_settings_of_the_chosen_algorithm() {
    let names: BTreeSet<&str> = SCHEMA.fields().iter().map(|field| field.name).collect();
    assert_eq!(names.len(), SCHEMA.fields().len());
    let defaults = SCHEMA.defaults();
    for kind in ALGORITHMS {
        let text = template(&KIND, &defaults.with("algorithm", kind.name));
        assert!(text.contains(&format!("\nalgorithm = \"{}\"\n", kind.name)), "{text}");
        for part in ALGORITHMS.iter().flat_map(|kind| kind.parts) {
            for field in part.schema.fields() {
                let shown = text.contains(&format!("\n{} = ", field.name));
                assert_eq!(shown, kind.has(part, field.name), "{} in a file for {}", field.name, kind.name);
            }
        }
    }
}

/// Where settings are declared does not affect the hashes of runs.
#[test]
fn configurations_keep_their_names() {
    let completed = |text: &str| {
        let head = "experiment = \"evolve\"\nreplicas = 1\n[settings]\nevaluations = 40\npopulation = 20\n";
        parse(&(head.to_owned() + text)).completed(true)
    };
    let named = |config: &Config| format!("{}\n{}", config.hash(), digest(&run(config)));
    let all = completed(
        "[arms.ga]\nalgorithm = \"ga\"\nislands = 2\nwindow = 0\nelite = 3\n\
         [arms.cma]\nalgorithm = \"cma-es\"\nbounds = \"begin\"\nsigma = 0.4\nrestarts = \"ipop\"\n\
         [arms.oes]\nalgorithm = \"openai-es\"\nrate = 0.02\n\
         [arms.map]\nalgorithm = \"map-elites\"\nproblem = \"arm\"\ncentroids = 30\nline = 0.1\nreference = [9]\n\
         [arms.front]\nalgorithm = \"nsga2\"\nproblem = \"zdt1\"\norder_rate = 0.25\n\
         baseline = \"none\"\n",
    );
    insta::assert_snapshot!([all, completed("algorithm = \"ga\"\nislands = 2\nbounds = \"kept\"\n")].each_ref().map(named).join("\n"), @r"
    c24fb4a06eade0bf6c7743d1a17f1dda693fba5f70afbda1bc83e86232e3b5be
    r1:c9b87cff1ead9c2a0a49dc8d5e9377b7d52b708f3800f737e073e6c9138aeafa
    803171df5abe5deeb04f1291bfa1d3898f1ed49be11aceaaab559975f4ded291
    r1:f3b0f1903093db65bff476b085e4764baf9e958490a07d28afd7bec8a1c3b371
    ");
}
