//! Functions that the tests of several experiments use. Each crate of experiments compiles this file into its tests, with its
//! own registry.

#![allow(dead_code, reason = "not every crate uses all of them")]

use evoxo_common::{
    experiment::{Config, Problems, Replica, ResultDigest},
    local,
};
use prost::Message;

/// The configuration that a file describes.
pub(crate) fn parse(text: &str) -> Config {
    parse_with(text, &[])
}

/// The same, with some settings overridden.
pub(crate) fn parse_with(text: &str, overrides: &[(&str, &str)]) -> Config {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Config::parse(&crate::registry(), "t", text, &overrides).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The problems of a file.
pub(crate) fn problems(text: &str) -> Problems {
    Config::parse(&crate::registry(), "t", text, &[]).expect_err("a file that is wrong")
}

/// All replicas of a run, on this thread.
pub(crate) fn run(config: &Config) -> Vec<Replica> {
    local::run(config).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The configuration that a file describes, with some settings overridden, and all replicas of its run.
pub(crate) fn run_text(text: &str, overrides: &[(&str, &str)]) -> (Config, Vec<Replica>) {
    let config = parse_with(text, overrides);
    let replicas = run(&config);
    (config, replicas)
}

/// The digest of all replicas together.
pub(crate) fn digest(replicas: &[Replica]) -> String {
    ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string()
}

/// Checks that the saved states of replicas restore unchanged, and that their kind rejects them after any of these changes.
pub(crate) fn states_are_checked<S: Message + Default>(
    config: &Config,
    replicas: &[Replica],
    changes: &[&dyn Fn(&mut S)],
) {
    for replica in replicas {
        let saved = replica.save();
        assert_eq!(Replica::restore(config, &saved).unwrap().save(), saved);
        for change in changes {
            let mut state = S::decode(&saved.state[..]).unwrap();
            change(&mut state);
            let mut changed = saved.clone();
            changed.state = state.encode_to_vec().into();
            assert!(Replica::restore(config, &changed).is_err());
        }
    }
}
