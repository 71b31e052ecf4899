//! A person's files are kept: nothing is overwritten or removed silently. A run that was refused, or whose terminal was
//! closed, leaves nothing behind that is in the way.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    process::{Command, Output, Stdio},
};

use evoxo_tests::{live::objects_in, programs::program};

use crate::{Desk, expected, files, kill, wait_until};

/// The exit status of a command and everything that it prints.
fn evoxo(desk: &Desk, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program("evoxo")).args(arguments).current_dir(desk.path("")).output();
    let Output { status, stderr, .. } = output.expect("evoxo starts");
    (status.code(), String::from_utf8(stderr).expect("text"))
}

#[test]
fn a_report_overwrites_no_other_file_of_the_run() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--set", "generations=2", "--out", "out"]);
    for name in ["result.json", "history.csv", "config.toml", "champions/X-0.json", "plots/X.svg"] {
        let file = format!("out/{name}");
        let before = fs::read(desk.path(&file)).expect(name);
        let (status, said) = evoxo(&desk, &["report", "out", "--html", &file]);
        assert!(status == Some(2) && said.contains(&format!("{file} does not end in .html")), "{said}");
        assert_eq!(fs::read(desk.path(&file)).expect(name), before);
    }
    assert_eq!(evoxo(&desk, &["report", "out", "--html", "out/report.html"]), (Some(0), String::new()));
}

/// A longer run loses no replica, and keeps no card of the shorter one.
#[test]
fn a_longer_run_has_no_fewer_replicas_and_no_older_cards() {
    let desk = Desk::new();
    let small = ["--workers", "0", "--out", "out", "--set", "population=20", "--replicas"];
    let run = |more: &[&str]| desk.command(&[&small[..], more].concat()).output().expect("evoxo starts");
    assert!(run(&["4", "--set", "generations=2", "--populations"]).status.success());
    let finished = desk.path("out/store/runs/table/finished");
    let objects = objects_in(&finished);
    assert!((1..=8).contains(&objects.len()), "{objects:?}");
    // The user's own file is not a card.
    fs::write(desk.path("out/champions/mine.json"), "{}").expect("a file");
    let refused = run(&["2", "--set", "generations=4"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("has 4 replicas of each arm"), "{said}");
    assert_eq!(objects_in(&finished), objects, "all objects are there");
    assert!(run(&["4", "--set", "generations=4"]).status.success());
    assert_eq!(
        files(&desk.path("out/populations")),
        Vec::<String>::new(),
        "the populations of the shorter run are removed"
    );
    assert!(run(&["4", "--set", "generations=4", "--populations"]).status.success());
    assert!(run(&["2", "--set", "generations=4"]).status.success());
    let champions = ["O-1-0.json", "O-1-1.json", "X-0.json", "X-1.json", "mine.json"];
    assert_eq!(files(&desk.path("out/champions")), champions, "the champions come from the two replicas of the report");
    assert_eq!(
        files(&desk.path("out/populations")).len(),
        2 * 2 * 20,
        "the populations still belong to these replicas"
    );
}

/// A refused run has computed nothing, so its directory is free for other settings. The directory of a run that has started
/// is not.
#[test]
fn a_rejected_run_does_not_block_its_correction() {
    let desk = Desk::new();
    let run = |more: &[&str]| {
        let all = [&["--workers", "0", "--out", "out", "--memory", "16MiB"], more].concat();
        let Output { status, stderr, .. } = desk.command(&all).output().expect("evoxo starts");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    };
    let (status, said) = run(&["--set", "population=65536", "--set", "fathers=32768", "--set", "generations=100000"]);
    assert!(status == Some(1) && said.contains("--memory"), "{said}");
    let (status, said) = run(&[]);
    assert!(status == Some(0), "{said}");
    assert_eq!(desk.result("out")["digest"], expected(3));
    // The results may be gone, but the computed replicas are in the store.
    for name in ["result.json", "history.csv"] {
        fs::remove_file(desk.path("out").join(name)).expect("a file");
    }
    let (status, said) = run(&["--set", "population=100"]);
    assert!(status == Some(2) && said.contains("other settings (population is 200 there, and 100 here)"), "{said}");
}

/// A closed terminal, which its shell reports a second time, is a clean stop. With `nohup` it has no effect.
#[test]
fn a_closed_terminal_is_a_clean_stop() {
    let desk = Desk::new();
    for workers in ["0", "2"] {
        // This test may have been started with nohup.
        let mut heard = Command::new("env");
        heard.arg("--default-signal=HUP").arg(program("evoxo")).args([
            "run",
            "table.toml",
            "--no-page",
            "--out",
            workers,
        ]);
        heard.args(["--workers", workers, "--replicas", "60"]).current_dir(desk.path(""));
        let child = heard.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("env starts");
        let finished = desk.path(workers).join("store/runs/table/finished");
        wait_until("the first replica is finished", || !objects_in(&finished).is_empty());
        (0..2).for_each(|_| kill("-HUP", child.id()));
        let Output { status, stderr, .. } = child.wait_with_output().expect("the process ends");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(1) && said.contains("rounds, which are saved"), "{:?}: {said}", status.signal());
        assert_eq!(desk.result(workers)["state"], "unfinished");
    }
    let mut ignoring = Command::new("sh");
    ignoring.current_dir(desk.path("")).args(["-c", "trap '' HUP; exec \"$0\" run table.toml --workers 0 --out nohup"]);
    let mut child =
        ignoring.arg(program("evoxo")).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("sh starts");
    let finished = desk.path("nohup/store/runs/table/finished");
    wait_until("the first replica is finished", || !objects_in(&finished).is_empty());
    kill("-HUP", child.id());
    assert!(child.wait().expect("the process ends").success());
    assert_eq!(desk.result("nohup")["digest"], expected(3));
}

