//! A person's own algorithm in Python. A search with it has the same result on one thread and on workers, whatever is killed, and
//! an algorithm that cannot be trusted ends its run with a sentence.

use std::{fs, process::Command, time::Duration};

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::Person,
    programs::{said, workspace},
};

/// Whether there is a python3. Without one, there is nothing to test.
fn has_python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|version| version.status.success())
}

/// The example's experiment file, with another number of evaluations and of replicas.
fn file(evaluations: u32) -> String {
    let path = workspace().join("examples/programs/one_plus_one.toml");
    let text = fs::read_to_string(path).expect("the example's file");
    let text = text.replace("replicas = 5", "replicas = 2");
    let changed = text.replace("evaluations = 2000", &format!("evaluations = {evaluations}"));
    assert_ne!(changed, text);
    changed
}

/// Writes the example's program with this change. Returns the argument of `--program`.
fn write(site: &Site, name: &str, old: &str, new: &str) -> String {
    let path = workspace().join("examples/programs/one_plus_one.py");
    let text = fs::read_to_string(path).expect("the example");
    assert!(text.contains(old), "the example has no {old:?}");
    fs::write(site.path(name), text.replace(old, new)).expect("a file");
    command(&site.path(name).display().to_string())
}

/// The argument of `--program` for this file.
fn command(file: &str) -> String {
    let package = workspace().join("python");
    format!("one-plus-one=PYTHONPATH={} PYTHONDONTWRITEBYTECODE=1 exec python3 {file}", package.display())
}

/// The digest of a run on one thread in the directory `out` of the site; an error of the run is the test's.
fn on_one_thread(site: &Site, file: &str, out: &str, program: &str) -> String {
    let arguments = ["run", file, "--workers", "0", "--out", out, "--program", program];
    let (text, status) = said(&site.path(""), &arguments);
    assert_eq!(status, Some(0), "{text}");
    let digest = text.lines().find_map(|line| line.strip_prefix("digest ")?.split_once(' '));
    digest.unwrap_or_else(|| panic!("no digest in: {text}")).0.to_owned()
}

/// Two searches of 1,000 evaluations for each arm that go on to 2,000 have the digest of those that had 2,000 at once, and so
/// does a cluster whose workers, programs and coordinator are killed.
#[tokio::test]
async fn an_own_algorithm_has_one_digest() {
    if !has_python() {
        return;
    }
    let site = Site::new();
    let program = command(&workspace().join("examples/programs/one_plus_one.py").display().to_string());
    fs::write(site.path("short.toml"), file(1001)).expect("a file");
    fs::write(site.path("own.toml"), file(1600)).expect("a file");
    let digest = on_one_thread(&site, "own.toml", "straight", &program);
    assert_ne!(on_one_thread(&site, "short.toml", "longer", &program), digest);
    assert_eq!(on_one_thread(&site, "own.toml", "longer", &program), digest);

    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address;
    let mut workers = [1, 2].map(|_| site.worker(address, &["--program", &program]));
    let mut submitting =
        site.program("evoxo", &["submit", "own.toml", "--coordinator", &address.to_string(), "--program", &program]);
    assert!(submitting.end().await.success(), "{}", submitting.log());
    let mut person = Person::of(address);
    let mut seen = 0;
    for place in 0..4_usize {
        let run = person.wait("own", |run| run.tasks_done > seen + 400 || run.state() == RunState::Finished).await;
        seen = run.tasks_done;
        assert_ne!(run.state(), RunState::Finished, "the run ended before anything was killed");
        if place % 2 == 0 {
            workers[place / 2].kill();
            workers[place / 2] = site.worker(address, &["--program", &program]);
        } else {
            coordinator.process.kill();
            coordinator = site.coordinator_on(&address.to_string(), &[]);
            seen = 0;
        }
    }
    assert_eq!(person.finished("own").await.digest, digest);

    let address = address.to_string();
    let (text, status) = said(&site.path(""), &["fetch", "own", "--coordinator", &address, "--out", "fetched"]);
    assert_eq!(status, Some(0), "{text}");
    let (text, status) = said(&site.path(""), &["diff", "straight", "fetched"]);
    assert_eq!(status, Some(0), "{text}");
    let (text, status) = said(&site.path(""), &["verify", "fetched", "--program", &program]);
    assert_eq!(status, Some(0), "{text}");
}

