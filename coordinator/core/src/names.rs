//! Names of runs, which users choose, and of stored objects.
//!
//! The objects of a run are below `runs/RUN/`: `order/BORN-NUMBER`, `order-copy/BORN-NUMBER-DIGEST`,
//! `checkpoint/EPOCH-NUMBER-DIGEST`, `kept/EPOCH-NUMBER-DIGEST`, `finished/EPOCH-NUMBER-COUNT-DIGEST`, `doubt/EPOCH-NUMBER-DIGEST` and `poison/HASH.task`, a
//! task that made the run fail. EPOCH is the epoch of the coordinator that wrote the object. BORN is the epoch in which the
//! run was submitted. COUNT is the number of replicas in the object. DIGEST is the first 16 hexadecimal digits of the SHA-256 of the object's bytes. The name of an order
//! contains neither a digest nor its writer: the coordinator that creates `000007-000002` first has given the second order,
//! and every other coordinator sees that its own order came too late.
//!
//! `order-copy/` has a copy of each order, so that a run does not depend on a single object. The digest in the copy's
//! name also tells whether the object `order/BORN-NUMBER` is the order that was given: see the coordinator's `store`.
//! `finished-copy/` has a copy of each object in `finished/` under the same name, and `checkpoint-copy/` a copy of the newest
//! object in `checkpoint/`. `kept/` has copies of some earlier ones: see [`crate::kept`].
//!
//! Format 1 of the store named the object of one finished replica `finished/ORDINAL-EPOCH-DIGEST`.
//!
//! `index/EPOCH-NUMBER-DIGEST` lists the finished replicas: see [`crate::index`].
//!
//! `deleted/BORN-NUMBER` marks the run as deleted, unless the run has an order with a higher number: see the coordinator's
//! `store`.
//!
//! Next to `runs/` there are `leader/EPOCH`, `convicted/IDENTITY` and `revoked/ID`. Convictions and revocations belong to no
//! run and no epoch: they stay in force whichever coordinator leads. The newest of `cordons/EPOCH-NUMBER-DIGEST` lists the
//! workers that get no tasks. `audit/EPOCH-NUMBER-DIGEST` has lines of the audit log,
//! and `audit-rights/EPOCH-NUMBER-DIGEST` has its lines about operators and rights.
//!

use bytes::Bytes;
use evoxo_common::digest::Digest;

use crate::write::Write;

/// The maximum length of a run's name, in characters.
const NAME_CHARACTERS_MAX: usize = 64;
/// The number of digits of a digest in a name.
const DIGEST_DIGITS: usize = 16;
/// The minimum number of digits of a number in a name.
const NUMBER_DIGITS: usize = 6;

/// Checks a run's name. The name becomes a directory's name, so few characters are allowed.
///
/// # Errors
/// A sentence that says what a name may contain.
pub fn check_run_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.starts_with(plain) && name.chars().all(|c| plain(c) || "-_.".contains(c));
    if good && name.len() <= NAME_CHARACTERS_MAX {
        return Ok(());
    }
    if good {
        let length = name.len();
        return Err(format!("the name of the run has {length} characters: use at most {NAME_CHARACTERS_MAX}"));
    }
    let shown: String = name.chars().take(NAME_CHARACTERS_MAX).filter(|c| !c.is_control()).collect();
    Err(format!(
        "{shown:?} cannot name a run: use 1 to {NAME_CHARACTERS_MAX} of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit"
    ))
}

/// The name, below `runs/RUN/`, of the object that a coordinator of this epoch creates for a write. `None` for writes that
/// create no object, and for orders and finished replicas, which [`order_name`] and [`finished_name`] name.
#[must_use]
pub fn object_name(write: &Write, epoch: u64) -> Option<String> {
    let short = |bytes: &Bytes| Digest::of(bytes).short();
    match write {
        Write::Checkpoint { number, bytes, .. } => Some(format!("checkpoint/{epoch:06}-{number:06}-{}", short(bytes))),
        Write::Doubt { number, bytes } => Some(format!("doubt/{epoch:06}-{number:06}-{}", short(bytes))),
        Write::Poison { hash, .. } => Some(format!("poison/{hash}.task")),
        Write::Order { .. }
        | Write::Finished { .. }
        | Write::Convict { .. }
        | Write::Revoke { .. }
        | Write::Cordons { .. }
        | Write::Mend { .. }
        | Write::DropCheckpoints
        | Write::Delete
        | Write::Load
        | Write::LoadFork { .. } => None,
    }
}

