//! Interpreting a store's answers. The answer to a write can be lost after the object was written. A store can also say that
//! a name is taken when it is not: S3 does so (409) while another request for the same name is in progress. So a refusal to
//! create an object is believed only after a read of the name.

use std::{io, time::Duration};

use bytes::Bytes;
use evoxo_process::innermost;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, Result,
    client::{HttpError, HttpErrorKind},
    path::Path,
};

/// At most so many retries to create a name that the store calls taken while no object has it.
const CONFLICTS_MAX: u32 = 10;
/// The first retry follows at once. The pause before each further one grows by this much.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);
/// Attempts to remove an object. If the answer does not come in time, the client itself does not retry.
const REMOVALS_MAX: u32 = 3;
/// The most characters of a cause in a message.
const CAUSE_CHARS_MAX: usize = 300;
/// The start of the errors with which `object_store` reports a bucket's answer.
const ANSWERED: &str = "Server returned non-2xx status code: ";

/// Creates an object if no object has this name. Returns true if the object has these bytes now, false if it has others.
///
/// # Errors
/// If the outcome is unknown, or nothing was written.
pub(super) async fn create(objects: &dyn ObjectStore, path: &Path, bytes: &Bytes) -> Result<bool> {
    let mut conflicts = 0;
    loop {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let Err(refusal) = objects.put_opts(path, bytes.clone().into(), options).await else { return Ok(true) };
        match read(objects, path).await {
            Ok(found) => return Ok(found == *bytes),
            Err(Error::NotFound { .. })
                if matches!(refusal, Error::AlreadyExists { .. }) && conflicts < CONFLICTS_MAX =>
            {
                tokio::time::sleep(CONFLICT_PAUSE * conflicts).await;
                conflicts += 1;
            }
            Err(_) => return Err(refusal),
        }
    }
}

/// The bytes of an object.
pub(super) async fn read(objects: &dyn ObjectStore, path: &Path) -> Result<Bytes> {
    objects.get(path).await?.bytes().await
}

/// Checks that objects can be created and removed.
pub(super) async fn probe(objects: &dyn ObjectStore) -> Result<()> {
    // Two containers may have the same process number.
    let path = Path::from(format!("probe-{:016x}", u64::from_le_bytes(evoxo_access::random())));
    create(objects, &path, &Bytes::from_static(b"can be written\n")).await?;
    remove(objects, &path).await
}

/// Removes an object. An object that is already gone is not an error.
pub(super) async fn remove(objects: &dyn ObjectStore, path: &Path) -> Result<()> {
    let mut attempts = 1;
    loop {
        match objects.delete(path).await {
            Ok(()) | Err(Error::NotFound { .. }) => return Ok(()),
            Err(_) if attempts < REMOVALS_MAX => attempts += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Whether a failure passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Yes: the bucket's server is overloaded or broken, cuts its answers off, or does not answer.
    Passes,
    /// Unknown: the server answers that it does not know the bucket or the key. The settings may be wrong, or the server may
    /// misbehave.
    Refused,
    /// No: nobody can reach the server, or a setting is wrong.
    Stays,
}

/// The outlook of an error from a bucket.
pub(super) fn outlook(error: &Error) -> Outlook {
    let source = match error {
        Error::Generic { source, .. } => source,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } | Error::NotFound { .. } => {
            return Outlook::Refused;
        }
        _ => return Outlook::Stays,
    };
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&**source);
    let (mut is_unreached, mut is_broken) = (false, false);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<HttpError>().map(HttpError::kind);
        is_unreached |= kind == Some(HttpErrorKind::Connect);
        let broken = |error: &io::Error| {
            use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
            matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | TimedOut | UnexpectedEof)
        };
        is_broken |= error.downcast_ref::<io::Error>().is_some_and(broken);
        cause = error.source();
    }
    let text = innermost(error);
    let passes = match text.strip_prefix(ANSWERED) {
        Some(said) => ["5", "408", "429"].iter().any(|status| said.starts_with(status)),
        None => is_broken || !is_unreached,
    };
    if passes { Outlook::Passes } else { Outlook::Stays }
}

/// The cause of an error, on one line. Of a bucket's answer only the code and the message are shown: the rest repeats the
/// request, and with it parts of the keys.
pub(super) fn cause(error: &Error) -> String {
    let text = innermost(error);
    let Some((status, body)) = text.strip_prefix(ANSWERED).map(|said| said.split_once(": ").unwrap_or((said, "")))
    else {
        return one_line(&text);
    };
    let element = |name: &str| {
        let (_, after) = body.split_once(&format!("<{name}>"))?;
        after.split_once("</").map(|(inside, _)| inside)
    };
    let said = [element("Code"), element("Message")].into_iter().flatten().collect::<Vec<_>>().join(": ");
    one_line(&if said.is_empty() { format!("it answers {status}") } else { format!("it answers {status}, {said}") })
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(CAUSE_CHARS_MAX).collect()
}
