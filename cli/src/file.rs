//! Reads files that a person names. An error is one sentence that says what is wrong and what to do.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    path::Path,
};

use anyhow::{Context as _, bail};

use crate::say::usage;

/// Whether two paths lead to the same existing file.
pub(crate) fn same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
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