/// The directory of a run's orders, below the directory of the run.
pub const ORDER: &str = "order";
/// The directory of the copies of a run's orders, below the directory of the run.
pub const ORDER_COPY: &str = "order-copy";

/// The directory of a run's finished replicas, below the directory of the run.
pub const FINISHED: &str = "finished";
/// The directory of the copies of a run's finished replicas, below the directory of the run.
pub const FINISHED_COPY: &str = "finished-copy";

/// The directory of the indices of a run's finished replicas, below the directory of the run.
pub const INDEX: &str = "index";

/// The directory of a run's checkpoints, below the directory of the run.
pub const CHECKPOINT: &str = "checkpoint";
/// The directory of the copy of a run's newest checkpoint, below the directory of the run.
pub const CHECKPOINT_COPY: &str = "checkpoint-copy";

/// The directory of a run's states from its middle, below the directory of the run.
pub const KEPT: &str = "kept";

/// The directory of the objects that mark a run as deleted, below the directory of the run.
pub const DELETED: &str = "deleted";
/// The directory of the convictions.
pub const CONVICTED: &str = "convicted";
/// The directory of the identities and tokens that operators have revoked.
pub const REVOKED: &str = "revoked";

/// The directory of the cordons of workers.
pub const CORDONS: &str = "cordons";

/// The directory of the audit log, except the lines in [`AUDIT_RIGHTS`].
pub const AUDIT: &str = "audit";
/// The directory of the audit log's lines about rights and about actions of operators and coordinators.
pub const AUDIT_RIGHTS: &str = "audit-rights";

/// The name, below `runs/RUN/`, of an order of a run that was submitted in epoch `born`. Numbers start at 1.
#[must_use]
pub fn order_name(born: u64, number: u64) -> String {
    format!("{ORDER}/{born:06}-{number:06}")
}

/// The name, below `runs/RUN/`, of the copy of an order with these bytes.
#[must_use]
pub fn order_copy_name(born: u64, number: u64, bytes: &Bytes) -> String {
    format!("{ORDER_COPY}/{born:06}-{number:06}-{}", Digest::of(bytes).short())
}

/// The name, below `runs/RUN/`, of a pack of so many finished replicas with these bytes.
#[must_use]
pub fn finished_name(epoch: u64, number: u64, count: usize, pack: &Bytes) -> String {
    format!("{FINISHED}/{epoch:06}-{number:06}-{count:06}-{}", Digest::of(pack).short())
}

/// The name, below `runs/RUN/`, under which a checkpoint of this name stays.
///
/// # Panics
/// If the name is not that of a checkpoint.
#[must_use]
pub fn kept_name(checkpoint: &str) -> String {
    match checkpoint.split_once('/') {
        Some((CHECKPOINT, name)) => format!("{KEPT}/{name}"),
        _ => panic!("{checkpoint} is not the name of a checkpoint"),
    }
}

/// The name, below `runs/RUN/`, of the copy of an object. `None` unless the object has finished replicas or is a checkpoint.
#[must_use]
pub fn copy_name(object: &str) -> Option<String> {
    let (directory, name) = object.split_once('/')?;
    match directory {
        FINISHED => Some(format!("{FINISHED_COPY}/{name}")),
        CHECKPOINT => Some(format!("{CHECKPOINT_COPY}/{name}")),
        _ => None,
    }
}

/// The name of a list of cordons with these bytes.
#[must_use]
pub fn cordons_name(epoch: u64, number: u64, bytes: &Bytes) -> String {
    format!("{CORDONS}/{epoch:06}-{number:06}-{}", Digest::of(bytes).short())
}

