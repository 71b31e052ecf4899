//! `evoxo pause`, `resume` and `cancel`.

use std::{io::Write as _, process::ExitCode};

use evoxo_proto::v1;

use evoxo_coordinator::shown::state;

use crate::{
    remote::{Coordinator, connect, converse, refused, run_to_json},
    say::stdout,
};

/// The run.
#[derive(clap::Args)]
pub(crate) struct Named {
    /// The run's name
    name: String,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

/// The run, and whether to delete it.
#[derive(clap::Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    named: Named,
    /// Also remove it from the store permanently
    #[arg(long)]
    delete: bool,
}

pub(crate) fn pause(named: &Named) -> anyhow::Result<ExitCode> {
    let run = converse(async {
        let mut client = connect(&named.coordinator).await?;
        Ok(client.pause(v1::PauseRequest { name: named.name.clone() }).await.map_err(refused)?.into_inner())
    })?;
    print(named, &run, false)
}

pub(crate) fn resume(named: &Named) -> anyhow::Result<ExitCode> {
    let run = converse(async {
        let mut client = connect(&named.coordinator).await?;
        Ok(client.resume(v1::ResumeRequest { name: named.name.clone() }).await.map_err(refused)?.into_inner())
    })?;
    print(named, &run, false)
}

pub(crate) fn cancel(arguments: &Cancel) -> anyhow::Result<ExitCode> {
    let named = &arguments.named;
    let run = converse(async {
        let mut client = connect(&named.coordinator).await?;
        let request = v1::CancelRequest { name: named.name.clone(), delete: arguments.delete };
        Ok(client.cancel(request).await.map_err(refused)?.into_inner())
    })?;
    print(named, &run, arguments.delete)
}

fn print(named: &Named, run: &v1::Run, deleted: bool) -> anyhow::Result<ExitCode> {
    let mut out = stdout();
    if named.json {
        writeln!(out, "{:#}", run_to_json(run))?;
    } else {
        writeln!(out, "{}", sentence(run, deleted))?;
        if !run.message.is_empty() {
            writeln!(out, "{}", run.message)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of the run. One that is deleted is cancelled for that, whatever it was before.
fn sentence(run: &v1::Run, deleted: bool) -> String {
    let (done, total) = (run.rounds_done, run.rounds_total);
    let state = if deleted { "deleted" } else { state(run) };
    format!("{} is {state}, after {done} of {total} rounds", run.name)
}

#[cfg(test)]
mod tests {
    use evoxo_proto::v1::RunState;

    use super::*;

    #[test]
    fn a_run_that_is_deleted_is_not_called_cancelled() {
        let state = RunState::Cancelled.into();
        let run = v1::Run { name: "mine".into(), state, rounds_done: 28, rounds_total: 28, ..v1::Run::default() };
        assert_eq!(sentence(&run, true), "mine is deleted, after 28 of 28 rounds");
        assert_eq!(sentence(&run, false), "mine is cancelled, after 28 of 28 rounds");
    }
}
