//! Files that are read by programs of the repository fit: experiments to run, and mutations.

use std::fs;

use evoxo_common::experiment::Config;
use evoxo_tests::{mutations::mutations, programs::workspace, registry, reproduction::files};

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

#[test]
fn mutations_still_fit() {
    let list = mutations();
    assert!(list.len() >= 30, "only {} mutations", list.len());
    let mut wrong = Vec::new();
    for mutation in list {
        let text = fs::read_to_string(workspace().join(&mutation.file)).unwrap_or_default();
        let times = text.matches(&mutation.old).count();
        if times != 1 || mutation.old == mutation.new {
            wrong.push(format!("{} has {times} of: {}", mutation.file, mutation.old));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
