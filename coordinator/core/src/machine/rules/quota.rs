//! How many runs and replicas there may be, in total and for one submitter.

use std::collections::BTreeMap;

use super::{Look, Proposal, Rule, expiry};
use crate::machine::{events::Rejection, run::Run, runs::RunId};

/// What is used of a limit: its name, what is used, and the limit.
pub(in crate::machine) type Used = (&'static str, u64, u64);

/// What is used of each limit on runs, replicas and workers. That of one submitter is the most that any submitter uses.
pub(in crate::machine) fn used(look: &Look) -> Vec<Used> {
    let mut each: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (_, run) in look.runs.iter() {
        let (runs, replicas) = each.entry(&run.submitter).or_default();
        *runs += 1;
        *replicas += run.prepared.replicas();
    }
    let settings = look.settings;
    let most = |of: fn(&(u64, u64)) -> u64| each.values().map(of).max().unwrap_or_default();
    let all = |of: fn(&(u64, u64)) -> u64| each.values().map(of).sum();
    let bytes = expiry::used(look).map(|(used, most)| ("bytes of ended runs of one submitter", used, most));
    let limits = vec![
        ("runs", all(|(runs, _)| *runs), settings.runs_max as u64),
        ("runs of one submitter", most(|(runs, _)| *runs), settings.runs_per_submitter_max as u64),
        ("replicas", all(|(_, replicas)| *replicas), settings.records_max()),
        ("replicas of one submitter", most(|(_, replicas)| *replicas), settings.records_per_submitter_max()),
        ("workers", look.sessions.len() as u64, settings.sessions_max as u64),
    ];
    limits.into_iter().chain(bytes).collect()
}

/// A notice for a submitter who has used four fifths of a limit.
pub(in crate::machine) fn near(look: &Look, submitter: &str) -> Option<String> {
    let own = look.runs.iter().filter(|(_, run)| run.submitter == submitter);
    let (runs, replicas) =
        own.fold((0, 0), |(runs, replicas), (_, run)| (runs + 1, replicas + run.prepared.replicas()));
    let (all, settings) = (look.runs.len() as u64, look.settings);
    let limits = [
        ("runs", runs, settings.runs_per_submitter_max as u64, "one submitter may have"),
        ("replicas", replicas, settings.records_per_submitter_max(), "one submitter may have"),
        ("runs", all, settings.runs_max as u64, "the coordinator may have"),
    ];
    let (what, used, limit, who) = limits.into_iter().find(|(_, used, limit, _)| used * 5 >= limit * 4)?;
    Some(format!(
        "{used} of the {limit} {what} are used that {who}: delete old ones before the limit is met (`evoxo prune --older 30d`)"
    ))
}

pub(super) struct Quota;

impl Rule for Quota {
    fn admits(&self, look: &Look, asked: &Proposal) -> Result<(), Rejection> {
        if asked.new_run {
            has_room_for_a_run(look, asked.submitter)?;
        }
        remembers(look, asked.replicas, asked.submitter)
    }
}

fn has_room_for_a_run(look: &Look, submitter: &str) -> Result<(), Rejection> {
    if look.runs.len() >= look.settings.runs_max {
        let limit = look.settings.runs_max;
        return Err(Rejection::Exhausted(format!(
            "the coordinator has {limit} runs: cancel and delete old ones first"
        )));
    }
    let of_submitter = look.runs.iter().filter(|(_, run)| run.submitter == submitter).count();
    let limit = look.settings.runs_per_submitter_max;
    if of_submitter >= limit {
        return Err(Rejection::Exhausted(format!(
            "{of_submitter} runs were submitted by {submitter}, and one submitter may have {limit}: cancel and delete \
             old ones first"
        )));
    }
    Ok(())
}

/// Whether there is room to remember this many more replicas of this submitter.
fn remembers(look: &Look, more: u64, submitter: &str) -> Result<(), Rejection> {
    // Include replicas that are ordered and not stored yet.
    let ordered = look.writes.ordered();
    let of = |(id, run): (RunId, &Run)| {
        let ordered = ordered.get(&id).copied().unwrap_or(0);
        ordered.max(run.prepared.replicas())
    };
    let known = |whose: &dyn Fn(&Run) -> bool| -> u64 { look.runs.iter().filter(|(_, run)| whose(run)).map(of).sum() };
    let (all, own) = (known(&|_| true), known(&|run| run.submitter == submitter));
    let (most, share) = (look.settings.records_max(), look.settings.records_per_submitter_max());
    let (whose, known, most) = match () {
        () if all + more > most => ("of this coordinator".to_owned(), all, most),
        () if own + more > share => (format!("that {submitter} submitted"), own, share),
        () => return Ok(()),
    };
    Err(Rejection::Exhausted(format!(
        "the runs {whose} have {known} replicas, and at most {most} are remembered: delete old runs, or start the \
         coordinator with more --memory"
    )))
}
