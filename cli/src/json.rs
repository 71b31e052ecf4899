//! JSON for people: indented, but with each list of numbers on one line, however long. A whole number that a float cannot
//! represent exactly is written as a string, because most programs that read JSON would round it.

use evoxo_common::text::WHOLE_MAX;
use serde_json::{Number, Value};

/// The text of a value, with a line break at the end.
pub(crate) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, "\n", &mut text);
    text + "\n"
}

/// `line` is a line break followed by the indentation of the line on which the value begins.
fn write(value: &Value, line: &str, text: &mut String) {
    let inner = format!("{line}  ");
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (index, (key, value)) in entries.iter().enumerate() {
                text.push_str(if index == 0 { "{" } else { "," });
                text.push_str(&format!("{inner}{}: ", Value::from(key.as_str())));
                write(value, &inner, text);
            }
            text.push_str(&format!("{line}}}"));
        }
        Value::Array(values) if values.iter().any(|value| !value.is_number()) => {
            for (index, value) in values.iter().enumerate() {
                text.push_str(if index == 0 { "[" } else { "," });
                text.push_str(&inner);
                write(value, &inner, text);
            }
            text.push_str(&format!("{line}]"));
        }
        Value::Array(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(whole_or_text).collect();
            text.push_str(&format!("[{}]", numbers.join(",")));
        }
        other => text.push_str(&whole_or_text(other)),
    }
}

/// The text of a value that is neither a list nor an object.
pub(crate) fn whole_or_text(value: &Value) -> String {
    let magnitude = |number: &Number| number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    let long = value.as_number().and_then(magnitude).is_some_and(|magnitude| magnitude > WHOLE_MAX);
    if long { format!("\"{value}\"") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_numbers_stay_on_one_line() {
        let value = json!({
            "a": [1, 2.5, -3],
            "b": {"c": [], "d": {}, "e": ["x\"", null], "f": [[1, 2], [3]], "g\n": true},
        });
        insta::assert_snapshot!(text(&value));
        assert_eq!(serde_json::from_str::<Value>(&text(&value)).unwrap(), value);
    }

    #[test]
    fn long_whole_numbers_are_strings() {
        let value = json!({"seed": 9_007_199_254_740_993_u64, "most": [9_007_199_254_740_992_u64, -9_007_199_254_740_993_i64], "f": 1e300});
        let told = "{\n  \"seed\": \"9007199254740993\",\n  \"most\": [9007199254740992,\"-9007199254740993\"],\n  \"f\": 1e+300\n}\n";
        assert_eq!(text(&value), told);
    }

    /// Without lists of numbers, the output is the usual indented JSON.
    #[test]
    fn everything_else_has_the_usual_form() {
        let value = json!({"a": {"b": "c", "d": [{"e": 1}, {"f": []}]}, "g": 7, "h": [], "i": {}});
        assert_eq!(text(&value), format!("{value:#}\n"));
    }
}
