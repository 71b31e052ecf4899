//! Standard output. A program that cannot write to it reports a failure, because a command whose results are lost has not succeeded.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    path::Path,
    process::exit,
    sync::atomic::{AtomicBool, Ordering},
};

/// Whether this process was started with a closed standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Checks before `main` runs, because Rust opens `/dev/null` in place of a closed output before `main`. After that, this case
/// looks the same as a caller that passed `/dev/null`.
#[ctor::ctor]
fn look() {
    let descriptors = Path::new("/dev/fd");
    // `is_dir` is false on systems without this directory. There, a closed output cannot be detected.
    let closed = descriptors.is_dir() && descriptors.join("1").symlink_metadata().is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Standard output. Its errors say that they come from standard output.
#[must_use]
pub fn stdout() -> impl Write {
    Out { to: io::stdout().lock(), closed: CLOSED.load(Ordering::Relaxed) }
}

struct Out<W> {
    to: W,
    closed: bool,
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed && !bytes.is_empty() {
            return Err(io::Error::other(Unwritten("it is closed".into())));
        }
        self.to.write(bytes).map_err(unwritten)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().map_err(unwritten)
    }
}

/// Why standard output could not be written.
#[derive(Debug)]
pub struct Unwritten(String);

impl Unwritten {
    /// Whether the error only means that the reader of standard output has closed its pipe, as `head` does. That is no
    /// failure, but a broken pipe elsewhere is one.
    #[must_use]
    pub fn is_left(error: &(dyn Error + 'static)) -> bool {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.downcast_ref::<io::Error>().is_some_and(is_left) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

fn is_left(error: &io::Error) -> bool {
    let own = error.get_ref().is_some_and(|inner| inner.is::<Unwritten>());
    own && error.kind() == io::ErrorKind::BrokenPipe
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl Error for Unwritten {}

/// The error with its origin added, and with the same kind.
fn unwritten(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), Unwritten(error.to_string()))
}

/// Parses the command line. A usage error ends the process with status 2. Printed help ends it with status 0, or 1 if it
/// could not be printed.
#[must_use]
pub fn parsed<P: clap::Parser>() -> P {
    let told = match P::try_parse() {
        Ok(parsed) => return parsed,
        Err(told) if told.use_stderr() => told.exit(),
        Err(told) => told,
    };
    let mut out = stdout();
    // An empty write would detect nothing. The text itself has colours and is printed by clap.
    let printed = match CLOSED.load(Ordering::Relaxed) {
        true => out.write_all(b"\n"),
        false => {
            drop(out);
            told.print().and_then(|()| io::stdout().flush()).map_err(unwritten)
        }
    };
    match printed {
        Ok(()) => exit(0),
        Err(error) if is_left(&error) => exit(0),
        Err(error) => {
            // If standard error is closed too, only the status reports it.
            drop(writeln!(io::stderr(), "error: {error}"));
            exit(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(path: &str) -> Out<std::fs::File> {
        Out { to: std::fs::File::options().write(true).open(path).unwrap(), closed: false }
    }

    #[test]
    fn an_error_of_standard_output_is_named_and_keeps_its_kind() {
        let error = on("/dev/full").write_all(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot write to standard output: No space left"), "{error}");
    }

    #[test]
    fn a_closed_output_accepts_nothing() {
        let mut closed = Out { closed: true, ..on("/dev/null") };
        let error = closed.write_all(b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write to standard output: it is closed");
        assert!(!Unwritten::is_left(&error) && closed.flush().is_ok());
        assert!(on("/dev/null").write_all(b"x").is_ok());
    }

    #[test]
    fn only_a_closed_standard_output_is_not_an_error() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Unwritten::is_left(&unwritten(broken())));
        assert!(!Unwritten::is_left(&broken()), "a connection");
    }
}
