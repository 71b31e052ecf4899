//! The page of a coordinator in a browser.

use std::process::{Command, Stdio};

use anyhow::Context as _;

/// The system's program that opens an address as a person would.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Opens an address, and does not wait.
pub(crate) fn open(address: &str) -> anyhow::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot open {address}: there is no {OPENER} here"))?;
    // It must be waited for by someone.
    std::thread::spawn(move || child.wait());
    Ok(())
}
