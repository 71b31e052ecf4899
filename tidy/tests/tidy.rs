//! Checks that would otherwise need a reviewer: the direction of dependencies, pure cores, sizes, reasons, links.

use std::{collections::BTreeSet, fs};

use evoxo_tidy::{
    assert_none, files, functions,
    imports::{circles, folder, graph, used},
    methods::{folder_circles, method_circles, spread_types},
    sources, workspace,
};

const FILE_LINES_MAX: usize = 800;
/// Longer files get a warning: does all of it belong together?
const FILE_LINES_MANY: usize = 500;
const FUNCTION_LINES_MAX: usize = 80;
/// The most lines of code of the example from outside, without blank lines and comments.
const EXAMPLE_LINES_MAX: usize = 100;
/// The most files of a circle within one folder.
const CIRCLE_FILES_MAX: usize = 3;
/// The dependencies of a package, from all sections.
fn dependencies(package: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace().join(package).join("Cargo.toml")).expect("a manifest");
    let sections =
        text.split("\n[").filter(|section| section.lines().next().is_some_and(|head| head.ends_with("dependencies]")));
    let lines = sections.flat_map(|section| section.lines().skip(1));
    let names = lines.filter(|line| line.contains('=') && !line.starts_with('#'));
    names.map(|line| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn crates_depend_in_one_direction() {
    const OURS: [(&str, &[&str]); 15] = [
        ("tidy", &[]),
        ("generate", &[]),
        ("proto", &[]),
        ("common", &["evoxo-proto"]),
        ("games", &["evoxo-common"]),
        ("experiments/evolve", &["evoxo-common"]),
        ("experiments/nndtf", &["evoxo-common", "evoxo-games"]),
        ("experiments/td3d", &["evoxo-common", "evoxo-games"]),
        ("experiments", &["evoxo-common", "evoxo-games", "evoxo-evolve", "evoxo-nndtf", "evoxo-td3d"]),
        ("process", &[]),
        ("access", &["evoxo-process", "evoxo-proto"]),
        ("coordinator/core", &["evoxo-common", "evoxo-proto", "evoxo-experiments"]),
        (
            "coordinator",
            &[
                "evoxo-access",
                "evoxo-common",
                "evoxo-coordinator-core",
                "evoxo-process",
                "evoxo-proto",
                "evoxo-experiments",
            ],
        ),
        ("worker", &["evoxo-access", "evoxo-common", "evoxo-process", "evoxo-proto"]),
        (
            "cli",
            &[
                "evoxo-access",
                "evoxo-common",
                "evoxo-games",
                "evoxo-process",
                "evoxo-proto",
                "evoxo-coordinator",
                "evoxo-worker",
                "evoxo-experiments",
            ],
        ),
    ];
    const OUTSIDE: [&str; 9] =
        ["tokio", "tokio-stream", "tonic", "tonic-prost", "object_store", "futures-util", "clap", "tracing", "anyhow"];
    let mut wrong = Vec::new();
    for (package, allowed) in OURS {
        let dependencies = dependencies(package);
        assert!(package == "tidy" || dependencies.len() > 1, "the manifest of {package} has an unexpected form");
        for dependency in dependencies {
            if dependency.starts_with("evoxo") && !allowed.contains(&dependency.as_str()) {
                wrong.push(format!("{package} must not depend on {dependency}"));
            }
            let pure = ["common", "games", "coordinator/core"].contains(&package) || package.starts_with("experiments");
            if pure && OUTSIDE.contains(&dependency.as_str()) {
                wrong.push(format!("{package} is pure and must not depend on {dependency}"));
            }
        }
    }
    assert_none(wrong);
}

/// Only programs and tests may know the experiments.
#[test]
fn libraries_name_no_experiment() {
    let may = |name: &str| {
        name.ends_with("/main.rs") || name.contains("/bin/") || name.contains("/tests") || name.contains("/benches/")
    };
    let libraries = ["proto", "common", "games", "process", "access", "coordinator", "worker", "cli"];
    let library = |name: &str| libraries.iter().any(|library| name.starts_with(&format!("{library}/")));
    // `NAME.proto` is in the folder or the crate of the kind.
    let of_kind = |name: &String| {
        let (_, file) = name.strip_prefix("experiments/")?.rsplit_once('/')?;
        file.strip_suffix(".proto").map(str::to_owned)
    };
    let kinds: BTreeSet<String> = files(".proto").keys().filter_map(of_kind).filter(|kind| kind != "rules").collect();
    assert!(kinds.len() >= 8, "only these kinds of experiments: {kinds:?}");
    let mut wrong = Vec::new();
    for (name, text) in sources().into_iter().filter(|(name, _)| library(name) && !may(name)) {
        let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named =
            |line: &str, kind: &str| line.contains(&format!("\"{kind}\"")) || line.contains(&format!("evoxo_{kind}::"));
        let names = |line: &&str| line.contains("evoxo_experiments") || kinds.iter().any(|kind| named(line, kind));
        wrong.extend(code.filter(names).map(|line| format!("{name}: {}", line.trim())));
    }
    assert_none(wrong);
}

#[test]
fn files_of_different_folders_do_not_use_each_other_in_circles() {
    let sources = files(".rs");
    let graph = graph(&sources);
    let arrows: usize = graph.values().map(BTreeSet::len).sum();
    assert!(arrows > 300, "only {arrows} uses were found: the scan is broken");
    let mut wrong = Vec::new();
    for circle in circles(&graph) {
        let folders: BTreeSet<String> = circle.iter().map(|file| folder(file, &sources)).collect();
        if folders.len() > 1 || circle.len() > CIRCLE_FILES_MAX {
            wrong.push(format!("a circle of {} files: {circle:?}", circle.len()));
        }
    }
    assert_none(wrong);
}

#[test]
fn files_do_not_call_the_methods_of_one_type_in_circles() {
    let sources = files(".rs");
    let spread = spread_types(&sources);
    assert!(spread > 15, "only {spread} types are implemented in several files: the scan is broken");
    let mut wrong = Vec::new();
    for circle in method_circles(&sources).into_iter().chain(folder_circles(&sources)) {
        let calls: Vec<String> = circle.calls.iter().map(|call| format!("  {call}")).collect();
        wrong.push(format!("{}: these files call each other in a circle:\n{}", circle.of, calls.join("\n")));
    }
    assert_none(wrong);
}

/// The code in these folders is pure. The coordinator's core is a crate, whose `Cargo.toml` and `clippy.toml` enforce the
/// same.
#[test]
fn cores_are_pure() {
    const PURE: [&str; 2] = ["coordinator/core/src/", "worker/src/core/"];
    const ALLOWED: [&str; 7] = ["std", "bytes", "prost", "evoxo_common", "evoxo_proto", "super", "self"];
    const BANNED: [&str; 13] = [
        "Instant",
        "SystemTime",
        "std::fs",
        "std::net",
        "std::thread",
        "std::env",
        "std::process",
        "tokio",
        "tonic",
        ".await;",
        ".await?",
        "HashMap",
        "HashSet",
    ];
    let mut wrong = Vec::new();
    let core = |name: &str| PURE.iter().any(|pure| name.starts_with(pure));
    let cores: Vec<_> = sources().into_iter().filter(|(name, _)| core(name) && !name.contains("/tests")).collect();
    assert!(cores.len() > 10, "the cores have moved: update this test");
    for (name, text) in cores {
        for path in used(&text) {
            let root = path.first().map(String::as_str).unwrap_or_default();
            // All of its own crate is pure, or only what is declared in the same file. A log level is plain data.
            let own = match name.starts_with("coordinator/") {
                true => root == "crate" || text.contains(&format!("mod {root};")),
                false => root == "tracing" || text.contains(&format!("mod {root};")),
            };
            if !ALLOWED.contains(&root) && !own {
                wrong.push(format!("{name} is pure and must not use {root}"));
            }
        }
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code.filter(|line| BANNED.iter().any(|word| line.contains(word))) {
            wrong.push(format!("{name} is pure: {}", line.trim()));
        }
    }
    assert_none(wrong);
}

#[test]
fn workers_and_coordinators_never_name_each_other() {
    // As a whole word, because metrics have names such as evoxo_workers.
    let has = |text: &str, crate_name: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == crate_name)
    };
    let names = |(name, text): &(String, String)| {
        (name.starts_with("worker/") && has(text, "evoxo_coordinator"))
            || (name.starts_with("coordinator/") && has(text, "evoxo_worker"))
    };
    assert_none(sources().into_iter().filter(names).map(|(name, _)| name));
}

