//! `cargo mutate [PART ...]`: applies the mutations of `tests/mutations.toml` one by one to a copy of the sources, and
//! reports those that the tests do not catch. With PARTs, it applies only mutations whose file, function or fragment contains
//! one of them. Each takes from 15 seconds to two minutes.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use evoxo_tidy::{
    files,
    mutations::{Mutation, mutations},
    workspace,
};

/// A mutant that loops is stopped after so long.
const SUITE_TIME_MAX: Duration = Duration::from_secs(300);

#[expect(clippy::print_stdout, reason = "a report for the person who runs it")]
fn main() -> ExitCode {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let program = std::env::current_exe().expect("a program knows where it is");
    let place = program.ancestors().nth(3).expect("an example lies in target/PROFILE/examples").join("mutate");
    let copy = place.join("tree");
    // At first the copy does not exist.
    drop(fs::remove_dir_all(&copy));
    copy_tree(workspace(), &copy);
    for file in ["common/", "games/", "access/", "coordinator/core/"] {
        assert_eq!(run_suites(&copy, file), None, "the tests must pass before anything is changed");
    }
    let (mut applied, mut survived) = (0, 0);
    let sources = files(".rs");
    for mutation in mutations() {
        let (file, place) = mutation.place(&sources).expect("the list fits the sources");
        let Mutation { function, old, new, .. } = &mutation;
        let texts = [file, function.as_deref().unwrap_or_default(), old];
        if !parts.is_empty() && !parts.iter().any(|part| texts.iter().any(|text| text.contains(part))) {
            continue;
        }
        let (path, good) = (copy.join(file), &sources[file]);
        let mut changed = good.clone();
        changed.replace_range(place, new);
        fs::write(&path, changed).expect("a source file");
        let start = Instant::now();
        let caught = run_suites(&copy, file);
        fs::write(&path, good).expect("a source file");
        applied += 1;
        survived += u32::from(caught.is_none());
        let verdict = caught.unwrap_or("SURVIVED");
        println!("{verdict:<24} {:>4} s  {file}: {old}", start.elapsed().as_secs());
    }
    println!("{applied} mutations, {survived} survived");
    if survived == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The name of the first suite that fails, or `None`. The fastest suite runs first. The engine is tested by the
/// experiments too.
fn run_suites(directory: &Path, file: &str) -> Option<&'static str> {
    let common: (&'static str, &[&str]) = ("caught by common", &["-p", "evoxo-common", "--lib"]);
    let games = ("caught by games", &["-p", "evoxo-games", "--lib"][..]);
    let evolve = ("caught by evolve", &["-p", "evoxo-evolve"][..]);
    let nndtf = ("caught by nndtf", &["-p", "evoxo-nndtf"][..]);
    let td3d = ("caught by td3d", &["-p", "evoxo-td3d"][..]);
    let experiments = ("caught by experiments", &["-p", "evoxo-experiments"][..]);
    let core = ("caught by coordinator-core", &["-p", "evoxo-coordinator-core", "--lib"][..]);
    let coordinator = ("caught by coordinator", &["-p", "evoxo-coordinator", "--lib"][..]);
    let access = ("caught by access", &["-p", "evoxo-access", "--lib"][..]);
    let simulation = ("caught by simulation", &["-p", "evoxo-tests", "--test", "simulation"][..]);
    let suites: &[_] = match file.split('/').next() {
        Some("common") => &[common, experiments, evolve, nndtf, td3d, simulation],
        Some("access") => &[access],
        Some("games") => &[games, experiments, nndtf, td3d],
        Some("experiments") if file.starts_with("experiments/evolve/") => &[evolve, experiments, simulation],
        Some("experiments") if file.starts_with("experiments/nndtf/") => &[nndtf, experiments, simulation],
        Some("experiments") if file.starts_with("experiments/td3d/") => &[td3d, experiments, simulation],
        Some("experiments") => &[experiments, simulation],
        Some("coordinator") if file.starts_with("coordinator/core/") => &[core, coordinator, simulation],
        _ => &[coordinator, simulation],
    };
    suites.iter().find(|(_, arguments)| !passes(directory, arguments)).map(|(name, _)| *name)
}

fn cargo_test(directory: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(directory).args(["test", "--quiet", "--offline"]).args(arguments);
    cargo.env("CARGO_TARGET_DIR", directory.with_file_name("target")).env("INSTA_UPDATE", "no").env("SEEDS", "500");
    cargo.stdout(Stdio::null()).stderr(Stdio::null());
    cargo
}

fn passes(directory: &Path, arguments: &[&str]) -> bool {
    let built = cargo_test(directory, arguments).arg("--no-run").status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "{arguments:?} does not compile: a mutation must be valid Rust"
    );
    // It gets its own process group, so that its tests can be ended with it.
    let mut child = cargo_test(directory, arguments).process_group(0).spawn().expect("cargo starts");
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.success();
        }
        if start.elapsed() > SUITE_TIME_MAX {
            let group = format!("-{}", child.id());
            drop(Command::new("kill").args(["-KILL", "--", &group]).status());
            drop(child.wait());
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Copies the sources without build results.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory that can be read") {
        let path = entry.expect("a directory that can be read").path();
        let name = path.file_name().expect("an entry has a name");
        match path.is_dir() {
            true if ["target", ".git", "runs", "results"].iter().any(|other| name == *other) => {}
            true => copy_tree(&path, &to.join(name)),
            false => drop(fs::copy(&path, to.join(name)).expect("a file that can be copied")),
        }
    }
}
