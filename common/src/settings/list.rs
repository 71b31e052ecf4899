//! Settings that are lists of tables: `[[genome]]` in a file, or `[{ name = "x" }]` on one line.

use toml::de::{DeInteger, DeTable, DeValue};

use super::{Schema, Value, Values, toml_text};
use crate::text::{hint, quoted};

/// The list on one line, as TOML. Settings that were added later are left out at their defaults.
pub(super) fn write(entries: &[Values]) -> String {
    let setting = |(field, value): (&super::Field, &Value)| format!("{} = {value}", field.name);
    let counting =
        |entry: &Values| entry.iter().filter(|(field, value)| field.counts(value)).map(setting).collect::<Vec<_>>();
    let entry = |entry: &Values| format!("{{ {} }}", counting(entry).join(", "));
    format!("[{}]", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
}

/// Reads what [`write`] writes, with or without the brackets around it. Missing settings of an entry have their defaults. An
/// error is the end of a sentence that begins with the setting's name.
pub(super) fn read(schema: &'static Schema, count_max: usize, text: &str) -> Result<Vec<Values>, String> {
    let list = if text.trim_start().starts_with('[') { text.to_owned() } else { format!("[{text}]") };
    let line = format!("list = {list}");
    let no_list = || format!(" must be {}", allowed(count_max));
    let table = DeTable::parse(&line).map_err(|_| no_list())?;
    let entries = match table.get_ref().get("list").map(toml::Spanned::get_ref) {
        Some(DeValue::Array(entries)) if table.get_ref().len() == 1 && entries.len() <= count_max => entries,
        _ => return Err(no_list()),
    };
    let entry = |(index, entry): (usize, &toml::Spanned<DeValue<'_>>)| match entry.get_ref() {
        DeValue::Table(table) => read_entry(schema, table).map_err(|why| format!(", entry {}: {why}", index + 1)),
        _ => Err(no_list()),
    };
    entries.iter().enumerate().map(entry).collect()
}

/// The allowed values, as the end of a sentence "... must be".
pub(super) fn allowed(count_max: usize) -> String {
    format!("a list of at most {count_max} tables")
}

fn read_entry(schema: &'static Schema, table: &DeTable<'_>) -> Result<Values, String> {
    let names = || schema.fields().iter().map(|field| field.name);
    if let Some(name) = table.keys().map(|key| key.get_ref()).find(|key| names().all(|name| name != **key)) {
        return Err(format!("unknown setting {}{}", quoted(name), hint(name, names())));
    }
    let value = |field: &super::Field| match table.get(field.name) {
        None => field.read(field.default),
        Some(value) => match setting_text(value.get_ref()) {
            Ok(text) => field.read(&text),
            Err(what) => Err(format!("{} must be {}, not of type {what}", field.name, field.shape.allowed())),
        },
    };
    let values = Values::new(schema, schema.fields().iter().map(value).collect::<Result<_, _>>()?);
    match (schema.check)(&values).into_iter().next() {
        Some((_, problem)) => Err(problem),
        None => Ok(values),
    }
}

/// A whole number in decimal digits, however TOML writes it: 0x10 is 16.
fn integer_text(integer: &DeInteger<'_>) -> Result<String, &'static str> {
    match integer.radix() {
        10 => Ok(integer.as_str().into()),
        radix => i128::from_str_radix(integer.as_str(), radix).map(|it| it.to_string()).map_err(|_| "integer"),
    }
}

/// The text of a setting's value in a file, or the name of its type if no setting has values of that type. Lists of numbers
/// and texts have commas between them; lists of tables are TOML on one line.
pub(crate) fn setting_text(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(integer) => integer_text(integer),
        DeValue::Float(float) => Ok(float.as_str().into()),
        DeValue::Array(list) if list.iter().any(|entry| entry.get_ref().is_table()) => plain(value),
        DeValue::Array(list) => {
            let entry = |value: &toml::Spanned<DeValue<'_>>| match value.get_ref() {
                DeValue::String(text) if text.contains(',') => Err("array that has a comma in a text"),
                DeValue::Boolean(value) => Ok(value.to_string()),
                DeValue::Array(_) => Err("array"),
                entry => setting_text(entry),
            };
            list.iter().map(entry).collect::<Result<Vec<_>, _>>().map(|it| it.join(", "))
        }
        other => Err(other.type_str()),
    }
}

