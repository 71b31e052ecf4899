//! Times and sizes as users write them.

use std::time::Duration;

use bytesize::ByteSize;

/// The maximum time that can be given, in days.
const DAYS_MAX: f64 = 365.0;

/// Parses a time like 90s, 1.5s, 10m, 500ms or 1h 30m; a number alone means seconds. It must be above 0 and at most a year.
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
    match found {
        Some(found) if found.is_zero() || found.as_secs_f64() > DAYS_MAX * 86_400.0 => {
            Err(format!("give a time of more than 0 and at most {DAYS_MAX} days"))
        }
        Some(found) => Ok(found),
        None => Err("give a time like 90s, 1.5s, 500ms, 10m or 1h 30m, or a number of seconds".into()),
    }
}

/// Parses a size like 512MiB, 2GB or 1.5GiB; a number alone means bytes.
///
/// # Errors
/// A sentence that says what a size looks like.
pub fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>().map(|size| size.as_u64()).map_err(|_| "give a size like 512MiB, 2GiB or 1500MB".into())
}

/// Parses a whole number in this range. The error states the range.
pub fn whole<T: TryFrom<u64> + 'static>(
    min: u64,
    max: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let value = text.parse().ok().filter(|value| (min..=max).contains(value));
        value
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| format!("give a whole number from {min} to {max}"))
    }
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
        for text in ["0", "0s", "500d"] {
            assert_eq!(duration(text), Err("give a time of more than 0 and at most 365 days".into()), "{text}");
        }
    }

    #[test]
    fn whole_numbers_have_a_range() {
        assert_eq!(["1", "1024"].map(whole::<u16>(1, 1024)), [Ok(1), Ok(1024)]);
        for text in ["0", "1025", "-1", "x", "", "1.5"] {
            assert_eq!(whole::<u16>(1, 1024)(text), Err("give a whole number from 1 to 1024".into()), "{text}");
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
