//! How many runs and replicas there may be, in total and for one submitter.

use super::{Look, Proposal, Rule};
use crate::machine::{events::Rejection, run::Run, runs::RunId};

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
