//! The end of a run: the answer comes first, each version and each setting has its own directory, and the page stays open.

use std::{
    fs,
    process::{Command, Stdio},
};

use evoxo_tests::programs::{program, workspace};

use crate::{Desk, files};

const SEARCH: &str = "experiment = \"evolve\"\nreplicas = 2\n[settings]\nproblem = \"sphere\"\nlength = 3\n\
    algorithm = \"cma-es\"\nevaluations = 60\n";

fn desk() -> Desk {
    let desk = Desk::new();
    fs::write(desk.path("table.toml"), SEARCH).expect("a file");
    desk
}

fn evoxo(desk: &Desk, arguments: &[&str]) -> String {
    let output = Command::new(program("evoxo")).args(arguments).current_dir(desk.path("")).output();
    let output = output.expect("evoxo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_search_ends_with_its_best_candidate_in_readable_numbers() {
    let desk = desk();
    let printed = desk.run(&["--workers", "0"]);
    let found = printed.split("The best candidate, of replica ").nth(1).expect("an answer");
    let lines: Vec<&str> = found.lines().collect();
    let card = lines[0].split("all digits are in ").nth(1).expect("the card's file");
    assert!(desk.path(card).exists() && lines[1].starts_with("  min f  "), "{found}");
    let genes: Vec<&str> = lines[2].split_whitespace().collect();
    assert!(genes.len() == 4 && genes[0] == "x" && genes[1..].iter().all(|gene| gene.len() < 11), "{found}");
    assert!(
        printed.ends_with("results are in out/table\na report to send to others is out/table/report.html\n"),
        "{printed}"
    );
    // The card has all digits.
    assert!(fs::read_to_string(desk.path(card)).expect("a card").lines().any(|line| line.trim().len() > 15));
    // Four champions, two of them of the random search, one line each, and more only on request.
    let shown = evoxo(&desk, &["show", "out/table"]);
    assert_eq!(shown.lines().count(), 3 + 4, "{shown}");
    assert!(evoxo(&desk, &["show", "out/table", "--populations"]).lines().count() > 10);
    let best = evoxo(&desk, &["best", "out/table"]);
    let longest = best.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).map(str::len).max();
    assert!(longest < Some(11), "{best}");
}

/// An edited file is computed into a new directory, and compared with the earlier results. Earlier results are found again.
#[test]
fn another_setting_uses_another_directory() {
    let desk = desk();
    let first = desk.run(&["--workers", "0"]);
    assert!(!first.contains("the earlier run, in"), "{first}");
    let output = desk.command(&["--workers", "0", "--set", "evaluations=50"]).output().expect("evoxo starts");
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let note = "note: out/table contains a run with other settings (evaluations is 60 there, and 50 here), so the results of \
        this run go into out/table-2";
    assert!(output.status.success() && said.contains(note), "{said}");
    assert!(out.contains("results are in out/table-2\n"), "{out}");
    assert!(
        out.contains(
            "\nthe earlier run, in out/table, with other settings (evaluations is 60 there, and 50 here): main: min f "
        ),
        "{out}"
    );
    // Each command finds its own results, and the next command uses another directory.
    assert_eq!(desk.run(&["--workers", "0"]), first);
    assert!(desk.run(&["--workers", "0", "--set", "evaluations=50"]).contains("results are in out/table-2\n"));
    assert!(
        desk.run(&["--workers", "0", "--seed", "7"])
            .contains("the earlier run, in out/table-2, with other settings (seed is ")
    );
    assert_eq!(files(&desk.path("out")), ["table", "table-2", "table-3"]);
    // A command that names a directory gets that one or a sentence.
    let refused = desk.command(&["--out", "out/table", "--seed", "8"]).output().expect("evoxo starts");
    assert_eq!(refused.status.code(), Some(2));
}

/// See tests/tests/stay.py.
#[test]
fn a_page_stays_while_a_browser_has_it_open() {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if !python.is_ok_and(|python| python.success()) {
        println!("left out: there is no python3");
        return;
    }
    let desk = desk();
    let mut command = Command::new("python3");
    command.arg(workspace().join("tests/tests/stay.py")).arg(program("evoxo")).arg("table.toml");
    let output = command.current_dir(desk.path("")).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
