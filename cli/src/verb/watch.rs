//! `evoxo watch NAME`.

use std::{
    io::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail};
use evoxo_process::Addresses;
use evoxo_proto::v1::{self, RunState};

use crate::{
    progress::Progress,
    remote::{Coordinator, connect, converse, is_lost, refused, run_to_json},
    say::{program, stdout},
};

/// How long a run that was followed may be out of sight: a standby takes over meanwhile, or the coordinator starts again.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for then.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

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

/// Whether a run is in sight.
#[derive(Debug, PartialEq, Eq)]
enum Sight {
    /// It was never seen: what does not answer at first will not do so later.
    Never,
    Seen,
    /// Its coordinator is gone since then.
    LostAt(Instant),
}

impl Sight {
    /// The coordinator is gone now, or still: whether it is looked for, and whether that is news.
    fn lose(&mut self, now: Instant) -> (bool, bool) {
        match *self {
            Self::Never => (false, false),
            Self::Seen => {
                *self = Self::LostAt(now);
                (true, true)
            }
            Self::LostAt(since) => (now.saturating_duration_since(since) < AWAY_MAX, false),
        }
    }
}

/// Follows the run to its end. If the coordinator is gone meanwhile, whoever leads then is asked.
async fn follow(arguments: &Arguments, progress: &mut Progress) -> anyhow::Result<v1::Run> {
    let (mut sight, mut said) = (Sight::Never, String::new());
    loop {
        let show = |run: &v1::Run| {
            sight = Sight::Seen;
            if !arguments.json {
                progress.show(run);
                return Ok(());
            }
            // Another coordinator says first how the run is, which may be no change.
            let line = run_to_json(run).to_string();
            if line != said {
                writeln!(stdout(), "{line}")?;
                said = line;
            }
            Ok(())
        };
        let why = match watch(arguments, show).await? {
            Watched::Ended(run) => return Ok(*run),
            Watched::Lost(why) => why,
        };
        let name = &arguments.name;
        match sight.lose(Instant::now()) {
            (true, true) => progress.say(&format!("note: {why:#}: {name} is looked for again, for up to a minute")),
            (true, false) => {}
            (false, _) if sight == Sight::Never => return Err(why),
            (false, _) => bail!("{name} is out of sight for a minute, and may go on: watch it again ({why:#})"),
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// How following a run on one connection ended.
enum Watched {
    Ended(Box<v1::Run>),
    /// The coordinator is gone, for this reason.
    Lost(anyhow::Error),
}

/// Shows a run's changes, until it ends or the coordinator is gone.
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
    match watched.await {
        Ok(watched) => watched,
        Err(status) if is_lost(&status) => Ok(Watched::Lost(refused(status))),
        Err(status) => Err(refused(status)),
    }
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
        _ => bail!("{} is in a state that this program does not know: use the coordinator's version of it", last.name),
    }
    Ok(())
}

/// A digest is of a stated set of replicas.
fn digest(run: &v1::Run) -> String {
    format!("digest {} of {} replicas, {} rounds", run.digest, run.replicas_total, run.rounds_done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_seen_is_looked_for_for_a_minute_each_time_it_is_lost() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(Sight::Never.lose(start), (false, false));
        let mut sight = Sight::Seen;
        // Nothing changed for long before.
        assert_eq!(
            [1000, 1001, 1059].map(|second| sight.lose(at(second))),
            [(true, true), (true, false), (true, false)]
        );
        assert_eq!(sight.lose(at(1060)), (false, false));
        sight = Sight::Seen;
        assert_eq!([1061, 1120].map(|second| sight.lose(at(second))), [(true, true), (true, false)]);
    }
}
