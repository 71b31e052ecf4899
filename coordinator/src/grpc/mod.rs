//! The gRPC services. They only decode requests, ask the core, and encode its answers. Invalid requests get a `Status`.

pub(crate) mod accept;
pub(crate) mod access;
pub(crate) mod gate;
pub(crate) mod rights;
pub(crate) mod run;
pub(crate) mod secure;
pub(crate) mod worker;

use tonic::Status;

use crate::{access::Outcome, core::Rejection};

/// The longest message of a status, in bytes, because it is sent in an HTTP/2 header.
const SENTENCE_BYTES_MAX: usize = 2048;

/// A rejection as a gRPC status.
fn status_of(rejection: Rejection) -> Status {
    match rejection {
        Rejection::Invalid(why) => Status::invalid_argument(cut(why)),
        Rejection::NotFound(why) => Status::not_found(cut(why)),
        Rejection::Denied(why) => Status::permission_denied(cut(why)),
        Rejection::Conflict(why) | Rejection::Unstored(why) => Status::failed_precondition(cut(why)),
        Rejection::Exhausted(why) => Status::resource_exhausted(cut(why)),
        Rejection::Unavailable(why) | Rejection::Interrupted(why) => Status::unavailable(cut(why)),
    }
}

/// Why a request failed, and whether it may have been carried out all the same.
pub(crate) struct Failure {
    status: Status,
    in_doubt: bool,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, in_doubt: false }
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        failure.status
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        let in_doubt = rejection.is_in_doubt();
        Self { status: status_of(rejection), in_doubt }
    }
}

impl Failure {
    /// The outcome for the audit log.
    fn outcome<T>(done: &Result<T, Self>) -> Outcome<'_> {
        match done {
            Ok(_) => Outcome::Done,
            Err(Self { status, in_doubt: true }) => Outcome::Unknown(status.message()),
            Err(Self { status, .. }) => Outcome::Refused(status.message()),
        }
    }
}

/// The beginning of a message that is too long, cut at a line break if it has several lines.
fn cut(mut sentence: String) -> String {
    if sentence.len() > SENTENCE_BYTES_MAX {
        let end = (0..SENTENCE_BYTES_MAX).rev().find(|end| sentence.is_char_boundary(*end)).unwrap_or(0);
        let end = sentence[..end].rfind('\n').unwrap_or(end);
        sentence.truncate(end);
        sentence.push_str("\n... (the rest is left out)");
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_at_a_line_end() {
        assert_eq!(cut("short".into()), "short");
        let long = cut("ä".repeat(5000));
        assert!(long.len() < 2100 && long.ends_with("left out)"));
        let lines = cut("a line of a problem\n".repeat(500));
        assert!(lines.len() < 2100 && lines.ends_with("problem\n... (the rest is left out)"), "{lines}");
    }
}
