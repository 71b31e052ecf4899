//! The ends of the audit log's files, for people to read.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::line::says_done;
use crate::access::writer::{Written, before};

/// The most bytes of a file that are read.
const READ_BYTES_MAX: u64 = 1 << 20;
/// How long a reader waits for lines that are not written yet.
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
    /// If the last line is not written in time, or the file cannot be read.
    pub(crate) fn newest(&self, lines: usize, done: bool) -> anyhow::Result<Vec<String>> {
        if !self.last.wait_here(READ_PATIENCE) {
            bail!("the disk does not take the lines of {}", self.path.display());
        }
        let mut text = end_of(&self.path)?;
        // A file that was just started is short: more of the newest lines are in the previous file.
        if (text.len() as u64) < READ_BYTES_MAX / 2 {
            text = end_of(&before(&self.path)).unwrap_or_default() + &text;
        }
        let all: Vec<&str> = text.lines().filter(|line| !done || says_done(line)).collect();
        Ok(all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect())
    }
}

/// The complete lines at the end of a file.
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
    // The bytes read may start in the middle of a line, and end in the middle of one that is being written.
    let begin = if from > 0 { text.find('\n').map_or(text.len(), |end| end + 1) } else { 0 };
    let whole = &text[begin..];
    Ok(whole.rfind('\n').map_or("", |end| &whole[..=end]).to_owned())
}
