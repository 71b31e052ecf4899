//! The file `records.jsonl` in the access directory: one record per line, each on disk before its request is answered. A line
//! that was cut off by a crash is the last one, and its request was never answered.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use evoxo_access::write_private;
use tracing::warn;

use super::records::{Record, Records};

/// The file's name.
const FILE: &str = "records.jsonl";
/// The file is rewritten when it has this many lines more than there are remembered entries.
const SURPLUS_MAX: usize = 10_000;

/// The journal. The file is opened for each record, because a new file may have replaced it.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    lines: usize,
}

impl Journal {
    /// Reads the journal, forgets expired entries, and rewrites the rest.
    ///
    /// # Errors
    /// If a line is damaged, or the file cannot be read or written.
    pub(crate) fn open(directory: &Path, now_s: u64) -> anyhow::Result<(Self, Records)> {
        let path = directory.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let mut records = Records::default();
        // A last line without a line break was not fully written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for (number, line) in whole.lines().enumerate() {
            match serde_json::from_str(line) {
                Ok(record) => records.apply(record),
                // The damaged line may be a revocation, so nobody is admitted until a person has looked at the file.
                Err(error) => bail!("{}:{}: the line is not a valid record: {error}", path.display(), number + 1),
            }
        }
        records.prune(now_s);
        let lines = match rewrite(&path, &records) {
            Ok(lines) => lines,
            // The disk may be full. The existing file is complete and stays valid.
            Err(error) if whole.len() + 1 == text.len() => {
                warn!("{error:#}; the existing records stay valid");
                whole.lines().count()
            }
            Err(error) => return Err(error),
        };
        Ok((Self { path, lines }, records))
    }

    /// Writes a record so that it survives a power failure.
    ///
    /// # Errors
    /// If that fails. The record may then be in the file or not.
    pub(crate) fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        let line = serde_json::to_string(record).context("a record is JSON")? + "\n";
        let write = || {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            let before = file.metadata()?.len();
            let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
            if written.is_err() {
                // Half a line must not stay in front of the next one. If this fails too, the next start reports it.
                let _ = file.set_len(before);
            }
            written
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))?;
        self.lines += 1;
        Ok(())
    }

    /// Shortens the file if most of its lines are obsolete.
    ///
    /// # Errors
    /// If that fails. The old file is then still there.
    pub(crate) fn shorten(&mut self, records: &Records) -> anyhow::Result<()> {
        if self.lines > records.len() + SURPLUS_MAX {
            self.lines = rewrite(&self.path, records)?;
        }
        Ok(())
    }
}

/// Rewrites the file. Returns the number of lines.
fn rewrite(path: &Path, records: &Records) -> anyhow::Result<usize> {
    let records = records.records();
    let mut text = String::new();
    for record in &records {
        text += &serde_json::to_string(record).context("a record is JSON")?;
        text.push('\n');
    }
    write_private(path, text.as_bytes())?;
    Ok(records.len())
}

#[cfg(test)]
mod tests {
    use evoxo_access::{Id, Role, Secret};

    use super::*;

    #[test]
    fn a_crash_loses_no_written_record_and_damage_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let (mut journal, _) = Journal::open(directory.path(), 0).unwrap();
        let (id, secret) = (Id::draw(), Secret::draw());
        let by = "me".to_owned();
        let token =
            Record::Token { id: id.clone(), secret: secret.hash(), role: Role::Viewer, uses: 1, expires_s: 9, by };
        journal.append(&token).unwrap();
        journal.append(&Record::Revoked { id: Id::draw(), convicted: false }).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.pop();
        std::fs::write(&path, &text).unwrap();
        let (_, records) = Journal::open(directory.path(), 0).unwrap();
        assert_eq!(
            (records.len(), records.role_of(&id, &secret, 0)),
            (1, Ok(Role::Viewer)),
            "the last line was cut off"
        );
        std::fs::write(&path, format!("nonsense\n{text}")).unwrap();
        let error = Journal::open(directory.path(), 0).unwrap_err().to_string();
        assert!(error.contains("records.jsonl:1: the line is not a valid record"), "{error}");
    }

    #[test]
    fn the_size_of_the_file_is_limited() {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, mut records) = Journal::open(directory.path(), 0).unwrap();
        let renewed = Record::Renewed { id: Id::draw(), expires_s: 1, key: String::new(), granted: None };
        records.apply(renewed.clone());
        journal.lines = SURPLUS_MAX;
        journal.append(&renewed).unwrap();
        journal.shorten(&records).unwrap();
        assert_eq!(std::fs::metadata(directory.path().join(FILE)).unwrap().len(), 0);
        journal.append(&renewed).unwrap();
        assert!(std::fs::metadata(directory.path().join(FILE)).unwrap().len() > 0, "the new file is written to");
    }
}
