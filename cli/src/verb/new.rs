//! `evoxo new KIND`.

use std::{io::Write as _, process::ExitCode};

use evoxo_common::config::{Kind, template};

/// Which experiment.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(value_parser = kind, help = format!("The experiment's kind: {}", names()))]
    kind: Kind,
    /// Print it as JSON: {"kind", "file"}
    #[arg(long)]
    json: bool,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::named(name).ok_or_else(|| format!("there are {}", names()))
}

fn names() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let text = template(arguments.kind);
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::json!({"kind": arguments.kind.name(), "file": text}))?;
    } else {
        write!(out, "{text}")?;
    }
    Ok(ExitCode::SUCCESS)
}
