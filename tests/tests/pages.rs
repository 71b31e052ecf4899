//! The pages about experiments agree with the committed results in docs/reproduction.
//!
//! A page has a block for each result: `<!-- evoxo report PATH -->`, then the output of that command between fences, then a
//! line that says how to compute the run again. The path is relative to the page. The figures of KIND/result-NAME.json are in
//! KIND/NAME: exactly those that a page shows. If something differs, the test writes the right content and fails once: review
//! it and commit it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use evoxo_common::experiment::Config;
use evoxo_tests::{
    programs::{program, workspace},
    registry,
    reproduction::{directories, figures_of, figures_shown, files, keep, read, results, shown},
};

const BEGIN: &str = "<!-- evoxo report ";
const FENCE: &str = "```\n";
/// The start of the line after a block.
const AGAIN: &str = "Computed by `evoxo run ";

/// Writes a file if its content differs. Returns whether it did.
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

/// The line that says how to compute a run again, with the file in experiments/ that has its configuration.
fn computed_by(result: &Path) -> Option<String> {
    let json = read(result);
    let hash = json["config_hash"].as_str().expect("a hash");
    let file = files(&workspace().join("experiments"), "toml").into_iter().find_map(|file| {
        let (name, text) = (file.file_name()?.to_str()?.to_owned(), fs::read_to_string(&file).ok()?);
        let config = Config::parse(registry(), &name, &text, &[]).ok()?;
        (config.hash().to_string() == hash).then_some((name, config.replicas))
    });
    let (name, replicas) = file?;
    let more = match json["replicas"].as_u64() {
        Some(same) if same == u64::from(replicas) => String::new(),
        other => format!(" --replicas {}", other?),
    };
    Some(format!("{AGAIN}experiments/{name}{more}`: the same command gives this digest again, and the whole result.\n"))
}

/// The page with the blocks that its results give, and those results.
fn page_and_results(page: &Path) -> (String, Vec<PathBuf>) {
    let text = fs::read_to_string(page).expect("text");
    let mut pieces = text.split(BEGIN);
    let (mut right, mut found) = (pieces.next().unwrap_or_default().to_owned(), Vec::new());
    for piece in pieces {
        let (path, rest) = piece.split_once(" -->\n").expect("a path and an arrow behind the mark");
        let mut fenced = rest.splitn(3, FENCE);
        let (Some(""), Some(_), Some(after)) = (fenced.next(), fenced.next(), fenced.next()) else {
            panic!("{}: no block between fences behind the mark of {path}", page.display());
        };
        let after = after.trim_start_matches('\n');
        let after = match after.strip_prefix(AGAIN) {
            Some(line) => line.split_once('\n').map_or("", |(_, after)| after).trim_start_matches('\n'),
            None => after,
        };
        let result = page.parent().expect("a directory").join(path);
        let again = computed_by(&result).map(|line| format!("\n{line}")).unwrap_or_default();
        right += &format!("{BEGIN}{path} -->\n{FENCE}{}{FENCE}{again}\n{after}", report(&result).0);
        found.push(result);
    }
    (right.trim_end().to_owned() + "\n", found)
}

#[test]
fn pages_match_the_results() {
    let (mut stale, mut shown) = (Vec::new(), BTreeSet::new());
    let elsewhere = ["docs/invincible.md", "docs/screening.md"].map(|page| workspace().join(page));
    let pages = directories(&workspace().join("docs/reproduction")).into_iter().flat_map(|each| files(&each, "md"));
    for page in pages.chain(elsewhere) {
        let (right, results) = page_and_results(&page);
        shown.extend(results);
        if update(&page, &right) {
            stale.push(page);
        }
    }
    assert!(stale.is_empty(), "these were out of date and have been rewritten: review and commit them: {stale:?}");
    let all = results();
    assert!(shown.len() > 20 && shown == all, "results without a page, or pages without a result: {all:?}, {shown:?}");
}

#[test]
fn pictures_match_the_results_and_are_shown() {
    let (shown, mut stale) = (shown(), Vec::new());
    for result in results() {
        let directory = figures_of(&result);
        let plots = report(&result).1.into_iter().map(|(name, svg)| (directory.join(name), svg));
        let plots: BTreeMap<PathBuf, String> = plots.filter(|(path, _)| shown.contains(path)).collect();
        for other in files(&directory, "svg").into_iter().filter(|path| !plots.contains_key(path)) {
            fs::remove_file(&other).expect("a file that can be removed");
            stale.push(other);
        }
        stale.extend(plots.into_iter().filter(|(path, svg)| update(path, svg)).map(|(path, _)| path));
    }
    assert!(stale.is_empty(), "these have been rewritten or removed: review and commit them: {stale:?}");
}

/// `cargo keep` would write exactly the committed content: only curves that a page shows, and only as many digits as the
/// tables need.
#[test]
fn committed_results_are_small() {
    let large = results().into_iter().filter(|path| {
        let kept = keep(&read(path), &figures_shown(path)).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        fs::read_to_string(path).expect("text") != kept
    });
    let large: Vec<PathBuf> = large.collect();
    assert!(large.is_empty(), "write these with `cargo keep RUN FILE`: {large:?}");
}

/// The page of a source starts with a table of its claims and their verdicts, and has at most 2,500 words in addition to what
/// commands print. Details have their own pages.
#[test]
fn pages_start_with_their_verdicts_and_are_short() {
    let pages = files(&workspace().join("docs/reproduction"), "md");
    let pages: Vec<PathBuf> = pages.into_iter().filter(|page| !page.ends_with("README.md")).collect();
    assert!(pages.len() >= 5, "only {} pages", pages.len());
    for page in pages {
        let text = fs::read_to_string(&page).expect("text");
        let head = text.split("\n## ").next().unwrap_or_default();
        assert!(head.contains("| Verdict |\n"), "{}: no verdicts before its first section", page.display());
        let prose = text.split(FENCE).step_by(2);
        let words: usize = prose.map(|part| part.split_whitespace().count()).sum();
        assert!(words <= 2_500, "{}: {words} words; move details to a page of their own", page.display());
    }
}
