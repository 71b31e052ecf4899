//! The committed files must match their sources. On a mismatch, a test writes the right file and fails once: look at the
//! difference and commit it.

use std::path::PathBuf;

use evoxo_generate::{messages, module, wire};

#[track_caller]
fn assert_fresh(stale: &[PathBuf]) {
    assert!(stale.is_empty(), "these were stale and have been rewritten: commit them: {stale:?}");
}

#[test]
fn the_wire_contract_is_fresh() {
    assert_fresh(&wire());
}

#[test]
fn messages_of_experiments_are_fresh() {
    assert_fresh(&messages());
}

#[test]
fn the_module_of_the_workload_is_fresh() {
    assert_fresh(&module());
}
