//! The publication that a kind of experiment implements.

use serde_json::{Map, Value};

/// A publication, with the fields of its BibTeX entry. Only what is known is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The key of the entry, such as "michie1963".
    pub key: &'static str,
    /// The type of the entry: "article", "incollection", "misc".
    pub entry: &'static str,
    /// The fields, each with its name and its text.
    pub fields: &'static [(&'static str, &'static str)],
}

impl Publication {
    /// The BibTeX entry.
    #[must_use]
    pub fn bibtex(&self) -> String {
        bibtex(self.entry, self.key, self.fields.iter().copied())
    }

    /// The fields as JSON, with the key and the type of the entry.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let head = [("key", self.key), ("type", self.entry)];
        let all = head.iter().chain(self.fields).map(|(name, text)| ((*name).to_owned(), Value::from(*text)));
        Value::Object(all.collect::<Map<String, Value>>())
    }
}

/// A BibTeX entry with these fields.
#[must_use]
pub fn bibtex<'a>(entry: &str, key: &str, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let line = |(name, text): (&str, &str)| format!("  {name} = {{{}}},\n", escaped(text));
    format!("@{entry}{{{key},\n{}}}\n", fields.into_iter().map(line).collect::<String>())
}

/// A text as BibTeX needs it: letters that have a meaning there are escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if "&%$#_".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_all_fields_and_is_escaped() {
        let source = Publication { key: "a2000", entry: "misc", fields: &[("author", "A & B_c"), ("year", "2000")] };
        assert_eq!(source.bibtex(), "@misc{a2000,\n  author = {A \\& B\\_c},\n  year = {2000},\n}\n");
        let json = serde_json::json!({"key": "a2000", "type": "misc", "author": "A & B_c", "year": "2000"});
        assert_eq!(source.to_json(), json);
    }
}
