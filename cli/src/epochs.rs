//! The highest epochs seen with an access file, kept in a file next to it. A coordinator that was cut off, and does not know
//! yet that another one leads, is refused even by a command that reaches no other coordinator. Without an access file nothing
//! is kept, because anybody who reaches such a coordinator's port could claim any epoch.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use evoxo_access::{read_private, write_private};
use evoxo_process::Address;
use evoxo_proto::{Led, Seen};

/// The epochs seen so far.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    file: Option<PathBuf>,
    seen: Seen,
}

impl Epochs {
    /// The epochs seen with this access file.
    pub(crate) fn of(access: Option<&Path>) -> anyhow::Result<Self> {
        let Some(access) = access else { return Ok(Self::default()) };
        let mut name = access.as_os_str().to_owned();
        name.push(".epochs");
        let file = PathBuf::from(name);
        let seen = Self::read(&file)?;
        Ok(Self { file: Some(file), seen })
    }

    fn read(file: &Path) -> anyhow::Result<Seen> {
        let none = |error: &anyhow::Error| {
            error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
        };
        match read_private(file) {
            Ok(bytes) => {
                let read = String::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
                read.with_context(|| format!("{} is not a list of epochs: remove it", file.display()))
            }
            Err(error) if none(&error) => Ok(Seen::default()),
            Err(error) => Err(error),
        }
    }

    /// Refuses a coordinator that no longer leads, and remembers one that does.
    pub(crate) fn check(&mut self, address: &Address, led: &Led) -> anyhow::Result<()> {
        if let Some(file) = &self.file {
            // Another command may have seen a later epoch in the meantime.
            self.seen = Self::read(file)?;
        }
        let before = self.seen.clone();
        let accepted = self.seen.accepts(led);
        match &self.file {
            Some(file) if accepted && self.seen != before => {
                // If the file cannot be written, the next command learns the epoch again.
                drop(write_private(file, self.seen.to_string().as_bytes()));
            }
            Some(file) if !accepted => {
                let (epoch, file) = (led.epoch, file.display());
                return Err(anyhow!(
                    "{address} no longer leads: it says epoch {epoch}, and a later one was seen. Ask the addresses of all \
                     coordinators; if the store was restored from a backup, remove {file}"
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_epoch_is_stored_next_to_the_access_file() {
        let directory = tempfile::tempdir().unwrap();
        let access = directory.path().join("mine.access");
        let address: Address = "lab1:7600".parse().unwrap();
        let say = |cluster: u8, epoch: u64| Epochs::of(Some(&access))?.check(&address, &Led::new([cluster; 16], epoch));
        assert!([(1, 5), (1, 5), (2, 1), (1, 7)].iter().all(|(cluster, epoch)| say(*cluster, *epoch).is_ok()));
        let refused = format!("{:#}", say(1, 6).unwrap_err());
        assert!(refused.starts_with("lab1:7600 no longer leads: it says epoch 6"), "{refused}");
        assert!(refused.ends_with("mine.access.epochs"), "{refused}");
        say(2, 1).unwrap();
        std::fs::write(directory.path().join("mine.access.epochs"), "nonsense").unwrap();
        assert!(format!("{:#}", say(1, 9).unwrap_err()).contains("not a list of epochs"));
    }

    #[test]
    fn without_an_access_file_no_epoch_is_stored() {
        let address: Address = "lab1:7600".parse().unwrap();
        let say = |epoch: u64| Epochs::of(None)?.check(&address, &Led::new([1; 16], epoch));
        assert!(say(5).is_ok() && say(4).is_ok());
    }
}