#[test]
fn every_file_says_what_it_is_and_is_not_too_long() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        if !text.starts_with("//!") {
            wrong.push(format!("{name} does not begin with //!"));
        }
        let lines = text.lines().count();
        if lines > FILE_LINES_MANY {
            println!("warning: {name} has {lines} lines");
        }
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{name} has {lines} lines, more than {FILE_LINES_MAX}"));
        }
    }
    assert_none(wrong);
}

#[test]
fn no_function_is_too_long() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, text) in sources() {
        for (line, length, _) in functions(&text) {
            seen += 1;
            if length > FUNCTION_LINES_MAX {
                wrong.push(format!("{name}:{line}: {length} lines, more than {FUNCTION_LINES_MAX}"));
            }
        }
    }
    assert!(seen > 500, "only {seen} functions were found: the scan is broken");
    assert_none(wrong);
}

#[test]
fn no_work_is_left_for_later() {
    // In two pieces, so that the check does not find this file.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("dbg", "!(")];
    let mut wrong = Vec::new();
    for end in [".rs", ".toml", ".md", ".proto", ".service"] {
        for (name, text) in files(end) {
            let marked = |line: &&str| marks.iter().any(|mark| line.contains(mark));
            wrong.extend(text.lines().filter(marked).map(|line| format!("{name}: {}", line.trim())));
        }
    }
    assert_none(wrong);
}

