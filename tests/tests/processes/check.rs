//! `evoxo check` with programs in C: a pure one, and several ways to make it impure.

use std::{fs, path::Path, process::Command};

use evoxo_tests::programs::{program, workspace};
use serde_json::Value;

/// Compiles the example with a change. Returns the option for `evoxo check`.
fn compiled(directory: &Path, name: &str, from: &str, to: &str) -> String {
    changed(directory, name, &[(from, to)])
}

/// The same with several changes.
fn changed(directory: &Path, name: &str, changes: &[(&str, &str)]) -> String {
    let mut text = fs::read_to_string(workspace().join("examples/programs/rosen.c")).expect("the example");
    for (from, to) in changes {
        assert!(text.contains(from), "the example has changed");
        text = text.replace(from, to);
    }
    let (source, binary) = (directory.join(format!("{name}.c")), directory.join(name));
    fs::write(&source, text).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-ffp-contract=off", "-o"]).arg(&binary).arg(&source).arg("-lm");
    assert!(compiler.status().is_ok_and(|status| status.success()), "{compiler:?}");
    format!("rosen=exec {}", binary.display())
}

/// The exit status of `evoxo check` and everything that it prints.
fn check(arguments: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(program("evoxo")).arg("check").args(arguments).output().expect("evoxo starts");
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(text).expect("UTF-8"))
}

/// The start of the value's computation in the example.
const COST: &str = "double cost = 0;\n    int i;";
/// A change after which the program does not declare its genome.
const UNDECLARED: (&str, &str) = (r#"\"genome\":["#, r#"\"other\":["#);

#[test]
fn pure_programs_pass_and_each_impurity_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let pure = compiled(directory.path(), "pure", COST, COST);
    let (status, said) = check(&["--program", &pure]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.starts_with("rosen is pure as far as 12 candidates show; one candidate takes "), "{said}");
    let impurities = [
        ("kept", "static double cost = 0;\n    int i;", "the same process once more", 0),
        (
            "seeded",
            "char *seed = getenv(\"PYTHONHASHSEED\");\n    double cost = seed ? atof(seed) : 0;\n    int i;",
            "another PYTHONHASHSEED",
            0,
        ),
        ("started", "extern int getpid(void);\n    double cost = getpid();\n    int i;", "a fresh process", 0),
        // This changes only the candidate in the middle, whose genes are all 0.
        (
            "before",
            "static double last;\n    double cost = x[0] == 0 ? last : 0;\n    int i;\n    last = x[0];",
            "the same process in reversed order",
            2,
        ),
        // The first gene that it sees is remembered.
        (
            "first",
            "static double first = -99;\n    double cost = first == -99 ? (first = x[0]) : first;\n    int i;",
            "a fresh process in reversed order",
            0,
        ),
    ];
    for (name, change, way, candidate) in impurities {
        let program = compiled(directory.path(), name, COST, change);
        let (status, said) = check(&["--program", &program, "--json"]);
        assert_eq!(status, Some(1), "{said}");
        let told: Value = serde_json::from_str(&said).expect("JSON");
        let runs: Vec<&Value> = told["differences"].as_array().expect("a list").iter().collect();
        assert_eq!((&told["pure"], told["candidates"].as_u64()), (&Value::from(false), Some(12)), "{name}: {told}");
        let found = |run: &&&Value| run["run"].as_str().is_some_and(|run| run.ends_with(way));
        let run = runs.iter().find(found).unwrap_or_else(|| panic!("{name}: {told}"));
        assert_eq!(run["candidates"][0], candidate, "{name}: {told}");
    }
    let kept = compiled(directory.path(), "kept", COST, impurities[0].1);
    let (_, said) = check(&["--program", &kept, "--candidates", "4"]);
    let first =
        "candidate 0 (all genes low), and 3 more: other values in the same process once more: the program keeps";
    assert!(said.starts_with(first), "{said}");
    assert!(said.ends_with("rosen is not pure: its values must follow from the genes and the seed alone\n"), "{said}");
}

