//! The experiment files of the repository can be run.

use std::fs;

use evoxo_common::experiment::Config;
use evoxo_tests::{programs::workspace, registry, reproduction::files};

#[test]
fn experiments_can_be_run() {
    let no_experiments = ["Cargo.toml", "clippy.toml"];
    let files = files(&workspace().join("experiments"), "toml");
    let files = files.iter().filter(|file| no_experiments.iter().all(|name| !file.ends_with(name)));
    let problems = files.map(|file| {
        let text = fs::read_to_string(file).expect("text");
        Config::parse(registry(), &file.display().to_string(), &text, &[]).err().map(|problems| problems.to_string())
    });
    let problems: Vec<Option<String>> = problems.collect();
    assert!(problems.len() >= 20, "only {} experiments", problems.len());
    let wrong: Vec<String> = problems.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
