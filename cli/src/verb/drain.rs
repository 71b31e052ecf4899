//! `evoxo drain`: workers finish what they compute, and leave.

use std::{collections::BTreeSet, io::Write as _, process::ExitCode, time::Duration};

use evoxo_coordinator::shown::worker_to_json;
use evoxo_proto::v1;

use crate::remote::{Client, Coordinator, connect, converse, refused};

/// The interval at which `--wait` looks again.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Who is to leave.
#[derive(clap::Args)]
#[command(
    after_help = "Each of them gets nothing more, finishes what it computes, and ends with status 0. Nothing is stored: a \
worker that is started again works again, also one that a service or a batch system starts by itself.

Examples:
  evoxo drain lab7                  the worker of that name
  evoxo drain --host lab7 --wait    all on that host, before it is switched off
  evoxo drain --session 12          one of several workers of one name

`evoxo workers` has the numbers of sessions."
)]
pub(crate) struct Arguments {
    /// Names of workers, or their identities (with TLS)
    #[arg(value_name = "WORKER", required_unless_present_any = ["session", "host"])]
    workers: Vec<String>,
    /// A worker's session, for workers with the same name; can be repeated
    #[arg(long, value_name = "N")]
    session: Vec<u64>,
    /// All workers on this host: its name, or the address that they connect from
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Wait until they have left
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
            wait(&mut client, asked.iter().map(|worker| worker.session).collect()).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn print(asked: &[v1::Worker], as_json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if as_json {
        return writeln!(out, "{:#}", asked.iter().map(worker_to_json).collect::<serde_json::Value>());
    }
    for worker in asked {
        let v1::Worker { name, session, address, tasks_assigned, .. } = worker;
        writeln!(out, "{name} (session {session}, from {address}) is asked to leave; it has {tasks_assigned} tasks")?;
    }
    out.flush()
}

/// Waits until none of these sessions is left.
async fn wait(client: &mut Client, sessions: BTreeSet<u64>) -> anyhow::Result<()> {
    loop {
        let connected = client.list_workers(v1::ListWorkersRequest {}).await.map_err(refused)?.into_inner().workers;
        if !connected.iter().any(|worker| sessions.contains(&worker.session)) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}
