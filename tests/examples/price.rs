//! What the chain of digests costs: the time for all links of a run, compared with the time for the whole run on one thread.
//! And what it costs to recall an evaluation, compared with one of a built-in function.
//!
//! `cargo run --release -p evoxo-tests --example price`

use std::{
    collections::VecDeque,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use evoxo_common::{
    digest::Digest,
    experiment::{Config, Replica},
    local,
    task::NoPrograms,
};
use evoxo_coordinator::{
    core::{SessionId, TaskId},
    prepared::Prepared,
    replicas::{Counted, Job, Recall, Recalling, ReceivedOutput, ReplicaKey, Replicas, Report, Sender},
    trust::{Draw, Worth},
};
use evoxo_experiments::registry;
use evoxo_tests::programs::workspace;

/// Files as people run them, each shortened to some seconds. A league is left out, because its file names other files and it
/// has a link only for every few hundred games.
const RUNS: [(&str, &[(&str, &str)]); 8] = [
    ("dispatch.toml", &[]),
    ("invincible.toml", &[]),
    ("menace.toml", &[]),
    ("ternary.toml", &[]),
    ("rules.toml", &[("cycles", "200")]),
    ("nndtf.toml", &[("iterations", "2000")]),
    ("td3d-paper.toml", &[("games", "20000")]),
    ("rosenbrock.toml", &[]),
];

#[expect(clippy::print_stdout, reason = "what was measured")]
fn main() {
    recalling();
    for (name, overrides) in RUNS {
        let text = fs::read_to_string(workspace().join("experiments").join(name)).expect("a file of the repository");
        let overrides: Vec<_> =
            overrides.iter().chain(&[("replicas", "1")]).map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let config =
            Config::parse(&registry(), name, &text, &overrides).unwrap_or_else(|problems| panic!("{problems}"));
        for arm in &config.arms {
            let (mut replica, begun, mut links) = (Replica::start(&config, arm, 0), Instant::now(), Duration::ZERO);
            let mut before = 0;
            while local::step(&mut replica).expect("a planned task is computed") {
                if replica.links().len() > before {
                    before = replica.links().len();
                    let link = Instant::now();
                    assert_eq!(replica.links()[before - 1].digest, replica.digest());
                    links += link.elapsed();
                }
            }
            // Each link was computed once more here than in the run.
            let whole = begun.elapsed() - links;
            let percent = 100.0 * links.as_secs_f64() / whole.as_secs_f64();
            println!("{name}, arm {}: {before} links, {percent:.3} % of {:.2} s", arm.name, whole.as_secs_f64());
        }
    }
}

/// A search of bits, in which many candidates are evaluated again, with one candidate in each task.
const SEARCH: &str = "experiment = \"evolve\"\nreplicas = 1\n[settings]\nproblem = \"onemax\"\nlength = 30\n\
    evaluations = 20000\nslice = 1\nbaseline = \"none\"\nrecall = \"yes\"\n";

#[expect(clippy::print_stdout, reason = "what was measured")]
fn recalling() {
    let recall = Arc::new(Recall::new(64 << 20));
    let plain = search(None).0;
    println!("recall: {plain:.2} us to plan, check and absorb an evaluation without it");
    for what in ["first run", "same run again", "and again"] {
        let (took, Counted { parts, recalled, .. }) =
            search(Some(Recalling::new(Arc::clone(&recall), Digest::of(b""))));
        println!("recall: {what}: {recalled} of {parts} recalled, {:+.2} us for each of all", took - plain);
    }
}

/// The microseconds for each evaluation of the thread of a run, without those of the worker, and what was recalled.
fn search(recalling: Option<Recalling>) -> (f64, Counted) {
    let config = Config::parse(&registry(), "the search", SEARCH, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let replica = ReplicaKey { arm: 0, index: 0 };
    let prepared = Prepared::new(config);
    let mut replicas = Replicas::new(&registry(), prepared, Draw::default(), Vec::new()).recalling(recalling);
    let (mut jobs, mut took, mut all) = (VecDeque::new(), Duration::ZERO, Counted::default());
    jobs.push_back(Job::Open { replica, attempt: 0 });
    while let Some(job) = jobs.pop_front() {
        let begun = Instant::now();
        let reports = replicas.run(job);
        took += begun.elapsed();
        for report in reports {
            let Report::Planned { total, planned, round, tasks, counted, .. } = report else { continue };
            all.parts += counted.parts;
            all.recalled += counted.recalled;
            for task in tasks {
                let output = registry().run(&task.encoded, &mut NoPrograms).expect("a planned task is computed");
                let from = Sender { session: SessionId(1), worker: "w".into(), asked: true, holder: None };
                let (index, work, encoded, worth) = (task.index, task.work, task.encoded, Worth::Taken);
                let task = TaskId(1);
                jobs.push_back(Job::Take(vec![ReceivedOutput {
                    task,
                    from,
                    replica,
                    round,
                    index,
                    work,
                    encoded,
                    output,
                    worth,
                }]));
            }
            if planned < total {
                jobs.push_back(Job::Plan(replica));
            }
        }
    }
    (took.as_secs_f64() * 1e6 / 20_000.0, all)
}
