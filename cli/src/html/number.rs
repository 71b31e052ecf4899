//! Numbers for people: five digits, which is more than any picture shows.

/// A number with five digits that say something, without zeros at its end.
pub(super) fn short(value: f64) -> f64 {
    // The nearest number that is written like this.
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The same as a text.
pub(super) fn number(value: f64) -> String {
    short(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [1000.0, 0.123_456_789, -2_345_678.9, 0.0, 1e-9].map(number);
        assert_eq!(texts, ["1000", "0.12346", "-2345700", "0", "0.000000001"]);
    }
}
