//! The list in `tests/mutations.toml`: small changes of the sources that the tests must notice.

use std::{collections::BTreeMap, fs, ops::Range};

use crate::{functions, workspace};

/// One small change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mutation {
    /// A crate, another folder with sources or a file, by its path from the workspace.
    pub within: String,
    /// The name of the function that contains the fragment. A fragment outside of functions has none.
    pub function: Option<String>,
    /// The fragment to replace. It occurs once. Any whitespace in it matches any other whitespace.
    pub old: String,
    /// The replacement.
    pub new: String,
}

/// All mutations.
///
/// # Panics
/// If the file is not a list of mutations.
#[must_use]
pub fn mutations() -> Vec<Mutation> {
    let text = fs::read_to_string(workspace().join("tests/mutations.toml")).expect("the list of mutations");
    read(&text).unwrap_or_else(|why| panic!("tests/mutations.toml: {why}"))
}

/// Reads a list: `[[mutation]]` followed by keys whose values are basic TOML strings, on one line or between `"""`.
fn read(text: &str) -> Result<Vec<Mutation>, String> {
    let mut found: Vec<Mutation> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (key, value) = match line.split_once(" = ") {
            _ if line.is_empty() || line.starts_with('#') => continue,
            _ if line.starts_with("[[mutation]]") => {
                found.push(Mutation::default());
                continue;
            }
            Some((key @ ("in" | "fn" | "old" | "new"), value)) => (key, value),
            _ => return Err(format!("not a line of a mutation: {line}")),
        };
        let no_end = || format!("a text without an end: {line}");
        let quotes = ["\"\"\"", "'''"].into_iter().find(|quotes| value.starts_with(quotes));
        let text = match quotes {
            Some(quotes) => {
                let (mut all, mut line) = (String::new(), &value[quotes.len()..]);
                loop {
                    if let Some(last) = line.strip_suffix(quotes) {
                        break all + last;
                    }
                    // A line break after the opening quotes is not part of the text.
                    if !(all.is_empty() && line.is_empty()) {
                        all = all + line + "\n";
                    }
                    line = lines.next().ok_or_else(no_end)?;
                }
            }
            None => value.strip_prefix('"').and_then(|it| it.strip_suffix('"')).ok_or_else(no_end)?.to_owned(),
        };
        let value = match quotes {
            Some("'''") => text,
            _ => unescaped(&text).ok_or_else(|| format!("an unknown escape: {line}"))?,
        };
        let mutation = found.last_mut().ok_or_else(|| format!("no [[mutation]] before {line}"))?;
        match key {
            "in" => mutation.within = value,
            "fn" => mutation.function = Some(value),
            "old" => mutation.old = value,
            _ => mutation.new = value,
        }
    }
    match found.iter().find(|it| it.within.is_empty() || it.old.is_empty() || it.old == it.new) {
        Some(wrong) => Err(format!("a mutation has no place, or changes nothing: {wrong:?}")),
        None => Ok(found),
    }
}

fn unescaped(text: &str) -> Option<String> {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                other @ ('"' | '\\') => other,
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(plain)
}

impl Mutation {
    /// The file with the fragment, and where the fragment is in it.
    ///
    /// # Errors
    /// If the fragment does not occur exactly once.
    pub fn place<'a>(&self, sources: &'a BTreeMap<String, String>) -> Result<(&'a str, Range<usize>), String> {
        let below = format!("{}/", self.within.trim_end_matches('/'));
        let here = sources.iter().filter(|(name, _)| **name == self.within || name.starts_with(&below));
        let mut places = here.flat_map(|(name, text)| self.places(text).into_iter().map(move |at| (name.as_str(), at)));
        match (places.next(), places.count()) {
            (Some(place), 0) => Ok(place),
            (first, more) => {
                let of = self.function.as_ref().map(|name| format!(" fn {name}:")).unwrap_or_default();
                let times = usize::from(first.is_some()) + more;
                Err(format!("{}:{of} the fragment occurs {times} times, not once: {}", self.within, self.old))
            }
        }
    }

    /// The places of the fragment in a text.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let all = occurrences(text, &self.old);
        let Some(function) = self.function.as_ref().filter(|_| !all.is_empty()) else { return all };
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).chain([text.len()]).collect();
        let named = functions(text).into_iter().filter(|(_, _, name)| name == function);
        let bodies = named.map(|(line, lines, _)| starts[line - 1]..starts[line - 1 + lines]);
        let bodies: Vec<Range<usize>> = bodies.collect();
        let is_within = |at: &Range<usize>| bodies.iter().any(|body| body.start <= at.start && at.end <= body.end);
        all.into_iter().filter(is_within).collect()
    }
}

