//! `evoxo new KIND`: prints an experiment file to start from.

use std::{io::Write as _, process::ExitCode};

use evoxo_common::{
    experiment::{Kind, Registry, short_template, template},
    settings::Values,
};
use serde_json::{Value, json};

use crate::{
    say::{stdout, usage},
    source::pair,
};

/// The kind of experiment.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment's kind [default: list all kinds]
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    /// Give a setting this value in the file, and leave out settings that belong to other values; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair, requires = "kind")]
    settings: Vec<(String, String)>,
    /// Explain all settings at length
    #[arg(long, requires = "kind")]
    all: bool,
    /// Print JSON: {"kind", "file"}, or a list of {"kind", "summary"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let kinds = registry.kinds();
    let mut out = stdout();
    match (&arguments.kind, arguments.json) {
        (Some(name), as_json) => {
            let kind = registry.kind(name).ok_or_else(|| {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
                usage(format_args!("there is no experiment of kind {name:?}: give one of {}", names.join(", ")))
            })?;
            let set = |values: Values, (name, value): &(String, String)| values.set(name, value.trim_matches('"'));
            let settings = arguments.settings.iter().try_fold(kind.schema.defaults(), set).map_err(usage)?;
            // What chooses other settings stays open in the file, which a person is still to change.
            let is_given = |name: &str| arguments.settings.iter().any(|(key, _)| key == name);
            let (settings, _) = settings.followed(|name| kind.schema.chooser != Some(name) && !is_given(name));
            let mut all = settings.iter();
            if let Some((field, _)) = all.find(|(field, _)| is_given(field.name) && !settings.is_chosen(field)) {
                let why = settings.idle(field.name).unwrap_or_default();
                let chooser = kind.schema.chooser.unwrap_or_default();
                return Err(usage(format_args!(
                    "--set {}: it has no effect with {why}: set {chooser} too",
                    field.name
                )));
            }
            let text = if arguments.all { template(kind, &settings) } else { short_template(kind, &settings) };
            match as_json {
                true => writeln!(out, "{}", json!({"kind": kind.name, "file": text}))?,
                false => write!(out, "{text}")?,
            }
        }
        (None, true) => {
            let kind = |kind: &&Kind| json!({"kind": kind.name, "summary": kind.schema.summary});
            writeln!(out, "{:#}", kinds.iter().map(kind).collect::<Value>())?;
        }
        (None, false) => {
            for kind in kinds {
                let first = kind.schema.summary.split_inclusive(". ").next().unwrap_or_default();
                writeln!(out, "{:<12} {}", kind.name, first.trim())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
