//! Adds decimal numbers next to the exact fractions in results, such as "142/315", for programs that do not read fractions:
//! `win` gets a `win_number`.

use serde_json::{Map, Value};

/// The keys of exact fractions.
const FRACTIONS: [&str; 4] = ["win", "draw", "loss", "fitness"];

/// Adds the number behind each fraction in a value, at any depth, except within settings.
pub(crate) fn beside(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(beside),
        Value::Object(entries) => {
            let mut all = Map::with_capacity(entries.len());
            for (key, mut value) in std::mem::take(entries) {
                let number = value.as_str().filter(|_| FRACTIONS.contains(&key.as_str())).and_then(number);
                // Settings stay as in an experiment file, because the configuration is read back from a result.
                if key != "settings" {
                    beside(&mut value);
                }
                let name = format!("{key}_number");
                all.insert(key, value);
                all.extend(number.map(|number| (name, number)));
            }
            *entries = all;
        }
        _ => {}
    }
}

fn number(fraction: &str) -> Option<Value> {
    let (above, below) = fraction.split_once('/').unwrap_or((fraction, "1"));
    let (above, below) = (above.parse::<i64>().ok()?, below.parse::<i64>().ok().filter(|below| *below > 0)?);
    Some((above as f64 / below as f64).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_fractions_get_an_additional_number() {
        let mut value = json!([{"win": "1/4", "loss": "0", "name": "1/2", "fitness": 3, "draw": "no", "settings": {"win": "1"}, "a": {"draw": "3/4"}}]);
        beside(&mut value);
        let expected = json!([{"win": "1/4", "win_number": 0.25, "loss": "0", "loss_number": 0.0, "name": "1/2",
            "fitness": 3, "draw": "no", "settings": {"win": "1"}, "a": {"draw": "3/4", "draw_number": 0.75}}]);
        assert_eq!(value, expected);
        beside(&mut value);
        assert_eq!(value, expected, "a second call adds nothing");
    }
}
