//! The paths of the real programs, which are built if they are missing or older than their sources.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
    time::SystemTime,
};

const PROGRAMS: [&str; 3] = ["evoxo-coordinator", "evoxo-worker", "evoxo"];
const SOURCES: [&str; 10] =
    ["Cargo.lock", "proto", "common", "games", "experiments", "process", "access", "coordinator", "worker", "cli"];

/// The workspace's directory.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in the workspace")
}

/// The up-to-date program of that name, in the profile of this test.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(fresh).join(name)
}

/// Runs evoxo in a directory.
///
/// # Panics
/// If it cannot be started.
pub fn evoxo(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(program("evoxo")).current_dir(directory).args(arguments).output().expect("evoxo starts")
}

/// What evoxo prints in a directory, and its exit status.
///
/// # Panics
/// If it cannot be started.
pub fn said(directory: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = evoxo(directory, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code())
}

fn fresh() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let directory = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let newest = SOURCES.iter().map(|source| newest_below(&workspace().join(source))).max();
    let built = |program: &str| fs::metadata(directory.join(program)).and_then(|found| found.modified()).ok();
    if PROGRAMS.iter().any(|program| built(program) < newest) {
        build(directory, &["-p", "evoxo"]);
    }
    directory.to_owned()
}

/// The modification time of a file, or of the newest source below a directory.
fn newest_below(path: &Path) -> SystemTime {
    let Ok(entries) = fs::read_dir(path) else {
        return fs::metadata(path).and_then(|file| file.modified()).expect("the sources are here");
    };
    let paths = entries.map(|entry| entry.expect("a directory that can be read").path());
    let source = |path: &PathBuf| {
        path.is_dir()
            || ["rs", "toml", "proto", "html", "css", "js", "svg"]
                .iter()
                .any(|kind| path.extension().is_some_and(|found| found == *kind))
    };
    let tests = |path: &PathBuf| path.ends_with("tests") || path.ends_with("benches");
    paths
        .filter(|path| source(path) && !tests(path))
        .map(|path| newest_below(&path))
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// An example of this package, in the profile of this test. Cargo builds it if necessary.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let directory = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    build(directory, &["-p", "evoxo-tests", "--example", name]);
    directory.join("examples").join(name)
}

fn build(directory: &Path, what: &[&str]) {
    let (target, profile) = (directory.parent(), directory.file_name().and_then(|name| name.to_str()));
    let (target, profile) = target.zip(profile).expect("a test lies in target/PROFILE/deps");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).args(["build", "--quiet", "--locked", "--profile"]);
    cargo.arg(if profile == "debug" { "dev" } else { profile }).arg("--target-dir").arg(target);
    cargo.args(what);
    // `cargo test` sets these variables for this package. Some build scripts rerun when the variables change, and then
    // everything that depends on those scripts is compiled again.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        cargo.env_remove(name);
    }
    assert!(cargo.status().is_ok_and(|status| status.success()), "the programs cannot be built: {cargo:?}");
}
