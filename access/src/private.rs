//! Reading and writing private files: those with keys, and those that decide who is admitted.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use anyhow::{Context as _, bail};

use crate::identity::hex;

/// The largest private file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Creates a directory for private files, including its parents, unless it exists.
///
/// # Errors
/// If that fails.
pub fn create_directory(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make the directory {}", path.display()))
}

/// Reads a small file.
///
/// # Errors
/// If the file cannot be read, or is too large.
pub fn read_private(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{} has more than {FILE_BYTES_MAX} bytes", path.display());
    }
    Ok(bytes)
}

/// Writes a file that only its owner can read. Whatever happens, the old or the new file exists afterwards.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().with_context(|| format!("{} is not the name of a file", path.display()))?;
    let draft = directory.join(format!(".{}.{}", name.to_string_lossy(), hex(&crate::random::<6>())));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path))
        .and_then(|()| File::open(directory)?.sync_all());
    if written.is_err() {
        // The unfinished draft is of no use, and an error from removing it would add nothing.
        let _ = fs::remove_file(&draft);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
