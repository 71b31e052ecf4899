//! Experiment files in tests.

use evoxo_common::experiment::{Config, Problems};
use evoxo_experiments::registry;

/// The configuration that a file describes.
pub(crate) fn parse(text: &str, overrides: &[(&str, &str)]) -> Result<Config, Problems> {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Config::parse(&registry(), "x.toml", text, &overrides)
}

/// The problems of a file with mistakes.
pub(crate) fn problems(text: &str, overrides: &[(&str, &str)]) -> String {
    match parse(text, overrides) {
        Ok(config) => panic!("no problem in {config:?}"),
        Err(problems) => problems.to_string(),
    }
}
