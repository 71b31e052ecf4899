//! Texts for people.

use bytesize::ByteSize;

/// A text from outside in quotes, for a one-line message: control characters are escaped, and the text is cut after 40
/// letters.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The beginning of a text that fits into `bytes_max` bytes, without cutting a letter.
#[must_use]
pub fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = text.char_indices().map(|(start, letter)| start + letter.len_utf8()).take_while(|end| *end <= bytes_max);
    &text[..end.last().unwrap_or(0)]
}

/// "; did you mean ...?" if a name is similar to the wrong one: at most a third of its letters plus one differ. Two exchanged
/// neighbours count as one difference, and upper or lower case does not count.
#[must_use]
pub fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let lower: String = wrong.chars().take(64).collect::<String>().to_lowercase();
    let nearest = names.map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + wrong.len() / 3 => format!("; did you mean {name:?}?"),
        _ => String::new(),
    }
}

/// A count of things whose plural ends with an s: "1 number", "3 numbers".
#[must_use]
pub fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// The bytes that a size like "64 MiB", "2GB" or "0" stands for.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    text.parse::<ByteSize>().ok().map(|size| size.as_u64())
}

/// A size without loss, in the largest unit that has no decimals: "64 MiB". [`size`] is the inverse.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let larger = if bytes == 0 { 0 } else { (bytes.trailing_zeros() as usize / 10).min(units.len() - 1) };
    format!("{} {}", bytes >> (10 * larger), units[larger])
}

/// A number with separators: "1,000,000".
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

/// Whole numbers up to this are exact in every program; most programs have only floats.
pub const WHOLE_MAX: u64 = 1 << 53;

/// A number with all its digits, for a table that programs read. A large number has an exponent, because programs take a long
/// row of digits for a whole number that fits none of their types, or for a text.
#[must_use]
pub fn exact(value: f64) -> String {
    if value.abs() > WHOLE_MAX as f64 { format!("{value:e}") } else { value.to_string() }
}

/// A number with five significant digits, without trailing zeros: more than any picture shows.
#[must_use]
pub fn number(value: f64) -> String {
    format!("{value:.4e}").parse().unwrap_or(value).to_string()
}

/// A number with four significant digits, for people who read a result: "27.05", "0.5", "1.235e-9". Below ten million, digits
/// before the point are never cut off.
#[must_use]
pub fn rounded(value: f64) -> String {
    if value == 0.0 {
        // Also for -0.0, which is the same number.
        return "0".into();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.3e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    match exponent {
        -4..7 => {
            let plain = format!("{value:.*}", usize::try_from(3 - exponent).unwrap_or(0));
            if plain.contains('.') { plain.trim_end_matches('0').trim_end_matches('.').to_owned() } else { plain }
        }
        _ => scientific,
    }
}

/// A text on lines of at most `width` letters, broken at spaces. Each line but the first starts with `beginning`. A longer
/// word has its own line.
#[must_use]
pub fn wrapped(text: &str, width: usize, beginning: &str) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let letters = word.chars().count();
        if used > 0 && used + 1 + letters > width {
            out.push('\n');
            out.push_str(beginning);
            used = beginning.chars().count();
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += letters;
    }
    out
}

/// A probability to four decimals.
#[must_use]
pub fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_zero_has_no_sign() {
        assert_eq!([rounded(-0.0), rounded(0.0), exact(-0.0)], ["0", "0", "-0"], "a table for programs has every bit");
    }

    #[test]
    fn large_numbers_have_an_exponent() {
        let all = [0.1, -3.0, 9e15, 1e16, 9_007_199_254_740_994.0, -1e300, f64::MAX, 5e-324];
        for value in all {
            assert_eq!(exact(value).parse(), Ok(value));
            assert_eq!(exact(value).contains('e'), value.abs() > 9.1e15 || value == all[4], "{value}");
        }
        assert_eq!([exact(9e15), exact(1e16)], ["9000000000000000", "1e16"]);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [1000.0, 0.123_456_789, -2_345_678.9, 0.0, 1e-9].map(number);
        assert_eq!(texts, ["1000", "0.12346", "-2345700", "0", "0.000000001"]);
    }

    #[test]
    fn displayed_numbers_have_four_digits() {
        let numbers =
            [27.050_211, 0.5, 0.000_069_774, 0.0099996, 1_234_567.8, 12_345_678.0, 1.2345e-9, -0.25, 0.0, 1.0];
        let texts = ["27.05", "0.5", "6.977e-5", "0.01", "1234568", "1.235e7", "1.235e-9", "-0.25", "0", "1"];
        assert_eq!(numbers.map(rounded), texts);
        assert_eq!([f64::NAN, f64::INFINITY].map(rounded), ["NaN", "inf"]);
    }

    #[test]
    fn sizes_are_written_without_loss() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (64 << 20, "64 MiB"), (3 << 29, "1536 MiB"), (1 << 62, "4194304 TiB")]
        {
            assert_eq!((size_text(bytes).as_str(), size(text)), (text, Some(bytes)));
        }
        assert_eq!([size("2GB"), size("0"), size("1.5MiB")], [Some(2_000_000_000), Some(0), Some(3 << 19)]);
        assert_eq!([size(""), size("MiB"), size("-1"), size("64 apples")], [None; 4]);
    }

    #[test]
    fn texts_are_wrapped_at_spaces_without_loss() {
        let text = "- Peak: a trial's best test, as in the paper; incomprehensibilities are whole.";
        let lines = wrapped(text, 20, "  ");
        assert_eq!(lines, "- Peak: a trial's\n  best test, as in\n  the paper;\n  incomprehensibilities\n  are whole.");
        assert_eq!(wrapped(text, 1000, "  "), text);
        assert_eq!(wrapped("", 10, ""), "");
    }
}
