//! What the store found of a run, and how objects are named and read back. Pure: the reading itself is passed in.
//!
//! Names are `runs/RUN/order/000001-DIGEST`, `.../checkpoint/000042-DIGEST` and `.../finished/0000001000007-DIGEST`, where
//! DIGEST are the first 16 hexadecimal digits of the SHA-256 of the object's bytes. A number is used once; nothing is ever
//! overwritten. `.../epoch/000007` says who leads, `.../poison/HASH.task` is a task that broke the run.

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Damage, Kind, open},
};
use evoxo_proto::v1;
use prost::Message;

use crate::core::Write;

/// One run as it lies in the store: pure data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedRun {
    /// The run's name.
    pub name: String,
    /// The highest number of an order seen, good or bad.
    pub order_number: u64,
    /// The newest good order.
    pub order: v1::Order,
    /// The highest number of a checkpoint seen, good or bad; 0 if there is none.
    pub checkpoint_number: u64,
    /// The newest good checkpoint.
    pub checkpoint: Option<v1::Checkpoint>,
    /// The good ones.
    pub finished: Vec<v1::Finished>,
    /// A sentence for each object that was refused, naming it.
    pub notices: Vec<String>,
}

/// The name, below `runs/RUN/`, of the object that a write creates; `None` for those that create none.
#[must_use]
pub fn object_name(write: &Write) -> Option<String> {
    let short = |bytes: &Bytes| Digest::of(bytes).short();
    match write {
        Write::Order { number, bytes } => Some(format!("order/{number:06}-{}", short(bytes))),
        Write::Checkpoint { number, bytes } => Some(format!("checkpoint/{number:06}-{}", short(bytes))),
        Write::Finished { ordinal, bytes } => Some(format!("finished/{ordinal:013}-{}", short(bytes))),
        Write::Poison { hash, .. } => Some(format!("poison/{hash}.task")),
        Write::DropCheckpoints | Write::Delete => None,
    }
}

/// The number in an object's name, if the name is one that [`object_name`] makes.
#[must_use]
pub fn object_number<'a>(name: &'a str, directory: &str) -> Option<(u64, &'a str)> {
    let (number, digest) = name.strip_prefix(directory)?.strip_prefix('/')?.split_once('-')?;
    let plain = digest.len() == 16 && number.bytes().all(|byte| byte.is_ascii_digit());
    if plain { Some((number.parse().ok()?, digest)) } else { None }
}

/// Makes sense of a run's objects, whose names below `runs/RUN/` are given: the newest good order and checkpoint, and all
/// good finished replicas. `read` fetches one object. `None` if there is no good order: nothing was ever promised.
pub fn interpret(
    run: &str,
    names: &[String],
    mut read: impl FnMut(&str) -> Result<Bytes, String>,
) -> (Option<SavedRun>, Vec<String>) {
    let mut saved = SavedRun { name: run.into(), ..SavedRun::default() };
    let mut notices = Vec::new();
    let mut body = |name: &str, kind: Kind, digest: &str| -> Option<Bytes> {
        let checked = read(name).and_then(|bytes| match open(kind, &bytes) {
            Ok(_) if Digest::of(&bytes).short() != digest => Err(Damage::Checksum.to_string()),
            Ok(body) => Ok(body),
            Err(damage) => Err(damage.to_string()),
        });
        checked.map_err(|why| notices.push(format!("the object runs/{run}/{name} {why}: it is not used"))).ok()
    };
    let numbered = |directory: &str| {
        let mut found: Vec<(u64, &str, &str)> = names
            .iter()
            .filter_map(|name| object_number(name, directory).map(|(number, digest)| (number, digest, name.as_str())))
            .collect();
        found.sort_unstable();
        found
    };
    let orders = numbered("order");
    saved.order_number = orders.last().map_or(0, |order| order.0);
    let order = orders.iter().rev().find_map(|(_, digest, name)| decode(body(name, Kind::Order, digest)?));
    let checkpoints = numbered("checkpoint");
    saved.checkpoint_number = checkpoints.last().map_or(0, |checkpoint| checkpoint.0);
    saved.checkpoint =
        checkpoints.iter().rev().find_map(|(_, digest, name)| decode(body(name, Kind::Checkpoint, digest)?));
    let finished = numbered("finished");
    saved.finished =
        finished.iter().filter_map(|(_, digest, name)| decode(body(name, Kind::Finished, digest)?)).collect();
    match order {
        Some(order) => (Some(SavedRun { order, notices, ..saved }), Vec::new()),
        None => (None, notices),
    }
}

/// A sealed body that is not the message would have to be written by another program: it is left out like a damaged one.
fn decode<M: Message + Default>(body: Bytes) -> Option<M> {
    M::decode(body).ok()
}
