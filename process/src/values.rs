//! Times and sizes as people write them.

use std::time::Duration;

use bytesize::ByteSize;

/// The longest time that can be given.
const DAYS_MAX: f64 = 365.0;

/// A time like 90s, 1.5s, 10m, 500ms or 1h 30m; a number alone means seconds. Above 0, and at most a year.
///
/// # Errors
/// A sentence that says what a time looks like.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<f64>().or_else(|_| text.trim().strip_suffix('s').unwrap_or_default().parse());
    let found = match seconds {
        // Fractions of seconds, which humantime does not support.
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    let sensible = |duration: &Duration| !duration.is_zero() && duration.as_secs_f64() <= DAYS_MAX * 86_400.0;
    found
        .filter(sensible)
        .ok_or_else(|| "give a time like 90s, 1.5s, 500ms, 10m or 1h 30m, or a number of seconds".into())
}

/// A size like 512MiB, 2GB or 1.5GiB; a number alone means bytes.
///
/// # Errors
/// A sentence that says what a size looks like.
pub fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>().map(|size| size.as_u64()).map_err(|_| "give a size like 512MiB, 2GiB or 1500MB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in [
            ("90", 90_000),
            ("0.5", 500),
            ("90s", 90_000),
            ("1.5s", 1500),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("500ms", 500),
            ("1m 30s", 90_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(duration(text).map(|duration| duration.as_millis()), Ok(ms), "{text}");
        }
        for text in
            ["", "m", "-1", "-1s", "ten", "0", "0s", "nan", "inf", "infs", "1e300", "10y", "99999999999999999999"]
        {
            assert!(duration(text).is_err(), "{text}: {:?}", duration(text));
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("1024", 1024), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29), ("2GB", 2_000_000_000)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "-1", "much", "1 2", "GiB"] {
            assert!(bytes(text).is_err(), "{text}: {:?}", bytes(text));
        }
    }
}
