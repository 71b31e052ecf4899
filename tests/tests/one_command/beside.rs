//! What can be shown of a run that continues, or that was killed: everything is read from the store, and nothing disturbs the
//! run.

use std::{
    fs,
    process::{Child, Command, Output},
};

use evoxo_tests::programs::program;
use serde_json::Value;

use crate::{Desk, expected, files, kill, wait_until};

/// So many replicas that the run lasts until it is stopped for the test.
const MANY: &str = "60";

fn evoxo(arguments: &[&str], desk: &Desk) -> Output {
    Command::new(program("evoxo")).args(arguments).current_dir(desk.directory.path()).output().expect("evoxo starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Whether `evoxo show` says that the players are not the final ones.
fn shows_so_far(desk: &Desk) -> bool {
    let shown = evoxo(&["show", "out", "--json", "--first", "1"], desk);
    let players: Value = serde_json::from_str(&text(&shown)).expect("JSON");
    assert!(players.as_object().is_some_and(|players| !players.is_empty()), "{players}");
    String::from_utf8_lossy(&shown.stderr).contains("the run in out is not finished: these are its players so far")
}

/// The rounds of all replicas in a result, and its state.
fn told(desk: &Desk) -> (u64, String) {
    let result: Value = serde_json::from_str(&text(&evoxo(&["report", "out", "--json"], desk))).expect("JSON");
    (result["rounds"].as_u64().expect("rounds"), result["state"].as_str().expect("a state").to_owned())
}

#[test]
fn a_run_is_reported_while_it_runs_and_after_a_kill() {
    for workers in ["2", "0"] {
        let desk = Desk::new();
        let arguments = ["--workers", workers, "--replicas", MANY];
        let mut child = desk.begin("out", &arguments);
        let goes_on = |child: &mut Child| assert!(child.try_wait().is_ok_and(|status| status.is_none()), "too fast");
        let leaders = || files(&desk.path("out/store/leader"));
        // Whatever computes is stopped with a signal, so the run does not end while the test looks at it.
        let computing = if workers == "0" { vec![child.id()] } else { desk.processes("worker") };
        computing.iter().for_each(|pid| kill("-STOP", *pid));
        let (leaders_before, (rounds, state)) = (leaders(), told(&desk));
        assert!(rounds > 0 && state == "unfinished", "{state} after {rounds}");
        let report = text(&evoxo(&["report", "out", "--html", "so-far.html", "--plots", "plots"], &desk));
        assert!(report.starts_with("The run is not finished: ") && report.contains("no digest"), "{report}");
        assert!(fs::read_to_string(desk.path("so-far.html")).expect("a report").contains("The run is not finished"));
        assert!(!files(&desk.path("plots")).is_empty());
        let best: Value = serde_json::from_str(&text(&evoxo(&["best", "out", "--json"], &desk))).expect("JSON");
        assert!(best["O, 1"]["card"].is_null() && best["O, 1"]["worth"].is_number(), "{best}");
        assert!(text(&evoxo(&["best", "out"], &desk)).starts_with("The best champion of each arm so far, by worth"));
        // Any of the arm's replicas may be the one that has players.
        assert!(text(&evoxo(&["show", "out", "--first", "1"], &desk)).starts_with("O-1-"));
        assert!(shows_so_far(&desk));
        goes_on(&mut child);
        computing.iter().for_each(|pid| kill("-CONT", *pid));
        child.kill().expect("the process can be killed");
        child.wait().expect("the process has ended");
        wait_until("no child is left", || {
            desk.processes("worker").is_empty() && desk.processes("coordinator").is_empty()
        });
        let (later, state) = told(&desk);
        assert!(later >= rounds && state == "unfinished", "{state} after {later}");
        assert_eq!(leaders(), leaders_before, "a reader does not lead");
        assert!(!desk.path("out/result.json").exists());
        desk.run(&[&arguments[..], &["--out", "out"]].concat());
        assert_eq!(desk.result("out")["digest"], expected(60));
        assert!(!shows_so_far(&desk));
        // An old result that says "unfinished" is not trusted while the store has more.
        let mut old = desk.result("out");
        old["state"] = "unfinished".into();
        fs::write(desk.path("out/result.json"), old.to_string()).expect("a file");
        assert_eq!(told(&desk).1, "finished");
        assert!(!shows_so_far(&desk));
        // Without a store, as after a fetch, there is nothing else to trust.
        fs::remove_dir_all(desk.path("out/store")).expect("a directory");
        assert!(shows_so_far(&desk));
    }
}

/// The report in a run's directory is the one that is made from the directory.
#[test]
fn the_report_to_send_matches_the_directory() {
    let desk = Desk::new();
    let printed = desk.run(&["--workers", "0"]);
    assert!(printed.ends_with("a report to send to others is out/table/report.html\n"), "{printed}");
    text(&evoxo(&["report", "out/table", "--html", "again.html"], &desk));
    let read = |name: &str| fs::read_to_string(desk.path(name)).expect("a report");
    assert_eq!(read("out/table/report.html"), read("again.html"));
    assert!(read("again.html").contains("<article"), "with champions");
}
