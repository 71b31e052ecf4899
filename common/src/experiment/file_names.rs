//! Names of the files that a run leaves.

use super::Config;

/// The name, without extension, of a replica's champion's card in a run's directory `champions`. Arms whose names
/// differ only in characters that file names should not have still get different files.
#[must_use]
pub fn champion_stem(config: &Config, arm: usize, replica: u32) -> String {
    format!("{}-{replica}", file_name(config, arm))
}

/// An arm's name as part of a file's: letters, digits, points and dashes. If an earlier arm has the same, or nothing is
/// left, an underscore and the arm's index follow; no other name has an underscore.
#[must_use]
pub fn file_name(config: &Config, arm: usize) -> String {
    let names: Vec<&str> = config.arms[..=arm].iter().map(|arm| arm.name.as_str()).collect();
    plain_name(&names, arm)
}

/// The same of names of arms.
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
