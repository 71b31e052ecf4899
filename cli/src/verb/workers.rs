//! `evoxo workers`.

use std::{collections::BTreeSet, io::Write as _, process::ExitCode};

use evoxo_coordinator::shown::worker_to_json;
use evoxo_proto::v1;

use crate::{
    remote::{Coordinator, connect, converse, refused},
    say::program,
};

/// The coordinator and the output.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workers = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        Ok(client.list_workers(v1::ListWorkersRequest {}).await.map_err(refused)?.into_inner().workers)
    })?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{:#}", workers.iter().map(worker_to_json).collect::<serde_json::Value>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if workers.is_empty() {
        let (program, address) = (program(), &arguments.coordinator.address);
        writeln!(out, "no workers: start some with `{program} worker --coordinator {address}`")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "{:<20} {:<15} {:>5} {:>6} {:>10} {:>7} {:>9}  computes",
        "name", "address", "slots", "tasks", "tasks done", "heard", "connected"
    )?;
    let all: BTreeSet<&String> = workers.iter().flat_map(|worker| &worker.kinds).collect();
    for worker in &workers {
        let heard = format!("{:.1} s", worker.silent_ms as f64 / 1000.0);
        let connected = format!("{} s", worker.connected_ms / 1000);
        let kinds = match worker.kinds.len() {
            0 => "nothing".to_owned(),
            count if count == all.len() => format!("all {count} kinds"),
            _ => worker.kinds.join(", "),
        };
        let leaving = if worker.draining { "; leaving" } else { "" };
        writeln!(
            out,
            "{:<20} {:<15} {:>5} {:>6} {:>10} {heard:>7} {connected:>9}  {kinds}{leaving}",
            worker.name, worker.address, worker.slots, worker.tasks_assigned, worker.tasks_done
        )?;
        if !worker.programs.is_empty() {
            writeln!(out, "  programs: {}", worker.programs.join(", "))?;
        }
        if !worker.kinds_refused.is_empty() {
            let refused = worker.kinds_refused.join(", ");
            writeln!(out, "  other results than the coordinator's for {refused}: its build is another")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
