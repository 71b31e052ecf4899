//! The store: runs as immutable objects in a directory or a bucket. Objects are only ever created if absent, and never
//! overwritten; [`crate::names`] defines their names.
//!
//! The right to write is an object too: a coordinator that takes over the store creates `leader/000007` if it is absent.
//! Before each write the store checks that its own epoch is still the highest, and otherwise refuses to write. Another
//! coordinator may still take over between that check and the write. A late state does no harm, because states are a function
//! of the seed. An order has a name that only one of the two coordinators can create, and it is confirmed only if its epoch
//! is still the highest after the write: the next leader has then loaded the order, or will load it. A deletion is recorded
//! in the same way before anything is removed, so that no coordinator continues a run that is being deleted. No epoch removes
//! objects that a later epoch wrote.
//!
//! Everything here blocks: call it from an ordinary thread, not from within a runtime.

mod ahead;
mod answer;
mod bucket;
mod check;
mod copies;
mod cordons;
mod dates;
mod disk;
mod early;
mod index;
mod kept;
mod leader;
mod load;
mod log;
mod objects;
mod orders;
mod place;
mod prompt;
mod prune;
mod reader;
mod refused;
mod restored;
#[cfg(test)]
mod tests;
mod upgrade;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

pub use answer::Outlook;
use answer::cause;
use bytes::Bytes;
use evoxo_common::experiment::Registry;
use evoxo_proto::STORE_FORMAT;
use object_store::ObjectStore;

use crate::{
    core::{StoreFault, Stored, Write},
    names::{CONVICTED, ORDER, ORDER_COPY, REVOKED, object_name},
    pack::PackPlace,
};
pub use bucket::bucket;
pub use check::{Checked, check, check_objects};
pub use leader::{Cluster, Epoch, Leader, Security, record_lost, superseded_by, superseded_by_somebody};
pub(crate) use log::{BATCH_BYTES_MAX, BATCH_LINES_MAX, Log, LogPart};
pub use place::Lock;
pub(crate) use place::directory_of;
pub use reader::Reader;
pub use refused::Refused;
pub use restored::restored;
pub use upgrade::{Judged, Prospect, Upgrade, check_upgrade};

/// Finished replicas are written in one object if they have at most so many bytes together. A larger one is alone. So nobody needs
/// more memory for an object than this, or than for one replica.
pub const TOGETHER_BYTES_MAX: usize = 1 << 20;

/// Why a store cannot be used, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither a directory nor a bucket.
    #[error("the store {0} is of no known kind: name a directory, or a bucket as s3://BUCKET/PREFIX")]
    UnknownKind(String),
    /// A file instead of a directory.
    #[error("the store {0} is a file: name a directory, or a bucket as s3://BUCKET/PREFIX")]
    File(String),
    /// The address of a bucket is malformed.
    #[error("the store {spec} is not the address of a bucket: {cause}: give s3://BUCKET/PREFIX")]
    Address {
        /// The address as the user gave it.
        spec: String,
        /// What is wrong with the address.
        cause: String,
    },
    /// The environment variables that describe the bucket cannot be used.
    #[error("the store {place} cannot be opened: {cause}")]
    Settings {
        /// The store as the user named it.
        place: String,
        /// The variable, and what to do about it.
        cause: String,
    },
    /// A bucket that cannot be reached or written to.
    #[error(
        "the store {place} cannot be used at {endpoint}: {cause}: check the bucket's name, AWS_ENDPOINT, AWS_REGION, and the \
         keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    Bucket {
        /// The store as the user named it.
        place: String,
        /// The address of the bucket's server.
        endpoint: String,
        /// The cause, from the system or the server.
        cause: String,
        /// Whether the fault passes by itself.
        outlook: Outlook,
    },
    /// A directory that cannot be reached, created or written to.
    #[error("the store {place} cannot be used: {cause}: name another with --store, or make it writable")]
    Unusable {
        /// The store as the user named it.
        place: String,
        /// The cause, from the system.
        cause: String,
    },
    /// A file stands where the store needs a directory.
    #[error("{name} in the store {place} is a file, where the store needs a directory: move it away")]
    Foreign {
        /// The store as the user named it.
        place: String,
        /// The name of the file.
        name: &'static str,
    },
    /// Another coordinator on this machine uses the store.
    #[error(
        "the store {place} is in use by another coordinator ({who}): stop that one first, start this one with --standby so \
         that it takes over when that one ends, or name another directory with --store"
    )]
    InUse {
        /// The store as the user named it.
        place: String,
        /// The other coordinator's description of itself.
        who: String,
    },
    /// A build with a later format has led in the store.
    #[error(
        "the store {place} has format {format}, and this build knows formats up to {STORE_FORMAT}: use a build whose \
         --version shows store format {format} or higher, or restore a copy from before the upgrade"
    )]
    Newer {
        /// The store as the user named it.
        place: String,
        /// The store's format.
        format: u32,
    },
    /// The store was opened, but cannot be read.
    #[error("{name} in the store {place} cannot be read: {cause}: let this process read it, or move it away")]
    Unreadable {
        /// The store as the user named it.
        place: String,
        /// The directory in the store that cannot be read.
        name: String,
        /// The cause, from the system.
        cause: String,
        /// Whether the fault passes by itself.
        outlook: Outlook,
    },
}

