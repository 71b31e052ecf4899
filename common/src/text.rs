//! Texts for people.

/// A text from outside in quotes, for a one-line message: control characters are escaped, and it is cut after 40
/// letters.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// "; did you mean ...?" if a name is similar to the wrong one: at most a third of its letters and one more differ,
/// where two exchanged neighbours count as one difference and capitals as none.
#[must_use]
pub fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let lower: String = wrong.chars().take(64).collect::<String>().to_lowercase();
    let nearest = names.map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + wrong.len() / 3 => format!("; did you mean {name:?}?"),
        _ => String::new(),
    }
}

/// A number with separators: "1,000,000".
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

/// A probability to four decimals.
#[must_use]
pub fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}
