//! Messages for people, and usage errors.

use std::{
    fmt,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use evoxo_process::Unwritten;
pub(crate) use evoxo_process::{stdout, whole};
use serde_json::Value;

/// A usage error: exit status 2.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error that ends the process with status 2.
pub(crate) fn usage(sentence: impl fmt::Display) -> anyhow::Error {
    Usage(sentence.to_string()).into()
}

/// Writes a line for people to standard error. If standard error is closed, the line is dropped.
pub(crate) fn tell(line: impl fmt::Display) {
    drop(std::io::stderr().lock().write_all(format!("{line}\n").as_bytes()));
}

/// The result of writing to standard output. It is not a failure if the reader has left.
pub(crate) fn printed(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if Unwritten::is_left(&error) => Ok(()),
        other => other.map_err(Into::into),
    }
}

/// The name under which this program was started. A tool with more kinds of experiments has its own name.
pub(crate) fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "evoxo".into())
}

/// Prints a notice before the work begins.
pub(crate) fn notice(sentence: impl fmt::Display) {
    tell(format_args!("note: {sentence}"));
}

/// Parses a share in percent; returns it in millionths.
pub(crate) fn share(text: &str) -> Result<u32, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let millionths = percent.filter(|percent| (0.0001..=100.0).contains(percent)).map(|percent| percent * 1e4);
    millionths.map(|it| it.round() as u32).ok_or_else(|| "give a share from 0.0001% to 100%, for example 5%".into())
}

/// "digest HEX of 120 replicas (6 arms x 20), 2400 rounds", from the content of `result.json`.
pub(crate) fn digest_text(result: &Value) -> String {
    let Some(digest) = result["digest"].as_str() else {
        return "not all replicas are finished yet: there is no digest".into();
    };
    let arms = result["arms"].as_array().map_or(0, Vec::len) as u64;
    let what = match (arms, result["replicas"].as_u64().unwrap_or(0)) {
        (1, 1) => "1 replica".to_owned(),
        (1, each) => format!("{each} replicas"),
        (arms, each) => format!("{} replicas ({arms} arms x {each})", arms * each),
    };
    // Committed results of the first builds do not record the number of rounds.
    let rounds = result["rounds"].as_u64().map(|rounds| format!(", {rounds} rounds")).unwrap_or_default();
    format!("digest {digest} of {what}{rounds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percents() {
        assert_eq!(["5%", "100%", "0.01 %"].map(share), [Ok(50_000), Ok(1_000_000), Ok(100)]);
        assert!(["5", "0%", "101%", "-1%", "x%", "NaN%", ""].iter().all(|text| share(text).is_err()));
    }
}
