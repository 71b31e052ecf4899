//! The audit log, in the access directory: who wanted what, when and from where, one JSON object a line. It has two files: what operators
//! and this coordinator do, and everything that changes rights, is in `audit-rights.jsonl`; what all others do is in `audit.jsonl`. So
//! nobody with fewer rights can push the lines of operators out of a file. What is written while this coordinator leads has the epoch and a
//! number in it, and goes into the store too, where the two parts are apart as well. So does, without them, what is written while a
//! coordinator serves whose store cannot be written yet. The files are written by [somebody else](super::writer): nothing here waits for
//! the disk but the reading of [lines for people](Tail).

mod line;
mod shares;
mod tail;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

use prometheus_client::metrics::counter::Counter;
use serde_json::Value;

pub(crate) use line::{Asker, Outcome, merge, says_done};
use line::{line, lost};
use shares::{LeftOut, Shares, Whose};
pub(crate) use tail::Tail;

use super::writer::{Writer, Written};
use crate::store::{BATCH_BYTES_MAX, BATCH_LINES_MAX, LogPart};

/// The lines of each part that may wait for the store. If it cannot be written for long, the oldest are on this host only.
const UNSAVED_MAX: usize = 10_000;
/// How long lines that need not be saved at once wait for the store. It has room for a number of batches, so somebody who is refused all
/// the time would push the others out if each refusal made one.
const SAVE_WAIT_S: u64 = 3600;

/// A line that the store does not have yet.
#[derive(Debug)]
struct Unsaved {
    line: String,
    at_s: u64,
    /// It says that something was refused, or granted again: it is saved with others, or after a while.
    waits: bool,
}

/// One file, and what the store does not have of it.
#[derive(Debug)]
struct Part {
    writer: Writer,
    unsaved: VecDeque<Unsaved>,
}

/// The open log.
#[derive(Debug)]
pub(crate) struct Audit {
    directory: PathBuf,
    /// In the order of [`LogPart::ALL`].
    parts: [Part; 2],
    lost: Counter,
    shares: Shares,
    /// The epoch in which this coordinator leads, and its lines so far.
    leads: Option<(u64, u64)>,
    /// Nobody can lead yet, because the store cannot be written.
    waits: bool,
}

