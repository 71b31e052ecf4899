//! `evoxo run`: one command, one directory, and the same digest through all interruptions.

mod beside;
mod damage;
mod ends;
mod fork;
mod keeps;
mod longer;
mod output;
mod scale;

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use evoxo_common::{
    experiment::{Config, Replica, ResultDigest},
    local,
};
use evoxo_tests::{live::objects_in, programs::program, registry};
use serde_json::Value;

const FILE: &str = "experiment = \"invincible\"\nreplicas = 3\n[settings]\npopulation = 200\ngames = 500\n\
    generations = 12\nslice = 50\n[arms.\"O, 1\"]\npenalty = 1\n[arms.X]\nside = \"X\"\nfitness = \"exact\"\n";

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with an experiment file.
struct Desk {
    directory: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("table.toml"), FILE).expect("a file");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("evoxo"));
        command.current_dir(self.directory.path()).args(["run", "table.toml"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end, successfully.
    fn run(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().expect("evoxo starts");
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).expect("text")
    }

    /// Starts the command and waits until some replicas are finished.
    fn begin(&self, out: &str, arguments: &[&str]) -> Child {
        let child = self.command(arguments).args(["--out", out]).spawn().expect("evoxo starts");
        let finished = self.path(out).join("store/runs/table/finished");
        wait_until("the first replica is finished", || !objects_in(&finished).is_empty());
        child
    }

    fn result(&self, out: &str) -> Value {
        let text = fs::read_to_string(self.path(out).join("result.json")).expect("a result");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The ids of running processes that work in this directory.
    fn processes(&self, verb: &str) -> Vec<u32> {
        let directory = self.directory.path().canonicalize().expect("the directory is there");
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = |pid: &u32| {
            let cwd = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&directory));
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            cwd && line.split(|byte| *byte == 0).nth(1) == Some(verb.as_bytes())
        };
        pids.filter(ours).collect()
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(signal: &str, pid: u32) {
    // The process may have ended by itself.
    drop(Command::new("kill").args([signal, &pid.to_string()]).stderr(Stdio::null()).status());
}

fn expected(replicas: u32) -> String {
    let overrides = [("replicas".to_owned(), replicas.to_string())];
    let config = Config::parse(registry(), "table.toml", FILE, &overrides).expect("a good file");
    let replicas = local::run(&config).expect("planned tasks are good");
    ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string()
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_cluster_and_one_thread_write_the_same_files() {
    let desk = Desk::new();
    let printed = desk.run(&["--workers", "2", "--out", "two"]);
    assert!(printed.contains("Our results and the page's") && printed.contains(&expected(3)), "{printed}");
    let conclusion = desk.result("two")["conclusion"].as_str().expect("a sentence").to_owned();
    assert!(conclusion.contains("never loses in") && printed.starts_with(&format!("{conclusion}\n\n")), "{printed}");
    for (workers, out, other) in [("0", "none", "auto"), ("3", "three", "1")] {
        desk.run(&["--workers", workers, "--out", out, "--batch", other, "--simd", "baseline"]);
        let (mut one, mut two) = (desk.result("two"), desk.result(out));
        assert_eq!(one["digest"], expected(3));
        drop((one["provenance"].take(), two["provenance"].take()));
        assert_eq!(one, two);
        assert_eq!(files(&desk.path("two/champions")), files(&desk.path(out).join("champions")));
        for name in ["history.csv", "digests.csv", "config.toml", "champions/O-1-0.json", "plots/X.svg"] {
            let read = |out: &str| fs::read_to_string(desk.path(out).join(name)).expect(name);
            assert_eq!(read("two"), read(out), "{name}");
        }
    }
    assert_eq!(
        files(&desk.path("two")),
        [
            "champions",
            "cluster.log",
            "config.toml",
            "digests.csv",
            "history.csv",
            "plots",
            "report.html",
            "result.json",
            "store"
        ]
    );
    let lone = desk.run(&["--arm", "X", "--out", "lone"]);
    assert!(!lone.contains("O, 1"), "{lone}");
    assert_eq!(desk.result("lone")["arms"][0]["replicas"], desk.result("two")["arms"][1]["replicas"]);
    let first = &desk.result("two")["arms"][0]["replicas"][0];
    assert!(first["win"].as_str().is_some_and(|win| win.contains('/')) && first["unbeatable"].is_boolean(), "{first}");
}

#[test]
fn a_run_killed_at_its_start_continues() {
    let desk = Desk::new();
    for after_ms in [2, 10, 20, 40, 80] {
        let out = format!("after-{after_ms}");
        let mut child = desk.command(&["--workers", "1", "--out", &out]).spawn().expect("evoxo starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        drop(child.kill());
        child.wait().expect("the process ends");
        assert!(desk.run(&["--workers", "0", "--out", &out]).contains(&expected(3)), "killed after {after_ms} ms");
    }
}

/// Checkpoints are found whatever the experiment file's name is, and a long history is restored completely.
#[test]
fn a_long_history_is_restored_under_any_name() {
    let desk = Desk::new();
    let long = "experiment = \"rules\"\nreplicas = 1\n[settings]\nagents = 4\nrules = 1\ngames = 1\n\
        cycles = 300000\ncycles_per_task = 10000\n";
    fs::write(desk.path("table.toml"), long).expect("a file");
    let printed = desk.run(&["--workers", "1", "--out", "long"]);
    fs::write(desk.path("table.toml"), fs::read(desk.path("long/config.toml")).expect("a file")).expect("a file");
    fs::remove_file(desk.path("long/result.json")).expect("a result");
    fs::rename(desk.path("long/store/runs/table"), desk.path("long/store/runs/other")).expect("a run");
    assert_eq!(printed, desk.run(&["--workers", "1", "--out", "long"]));
    assert_eq!(files(&desk.path("long/store/runs")), ["other"]);
}

#[test]
fn a_finished_directory_reprints_and_accepts_more_replicas() {
    let desk = Desk::new();
    let first = desk.run(&["--workers", "1"]);
    assert_eq!(desk.run(&[]), first, "the same output again");
    let log =
        Command::new(program("evoxo")).args(["report"]).arg(desk.path("out/table")).output().expect("evoxo starts");
    assert!(first.starts_with(&*String::from_utf8_lossy(&log.stdout)) && log.status.success(), "{log:?}");
    // The sentence is made from the figures, not from the stored text.
    let alone = desk.path("alone.json");
    let text = fs::read_to_string(desk.path("out/table/result.json")).expect("a result");
    fs::write(&alone, text.replace("\"conclusion\": \"", "\"conclusion\": \"\\u001b[31mNobody knows. "))
        .expect("a file");
    let alone = Command::new(program("evoxo")).arg("report").arg(alone).output().expect("evoxo starts");
    assert_eq!(String::from_utf8_lossy(&alone.stdout), String::from_utf8_lossy(&log.stdout));
    // A damaged file is rewritten, and the provenance is kept.
    let kept = ["result.json", "history.csv", "champions/X-0.json", "plots/X.svg"]
        .map(|name| desk.path("out/table").join(name));
    let before = kept.each_ref().map(|path| fs::read_to_string(path).expect("a file"));
    for damage in ["", "{}"] {
        for path in &kept[usize::from(damage.is_empty())..] {
            fs::write(path, damage).expect("a file");
        }
        desk.run(&[]);
        let again = kept.each_ref().map(|path| fs::read_to_string(path).expect("a file"));
        assert_eq!(again[1..], before[1..]);
        assert_eq!(again[0] == before[0], damage.is_empty(), "a complete result is not touched");
    }
    assert_eq!(desk.result("out/table")["digest"], expected(3));
    let json: Value = serde_json::from_str(&desk.run(&["--json", "--populations"])).expect("JSON");
    let (all, card) = (desk.path("out/table/populations"), "X-2.json");
    assert_eq!(files(&all).len(), 6 * 200, "every player of every replica is written");
    let player =
        |path: PathBuf| -> Value { serde_json::from_str(&fs::read_to_string(path).expect("a card")).expect("JSON") };
    assert_eq!(player(all.join("X-2-0.json")), player(desk.path("out/table/champions").join(card)));
    assert_eq!(json["digest"], expected(3));
    let log = || fs::metadata(desk.path("out/table/cluster.log")).expect("a log").len();
    let before = log();
    desk.run(&["--workers", "0", "--replicas", "5"]);
    assert_eq!(desk.result("out/table")["digest"], expected(5));
    assert_eq!(log(), before, "no cluster was needed");
    assert_eq!(files(&desk.path("out/table/champions")).len(), 10);
    desk.run(&["--workers", "2", "--replicas", "6"]);
    assert_eq!(desk.result("out/table")["digest"], expected(6));
}

/// The best champions are those with the best last rows, and their cards exist.
#[test]
fn the_best_of_each_arm_is_found() {
    let desk = Desk::new();
    desk.run(&["--workers", "0", "--set", "generations=3"]);
    let output = Command::new(program("evoxo")).arg("best").arg(desk.path("out/table")).arg("--json").output();
    let best: Value = serde_json::from_slice(&output.expect("evoxo starts").stdout).expect("JSON");
    let history = fs::read_to_string(desk.path("out/table/history.csv")).expect("a history");
    // The name of an arm may contain a comma, so columns are counted from the right.
    let columns = |line: &str| line.rsplit(',').map(str::to_owned).collect::<Vec<String>>();
    let (header, lines) = history.split_once('\n').expect("a header");
    let place = |name: &str| columns(header).iter().position(|column| column == name).expect("a column");
    let (generation, worth) = (place("generation"), place("worth"));
    for arm in ["O, 1", "X"] {
        let rows = lines.lines().filter(|line| line.contains(arm)).map(columns);
        let last = rows.filter(|row| row[generation] == "3").map(|row| row[worth].parse::<f64>().expect("a number"));
        let most = last.fold(f64::NEG_INFINITY, f64::max);
        assert_eq!((best[arm]["worth"].as_f64(), best[arm]["of"].as_u64()), (Some(most), Some(3)), "{best}");
        assert!(Path::new(best[arm]["card"].as_str().expect("a path")).exists());
    }
}

/// An arm with several objectives is ranked by hypervolume, the others by their best value.
#[test]
fn the_best_is_chosen_by_the_deciding_column() {
    let desk = Desk::new();
    let arms = "[arms.one]\nproblem = \"sphere\"\n[arms.two]\nproblem = \"zdt1\"\nalgorithm = \"nsga2\"\n";
    let settings = "[settings]\nlength = 4\nevaluations = 200\npopulation = 20\n";
    let file = format!("experiment = \"evolve\"\nreplicas = 4\n{settings}{arms}");
    fs::write(desk.path("table.toml"), file).expect("a file");
    desk.run(&["--workers", "0"]);
    let best = |arguments: &[&str]| {
        let output = Command::new(program("evoxo")).arg("best").arg(desk.path("out/table")).args(arguments).output();
        output.expect("evoxo starts").stdout
    };
    let told: Value = serde_json::from_slice(&best(&["--json"])).expect("JSON");
    let volumes = desk.result("out/table")["arms"][1]["hypervolume"].as_array().expect("numbers").clone();
    let most = volumes.iter().filter_map(Value::as_f64).fold(0.0, f64::max);
    assert!(most > 0.0 && told["two"]["hypervolume"].as_f64() == Some(most), "{told} {volumes:?}");
    assert!(told["one"]["best"].is_number() && told["one"]["hypervolume"].is_null(), "{told}");
    let table = String::from_utf8(best(&[])).expect("text");
    assert!(table.starts_with("The best champion of each arm, by best or hypervolume"), "{table}");
}

/// Populations are written if there are any. Otherwise a line says so.
#[test]
fn populations_are_written_or_reported_as_missing() {
    let desk = Desk::new();
    let networks = "experiment = \"nndtf\"\nreplicas = 2\n[settings]\nboards = 30\niterations = 5\nevaluations = 200\n\
        population = 8\n[arms.\"O, 1\"]\n[arms.steps]\nalgorithm = \"cma-es\"\n";
    fs::write(desk.path("table.toml"), networks).expect("a file");
    let output = desk.command(&["--workers", "0", "--populations"]).output().expect("evoxo starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && log.contains("note: there is no population for \"steps\": "), "{log}");
    let names = files(&desk.path("out/table/populations"));
    assert!(names.len() == 16 && names.iter().all(|name| name.starts_with("O-1-")), "{names:?}");
}

/// Even if standard error is closed, the exit status shows the result.
#[test]
fn a_closed_standard_error_is_harmless() {
    let desk = Desk::new();
    let status = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        desk.command(arguments).stderr(writer).stdout(Stdio::null()).status().expect("evoxo starts").code()
    };
    assert_eq!(status(&["--set", "populaton=5"]), Some(2));
    assert_eq!(status(&["--workers", "0"]), Some(0), "closed progress output does no harm either");
}

/// The content of a run without a valid order, or copy of one, is unknown, so the run is refused at once.
#[test]
fn a_run_whose_order_is_damaged_is_rejected_at_once() {
    let desk = Desk::new();
    desk.run(&["--workers", "0"]);
    for directory in ["order", "order-copy"] {
        for entry in fs::read_dir(desk.path("out/table/store/runs/table").join(directory)).expect("orders") {
            fs::write(entry.expect("an order").path(), "evoxo").expect("a damaged order");
        }
    }
    for workers in ["0", "1"] {
        let mut child = desk.command(&["--workers", workers]).spawn().expect("evoxo starts");
        wait_until("it ends by itself", || child.try_wait().is_ok_and(|status| status.is_some()));
        let Output { status, stderr, .. } = child.wait_with_output().expect("the process has ended");
        let log = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(1) && log.lines().count() == 1, "{workers}: {log}");
        assert!(log.contains("has no valid order and is not used") && log.contains("directory"), "{workers}: {log}");
    }
}