/// Arms that give the program the same candidates are checked once, and every other one too.
#[test]
fn every_arm_of_a_file_is_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rosen.toml");
    let arm = |name: &str, high: u32| {
        format!("[arms.{name}]\n[[arms.{name}.genome]]\nname = \"x\"\nlength = 30\nlow = -5\nhigh = {high}\n")
    };
    let arms = arm("near", 5) + &arm("again", 5) + &arm("wide", 9);
    fs::write(&file, format!("experiment = \"evolve\"\n[settings]\nproblem = \"program:rosen\"\n{arms}"))
        .expect("a file");
    let file = file.to_str().expect("UTF-8");
    let pure = changed(directory.path(), "pure", &[UNDECLARED]);
    let (status, said) = check(&["--program", &pure, file]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.starts_with("rosen is pure as far as 12 candidates of each arm (2 of 3 are different) show; "),
        "{said}"
    );
    assert!(said.contains("in all arms: algorithm = \"cma-es\", because genes are real numbers"), "{said}");
    let kept = "static double kept = 0;\n    double cost = x[0] > 5 ? kept++ : 0;\n    int i;";
    let kept = changed(directory.path(), "kept", &[UNDECLARED, (COST, kept)]);
    let (status, said) = check(&["--program", &kept, file]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("rosen is not pure in arm \"wide\": its values must follow"), "{said}");
    let (_, told) = check(&["--program", &kept, file, "--json"]);
    // After the JSON comes the notice about the algorithm, on standard error.
    let told = serde_json::Deserializer::from_str(&told).into_iter::<Value>().next().expect("JSON").expect("JSON");
    assert_eq!((&told["arm"], &told["pure"]), (&Value::from("wide"), &Value::from(false)), "{told}");
}

/// Each worker checks the program too, and would refuse it. Without the check the run would wait forever.
#[test]
fn programs_that_differ_between_processes_are_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let change = "extern int getpid(void);\n    double cost = getpid();\n    int i;";
    let differing = compiled(directory.path(), "started", COST, change);
    let file = "experiment = \"evolve\"\n[settings]\nproblem = \"program:rosen\"\nevaluations = 100\n";
    fs::write(directory.path().join("rosen.toml"), file).expect("a file");
    let mut run = Command::new(program("evoxo"));
    run.current_dir(directory.path()).args(["run", "rosen.toml", "--program", &differing]);
    let done = run.output().expect("evoxo starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("a program gave another answer when it was asked again"), "{said}");
    // The command that the sentence names accepts the file too.
    let file = directory.path().join("rosen.toml");
    let (status, said) = check(&["--program", &differing, file.to_str().expect("a path")]);
    assert!(status == Some(1) && said.contains("a fresh process"), "{said}");
}

#[test]
fn uncheckable_programs_are_rejected_with_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let (status, said) = check(&["--program", "rosen=exit 3"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the program rosen ended (exit status: 3) before it could introduce itself"), "{said}");
    let bare = changed(directory.path(), "bare", &[UNDECLARED]);
    let (status, said) = check(&["--program", &bare]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("describes the genome: add [[genome]]"), "{said}");
    let file = directory.path().join("rosen.toml");
    let genome = "[[genome]]\nlength = 30\nlow = -5\nhigh = 5\n";
    let text = |problem: &str| format!("experiment = \"evolve\"\n[settings]\nproblem = \"{problem}\"\n");
    fs::write(&file, text("program:rosen") + genome).expect("a file");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(check(&["--program", &bare, file]).0, Some(0));
    fs::write(file, text("sphere")).expect("a file");
    let (status, said) = check(&["--program", &bare, file]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("does not ask a program rosen: give a file that does"), "{said}");
    assert_eq!(check(&[]).0, Some(2));
}
