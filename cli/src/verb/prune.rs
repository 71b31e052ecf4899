//! `evoxo prune`: deletes runs that ended long ago.

use std::{io::Write as _, process::ExitCode};

use anyhow::bail;
use evoxo_access::now_s;
use evoxo_common::text::counted;
use evoxo_proto::{
    shown::state,
    v1::{self, RunState},
};

use super::which::Which;
use crate::{
    progress::short_time,
    remote::{Coordinator, connect, converse, refused},
    say::{notice, stdout, usage},
};

/// Which runs to delete: finished and cancelled ones, and those in doubt, unless they were submitted with --term keep=yes or a time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evoxo prune --older 30d --dry-run        list what ended a month ago
  evoxo prune --older 30d                  delete it, except runs with keep=yes
  evoxo prune 'test-*' --owner 1a2b3c4d5e6f

Deletes only runs that are finished, cancelled or in doubt.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Only list the runs that would be deleted
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    coordinator: Coordinator,
}

/// Whether a run has ended and may be deleted. A run that is kept for ever, or for a time of its own, stays.
fn may_go(run: &v1::Run) -> bool {
    let ended = matches!(run.state(), RunState::Finished | RunState::InDoubt | RunState::Cancelled);
    ended && !is_pinned(run)
}

/// The order in which a coordinator with `--retain` deletes runs. Nobody knows how old a run without a date is.
fn oldest_first(runs: &mut [v1::Run]) {
    runs.sort_by_key(|run| (run.ended == 0, run.ended));
}

fn is_pinned(run: &v1::Run) -> bool {
    run.terms.iter().any(|term| term.name == "keep" && term.value != "no")
}

/// A line about a run: its name, state, age and owner.
fn line(run: &v1::Run, now_s: u64) -> String {
    let since = match run.ended {
        0 => "at an unknown time".to_owned(),
        ended => format!("{} ago", short_time(now_s.saturating_sub(ended) as f64)),
    };
    format!("{}: {} {since}, submitted by {}", run.name, state(run), run.submitter)
}

pub(crate) fn prune(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.which.is_all() {
        return Err(usage("say which runs: by --older 30d, --owner, --state or name"));
    }
    converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let runs = arguments.which.runs(&mut client).await?;
        let pinned = runs.iter().filter(|run| is_pinned(run)).count();
        let mut going: Vec<v1::Run> = runs.into_iter().filter(may_go).collect();
        oldest_first(&mut going);
        let (mut gone, now_s, mut out) = (0, now_s(), stdout());
        for run in &going {
            if !arguments.dry_run {
                let request = v1::CancelRequest { name: run.name.clone(), delete: true };
                if let Err(status) = client.cancel(request).await {
                    notice(format_args!("{}: {:#}", run.name, refused(status)));
                    continue;
                }
            }
            gone += 1;
            writeln!(out, "{}", line(run, now_s))?;
        }
        let verb = if arguments.dry_run { "would delete" } else { "deleted" };
        let kept = match pinned {
            0 => String::new(),
            _ => format!("; the term keep= keeps {}", counted(pinned, "run")),
        };
        writeln!(out, "{verb} {}{kept}", counted(gone, "run"))?;
        if gone < going.len() {
            bail!("{} of {} could not be deleted", going.len() - gone, counted(going.len(), "run"));
        }
        Ok(ExitCode::SUCCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_runs_go_and_pinned_ones_stay() {
        let run = |state: RunState, keep: &str| {
            let terms = vec![v1::Term { name: "keep".into(), value: keep.into() }];
            v1::Run { name: "a".into(), submitter: "10.0.0.7".into(), state: state.into(), terms, ..v1::Run::default() }
        };
        let going = |state| ["no", "yes", "30d"].map(|keep| may_go(&run(state, keep)));
        for state in [RunState::Finished, RunState::InDoubt, RunState::Cancelled] {
            assert_eq!(going(state), [true, false, false], "{state:?}");
        }
        for state in [RunState::Running, RunState::Paused, RunState::Failed, RunState::Blocked] {
            assert_eq!(going(state), [false; 3], "{state:?}");
        }
        let dated = |name: &str, ended| v1::Run { name: name.into(), ended, ..v1::Run::default() };
        let mut runs = [dated("b", 9), dated("unknown", 0), dated("a", 3)];
        oldest_first(&mut runs);
        assert_eq!(runs.each_ref().map(|run| run.name.as_str()), ["a", "b", "unknown"]);
        let ended = v1::Run { ended: 1000, ..run(RunState::Finished, "no") };
        assert!(line(&ended, 1000 + 7200).starts_with("a: finished 2"), "{}", line(&ended, 8200));
        assert_eq!(line(&v1::Run { ended: 0, ..ended }, 0), "a: finished at an unknown time, submitted by 10.0.0.7");
    }
}
