//! Methods of one type that is implemented in several files: which files call methods that are defined in others.
//!
//! A large `impl` that is spread over files can hide a circle of modules: everything calls everything. `use` declarations do
//! not show it, because the type is the same. This relies on rustfmt: an `impl` begins in the first column, and so does its
//! last brace.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Modules, circles, used};

/// A type: the file that declares it, and its name.
pub type Type = (String, String);

/// The methods of a type in one file.
struct Part {
    file: String,
    /// The names of the methods, and the text of the file.
    names: BTreeSet<String>,
    text: String,
}

/// Files that call each other's methods of one type in a circle.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// The type.
    pub of: Type,
    /// The files.
    pub files: BTreeSet<String>,
    /// Each call from one of the files to another.
    pub calls: BTreeSet<String>,
}

/// All circles, for all types of these crates.
#[must_use]
pub fn method_circles(sources: &BTreeMap<String, String>) -> Vec<Circle> {
    parts(sources).iter().flat_map(|(of, parts)| circles_of(of, parts)).collect()
}

/// The number of types that are implemented in several files.
#[must_use]
pub fn spread_types(sources: &BTreeMap<String, String>) -> usize {
    parts(sources).values().filter(|parts| parts.len() > 1).count()
}

fn circles_of(of: &Type, parts: &[Part]) -> Vec<Circle> {
    let mut graph: BTreeMap<String, BTreeSet<String>> =
        parts.iter().map(|part| (part.file.clone(), BTreeSet::new())).collect();
    let mut calls = Vec::new();
    for from in parts {
        let called = called(&from.text, &of.1);
        for to in parts.iter().filter(|to| to.file != from.file) {
            // If the file has a method of this name itself, it calls its own.
            for name in to.names.iter().filter(|name| called.contains(*name) && !from.names.contains(*name)) {
                graph.entry(from.file.clone()).or_default().insert(to.file.clone());
                calls.push((from, to, name));
            }
        }
    }
    let told = |files: &BTreeSet<String>| {
        let inside = calls.iter().filter(|(from, to, _)| files.contains(&from.file) && files.contains(&to.file));
        inside.map(|(from, to, name)| format!("{} -> {}: {name}", from.file, to.file)).collect()
    };
    circles(&graph).into_iter().map(|files| Circle { of: of.clone(), calls: told(&files), files }).collect()
}

/// The parts of each type.
fn parts(sources: &BTreeMap<String, String>) -> BTreeMap<Type, Vec<Part>> {
    let modules = Modules::of(sources);
    let mut parts: BTreeMap<Type, Vec<Part>> = BTreeMap::new();
    for file in modules.files() {
        let code = code(&sources[file]);
        for (path, body) in impls(&code) {
            let Some(name) = path.last().cloned() else { continue };
            let declared = declaring_file(&modules, file, &code, path);
            let of = parts.entry((declared.clone(), name)).or_default();
            let names = body.lines().filter_map(method).collect::<BTreeSet<String>>();
            match of.last_mut().filter(|part| part.file == *file) {
                Some(part) => {
                    part.names.extend(names);
                    part.text.push_str(&body);
                }
                None => of.push(Part { file: file.clone(), names, text: body }),
            }
        }
    }
    parts
}

/// A file's text without comments and tests.
fn code(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// The path of each type with an `impl` in this code, and the body.
fn impls(code: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for block in format!("\n{code}").split("\nimpl").skip(1).filter(|block| block.starts_with([' ', '<'])) {
        let Some((head, body)) = block.split_once("{\n") else { continue };
        let body = body.split("\n}").next().unwrap_or_default();
        let head = without_angles(head);
        let of = head.rsplit_once(" for ").map_or(head.as_str(), |(_, of)| of);
        let of = of.split(" where").next().unwrap_or_default().trim();
        found.push((of.split("::").map(|part| part.trim().to_owned()).collect(), body.to_owned()));
    }
    found
}

/// Removes angle brackets: `<T: A<B>> C<T> for D` becomes ` C for D`.
fn without_angles(head: &str) -> String {
    let (mut depth, mut outside) = (0, String::new());
    for letter in head.replace("->", "").chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            '\n' => outside.push(' '),
            _ if depth == 0 => outside.push(letter),
            _ => {}
        }
    }
    outside
}

/// The file that declares a type to which another file refers.
fn declaring_file<'a>(modules: &'a Modules<'_>, file: &'a String, code: &str, path: Vec<String>) -> &'a String {
    let name = path.last().cloned().unwrap_or_default();
    let here = ["struct", "enum", "union"].iter().any(|word| {
        let end = |rest: &str| rest.chars().next().is_none_or(|next| !is_word(next));
        code.lines().any(|line| line.split_once(&format!("{word} {name}")).is_some_and(|(_, rest)| end(rest)))
    });
    if path.len() == 1 && here {
        return file;
    }
    let imported = used(code).into_iter().find(|used| used.last() == Some(&name));
    let path = if path.len() == 1 { imported.unwrap_or(path) } else { path };
    modules.find(file, &path).unwrap_or(file)
}

