//! Ended runs are deleted when they are older than a time, or when the ended runs of a submitter take more than a number of
//! bytes: the oldest first, never one with the term keep=yes, and by bytes never the newest one of a submitter. A run with a
//! time of its own, as keep=30d, is deleted after that time and for no other reason.
//!
//! A deletion is announced before it happens: a day before the time has passed (or a fifth of the time, if that is less), or
//! when the runs take four fifths of the bytes. A run goes an hour after its announcement at the earliest, so nothing
//! disappears at a start with a new setting, or with a wrong clock, before a person could read of it.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::time::Millis;

use super::{Act, Look, Ordered, Rule, retention::Keep};
use crate::machine::{run::Run, runs::RunId};

/// How long before the end of its time a deletion is announced at most, in milliseconds.
const AHEAD_MS_MAX: u64 = 24 * 3_600_000;
/// How long a run stays after the announcement at least, in milliseconds.
const GRACE_MS_MAX: u64 = 3_600_000;
/// The beginning of each announcement. A run that is kept after all loses the notice by it.
pub(in crate::machine) const ANNOUNCES: &str = "this run will be deleted";

/// How long before the end of its time the deletion of a run is announced.
fn ahead_ms(retain_ms: u64) -> u64 {
    AHEAD_MS_MAX.min(retain_ms / 5)
}

/// How long a run that is kept for so long stays after the announcement at least.
fn grace_ms(retain_ms: Option<u64>) -> u64 {
    retain_ms.map_or(GRACE_MS_MAX, |retain_ms| GRACE_MS_MAX.min(ahead_ms(retain_ms)))
}

/// A run that may be deleted.
struct Ended<'a> {
    id: RunId,
    run: &'a Run,
    age_ms: u64,
    /// The time of its own after which it is deleted, if it has one.
    own_ms: Option<u64>,
}

/// The runs that may be deleted, the oldest first.
fn ended<'a>(look: &Look<'a>) -> Vec<Ended<'a>> {
    let may = |run: &Run| Keep::of(&run.terms) != Keep::Always && !run.orders.is_deleting() && !run.orders.is_writing();
    let over = look.runs.iter().filter(|(_, run)| may(run));
    let mut ended: Vec<_> = over.filter_map(|(id, run)| Some((run.over_since?, id, run))).collect();
    ended.sort_unstable_by_key(|(since, id, _)| (*since, *id));
    let one = |(since, id, run): (i64, RunId, &'a Run)| {
        let age_ms = u64::try_from(look.now.0 as i64 - since).unwrap_or_default();
        let own_ms = if let Keep::For(own_ms) = Keep::of(&run.terms) { Some(own_ms) } else { None };
        Ended { id, run, age_ms, own_ms }
    };
    ended.into_iter().map(one).collect()
}

/// The bytes of the ended runs of the submitter who has the most, and the limit, if there is one.
pub(in crate::machine) fn used(look: &Look) -> Option<(u64, u64)> {
    let most = look.settings.retain_bytes?;
    let mut each: BTreeMap<&str, u64> = BTreeMap::new();
    for Ended { run, .. } in ended(look).into_iter().filter(|ended| ended.own_ms.is_none()) {
        *each.entry(&run.submitter).or_default() += run.stored_bytes();
    }
    Some((each.into_values().max().unwrap_or_default(), most))
}

/// A notice for a submitter some of whose ended runs will be deleted.
pub(in crate::machine) fn near(look: &Look, submitter: &str) -> Option<String> {
    let is_going = |run: &&Run| run.submitter == submitter && run.expiry_said.is_some();
    let mut going = ended(look).into_iter().map(|ended| ended.run).filter(is_going);
    let first = going.next()?;
    let more = going.count();
    let others = if more == 0 { String::new() } else { format!(" and {more} more") };
    Some(format!(
        "ended runs of the same submitter will be deleted, first {}{others}: `evoxo runs --json` has a notice at each",
        first.name
    ))
}

