//! What the chain of digests costs: the time for all links of a run, compared with the time for the whole run on one thread.
//!
//! `cargo run --release -p evoxo-tests --example price`

use std::{
    fs,
    time::{Duration, Instant},
};

use evoxo_common::{
    experiment::{Config, Replica},
    local,
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