/// The name of the method that this line begins, four spaces deep.
fn method(line: &str) -> Option<String> {
    let rest = line.strip_prefix("    ").filter(|rest| !rest.starts_with(' '))?;
    let (before, rest) = rest.split_once("fn ")?;
    let words = ["", "pub", "const", "async", "pub(super)", "pub(crate)"];
    let head = before.split(' ').all(|word| words.contains(&word));
    head.then(|| rest.chars().take_while(|letter| is_word(*letter)).collect())
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The methods that are called on a value or on the type itself: `self.name(`, `Self::name`, `Type::name`, and `type.name(`.
fn called(text: &str, of: &str) -> BTreeSet<String> {
    let variable: String = of
        .char_indices()
        .map(|(at, letter)| match letter.is_uppercase() && at > 0 {
            true => format!("_{}", letter.to_lowercase()),
            false => letter.to_lowercase().to_string(),
        })
        .collect();
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_word) {
        let fresh = !rest[..at].trim_end().ends_with('.');
        let word: String = rest[at..].chars().take_while(|letter| is_word(*letter)).collect();
        rest = &rest[at + word.len()..];
        let after = rest.trim_start();
        let (dotted, member) = match (after.strip_prefix("::"), after.strip_prefix('.')) {
            (Some(member), _) if word == "Self" || word == of => (false, member),
            (_, Some(member)) if fresh && (word == "self" || word == variable) => (true, member),
            _ => continue,
        };
        let member = member.trim_start();
        let name: String = member.chars().take_while(|letter| is_word(*letter)).collect();
        let end = member[name.len()..].trim_start();
        if !dotted || end.starts_with(['(', ':']) {
            found.insert(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(name, text)| (format!("x/src/{name}.rs"), format!("//! {name}\n{text}\n"))).collect()
    }

    const LIB: &str = "mod a;\nmod b;\npub struct Core {\n    field: u8,\n}\n\nimpl Core {\n    fn run(&mut self) {\n        self.a();\n    }\n}";

    #[test]
    fn a_planted_circle_is_found() {
        let a = "use super::Core;\n\nimpl Core {\n    pub(super) fn a(&mut self) {\n        if self.field > 0 {\n            self\n                .b(1);\n        }\n    }\n\n    fn again(&self) {}\n}";
        let b = "use crate::Core;\n\nimpl Core {\n    pub(super) fn b(&mut self, _: u8) {\n        (0..2).for_each(|_| Self::again(self));\n    }\n}";
        let found = method_circles(&sources(&[("lib", LIB), ("a", a), ("b", b)]));
        let expected = Circle {
            of: ("x/src/lib.rs".into(), "Core".into()),
            files: ["x/src/a.rs", "x/src/b.rs"].map(str::to_owned).into(),
            calls: ["x/src/a.rs -> x/src/b.rs: b", "x/src/b.rs -> x/src/a.rs: again"].map(str::to_owned).into(),
        };
        assert_eq!(found, [expected]);
        let mended = b.replace("Self::again(self)", "drop(())");
        assert_eq!(method_circles(&sources(&[("lib", LIB), ("a", a), ("b", &mended)])), []);
    }

    #[test]
    fn other_types_of_the_same_name_are_not_confused() {
        let a =
            "pub struct Arm;\n\nimpl Arm {\n    fn a(&self) {\n        self.part.b();\n        self.b.c();\n    }\n}";
        let b = "pub struct Arm;\n\nimpl Arm {\n    fn b(&self) {\n        self.a();\n    }\n\n    fn c(&self) {}\n}";
        assert_eq!(method_circles(&sources(&[("lib", LIB), ("a", a), ("b", b)])), []);
    }

    #[test]
    fn heads_of_impls_are_read() {
        let code = "impl<'a, T: Into<Vec<u8>>> From<T> for a::Core<'a, T>\nwhere\n    T: Copy,\n{\n    fn from() {}\n}\n\nimpl Other {\n}\n";
        let paths: Vec<String> = impls(code).iter().map(|(path, _)| path.join("::")).collect();
        assert_eq!(paths, ["a::Core", "Other"]);
        assert_eq!(method("    pub(super) const fn name<T>(x: T) {"), Some("name".into()));
        assert_eq!(method("        fn inner() {"), None);
        let text = "self.one(); Self::two; core_loop.three::<u8>(); CoreLoop::four(x); x.self_.no(); self.part.no(); self.field;";
        assert_eq!(called(text, "CoreLoop"), ["one", "two", "three", "four"].map(str::to_owned).into());
    }
}
