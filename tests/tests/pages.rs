//! The pages about experiments agree with the committed results in docs/reproduction.
//!
//! A page has a block for each result, `<!-- evoxo report PATH -->` followed by the output of that command between
//! fences; the path is relative to the page, and the plots of KIND/result-NAME.json are in KIND/NAME. docs/index.html is the
//! front of a gallery of all results. If something differs, the test writes the correct text and fails once: review it and
//! commit it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use evoxo_tests::programs::{program, workspace};

const BEGIN: &str = "<!-- evoxo report ";
const FENCE: &str = "```\n";

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("a directory that can be read").path());
    paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// Writes a file if its content differs; returns whether it did.
fn update(path: &Path, right: &str) -> bool {
    let stale = fs::read_to_string(path).ok().as_deref() != Some(right);
    if stale {
        fs::create_dir_all(path.parent().expect("a file in a directory")).expect("a directory");
        fs::write(path, right).expect("a file that can be written");
    }
    stale
}

/// The printed report of a result, and its plots by name.
fn report(result: &Path) -> (String, BTreeMap<String, String>) {
    let plots = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(program("evoxo"))
        .arg("report")
        .arg(result)
        .arg("--plots")
        .arg(plots.path())
        .output()
        .expect("evoxo starts");
    assert!(output.status.success(), "{}: {}", result.display(), String::from_utf8_lossy(&output.stderr));
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let plots = files(plots.path(), "svg");
    let plots = plots.iter().map(|path| (name(path), fs::read_to_string(path).expect("text"))).collect();
    (String::from_utf8(output.stdout).expect("text"), plots)
}

/// All results below docs/reproduction, in order.
fn results() -> BTreeSet<PathBuf> {
    let kinds = fs::read_dir(workspace().join("docs/reproduction")).expect("a directory that can be read").flatten();
    kinds.flat_map(|kind| files(&kind.path(), "json")).collect()
}

#[test]
fn the_gallery_is_what_the_results_give() {
    let (docs, made) = (workspace().join("docs"), tempfile::tempdir().expect("a temporary directory"));
    let mut command = Command::new(program("evoxo"));
    command.arg("gallery").args(results()).args(["--title", "Six sources, computed again", "--out"]).arg(made.path());
    let output = command.output().expect("evoxo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pages = |directory: &Path| -> BTreeSet<PathBuf> {
        let all = files(directory, "html").into_iter().chain(files(&directory.join("reports"), "html"));
        all.map(|path| path.strip_prefix(directory).expect("it is in there").to_owned()).collect()
    };
    let right = pages(made.path());
    let mut stale: Vec<PathBuf> = pages(&docs).difference(&right).cloned().collect();
    for page in &stale {
        fs::remove_file(docs.join(page)).expect("a file that can be removed");
    }
    let text = |page: &PathBuf| fs::read_to_string(made.path().join(page)).expect("text");
    stale.extend(right.into_iter().filter(|page| update(&docs.join(page), &text(page))));
    assert!(
        stale.is_empty(),
        "these were out of date, and have been made anew or removed: review and commit them: {stale:?}"
    );
}

#[test]
fn pages_and_plots_are_what_the_results_give() {
    let directory = workspace().join("docs/reproduction");
    let (mut stale, mut shown) = (Vec::new(), BTreeSet::new());
    let elsewhere = ["docs/invincible.md", "docs/screening.md"].map(|page| workspace().join(page));
    for page in files(&directory, "md").into_iter().chain(elsewhere) {
        let text = fs::read_to_string(&page).expect("text");
        let mut pieces = text.split(BEGIN);
        let mut right = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (path, rest) = piece.split_once(" -->\n").expect("a path and an arrow behind the mark");
            let mut fenced = rest.splitn(3, FENCE);
            let (Some(""), Some(_), Some(after)) = (fenced.next(), fenced.next(), fenced.next()) else {
                panic!("{}: no block between fences behind the mark of {path}", page.display());
            };
            let result = page.parent().expect("a directory").join(path);
            let (printed, plots) = report(&result);
            right += &format!("{BEGIN}{path} -->\n{FENCE}{printed}{FENCE}{after}");
            let stem = result.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            let beside = result.with_file_name(stem.trim_start_matches("result-"));
            let plots = plots.iter().map(|(name, svg)| (beside.join(name), svg));
            stale.extend(plots.filter(|(path, svg)| update(path, svg)).map(|(path, _)| path));
            shown.insert(result);
        }
        if update(&page, &right) {
            stale.push(page);
        }
    }
    assert!(stale.is_empty(), "these were out of date and have been rewritten: review and commit them: {stale:?}");
    let all = results();
    assert!(!shown.is_empty() && shown == all, "results without a page, or pages without a result: {all:?}, {shown:?}");
}