/// The name, below `runs/RUN/`, of an index with these bytes.
#[must_use]
pub fn index_name(epoch: u64, number: u64, bytes: &Bytes) -> String {
    format!("{INDEX}/{epoch:06}-{number:06}-{}", Digest::of(bytes).short())
}

/// The name, below `runs/RUN/`, of the object that marks a run with this number of orders as deleted.
#[must_use]
pub fn deleted_name(born: u64, orders: u64) -> String {
    format!("{DELETED}/{born:06}-{orders:06}")
}

/// The information in an object's name. Values are ordered by epoch, then by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The epoch in which the object was written. For an order, its copy or a deletion: the epoch in which the run was
    /// submitted.
    pub epoch: u64,
    /// The object's number; in format 1, for a finished replica, its ordinal.
    pub number: u64,
    /// How many finished replicas are in the object; 0 for other objects.
    pub count: u64,
    /// The first digits of the SHA-256 of the object's bytes, if the name contains them.
    pub digest: Option<String>,
    /// The name itself, below `runs/RUN/`.
    pub object: String,
}

impl Named {
    /// Whether the object is the copy of an order, of finished replicas or of a checkpoint.
    pub fn is_copy(&self) -> bool {
        [ORDER_COPY, FINISHED_COPY, CHECKPOINT_COPY].iter().any(|directory| self.object.starts_with(directory))
    }

    /// For a copy of finished replicas or of a checkpoint, the name of the original; otherwise the name itself.
    pub fn original(&self) -> String {
        match self.object.split_once('/') {
            Some((FINISHED_COPY, name)) => format!("{FINISHED}/{name}"),
            Some((CHECKPOINT_COPY, name)) => format!("{CHECKPOINT}/{name}"),
            _ => self.object.clone(),
        }
    }

    /// What follows if neither this object of finished replicas nor its copy can be used.
    pub fn computed_again(&self) -> String {
        match self.count {
            0 | 1 => "its replica is computed again, unless another object has it".into(),
            count => format!("its {count} replicas are computed again, except those that another object has"),
        }
    }

    /// Whether the digest in the name is that of these bytes. A name without a digest fits any bytes.
    pub fn is_of(&self, bytes: &Bytes) -> bool {
        self.digest.as_ref().is_none_or(|digest| Digest::of(bytes).short() == *digest)
    }
}