/// A value on one line as TOML, or the name of its type if no setting has values of that type.
fn plain(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(toml_text(text)),
        DeValue::Integer(integer) => integer_text(integer),
        DeValue::Float(float) => Ok(float.as_str().into()),
        DeValue::Array(list) => {
            let list: Vec<String> = list.iter().map(|value| plain(value.get_ref())).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", list.join(", ")))
        }
        DeValue::Table(table) => {
            let entry = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
                plain(value.get_ref()).map(|value| format!("{} = {value}", toml_text(key.get_ref())))
            };
            let entries: Vec<String> = table.iter().map(entry).collect::<Result<_, _>>()?;
            Ok(format!("{{ {} }}", entries.join(", ")))
        }
        other => Err(other.type_str()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        experiment::Config,
        settings::{FromValue, Value},
        testing,
    };

    crate::settings! {
        /// A part.
        struct Part, names PartName, schema PART {
            /// Its name.
            name: String = text(8, "x"),
            /// Its type; a word that Rust reserves.
            r#type: u32 = whole(0, 9, "1"),
            /// Numbers.
            numbers: Vec<crate::ratio::Ratio> = numbers(3, -5, 5, ""),
        }
        check(|part| match part.r#type {
            7 => vec![(PartName::r#type, "type 7 does not exist".into())],
            _ => Vec::new(),
        })
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Parts(Vec<Part>);

    impl FromValue for Parts {
        fn from_value(value: &Value) -> Self {
            let Value::List(entries) = value else { panic!("{value:?}") };
            Self(entries.iter().map(Part::of).collect())
        }
    }

    crate::settings! {
        /// A list.
        struct Settings, names Name, schema SCHEMA {
            /// Parts.
            parts: Parts = list(PART, 2, "{ name = \"a\" }"),
        }
        check(|_| Vec::new())
    }

    #[test]
    fn a_list_is_written_and_read_on_one_line() {
        let defaults = SCHEMA.defaults();
        let Parts(parts) = Settings::of(&defaults).parts;
        assert_eq!((parts[0].name.as_str(), parts[0].r#type, parts.len()), ("a", 1, 1));
        let line =
            r#"parts = [{ name = "a\"b\\", type = 2, numbers = [-1.5, 2] }, { name = "x", type = 1, numbers = [] }]"#;
        let values = SCHEMA.read(line).unwrap();
        assert_eq!(values.to_text().trim_end(), line);
        let Parts(parts) = Settings::of(&values).parts;
        assert_eq!((parts[0].name.as_str(), parts[0].numbers.len(), parts[1].r#type), ("a\"b\\", 2, 1));
        // Lists of texts, and of numbers as text.
        let Parts(parts) =
            Settings::of(&SCHEMA.read(r#"parts = [{ name = ["a", 1, "b"], numbers = ["2", 3] }]"#).unwrap()).parts;
        assert_eq!((parts[0].name.as_str(), parts[0].numbers.len()), ("a, 1, b", 2));
    }

    #[test]
    fn mistakes_in_a_list_name_the_entry() {
        let mistake = |text: &str| SCHEMA.read(&format!("parts = {text}")).unwrap_err();
        let all = [
            "[{ name = \"a\" }, { tipe = 1 }]",
            "[{ type = 10 }]",
            "[{ type = 7 }]",
            "[{ name = true }]",
            "[{}, {}, {}]",
            "[{ name = [\"a,b\"] }]",
            "[1]",
            "[{]",
            "3",
            "[]\nother = [1]",
        ];
        insta::assert_snapshot!(all.map(|text| format!("{}\n  {}", text.escape_debug(), mistake(text))).join("\n"));
    }

    #[test]
    fn a_file_may_have_lists_at_its_top() {
        let file =
            |text: &str, overrides: &[(String, String)]| Config::parse(&testing::registry(), "x.toml", text, overrides);
        let text = "experiment = \"sums\"\n[[terms]]\nnumber = 3\n[[terms]]\n";
        let config = file(text, &[]).unwrap();
        assert!(config.to_toml().contains("terms = [{ number = 3 }, { number = 1 }]"), "{}", config.to_toml());
        assert_eq!(file(&config.to_toml(), &[]).unwrap(), config);
        let typed = file(text, &[("terms".into(), "[{ number = 4 }]".into())]).unwrap();
        assert!(typed.to_toml().contains("terms = [{ number = 4 }]"), "{}", typed.to_toml());
        let twice = format!("{text}[settings]\nterms = []\n");
        insta::assert_snapshot!(file(&twice, &[]).unwrap_err().to_string());
        let wrong = text.replace("number = 3", "numbr = 3");
        insta::assert_snapshot!(file(&wrong, &[]).unwrap_err().to_string());
    }
}
