//! Rules: what may be submitted, which run's turn it is, which workers must leave, and which runs are deleted. Each rule is
//! one file in this folder and one line in [`Rules::new`]. A rule keeps its own state, reads the coordinator without changing
//! it, and returns what is to be done ([`Act`]). It does nothing itself.

pub(super) mod expiry;
pub(super) mod labels;
mod note;
mod overdue;
pub(super) mod quota;
mod retention;
mod shares;
mod silence;

use std::cmp::Ordering;

use evoxo_common::time::Millis;
use evoxo_proto::v1;

use super::{cause::Cause, events::Rejection, look::Look, runs::RunId, settings::Settings};
use crate::id::SessionId;

/// The maximum length of a term's value in bytes. Error messages repeat at most this many characters of a wrong term.
const TERM_BYTES_MAX: usize = 64;

/// A request for replicas that do not exist yet.
pub(super) struct Proposal<'a> {
    /// Whether the run does not exist yet either.
    pub(super) new_run: bool,
    pub(super) submitter: &'a str,
    pub(super) replicas: u64,
}

/// The parts of a run's order that rules read.
pub(super) struct Ordered<'a> {
    /// The submitter of the run.
    pub(super) submitter: &'a str,
    /// The terms on which the run is computed. They were checked, unless another build accepted them.
    pub(super) terms: &'a [v1::Term],
}

/// A setting for a rule that a submitter can give with a run.
pub(super) struct Term {
    pub(super) name: &'static str,
    /// What a valid value looks like, as the end of a sentence that starts with "it must be".
    pub(super) values: &'static str,
    /// Whether this value is valid.
    pub(super) allows: fn(&str) -> bool,
}

/// What a rule wants done.
#[derive(Debug)]
pub(super) enum Act {
    /// Lose this worker, or make it leave.
    Lose(SessionId, Cause),
    /// Announce that this run will be deleted, with this sentence.
    Announce(RunId, String),
    /// Delete this run, for this reason.
    Delete(RunId, String),
}

/// A rule. The default of each method does nothing.
pub(super) trait Rule: Send {
    /// The term that the rule reads, if any.
    fn term(&self) -> Option<&'static Term> {
        None
    }

    /// Whether the rule admits a proposal.
    fn admits(&self, _look: &Look, _asked: &Proposal) -> Result<(), Rejection> {
        Ok(())
    }

    /// A run was added, or its terms have changed.
    fn ordered(&mut self, _run: RunId, _order: &Ordered) {}

    /// Called at each tick. Ticks come every 100 ms while a rule or another part of the coordinator needs them.
    fn tick(&mut self, _look: &Look) -> Vec<Act> {
        Vec::new()
    }

    /// The latest time at which the rule needs a tick; `None` if the passing of time changes nothing for it.
    fn next_wake(&self, _look: &Look) -> Option<Millis> {
        None
    }

    /// Called when runs may have ended or may continue, and when the coordinator has just started.
    fn turned(&mut self, _look: &Look) -> Vec<Act> {
        Vec::new()
    }

    /// A run was removed.
    fn removed(&mut self, _run: RunId) {}

    /// Which of two runs gets a free slot first.
    fn turn(&self, _one: RunId, _other: RunId) -> Ordering {
        Ordering::Equal
    }

    /// A run was assigned work that is expected to take this long, in microseconds.
    fn given(&mut self, _run: RunId, _us: u64) {}

    /// Assigned work has come back. It was counted as `_counted_us` and took `_took_us`, as far as that is known.
    fn back(&mut self, _run: RunId, _counted_us: u64, _took_us: u64) {}

    /// Checks the rule's invariants in debug builds. `_out_us` gives each run's assigned work.
    fn check(&self, _out_us: &dyn Fn(RunId) -> u64, _look: &Look) {}
}

/// All rules. If several rules reject a proposal or prefer a run, the first one in the list decides.
pub(super) struct Rules(Vec<Box<dyn Rule>>);

impl Rules {
    pub(super) fn new(settings: &Settings) -> Self {
        Self(vec![
            Box::new(quota::Quota),
            Box::new(shares::Shares::new(settings.weights)),
            Box::new(labels::Labels),
            Box::new(note::Note),
            Box::new(silence::Silence),
            Box::new(overdue::Overdue),
            Box::new(retention::Retention::default()),
            Box::new(expiry::Expiry::default()),
        ])
    }

    /// Checks that every term is known, has a valid value and is given only once.
    pub(super) fn check_terms(&self, terms: &[v1::Term]) -> Result<(), String> {
        let known = || self.0.iter().filter_map(|rule| rule.term());
        for (place, v1::Term { name, value }) in terms.iter().enumerate() {
            let Some(term) = known().find(|term| term.name == *name) else {
                let names: Vec<&str> = known().map(|term| term.name).collect();
                let name: String = name.chars().take(TERM_BYTES_MAX).collect();
                return Err(format!("there is no term {name:?}: use {}", names.join(", ")));
            };
            if terms[..place].iter().any(|other| other.name == *name) {
                return Err(format!("the term {name} is given twice"));
            }
            if value.len() > TERM_BYTES_MAX || !(term.allows)(value) {
                let value: String = value.chars().take(TERM_BYTES_MAX).collect();
                return Err(format!("the term {name} is {value:?}: it must be {}", term.values));
            }
        }
        Ok(())
    }

    pub(super) fn admits(&self, look: &Look, asked: &Proposal) -> Result<(), Rejection> {
        self.0.iter().try_for_each(|rule| rule.admits(look, asked))
    }

    pub(super) fn ordered(&mut self, run: RunId, order: &Ordered) {
        self.0.iter_mut().for_each(|rule| rule.ordered(run, order));
    }

    pub(super) fn tick(&mut self, look: &Look) -> Vec<Act> {
        self.0.iter_mut().flat_map(|rule| rule.tick(look)).collect()
    }

    pub(super) fn next_wake(&self, look: &Look) -> Option<Millis> {
        self.0.iter().filter_map(|rule| rule.next_wake(look)).min()
    }

    pub(super) fn turned(&mut self, look: &Look) -> Vec<Act> {
        self.0.iter_mut().flat_map(|rule| rule.turned(look)).collect()
    }

    pub(super) fn removed(&mut self, run: RunId) {
        self.0.iter_mut().for_each(|rule| rule.removed(run));
    }

    pub(super) fn turn(&self, one: RunId, other: RunId) -> Ordering {
        let says = self.0.iter().map(|rule| rule.turn(one, other)).find(|says| says.is_ne());
        says.unwrap_or_else(|| one.cmp(&other))
    }

    pub(super) fn given(&mut self, run: RunId, us: u64) {
        self.0.iter_mut().for_each(|rule| rule.given(run, us));
    }

    pub(super) fn back(&mut self, run: RunId, counted_us: u64, took_us: u64) {
        self.0.iter_mut().for_each(|rule| rule.back(run, counted_us, took_us));
    }

    pub(super) fn check(&self, out_us: &dyn Fn(RunId) -> u64, look: &Look) {
        self.0.iter().for_each(|rule| rule.check(out_us, look));
    }
}
