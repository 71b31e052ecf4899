//! `evoxo runs`: lists a coordinator's runs.

use std::{
    io::Write as _,
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use evoxo_proto::shown::state;
use evoxo_proto::v1::RunState;

use super::which::Which;
use crate::{
    remote::{Coordinator, connect, converse, run_to_json},
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

/// A time in seconds since 1970, to the minute, in UTC; empty if it is not known.
pub(crate) fn minute(since_1970_s: u64) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(since_1970_s)).to_string();
    if since_1970_s == 0 { String::new() } else { format!("{}Z", &time[..16]) }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runs = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        arguments.which.runs(&mut client).await
    })?;
    let mut out = stdout();
    if arguments.json {
        writeln!(out, "{:#}", runs.iter().map(run_to_json).collect::<serde_json::Value>())?;
    } else if runs.is_empty() && !arguments.which.is_all() {
        writeln!(out, "no runs have this state, owner and age")?;
    } else if runs.is_empty() {
        writeln!(out, "no runs: `{} submit FILE` starts one", program())?;
    } else {
        writeln!(
            out,
            "{:<24} {:<12} {:<10} {:>13} {:>17}  {:<17} owner",
            "name", "experiment", "state", "replicas", "rounds", "submitted"
        )?;
        for run in &runs {
            let replicas = format!("{} of {}", run.replicas_finished, run.replicas_total);
            let rounds = format!("{} of {}", run.rounds_done, run.rounds_total);
            let (name, kind, state, owner) = (&run.name, &run.kind, state(run), &run.submitter);
            let when = minute(run.submitted);
            writeln!(out, "{name:<24} {kind:<12} {state:<10} {replicas:>13} {rounds:>17}  {when:<17} {owner}")?;
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
