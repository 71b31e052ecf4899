//! Methods of types that are implemented in several files: which files call methods that are defined in others.
//!
//! A large `impl` that is spread over files can hide a circle of modules: everything calls everything. `use` declarations do
//! not show it, because the type is the same. The same is true of a state that is divided into several such types, whose
//! methods get each other as parameters: these are checked together ([`folder_circles`]). This relies on rustfmt: an `impl`
//! begins in the first column, and so does its last brace.

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

/// Files that call each other's methods in a circle.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// The types of these methods.
    pub of: String,
    /// The files.
    pub files: BTreeSet<String>,
    /// Each call from one of the files to another.
    pub calls: BTreeSet<String>,
}

/// For each type of these crates that is implemented in several files, the circles of files in which its methods call each
/// other.
#[must_use]
pub fn method_circles(sources: &BTreeMap<String, String>) -> Vec<Circle> {
    let by_type = parts(sources).into_iter().map(|((_, name), parts)| BTreeMap::from([(name, parts)]));
    by_type.flat_map(|types| circles_of(&types, &BTreeMap::new())).collect()
}

/// For each folder, the circles of files that call each other's methods of all types that are declared in the folder and are
/// implemented in several files. Types of one name count as one.
#[must_use]
pub fn folder_circles(sources: &BTreeMap<String, String>) -> Vec<Circle> {
    let folder = |file: &str| file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let mut of_folders: BTreeMap<Option<String>, BTreeMap<String, Vec<Part>>> = BTreeMap::new();
    for ((file, name), parts) in parts(sources).into_iter().filter(|(_, parts)| parts.len() > 1) {
        of_folders.entry(folder(&file)).or_default().entry(name).or_default().extend(parts);
    }
    let circles_in = |(of, types): (Option<String>, BTreeMap<String, Vec<Part>>)| {
        let is_part = |file: &String| types.values().flatten().any(|part| part.file == *file);
        let texts = sources.iter().filter(|(file, _)| folder(file) == of || is_part(file));
        circles_of(&types, &texts.map(|(file, text)| (file.clone(), code(text))).collect())
    };
    of_folders.into_iter().flat_map(circles_in).collect()
}

/// The number of types that are implemented in several files.
#[must_use]
pub fn spread_types(sources: &BTreeMap<String, String>) -> usize {
    parts(sources).values().filter(|parts| parts.len() > 1).count()
}

/// The circles of calls to the methods of these types, from their other methods and from anywhere in these files.
fn circles_of(types: &BTreeMap<String, Vec<Part>>, texts: &BTreeMap<String, String>) -> Vec<Circle> {
    let files: BTreeSet<&String> = types.values().flatten().map(|part| &part.file).chain(texts.keys()).collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut calls = Vec::new();
    for from in files {
        for (of, parts) in types {
            let own = parts.iter().find(|part| part.file == *from);
            let mut names = texts.get(from).map_or_else(BTreeSet::new, |text| called(text, of, false));
            names.extend(own.into_iter().flat_map(|own| called(&own.text, of, true)));
            // If the file has a method of this name itself, it calls its own.
            names.retain(|name| own.is_none_or(|own| !own.names.contains(name)));
            for to in parts.iter().filter(|to| to.file != *from) {
                for name in to.names.intersection(&names) {
                    graph.entry(from.clone()).or_default().insert(to.file.clone());
                    calls.push((from, &to.file, format!("{from} -> {}: {of}::{name}", to.file)));
                }
            }
        }
    }
    let of: Vec<&str> = types.keys().map(String::as_str).collect();
    let circle = |files: BTreeSet<String>| {
        let inside = calls.iter().filter(|(from, to, _)| files.contains(*from) && files.contains(*to));
        Circle { of: of.join(", "), calls: inside.map(|(_, _, call)| call.clone()).collect(), files }
    };
    circles(&graph).into_iter().map(circle).collect()
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

/// The methods that are called on a value or on the type itself: `type.name(`, `a.type.name(`, `type(..).name(` and
/// `Type::name`; in an `impl` of the type, also `self.name(` and `Self::name`.
fn called(text: &str, of: &str, inside: bool) -> BTreeSet<String> {
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
        let after = if word == variable { without_arguments(rest) } else { rest }.trim_start();
        let (dotted, member) = match (after.strip_prefix("::"), after.strip_prefix('.')) {
            (Some(member), _) if word == of || (inside && word == "Self") => (false, member),
            (_, Some(member)) if word == variable || (inside && fresh && word == "self") => (true, member),
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

/// The text after the arguments of a call, if it begins with arguments.
fn without_arguments(text: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return if letter == ')' { &text[at + 1..] } else { &text[at..] };
        }
    }
    ""
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
            of: "Core".into(),
            files: ["x/src/a.rs", "x/src/b.rs"].map(str::to_owned).into(),
            calls: ["x/src/a.rs -> x/src/b.rs: Core::b", "x/src/b.rs -> x/src/a.rs: Core::again"]
                .map(str::to_owned)
                .into(),
        };
        assert_eq!(found, [expected]);
        let mended = b.replace("Self::again(self)", "drop(())");
        assert_eq!(method_circles(&sources(&[("lib", LIB), ("a", a), ("b", &mended)])), []);
    }

    /// Two groups of a state, whose methods get each other as parameters.
    #[test]
    fn a_circle_through_two_types_is_found() {
        let lib = "mod a;\nmod b;\nstruct Work;\n\nstruct Fleet;\n\nimpl Work {\n    fn look(&self) {}\n}\n\nimpl Fleet {\n    fn all(&self) {}\n}";
        let a = "use super::{Fleet, Work};\n\nimpl Work {\n    fn rest(&mut self, fleet: &mut Fleet) {\n        fleet.lose(self);\n    }\n}";
        let b = "use super::{Fleet, Work};\n\nimpl Fleet {\n    fn lose(&mut self, core: &mut Core) {\n        core.work.rest(self);\n    }\n}";
        let found = folder_circles(&sources(&[("lib", lib), ("a", a), ("b", b)]));
        let files: Vec<BTreeSet<String>> = found.into_iter().map(|circle| circle.files).collect();
        assert_eq!(files, [["x/src/a.rs", "x/src/b.rs"].map(str::to_owned).into()]);
        let mended = b.replace("core.work.rest(self)", "core.work.look()");
        assert_eq!(folder_circles(&sources(&[("lib", lib), ("a", a), ("b", &mended)])), []);
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
        let text = "self.one(); Self::two; x.core_loop.three::<u8>(); CoreLoop::four(x); core_loop(a(b), c).five(); x.self_.no(); \
                    self.part.no(); self.field;";
        let all = ["one", "two", "three", "four", "five"].map(str::to_owned);
        assert_eq!(called(text, "CoreLoop", true), all.clone().into());
        assert_eq!(called(text, "CoreLoop", false), all.into_iter().skip(2).collect());
    }
}
