//! Attacks on a real coordinator on a real port. None of them fails a run, stops the cluster, or leads to a false result.
//!
//! Limits of memory and time have wide margins: they only show that there is a limit. Long tests run only in release builds.

mod floods;
mod forgery;
mod frames;
mod greed;
mod handshakes;
mod holding;
mod log;
mod losses;
mod piles;
mod slow;

use std::time::Duration;

/// Rounds of small tasks of `invincible`, some seconds in total.
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

/// Checks that no event kept the core busy for long.
pub(crate) fn assert_quick(log: &str) {
    let slow: Vec<&str> = log.lines().filter(|line| line.contains("the core took ")).collect();
    let took = |line: &str| line.split("the core took ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    // The limit is 10 ms. On a busy machine or without optimisation an event may take longer.
    assert!(slow.iter().all(|line| took(line).is_some_and(|ms| ms < 100)), "{slow:?}");
}

pub(crate) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
