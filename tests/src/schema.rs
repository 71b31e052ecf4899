//! A checker for the part of JSON Schema that docs/result.schema.json uses. It refuses a schema with any other keyword.

use serde_json::{Map, Value};

/// The places where a value violates the schema, each with the violation.
///
/// # Panics
/// If the schema uses a keyword that this checker does not know.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, schema, value, "result", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let keywords = schema.as_object().expect("a schema is an object");
    let empty = Map::new();
    let entries = value.as_object();
    for (keyword, said) in keywords {
        let number = || said.as_u64().expect("a number of the schema");
        let good = match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let path = said.as_str().and_then(|path| path.strip_prefix('#')).expect("a place in this schema");
                check(root, root.pointer(path).expect("the named schema exists"), value, place, faults);
                true
            }
            "type" => match said {
                Value::Array(types) => types.iter().any(|one| is(one, value)),
                one => is(one, value),
            },
            "enum" => said.as_array().expect("values").contains(value),
            "minimum" => value.as_f64().is_none_or(|value| value >= number() as f64),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= number()),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= number()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= number()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= number()),
            "required" => {
                let missing = said.as_array().expect("names").iter().filter_map(Value::as_str);
                let missing = missing.filter(|name| entries.is_some_and(|entries| !entries.contains_key(*name)));
                faults.extend(missing.map(|name| format!("{place}.{name} is missing")));
                true
            }
            "properties" => {
                for (name, schema) in said.as_object().expect("schemas") {
                    if let Some(value) = entries.unwrap_or(&empty).get(name) {
                        check(root, schema, value, &format!("{place}.{name}"), faults);
                    }
                }
                true
            }
            // Only supported if there are no `properties` as well.
            "additionalProperties" if !keywords.contains_key("properties") => {
                for (name, value) in entries.unwrap_or(&empty) {
                    check(root, said, value, &format!("{place}.{name}"), faults);
                }
                true
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, said, value, &format!("{place}[{index}]"), faults);
                }
                true
            }
            other => panic!("the checker does not know {other:?}"),
        };
        if !good {
            faults.push(format!("{place} is {value}, and its {keyword} must be {said}"));
        }
    }
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the checker does not know the type {other:?}"),
    }
}