impl Audit {
    /// Opens it, and begins it if there is none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let missing = Counter::default();
        let open = |part: LogPart| {
            let writer = Writer::start(&directory.join(file_of(part)), lost, missing.clone())?;
            anyhow::Ok(Part { writer, unsaved: VecDeque::new() })
        };
        let [rights, others] = LogPart::ALL;
        let parts = [open(rights)?, open(others)?];
        Ok(Self {
            directory: directory.to_owned(),
            parts,
            lost: missing,
            shares: Shares::default(),
            leads: None,
            waits: false,
        })
    }

    /// From now on this coordinator leads in this epoch, or does not lead.
    pub(crate) fn lead(&mut self, epoch: Option<u64>) {
        self.leads = epoch.map(|epoch| (epoch, 0));
        if !std::mem::take(&mut self.waits) {
            self.parts.iter_mut().for_each(|part| part.unsaved.clear());
        }
    }

    /// From now on lines wait for the store: this coordinator leads as soon as it can be written.
    pub(crate) fn wait(&mut self) {
        self.lead(None);
        self.waits = true;
    }

    /// The next lines of a part for the store; none while only such wait as need not be saved at once, and not for long.
    pub(crate) fn unsaved(&mut self, part: LogPart, now_s: u64) -> Vec<String> {
        let at_once = part == LogPart::Rights || self.shares.has(now_s, &Whose::Batches);
        let unsaved = &self.parts[part as usize].unsaved;
        let waits = |unsaved: &Unsaved| (unsaved.waits || !at_once) && now_s < unsaved.at_s + SAVE_WAIT_S;
        if unsaved.len() < BATCH_LINES_MAX && unsaved.iter().all(waits) {
            return Vec::new();
        }
        let mut bytes = 0;
        let fits = |line: &&String| {
            bytes += line.len();
            bytes <= BATCH_BYTES_MAX
        };
        let lines = unsaved.iter().map(|unsaved| &unsaved.line);
        lines.take(BATCH_LINES_MAX).take_while(fits).cloned().collect()
    }

    /// The store has them.
    pub(crate) fn saved(&mut self, part: LogPart, now_s: u64, lines: &[String]) {
        let unsaved = &mut self.parts[part as usize].unsaved;
        let mut waited = true;
        // Some may have been dropped meanwhile.
        while let Some(saved) = unsaved.front().filter(|unsaved| lines.contains(&unsaved.line)) {
            waited &= saved.waits;
            unsaved.pop_front();
        }
        if part == LogPart::Others && !waited {
            // If there is no share, they have waited long enough.
            let _ = self.shares.take(now_s, &[Whose::Batches]);
        }
    }

    /// Adds a line. `object` is what the request was about: a run, a token, an identity.
    pub(crate) fn write(
        &mut self,
        now_s: u64,
        asker: &Asker,
        what: &str,
        object: &str,
        outcome: Outcome<'_>,
    ) -> Written {
        let line = line(now_s, asker, what, object, outcome);
        let waits = matches!(outcome, Outcome::Again | Outcome::Refused(_));
        let mut full = None;
        for (part, whose) in places(asker, outcome) {
            match self.shares.take(now_s, &whose) {
                Ok(left_out) => return self.add(now_s, part, line, waits, left_out),
                Err(share) => full = Some((share, part, whose)),
            }
        }
        if let Some((share, part, whose)) = full {
            self.shares.leave_out(now_s, &share, LeftOut { part, whose, line, waits });
        }
        Written::default()
    }

    /// Writes what was left out and has a share now: if whoever did it does nothing more, the number of the lines is known all the same.
    pub(crate) fn write_left_out(&mut self, now_s: u64) {
        for (LeftOut { part, line, waits, .. }, left_out) in self.shares.due(now_s) {
            drop(self.add(now_s, part, line, waits, left_out));
        }
    }

    fn add(&mut self, now_s: u64, part: LogPart, mut line: Value, waits: bool, left_out: u64) -> Written {
        if waits || left_out > 0 {
            line["left_out"] = Value::from(left_out);
        }
        if let Some((epoch, lines)) = &mut self.leads {
            *lines += 1;
            (line["epoch"], line["number"]) = (Value::from(*epoch), Value::from(*lines));
        }
        let leads = self.waits || self.leads.is_some();
        let part = &mut self.parts[part as usize];
        if leads {
            part.unsaved.push_back(Unsaved { line: line.to_string(), at_s: now_s, waits });
            if part.unsaved.len() > UNSAVED_MAX {
                part.unsaved.pop_front();
            }
        }
        part.writer.write(line.to_string())
    }

    /// The last line of each part.
    pub(crate) fn last(&self) -> [Written; 2] {
        [&self.parts[0], &self.parts[1]].map(|part| part.writer.last())
    }

    /// Counts the lines that are lost.
    pub(crate) fn lost(&self) -> Counter {
        self.lost.clone()
    }

    /// The ends of the files, with what was added until now. They are read while others go on to add lines.
    pub(crate) fn tails(&self) -> [Tail; 2] {
        let [rights, others] = LogPart::ALL.map(|part| (self.directory.join(file_of(part)), part as usize));
        [rights, others].map(|(path, part)| Tail { path, last: self.parts[part].writer.last() })
    }
}

/// The name of a part's file; the file before it has ".1" after that.
fn file_of(part: LogPart) -> &'static str {
    match part {
        LogPart::Rights => "audit-rights.jsonl",
        LogPart::Others => "audit.jsonl",
    }
}

/// Where a line may stand, with the shares that it takes there: in the first of these that has room.
fn places(asker: &Asker, outcome: Outcome<'_>) -> Vec<(LogPart, Vec<Whose>)> {
    let Asker { id, account, address, strong, .. } = asker;
    let account_of = || if account.is_empty() { Whose::Identity(id.clone()) } else { Whose::Account(account.clone()) };
    match outcome {
        Outcome::Again => vec![(LogPart::Others, vec![Whose::Repeated(account.clone())])],
        Outcome::Refused(_) if *strong => vec![(LogPart::Rights, vec![Whose::Identity(id.clone())])],
        Outcome::Refused(_) if id.is_empty() => vec![(LogPart::Others, vec![Whose::at(address), Whose::Strangers])],
        Outcome::Refused(_) => vec![(LogPart::Others, vec![Whose::Identity(id.clone()), account_of()])],
        Outcome::Done | Outcome::Unknown(_) if *strong && !asker.is_caused() => vec![(LogPart::Rights, Vec::new())],
        Outcome::Done | Outcome::Unknown(_) if *strong => {
            // If somebody brings about very many, they go on among the others.
            vec![(LogPart::Rights, vec![Whose::Cause(account.clone())]), (LogPart::Others, vec![account_of()])]
        }
        Outcome::Done | Outcome::Unknown(_) => vec![(LogPart::Others, vec![account_of()])],
    }
}
