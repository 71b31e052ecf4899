//! The helpers of the rules about the sources. The rules are in `tests/`.

pub mod imports;
pub mod methods;
pub mod mutations;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The first line of generated code.
const GENERATED: &str = "// This file is @generated";

/// The directory of the repository.
///
/// # Panics
/// Never, because this package is in the repository.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in the workspace")
}

/// The text of all files of the repository whose names end like this, by their paths from the workspace.
///
/// # Panics
/// If there are no such files, or one cannot be read.
#[must_use]
pub fn files(end: &str) -> BTreeMap<String, String> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory that can be read") {
            let path = entry.expect("a directory that can be read").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let foreign = ["target", "runs", "results"].contains(&name) || (name.starts_with('.') && name != ".cargo");
            match path.is_dir() {
                true if !foreign => walk(&path, found),
                true => {}
                false => found.push(path),
            }
        }
    }
    let mut paths = Vec::new();
    walk(workspace(), &mut paths);
    let named = |path: PathBuf| {
        let name = path
            .strip_prefix(workspace())
            .expect("the file was found below the workspace")
            .to_str()
            .expect("text")
            .to_owned();
        name.ends_with(end).then(|| (name, fs::read_to_string(&path).expect("text")))
    };
    let found: BTreeMap<String, String> = paths.into_iter().filter_map(named).collect();
    assert!(!found.is_empty(), "there are no files like {end}");
    found
}

/// Our own sources, without generated files.
#[must_use]
pub fn sources() -> BTreeMap<String, String> {
    files(".rs").into_iter().filter(|(_, text)| !text.starts_with(GENERATED)).collect()
}

/// For each function, its line from 1, its number of lines, and its name. This relies on rustfmt: a body ends with a brace
/// that is indented like `fn`.
#[must_use]
pub fn functions(text: &str) -> Vec<(usize, usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let word = line.trim_start();
        let indent = &line[..line.len() - word.len()];
        let head = ["pub(crate) ", "pub(super) ", "pub ", "const ", "async "].iter();
        let word = head.fold(word, |word, prefix| word.strip_prefix(prefix).unwrap_or(word));
        if let Some(rest) = word.strip_prefix("fn ")
            && !line.ends_with(['}', ';'])
        {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let end = format!("{indent}}}");
            let length = lines[start..].iter().position(|line| *line == end || *line == format!("{indent});"));
            found.extend(length.map(|length| (start + 1, length + 1, name)));
        }
    }
    found
}

/// Fails with all findings, if there are any.
///
/// # Panics
/// If there are findings.
#[track_caller]
pub fn assert_none(found: impl IntoIterator<Item = String>) {
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
