//! `evoxo tasks`: lists the tasks of a run that workers compute now.

use std::{io::Write as _, process::ExitCode};

use evoxo_common::text::counted;
use evoxo_proto::{shown::batch_to_json, v1};
use serde_json::{Value, json};

use crate::{
    progress::short_time,
    remote::{Coordinator, connect, converse, refused},
    say::{program, stdout},
    table::{Column, lines, terminal_width},
};

/// The run, the coordinator and the output.
#[derive(clap::Args)]
#[command(after_help = "A line is what one slot of a worker has: the task whose turn it is, and how many more were \
sent with it. The tasks without a result for longest come first.

Examples:
  evoxo tasks rosen                 which host has which task, and since when
  evoxo tasks rosen --json --limit 1000")]
pub(crate) struct Arguments {
    /// Name of the run
    #[arg(value_name = "RUN")]
    name: String,
    /// The most lines, up to 1000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const COLUMNS: [Column; 8] = [
    Column::figure("for", 0),
    Column::text("worker", 0),
    Column::text("host", 2),
    Column::text("arm", 3),
    Column::figure("replica", 0),
    Column::figure("round", 1),
    Column::text("task", 1),
    Column::text("remarks", 0),
];

/// The row of a batch.
fn row(batch: &v1::AssignedBatch) -> [String; 8] {
    let worker = match batch.session {
        0 => "the coordinator itself".to_owned(),
        session => format!("{} ({session})", batch.worker),
    };
    let host = if batch.host.is_empty() { &batch.address } else { &batch.host };
    // People count the round that is being computed, from 1.
    let round = batch.round.map(|done| (done + 1).to_string()).unwrap_or_default();
    let replica = batch.round.map(|_| batch.replica.to_string()).unwrap_or_default();
    let task = format!("{} {}", batch.work, &batch.task.get(..8).unwrap_or_default());
    let age = short_time(batch.age_ms as f64 / 1000.0);
    [age, worker, host.clone(), batch.arm.clone(), replica, round, task, remarks(batch)]
}

/// What is special about a batch.
fn remarks(batch: &v1::AssignedBatch) -> String {
    let v1::AssignedBatch { copy, copies, more, failures, losses, .. } = *batch;
    let mut remarks = Vec::new();
    if batch.queued {
        remarks.push("waits for a free slot".to_owned());
    }
    if let Some(expected_ms) = batch.expected_ms.filter(|expected| !batch.queued && batch.age_ms > 2 * expected + 1000)
    {
        remarks.push(format!("expected to take {}", short_time(expected_ms as f64 / 1000.0)));
    }
    match (copy, copies) {
        (0, _) => remarks.push("no longer needed".to_owned()),
        (_, 2..) => remarks.push(format!("copy {copy} of {copies}")),
        _ => {}
    }
    if failures > 0 {
        remarks.push(format!("failed {} before", times(failures)));
    }
    if losses > 0 {
        remarks.push(format!("lost with its worker {} before", times(losses)));
    }
    if more > 0 {
        remarks.push(format!("{more} more behind it"));
    }
    remarks.join(", ")
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let v1::ListTasksResponse { batches, left_out } = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let request = v1::ListTasksRequest { name: arguments.name.clone(), limit: arguments.limit };
        Ok(client.list_tasks(request).await.map_err(refused)?.into_inner())
    })?;
    let mut out = stdout();
    if arguments.json {
        let json = json!({"batches": batches.iter().map(batch_to_json).collect::<Value>(), "left_out": left_out});
        writeln!(out, "{json:#}")?;
    } else if batches.is_empty() {
        let (name, program) = (&arguments.name, program());
        writeln!(out, "no worker has a task of {name} now: `{program} runs {name}` shows its state")?;
    } else {
        let rows: Vec<_> = batches.iter().map(row).collect();
        lines(&COLUMNS, &rows, terminal_width()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        if left_out > 0 {
            writeln!(out, "and {} more: give a higher --limit, or --json", counted(left_out as usize, "line"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_host_has_a_task_and_since_when() {
        let batch = v1::AssignedBatch {
            task: "0123456789abcdef".into(),
            work: "dispatch".into(),
            arm: "default".into(),
            replica: 3,
            round: Some(11),
            worker: "lab7".into(),
            session: 12,
            host: "lab7.example".into(),
            age_ms: 125_000,
            expected_ms: Some(2000),
            copy: 1,
            copies: 2,
            failures: 1,
            losses: 2,
            more: 4,
            ..v1::AssignedBatch::default()
        };
        let remarks = "expected to take 2.0 s, copy 1 of 2, failed once before, lost with its worker 2 times before, 4 more \
                       behind it";
        assert_eq!(
            row(&batch),
            ["2 m", "lab7 (12)", "lab7.example", "default", "3", "12", "dispatch 01234567", remarks]
        );
        let late =
            v1::AssignedBatch { round: None, copy: 0, copies: 0, failures: 0, losses: 0, more: 0, ..batch.clone() };
        assert_eq!((row(&late)[5].as_str(), row(&late)[7].as_str()), ("", "expected to take 2.0 s, no longer needed"));
        let own = v1::AssignedBatch { session: 0, queued: true, copies: 1, expected_ms: None, ..late };
        assert_eq!(row(&own)[1], "the coordinator itself");
        assert!(row(&own)[7].starts_with("waits for a free slot"));
    }
}
