//! `evoxo doctor` with real programs, and with each fault that can be made here.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use evoxo_access::{AccessFile, Authority, Id, Identity, Role, now_s};
use evoxo_tests::{
    live::{Site, limited},
    programs::{program, workspace},
};
use serde_json::Value;

/// The findings of a doctor: the grade, the sentence and the remedy of each thing, and the exit status.
struct Visit(Value, Option<i32>);

impl Visit {
    fn by(command: &mut Command, arguments: &[&str]) -> Self {
        let output = command.args(["doctor", "--json"]).args(arguments).output().expect("evoxo starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let found = serde_json::from_slice(&output.stdout);
        Self(
            found.unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))),
            output.status.code(),
        )
    }

    fn of(arguments: &[&str]) -> Self {
        Self::by(&mut Command::new(program("evoxo")), arguments)
    }

    /// The grade, and the sentence with the remedy, of one thing.
    fn about(&self, what: &str) -> (&str, String) {
        let findings = self.0["findings"].as_array().expect("findings");
        let found = findings.iter().find(|finding| finding["what"] == what);
        let found = found.unwrap_or_else(|| panic!("nothing about {what}: {}", self.0));
        let text = |key: &str| found[key].as_str().expect("text");
        (text("grade"), format!("{} -> {}", text("says"), text("remedy")))
    }

    /// Fails unless this thing is a fault, and its sentence and remedy have these words.
    fn has_fault(&self, what: &str, words: &[&str]) {
        let (grade, said) = self.about(what);
        assert_eq!((grade, self.1, &self.0["good"]), ("fault", Some(1), &Value::Bool(false)), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn a_healthy_cluster_has_no_fault() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let store = site.path("store");
    let arguments = ["--coordinator", &address, "--store", store.to_str().expect("text"), "--memory", "1MiB"];
    let visit = Visit::of(&arguments);
    assert_eq!((&visit.0["good"], visit.1), (&Value::Bool(true), Some(0)), "{}", visit.0);
    for what in ["build", "port", "answer", "clock", "store", "space", "memory"] {
        assert_eq!(visit.about(what).0, "good", "{what}: {}", visit.0);
    }
    assert!(visit.about("workers").1.contains("no worker is connected"));
    let text = Command::new(program("evoxo")).arg("doctor").args(arguments).output().expect("evoxo starts");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!((8..=14).contains(&text.lines().count()), "about ten lines: {text}");
}

#[test]
fn unreachable_addresses_are_faults() {
    // A port that was free a moment ago.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address").to_string();
    drop(socket);
    let visit = Visit::of(&["--coordinator", &address]);
    visit.has_fault("port", &[&address, "cannot be reached", "start evoxo-coordinator here"]);
    Visit::of(&["--coordinator", "no-such-host.invalid:7600"]).has_fault("port", &["is unknown", "check the name"]);
}

#[test]
fn faults_of_access_files_are_found() {
    let site = Site::new();
    let path = site.path("mine.access");
    let shown = path.to_str().expect("text").to_owned();
    let coordinator = site.coordinator(&[]);
    let visit = || Visit::of(&["--coordinator", &coordinator.address.to_string(), "--access", &shown]);
    visit().has_fault("access", &["cannot read", "evoxo join"]);
    let directory = site.path("authority");
    fs::create_dir(&directory).expect("a directory");
    let authority = Authority::create(&directory, now_s()).expect("an authority");
    let identity = Identity { id: Id::draw(), role: Role::Operator };
    let made = |begins_s: u64, life_s: u64| {
        let file = AccessFile::made_by(&authority, &identity, begins_s, life_s).expect("an access file");
        file.store(&path).expect("a directory");
    };
    let day = 24 * 3600;
    made(now_s() - 30 * day, 10 * day);
    visit().has_fault("access", &["expired", "evoxo join"]);
    made(now_s(), 10 * day);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
    visit().has_fault("access", &["other people can read", "mode 644", "chmod 600"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
    // The file is good, but this coordinator has no TLS.
    let visit = visit();
    assert_eq!(visit.about("access").0, "good");
    visit.has_fault("answer", &["--access"]);
}

#[test]
fn a_coordinator_with_an_access_directory_is_examined() {
    let site = Site::new();
    let access = site.path("access");
    let init =
        Command::new(program("evoxo-coordinator")).args(["init", "--name", "lab1", "--access"]).arg(&access).output();
    assert!(init.expect("the coordinator starts").status.success());
    let shown = access.to_str().expect("text");
    let coordinator = site.coordinator(&["--access", shown]);
    let address = coordinator.address.to_string();
    let file = access.join("operator.access");
    let file = file.to_str().expect("text");
    let visit = Visit::of(&["--coordinator", &address, "--access", file]);
    assert_eq!((visit.about("answer").0, visit.about("access").0, visit.1), ("good", "good", Some(0)), "{}", visit.0);
    Visit::of(&["--coordinator", &address]).has_fault("answer", &["--access"]);
    let visit = Visit::of(&["--coordinator", &address, "--access", file, "--access-directory", shown]);
    visit.has_fault("certificate", &["names", "lab1", "not 127.0.0.1", "init --name 127.0.0.1"]);
    let visit = Visit::of(&["--coordinator", "lab1:7600", "--access-directory", shown]);
    assert_eq!(visit.about("certificate").0, "good", "{}", visit.0);
    Visit::of(&["--access-directory", "nowhere"]).has_fault("certificate", &["cannot read nowhere/server.pem"]);
}

#[test]
fn faults_of_this_host_are_found() {
    let site = Site::new();
    let none = site.path("none");
    Visit::of(&["--store", none.to_str().expect("text")]).has_fault("store", &["there is no directory"]);
    let file = site.path("file");
    fs::write(&file, "").expect("a directory");
    Visit::of(&["--store", file.to_str().expect("text")]).has_fault("store", &["is a file"]);
    Visit::of(&["--memory", "900000GiB"]).has_fault("memory", &["is more than", "MemoryMax"]);
    let few = |script: &str, arguments: &[&str]| Visit::by(&mut limited("evoxo", script), arguments);
    few("ulimit -n 128", &[]).has_fault("open files", &["only 128 files", "LimitNOFILE"]);
    few("ulimit -v 4000000", &["--memory", "8GiB"]).has_fault("memory", &["8192 MiB", "MiB that this host"]);
    Visit::of(&["--program", "gone=no-such-command-here"]).has_fault("program", &["try the command in a shell"]);
    Visit::of(&["--program", "mute=true"]).has_fault("program", &["try the command in a shell"]);
    if Path::new("/usr/bin/python3").exists() {
        let rosen = workspace().join("examples/programs/rosen.py");
        let package = workspace().join("python");
        let rosen = format!("rosen=PYTHONPATH={} python3 {}", package.display(), rosen.display());
        let visit = Visit::of(&["--program", &rosen]);
        assert_eq!(visit.about("program").0, "good", "{}", visit.0);
    }
}