/// Where a text contains this fragment, whatever whitespace stands where the fragment has some.
fn occurrences(text: &str, fragment: &str) -> Vec<Range<usize>> {
    let ends_at = |start: usize| {
        let mut rest = &text[start..];
        let mut fragment = fragment;
        while let Some(letter) = fragment.chars().next() {
            let (skipped, cut) = (rest.trim_start(), fragment.trim_start());
            if letter.is_whitespace() {
                // A fragment that ends with whitespace matches exactly that: further whitespace in the text stays.
                rest = if cut.is_empty() {
                    rest.strip_prefix(fragment)?
                } else {
                    Some(skipped).filter(|it| it.len() < rest.len())?
                };
                fragment = cut;
            } else {
                rest = rest.strip_prefix(letter)?;
                fragment = &fragment[letter.len_utf8()..];
            }
        }
        Some(text.len() - rest.len())
    };
    let first = fragment.split_whitespace().next().unwrap_or_default();
    let mut from = 0;
    // Matches may overlap: `))` is twice in `)))`.
    let starts = std::iter::from_fn(|| {
        let at = from + text[from..].find(first)?;
        from = at + first.chars().next()?.len_utf8();
        Some(at)
    });
    // Whitespace before the fragment belongs to the match.
    let lead = fragment.len() - fragment.trim_start().len();
    let starts = starts.filter_map(|at| at.checked_sub(lead).filter(|from| text.is_char_boundary(*from)));
    let starts = starts.filter(|from| text[*from..].starts_with(&fragment[..lead]));
    starts.filter_map(|from| Some(from..ends_at(from)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# A list.\n\n[[mutation]] # one\nin = \"a/b.rs\"\nold = \"x \\\"y\\\" \\\\\"\nnew = \"\"\n\n\
                        [[mutation]]\nin = \"a\"\nfn = \"g\"\nold = \"\"\"    if z {\n        end\"\"\"\nnew = '''\n\\'''\n";

    #[test]
    fn a_list_is_read() {
        let [one, two] = &read(LIST).unwrap()[..] else { panic!("there are two") };
        assert_eq!((one.within.as_str(), one.old.as_str(), one.new.as_str()), ("a/b.rs", "x \"y\" \\", ""));
        assert_eq!(
            (two.function.as_deref(), two.old.as_str(), two.new.as_str()),
            (Some("g"), "    if z {\n        end", "\\")
        );
        for wrong in
            ["old = \"x\"\n", "[[mutation]]\nin = \"x\"\n", "[[mutation]]\nfile = \"x\"\n", "[[mutation]]\nold = x\n"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_fragment_is_found_once_by_function_and_whatever_its_spaces() {
        let text = "fn f() {\n    a(\n        b, c\n    );\n}\n\nfn g() {\n    a(b, c);\n    d();\n}\n".to_owned();
        let sources = BTreeMap::from([("s/x.rs".to_owned(), text.clone())]);
        let place = |within: &str, function: Option<&str>, old: &str| {
            let function = function.map(String::from);
            let mutation = Mutation { within: within.into(), function, old: old.into(), new: String::new() };
            mutation.place(&sources).map(|(name, at)| (name.to_owned(), text[at].to_owned()))
        };
        let found = |piece: &str| Ok(("s/x.rs".to_owned(), piece.to_owned()));
        assert_eq!(place("s/x.rs", None, "d();"), found("d();"));
        assert_eq!(place("s", Some("f"), "b, c"), found("b, c"));
        assert_eq!(place("s", Some("f"), "a( b, c );"), found("a(\n        b, c\n    );"));
        assert_eq!(place("s", None, "    d();\n"), found("    d();\n"));
        assert!(place("s", None, "b, c").unwrap_err().contains("2 times"));
        assert!(place("s", Some("f"), "d();").unwrap_err().contains("fn f: the fragment occurs 0 times"));
        assert!(place("s/y.rs", None, "d();").is_err());
    }
}
