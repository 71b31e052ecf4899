//! The objects that coordinators share. Like the real ones they can only be created. Sometimes a response is lost, or a bit
//! flips.

use std::sync::Arc;

use bytes::Bytes;
use evoxo_common::rng::{Generator, below};
use futures_util::{FutureExt as _, TryStreamExt as _};
use object_store::{ObjectStore, ObjectStoreExt as _, path::Path};

pub(super) use super::faulty::{Fault, Faulty as Objects};

/// Objects in memory are available at once.
fn now<T>(future: impl Future<Output = object_store::Result<T>>) -> T {
    future.now_or_never().expect("memory answers at once").expect("the object is there")
}

/// The names of all objects, sorted.
pub(super) fn names(objects: &Arc<Objects>) -> Vec<String> {
    let found: Vec<object_store::ObjectMeta> = now(objects.list(None).try_collect());
    let mut names: Vec<String> = found.into_iter().map(|meta| meta.location.to_string()).collect();
    names.sort();
    names
}

/// Damages a checkpoint or a finished replica, by flipping a bit or cutting it short. Returns false if there is none.
pub(super) fn damage(objects: &Arc<Objects>, rng: &mut Generator) -> bool {
    let mut names = names(objects);
    names.retain(|name| {
        ["/checkpoint/", "/checkpoint-copy/", "/finished/", "/finished-copy/"].iter().any(|part| name.contains(part))
    });
    if names.is_empty() {
        return false;
    }
    let name = &Path::from(names[below(rng, names.len() as u64) as usize].as_str());
    let mut bytes = now(async { objects.get(name).await?.bytes().await }).to_vec();
    match bytes.len() {
        0 => {}
        length if below(rng, 3) == 0 => bytes.truncate(below(rng, length as u64) as usize),
        length => bytes[below(rng, length as u64) as usize] ^= 1 << below(rng, 8),
    }
    let put = || objects.put(name, Bytes::from(bytes.clone()).into()).now_or_never();
    // A fault that was drawn for a coordinator that is gone may affect this creation.
    drop(put());
    drop(put());
    true
}
