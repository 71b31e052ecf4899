//! `evoxo-coordinator check-upgrade`: what this build would do with the runs of a store that another build may lead now. Nothing
//! is written, and no lock is taken, so it may run beside a coordinator.

use evoxo_common::experiment::Registry;
use evoxo_proto::{PROTOCOL, STORE_FORMAT, v1::RunState};
use serde_json::{Value, json};

use super::{Refused, Store, place};
use crate::{
    saved::{SavedRun, unfit_because},
    trust::{Level, void_since},
};

/// What this build would do with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// The run goes on, or stays as it ended.
    GoesOn,
    /// The run has not ended and would be blocked, so it must end under the present build first.
    MustEndFirst,
    /// The run has ended, and would be shown as blocked.
    Blocked,
}

impl Prospect {
    fn name(self) -> &'static str {
        match self {
            Self::GoesOn => "goes on",
            Self::MustEndFirst => "must end first",
            Self::Blocked => "would be blocked",
        }
    }
}

impl Prospect {
    /// What becomes of a run that would be blocked for this reason, if there is one.
    #[must_use]
    pub fn of(why: Option<&String>, ended: bool) -> Self {
        match (why, ended) {
            (None, _) => Self::GoesOn,
            (Some(_), false) => Self::MustEndFirst,
            (Some(_), true) => Self::Blocked,
        }
    }
}

/// A run of the store, and what this build would do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The run's name.
    pub run: String,
    /// Its kind; empty if this build cannot read the configuration.
    pub kind: String,
    /// Its state under the present build, as far as the store shows it.
    pub state: &'static str,
    /// What this build would do with it.
    pub prospect: Prospect,
    /// Why the run would be blocked; empty if it goes on.
    pub why: String,
}

/// All runs of a store, and the messages about objects that belong to no run or are not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The runs, by name.
    pub runs: Vec<Judged>,
    /// The messages.
    pub notices: Vec<String>,
}

/// Judges the runs of a store for the experiments of this build.
///
/// # Errors
/// A sentence that says why the store cannot be read.
pub fn check_upgrade(spec: &str, registry: Registry) -> Result<Upgrade, String> {
    let directory = place::directory_of(spec);
    if directory.is_some_and(|directory| !["leader", "runs"].iter().any(|part| directory.join(part).is_dir())) {
        return Err(format!("there is no store {spec}: name the directory or bucket of --store"));
    }
    let mut store = Store::open_to_read(spec, registry.clone()).map_err(|error| error.to_string())?;
    let (refused, _) = store.load_refused().map_err(|error| error.to_string())?;
    let (saved, notices) = store.load().map_err(|error| error.to_string())?;
    let mut runs: Vec<Judged> = saved.iter().map(|saved| judge(&registry, saved, &refused)).collect();
    runs.sort_by(|one, other| one.run.cmp(&other.run));
    Ok(Upgrade { runs, notices })
}

fn judge(registry: &Registry, saved: &SavedRun, refused: &Refused) -> Judged {
    // A void replica stays in its object until another object has it too.
    let vouchers = Level::of_order(&saved.order).vouchers();
    let counts = saved.finished.iter().filter(|it| {
        let exposed = it.replica.exposed.iter().map(|(identity, since)| (&**identity, *since));
        void_since(exposed, vouchers, |identity| refused.convicted.contains(identity)).is_none()
    });
    let complete = saved.prepared.as_ref().is_ok_and(|prepared| counts.count() as u64 >= prepared.replicas());
    let (state, ended) = match saved.order.wanted() {
        RunState::Cancelled => ("cancelled", true),
        _ if complete => ("finished", true),
        RunState::Failed => ("failed", false),
        RunState::Paused => ("paused", false),
        _ if saved.prepared.is_err() => ("not cancelled", false),
        _ => ("running", false),
    };
    let why = match &saved.prepared {
        Err(problems) => Some(format!("this build cannot read its configuration: {problems}")),
        Ok(_) => unfit_because(registry, saved),
    };
    let prospect = Prospect::of(why.as_ref(), ended);
    let kind = saved.prepared.as_ref().map_or_else(|_| String::new(), |it| it.config.kind.name.to_owned());
    Judged { run: saved.name.clone(), kind, state, prospect, why: why.unwrap_or_default() }
}

impl Upgrade {
    /// The number of runs that do not go on.
    #[must_use]
    pub fn stopped(&self) -> usize {
        self.runs.iter().filter(|judged| judged.prospect != Prospect::GoesOn).count()
    }

    /// One line for each run, those that do not go on first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |judged: &Judged| {
            let Judged { run, kind, state, prospect, why } = judged;
            let (prospect, kind) = (prospect.name(), if kind.is_empty() { "of unknown kind" } else { kind });
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            format!("{run} ({kind}, {state}) {prospect}{why}")
        };
        let mut runs: Vec<&Judged> = self.runs.iter().collect();
        runs.sort_by_key(|judged| judged.prospect == Prospect::GoesOn);
        runs.into_iter().map(line).chain(self.notices.iter().cloned()).collect()
    }

    /// The same as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let run = |judged: &Judged| {
            let Judged { run, kind, state, prospect, why } = judged;
            json!({"run": run, "kind": kind, "state": state, "prospect": prospect.name(), "why": why})
        };
        let runs: Vec<Value> = self.runs.iter().map(run).collect();
        let formats = json!({"wire": PROTOCOL, "store": STORE_FORMAT});
        json!({"all_go_on": self.stopped() == 0, "runs": runs, "notices": self.notices, "formats": formats})
    }
}
