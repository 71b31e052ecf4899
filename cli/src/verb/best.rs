//! `evoxo best DIR`: the best champion of each arm of a run.

use std::{cmp::Ordering, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{anyhow, bail};
use evoxo_common::{
    experiment::{Config, Registry, champion_stem},
    report::Table,
};
use serde_json::{Map, Value, json};

use crate::{champion, file};

/// Which run.
#[derive(clap::Args)]
#[command(
    after_help = "The best is that of the replica whose last row in history.csv is best: by the primary metric, which the
table names. Where that is measured with chance in it, the best of several overstates itself: compare arms with
`report`, whose means have intervals.

Examples:
  evoxo best out/rosenbrock
  evoxo best out/invincible --json"
)]
pub(crate) struct Arguments {
    /// A run's directory
    directory: PathBuf,
    /// Print it as JSON: for each arm the replica, the metric, its value and the card
    #[arg(long)]
    json: bool,
}

/// The longest files that are read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;

/// The best replica of an arm.
struct Best {
    arm: String,
    replica: u32,
    /// Replicas that have a row.
    of: usize,
    value: f64,
    card: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let path = arguments.directory.join("result.json");
    let result: Value = serde_json::from_slice(&file::read(&path, FILE_BYTES_MAX, "")?)
        .map_err(|error| anyhow!("{} is not JSON: {error}", path.display()))?;
    let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    let found = best(arguments, &config)?;
    if found.is_empty() {
        bail!("{} has no champions: a run of {} leaves none", arguments.directory.display(), config.kind.name);
    }
    let metric = config.kind.columns[config.kind.primary_metric].name;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let arm = |best: &Best| {
            let Best { arm, replica, of, value, card } = best;
            (arm.clone(), json!({"replica": replica, "of": of, metric: value, "card": card.display().to_string()}))
        };
        writeln!(out, "{:#}", Value::from(found.iter().map(arm).collect::<Map<String, Value>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |Best { arm, replica, of, value, card }: &Best| {
        vec![arm.clone(), format!("{replica} of {of}"), format!("{value:?}"), card.display().to_string()]
    };
    let table = Table {
        title: format!("The best champion of each arm, by {metric}"),
        header: ["arm", "replica", metric, "card"].map(String::from).to_vec(),
        rows: found.iter().map(row).collect(),
    };
    writeln!(out, "{table}")?;
    if let [Best { card, .. }] = found.as_slice() {
        write!(out, "{}", champion::read(registry, card)?.champion.show(usize::MAX).text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The best replica of each arm that has champions.
fn best(arguments: &Arguments, config: &Config) -> anyhow::Result<Vec<Best>> {
    let path = arguments.directory.join("history.csv");
    let wrong = || anyhow!("{} is not the history of this run: `fetch` writes it again", path.display());
    let bytes = file::read(&path, FILE_BYTES_MAX, "")?;
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let mut last: Vec<Vec<(u32, Vec<f64>)>> = vec![Vec::new(); config.arms.len()];
    for record in reader.records() {
        let record = record.map_err(|_| wrong())?;
        let mut fields = record.iter();
        let arm =
            fields.next().and_then(|name| config.arms.iter().position(|arm| arm.name == name)).ok_or_else(wrong)?;
        let replica: u32 = fields.next().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        let row: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        if row.len() != config.kind.columns.len() {
            return Err(wrong());
        }
        match last[arm].last_mut() {
            Some((of, there)) if *of == replica => *there = row,
            _ => last[arm].push((replica, row)),
        }
    }
    let mut found = Vec::new();
    for (arm, replicas) in last.iter().enumerate() {
        let better = |one: &(u32, Vec<f64>), other: &(u32, Vec<f64>)| compare(config, arm, &one.1, &other.1);
        // Of equals the first.
        let Some((replica, row)) = replicas.iter().rev().min_by(|one, other| better(one, other)) else { continue };
        let card = arguments.directory.join("champions").join(champion_stem(config, arm, *replica) + ".json");
        if card.exists() {
            let (arm, value) = (config.arms[arm].name.clone(), row[config.kind.primary_metric]);
            found.push(Best { arm, replica: *replica, of: replicas.len(), value, card });
        }
    }
    Ok(found)
}

/// Less is better.
fn compare(config: &Config, arm: usize, one: &[f64], other: &[f64]) -> Ordering {
    match config.kind.compare {
        Some(compare) => compare(&config.arms[arm].settings, one, other),
        None => other[config.kind.primary_metric].total_cmp(&one[config.kind.primary_metric]),
    }
}
