//! Reading ahead: while a starting coordinator loads one run after the other, other threads make the system read the small
//! objects of the next runs from the disk. Without this, a start beside a thousand runs waits for thousands of disk accesses,
//! one after the other. Only the system's cache changes, so errors do not matter here.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use crate::names::{INDEX, ORDER, ORDER_COPY};

/// How many threads read ahead.
const THREADS: usize = 4;
/// Fewer runs than this are loaded as quickly without them.
const RUNS_MIN: usize = 16;
/// Larger objects are not read ahead: they would displace others from the cache.
const BYTES_MAX: u64 = 256 << 10;

/// Calls `load`, which reads these runs in this order, while other threads read ahead.
pub(super) fn while_reading_ahead<T>(root: Option<&PathBuf>, runs: &[String], load: impl FnOnce() -> T) -> T {
    let Some(root) = root.filter(|_| runs.len() >= RUNS_MIN) else { return load() };
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let body = || {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    read_ahead(&root.join("runs").join(run));
                }
            };
            // Without a thread, `load` waits for the disk itself.
            let _ = thread::Builder::new().name("ahead".into()).spawn_scoped(scope, body);
        }
        let loaded = load();
        // The threads stop after the run at hand.
        next.store(runs.len(), Ordering::Relaxed);
        loaded
    })
}

/// Begins to read the objects of a run that a start reads in full.
fn read_ahead(run: &Path) {
    for directory in [ORDER, INDEX, ORDER_COPY] {
        let Ok(entries) = fs::read_dir(run.join(directory)) else { continue };
        for entry in entries.flatten() {
            let is_small = entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
            if is_small && let Ok(file) = File::open(entry.path()) {
                begin(&file);
            }
        }
    }
}

/// Makes the system begin to read a file, without waiting for it.
#[cfg(target_os = "linux")]
fn begin(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::WillNeed);
}

/// Reads a file into the system's cache.
#[cfg(not(target_os = "linux"))]
fn begin(mut file: &File) {
    let _ = std::io::copy(&mut file, &mut std::io::sink());
}
