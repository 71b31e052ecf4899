//! `evoxo report FILE`, or the directory that it is in: tables and plots of a run again, from its `result.json` alone.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::anyhow;
use evoxo_common::experiment::{Config, Registry, screen_files};
use serde_json::Value;

use crate::{
    file, json, plots,
    results::{add_report, digest_text, report_text},
};

/// Which result.
#[derive(clap::Args)]
#[command(after_help = "A result.json has all that is told in it, but for dispatch: it is enough to keep and to share.

Examples:
  evoxo report out/td3d-paper
  evoxo report docs/reproduction/td3d/result-nearest.json --plots plots")]
pub(crate) struct Arguments {
    /// A run's result.json, or the directory that it is in
    file: PathBuf,
    /// Print it as JSON: the result, with what is told of it made anew
    #[arg(long)]
    json: bool,
    /// Also write the plots, as SVG, into this directory
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
}

/// The longest result that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let path = match arguments.file.is_dir() {
        true => arguments.file.join("result.json"),
        false => arguments.file.clone(),
    };
    let name = path.display();
    let bytes = file::read(&path, FILE_BYTES_MAX, "")?;
    let mut result: Value = serde_json::from_slice(&bytes).map_err(|error| anyhow!("{name} is not JSON: {error}"))?;
    let report = registry.report_of_result(&result).map_err(|why| anyhow!("{name}: {why}"))?;
    if let Some(directory) = &arguments.plots {
        let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{name}: {why}"))?;
        let of_screen = screen_files(&config, &report.json).pictures;
        plots::write(directory, plots::pictures(&report).chain(of_screen))?;
    }
    let mut out = std::io::stdout().lock();
    if arguments.json {
        add_report(&mut result, &report);
        write!(out, "{}", json::text(&result))?;
    } else {
        writeln!(out, "{}", report_text(&report))?;
        writeln!(out, "{}", digest_text(&result))?;
    }
    Ok(ExitCode::SUCCESS)
}
