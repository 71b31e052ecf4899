//! What somebody does who means to break a promise: to the real coordinator on a real port. Nothing of it fails a run, stops
//! the cluster, or makes it tell what is not so.
//!
//! Figures of memory and time have wide margins: they tell a bound from none. What takes long runs in release alone.

mod hostile {
    mod forgery;
    mod greed;
    mod holding;
    mod losses;
    mod slow;
}

use std::time::Duration;

/// Rounds of small tasks of `invincible`, some seconds in all.
pub(crate) fn some_seconds(replicas: u32, generations: u32) -> String {
    format!(
        "experiment = \"invincible\"\nseed = 3\nreplicas = {replicas}\n[settings]\npopulation = 200\ngenerations = {generations}\n\
         games = 3000\nslice = 20\n"
    )
}

/// Rounds of tasks that do nothing.
pub(crate) fn echoes(replicas: u32, rounds: u32, tasks: u32, payload_bytes: u32) -> String {
    format!(
        "experiment = \"dispatch\"\nreplicas = {replicas}\n[settings]\nrounds = {rounds}\ntasks = {tasks}\n\
         payload_bytes = {payload_bytes}\nreply_bytes = 16\n"
    )
}

/// The core must not have been kept for long by anything.
pub(crate) fn assert_quick(log: &str) {
    let slow: Vec<&str> = log.lines().filter(|line| line.contains("the core took ")).collect();
    let took = |line: &str| line.split("the core took ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    // Ten milliseconds are the budget; on a busy machine, and without optimisation, more may pass.
    assert!(slow.iter().all(|line| took(line).is_some_and(|ms| ms < 100)), "{slow:?}");
}

pub(crate) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
