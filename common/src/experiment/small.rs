//! Small results: the part of a run's `result.json` that is committed.
//!
//! A `result.json` is repetitive: every arm has all settings, every replica has all keys, every fraction has a number next to
//! it, and most of the rest can be computed again. A small result states each thing once. It keeps what a report is made
//! from, so its tables are those of the whole result, and it keeps those curves of the figures that its author wants to show.
//! [`whole`] restores the usual form, for all code that reads results.
//!
//! What is lost: what a report makes again (`conclusion`, `summary`, `notes` and the like), points of curves beyond
//! [`POINTS_MAX`], digits after the first few, and all but the beginning of each replica's digest. The digest of the run is
//! kept whole.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::REPLICAS_MAX;
use crate::report::spread;

/// The key that only a small result has. Its value is the number of digits to which numbers are rounded.
const SMALL: &str = "small";
/// The most points of a curve.
pub const POINTS_MAX: usize = 32;
/// The significant digits of a curve's values. A figure shows no more.
const CURVE_DIGITS: usize = 4;
/// The keys of a result that a report makes again, or that refer to files which are not kept next to a small result.
const MADE_ANEW: [&str; 7] = ["conclusion", "summary", "claims", "contests", "notes", "not_hashed", "history_sha256"];
/// The keys from which a screen can be restored; the others follow from them.
const OF_SCREEN: [&str; 6] = ["factors", "generators", "response", "at", "goal", "arms"];
/// The number of hexadecimal digits that are kept of a replica's digest.
const DIGEST_DIGITS: usize = 16;
/// The prefix before these digits, which marks digests that cover the history.
const DIGEST_MARK: &str = "r1:";

/// The small form of a result. A curve is kept if `keeps` says so for its arm's index and its name. Numbers are rounded to
/// `digits` significant digits, from 1 to 17.
#[must_use]
pub fn small(result: &Value, keeps: &dyn Fn(usize, &str) -> bool, digits: usize) -> Value {
    let mut small = result.as_object().cloned().unwrap_or_default();
    small.retain(|key, _| !MADE_ANEW.contains(&key.as_str()));
    if let Some(provenance) = small.get_mut("provenance").and_then(Value::as_object_mut) {
        provenance.shift_remove("legs");
    }
    if let Some(screen) = small.get_mut("screen").and_then(Value::as_object_mut) {
        screen.retain(|key, _| OF_SCREEN.contains(&key.as_str()));
        let arms = screen.get_mut("arms").and_then(Value::as_array_mut).into_iter().flatten();
        arms.filter_map(Value::as_object_mut)
            .for_each(|arm| arm.retain(|key, _| ["name", "responses"].contains(&&**key)));
    }
    let arms = result["arms"].as_array().map_or(&[][..], Vec::as_slice);
    let settings: Vec<Vec<(String, Value)>> = arms.iter().map(|arm| flat(&arm["settings"])).collect();
    small.insert("settings".into(), columns(settings));
    let arms = arms.iter().enumerate().map(|(index, arm)| small_arm(arm, &|curve| keeps(index, curve)));
    small.insert("arms".into(), arms.collect());
    let mut small = Value::from(small);
    round(&mut small, digits.clamp(1, 17));
    small[SMALL] = digits.into();
    small
}

/// Whether a result is small.
#[must_use]
pub fn is_small(result: &Value) -> bool {
    result.get(SMALL).is_some()
}

/// The usual form of a small result. Any other value is returned unchanged.
///
/// # Errors
/// A sentence if the result is damaged.
pub fn whole(mut result: Value) -> Result<Value, String> {
    if !is_small(&result) {
        return Ok(result);
    }
    let damaged = || "it is a small result whose arms cannot be read".to_owned();
    let top = result.as_object_mut().ok_or_else(damaged)?;
    top.shift_remove(SMALL);
    let settings = top.shift_remove("settings").and_then(|columns| rows(&columns)).ok_or_else(damaged)?;
    let arms = top.get_mut("arms").and_then(Value::as_array_mut).ok_or_else(damaged)?;
    if settings.len() != arms.len() {
        return Err(damaged());
    }
    for (arm, settings) in arms.iter_mut().zip(settings) {
        let replicas = rows(&arm["replicas"]).ok_or_else(damaged)?;
        let replicas = replicas.into_iter().enumerate().map(|(place, replica)| lengthened(replica, place));
        let replicas: Value = replicas.collect();
        let arm = arm.as_object_mut().ok_or_else(damaged)?;
        arm.insert("settings".into(), settings);
        arm.insert("replicas".into(), replicas);
    }
    Ok(result)
}

