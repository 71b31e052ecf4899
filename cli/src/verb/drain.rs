//! `evoxo drain`: lets workers finish their tasks and leave, or stay without tasks.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use evoxo_proto::{
    shown::{cordon_to_json, worker_to_json},
    v1,
};

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

With --cordon the worker stays, without tasks, until --uncordon names it in the same way: also after it, or the \
coordinator, was restarted. It need not be connected.

Examples:
  evoxo drain lab7                  the worker with this name
  evoxo drain --host lab7 --wait    all on this host, before it is switched off
  evoxo drain --session 12          one of several workers with one name
  evoxo drain --host lab7 --cordon  no tasks there until it is repaired
  evoxo drain --host lab7 --uncordon

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
    /// Give them no tasks until --uncordon, and let them stay; this lasts over restarts
    #[arg(long, conflicts_with_all = ["session", "uncordon"])]
    cordon: bool,
    /// Give them tasks again
    #[arg(long, conflicts_with_all = ["session", "wait"])]
    uncordon: bool,
    /// Wait until the workers have left, or with --cordon have no more tasks
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
        if arguments.cordon || arguments.uncordon {
            return cordon(&mut client, arguments).await;
        }
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

/// Sets or ends cordons.
async fn cordon(client: &mut Client, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let hosts = arguments.host.iter().cloned().collect();
    let request = v1::CordonWorkersRequest { workers: arguments.workers.clone(), hosts, end: arguments.uncordon };
    let done = client.cordon_workers(request).await.map_err(refused)?.into_inner();
    let mut out = crate::say::stdout();
    if arguments.json {
        let workers: serde_json::Value = done.workers.iter().map(worker_to_json).collect();
        let cordons: serde_json::Value = done.cordons.iter().map(cordon_to_json).collect();
        writeln!(out, "{:#}", serde_json::json!({"cordons": cordons, "workers": workers}))?;
    } else {
        cordoned(&done, arguments.uncordon).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    out.flush()?;
    if arguments.wait {
        let sessions: BTreeSet<u64> = done.workers.iter().map(|worker| worker.session).collect();
        loop {
            let now = client.list_workers(v1::ListWorkersRequest {}).await.map_err(refused)?.into_inner().workers;
            if !now.iter().any(|worker| sessions.contains(&worker.session) && worker.tasks_assigned > 0) {
                break;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was done, in sentences.
fn cordoned(done: &v1::CordonWorkersResponse, ended: bool) -> Vec<String> {
    let what = |cordon: &v1::Cordon| match cordon.host.as_str() {
        "" => format!("worker {}", cordon.worker),
        host => format!("host {host}"),
    };
    let mut lines: Vec<String> = done
        .cordons
        .iter()
        .map(|cordon| match ended {
            false => format!("{}: no more tasks from now on, until --uncordon", what(cordon)),
            true => format!("{}: the cordon of {} has ended", what(cordon), cordon.by),
        })
        .collect();
    for v1::Worker { name, session, address, tasks_assigned, cordon, .. } in &done.workers {
        lines.push(match (ended, cordon) {
            (true, Some(other)) => {
                format!("  {name} (session {session}, from {address}) still gets none: {} is cordoned too", what(other))
            }
            (true, None) => format!("  {name} (session {session}, from {address}) gets tasks again"),
            (false, _) => {
                format!("  {name} (session {session}, from {address}) has {} to finish", tasks(*tasks_assigned))
            }
        });
    }
    if done.workers.is_empty() {
        lines.push("  no such worker is connected now".to_owned());
    }
    lines
}

/// A number of tasks, in words.
fn tasks(count: u32) -> String {
    match count {
        0 => "no task".into(),
        1 => "1 task".into(),
        more => format!("{more} tasks"),
    }
}

fn print(asked: &[v1::Worker], as_json: bool) -> std::io::Result<()> {
    let mut out = crate::say::stdout();
    if as_json {
        return writeln!(out, "{:#}", asked.iter().map(worker_to_json).collect::<serde_json::Value>());
    }
    for worker in asked {
        let v1::Worker { name, session, address, tasks_assigned, .. } = worker;
        let tasks = tasks(*tasks_assigned);
        writeln!(out, "{name} (session {session}, from {address}) is asked to leave; it has {tasks}")?;
    }
    out.flush()
}

/// Waits until these workers have left. A worker whose connection breaks has not left: it reconnects in another session,
/// finishes its tasks and leaves then.
async fn wait(client: &mut Client, mut asked: Vec<v1::Worker>) -> anyhow::Result<()> {
    let mut absent_since = None;
    loop {
        let v1::ListWorkersResponse { workers, lost, .. } =
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
    fn a_cordon_is_said_with_the_workers_that_it_covers() {
        let host = v1::Cordon { host: "lab7".into(), by: "0123456789ab".into(), since: 1, ..v1::Cordon::default() };
        let worker = v1::Worker { name: "w".into(), session: 3, tasks_assigned: 2, ..v1::Worker::default() };
        let done = v1::CordonWorkersResponse { cordons: vec![host.clone()], workers: vec![worker.clone()] };
        assert_eq!(
            cordoned(&done, false),
            ["host lab7: no more tasks from now on, until --uncordon", "  w (session 3, from ) has 2 tasks to finish"]
        );
        let idle = v1::Worker { tasks_assigned: 0, ..worker.clone() };
        let lines = cordoned(&v1::CordonWorkersResponse { workers: vec![idle], ..done.clone() }, false);
        assert_eq!(lines[1], "  w (session 3, from ) has no task to finish");
        let other = v1::Cordon { worker: "w".into(), ..v1::Cordon::default() };
        let both = v1::Worker { cordon: Some(other), ..worker };
        let lines = cordoned(&v1::CordonWorkersResponse { workers: vec![both], ..done.clone() }, true);
        assert_eq!(lines[0], "host lab7: the cordon of 0123456789ab has ended");
        assert_eq!(lines[1], "  w (session 3, from ) still gets none: worker w is cordoned too");
        let nobody = cordoned(&v1::CordonWorkersResponse { workers: Vec::new(), ..done }, false);
        assert_eq!(nobody[1], "  no such worker is connected now");
    }

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
