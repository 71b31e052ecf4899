//! Names of runs, which users choose.

/// The most characters of a run's name.
const NAME_CHARACTERS_MAX: usize = 64;

/// Checks a run's name. It becomes a directory's name, so few characters are allowed.
///
/// # Errors
/// A sentence that says what a name may be.
pub fn check_run_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.starts_with(plain) && name.chars().all(|c| plain(c) || "-_.".contains(c));
    if good && name.len() <= NAME_CHARACTERS_MAX {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_CHARACTERS_MAX).filter(|c| !c.is_control()).collect();
    Err(format!(
        "{shown:?} cannot name a run: use 1 to {NAME_CHARACTERS_MAX} of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit"
    ))
}

#[cfg(test)]
mod tests {
    use super::check_run_name;

    #[test]
    fn names_that_could_leave_the_store_are_refused() {
        for good in ["invincible", "a", "0.1_b-c", &"x".repeat(64)] {
            assert_eq!(check_run_name(good), Ok(()));
        }
        for bad in ["", ".", "..", "../x", "A", "a/b", "a b", "-a", "a\n", "é", &"x".repeat(65)] {
            assert!(check_run_name(bad).is_err(), "{bad:?}");
        }
    }
}
