//! The audit log, in the access directory: who wanted what, when and from where, one JSON object per line.
//!
//! It has two files. `audit-rights.jsonl` has the actions of operators and of this coordinator, and everything that changes
//! rights; `audit.jsonl` has the actions of everybody else. So nobody with fewer rights can push the lines of operators out
//! of a file. Lines that are written while this coordinator leads have its epoch and a number, and are also stored in the
//! store, where the two parts are separate as well. Lines from a coordinator that serves while its store cannot be written
//! yet are stored too, without epoch and number. The files are written by [another thread](super::writer): the only thing
//! here that waits for the disk is reading [lines for people](Tail).

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

/// The most lines of each part that may wait for the store. If the store cannot be written for long, the oldest lines stay on
/// this host only.
const UNSAVED_MAX: usize = 10_000;
/// How long lines that are not urgent wait for the store. The store keeps a limited number of batches. If each refusal made a
/// batch, a caller that is refused all the time would push the other batches out.
const SAVE_WAIT_S: u64 = 3600;

/// A line that the store does not have yet.
#[derive(Debug)]
struct Unsaved {
    line: String,
    at_s: u64,
    /// The line is about a refusal or a repeated grant: it is stored together with others, or after a while.
    waits: bool,
}

/// One file, and the lines that the store does not have yet.
#[derive(Debug)]
struct Part {
    writer: Writer,
    unsaved: VecDeque<Unsaved>,
}

/// The open log.
#[derive(Debug)]
pub(crate) struct Audit {
    directory: PathBuf,
    /// The parts, in the order of [`LogPart::ALL`].
    parts: [Part; 2],
    lost: Counter,
    shares: Shares,
    /// The epoch in which this coordinator leads, and the number of its lines so far.
    leads: Option<(u64, u64)>,
    /// Nobody can lead yet because the store cannot be written.
    waits: bool,
}

impl Audit {
    /// Opens the log, and creates it if there is none.
    ///
    /// # Errors
    /// If the log cannot be written.
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

    /// From now on lines wait for the store: this coordinator leads as soon as the store can be written.
    pub(crate) fn wait(&mut self) {
        self.lead(None);
        self.waits = true;
    }

    /// The next lines of a part for the store. Empty if all waiting lines may wait longer.
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

    /// Notes that the store has these lines.
    pub(crate) fn saved(&mut self, part: LogPart, now_s: u64, lines: &[String]) {
        let unsaved = &mut self.parts[part as usize].unsaved;
        let mut waited = true;
        // Some lines may have been dropped in the meantime.
        while let Some(saved) = unsaved.front().filter(|unsaved| lines.contains(&unsaved.line)) {
            waited &= saved.waits;
            unsaved.pop_front();
        }
        if part == LogPart::Others && !waited {
            // Without a share, the lines have waited long enough.
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

    /// Writes lines that were left out and have a share now. So the number of lines is known even if their author does
    /// nothing more.
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

    /// The ends of the files, with everything added so far. They can be read while lines are added.
    pub(crate) fn tails(&self) -> [Tail; 2] {
        let [rights, others] = LogPart::ALL.map(|part| (self.directory.join(file_of(part)), part as usize));
        [rights, others].map(|(path, part)| Tail { path, last: self.parts[part].writer.last() })
    }
}

/// The name of a part's file. The previous file's name has ".1" at its end.
fn file_of(part: LogPart) -> &'static str {
    match part {
        LogPart::Rights => "audit-rights.jsonl",
        LogPart::Others => "audit.jsonl",
    }
}

/// The parts where a line may be written, each with the shares that it takes there. The first one with room is used.
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
            // If somebody causes very many of these lines, the rest go to the other part.
            vec![(LogPart::Rights, vec![Whose::Cause(account.clone())]), (LogPart::Others, vec![account_of()])]
        }
        Outcome::Done | Outcome::Unknown(_) => vec![(LogPart::Others, vec![account_of()])],
    }
}
