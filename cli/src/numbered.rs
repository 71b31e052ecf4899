//! The directory for a run's results if none is given: out/NAME, or out/NAME-2 and so on if a run with other settings is
//! there. A program, a function or a setting can be changed and computed again without losing the earlier
//! results.

use std::path::{Path, PathBuf};

use evoxo_common::{
    card::Card,
    experiment::{Change, Config, Registry},
};

use crate::{
    directory::{CONFIG, differs, nothing_is_computed},
    history::Best,
    kept::Kept,
    say::notice,
};

/// The highest number of a directory.
pub(crate) const NUMBER_MAX: u32 = 9999;
/// The most letters of a name before its number. With the number, it must still be valid as a run's name.
const NAME_MAX: usize = 58;
/// At most this many arms of the earlier run are named.
const ARMS_MAX: usize = 4;

/// A directory for a run.
pub(crate) struct RunDirectory {
    pub(crate) path: PathBuf,
    /// The directory's number; the name of directory 1 has no number.
    pub(crate) number: u32,
    /// The newest run with other settings, and what differs. `None` if this run's directory existed already.
    before: Option<(PathBuf, String)>,
}

/// How a numbered directory fits a run.
enum Fit {
    /// It holds this run.
    Same,
    /// It holds a run that this one continues or replaces.
    Usable,
    /// It holds a run with other settings; the text says which.
    Other(String),
}

impl RunDirectory {
    /// The directory for a run with this name. With `may_change`, a run that ends earlier is continued in its directory.
    pub(crate) fn of(registry: &Registry, name: &str, config: &Config, may_change: bool) -> Self {
        let path = |number: u32| PathBuf::from("out").join(numbered(name, number));
        let mut last = 1;
        while last < NUMBER_MAX && path(last + 1).exists() {
            last += 1;
        }
        let fit = |number: u32| fit(registry, &path(number), config, may_change);
        let known = |number: u32| Self { path: path(number), number, before: None };
        if let Some(same) = (1..=last).rev().find(|number| matches!(fit(*number), Some(Fit::Same))) {
            return known(same);
        }
        match fit(last) {
            Some(Fit::Other(what)) if last < NUMBER_MAX => {
                Self { path: path(last + 1), number: last + 1, before: Some((path(last), what)) }
            }
            // Anything else in the directory is found and reported when the directory is opened.
            _ => known(last),
        }
    }

    /// Prints which directory is used, if it is not the first one.
    pub(crate) fn tell(&self) {
        if let Some((before, what)) = &self.before {
            let (before, here) = (before.display(), self.path.display());
            notice(format_args!(
                "{before} contains a run with {what}, so the results of this run go into {here} (--out chooses another \
                directory)"
            ));
        }
    }

    /// The outcome of the earlier run, for comparison.
    pub(crate) fn compared(&self, registry: &Registry) -> Option<String> {
        let (before, what) = self.before.as_ref()?;
        let kept = Kept::read(registry, before).ok()?;
        let answers = kept.best(registry).unwrap_or_default();
        let answer = |(best, card, _): &(Best, Card, Option<PathBuf>)| {
            let values = card.champion.answer()?.values;
            let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let arm = &kept.config.arms[best.arm].name;
            Some(if kept.config.arms.len() == 1 { values.join(", ") } else { format!("{arm}: {}", values.join(", ")) })
        };
        let answers: Vec<String> = answers.iter().filter_map(answer).take(ARMS_MAX).collect();
        let said = if answers.is_empty() { kept.conclusion() } else { answers.join("; ") };
        Some(format!("the earlier run, in {}, with {what}: {said}", before.display()))
    }
}

/// The name with its number: "rosen", "rosen-2".
pub(crate) fn numbered(name: &str, number: u32) -> String {
    if number == 1 {
        return name.to_owned();
    }
    format!("{}-{number}", name.chars().take(NAME_MAX).collect::<String>())
}

/// How the directory fits; `None` if it has no run that this build can read.
fn fit(registry: &Registry, path: &Path, config: &Config, may_change: bool) -> Option<Fit> {
    let file = path.join(CONFIG);
    let text = std::fs::read_to_string(&file).ok()?;
    let there = Config::parse(registry, &file.display().to_string(), &text, &[]).ok()?;
    Some(match config.change_from(&there) {
        Change::None => Fit::Same,
        Change::Longer(_) if may_change => Fit::Usable,
        Change::Other(_) if may_change && nothing_is_computed(path) => Fit::Usable,
        Change::Longer(what) | Change::Other(what) => Fit::Other(differs(config, &there, &what)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_has_no_number() {
        assert_eq!(numbered(&"a".repeat(64), 12).len(), 61);
        assert_eq!([1, 2, 17].map(|number| numbered("rosen", number)), ["rosen", "rosen-2", "rosen-17"]);
    }

    #[test]
    fn a_directory_matches_its_run() {
        let registry = evoxo_experiments::registry();
        let config = |rounds: u32, seed: u32| {
            let text = format!("experiment = \"dispatch\"\nseed = {seed}\n[settings]\nrounds = {rounds}\n");
            Config::parse(&registry, "a file", &text, &[]).unwrap()
        };
        let desk = tempfile::tempdir().unwrap();
        assert!(fit(&registry, desk.path(), &config(2, 1), true).is_none(), "there is no run");
        std::fs::write(desk.path().join(CONFIG), config(2, 1).to_toml()).unwrap();
        assert!(matches!(fit(&registry, desk.path(), &config(2, 1), false), Some(Fit::Same)));
        // Nothing of the run was computed.
        assert!(matches!(fit(&registry, desk.path(), &config(3, 1), true), Some(Fit::Usable)));
        std::fs::write(desk.path().join("result.json"), "").unwrap();
        let Some(Fit::Other(what)) = fit(&registry, desk.path(), &config(2, 7), true) else { panic!("another seed") };
        assert_eq!(what, "other settings (seed is 1 there, and 7 here)");
    }
}
