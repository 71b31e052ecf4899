//! `evoxo pause`, `evoxo resume` and `evoxo cancel`.

use std::{collections::BTreeMap, io::Write as _, process::ExitCode, time::Duration};

use anyhow::bail;
use evoxo_proto::shown::state;
use evoxo_proto::v1;

use super::{runs::minute, which::Which};
use crate::{
    remote::{Client, Coordinator, connect, converse, refused, run_to_json},
    say::{notice, stdout},
};

/// How long to wait for the dates of runs, which the coordinator may have to look up in a slow store.
const DATES_TIMEOUT: Duration = Duration::from_secs(2);

/// The runs.
#[derive(clap::Args)]
pub(crate) struct Named {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print each run as JSON
    #[arg(long)]
    json: bool,
}

/// The runs, and whether to delete them.
#[derive(clap::Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    named: Named,
    /// Also remove them from the store permanently
    #[arg(long)]
    delete: bool,
}

/// The order for a run.
#[derive(Clone, Copy)]
enum Order {
    Pause,
    Resume,
    Cancel { delete: bool },
}

impl Order {
    async fn give(self, client: &mut Client, name: String) -> anyhow::Result<v1::Run> {
        let answer = match self {
            Self::Pause => client.pause(v1::PauseRequest { name }).await,
            Self::Resume => client.resume(v1::ResumeRequest { name }).await,
            Self::Cancel { delete } => client.cancel(v1::CancelRequest { name, delete }).await,
        };
        Ok(answer.map_err(refused)?.into_inner())
    }
}

pub(crate) fn pause(named: &Named) -> anyhow::Result<ExitCode> {
    order(named, Order::Pause)
}

pub(crate) fn resume(named: &Named) -> anyhow::Result<ExitCode> {
    order(named, Order::Resume)
}

pub(crate) fn cancel(arguments: &Cancel) -> anyhow::Result<ExitCode> {
    order(&arguments.named, Order::Cancel { delete: arguments.delete })
}

/// Gives the order to each run. If one run refuses the order, the others still get it.
fn order(named: &Named, order: Order) -> anyhow::Result<ExitCode> {
    converse(async {
        let mut client = connect(&named.coordinator).await?;
        let names = named.which.names(&mut client).await?;
        let dates = dates(&mut client).await;
        let (mut refused, all) = (0, names.len());
        if all == 0 {
            notice("no run has this state, owner and age");
        }
        for name in names {
            match order.give(&mut client, name.clone()).await {
                Ok(run) => {
                    let submitted = dates.get(&name).copied().unwrap_or_default();
                    let run = v1::Run { submitted, ..run };
                    print(named, &run, matches!(order, Order::Cancel { delete: true }))?;
                }
                Err(error) if all == 1 => return Err(error),
                Err(error) => {
                    notice(format_args!("{name}: {error:#}"));
                    refused += 1;
                }
            }
        }
        if refused > 0 {
            bail!("{refused} of {all} runs could not be changed");
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// When each run was submitted, as far as the coordinator says so in time.
async fn dates(client: &mut Client) -> BTreeMap<String, u64> {
    let listed = tokio::time::timeout(DATES_TIMEOUT, client.list(v1::ListRequest { dates: true })).await;
    let runs = listed.ok().and_then(Result::ok).map(|list| list.into_inner().runs).unwrap_or_default();
    runs.into_iter().map(|run| (run.name, run.submitted)).collect()
}

fn print(named: &Named, run: &v1::Run, deleted: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    if named.json {
        writeln!(out, "{:#}", run_to_json(run))?;
    } else {
        writeln!(out, "{}", sentence(run, deleted))?;
        if !run.message.is_empty() {
            writeln!(out, "{}", run.message)?;
        }
    }
    Ok(())
}

/// A sentence about the run's new state. A deleted run is cancelled for that, whatever state it had before.
fn sentence(run: &v1::Run, deleted: bool) -> String {
    let (done, total) = (run.rounds_done, run.rounds_total);
    let state = if deleted { "deleted" } else { state(run) };
    let owner = match (run.submitter.as_str(), run.submitted) {
        ("", _) => String::new(),
        (owner, 0) => format!("; submitted by {owner}"),
        (owner, at_s) => format!("; submitted by {owner} at {}", minute(at_s)),
    };
    format!("{} is {state}, after {done} of {total} rounds{owner}", run.name)
}

#[cfg(test)]
mod tests {
    use evoxo_proto::v1::RunState;

    use super::*;

    #[test]
    fn a_deleted_run_is_not_reported_as_cancelled() {
        let state = RunState::Cancelled.into();
        let run = v1::Run { name: "mine".into(), state, rounds_done: 28, rounds_total: 28, ..v1::Run::default() };
        assert_eq!(sentence(&run, true), "mine is deleted, after 28 of 28 rounds");
        assert_eq!(sentence(&run, false), "mine is cancelled, after 28 of 28 rounds");
        let owned = v1::Run { submitter: "10.0.0.9".into(), ..run };
        assert_eq!(sentence(&owned, false), "mine is cancelled, after 28 of 28 rounds; submitted by 10.0.0.9");
        let dated = sentence(&v1::Run { submitted: 60, ..owned }, true);
        assert_eq!(dated, "mine is deleted, after 28 of 28 rounds; submitted by 10.0.0.9 at 1970-01-01T00:01Z");
    }
}
