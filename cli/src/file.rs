//! Reads and writes files that a person names. An error is one sentence that says what is wrong and what to do.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use crate::say::usage;

/// Whether two paths lead to the same existing file.
pub(crate) fn same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// An empty directory that is removed with its content when it is dropped.
pub(crate) fn temporary() -> anyhow::Result<TempDir> {
    tempfile::tempdir().context("cannot make a temporary directory: set TMPDIR to a place for one")
}

/// The extension of a file that is being written, in front of a number of the process.
pub(crate) const STAGED: &str = "new-";

/// Writes a file completely or not at all. `durable`: also if the machine fails right after.
pub(crate) fn write(path: &Path, content: &[u8], durable: bool) -> std::io::Result<()> {
    // Two processes may write the same file at the same moment.
    let staged = path.with_extension(format!("{STAGED}{}", std::process::id()));
    let written = fs::write(&staged, content)
        .and_then(|()| if durable { fs::File::open(&staged)?.sync_all() } else { Ok(()) })
        .and_then(|()| fs::rename(&staged, path));
    if written.is_err() {
        // On a full disk, part of a file takes space that other files need. An error while removing it adds no information.
        let _ = fs::remove_file(&staged);
    }
    written
}

/// The bytes of a file of limited size. `else_do` is an alternative to suggest if the file does not exist. A missing
/// file or a directory is a usage error.
pub(crate) fn read(file: &Path, bytes_max: usize, else_do: &str) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let unreadable = || format!("cannot read {name}");
    let about = match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(usage(format_args!("cannot read {name}: file not found: check the path{else_do}")));
        }
        about => about.with_context(unreadable)?,
    };
    if about.is_dir() {
        return Err(usage(format_args!("cannot read {name}: it is a directory: give a file in it")));
    }
    let size = about.len();
    if size > bytes_max as u64 {
        bail!("{name} has {size} bytes: the maximum is {bytes_max}");
    }
    // Pipes and devices report a size of 0 bytes, and may never end.
    let mut bytes = Vec::new();
    fs::File::open(file)
        .with_context(unreadable)?
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(unreadable)?;
    if bytes.len() > bytes_max {
        bail!("{name} has more than {bytes_max} bytes, which is the maximum");
    }
    Ok(bytes)
}
