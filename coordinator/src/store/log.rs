//! The audit log in the store: batches of lines, each an object that is created once, so the log outlives the host that wrote
//! it. A batch's name contains the epoch, so two coordinators never write the same batch. The oldest batches are removed.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, open, seal},
};
use evoxo_proto::v1;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use prost::Message as _;

use super::{
    Reader,
    answer::{self, cause},
};
use crate::names::{AUDIT, AUDIT_RIGHTS, Named, object_named};

/// The parts of the audit log. Each has its own batches, so many lines of one part do not displace the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogPart {
    /// Actions of operators and coordinators, and changes of rights.
    Rights,
    /// Actions of everybody else.
    Others,
}

impl LogPart {
    pub(crate) const ALL: [Self; 2] = [Self::Rights, Self::Others];

    fn directory(self) -> &'static str {
        match self {
            Self::Rights => AUDIT_RIGHTS,
            Self::Others => AUDIT,
        }
    }
}

/// The most lines and the most bytes of a batch.
pub(crate) const BATCH_LINES_MAX: usize = 1000;
pub(crate) const BATCH_BYTES_MAX: usize = 256 << 10;
/// Limits of a part in a store: the most batches; how many of the newest stay whatever the clock says; how long the others
/// stay.
const BATCHES_MAX: usize = 4096;
const BATCHES_KEPT: usize = 1024;
const LIFE: Duration = Duration::from_secs(400 * 24 * 3600);
/// The most batches that a search for lines reads.
const BATCHES_READ_MAX: usize = 256;
/// The oldest batches are removed each time this many were added.
const PRUNED_EVERY: u64 = 64;

/// Writes the audit log of one epoch.
pub(crate) struct Log {
    reader: Reader,
    epoch: u64,
    /// How many batches of each part were written so far.
    batches: [u64; 2],
}

impl Log {
    pub(crate) fn new(reader: Reader, epoch: u64) -> Self {
        Self { reader, epoch, batches: [0; 2] }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// A sentence if the batch cannot be written. The caller may retry.
    pub(crate) async fn add(&mut self, part: LogPart, lines: Vec<String>) -> Result<(), String> {
        let batches = &mut self.batches[part as usize];
        if batches.is_multiple_of(PRUNED_EVERY)
            && let Err(why) = self.reader.prune_log(part).await
        {
            tracing::warn!("{why}");
        }
        let bytes = seal(Kind::AuditLog, &v1::AuditLog { lines }.encode_to_vec());
        let name = log_name(part, self.epoch, *batches + 1, &bytes);
        let created = answer::create(&*self.reader.objects, &Path::from(name.as_str()), &bytes).await;
        created.map_err(|error| {
            let (shown, cause) = (&self.reader.shown, cause(&error));
            format!("lines of the audit log cannot be written to the store {shown} and stay on this host: {cause}")
        })?;
        *batches += 1;
        Ok(())
    }
}

impl Reader {
    /// The newest lines of a part that satisfy `wanted`, oldest first: at least `count`, if the newest 256 batches have that
    /// many. Damaged batches are left out.
    ///
    /// # Errors
    /// A sentence if the store cannot be read.
    pub(crate) async fn newest_log(
        &self,
        part: LogPart,
        count: usize,
        wanted: fn(&str) -> bool,
    ) -> Result<Vec<String>, String> {
        let mut newest: Vec<Vec<String>> = Vec::new();
        for (named, _) in self.batches(part).await?.into_iter().rev().take(BATCHES_READ_MAX) {
            if newest.iter().map(Vec::len).sum::<usize>() >= count {
                break;
            }
            let bytes = answer::read(&*self.objects, &Path::from(named.object.as_str())).await;
            let lines = bytes.ok().and_then(|bytes| open(Kind::AuditLog, &bytes).ok());
            let lines = lines.and_then(|body| v1::AuditLog::decode(body).ok()).map_or_else(Vec::new, |log| log.lines);
            newest.push(lines.into_iter().filter(|line| wanted(line)).collect());
        }
        Ok(newest.into_iter().rev().flatten().collect())
    }

    /// Removes batches that are too old or too many. A wrong clock, here or at the store, must not remove all of them.
    async fn prune_log(&self, part: LogPart) -> Result<(), String> {
        let batches = self.batches(part).await?;
        let newest = batches.iter().map(|(_, written)| *written).max();
        let now = newest.map_or_else(SystemTime::now, |newest| newest.min(SystemTime::now()));
        let many = batches.len().saturating_sub(BATCHES_MAX);
        let few = batches.len().saturating_sub(BATCHES_KEPT);
        let is_over = |index: usize, written: SystemTime| index < many || (index < few && written + LIFE < now);
        for (index, (named, written)) in batches.into_iter().enumerate() {
            if is_over(index, written) {
                let removed = answer::remove(&*self.objects, &Path::from(named.object.as_str())).await;
                removed.map_err(|error| self.unreadable(&named.object, &error))?;
            }
        }
        Ok(())
    }

    /// All batches of a part in order, each with the time it was written.
    async fn batches(&self, part: LogPart) -> Result<Vec<(Named, SystemTime)>, String> {
        let directory = part.directory();
        let found = self.objects.list(Some(&Path::from(directory))).try_collect::<Vec<_>>().await;
        let found = found.map_err(|error| self.unreadable(directory, &error))?;
        let named = |meta: object_store::ObjectMeta| {
            Some((object_named(meta.location.as_ref(), directory)?, SystemTime::from(meta.last_modified)))
        };
        let mut batches: Vec<_> = found.into_iter().filter_map(named).collect();
        batches.sort_unstable();
        Ok(batches)
    }
}

fn log_name(part: LogPart, epoch: u64, number: u64, bytes: &Bytes) -> String {
    let directory = part.directory();
    format!("{directory}/{epoch:06}-{number:06}-{}", Digest::of(bytes).short())
}
