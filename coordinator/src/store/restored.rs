//! `evoxo-coordinator restored`: the epochs of a store that was restored from an older copy go on above all that have been.

use evoxo_common::experiment::Registry;

use super::{Lock, Store, StoreFault, place};

/// Says in a store that it was restored; returns the highest epoch of the copy, and the one that was created.
///
/// # Errors
/// A sentence that says what could not be done.
pub fn restored(spec: &str, registry: Registry) -> Result<(u64, u64), String> {
    let directory = place::directory_of(spec);
    if directory.is_some_and(|directory| !["leader", "runs"].iter().any(|part| directory.join(part).is_dir())) {
        return Err(format!("there is no store {spec}: restore the copy first, and name its directory"));
    }
    // A coordinator that runs there would be superseded, and would go on with the restored runs as if they were its own.
    let lock = Lock::take(spec).map_err(|error| error.to_string())?;
    let (mut store, trouble) = Store::open(spec, registry).map_err(|error| error.to_string())?;
    if let Some(why) = trouble {
        return Err(why);
    }
    let epochs = store.restored();
    let epochs =
        epochs.map_err(|(StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why))| why)?;
    drop(lock);
    if let Some(directory) = directory {
        give_to_owner(directory);
    }
    Ok(epochs)
}

/// Files that root has made here belong to whoever owns the directory: the coordinator must read them, and may run as somebody else.
#[cfg(unix)]
fn give_to_owner(directory: &std::path::Path) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let Ok(owner) = directory.metadata() else { return };
    let entries = std::fs::read_dir(directory.join("leader")).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.chain([directory.join("lock"), directory.join("leader")]) {
        // Who is not root has made them as the owner.
        let _ = chown(path, Some(owner.uid()), Some(owner.gid()));
    }
}

#[cfg(not(unix))]
fn give_to_owner(_: &std::path::Path) {}
