//! `evoxo report FILE`, or the directory that it is in: tables and plots of a run again, from its `result.json` alone.

use std::{fs, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, anyhow};
use evoxo_common::{
    experiment::{Config, Extra, Registry, screen_files},
    plot,
};
use serde_json::Value;

use crate::{
    file, json,
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
        let unwritable =
            || format!("cannot write the plots into {}: choose another directory with --plots", directory.display());
        fs::create_dir_all(directory).with_context(unwritable)?;
        let figures = report.figures.iter().map(|figure| (figure.name.clone(), plot::svg(figure)));
        let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{name}: {why}"))?;
        let of_screen = screen_files(&config, &report.json).into_iter().filter_map(|extra| match extra {
            Extra::Picture(name, svg) => Some((name, svg)),
            Extra::Table(..) => None,
        });
        for (name, svg) in figures.chain(of_screen) {
            fs::write(directory.join(format!("{name}.svg")), svg).with_context(unwritable)?;
        }
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
