//! Names of the files that a run leaves behind.

use super::Config;

/// The file name, without extension, of the card of a replica's champion in the run's directory `champions`. Arms get
/// different files even if their names differ only in characters that file names should not have.
#[must_use]
pub fn champion_stem(config: &Config, arm: usize, replica: u32) -> String {
    format!("{}-{replica}", file_name(config, arm))
}

/// An arm's name as part of a file name: letters, digits, points and dashes. If an earlier arm has the same name, or nothing
/// remains of the name, an underscore and the arm's index are appended; no other name has an underscore.
#[must_use]
pub fn file_name(config: &Config, arm: usize) -> String {
    let names: Vec<&str> = config.arms[..=arm].iter().map(|arm| arm.name.as_str()).collect();
    plain_name(&names, arm)
}

/// The same as [`file_name`], for the arm with this index among these names.
pub(super) fn plain_name(names: &[impl AsRef<str>], arm: usize) -> String {
    let plain = |name: &str| {
        let words: Vec<&str> =
            name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').filter(|w| !w.is_empty()).collect();
        words.join("-").trim_matches('.').to_owned()
    };
    let name = plain(names[arm].as_ref());
    let taken = names[..arm].iter().any(|other| plain(other.as_ref()).eq_ignore_ascii_case(&name));
    if taken || name.is_empty() { format!("{name}_{arm}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::collections::BTreeSet;

    #[test]
    fn every_arm_has_its_own_files() {
        let names = ["O, 1", "O 1", "o/1", "O-1_1", "O-1-1", "..", "*", "../../x"];
        let arms: String = names.iter().map(|name| format!("[arms.\"{name}\"]\n")).collect();
        let config = testing::config(&arms);
        let files: Vec<String> = (0..names.len()).map(|arm| champion_stem(&config, arm, 7)).collect();
        insta::assert_snapshot!(files.join("\n"));
        assert_eq!(files.iter().map(|file| file.to_lowercase()).collect::<BTreeSet<_>>().len(), names.len());
    }
}
