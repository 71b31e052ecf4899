//! One meaning per word: the name of a public type must be clear without the name of its file.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_tidy::{assert_none, sources};

/// The most files that may have a public type with the same name.
const FILES_MAX: usize = 3;
/// Names of parts that every verb or every kind of experiment has.
const PARTS: [&str; 3] = ["Arguments", "Arm", "Settings"];

/// The name of the type that a line declares for other files.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = rest.split_once(") ").filter(|_| rest.starts_with('(')).map_or(rest, |(_, rest)| rest).trim_start();
    let (word, rest) = rest.split_once(' ')?;
    ["struct", "enum", "trait", "type"].contains(&word).then(|| rest.split(|c: char| !c.is_alphanumeric()).next())?
}

#[test]
fn few_public_types_share_a_name() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources() {
        if file.contains("tests") || file.contains("examples/") || file.starts_with("fuzz/") {
            continue;
        }
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for name in code.lines().filter_map(declared) {
            files.entry(name.to_owned()).or_default().insert(file.clone());
        }
    }
    assert!(files.len() > 500, "only {} public types were found: the scan is broken", files.len());
    let shared = files.iter().filter(|(name, files)| files.len() > FILES_MAX && !PARTS.contains(&name.as_str()));
    assert_none(shared.map(|(name, files)| format!("{name} is a public type in {} files: {files:?}", files.len())));
}
