//! `evoxo drain`: lets workers finish their tasks and leave.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use evoxo_proto::{shown::worker_to_json, v1};

use crate::remote::{Client, Coordinator, connect, converse, refused};

/// `--wait` looks at the workers this often.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A worker whose certificate has expired reconnects with the next certificate within this time.
const AWAY_MAX: Duration = Duration::from_secs(2);
/// How long `--wait` waits for a worker that was lost.
const LOST_MAX: Duration = Duration::from_secs(60);

/// The workers that are to leave.
#[derive(clap::Args)]
#[command(after_help = "A drained worker gets no new tasks, finishes the tasks that it has, and ends with status 0. \
Nothing is stored: a worker that is started again gets tasks again, even if a service or a batch system starts it \
automatically.

Examples:
  evoxo drain lab7                  the worker with this name
  evoxo drain --host lab7 --wait    all on this host, before it is switched off
  evoxo drain --session 12          one of several workers with one name

`evoxo workers` lists the session numbers.")]
pub(crate) struct Arguments {
    /// Names of workers, or their identities (with TLS)
    #[arg(value_name = "WORKER", required_unless_present_any = ["session", "host"])]
    workers: Vec<String>,
    /// The session of a worker, if several workers have the same name; may be repeated
    #[arg(long, value_name = "N")]
    session: Vec<u64>,
    /// All workers on this host, given by its name or by the address from which they connect
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Wait until the workers have left
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print the workers as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let request = v1::DrainWorkersRequest {
            names: arguments.workers.clone(),
            sessions: arguments.session.clone(),
            host: arguments.host.clone().unwrap_or_default(),
        };
        let asked = client.drain_workers(request).await.map_err(refused)?.into_inner().workers;
        print(&asked, arguments.json)?;
        if arguments.wait {
            wait(&mut client, asked).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn print(asked: &[v1::Worker], as_json: bool) -> std::io::Result<()> {
    let mut out = crate::say::stdout();
    if as_json {
        return writeln!(out, "{:#}", asked.iter().map(worker_to_json).collect::<serde_json::Value>());
    }
    for worker in asked {
        let v1::Worker { name, session, address, tasks_assigned, .. } = worker;
        writeln!(out, "{name} (session {session}, from {address}) is asked to leave; it has {tasks_assigned} tasks")?;
    }
    out.flush()
}

/// Waits until these workers have left. A worker whose connection breaks has not left: it reconnects in another session,
/// finishes its tasks and leaves then.
async fn wait(client: &mut Client, mut asked: Vec<v1::Worker>) -> anyhow::Result<()> {
    let mut absent_since = None;
    loop {
        let v1::ListWorkersResponse { workers, lost } =
            client.list_workers(v1::ListWorkersRequest {}).await.map_err(refused)?.into_inner();
        let now = Instant::now();
        // A lost worker reconnects; a worker of the same name that has left does not. So the lost ones are matched first.
        asked.sort_by_key(|worker| !lost.iter().any(|lost| lost.session == worker.session));
        if follow(&mut asked, &workers) {
            absent_since = None;
        } else {
            let absent = now - *absent_since.get_or_insert(now);
            let lost = lost.iter().find(|lost| asked.iter().any(|worker| worker.session == lost.session));
            match lost {
                None if absent >= AWAY_MAX => return Ok(()),
                Some(v1::LostWorker { name, session, host, reason, .. }) if absent >= LOST_MAX => bail!(
                    "worker {name} (session {session}) was lost before it had finished, and did not come back: {reason}; \
                    check on its host {host} whether it still computes"
                ),
                _ => {}
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Whether one of these workers is connected. A worker that has reconnected gets the number of its new session.
fn follow(asked: &mut [v1::Worker], connected: &[v1::Worker]) -> bool {
    let mut any = false;
    let mut sessions: BTreeSet<u64> = asked.iter().map(|worker| worker.session).collect();
    for worker in asked {
        let is_same = |other: &&v1::Worker| {
            other.draining
                && !sessions.contains(&other.session)
                && (&other.name, &other.host, &other.identity) == (&worker.name, &worker.host, &worker.identity)
        };
        if connected.iter().any(|other| other.session == worker.session) {
            any = true;
        } else if let Some(again) = connected.iter().find(is_same) {
            any = true;
            worker.session = again.session;
            sessions.insert(again.session);
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_reconnect_have_not_left() {
        let worker = |name: &str, session, draining| v1::Worker {
            name: name.into(),
            session,
            draining,
            ..v1::Worker::default()
        };
        let mut asked = [worker("w", 1, true), worker("w", 2, true)];
        assert!(follow(&mut asked, &[worker("w", 2, true), worker("w", 3, false)]));
        assert!(!follow(&mut asked, &[worker("w", 3, false), worker("v", 4, true)]), "others");
        // Both workers have reconnected.
        assert!(follow(&mut asked, &[worker("w", 5, true), worker("w", 6, true)]));
        assert_eq!(asked.each_ref().map(|worker| worker.session), [5, 6]);
        assert!(follow(&mut asked, &[worker("w", 6, true)]));
        assert!(!follow(&mut asked, &[]));
    }
}
