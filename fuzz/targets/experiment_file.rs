//! Experiment files. A file that is accepted stays the same when it is written and read again, and a small run of it can
//! start, be stored, and be restored.

#![no_main]

use evoxo_common::{
    experiment::{Config, Replica},
    task::Encoder,
};
use evoxo_coordinator::prepared::Prepared;
use evoxo_fuzz::registry;

/// The most bytes of a run that is started.
const BYTES_MAX: u64 = 64 << 10;
/// How many tasks are planned, encoded and decoded.
const TASKS: usize = 4;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let config = match Config::parse(registry(), "the file", text, &[]) {
        Ok(config) => config,
        Err(problems) => return assert!(!problems.to_string().is_empty()),
    };
    let written = config.to_toml();
    let again = Config::parse(registry(), "what was written", &written, &[]);
    let again = again.unwrap_or_else(|problems| panic!("{problems}\n{written}"));
    assert_eq!(again.hash(), config.hash(), "{written}");
    assert_eq!(again, config, "{written}");
    drop(config.notes());
    let Ok(prepared) = Prepared::read(registry(), "the file", text) else { return };
    let config = &prepared.config;
    for (number, arm) in config.arms.iter().enumerate().take(2) {
        if prepared.replica_bytes(number as u32) > BYTES_MAX || config.replicas == 0 {
            continue;
        }
        let replica = Replica::start(config, arm, 0);
        let saved = replica.save();
        let restored = Replica::restore(config, &saved).expect("a state that was just stored");
        assert_eq!(restored.digest(), replica.digest());
        let mut encoder = Encoder::default();
        for task in replica.plan(0..replica.tasks().min(TASKS)) {
            let encoded = encoder.encode(task.clone());
            assert_eq!(registry().decode(&encoded).as_ref(), Ok(&task));
        }
    }
});