#[test]
fn links_have_targets() {
    let mut wrong = Vec::new();
    for (name, text) in files(".md") {
        let below = workspace().join(&name);
        let directory = below.parent().expect("a file lies in a directory");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:") || path.is_empty();
            if !elsewhere && !directory.join(path).exists() {
                wrong.push(format!("{name}: {target} does not exist"));
            }
        }
    }
    assert_none(wrong);
}

#[test]
fn there_is_a_section_for_changes() {
    let log = fs::read_to_string(workspace().join("CHANGELOG.md")).expect("there is a CHANGELOG.md");
    assert!(log.lines().any(|line| line.starts_with("## ") && line.contains("Unreleased")), "it has no such section");
}

#[test]
fn every_dependency_has_its_reason() {
    let text = fs::read_to_string(workspace().join("Cargo.toml")).expect("a manifest");
    let table = text.split("[workspace.dependencies]").nth(1).and_then(|rest| rest.split("\n[").next());
    let foreign = table.expect("the shared dependencies").lines().filter(|line| line.contains(" = "));
    let without = |line: &&str| !line.starts_with("evoxo-") && !line.contains("# ");
    let mut wrong: Vec<String> = foreign.filter(without).map(|line| format!("no reason: {line}")).collect();
    for package in [
        "tidy",
        "generate",
        "proto",
        "common",
        "games",
        "experiments",
        "experiments/evolve",
        "experiments/nndtf",
        "experiments/td3d",
        "process",
        "access",
        "coordinator/core",
        "coordinator",
        "worker",
        "cli",
        "tests",
    ] {
        let text = fs::read_to_string(workspace().join(package).join("Cargo.toml")).expect("a manifest");
        let mut before = "";
        for line in text.lines() {
            // A dependency with its own version needs its own reason.
            if line.contains("version = \"") && !before.starts_with('#') && !line.contains("# ") {
                wrong.push(format!("no reason: {package}: {line}"));
            }
            before = line;
        }
    }
    assert_none(wrong);
}

#[test]
fn the_example_is_short_and_uses_the_same_crates() {
    let (_, example) =
        sources().into_iter().find(|(name, _)| name == "examples/onemax/src/lib.rs").expect("the example");
    let code = example.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    assert!((1..=EXAMPLE_LINES_MAX).contains(&code), "examples/onemax has {code} lines of code");
    let text = |name: &str| fs::read_to_string(workspace().join(name)).expect("a file of the example");
    let sections = text("examples/onemax/Cargo.toml");
    let dependencies = sections.split("\n[").filter(|section| section.contains("dependencies]"));
    let without = dependencies.flat_map(str::lines).filter(|line| line.contains(" = ") && !line.contains("# "));
    assert_none(without.map(|line| format!("no reason: examples/onemax: {line}")));
    // Crates in other versions would be compiled twice, and nobody would check them.
    let packages = |lock: &str| -> BTreeSet<String> {
        let package = |entry: &str| entry.lines().take(3).collect::<Vec<&str>>().join(" ");
        text(lock).split("[[package]]").skip(1).map(package).collect()
    };
    let shared = packages("Cargo.lock");
    // libfuzzer-sys compiles with several processes, for which it needs jobserver.
    let alone = ["onemax", "evoxo-fuzz", "libfuzzer-sys", "arbitrary", "jobserver"].map(|name| format!("\"{name}\""));
    let own = [packages("examples/onemax/Cargo.lock"), packages("fuzz/Cargo.lock")].into_iter().flatten();
    let others = own.filter(|package| !shared.contains(package) && !alone.iter().any(|name| package.contains(name)));
    assert_none(others.map(|package| format!("not in the workspace's Cargo.lock: {package}")));
}
