//! `evoxo report FILE`, or the directory of the file: the tables and plots of a run again, from its `result.json` alone.

use std::{fs, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use evoxo_common::{
    conclusion::extent_alone,
    experiment::{Registry, screen_files},
};

use crate::{
    json,
    kept::Kept,
    plots,
    results::{add_report, report_text},
    say::{digest_text, stdout, usage},
    tensorboard,
};

/// The result to report.
#[derive(clap::Args)]
#[command(
    after_help = "A result.json contains everything in the report, except for runs of dispatch: this file alone is \
enough to keep and to share.

Examples:
  evoxo report out/td3d-paper
  evoxo report docs/reproduction/td3d/result-nearest.json --plots plots
  evoxo report out/invincible --html invincible.html
  evoxo report out/invincible --tensorboard events
      And then: tensorboard --logdir events"
)]
pub(crate) struct Arguments {
    /// A run's result.json, or the directory that contains it
    file: PathBuf,
    /// Print JSON: the result, with the report made again by this build
    #[arg(long)]
    json: bool,
    /// Also write the plots, as SVG, into this directory
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
    /// Also write one HTML file to send to others: conclusion, tables, plots, settings and how to compute the run again; from
    /// a run's directory also the best champions. The file needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the history as event files for TensorBoard, in one directory per replica below this one. Needs the run's
    /// directory
    #[arg(long, value_name = "DIRECTORY")]
    tensorboard: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    // No other file that `evoxo run` writes ends in .html, so none of them can be overwritten.
    if let Some(html) = arguments.html.as_ref().filter(|html| html.extension().is_none_or(|ending| ending != "html")) {
        return Err(usage(format_args!("{} does not end in .html: give a file that does with --html", html.display())));
    }
    let kept = Kept::read(registry, &arguments.file)?;
    if let Some(directory) = &arguments.plots {
        let of_screen = screen_files(&kept.config, &kept.report.json).pictures;
        plots::write(directory, plots::pictures(&kept.report).chain(of_screen))?;
    }
    if let Some(html) = &arguments.html {
        if kept.is_at(html) {
            return Err(usage(format_args!("{} is the result itself: give another file with --html", html.display())));
        }
        fs::write(html, kept.html(registry)?)
            .with_context(|| format!("cannot write {}: give another file with --html", html.display()))?;
    }
    if let Some(directory) = &arguments.tensorboard {
        tensorboard::write(&kept.history()?, &kept.config, directory)?;
    }
    let conclusion = kept.conclusion();
    let mut out = stdout();
    if arguments.json {
        let mut result = kept.result;
        add_report(&mut result, &kept.report);
        result["conclusion"] = conclusion.into();
        write!(out, "{}", json::text(&result))?;
    } else {
        // The line with the digest already says that a run is finished, so such a conclusion is not repeated.
        let known = (conclusion != extent_alone(&kept.config, &kept.result)).then_some(&*conclusion);
        writeln!(out, "{}", report_text(known, &kept.report))?;
        writeln!(out, "{}", digest_text(&kept.result))?;
    }
    Ok(ExitCode::SUCCESS)
}
