//! Words for people.

/// A stranger's text in quotes, fit for a one-line message: control characters escaped, cut after 40 letters.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// "; did you mean ...?" if some name is near to what was typed: at most a third of its letters and one more differ, where
/// two neighbours that change places are one difference and capitals are none.
#[must_use]
pub fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let lower: String = wrong.chars().take(64).collect::<String>().to_lowercase();
    let nearest = names.map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + wrong.len() / 3 => format!("; did you mean {name:?}?"),
        _ => String::new(),
    }
}

/// A number as people write it: "1,000,000".
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
