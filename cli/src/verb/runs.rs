//! `evoxo runs`: lists a coordinator's runs.

use std::{io::Write as _, process::ExitCode};

use evoxo_proto::shown::state;
use evoxo_proto::v1::{self, RunState};

use super::which::Which;
use crate::{
    remote::{Coordinator, connect, converse, refused, run_to_json},
    say::{program, stdout},
};

/// The runs, the coordinator and the output.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print the runs as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runs = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let runs = client.list(v1::ListRequest {}).await.map_err(refused)?.into_inner().runs;
        arguments.which.of(runs)
    })?;
    let mut out = stdout();
    if arguments.json {
        writeln!(out, "{:#}", runs.iter().map(run_to_json).collect::<serde_json::Value>())?;
    } else if runs.is_empty() && !arguments.which.is_all() {
        writeln!(out, "no runs have this state, or this owner")?;
    } else if runs.is_empty() {
        writeln!(out, "no runs: `{} submit FILE` starts one", program())?;
    } else {
        writeln!(
            out,
            "{:<24} {:<12} {:<10} {:>13} {:>17}  owner",
            "name", "experiment", "state", "replicas", "rounds"
        )?;
        for run in &runs {
            let replicas = format!("{} of {}", run.replicas_finished, run.replicas_total);
            let rounds = format!("{} of {}", run.rounds_done, run.rounds_total);
            let (name, kind, state, owner) = (&run.name, &run.kind, state(run), &run.submitter);
            writeln!(out, "{name:<24} {kind:<12} {state:<10} {replicas:>13} {rounds:>17}  {owner}")?;
            if !run.message.is_empty() {
                writeln!(out, "  {}", run.message)?;
            } else if run.state() == RunState::Running && run.workers == 0 {
                writeln!(
                    out,
                    "  no worker computes {:?}: `{} workers` lists the connected workers",
                    run.kind,
                    program()
                )?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
