//! `evoxo bench scale`: the same file with several numbers of workers, and as many independent processes. And where the time
//! of a run went. No test looks at how long anything takes.

use std::{
    fs,
    process::{Command, Output},
};

use evoxo_tests::programs::program;
use serde_json::Value;

use crate::{Desk, expected};

/// Runs `evoxo bench scale` on a file of the desk; its temporary files are in `desk/tmp`.
fn scale(desk: &Desk, arguments: &[&str]) -> Output {
    fs::create_dir_all(desk.path("tmp")).expect("a directory");
    let mut command = Command::new(program("evoxo"));
    command.current_dir(desk.path("")).env("TMPDIR", desk.path("tmp")).args(["bench", "scale"]).args(arguments);
    command.output().expect("evoxo starts")
}

/// What is left of the temporary files.
fn left(desk: &Desk) -> usize {
    fs::read_dir(desk.path("tmp")).expect("a directory").count()
}

const PHASES: [&str; 5] = ["computing", "waiting", "absorbing", "saving", "report"];

#[test]
fn each_number_of_workers_has_a_row_and_the_digest_of_one_thread() {
    let desk = Desk::new();
    let Output { status, stdout, stderr } = scale(&desk, &["table.toml", "--workers", "1,2", "--json"]);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let found: Value = serde_json::from_slice(&stdout).expect("JSON");
    let rows = found["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["workers"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    for row in rows {
        assert_eq!(row["digest"], expected(3), "{row}");
        for figure in ["seconds", "independent", "share"] {
            assert!(row[figure].as_f64() > Some(0.0), "{figure} in {row}");
        }
        for phase in PHASES {
            assert!(row["phases"][phase].as_f64() >= Some(0.0), "{phase} in {row}");
        }
        assert!(row["phases"]["computing"].as_f64() > Some(0.0), "{row}");
    }
    assert!(found["equal"] == true && found["cores"].as_u64() > Some(0), "{found}");
    assert_eq!(left(&desk), 0, "temporary files are removed");
}

#[test]
fn the_table_has_a_line_for_each_number_and_wrong_usage_is_named() {
    let desk = Desk::new();
    let Output { status, stdout, .. } = scale(&desk, &["table.toml", "--set", "generations=3", "--workers", "2"]);
    let text = String::from_utf8(stdout).expect("text");
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(status.success() && words.len() == 2, "{text}");
    assert_eq!(words[0], ["workers", "seconds", "waiting", "report", "independent", "share", "digest"]);
    assert!(words[1].len() == 7 && words[1][0] == "2" && words[1][6].starts_with("r1:"), "{text}");
    assert!(words[1][1..6].iter().all(|number| number.parse::<f64>().is_ok()), "{text}");
    for (arguments, why) in [
        (&["missing.toml"][..], "cannot read missing.toml"),
        (&["table.toml", "--workers", "0"], "1"),
        (&["table.toml", "--workers", "1,x"], "x"),
    ] {
        let Output { status, stderr, .. } = scale(&desk, arguments);
        let said = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!status.success() && said.contains(why), "{arguments:?}: {said}");
    }
    assert_eq!(left(&desk), 0, "temporary files are removed");
}

/// The phases of a leg are kept when the same command prints a finished run again, and no digest depends on them.
#[test]
fn a_result_says_where_the_time_went() {
    let desk = Desk::new();
    for (out, workers) in [("one", "0"), ("two", "2")] {
        desk.run(&["--out", out, "--workers", workers]);
        let result = desk.result(out);
        assert_eq!(result["digest"], expected(3));
        let phases = &result["provenance"]["legs"][0]["phases"];
        let all: f64 = PHASES.iter().filter_map(|phase| phases[phase].as_f64()).sum();
        assert!(all > 0.0 && PHASES.iter().all(|phase| phases[phase].is_number()), "{phases}");
        desk.run(&["--out", out, "--workers", workers]);
        assert_eq!(desk.result(out), result);
    }
}
