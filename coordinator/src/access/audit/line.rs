//! A line of the audit log: who made which request, and the outcome.

use std::{
    collections::BTreeSet,
    time::{Duration, UNIX_EPOCH},
};

use evoxo_access::now_s;
use serde_json::{Value, json};

use crate::core::Rejection;

/// The longest text from others in a line, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// The role of this coordinator.
const OWN: &str = "coordinator";
/// The outcome of a request that was carried out.
const DONE: &str = "done";
/// The outcome of a request that was refused, and of one that may have been carried out, before the reason.
const REFUSED: &str = "refused: ";
const UNKNOWN: &str = "unknown: ";

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Done,
    /// An earlier grant was given again.
    Again,
    /// The request was not carried out, for this reason.
    Refused(&'a str),
    /// The request was answered with this reason, and may have been carried out all the same.
    Unknown(&'a str),
}

impl<'a> From<Result<(), &'a str>> for Outcome<'a> {
    fn from(done: Result<(), &'a str>) -> Self {
        done.map_or_else(Self::Refused, |()| Self::Done)
    }
}

impl<'a, T> From<&'a Result<T, Rejection>> for Outcome<'a> {
    fn from(answer: &'a Result<T, Rejection>) -> Self {
        match answer {
            Ok(_) => Self::Done,
            Err(rejection) if rejection.is_in_doubt() => Self::Unknown(rejection.sentence()),
            Err(rejection) => Self::Refused(rejection.sentence()),
        }
    }
}

/// Who made a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    /// The identity's number; empty without a certificate.
    pub(crate) id: String,
    pub(crate) role: &'static str,
    /// The address, without the port.
    pub(crate) address: String,
    /// The token with which the identity joined, if known. All identities of one token have one share of the log. For an
    /// action of this coordinator this is the cause; empty if only an operator can cause it.
    pub(crate) account: String,
    /// Whether this is an operator or this coordinator.
    pub(crate) strong: bool,
}

impl Asker {
    /// This coordinator, acting for this cause.
    pub(crate) fn own(cause: &str) -> Self {
        Self { role: OWN, account: cause.to_owned(), strong: true, ..Self::default() }
    }

    /// Whether people other than operators can cause this action of the coordinator.
    pub(super) fn is_caused(&self) -> bool {
        self.role == OWN && !self.account.is_empty()
    }
}

/// Whether a line says that something was done or may have been done, rather than refused.
pub(crate) fn says_done(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["outcome"].as_str().is_some_and(|outcome| outcome == DONE || outcome.starts_with(UNKNOWN))
}

/// The newest of the lines on this host and in the store, in order of time, without duplicates. Lines about rights and of
/// operators come first. As long as there are enough of them, the other lines fill at most half of the answer.
pub(crate) fn merge(here: [Vec<String>; 2], stored: [Vec<String>; 2], count: usize) -> Vec<String> {
    let [here_rights, here_others] = here;
    let [stored_rights, stored_others] = stored;
    let (mut rights, mut others) = (joined(here_rights, stored_rights), joined(here_others, stored_others));
    let room = (count / 2).max(count.saturating_sub(rights.len()));
    others.drain(..others.len().saturating_sub(room));
    rights.drain(..(rights.len() + others.len()).saturating_sub(count).min(rights.len()));
    rights.extend(others);
    rights.sort_by(|one, other| one.0.cmp(&other.0));
    rights.into_iter().map(|(_, line)| line).collect()
}

/// A line with its sort key: time, epoch, number.
type Placed = ((String, u64, u64), String);

/// The lines here and in the store, sorted.
fn joined(here: Vec<String>, stored: Vec<String>) -> Vec<Placed> {
    let place = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let number = |name: &str| line[name].as_u64().unwrap_or(0);
        (line["time"].as_str().unwrap_or_default().to_owned(), number("epoch"), number("number"))
    };
    // Lines are compared by their whole text, because epochs and numbers repeat after a store was restored.
    let (known, mut seen) = (here.iter().collect::<BTreeSet<_>>(), BTreeSet::new());
    let own = here.iter().map(|line| (place(line), line.clone()));
    // Lines from a time without a leader have no number, and the same line may legitimately occur several times.
    let stored = stored.iter().map(|line| (place(line), line.clone()));
    let stored =
        stored.filter(|((.., number), line)| !known.contains(line) && (*number == 0 || seen.insert(line.clone())));
    let mut all: Vec<_> = own.chain(stored).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

pub(super) fn line(now_s: u64, asker: &Asker, what: &str, object: &str, outcome: Outcome<'_>) -> Value {
    let outcome = match outcome {
        Outcome::Done | Outcome::Again => DONE.to_owned(),
        Outcome::Refused(why) => format!("{REFUSED}{}", cut(why)),
        Outcome::Unknown(why) => format!("{UNKNOWN}{}", cut(why)),
    };
    json!({
        "time": humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(now_s)).to_string(),
        "who": asker.id,
        "role": asker.role,
        "from": asker.address,
        "what": cut(what),
        "object": cut(object),
        "outcome": outcome,
    })
}

/// The line that says how many lines are missing in the file. The store may have them, so this line is not stored there.
pub(super) fn lost(count: u64) -> String {
    let object = format!("{count} lines that the disk did not take");
    line(now_s(), &Asker::own(""), "lost", &object, Outcome::Done).to_string()
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
