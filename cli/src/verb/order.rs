//! `evoxo pause`, `resume` and `cancel`.

use std::{io::Write as _, process::ExitCode};

use evoxo_proto::v1;

use evoxo_coordinator::shown::state;

use crate::remote::{Coordinator, connect, converse, refused, run_to_json};

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
    print(named, &run)
}

pub(crate) fn resume(named: &Named) -> anyhow::Result<ExitCode> {
    let run = converse(async {
        let mut client = connect(&named.coordinator).await?;
        Ok(client.resume(v1::ResumeRequest { name: named.name.clone() }).await.map_err(refused)?.into_inner())
    })?;
    print(named, &run)
}

pub(crate) fn cancel(arguments: &Cancel) -> anyhow::Result<ExitCode> {
    let named = &arguments.named;
    let run = converse(async {
        let mut client = connect(&named.coordinator).await?;
        let request = v1::CancelRequest { name: named.name.clone(), delete: arguments.delete };
        Ok(client.cancel(request).await.map_err(refused)?.into_inner())
    })?;
    print(named, &run)
}

fn print(named: &Named, run: &v1::Run) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if named.json {
        writeln!(out, "{:#}", run_to_json(run))?;
    } else {
        let (done, total) = (run.rounds_done, run.rounds_total);
        writeln!(out, "{} is {}, after {done} of {total} rounds", run.name, state(run))?;
        if !run.message.is_empty() {
            writeln!(out, "{}", run.message)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
