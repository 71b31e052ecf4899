//! `evoxo-coordinator restored`: raises the epochs of a store that was restored from an older copy above all earlier ones.

use evoxo_common::experiment::Registry;

use super::{Lock, Store, StoreFault, place};

/// Records in a store that it was restored. Returns the highest epoch of the copy, and the epoch that was created.
///
/// # Errors
/// A sentence that says what failed.
pub fn restored(spec: &str, registry: Registry) -> Result<(u64, u64), String> {
    let directory = place::directory_of(spec);
    if directory.is_some_and(|directory| !["leader", "runs"].iter().any(|part| directory.join(part).is_dir())) {
        return Err(format!("there is no store {spec}: restore the copy first, and name its directory"));
    }
    // A coordinator that still runs there would be superseded, and would continue the restored runs as if they were its own.
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

/// Gives files that root created here to the owner of the directory: the coordinator must read them and may run as another
/// user.
#[cfg(unix)]
fn give_to_owner(directory: &std::path::Path) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let Ok(owner) = directory.metadata() else { return };
    let entries = std::fs::read_dir(directory.join("leader")).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.chain([directory.join("lock"), directory.join("leader")]) {
        // A process that is not root has created them as the owner.
        let _ = chown(path, Some(owner.uid()), Some(owner.gid()));
    }
}

#[cfg(not(unix))]
fn give_to_owner(_: &std::path::Path) {}
