//! `evoxo best DIR`: the best champion of each arm of a run.

use std::{collections::BTreeSet, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::bail;
use evoxo_common::{card::Card, experiment::Registry, report::Table, text::rounded};
use serde_json::{Map, Value, json};

use crate::{
    history::Best,
    kept::Kept,
    say::{notice, stdout},
};

/// The run.
#[derive(clap::Args)]
#[command(
    after_help = "The best champion of an arm is that of the replica whose last row in history.csv is best, by the \
metric that the table names; with several objectives, this is the hypervolume. If the measurement is noisy, the best \
of several looks better than it is: compare arms with `report`, whose means have intervals.

Examples:
  evoxo best out/rosenbrock
  evoxo best out/invincible --json"
)]
pub(crate) struct Arguments {
    /// A run's directory
    directory: PathBuf,
    /// Print JSON: for each arm the replica, the metric, its value and the card
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let kept = Kept::read(registry, &arguments.directory)?;
    let (config, found) = (&kept.config, kept.best(registry)?);
    let unfinished = kept.result["state"] == "unfinished";
    if found.is_empty() && unfinished {
        bail!("the run in {} has no champions yet", arguments.directory.display());
    }
    if config.kind.is_solution.is_some() {
        let is_found = |place: usize| found.iter().any(|(best, ..)| best.arm == place);
        for (_, arm) in config.arms.iter().enumerate().filter(|(place, _)| !is_found(*place)) {
            notice(format_args!("arm {:?} has no champion that satisfies all constraints", arm.name));
        }
        if found.is_empty() {
            bail!("the run in {} has no champions to show", arguments.directory.display());
        }
    }
    if found.is_empty() {
        bail!("{} has no champions: a run of {} leaves none", arguments.directory.display(), config.kind.name);
    }
    let name = |column: usize| config.kind.columns[column].name;
    let mut out = stdout();
    if arguments.json {
        let arm = |(best, _, file): &(Best, Card, Option<PathBuf>)| {
            let Best { arm, replica, of, column, value } = best;
            let card = file.as_ref().map(|file| file.display().to_string());
            let json = json!({"replica": replica, "of": of, name(*column): value, "card": card});
            (config.arms[*arm].name.clone(), json)
        };
        writeln!(out, "{:#}", Value::from(found.iter().map(arm).collect::<Map<String, Value>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    // Arms with several objectives are ranked by another column than arms with one.
    let columns: BTreeSet<usize> = found.iter().map(|(best, ..)| best.column).collect();
    let metrics: Vec<&str> = columns.iter().map(|column| name(*column)).collect();
    let row = |(best, _, file): &(Best, Card, Option<PathBuf>)| {
        let value = |column: &usize| if *column == best.column { rounded(best.value) } else { String::new() };
        let card = file.as_ref().map_or_else(|| "not written yet".to_owned(), |file| file.display().to_string());
        let beginning = vec![config.arms[best.arm].name.clone(), best.replica.to_string()];
        [beginning, columns.iter().map(value).collect(), vec![card]].concat()
    };
    let header = [vec!["arm", "replica (from 0)"], metrics.clone(), vec!["card"]].concat();
    let so_far = if unfinished { " so far" } else { "" };
    let table = Table {
        title: format!("The best champion of each arm{so_far}, by {}", metrics.join(" or ")),
        header: header.into_iter().map(String::from).collect(),
        rows: found.iter().map(row).collect(),
    };
    writeln!(out, "{table}")?;
    if let [(_, card, _)] = found.as_slice() {
        write!(out, "{}", card.champion.show(usize::MAX).text)?;
    }
    Ok(ExitCode::SUCCESS)
}
