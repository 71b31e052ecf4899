//! The committed results in docs/reproduction: small results of runs, and the figures that pages show.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use evoxo_common::{
    experiment::{
        Config, screen_files,
        small::{small, text, whole},
    },
    plot,
    report::Report,
};
use serde_json::Value;

use crate::{programs::workspace, registry};

/// The fewest and the most significant digits that numbers keep. More than the fewest are kept only if a table needs them.
const DIGITS_MIN: usize = 4;
const DIGITS_MAX: usize = 17;

/// The files of a directory with this extension.
pub fn files(directory: &Path, ending: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("a directory that can be read").path());
    paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// This directory and all directories below it.
pub fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory that can be read").flatten().map(|entry| entry.path());
    let below = entries.filter(|path| path.is_dir()).flat_map(|path| directories(&path));
    std::iter::once(directory.to_owned()).chain(below).collect()
}

/// All committed results.
pub fn results() -> BTreeSet<PathBuf> {
    let directory = workspace().join("docs/reproduction");
    directories(&directory).iter().flat_map(|kind| files(kind, "json")).collect()
}

/// The directory with the figures of a result: KIND/NAME for KIND/result-NAME.json.
pub fn figures_of(result: &Path) -> PathBuf {
    let stem = result.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    result.with_file_name(stem.trim_start_matches("result-"))
}

/// A committed result, converted back to the usual form.
pub fn read(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let result = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    whole(result).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The pictures that the pages of the repository show.
pub fn shown() -> BTreeSet<PathBuf> {
    let docs = directories(&workspace().join("docs"));
    let pages = docs.iter().flat_map(|directory| files(directory, "md")).chain(files(workspace(), "md"));
    let mut found = BTreeSet::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("text");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let pictures = targets.filter(|target| target.ends_with(".svg") || target.ends_with(".png"));
        found.extend(pictures.map(|target| plain(&page.parent().expect("a directory").join(target))));
    }
    found
}

/// The names of the figures of a result that pages show.
pub fn figures_shown(result: &Path) -> BTreeSet<String> {
    let directory = figures_of(result);
    let shown = shown().into_iter().filter(|path| path.parent() == Some(&directory));
    shown.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// The part of a whole result that is committed: as few digits as its tables need, and the curves of the figures with these
/// names.
///
/// # Errors
/// A sentence if it is not a result, or no report can be made from it.
pub fn keep(result: &Value, figures: &BTreeSet<String>) -> Result<String, String> {
    let config = Config::of_result(registry(), result)?;
    let report = |result: &Value| registry().report_of_result(result);
    let all = curves(result);
    let form = |kept: &BTreeSet<(usize, String)>, digits: usize| {
        small(result, &|arm, curve| kept.contains(&(arm, curve.to_owned())), digits)
    };
    let printed = printed(&report(result)?);
    let digits = (DIGITS_MIN..=DIGITS_MAX).find_map(|digits| {
        let report = report(&whole(form(&all, digits)).ok()?).ok()?;
        (self::printed(&report) == printed).then_some((digits, pictures(&config, &report, figures)))
    });
    let (digits, pictures) = digits.ok_or("a small result gives different tables")?;
    if let Some(missing) = figures.iter().find(|name| !pictures.contains_key(*name)) {
        return Err(format!("the report has no figure {missing}, which a page shows"));
    }
    let mut kept = all.clone();
    for curve in all {
        kept.remove(&curve);
        let without = report(&whole(form(&kept, digits))?);
        if without.map(|report| self::pictures(&config, &report, figures)) != Ok(pictures.clone()) {
            kept.insert(curve);
        }
    }
    // A whole result that is made from a small one may have its keys in another order. So it is made twice, and keeping the
    // kept result again changes nothing.
    let kept = |arm: usize, curve: &str| kept.contains(&(arm, curve.to_owned()));
    Ok(text(&small(&whole(small(result, &kept, digits))?, &kept, digits)))
}

/// The curves of a result, each as the index of its arm and its name.
fn curves(result: &Value) -> BTreeSet<(usize, String)> {
    let arms = result["arms"].as_array().into_iter().flatten().enumerate();
    let of_arm = |(place, arm): (usize, &Value)| {
        let names = arm["curves"].as_object().into_iter().flatten().filter(|(_, curve)| curve.is_object());
        names.map(|(name, _)| (place, name.clone())).collect::<Vec<_>>()
    };
    arms.flat_map(of_arm).collect()
}

/// The text of a report as a person reads it.
fn printed(report: &Report) -> String {
    let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
    format!("{}\n{}", tables.join("\n"), report.notes.join("\n"))
}

/// The pictures of a report that have one of these names, as SVG.
fn pictures(config: &Config, report: &Report, names: &BTreeSet<String>) -> BTreeMap<String, String> {
    let figures = report.figures.iter().filter(|figure| names.contains(&figure.name));
    let figures = figures.map(|figure| (figure.name.clone(), plot::svg(figure)));
    let of_screen = screen_files(config, &report.json).pictures;
    figures.chain(of_screen.into_iter().filter(|(name, _)| names.contains(name))).collect()
}
