//! A coordinator's page in a browser.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;

/// The system's program that opens an address in the default browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// The longest time that the coordinator may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer, in bytes: headers and a few letters.
const ANSWER_BYTES_MAX: u64 = 16 << 10;

/// Opens an address without waiting for the browser.
pub(crate) fn open(address: &str) -> anyhow::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child =
        command.spawn().with_context(|| format!("cannot open {address}: there is no {OPENER} on this machine"))?;
    // The child must be waited for, or it stays a zombie.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Whether somebody has the page of the coordinator at this address open. A coordinator that does not answer shows its page
/// to nobody.
pub(crate) fn is_seen(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /api/seen HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.ends_with("{\"seen\":true}"))
}