/// Parses the name of an object below `runs/RUN/`. `None` if the object is not in this directory (`order`, `order-copy`,
/// `checkpoint`, `checkpoint-copy`, `kept`, `finished`, `finished-copy`, `index`, `doubt`, `deleted` or `cordons`), or if this program
/// does not name objects in this way.
#[must_use]
pub fn object_named(name: &str, directory: &str) -> Option<Named> {
    let parts: Vec<&str> = name.strip_prefix(directory)?.strip_prefix('/')?.split('-').collect();
    let number = |text: &str| {
        let plain = text.len() >= NUMBER_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { text.parse::<u64>().ok() } else { None }
    };
    let digest = |text: &str| (text.len() == DIGEST_DIGITS).then(|| text.to_owned());
    let (epoch, number, count, digest) = match (directory, parts.as_slice()) {
        (DELETED | ORDER, [born, orders]) => (number(born)?, number(orders)?, 0, None),
        (FINISHED | FINISHED_COPY, [epoch, pack, count, hash]) => {
            (number(epoch)?, number(pack)?, number(count)?, Some(digest(hash)?))
        }
        // Format 1.
        (FINISHED | FINISHED_COPY, [ordinal, epoch, hash]) => {
            (number(epoch)?, number(ordinal)?, 1, Some(digest(hash)?))
        }
        (
            CHECKPOINT | CHECKPOINT_COPY | KEPT | INDEX | "doubt" | AUDIT | AUDIT_RIGHTS | ORDER_COPY | CORDONS,
            [epoch, place, hash],
        ) => (number(epoch)?, number(place)?, 0, Some(digest(hash)?)),
        _ => return None,
    };
    Some(Named { epoch, number, count, digest, object: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_store_are_rejected() {
        for good in ["invincible", "a", "0.1_b-c", &"x".repeat(64)] {
            assert_eq!(check_run_name(good), Ok(()));
        }
        for bad in ["", ".", "..", "../x", "A", "a/b", "a b", "-a", "a\n", "é", &"x".repeat(65)] {
            assert!(check_run_name(bad).is_err(), "{bad:?}");
        }
        let long = check_run_name(&"x".repeat(70)).unwrap_err();
        assert_eq!(long, "the name of the run has 70 characters: use at most 64");
    }

    #[test]
    fn object_names_are_parsed_back() {
        let bytes = Bytes::from_static(b"x");
        let digest = Some(Digest::of(&bytes).short());
        let named = |write: Write, directory| object_named(&object_name(&write, 12).unwrap(), directory).unwrap();
        let finished = finished_name(12, 9, 20_000, &bytes);
        // An object of format 1: the first replica of the fourth arm.
        let first = format!("finished/0000003000000-000012-{}", digest.as_deref().unwrap());
        for (named, number, count) in [
            (named(Write::Checkpoint { number: 7, bytes: bytes.clone(), keep: 0 }, "checkpoint"), 7, 0),
            (named(Write::Doubt { number: 8, bytes: bytes.clone() }, "doubt"), 8, 0),
            (object_named(&finished, FINISHED).unwrap(), 9, 20_000),
            (object_named(&first, FINISHED).unwrap(), 3_000_000, 1),
        ] {
            assert_eq!((named.epoch, named.number, named.count, &named.digest), (12, number, count, &digest));
        }
        let order = object_named(&order_name(1_234_567, 2), "order").unwrap();
        assert_eq!((order.epoch, order.number, order.digest), (1_234_567, 2, None));
        let copy = object_named(&order_copy_name(7, 2, &bytes), ORDER_COPY).unwrap();
        assert_eq!((copy.epoch, copy.number, copy.digest), (7, 2, digest));
        assert_eq!(object_named(&copy.object, ORDER), None);
        let finished = finished_name(12, 3, 1, &bytes);
        let checkpoint = object_name(&Write::Checkpoint { number: 3, bytes: bytes.clone(), keep: 0 }, 12).unwrap();
        for (object, of, directory) in [(finished, FINISHED, FINISHED_COPY), (checkpoint, CHECKPOINT, CHECKPOINT_COPY)]
        {
            let copy = object_named(&copy_name(&object).unwrap(), directory).unwrap();
            assert_eq!((copy.epoch, copy.number, copy.is_copy(), copy.original()), (12, 3, true, object.clone()));
            assert!(copy.is_of(&bytes) && !copy.is_of(&Bytes::new()) && copy_name(&copy.object).is_none());
            assert_eq!((object_named(&object, directory), object_named(&copy.object, of)), (None, None));
        }
        assert_eq!(copy_name(&order.object), None);
    }

    #[test]
    fn other_names_are_foreign() {
        for (name, directory) in [
            ("order/000002-0123456789abcdef", "order"),
            ("checkpoint/000042-0123456789abcdef", "checkpoint"),
            ("finished/000001-0123456789abcdef", "finished"),
            ("finished/000001-000002-3-0123456789abcdef", "finished"),
            ("doubt/000001-0123456789abcdef", "doubt"),
            ("order/notes", "order"),
            ("order/000001", "order"),
            ("order/000001-000002-0123456789abcdef", "order"),
            ("checkpoint/000001-000002", "checkpoint"),
            ("checkpoint/000001-000002-short", "checkpoint"),
            ("checkpoint/1-000002-0123456789abcdef", "checkpoint"),
            ("finished/x-000002-0123456789abcdef", "finished"),
            ("checkpoint/000042-0123456789abcdef", "finished"),
        ] {
            assert_eq!(object_named(name, directory), None, "{name}");
        }
    }
}
