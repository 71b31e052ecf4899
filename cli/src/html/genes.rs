//! A candidate of a search: its values, and its genes as bars within their bounds, with buttons that copy it.

use evoxo_common::{
    candidates::{Quantity, Role},
    card::Card,
    text::rounded,
};
use serde_json::{Map, Value};

use super::{element::Html, tables::scrolling};

/// The most genes with a bar, and the most bytes of a copy.
const GENES_MAX: usize = 60;
const COPY_BYTES_MAX: usize = 64 << 10;
/// The width of a bar, in pixels.
const WIDTH: f64 = 220.0;

/// The nodes that show a candidate; `None` if the champion is not one. `quantities` are those of its arm.
pub(super) fn candidate(card: &Card, quantities: &[Quantity]) -> Option<Vec<Html>> {
    let (text, _) = card.write("champion");
    let written: Value = serde_json::from_str(&text).ok()?;
    if quantities.is_empty() || written["kind"] != "candidate" {
        return None;
    }
    let genes = written["genes"].as_object()?;
    let numbers = ["objectives", "constraints", "measures"].map(|key| written[key].as_object());
    let value = |(name, value): (&String, &Value)| {
        Html::of("div", &[], [Html::of("dt", &[], name.as_str()), Html::of("dd", &[], shown(value))])
    };
    let values = Html::all(numbers.into_iter().flatten().flatten().map(value));
    let rows: Vec<(String, &Value)> = genes.iter().flat_map(|(part, genes)| named(part, genes, quantities)).collect();
    let body = rows.iter().take(GENES_MAX).map(|(name, value)| row(name, value, quantities));
    let heads = ["gene", "value", "least", "within its bounds", "greatest"].map(|head| Html::of("th", &[], head));
    let head = Html::of("thead", &[], Html::of("tr", &[], heads));
    let table = Html::classed("table", "genes", [head, Html::of("tbody", &[], Html::all(body))]);
    let mut parts = vec![Html::classed("dl", "values", values), scrolling("scroll", "Genes of the candidate", table)];
    if rows.len() > GENES_MAX {
        let sentence = format!("And {} more genes: the card has all of them.", rows.len() - GENES_MAX);
        parts.push(Html::classed("p", "soft", sentence));
    }
    let copies = [("Copy as Python", python(&written["genes"])), ("Copy as JSON", text)];
    let fits = copies.iter().filter(|(_, content)| content.len() <= COPY_BYTES_MAX);
    let button = |(label, content): &(&str, String)| {
        Html::of("button", &[("type", "button"), ("class", "copy"), ("data-copy", content)], *label)
    };
    parts.push(Html::of("p", &[], Html::all(fits.map(button))));
    Some(parts)
}

/// The genes of a part with the names of their columns. Bits and texts are one gene.
fn named<'a>(part: &str, genes: &'a Value, quantities: &[Quantity]) -> Vec<(String, &'a Value)> {
    match genes.as_array() {
        Some(list) if list.len() > 1 && !quantities.iter().any(|one| one.name == part) => {
            list.iter().enumerate().map(|(at, gene)| (format!("{part}[{at}]"), gene)).collect()
        }
        Some(list) if list.len() == 1 => vec![(part.to_owned(), &list[0])],
        _ => vec![(part.to_owned(), genes)],
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        Value::Array(bits) => bits.iter().map(Value::to_string).collect(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, rounded),
        other => other.to_string(),
    }
}

/// A gene's row: its name, its value, and the bar between its bounds if it has some.
fn row(name: &str, value: &Value, quantities: &[Quantity]) -> Html {
    let bounds = quantities.iter().find_map(|one| match one.role {
        Role::Gene { bounds } if one.name == name => bounds,
        _ => None,
    });
    let bounded = bounds.filter(|(low, high)| low < high).zip(value.as_f64());
    let cell = |class: &str, content: String| Html::classed("td", class, content);
    let [low, bar, high] = match bounded {
        Some(((low, high), value)) => {
            let ends = [low, high].map(rounded);
            [cell("number soft", ends[0].clone()), bar(low, high, value), cell("soft", ends[1].clone())]
        }
        None => [cell("soft", String::new()), cell("", String::new()), cell("soft", String::new())],
    };
    let first = Html::of("th", &[("scope", "row")], name);
    Html::of("tr", &[], [first, cell("number", shown(value)), low, bar, high])
}

/// A bar with a mark at the value.
fn bar(low: f64, high: f64, value: f64) -> Html {
    // As on the page: positive bounds far apart are drawn by powers of ten.
    let by = |value: f64| if low > 0.0 && high / low > 1000.0 { value.log10() } else { value / 2.0 };
    let share = ((by(value) - by(low)) / (by(high) - by(low))).clamp(0.0, 1.0);
    let svg = format!(
        "<svg class=\"bar\" width=\"{WIDTH}\" height=\"14\" aria-hidden=\"true\"><rect y=\"3\" width=\"{WIDTH}\" \
         height=\"8\" rx=\"3\"/><rect class=\"at\" x=\"{:.1}\" width=\"5\" height=\"14\" rx=\"2\"/></svg>",
        share * (WIDTH - 5.0)
    );
    Html::of("td", &[], Html::of_markup(svg))
}

/// A value of JSON as Python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Array(list) => format!("[{}]", list.iter().map(python).collect::<Vec<String>>().join(", ")),
        Value::Object(map) => dictionary(map),
        other => other.to_string(),
    }
}

fn dictionary(map: &Map<String, Value>) -> String {
    let entry = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), python(value));
    format!("{{{}}}", map.iter().map(entry).collect::<Vec<String>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_candidate_can_be_pasted_into_python() {
        let genes = json!({"x": [1.5, -2], "how": "fast", "on": [true, null]});
        assert_eq!(python(&genes), r#"{"x": [1.5, -2], "how": "fast", "on": [True, None]}"#);
    }

    #[test]
    fn a_bar_marks_the_value_between_its_bounds() {
        let place = |low, high, value| {
            let html = bar(low, high, value).into_string();
            html.split(" x=\"").last().and_then(|rest| rest.split('"').next()).map(str::to_owned).unwrap()
        };
        assert_eq!(["0.0", "107.5", "215.0"], [-5.0, 0.0, 5.0].map(|value| place(-5.0, 5.0, value)).as_slice());
        assert_eq!(place(1e-6, 1.0, 1e-3), "107.5");
        assert_eq!(place(0.0, f64::MAX, f64::MAX), "215.0");
    }

    #[test]
    fn genes_have_the_names_of_their_columns() {
        let gene = |name: &str| Quantity { name: name.into(), role: Role::Gene { bounds: None } };
        let names = |part: &str, genes: &Value, known: &[Quantity]| -> Vec<String> {
            named(part, genes, known).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names("x", &json!([1, 2]), &[gene("x[0]"), gene("x[1]")]), ["x[0]", "x[1]"]);
        assert_eq!(names("x", &json!([1]), &[gene("x")]), ["x"]);
        assert_eq!(names("bits", &json!([1, 0]), &[gene("bits")]), ["bits"]);
        assert_eq!(shown(&json!([1, 0])), "10");
    }
}
