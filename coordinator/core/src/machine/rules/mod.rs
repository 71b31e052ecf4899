//! Rules: what may be submitted, whose turn it is, who must go, what is deleted. Each rule is one file of this folder and one line of
//! [`Rules::new`]. A rule keeps a state of its own, looks at the coordinator without changing it, and says what is to be done
//! ([`Act`]). It does nothing itself.

mod overdue;
mod quota;
mod retention;
mod shares;
mod silence;

use std::cmp::Ordering;

use evoxo_common::time::Millis;
use evoxo_proto::v1;

use super::{
    cause::Cause, events::Rejection, runs::RunId, runs::Runs, sessions::Sessions, settings::Settings, tasks::Tasks,
    writes::Writes,
};
use crate::id::SessionId;

/// The most bytes of a term's value, and the most characters of a wrong term that are repeated to whoever gave it.
const TERM_BYTES_MAX: usize = 64;

/// What a rule may look at.
pub(super) struct Look<'a> {
    pub(super) now: Millis,
    pub(super) settings: &'a Settings,
    pub(super) runs: &'a Runs,
    pub(super) tasks: &'a Tasks,
    pub(super) sessions: &'a Sessions,
    pub(super) writes: &'a Writes,
}

/// What a person asks for: replicas that are not there yet.
pub(super) struct Proposal<'a> {
    /// They are those of a run that is not there yet either.
    pub(super) new_run: bool,
    pub(super) submitter: &'a str,
    pub(super) replicas: u64,
}

/// An order of a run, as far as rules read it.
pub(super) struct Ordered<'a> {
    /// Who submitted the run.
    pub(super) submitter: &'a str,
    /// On which terms it is computed. They were checked, unless another build took them.
    pub(super) terms: &'a [v1::Term],
}

/// Something that whoever submits a run can ask of a rule.
pub(super) struct Term {
    pub(super) name: &'static str,
    /// What a value looks like, as the end of a sentence that begins with "it must be".
    pub(super) values: &'static str,
    /// Whether this is one.
    pub(super) allows: fn(&str) -> bool,
}

/// What a rule wants to be done.
#[derive(Debug)]
pub(super) enum Act {
    /// This worker is lost, or must go.
    Lose(SessionId, Cause),
    /// This run is deleted, for this reason.
    Delete(RunId, String),
}

/// A rule. A method that a rule does not write says that it has nothing to do with it.
pub(super) trait Rule: Send {
    /// The term that it reads, if it reads one.
    fn term(&self) -> Option<&'static Term> {
        None
    }

    /// Whether a person may have what they ask for.
    fn admits(&self, _look: &Look, _asked: &Proposal) -> Result<(), Rejection> {
        Ok(())
    }

    /// A run is there from now on, or is computed on other terms.
    fn ordered(&mut self, _run: RunId, _order: &Ordered) {}

    /// At each tick, which is every 100 ms while a rule or something else has a reason for it.
    fn tick(&mut self, _look: &Look) -> Vec<Act> {
        Vec::new()
    }

    /// When it wants a tick at the latest; `None` if time alone changes nothing for it.
    fn next_wake(&self, _look: &Look) -> Option<Millis> {
        None
    }

    /// Runs may have ended, or go on again, or the coordinator has just started.
    fn turned(&mut self, _look: &Look) -> Vec<Act> {
        Vec::new()
    }

    /// A run is there no more.
    fn removed(&mut self, _run: RunId) {}

    /// Which of two runs is served first with a free slot.
    fn turn(&self, _one: RunId, _other: RunId) -> Ordering {
        Ordering::Equal
    }

    /// A run was given work that is expected to take this long, in microseconds.
    fn given(&mut self, _run: RunId, _us: u64) {}

    /// Work is not out any more that was counted with `_counted_us` and took `_took_us`, as far as that is known.
    fn back(&mut self, _run: RunId, _counted_us: u64, _took_us: u64) {}

    /// Checks what the rule promises about runs with this much work out, in debug builds.
    fn check(&self, _out_us: &dyn Fn(RunId) -> u64, _look: &Look) {}
}

/// All rules. If two have something to say, the one that stands first is asked first.
pub(super) struct Rules(Vec<Box<dyn Rule>>);

impl Rules {
    pub(super) fn new() -> Self {
        Self(vec![
            Box::new(quota::Quota),
            Box::new(shares::Shares::default()),
            Box::new(silence::Silence),
            Box::new(overdue::Overdue),
            Box::new(retention::Retention::default()),
        ])
    }

    /// Whether these are terms with values that make sense, each once.
    pub(super) fn check_terms(&self, terms: &[v1::Term]) -> Result<(), String> {
        let known = || self.0.iter().filter_map(|rule| rule.term());
        for (place, v1::Term { name, value }) in terms.iter().enumerate() {
            let Some(term) = known().find(|term| term.name == *name) else {
                let names: Vec<&str> = known().map(|term| term.name).collect();
                let name: String = name.chars().take(TERM_BYTES_MAX).collect();
                return Err(format!("there is no term {name:?} here: there is {}", names.join(", ")));
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
