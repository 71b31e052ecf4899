//! Reads objects of a store. If one is damaged or missing, its copy is read.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt as _, path::Path};

use super::answer::{self, cause};
use crate::{
    names::{CHECKPOINT, FINISHED, copy_name, object_named},
    pack::PackPlace,
};

/// Reads objects of a store. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) shown: String,
}

impl Reader {
    /// Whether an object of finished replicas and its copy are both good, read one after the other; `None` if one cannot be read.
    pub(crate) async fn are_good(&self, run: &str, object: &str) -> Option<bool> {
        for name in [Some(object.to_owned()), copy_name(object)].into_iter().flatten() {
            match answer::read(&*self.objects, &Path::from(format!("runs/{run}/{name}"))).await {
                Ok(bytes) if is_good(object, &bytes) => {}
                Ok(_) | Err(object_store::Error::NotFound { .. }) => return Some(false),
                Err(_) => return None,
            }
        }
        Some(true)
    }

    /// The bytes of a finished replica, sealed. They are read from its object alone, or from the copy if the object was damaged
    /// since it was written.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub async fn finished(&self, run: &str, place: &PackPlace) -> Result<Bytes, String> {
        let mut bad = Vec::new();
        for name in [Some(place.object.to_string()), copy_name(&place.object)].into_iter().flatten() {
            let name = format!("runs/{run}/{name}");
            let path = Path::from(name.as_str());
            let read = match self.objects.get_range(&path, place.range()).await {
                // Some buckets answer with the whole object.
                Err(error) if !matches!(error, object_store::Error::NotFound { .. }) => {
                    let whole = answer::read(&*self.objects, &path).await;
                    whole.map(|whole| part(&whole, place.range()))
                }
                read => read,
            };
            match read {
                Ok(bytes) if place.is_of(&bytes) => return Ok(bytes),
                Ok(_) => bad.push(format!("the object {name} is damaged in the store {}", self.shown)),
                Err(error) => bad.push(self.unreadable(&name, &error)),
            }
        }
        Err(bad.join(", and "))
    }

    /// The bytes of an object of a run, by its name below `runs/RUN/`. If the object is a checkpoint and was damaged since it was
    /// written, the bytes of its copy.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub async fn get(&self, run: &str, object: &str) -> Result<Bytes, String> {
        Ok(self.get_up_to(run, object, u64::MAX).await?.unwrap_or_default())
    }

    /// Like [`Reader::get`], if the object has at most `bytes_max` bytes; otherwise nothing is read.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub async fn get_up_to(&self, run: &str, object: &str, bytes_max: u64) -> Result<Option<Bytes>, String> {
        let found = self.read_up_to(run, object, bytes_max).await;
        let (Some(named), Some(copy)) = (object_named(object, CHECKPOINT), copy_name(object)) else { return found };
        if !found.as_ref().is_ok_and(|bytes| bytes.as_ref().is_none_or(|bytes| named.is_of(bytes)))
            && let Ok(Some(bytes)) = self.read_up_to(run, &copy, bytes_max).await
            && named.is_of(&bytes)
        {
            return Ok(Some(bytes));
        }
        found
    }

    /// The bytes of one object of a run, if there are at most `bytes_max`.
    async fn read_up_to(&self, run: &str, object: &str, bytes_max: u64) -> Result<Option<Bytes>, String> {
        let name = format!("runs/{run}/{object}");
        let bytes = async {
            let found = self.objects.get(&Path::from(name.as_str())).await?;
            if found.meta.size > bytes_max { Ok(None) } else { found.bytes().await.map(Some) }
        };
        bytes.await.map_err(|error| self.unreadable(&name, &error))
    }

    pub(super) fn unreadable(&self, name: &str, error: &object_store::Error) -> String {
        format!("the object {name} cannot be read in the store {}: {}", self.shown, cause(error))
    }
}

/// These bytes of an object; none if it is too short.
fn part(whole: &Bytes, range: Range<u64>) -> Bytes {
    let [start, end] = [range.start, range.end].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
    if start <= end && end <= whole.len() { whole.slice(start..end) } else { Bytes::new() }
}

/// Whether these bytes match the digest in the name of this object of finished replicas.
pub(super) fn is_good(object: &str, bytes: &Bytes) -> bool {
    object_named(object, FINISHED).is_some_and(|named| named.is_of(bytes))
}
