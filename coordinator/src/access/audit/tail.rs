//! The ends of the files of the audit log, for people.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::line::says_done;
use crate::access::writer::{Written, before};

/// How much of a file is read, in bytes.
const READ_BYTES_MAX: u64 = 1 << 20;
/// How long people wait for what is not written yet.
const READ_PATIENCE: Duration = Duration::from_secs(2);

/// The end of one file.
pub(crate) struct Tail {
    pub(super) path: PathBuf,
    pub(super) last: Written,
}

impl Tail {
    /// The newest lines, oldest first, without refusals if `done`. Blocks.
    ///
    /// # Errors
    /// If the last of them is not written in time, or the file cannot be read.
    pub(crate) fn newest(&self, lines: usize, done: bool) -> anyhow::Result<Vec<String>> {
        if !self.last.wait_here(READ_PATIENCE) {
            bail!("the disk does not take the lines of {}", self.path.display());
        }
        let mut text = end_of(&self.path)?;
        // Just begun: the newest lines are in the file before.
        if (text.len() as u64) < READ_BYTES_MAX / 2 {
            text = end_of(&before(&self.path)).unwrap_or_default() + &text;
        }
        let all: Vec<&str> = text.lines().filter(|line| !done || says_done(line)).collect();
        Ok(all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect())
    }
}

/// The whole lines at the end of a file.
fn end_of(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let from = file.metadata()?.len().saturating_sub(READ_BYTES_MAX);
        file.seek(SeekFrom::Start(from))?;
        file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(from)
    });
    let from = read.with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    // What is read may begin in the middle of a line, and end in the middle of one that is being written.
    let begin = if from > 0 { text.find('\n').map_or(text.len(), |end| end + 1) } else { 0 };
    let whole = &text[begin..];
    Ok(whole.rfind('\n').map_or("", |end| &whole[..=end]).to_owned())
}