impl StoreError {
    /// Whether the fault passes by itself. A directory that cannot be used needs a person.
    #[must_use]
    pub fn outlook(&self) -> Outlook {
        match self {
            Self::Bucket { outlook, .. } | Self::Unreadable { outlook, .. } => *outlook,
            _ => Outlook::Stays,
        }
    }
}

/// Runs as objects in a directory or a bucket.
pub struct Store {
    /// Runs the store's futures. The bucket clients need a runtime.
    runtime: tokio::runtime::Runtime,
    objects: Arc<dyn ObjectStore>,
    /// The store's name in messages.
    shown: String,
    /// The store's directory, if the store is a directory.
    directory: Option<PathBuf>,
    registry: Registry,
    runs: BTreeMap<String, Known>,
    /// The address where this coordinator listens, as it is announced to others.
    address: String,
    /// How this coordinator's connections are secured; `None` if that is not announced.
    security: Option<Security>,
    /// The highest epoch at the time the store was loaded.
    seen: Option<Epoch>,
    /// The epoch that this store created. It gives the right to write.
    epoch: Option<Epoch>,
    /// The cluster to which the store belongs, if known.
    cluster: Option<Cluster>,
    /// How many operations on objects have ended.
    ended: Arc<AtomicU64>,
    /// Thresholds for writing the index of a run.
    thresholds: index::Thresholds,
}

/// What the store knows about a run.
#[derive(Debug, Default)]
struct Known {
    /// The epoch in which the run was submitted; `None` if the run does not exist.
    born: Option<u64>,
    /// The highest number of an order so far.
    order_number: u64,
    /// The run has objects but no valid order, so its content is unknown and nothing is written to it. An unconfirmed
    /// submission does not count.
    unreadable: bool,
    /// The number and bytes of the newest order, if the order's copy could not be written yet.
    uncopied: Option<(u64, Bytes)>,
    /// The highest number of an object of finished replicas so far.
    pack_number: u64,
    /// The finished replicas whose write has failed, the oldest first.
    unwritten: Vec<copies::Unwritten>,
    /// The places of finished replicas that were written after all, which the core does not know yet.
    late: Vec<PackPlace>,
    /// The run's index, and the finished replicas that are in no index.
    indexed: index::Indexed,
    /// Names of checkpoints and their copies, by epoch and number.
    checkpoints: BTreeMap<(u64, u64), BTreeSet<String>>,
    /// States that stay for forks: names and bytes, by epoch and number.
    kept: BTreeMap<(u64, u64), (String, u64)>,
}

impl Store {
    /// Opens a store, a directory (created if absent) or the URL of a bucket, and checks that it can be written. If it cannot
    /// be written but has runs that can be read, the store is returned with a warning.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be used.
    pub fn open(spec: &str, registry: Registry) -> Result<(Self, Option<String>), StoreError> {
        let place = place::open(spec)?;
        let mut store = Self::over(Arc::clone(&place.objects), spec, registry);
        store.directory.clone_from(&place.directory);
        let probed = store.runtime.block_on(answer::probe(&*store.objects));
        let Err(error) = probed else { return Ok((store, None)) };
        match store.list("runs") {
            Ok((_, runs)) if !runs.is_empty() => {
                let sentence = format!(
                    "the store {spec} cannot be written: {}: its runs can be shown and fetched, and work continues when it can \
                     be written",
                    cause(&error)
                );
                Ok((store, Some(sentence)))
            }
            Err(other) if answer::outlook(&other) == Outlook::Passes => Err(place.unusable(spec, &other)),
            _ => Err(place.unusable(spec, &error)),
        }
    }

    /// Opens a directory to read what another process writes there. Nothing is created or locked, and no test write is made.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be used.
    pub fn open_to_read(directory: &str, registry: Registry) -> Result<Self, StoreError> {
        Ok(Self::over(place::open(directory)?.objects, directory, registry))
    }

