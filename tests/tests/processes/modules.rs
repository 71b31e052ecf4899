//! WebAssembly modules. A search has the same result as with the built-in function, and workers have only what the
//! coordinator sends. A module that cannot be trusted ends its run with a sentence, or is refused before.

use std::{fs, path::Path, process::Command};

use evoxo_common::experiment::Config;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    programs::workspace,
    registry,
};

/// Rosenbrock's valley, as the built-in function.
const BUILT_IN: &str = "experiment = \"evolve\"\nseed = 3\nreplicas = 3\n[settings]\nproblem = \"rosenbrock\"\nlength = 6\n\
                        algorithm = \"cma-es\"\nevaluations = 3000\nslice = 2\n";

/// The same search with a module. `settings` come before the other settings.
fn file(settings: &str) -> String {
    let problem = format!("{settings}problem = \"wasm:rosen.wasm\"\nobjectives = \"min cost\"\n");
    let settings = BUILT_IN.replace("problem = \"rosenbrock\"\nlength = 6\n", &problem);
    format!("{settings}[[genome]]\nlength = 6\nlow = -5\nhigh = 10\n")
}

fn example(name: &str) -> std::path::PathBuf {
    workspace().join("examples/wasm").join(name)
}

/// A site with the file, and the module in a subdirectory.
fn site(settings: &str) -> Site {
    let site = Site::new();
    fs::create_dir(site.path("mine")).expect("a directory");
    fs::copy(example("rosen.wasm"), site.path("mine/rosen.wasm")).expect("the module");
    fs::write(site.path("mine/rosen.toml"), file(settings)).expect("a file");
    site
}

/// Runs `evoxo` in the site.
async fn evoxo(site: &Site, arguments: &[&str]) {
    let mut person = site.program("evoxo", arguments);
    let status = person.end().await;
    assert!(status.success(), "{arguments:?}: {}", person.log());
}

fn digest(site: &Site, results: &str) -> String {
    let text = fs::read_to_string(site.path(results).join("result.json")).expect("results");
    let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    result["digest"].as_str().expect("a digest").to_owned()
}

/// On a cluster whose workers come and go, on one thread, and from the results alone; with the random search that `evoxo
/// submit` adds exactly once.
#[tokio::test]
async fn a_module_has_the_same_result_as_the_function_everywhere() {
    let site = site("");
    let config = Config::parse(registry(), "t", BUILT_IN, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let right = digest_of_one_thread(&config.completed(true).to_toml());
    assert_ne!(right, digest_of_one_thread(BUILT_IN));
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let mut killed = site.worker(coordinator.address, &[]);
    evoxo(&site, &["submit", "mine/rosen.toml", "--coordinator", &address]).await;
    let mut person = Person::of(coordinator.address);
    person.wait("rosen", |run| run.tasks_done > 20).await;
    killed.kill();
    let _workers = [1, 2].map(|_| site.worker(coordinator.address, &[]));
    assert_eq!(person.finished("rosen").await.digest, right);
    evoxo(&site, &["fetch", "rosen", "--coordinator", &address, "--out", "fetched"]).await;
    fs::remove_dir_all(site.path("mine")).expect("the directory exists");
    evoxo(&site, &["run", "fetched/config.toml", "--workers", "0", "--out", "again"]).await;
    assert_eq!((digest(&site, "fetched"), digest(&site, "again")), (right.clone(), right));
}

/// A module that a person could send without the command-line client.
#[tokio::test]
async fn files_without_a_valid_module_are_rejected() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let all = [
        ("", "the settings lack the contents of rosen.wasm"),
        ("module = \"AAAA\"\n", "this is not a WebAssembly module"),
        ("module = \"AGFzbQEAAAABBAFgAAACBwEBYQFiAAA=\"\n", "the module imports \"a.b\""),
        ("module = \"AGFzbQEAAAA=\"\n", "does not export its memory"),
    ];
    for (settings, part) in all {
        let refused = person.try_submit("bad", &file(settings)).await.expect_err(part);
        assert!(refused.message().contains(part), "{refused}");
    }
}

#[tokio::test]
async fn an_endless_module_fails_only_its_run() {
    let site = site("fuel = 1000000000\n");
    let coordinator = site.coordinator(&[]);
    let _workers = [1, 2, 3].map(|number| site.worker(coordinator.address, &["--name", &format!("w{number}")]));
    // The module exports everything that it must, and its evaluation is an endless loop.
    let endless = "AGFzbQEAAAABDQJgAX8Bf2ADf39+AX8DAwIAAQUDAQABByoDBm1lbW9yeQIADGV2b3hvX2J1ZmZlcgAADmV2b3hvX2V2YWx1\
                   YXRlAAEKEAIFAEGACAsIAANADAALAAs=";
    let mut person = Person::of(coordinator.address);
    assert!(person.submit("endless", &file(&format!("fuel = 1000000\nmodule = \"{endless}\"\n"))).await);
    let run = person.wait("endless", |run| run.state() == RunState::Failed).await;
    assert!(run.message.contains("the module used up its fuel, 1000000"), "{}", run.message);
    assert!(person.submit("after", BUILT_IN).await);
    assert_eq!(person.finished("after").await.digest, digest_of_one_thread(BUILT_IN));
}

/// The digest of the search with the module of this file.
fn digest_with(module: &Path) -> String {
    let text = file("");
    let bytes = fs::read(module).expect("a module");
    let config = Config::parse(registry(), "t", &text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let reads = config.kind.reads.expect("evolve reads modules");
    let said = (reads.settings)(&config.arms[0].settings, &bytes).unwrap_or_else(|why| panic!("{why}"));
    let said: Vec<(String, String)> = said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let config = Config::parse(registry(), "t", &text, &said).unwrap_or_else(|problems| panic!("{problems}"));
    digest_of_one_thread(&config.to_toml())
}

/// Another version of the compiler may produce other bytes, but their results must be the same. Without a compiler only the
/// committed modules are checked.
#[test]
fn the_examples_match_their_sources() {
    let right = digest_of_one_thread(BUILT_IN);
    for committed in ["rosen.wasm", "rosen-as.wasm"] {
        assert_eq!(digest_with(&example(committed)), right, "{committed}");
    }
    let all = [
        ("rosen.c", "clang --target", "rosen.wasm", &["clang", "wasm-ld"][..]),
        ("rosen.ts", "npx asc", "rosen-as.wasm", &["asc"]),
    ];
    for (source, command, module, compilers) in all {
        let there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success());
        if compilers.iter().all(there) {
            assert_eq!(rebuilt(source, command, module), right, "{source}");
        }
    }
}

/// The digest of the search with the module that is built from a source, by the command in its first comment.
fn rebuilt(source: &str, command: &str, module: &str) -> String {
    let text = fs::read_to_string(example(source)).expect("the source");
    let lines = text.lines().skip_while(|line| !line.contains(command));
    let mut command = String::new();
    for line in lines {
        let line = line.trim_start_matches([' ', '*', '/']).trim_start_matches("npx ");
        command += line.trim_end_matches('\\');
        if !line.ends_with('\\') {
            break;
        }
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::copy(example(source), directory.path().join(source)).expect("a copy");
    let built = Command::new("sh").arg("-c").arg(&command).current_dir(directory.path()).status();
    assert!(built.is_ok_and(|status| status.success()), "{command}");
    digest_with(&directory.path().join(module))
}
