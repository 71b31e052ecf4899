//! Files that somebody names: their bytes, or one sentence why not and what to do.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    path::Path,
};

use anyhow::{Context as _, bail};

use crate::say::usage;

/// The bytes of a file that is not larger than it should be; `else_do` is what else there is to do if it is not there. That
/// it is not there, or is a directory, is a mistake in what was typed.
pub(crate) fn read(file: &Path, bytes_max: usize, else_do: &str) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let unreadable = || format!("cannot read {name}");
    let about = match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(usage(format_args!("cannot read {name}: there is no such file: look at its path{else_do}")));
        }
        about => about.with_context(unreadable)?,
    };
    if about.is_dir() {
        return Err(usage(format_args!("cannot read {name}: it is a directory: name a file in it")));
    }
    let size = about.len();
    if size > bytes_max as u64 {
        bail!("{name} has {size} bytes: at most {bytes_max} are read");
    }
    // Pipes and devices report a size of 0 bytes, and may never end.
    let mut bytes = Vec::new();
    fs::File::open(file)
        .with_context(unreadable)?
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(unreadable)?;
    if bytes.len() > bytes_max {
        bail!("{name} has more than {bytes_max} bytes: no more are read");
    }
    Ok(bytes)
}
