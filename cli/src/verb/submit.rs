//! `evoxo submit FILE`.

use std::{io::Write as _, process::ExitCode};

use anyhow::Context as _;
use evoxo_common::experiment::Registry;
use evoxo_proto::v1;

use crate::{
    remote::{Coordinator, connect, converse, refused, run_to_json, standstill},
    say::program,
    source::Experiment,
};

/// The experiment and the coordinator.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// The run's name on the coordinator [default: the file's]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let config = arguments.experiment.read(registry)?;
    let name = arguments.name.clone().unwrap_or_else(|| arguments.experiment.run_name());
    let answer = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let request = v1::SubmitRequest { name: name.clone(), config: config.to_toml() };
        Ok(client.submit(request).await.map_err(refused).context("the coordinator refuses the run")?.into_inner())
    })?;
    let run = answer.run.unwrap_or_default();
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let mut json = run_to_json(&run);
        json["created"] = answer.created.into();
        writeln!(out, "{json:#}")?;
    } else if answer.created {
        let (program, address) = (program(), &arguments.coordinator.address);
        writeln!(out, "{name} is accepted: `{program} watch {name} --coordinator {address}` follows it")?;
    } else {
        let (done, total) = (run.rounds_done, run.rounds_total);
        writeln!(out, "{name} exists already, with {done} of {total} rounds done{}", standstill(&run))?;
    }
    Ok(ExitCode::SUCCESS)
}
