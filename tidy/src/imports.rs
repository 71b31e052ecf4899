//! Which files use which others: `use` declarations, resolved to files.

use std::collections::{BTreeMap, BTreeSet};

/// The paths in a file's `use` declarations, each as its parts, without tests.
pub fn used(text: &str) -> Vec<Vec<String>> {
    declared(text).into_iter().map(|(_, path)| path).collect()
}

/// The same, each with whether it is a re-export.
fn declared(text: &str) -> Vec<(bool, Vec<String>)> {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut paths = Vec::new();
    for declaration in code.split(';') {
        let lines: Vec<&str> = declaration.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let begins = |line: &&str| {
            let line = line.trim_start();
            ["use ", "pub use ", "pub use ", "pub(super) use "].iter().any(|word| line.starts_with(word))
        };
        let Some(at) = lines.iter().position(begins) else { continue };
        // An import for tests only.
        if at > 0 && lines[at - 1].trim() == "#[cfg(test)]" {
            continue;
        }
        let whole = lines[at..].join(" ");
        let (head, tree) = whole.split_once("use ").unwrap_or_default();
        let mut expanded = Vec::new();
        expand(tree, &[], &mut expanded);
        let passed_on = head.trim_start().starts_with("pub");
        paths.extend(expanded.into_iter().map(|path| (passed_on, path)));
    }
    paths
}

/// Expands a tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    if let Some((head, list)) = tree.split_once('{') {
        let mut path = before.to_vec();
        path.extend(head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let list = list.trim().strip_suffix('}').unwrap_or(list);
        split_list(list).into_iter().for_each(|item| expand(item, &path, paths));
    } else if !tree.is_empty() {
        let name = tree.split(" as ").next().unwrap_or_default();
        let mut path = before.to_vec();
        path.extend(name.split("::").map(|part| part.trim().to_owned()));
        paths.push(path);
    }
}

/// Splits a list into its items, which may contain lists themselves.
fn split_list(list: &str) -> Vec<&str> {
    let (mut items, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[from..]);
    items
}

/// The crate and the module of a file: `a/src/b/c.rs` and `a/src/b/c/mod.rs` are `b::c` of the crate `a`.
fn module(file: &str) -> (String, Vec<String>) {
    let (package, inner) = file.split_once("/src/").unwrap_or((file, ""));
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    (package.to_owned(), parts)
}

/// The modules of several crates, without tests.
pub(crate) struct Modules<'a> {
    /// The files, by crate and module.
    files: BTreeMap<(String, Vec<String>), &'a String>,
    /// Re-exports: the path of an item by file and name.
    passed_on: BTreeMap<(&'a String, String), Vec<String>>,
}

impl<'a> Modules<'a> {
    pub(crate) fn of(sources: &'a BTreeMap<String, String>) -> Self {
        let tests = |file: &str| file.contains("/tests/") || file.ends_with("/tests.rs") || !file.contains("/src/");
        let files = sources.keys().filter(|file| !tests(file) && !file.ends_with("/main.rs"));
        let mut modules = Self { files: files.map(|file| (module(file), file)).collect(), passed_on: BTreeMap::new() };
        for file in modules.files.values() {
            for (_, path) in declared(&sources[*file]).into_iter().filter(|(passed_on, _)| *passed_on) {
                let name = path.last().cloned().unwrap_or_default();
                modules.passed_on.insert((*file, name), path);
            }
        }
        modules
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &'a String> {
        self.files.values().copied()
    }

    /// The file to which this path in a file refers, through re-exports, if it is in the same crate.
    pub(crate) fn find(&self, file: &String, path: &[String]) -> Option<&String> {
        let (package, own) = module(file);
        let key = |module: &[String]| (package.clone(), module.to_vec());
        let mut at = match path.first().map(String::as_str)? {
            "crate" => Vec::new(),
            "self" | "super" => own,
            // A module that this file declares.
            first if self.files.contains_key(&key(&[&own[..], &[first.to_owned()]].concat())) => own,
            _ => return None,
        };
        let mut parts = path;
        while let Some((first, rest)) = parts.split_first() {
            match first.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                _ => break,
            }
            parts = rest;
        }
        while let Some((first, rest)) = parts.split_first() {
            let below = [&at[..], std::slice::from_ref(first)].concat();
            if !self.files.contains_key(&key(&below)) {
                break;
            }
            (at, parts) = (below, rest);
        }
        let found = *self.files.get(&key(&at))?;
        let further = parts.first().and_then(|name| self.passed_on.get(&(found, name.clone())));
        match further {
            Some(further) if found != file || further != path => self.find(found, further),
            _ => Some(found),
        }
    }
}

/// For each file, the other files of its crate that it uses. A re-export does not count as a use.
pub fn graph(sources: &BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<String>> {
    let modules = Modules::of(sources);
    let uses = |file: &'_ String| {
        let paths = declared(&sources[file]).into_iter().filter(|(passed_on, _)| !passed_on);
        let others = paths.filter_map(|(_, path)| modules.find(file, &path)).filter(|other| *other != file);
        (file.clone(), others.cloned().collect())
    };
    modules.files().map(uses).collect()
}

/// Groups of two or more files that use each other, directly or through others.
pub fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            for other in graph.get(file).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    next.push(other);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|file| (file, reach(file))).collect();
    let mut circles: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (file, others) in &reached {
        let back = others.iter().filter(|other| reached.get(other).is_some_and(|others| others.contains(*file)));
        let circle: BTreeSet<String> = back.cloned().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// The folder of a file; `a.rs` belongs to the folder `a/` if that exists.
pub fn folder(file: &str, sources: &BTreeMap<String, String>) -> String {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let own = format!("{stem}/");
    match sources.keys().any(|other| other.starts_with(&own)) {
        true => stem.to_owned(),
        false => file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned(),
    }
}

#[test]
fn declarations_are_read() {
    let text = "//! x\nuse a::b;\npub use crate::{c, d::{e, f as g}};\n#[cfg(test)]\nuse crate::testing;\nfn x() {\n    use super::h::I;\n}\n";
    let paths: Vec<String> = used(text).iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["a::b", "crate::c", "crate::d::e", "crate::d::f", "super::h::I"]);
}

#[test]
fn circles_are_found() {
    let file = |name: &str, text: &str| (format!("x/src/{name}.rs"), format!("//! {name}\n{text}\n"));
    let sources = BTreeMap::from([
        file("lib", "mod a;\nmod b;\nuse a::A;"),
        file("a", "use crate::b::B;"),
        file("b", "use super::c::C;"),
        file("c", "use crate::{a::A, d};"),
        file("d", ""),
    ]);
    let found = circles(&graph(&sources));
    let expected = ["a", "b", "c"].map(|name| format!("x/src/{name}.rs"));
    assert_eq!(found, [BTreeSet::from(expected)]);
}