/// Makes `computed`, a whole result, as small as `claimed`, which is small, and then whole again. Equal results become equal
/// values.
///
/// # Errors
/// A sentence if a result is damaged.
pub fn as_small_as(claimed: &Value, computed: &Value) -> Result<Value, String> {
    let keeps = |arm: usize, curve: &str| claimed["arms"][arm]["curves"].get(curve).is_some();
    let digits = claimed[SMALL].as_u64().and_then(|digits| usize::try_from(digits).ok()).unwrap_or(17);
    whole(small(computed, &keeps, digits))
}

/// A small result as text, with one line for each key and for each arm.
#[must_use]
pub fn text(small: &Value) -> String {
    let line = |(key, value): (&String, &Value)| match value.as_array().filter(|_| key == "arms") {
        Some(arms) => {
            let arms: Vec<String> = arms.iter().map(Value::to_string).collect();
            format!("\"arms\":[\n{}\n]", arms.join(",\n"))
        }
        None => format!("{}:{value}", Value::from(key.as_str())),
    };
    let lines: Vec<String> = small.as_object().into_iter().flatten().map(line).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// A replica's digest in a small result, which is only the beginning. `None` for digests that do not cover the history,
/// because nothing can be verified with them.
#[must_use]
pub fn short_digest(digest: &str) -> Option<&str> {
    digest.starts_with(DIGEST_MARK).then(|| digest.get(..DIGEST_MARK.len() + DIGEST_DIGITS)).flatten()
}

fn small_arm(arm: &Value, keeps: &dyn Fn(&str) -> bool) -> Value {
    let mut small = arm.as_object().cloned().unwrap_or_default();
    small.shift_remove("settings");
    if let Some(Value::Object(curves)) = small.shift_remove("curves") {
        small.extend(small_curves(curves, keeps).map(|curves| ("curves".to_owned(), curves)));
    }
    if let Some(Value::Array(replicas)) = small.shift_remove("replicas") {
        let replicas = replicas.iter().enumerate().map(|(place, replica)| {
            let entries = flat(replica).into_iter();
            entries
                .filter_map(|(key, value)| Some((shortened(&key, value, place)?, key)))
                .map(|(value, key)| (key, value))
                .collect()
        });
        small.insert("replicas".into(), columns(replicas.collect()));
    }
    small.into()
}

/// The curves that are kept, with fewer points. Lists next to the curves are the x values of their points. `None` if no curve
/// is kept.
fn small_curves(curves: Map<String, Value>, keeps: &dyn Fn(&str) -> bool) -> Option<Value> {
    let kept = curves.into_iter().filter(|(name, curve)| !curve.is_object() || keeps(name));
    let mut kept: Map<String, Value> = kept.collect();
    let shared_places = kept.values().any(Value::is_array);
    for curve in kept.values_mut() {
        match curve {
            Value::Array(places) => thin(places),
            Value::Object(lists) => {
                let points = lists.values().filter_map(Value::as_array).map(Vec::len).max().unwrap_or(0);
                // Without x values, the points are rounds, starting at 1.
                if points > POINTS_MAX && !shared_places && !lists.contains_key("x") {
                    lists.insert("x".into(), (1..=points).collect());
                }
                lists.values_mut().filter_map(Value::as_array_mut).for_each(thin);
                lists.iter_mut().filter(|(name, _)| *name != "x").for_each(|(_, list)| round(list, CURVE_DIGITS));
            }
            _ => {}
        }
    }
    kept.values().any(Value::is_object).then(|| kept.into())
}

fn thin(list: &mut Vec<Value>) {
    *list = spread(list.len(), POINTS_MAX).map(|index| list[index].clone()).collect();
}

/// Rows as columns: `all` holds values that are the same in all rows, `each` holds lists with an entry for each row, and
/// `some` holds values that only some rows have, by row index. [`rows`] is the inverse.
fn columns(rows: Vec<Vec<(String, Value)>>) -> Value {
    let count = rows.len();
    // Keeps the keys in the order in which they first occur.
    let mut columns: Map<String, Value> = Map::new();
    let mut cells: BTreeMap<String, BTreeMap<usize, Value>> = BTreeMap::new();
    for (place, row) in rows.into_iter().enumerate() {
        for (key, value) in row {
            columns.insert(key.clone(), Value::Null);
            cells.entry(key).or_default().insert(place, value);
        }
    }
    let (mut all, mut each, mut some) = (Map::new(), Map::new(), Map::new());
    for key in columns.keys() {
        let cells = cells.remove(key).unwrap_or_default();
        if cells.len() < count {
            let cells = cells.into_iter().map(|(place, value)| (place.to_string(), value));
            some.insert(key.clone(), cells.collect::<Map<_, _>>().into());
        } else if cells.values().all(|value| *value == cells[&0]) {
            all.insert(key.clone(), cells[&0].clone());
        } else {
            each.insert(key.clone(), cells.into_values().collect());
        }
    }
    let mut small = json!({"count": count});
    for (name, columns) in [("all", all), ("each", each), ("some", some)] {
        if !columns.is_empty() {
            small[name] = columns.into();
        }
    }
    small
}

/// The rows of these columns, as objects; `None` if the columns are damaged.
fn rows(columns: &Value) -> Option<Vec<Value>> {
    let count = usize::try_from(columns["count"].as_u64()?).ok().filter(|count| *count <= REPLICAS_MAX as usize)?;
    let parts = |name: &str| columns[name].as_object().into_iter().flatten();
    let row = |place: usize| {
        let mut row = json!({});
        parts("all").try_for_each(|(key, value)| put(&mut row, key, value))?;
        parts("each").try_for_each(|(key, list)| put(&mut row, key, list.get(place)?))?;
        let some = parts("some").filter_map(|(key, cells)| Some((key, cells.get(place.to_string())?)));
        some.into_iter().try_for_each(|(key, value)| put(&mut row, key, value))?;
        Some(row)
    };
    (0..count).map(row).collect()
}

/// Stores a value at the path of keys that are joined by dots; `None` if something that is not an object is on the path.
fn put(row: &mut Value, key: &str, value: &Value) -> Option<()> {
    let mut at = row;
    for name in key.split('.') {
        if at.is_null() {
            *at = json!({});
        }
        at = at.as_object_mut()?.entry(name).or_insert(Value::Null);
    }
    *at = value.clone();
    Some(())
}

/// The values in an object, at any depth, each with its keys joined by dots, except for the numbers next to fractions.
fn flat(value: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                found.extend(flat(value).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            _ => found.push((key.clone(), value.clone())),
        }
    }
    let fraction = |key: &str| found.iter().any(|(other, value)| other == key && value.is_string());
    let beside: Vec<bool> = found.iter().map(|(key, _)| key.strip_suffix("_number").is_some_and(fraction)).collect();
    found.into_iter().zip(beside).filter(|(_, beside)| !beside).map(|(entry, _)| entry).collect()
}