#[test]
fn a_missing_card_is_reported() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--set", "generations=2", "--replicas", "1", "--out", "out"]);
    fs::remove_file(desk.path("out/champions/O-1-0.json")).expect("a card");
    let (status, said) = evoxo(&desk, &["best", "out"]);
    assert!(status == Some(1) && said.contains("out/champions/O-1-0.json is missing"), "{said}");
}

/// A history that was cut or changed is not trusted: the report uses the stored conclusion, with a note.
#[test]
fn a_history_that_contradicts_the_result_is_rejected() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--set", "generations=2", "--out", "out"]);
    let (path, conclusion) = (desk.path("out/history.csv"), desk.result("out")["conclusion"].clone());
    let whole = fs::read_to_string(&path).expect("a history");
    let cut: String = whole.split_inclusive('\n').take(4).collect();
    for other in [cut, String::new(), whole.replacen("X,0,2,", "X,0,2,9", 1)] {
        assert_ne!(other, whole);
        fs::write(&path, other).expect("a file");
        let Output { status, stdout, stderr } = Command::new(program("evoxo"))
            .args(["report", "out"])
            .current_dir(desk.path(""))
            .output()
            .expect("evoxo starts");
        let (printed, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        // The conclusion follows from the result.
        assert!(status.success() && printed.starts_with(conclusion.as_str().expect("a sentence")), "{printed} {said}");
        let why = "out/history.csv is not the history of this run: `run` or `fetch` writes it again";
        let (status, said) = evoxo(&desk, &["best", "out"]);
        assert!(status == Some(1) && said.contains(why), "{said}");
    }
    desk.run(&["--workers", "0", "--set", "generations=2", "--out", "out"]);
    assert_eq!(fs::read_to_string(&path).expect("a history"), whole);
}

#[test]
fn removing_the_store_during_a_run_ends_the_command() {
    let desk = Desk::new();
    let child = desk.begin("out", &["--workers", "1", "--replicas", "1000"]);
    // Processes that are just writing there may create the directory again.
    wait_until("the store is removed", || fs::remove_dir_all(desk.path("out/store")).is_ok());
    let Output { status, stderr, .. } = child.wait_with_output().expect("the process ends");
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.code() == Some(1) && said.contains("the store of this run was removed or moved away"), "{said}");
    assert!(!said.contains("which are saved"), "{said}");
}

#[test]
fn too_low_a_limit_on_open_files_is_rejected_at_once() {
    let desk = Desk::new();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$0\" run table.toml --no-page --workers 2 --out out"]);
    let output = limited.arg(program("evoxo")).current_dir(desk.path("")).output().expect("sh starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("the system allows 64 open files, and 2 local workers need 69"),
        "{said}"
    );
}

/// Without Slurm on this machine nothing is submitted, and no coordinator is contacted.
#[test]
fn jobs_need_a_scheduler_before_a_run() {
    let desk = Desk::new();
    let words = ["submit", "table.toml", "--coordinator", "127.0.0.1:1", "--autoscale", "slurm", "--", "worker.sbatch"];
    let mut command = Command::new(program("evoxo"));
    let output = command.args(words).current_dir(desk.path("")).env("PATH", desk.path("")).output();
    let said = String::from_utf8(output.expect("evoxo starts").stderr).expect("text");
    assert!(said.contains("cannot start squeue") && said.contains("is Slurm installed on this machine?"), "{said}");
}