/// What an algorithm does wrong in its first batches: a change of the example, and a part of the sentence that `evoxo run` prints
/// before anything is computed.
const AT_ONCE: [(&str, &str, &str); 9] = [
    ("return [self.genome.draw(rng)]", "return 1 / 0", "ask raised ZeroDivisionError: division by zero"),
    ("return [self.genome.draw(rng)]", "return []", "its batch is empty"),
    ("return [self.genome.draw(rng)]", "return [[0.5]]", "candidate 1 of its batch: part \"x\" has 1 gene, not 5"),
    (
        "return [self.genome.draw(rng)]",
        "return [[0, 0, 99, 0, 0]]",
        "candidate 1 of its batch: part \"x\": gene 3 is 99.0, but it must be from",
    ),
    (
        "return [self.genome.draw(rng)]",
        "return [[0, float(\"nan\"), 0, 0, 0]]",
        "candidate 1 of its batch: part \"x\": gene 2 is nan",
    ),
    ("return [self.genome.draw(rng)]", "return 2000 * [5 * [0.0]]", "its batch has 2000 candidates, more than 1000"),
    ("return [self.sigma, self.parent, self.value]", "return 10_000_000 * \"x\"", "its saved state has 10000002 bytes"),
    ("return [self.sigma, self.parent, self.value]", "return {1, 2}", "save returned something that cannot be JSON"),
    ("@evoxo.algorithm(\"one-plus-one\")", "@evoxo.algorithm(\"another\")", "calls itself \"another\""),
];

#[test]
fn a_bad_algorithm_is_rejected_before_its_run() {
    if !has_python() {
        return;
    }
    let site = Site::new();
    fs::write(site.path("own.toml"), file(400)).expect("a file");
    for (number, (old, new, sentence)) in AT_ONCE.into_iter().enumerate() {
        let program = write(&site, &format!("bad{number}.py"), old, new);
        let (text, status) = said(&site.path(""), &["run", "own.toml", "--workers", "0", "--program", &program]);
        assert!(status == Some(1) && text.contains(sentence), "{new}: {text}");
    }
    // Printing is no mistake.
    let loud =
        write(&site, "loud.py", "def ask(self, rng):", "def ask(self, rng, said=print(\"hello\")):\n        print(1)");
    on_one_thread(&site, "own.toml", "loud", &loud);
}

/// A change of the example that shows only later, and a part of the run's message.
const LATER: [(&str, &str, &str); 3] = [
    (
        "return [[self.gene",
        "assert self.sigma > 1e-3, \"too small\"\n        return [[self.gene",
        "AssertionError: too small",
    ),
    (
        "return [[self.gene",
        "while self.sigma < 1e-3: pass\n        return [[self.gene",
        "did not answer within 2 s and was stopped",
    ),
    (
        "return [[self.gene",
        "if self.sigma < 1e-3: import os; os._exit(9)\n        return [[self.gene",
        "ended (exit status: 9) before it could answer",
    ),
];

#[tokio::test]
async fn a_bad_algorithm_fails_only_its_run() {
    if !has_python() {
        return;
    }
    for (number, (old, new, sentence)) in LATER.into_iter().enumerate() {
        let site = Site::new();
        let coordinator = site.coordinator(&[]);
        let address = coordinator.address.to_string();
        fs::write(site.path("own.toml"), file(1000).replace("[settings]", "[settings]\ntimeout = 2")).expect("a file");
        let program = write(&site, &format!("later{number}.py"), old, new);
        let _workers = [1, 2, 3].map(|_| site.worker(coordinator.address, &["--program", &program]));
        let arguments = ["submit", "own.toml", "--coordinator", &address, "--program", &program];
        let mut submitting = site.program("evoxo", &arguments);
        assert!(submitting.end().await.success(), "{}", submitting.log());
        let run = Person::of(coordinator.address).wait("own", |run| run.state() == RunState::Failed).await;
        assert!(run.message.contains(sentence) && !run.message.contains('\n'), "{new}: {}", run.message);
    }
}

/// Two hosts have files of one version that return other batches. The worker whose file differs from the submitter's gets no more
/// of the run, and the run ends as if it were not there.
#[tokio::test]
async fn a_host_with_another_algorithm_computes_nothing() {
    if !has_python() {
        return;
    }
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    fs::write(site.path("own.toml"), file(300)).expect("a file");
    let named = "@evoxo.algorithm(\"one-plus-one\", version=\"1\")";
    let good = write(&site, "good.py", "@evoxo.algorithm(\"one-plus-one\")", named);
    let bad =
        write(&site, "bad.py", "@evoxo.algorithm(\"one-plus-one\")\n", &format!("GROW, SHRINK = 2.0, 0.5\n{named}\n"));
    let digest = on_one_thread(&site, "own.toml", "straight", &good);
    let other = site.worker(coordinator.address, &["--program", &bad]);
    let arguments = ["submit", "own.toml", "--coordinator", &address, "--program", &good];
    let mut submitting = site.program("evoxo", &arguments);
    assert!(submitting.end().await.success(), "{}", submitting.log());
    for _ in 0..500 {
        if other.log().contains("other batches") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(other.log().contains("has an algorithm with other batches"), "{}", other.log());
    let _worker = site.worker(coordinator.address, &["--program", &good]);
    assert_eq!(Person::of(coordinator.address).finished("own").await.digest, digest);
}
