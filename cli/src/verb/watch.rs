//! `evoxo watch NAME`.

use std::{io::Write as _, process::ExitCode};

use anyhow::bail;
use evoxo_process::Addresses;
use evoxo_proto::v1::{self, RunState};

use crate::{
    progress::Progress,
    remote::{Coordinator, connect, converse, refused, run_to_json},
    say::{program, stdout},
};

/// The run and the coordinator.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run's name
    name: String,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print a line of JSON at each change
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut progress = Progress::new();
    let last = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let request = v1::WatchRequest { name: arguments.name.clone() };
        let mut changes = client.watch(request).await.map_err(refused)?.into_inner();
        let mut last = v1::Run::default();
        while let Some(run) = changes.message().await.map_err(refused)? {
            if arguments.json {
                writeln!(stdout(), "{}", run_to_json(&run))?;
            } else {
                progress.show(&run);
            }
            last = run;
        }
        Ok(last)
    });
    progress.end();
    verdict(&last?, &arguments.coordinator.address, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Says how a run ended; an error if it is not finished.
pub(crate) fn verdict(last: &v1::Run, address: &Addresses, json: bool) -> anyhow::Result<()> {
    match last.state() {
        RunState::Finished if json => {}
        RunState::Finished => {
            let (name, program) = (&last.name, program());
            let mut out = stdout();
            writeln!(out, "{name} is finished, {}", digest(last))?;
            writeln!(out, "`{program} fetch {name} --coordinator {address}` gets its results")?;
        }
        RunState::Cancelled => bail!("{} was cancelled", last.name),
        RunState::InDoubt => {
            let (name, digest, message) = (&last.name, digest(last), &last.message);
            bail!("{name} is in doubt, {digest}: {message}; `{} fetch` gets its results", program())
        }
        RunState::Failed => bail!("{} failed: {}; `{} resume` tries it again", last.name, last.message, program()),
        RunState::Blocked => bail!("{} is blocked: {}", last.name, last.message),
        _ => bail!("the coordinator closed the connection: the run continues; watch it again"),
    }
    Ok(())
}

/// A digest is of a stated set of replicas.
fn digest(run: &v1::Run) -> String {
    format!("digest {} of {} replicas, {} rounds", run.digest, run.replicas_total, run.rounds_done)
}
