//! Functions that the tests of several experiments use.

use evoxo_common::{
    experiment::{Config, Problems, Replica, run_digest},
    local,
};

/// The configuration of a file.
pub(crate) fn parse(text: &str) -> Config {
    parse_with(text, &[])
}

/// The same with some settings overridden.
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

/// The digest of all replicas together.
pub(crate) fn digest(replicas: &[Replica]) -> String {
    run_digest(replicas.iter().map(Replica::digest)).to_string()
}
