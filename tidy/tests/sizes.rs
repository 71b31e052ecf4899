//! The size of a checkout. Files that programs write are small or not committed: docs/decisions/small-results.md.

use std::{collections::BTreeMap, process::Command};

use evoxo_tidy::workspace;

/// The most bytes of all files below docs/.
const DOCS_BYTES_MAX: u64 = 3_000_000;
/// The most bytes of a checkout apart from its sources.
const OTHERS_BYTES_MAX: u64 = 4_500_000;
/// The extensions of sources.
const SOURCES: [&str; 3] = [".rs", ".py", ".js"];
/// The most bytes of a file that a program wrote.
const GENERATED_BYTES_MAX: u64 = 100_000;
/// The extensions of such files below docs/.
const GENERATED: [&str; 5] = [".json", ".svg", ".png", ".csv", ".html"];

/// The files that are committed, or would be, with their sizes. `None` outside of a checkout.
fn sizes() -> Option<BTreeMap<String, u64>> {
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(listed).current_dir(workspace()).output().ok()?;
    let names = output.status.success().then(|| String::from_utf8(output.stdout).expect("names are text"))?;
    let size = |name: &str| Some((name.to_owned(), workspace().join(name).symlink_metadata().ok()?.len()));
    Some(names.split_terminator('\0').filter_map(size).collect())
}

#[test]
fn a_checkout_is_small() {
    // An archive of the sources has no list of files.
    let Some(sizes) = sizes() else { return };
    assert!(sizes.len() > 1000, "only {} files", sizes.len());
    let docs = || sizes.iter().filter(|(name, _)| name.starts_with("docs/"));
    let others = sizes.iter().filter(|(name, _)| !SOURCES.iter().any(|end| name.ends_with(end)));
    let (others, in_docs): (u64, u64) = (others.map(|(_, size)| size).sum(), docs().map(|(_, size)| size).sum());
    assert!(
        in_docs <= DOCS_BYTES_MAX,
        "docs/ has {in_docs} bytes, more than {DOCS_BYTES_MAX}: see docs/decisions/small-results.md"
    );
    assert!(
        others <= OTHERS_BYTES_MAX,
        "what is not a source has {others} bytes, more than {OTHERS_BYTES_MAX}: see docs/decisions/small-results.md"
    );
    let generated = docs().filter(|(name, _)| GENERATED.iter().any(|end| name.ends_with(end)));
    let large: Vec<_> = generated.filter(|(_, size)| **size > GENERATED_BYTES_MAX).collect();
    assert!(large.is_empty(), "a program made these, and they are larger than {GENERATED_BYTES_MAX} bytes: {large:?}");
    let pages: Vec<_> = docs().filter(|(name, _)| name.ends_with(".html")).collect();
    assert!(pages.is_empty(), "`evoxo gallery` makes these: they are not committed: {pages:?}");
}