/// A duration for people.
fn shown(ms: u64) -> String {
    match ms / 1000 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// What is due for a run.
enum Due {
    /// It must go, because of its age or its bytes.
    Gone(String),
    /// It will have to go.
    Soon(String),
    /// Nothing before it has this age, in milliseconds; `None` if nothing depends on its age.
    Later(Option<u64>),
}

/// What is due for each run because of its age.
fn by_age(retain_ms: Option<u64>, age_ms: u64) -> Due {
    let Some(retain_ms) = retain_ms else { return Due::Later(None) };
    let kept = shown(retain_ms);
    match age_ms {
        _ if age_ms >= retain_ms => Due::Gone(format!("it ended more than {kept} ago")),
        _ if age_ms + ahead_ms(retain_ms) >= retain_ms => Due::Soon(format!("{kept} after its end")),
        _ => Due::Later(Some(retain_ms - ahead_ms(retain_ms))),
    }
}

/// What is due because of bytes, for a run beside which newer ones take so many.
fn by_bytes(limit: Option<u64>, newer: u64, bytes: u64) -> Due {
    let Some(limit) = limit else { return Due::Later(None) };
    let together = newer.saturating_add(bytes);
    match newer {
        // The newest one.
        0 => Due::Later(None),
        _ if together > limit => Due::Gone(format!("the ended runs of its submitter take more than {limit} bytes")),
        _ if together > limit / 5 * 4 => Due::Soon(format!("when the ended runs of its submitter take {limit} bytes")),
        _ => Due::Later(None),
    }
}

/// The rule. It only remembers when something may be due next, and for which runs.
#[derive(Default)]
pub(in crate::machine) struct Expiry {
    due: Option<Millis>,
    /// The runs that have a time of their own.
    timed: BTreeSet<RunId>,
}

impl Expiry {
    fn judge(&mut self, look: &Look) -> Vec<Act> {
        self.due = None;
        let limit = look.settings.retain_bytes;
        if look.settings.retain_ms.is_none() && limit.is_none() && self.timed.is_empty() {
            return Vec::new();
        }
        let mut newer: BTreeMap<&str, u64> = BTreeMap::new();
        let mut acts = Vec::new();
        for Ended { id, run, age_ms, own_ms } in ended(look).into_iter().rev() {
            let retain_ms = own_ms.or(look.settings.retain_ms);
            let aged = by_age(retain_ms, age_ms);
            let sized = match own_ms {
                Some(_) => Due::Later(None),
                None => {
                    // Each run counts, so that the newest one is known even if it takes nothing.
                    let bytes = run.stored_bytes().max(1);
                    let others = newer.entry(&run.submitter).or_default();
                    let sized = by_bytes(limit, *others, bytes);
                    *others = others.saturating_add(bytes);
                    sized
                }
            };
            let (said, grace_ms) = (run.expiry_said, grace_ms(retain_ms));
            match (aged, sized) {
                (Due::Gone(why), _) | (_, Due::Gone(why)) => match said {
                    Some(said) if look.now - said >= grace_ms => acts.push(Act::Delete(id, why)),
                    Some(said) => self.wake(said + grace_ms),
                    None => {
                        let when = format!("in {}, because {why}", shown(grace_ms));
                        acts.push(announce(id, run, &when));
                        self.wake(look.now + grace_ms);
                    }
                },
                (Due::Soon(when), other) | (other, Due::Soon(when)) => {
                    if said.is_none() {
                        acts.push(announce(id, run, &when));
                    }
                    // Both a time that comes and one that has been announced.
                    let (Some(retain_ms), Due::Soon(_) | Due::Later(_)) = (retain_ms, other) else { continue };
                    self.wake(look.now + retain_ms.saturating_sub(age_ms));
                }
                (Due::Later(one), Due::Later(other)) => {
                    let next = one.or(other).map(|at_ms| look.now + at_ms.saturating_sub(age_ms));
                    next.into_iter().for_each(|at| self.wake(at));
                }
            }
        }
        // The oldest first.
        acts.reverse();
        acts
    }

    fn wake(&mut self, at: Millis) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

fn announce(id: RunId, run: &Run, when: &str) -> Act {
    Act::Announce(
        id,
        format!(
            "{ANNOUNCES} {when}: `evoxo fetch {}` saves its results, and submitting it again with --term keep=yes keeps it",
            run.name
        ),
    )
}

impl Rule for Expiry {
    fn ordered(&mut self, run: RunId, order: &Ordered) {
        match Keep::of(order.terms) {
            Keep::For(_) => self.timed.insert(run),
            Keep::No | Keep::Always => self.timed.remove(&run),
        };
    }

    fn removed(&mut self, run: RunId) {
        self.timed.remove(&run);
    }

    fn tick(&mut self, look: &Look) -> Vec<Act> {
        if self.due.is_some_and(|due| due <= look.now) { self.judge(look) } else { Vec::new() }
    }

    fn next_wake(&self, _: &Look) -> Option<Millis> {
        self.due
    }

    fn turned(&mut self, look: &Look) -> Vec<Act> {
        self.judge(look)
    }
}
