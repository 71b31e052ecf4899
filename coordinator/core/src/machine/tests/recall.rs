//! Evaluations that were computed before are recalled, and no result depends on that.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::{
    replicas::{Known, News, Recall},
    trust::Level,
};

/// Searches of few different candidates, so that many of them are evaluated again.
const SEARCHES: [&str; 7] = [
    "problem = \"onemax\"\nlength = 12\nevaluations = 700\npopulation = 20\nslice = 1",
    "problem = \"onemax\"\nlength = 12\nevaluations = 700\npopulation = 20\nslice = 7",
    "problem = \"leadingones\"\nlength = 9\nevaluations = 700\npopulation = 20\nwindow = 6",
    "problem = \"onemax\"\nlength = 8\nevaluations = 300\nalgorithm = \"random\"\nslice = 3",
    "problem = \"sphere\"\nlength = 2\nevaluations = 300\nalgorithm = \"openai-es\"\nslice = 5",
    "problem = \"noisy-sphere\"\nlength = 2\nevaluations = 200\nalgorithm = \"ga\"\nslice = 4",
    "problem = \"sphere\"\nlength = 3\nevaluations = 300\nalgorithm = \"cma-es\"",
];

fn file(settings: &str) -> String {
    format!(
        "experiment = \"evolve\"\nseed = 3\nreplicas = 2\n[settings]\nbaseline = \"none\"\nrecall = \"yes\"\n{settings}\n"
    )
}

fn recall() -> Arc<Recall> {
    Arc::new(Recall::new(64 << 20).with_news())
}

/// The run as two honest workers compute it, under this name.
fn computed(story: &mut Story, name: &str, file: &str) -> v1::Run {
    story.submit(name, file).unwrap();
    ended(story, name)
}

fn ended(story: &mut Story, name: &str) -> v1::Run {
    for _ in 0..10_000 {
        let answered: usize = [1, 2].map(|session| story.answer(session, honest)).into_iter().sum();
        if answered == 0 {
            story.wait(500);
            [1, 2].iter().for_each(|session| story.say(*session, heartbeat()));
            if matches!(story.run(name).state(), RunState::Finished | RunState::InDoubt) {
                break;
            }
        }
    }
    story.run(name)
}

/// A story with two workers.
fn begun(recall: &Arc<Recall>) -> Story {
    let mut story = Story::begin(singly());
    story.recall(recall);
    story.join(1, 1);
    story.join(2, 1);
    story
}

#[test]
fn the_same_file_under_another_name_is_not_computed_again() {
    for settings in SEARCHES {
        let (file, recall) = (file(settings), recall());
        let mut story = begun(&recall);
        let run = computed(&mut story, "first", &file);
        assert_eq!((run.digest, run.doubts), (expected_digest(&file), Vec::new()), "{settings}");
        let first = run.spent.unwrap();
        assert!(first.evaluations >= 200, "{settings}: {first:?}");
        if settings.contains("onemax") {
            assert!(first.recalled * 5 > first.evaluations, "{settings}: {first:?}");
        }
        // Real genes do not repeat, so the first batch of the second run is computed to see whether values agree.
        for (name, share) in [("second", 2), ("third", 40)] {
            let run = computed(&mut story, name, &file);
            assert_eq!(run.digest, expected_digest(&file), "{settings}");
            let spent = run.spent.unwrap();
            assert_eq!(spent.recalled + spent.rechecked, spent.evaluations, "{settings}, {name}: {spent:?}");
            let most = 3 + spent.evaluations / share;
            assert!((1..=most).contains(&spent.rechecked), "{settings}, {name}: {spent:?}");
        }
    }
}

/// Every output that differs from the one that was computed is found, if it is computed again.
fn poisoned(recall: &Recall, every: usize) -> Arc<Recall> {
    let poisoned = self::recall();
    let News { outputs, .. } = recall.take_news();
    assert!(outputs.len() > every, "there are {} outputs", outputs.len());
    for (number, (name, Known { seed, output })) in outputs.into_iter().enumerate() {
        let mut bytes = output.to_vec();
        // The last byte of a number's mantissa.
        if number % every == 0 && bytes.len() > 8 {
            let place = bytes.len() - 3;
            bytes[place] ^= 1;
        }
        poisoned.restore(name, Known { seed, output: bytes.into() });
    }
    poisoned
}

#[test]
fn a_wrong_value_puts_a_run_in_doubt_and_never_reaches_a_verified_one() {
    let (file, recall) = (file(SEARCHES[0]), recall());
    let mut story = begun(&recall);
    computed(&mut story, "first", &file);
    computed(&mut story, "second", &file);
    let poisoned = poisoned(&recall, 2);
    let mut story = begun(&poisoned);
    let run = computed(&mut story, "plain", &file);
    assert!(run.state() == RunState::InDoubt && run.digest != expected_digest(&file), "{run:?}");
    assert_eq!(run.doubts[0].worker, "recalled", "{:?}", run.doubts);
    // A run that trusts no worker trusts no recalled output either.
    let mut story = Story::begin(singly());
    story.recall(&poisoned);
    story.greet_as(1, "one", true);
    story.greet_as(2, "two", false);
    story.submit_at(Level::Verified, "verified", &file).unwrap();
    let run = ended(&mut story, "verified");
    assert_eq!((run.digest, run.spent.unwrap().recalled), (expected_digest(&file), 0));
}

#[test]
fn a_damaged_output_is_computed_again() {
    let (file, recall) = (file(SEARCHES[1]), recall());
    let mut story = begun(&recall);
    computed(&mut story, "first", &file);
    let damaged = self::recall();
    for (name, Known { seed, output }) in recall.take_news().outputs {
        let is_standing = output.len() < 9;
        let output = if is_standing { output } else { Bytes::from_static(b"nonsense") };
        damaged.restore(name, Known { seed, output });
    }
    let mut story = begun(&damaged);
    let run = computed(&mut story, "second", &file);
    assert_eq!((run.state(), run.digest), (RunState::Finished, expected_digest(&file)));
}

#[test]
fn runs_of_another_scope_share_nothing() {
    let (file, recall) = (file(SEARCHES[0]), recall());
    for (across, shares) in [(Across::Runs, true), (Across::Submitter, false), (Across::Run, false)] {
        let mut story = Story::begin(Settings { recall_across: across, ..singly() });
        story.recall(&recall);
        story.join(1, 1);
        story.join(2, 1);
        computed(&mut story, "one", &file);
        story.submit_by("10.0.0.8", "two", &file).unwrap();
        let spent = ended(&mut story, "two").spent.unwrap();
        assert_eq!(spent.recalled + spent.rechecked == spent.evaluations, shares, "{across:?}: {spent:?}");
    }
}