/// The value of a replica's key, without what already follows from the replica's position; `None` if nothing is left.
fn shortened(key: &str, value: Value, place: usize) -> Option<Value> {
    match (key, value.as_str()) {
        ("replica", _) if value == place => None,
        ("digest", Some(digest)) => short_digest(digest).map(Value::from),
        ("champion", Some(file)) => {
            let stem = file.strip_suffix(&format!("-{place}.json")).filter(|stem| !stem.contains('*'));
            Some(stem.map_or(value.clone(), |stem| format!("{stem}-*.json").into()))
        }
        _ => Some(value),
    }
}

/// Adds what follows from a replica's position: the inverse of [`shortened`].
fn lengthened(replica: Value, place: usize) -> Value {
    let mut whole = Map::from_iter([("replica".to_owned(), Value::from(place))]);
    whole.extend(replica.as_object().cloned().unwrap_or_default());
    if let Some(file) = whole.get("champion").and_then(Value::as_str).map(|file| file.replace('*', &place.to_string()))
    {
        whole.insert("champion".into(), file.into());
    }
    whole.into()
}

/// Rounds all numbers that are not whole.
fn round(value: &mut Value, digits: usize) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| round(value, digits)),
        Value::Object(entries) => entries.values_mut().for_each(|value| round(value, digits)),
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                // Whole numbers are counts and stay exact.
                *value = match format!("{float:.*e}", digits - 1).parse::<f64>() {
                    _ if float.fract() == 0.0 && float.abs() < 1e15 => (float as i64).into(),
                    Ok(rounded) if rounded.fract() == 0.0 && rounded.abs() < 1e15 => (rounded as i64).into(),
                    Ok(rounded) => rounded.into(),
                    Err(_) => float.into(),
                };
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> Value {
        let replica = |place: usize, digest: char| {
            json!({
                "replica": place, "rows": 70, "finished": true, "digest": format!("r1:{}", digest.to_string().repeat(64)),
                "champion": format!("champions/a-b-{place}.json"), "sought": {"found": 1.0 + place as f64 / 3.0, "kept": null}, "games": 105_010.0,
                "win": "1/3", "win_number": 1.0 / 3.0,
            })
        };
        let mut failed = replica(1, 'b');
        failed["failure"] = "stopped".into();
        let arm = |name: &str, level: &str| {
            let curve = json!({"mean": (0..70).collect::<Vec<u32>>(), "low": vec![0; 70], "high": vec![70; 70]});
            json!({
                "name": name, "settings": {"same": "1", "level": level}, "games": 40,
                "curves": {"shown": curve, "hidden": curve}, "replicas": [replica(0, 'a'), failed],
            })
        };
        json!({
            "schema": 1, "experiment": "x", "digest": "r1:0", "summary": {"a": 1}, "notes": ["n"], "conclusion": "so",
            "provenance": {"seconds": 1.5, "legs": []}, "arms": [arm("one", "low"), arm("two", "high")],
        })
    }

    #[test]
    fn a_small_result_restores_what_it_kept() {
        let small = small(&result(), &|arm, curve| arm == 1 && curve == "shown", 4);
        let mut expected = result();
        let top = expected.as_object_mut().unwrap();
        top.retain(|key, _| !MADE_ANEW.contains(&key.as_str()));
        expected["provenance"].as_object_mut().unwrap().remove("legs");
        expected["arms"][0].as_object_mut().unwrap().remove("curves");
        let curves = expected["arms"][1]["curves"].as_object_mut().unwrap();
        curves.remove("hidden");
        let spread: Vec<usize> = spread(70, POINTS_MAX).collect();
        let x: Vec<usize> = spread.iter().map(|index| index + 1).collect();
        curves["shown"] = json!({"mean": spread, "low": vec![0; POINTS_MAX], "high": vec![70; POINTS_MAX], "x": x});
        for arm in 0..2 {
            for (place, (digest, found)) in
                [("aaaaaaaaaaaaaaaa", json!(1)), ("bbbbbbbbbbbbbbbb", json!(1.333))].iter().enumerate()
            {
                let replica = &mut expected["arms"][arm]["replicas"][place];
                replica["digest"] = format!("r1:{digest}").into();
                replica["sought"]["found"] = found.clone();
                replica["games"] = 105_010.into();
                replica.as_object_mut().unwrap().remove("win_number");
            }
        }
        assert!(is_small(&small) && !is_small(&expected));
        assert_eq!(small["settings"], json!({"count": 2, "all": {"same": "1"}, "each": {"level": ["low", "high"]}}));
        assert_eq!(small["arms"][0]["replicas"]["some"], json!({"failure": {"1": "stopped"}}));
        assert_eq!(whole(small.clone()).as_ref(), Ok(&expected));
        assert_eq!(whole(expected.clone()), Ok(expected.clone()), "a whole result stays whole");
        assert_eq!(as_small_as(&small, &result()), Ok(expected));
        assert_eq!(serde_json::from_str::<Value>(&text(&small)).unwrap(), small);
        assert_eq!(
            text(&small).lines().filter(|line| line.starts_with("{\"name\":")).count(),
            2,
            "there is one line for each arm"
        );
        let again = self::small(&whole(small.clone()).unwrap(), &|_, _| true, 4);
        assert_eq!(again, small, "a small result is as small as it gets");
    }

    #[test]
    fn digests_without_the_history_are_omitted() {
        assert_eq!(short_digest(&"0".repeat(64)), None);
        assert_eq!(short_digest("r1:0123456789abcdef0123"), Some("r1:0123456789abcdef"));
        assert_eq!(short_digest("r1:é"), None);
    }

    /// A difference must not disappear with the parts that are lost.
    #[test]
    fn different_results_stay_different() {
        let claimed = small(&result(), &|_, curve| curve == "shown", 6);
        let same = as_small_as(&claimed, &result()).unwrap();
        for (place, value) in [
            ("/digest", json!("r1:1")),
            ("/arms/1/settings/level", json!("low")),
            ("/arms/0/replicas/1/digest", json!(format!("r1:{}", "c".repeat(64)))),
            ("/arms/0/replicas/1/sought/found", json!(1.3334)),
            ("/arms/0/replicas/1/failure", json!("other")),
            ("/arms/0/replicas/1/win", json!("2/3")),
            ("/arms/1/curves/shown/mean/0", json!(1)),
        ] {
            let mut other = result();
            *other.pointer_mut(place).unwrap() = value;
            assert_ne!(as_small_as(&claimed, &other).unwrap(), same, "{place}");
        }
    }

    #[test]
    fn damaged_small_results_cause_no_panic() {
        let good = small(&result(), &|_, _| true, 6);
        for (place, value) in [
            ("/settings", json!(3)),
            ("/arms", json!({})),
            ("/arms/0", json!(null)),
            ("/settings/count", json!(3)),
            ("/arms/0/replicas", json!([{}])),
            ("/arms/0/replicas/count", json!(1_000_000_000)),
            ("/arms/0/replicas/each/sought.found", json!([1])),
            ("/arms/0/replicas/all/finished", json!({"a": 1})),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(place).unwrap() = value;
            let says = whole(bad);
            assert!(says.is_err() || place.ends_with("finished"), "{place}");
        }
        let mut crossed = good;
        crossed["arms"][0]["replicas"]["all"]["finished.x"] = 1.into();
        assert!(whole(crossed).is_err(), "a key within a value that is not an object");
    }
}