    /// A store over any objects; `shown` is its name in messages.
    ///
    /// # Panics
    /// If the system cannot create a runtime because file descriptors are exhausted.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>, shown: &str, registry: Registry) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .build()
            .expect("a runtime needs a few file descriptors, and this is the start of the process");
        Self {
            runtime,
            objects,
            shown: shown.to_owned(),
            directory: None,
            registry,
            runs: BTreeMap::new(),
            address: String::new(),
            security: None,
            seen: None,
            epoch: None,
            cluster: None,
            ended: Arc::default(),
            thresholds: index::Thresholds::default(),
        }
    }

    /// How many operations on objects have ended. The number stands still while the store does not answer.
    pub(crate) fn ended(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.ended)
    }

    /// The bytes of an object of a run, by its name below `runs/RUN/`.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub fn read(&self, run: &str, object: &str) -> Result<Bytes, String> {
        self.runtime.block_on(self.reader().get(run, object))
    }

    /// The bytes of a finished replica of a run, sealed.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub fn read_finished(&self, run: &str, place: &PackPlace) -> Result<Bytes, String> {
        self.wait_here(self.reader().finished(run, place))
    }

    /// Carries out a write. Repeating a write that failed has no effect, unless it is an order.
    ///
    /// # Errors
    /// [`StoreFault::Superseded`] if another coordinator leads; [`StoreFault::Fenced`] if the run was removed or has no valid
    /// order; otherwise [`StoreFault::Failed`].
    pub fn write(&mut self, run: &str, write: &Write) -> Result<Stored, StoreFault> {
        if matches!(write, Write::Finished { .. }) {
            let outcome = self.write_all_finished(run, std::slice::from_ref(write)).pop();
            return outcome.expect("there is an outcome for each write");
        }
        self.check_leadership()?;
        if let Write::Load | Write::LoadFork { .. } = write {
            let saved = match write {
                Write::LoadFork { of, rounds, bytes_max } => self.load_fork(run, of, *rounds, *bytes_max),
                _ => self.load_run(run),
            };
            let saved = saved.map_err(|error| StoreFault::Failed(format!("run {run} cannot be read: {error}")))?;
            return Ok(Stored::Loaded(saved.map(Box::new)));
        }
        match write {
            Write::Convict { identity, bytes } => return self.refuse(CONVICTED, identity, bytes),
            Write::Revoke { id, bytes } => return self.refuse(REVOKED, id, bytes),
            Write::Cordons { number, bytes } => return self.write_cordons(*number, bytes),
            _ => {}
        }
        self.check_run(run, write)?;
        self.copy_late(run);
        let epoch = self.epoch.as_ref().map_or(0, |epoch| epoch.number);
        let name = object_name(write, epoch);
        match (&name, write) {
            (_, Write::Order { bytes }) => return self.give_order(run, epoch, bytes).map(Some).map(Stored::Written),
            (Some(name), Write::Checkpoint { bytes, keep, .. }) => self.write_checkpoint(run, name, bytes, *keep)?,
            (Some(name), Write::Doubt { bytes, .. } | Write::Poison { bytes, .. }) => {
                self.create(&format!("runs/{run}/{name}"), bytes)?;
            }
            (_, Write::Mend { object }) => return self.mend(run, object).map(Stored::Mended),
            (_, Write::DropCheckpoints) => {
                self.index_at_rest(run);
                self.drop_checkpoints(run)?;
            }
            (_, Write::Delete) => self.delete_run(run)?,
            (_, _) => unreachable!("a write that creates an object has a name for it"),
        }
        Ok(Stored::Written(name))
    }

    /// Writes finished replicas of a run in one object and its copy. Returns what [`Store::write`] returns for each.
    ///
    /// # Panics
    /// If a write is none of a finished replica.
    pub fn write_all_finished(&mut self, run: &str, replicas: &[Write]) -> Vec<Result<Stored, StoreFault>> {
        let Some(first) = replicas.first() else { return Vec::new() };
        let may = self.check_leadership().and_then(|()| self.check_run(run, first));
        let bytes = replicas.iter().map(|write| match write {
            Write::Finished { bytes } => bytes.clone(),
            other => panic!("only finished replicas are written together, and this is {other:?}"),
        });
        let bytes: Vec<Bytes> = bytes.collect();
        if let Err(fault) = may {
            if matches!(fault, StoreFault::Failed(_)) {
                self.hold_finished(run, &bytes);
            }
            return replicas.iter().map(|_| Err(fault.clone())).collect();
        }
        self.copy_late(run);
        let places = self.write_finished(run, &bytes);
        places.into_iter().map(|place| place.map(Stored::Finished)).collect()
    }

    /// Refuses to write a run that has disappeared, or whose content is unknown.
    fn check_run(&mut self, run: &str, write: &Write) -> Result<(), StoreFault> {
        if *write == Write::Delete {
            return Ok(());
        }
        let Known { unreadable, born, .. } = *self.known(run);
        if unreadable {
            let shown = &self.shown;
            return Err(StoreFault::Fenced(format!(
                "run {run} in the store {shown} has no valid order and is not used: \
                 move it away, or choose another name or directory for the new run"
            )));
        }
        // An order creates a run. Any other write belongs to a run that has since been deleted.
        let there = match (born, write) {
            (None, write) => matches!(write, Write::Order { .. }),
            (Some(_), _) => {
                let has = |directory: &str| {
                    let orders = self.list(&format!("runs/{run}/{directory}"));
                    let orders = orders.map_err(|error| {
                        let (shown, cause) = (&self.shown, cause(&error));
                        StoreFault::Failed(format!("run {run} in the store {shown} cannot be read: {cause}"))
                    });
                    orders.map(|(orders, _)| !orders.is_empty())
                };
                has(ORDER)? || has(ORDER_COPY)?
            }
        };
        match there {
            false => Err(StoreFault::Fenced(format!(
                "run {run} was removed from the store {}: this coordinator no longer writes to it",
                self.shown
            ))),
            true => Ok(()),
        }
    }
}
