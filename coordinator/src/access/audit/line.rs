//! A line of the audit log: who asked for what, and the outcome.

use std::{
    collections::BTreeSet,
    time::{Duration, UNIX_EPOCH},
};

use evoxo_access::now_s;
use serde_json::{Value, json};

use crate::core::Rejection;

/// The longest text of others in a line, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// The role of this coordinator.
const OWN: &str = "coordinator";
/// The outcome of what was done.
const DONE: &str = "done";
/// Before the reason, the outcome of what was refused, and of what may have been done.
const REFUSED: &str = "refused: ";
const UNKNOWN: &str = "unknown: ";

/// What became of something that somebody asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Done,
    /// What had been granted before was granted again.
    Again,
    /// It was not done, for this reason.
    Refused(&'a str),
    /// It was answered with this reason, and may have been done all the same.
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

/// Who asked for something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    /// The identity's number; empty for somebody without a certificate.
    pub(crate) id: String,
    pub(crate) role: &'static str,
    /// Without the port.
    pub(crate) address: String,
    /// The token by which it came, if that is known: all who came by it have one share of the log. For what this coordinator did, the
    /// cause; empty if only an operator can bring it about.
    pub(crate) account: String,
    /// It is an operator, or this coordinator.
    pub(crate) strong: bool,
}

impl Asker {
    /// This coordinator, which does something because of this.
    pub(crate) fn own(cause: &str) -> Self {
        Self { role: OWN, account: cause.to_owned(), strong: true, ..Self::default() }
    }

    /// Whether this coordinator does it because of somebody who need not be an operator.
    pub(super) fn is_caused(&self) -> bool {
        self.role == OWN && !self.account.is_empty()
    }
}

/// Whether a line says that something was done or may have been, and not that it was refused.
pub(crate) fn says_done(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["outcome"].as_str().is_some_and(|outcome| outcome == DONE || outcome.starts_with(UNKNOWN))
}

/// The newest of the lines on this host and in the store, in order of time; each line that both have is there once. First those of
/// operators and about rights, then the others: these fill at most half of the answer as long as there are enough of the first.
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

/// A line, after what orders it: time, epoch, number.
type Placed = ((String, u64, u64), String);

/// What is here and what is in the store, in order.
fn joined(here: Vec<String>, stored: Vec<String>) -> Vec<Placed> {
    let place = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let number = |name: &str| line[name].as_u64().unwrap_or(0);
        (line["time"].as_str().unwrap_or_default().to_owned(), number("epoch"), number("number"))
    };
    // By their whole text: after a store was restored, epochs and numbers come again.
    let (known, mut seen) = (here.iter().collect::<BTreeSet<_>>(), BTreeSet::new());
    let own = here.iter().map(|line| (place(line), line.clone()));
    // Lines from a time without a leader have no number, and the same line may be there several times.
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

/// The line that says how many are missing in the file. The store may have them, so this one is not for it.
pub(super) fn lost(count: u64) -> String {
    let object = format!("{count} lines that the disk did not take");
    line(now_s(), &Asker::own(""), "lost", &object, Outcome::Done).to_string()
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