#[test]
fn an_interrupted_run_says_how_to_continue_and_continues() {
    let desk = Desk::new();
    for (round, workers) in ["2", "0"].into_iter().enumerate() {
        let out = format!("out{round}");
        let many = ["--workers", workers, "--replicas", "12", "--populations"];
        let mut stopped = None;
        let mut child = desk.begin(&out, &many);
        kill("-INT", child.id());
        let mut log = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        let status = child.wait().expect("the process ends");
        if status.code() == Some(1) {
            assert!(
                log.contains("rounds, which are saved. Continue with")
                    && log.contains(&format!("run {out}/config.toml")),
                "{log}"
            );
            assert!(
                log.contains(&format!("the players at this point are in {out}/champions and {out}/populations")),
                "{log}"
            );
            // The partial results have the form of results, and say that they are incomplete.
            assert!(
                log.contains(&format!("the results so far are in {out}: `evoxo report {out}` shows them")),
                "{log}"
            );
            let unfinished = desk.result(&out);
            assert_eq!((&unfinished["state"], unfinished["digest"].is_null()), (&"unfinished".into(), true));
            let conclusion = unfinished["conclusion"].as_str().expect("a sentence").to_owned();
            assert!(conclusion.starts_with("The run is not finished: "), "{conclusion}");
            assert!(!files(&desk.path(&out).join("plots")).is_empty() && desk.path(&out).join("history.csv").exists());
            let report =
                Command::new(program("evoxo")).arg("report").arg(desk.path(&out)).output().expect("the program starts");
            assert!(report.status.success() && report.stdout.starts_with(conclusion.as_bytes()), "{report:?}");
            let legs = unfinished["provenance"]["legs"].as_array().expect("legs").clone();
            stopped = Some((legs, unfinished["provenance"]["seconds"].as_f64().expect("seconds")));
            // Each replica that has started has its players, and the best of them.
            let count = |name: &str| fs::read_dir(desk.path(&out).join(name)).map_or(0, Iterator::count);
            let population = count("populations");
            assert!(population >= count("champions") && count("champions") > 0, "{log}");
        } else {
            assert!(status.success(), "it had just finished: {log}");
        }
        desk.run(&["--workers", "2", "--replicas", "12", "--out", &out]);
        let finished = desk.result(&out);
        assert_eq!(finished["digest"], expected(12));
        if let Some((legs, seconds)) = stopped {
            // Seconds and workers are those of both legs, and the second leg starts where the first was saved.
            let provenance = &finished["provenance"];
            let all = provenance["legs"].as_array().expect("legs");
            assert!(provenance["seconds"].as_f64() > Some(seconds) && provenance["workers"] == 2, "{provenance}");
            assert!(all.len() == 2 && all[0] == legs[0] && all[1]["rounds"][0] == all[0]["rounds"][1], "{provenance}");
        }
    }
}

#[test]
fn children_die_with_a_killed_parent_and_the_run_continues() {
    let desk = Desk::new();
    let mut child = desk.begin("out", &["--workers", "3", "--replicas", "12"]);
    child.kill().expect("the process can be killed");
    child.wait().expect("the process has ended");
    wait_until("no child is left", || desk.processes("worker").is_empty() && desk.processes("coordinator").is_empty());
    desk.run(&["--replicas", "12", "--out", "out"]);
    assert_eq!(desk.result("out")["digest"], expected(12));
}

#[test]
fn killed_children_are_replaced() {
    let desk = Desk::new();
    let mut child = desk.begin("out", &["--workers", "2", "--replicas", "12"]);
    for verb in ["worker", "coordinator", "worker"] {
        desk.processes(verb).into_iter().for_each(|pid| kill("-9", pid));
        std::thread::sleep(Duration::from_millis(150));
    }
    assert!(child.wait().expect("the process ends").success());
    assert_eq!(desk.result("out")["digest"], expected(12));
}
