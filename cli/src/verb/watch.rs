//! `evoxo watch NAME`: follows a run until it ends.

use std::{io::Write as _, process::ExitCode};

use anyhow::{anyhow, bail};
use evoxo_process::Addresses;
use evoxo_proto::v1::{self, RunState};

use crate::{
    progress::Progress,
    remote::{Coordinator, connect, converse, run_to_json},
    say::{program, stdout},
    sight::{Sight, or_lost},
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
    let last = converse(follow(arguments, &mut progress));
    progress.end();
    verdict(&last?, &arguments.coordinator.address, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Follows the run to its end. If the coordinator is lost meanwhile, the coordinator that leads then is asked.
async fn follow(arguments: &Arguments, progress: &mut Progress) -> anyhow::Result<v1::Run> {
    let (mut sight, mut said) = (Sight::Never, String::new());
    loop {
        let show = |run: &v1::Run| {
            // Each connection begins with the run's present state, which may be unchanged.
            let line = run_to_json(run).to_string();
            let changed = line != said;
            if changed {
                (sight, said) = (Sight::Seen, line);
            }
            match arguments.json {
                true if changed => writeln!(stdout(), "{said}")?,
                true => {}
                false => progress.show(run),
            }
            Ok(())
        };
        let why = match watch(arguments, show).await? {
            Watched::Ended(run) => return Ok(*run),
            Watched::Lost(why) => why,
        };
        sight.look_again(&arguments.name, why, |note| progress.say(&format!("note: {note}"))).await?;
    }
}

/// The reason why following a run on one connection ended.
enum Watched {
    Ended(Box<v1::Run>),
    /// The coordinator was lost, for this reason.
    Lost(anyhow::Error),
}

/// Shows a run's changes, until the run ends or the coordinator is lost.
async fn watch(arguments: &Arguments, mut show: impl FnMut(&v1::Run) -> anyhow::Result<()>) -> anyhow::Result<Watched> {
    let mut client = match connect(&arguments.coordinator).await {
        Ok(client) => client,
        Err(why) => return Ok(Watched::Lost(why)),
    };
    let request = v1::WatchRequest { name: arguments.name.clone() };
    let watched = async {
        let mut changes = client.watch(request).await?.into_inner();
        while let Some(run) = changes.message().await? {
            if let Err(why) = show(&run) {
                return Ok(Err(why));
            }
            if !matches!(run.state(), RunState::Running | RunState::Paused) {
                return Ok(Ok(Watched::Ended(Box::new(run))));
            }
        }
        Ok(Ok(Watched::Lost(anyhow!("the coordinator closed the connection"))))
    };
    match or_lost(watched.await)? {
        Ok(watched) => watched,
        Err(why) => Ok(Watched::Lost(why)),
    }
}

/// Prints how a run ended; returns an error if it is not finished.
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
        _ => bail!("{} is in a state that this program does not know: use the coordinator's version of it", last.name),
    }
    Ok(())
}

/// The digest, with the number of replicas and rounds that it covers.
fn digest(run: &v1::Run) -> String {
    format!("digest {} of {} replicas, {} rounds", run.digest, run.replicas_total, run.rounds_done)
}
