//! `evoxo best DIR`: the best champion of each arm of a run.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{anyhow, bail};
use evoxo_common::{
    experiment::{Config, Registry},
    report::Table,
};
use serde_json::{Map, Value, json};

use crate::{
    champion, file,
    history::{Best, LastRows},
};

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

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let path = arguments.directory.join("result.json");
    let result: Value = serde_json::from_slice(&file::read(&path, FILE_BYTES_MAX, "")?)
        .map_err(|error| anyhow!("{} is not JSON: {error}", path.display()))?;
    let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    let rows = LastRows::read(&arguments.directory, &config)?;
    let with_card = |best: Best| (best.card(&arguments.directory, &config), best);
    let found: Vec<(PathBuf, Best)> = rows.best(&config).map(with_card).filter(|(card, _)| card.exists()).collect();
    if found.is_empty() {
        bail!("{} has no champions: a run of {} leaves none", arguments.directory.display(), config.kind.name);
    }
    let metric = config.kind.columns[config.kind.primary_metric].name;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let arm = |(card, best): &(PathBuf, Best)| {
            let Best { arm, replica, of, value } = best;
            let json = json!({"replica": replica, "of": of, metric: value, "card": card.display().to_string()});
            (config.arms[*arm].name.clone(), json)
        };
        writeln!(out, "{:#}", Value::from(found.iter().map(arm).collect::<Map<String, Value>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |(card, Best { arm, replica, of, value }): &(PathBuf, Best)| {
        let arm = config.arms[*arm].name.clone();
        vec![arm, format!("{replica} of {of}"), format!("{value:?}"), card.display().to_string()]
    };
    let table = Table {
        title: format!("The best champion of each arm, by {metric}"),
        header: ["arm", "replica", metric, "card"].map(String::from).to_vec(),
        rows: found.iter().map(row).collect(),
    };
    writeln!(out, "{table}")?;
    if let [(card, _)] = found.as_slice() {
        write!(out, "{}", champion::read(registry, card)?.champion.show(usize::MAX).text)?;
    }
    Ok(ExitCode::SUCCESS)
}
