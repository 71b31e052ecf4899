//! `evoxo fetch NAME`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use evoxo_common::experiment::{Config, Registry};
use evoxo_proto::v1;

use crate::{
    directory::Directory,
    remote::{self, Coordinator, connect, converse, refused},
    results::{Provenance, Results},
};

/// The run, and the directory for its results.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run's name
    name: String,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Directory for the results [default: out/NAME]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Also write the cards of the players of the last population into populations/
    #[arg(long)]
    populations: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (run, replicas) = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let request = v1::GetRequest { name: arguments.name.clone() };
        let run = client.get(request.clone()).await.map_err(refused)?.into_inner();
        let replicas = remote::fetch(&mut client, &arguments.name).await.map_err(refused)?;
        // What was doubted while they came is doubted.
        let doubts = client.get(request).await.map_err(refused)?.into_inner().doubts;
        Ok((v1::Run { doubts, ..run }, replicas))
    })?;
    let config = Config::parse(registry, "the coordinator's configuration", &run.config, &[])
        .context("this build cannot read the run: use the coordinator's version")?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(&run.name));
    let directory = Directory::open(registry, &out, &config, false)?;
    let results = Results::new(config, &run, &replicas)?;
    directory.keep_finished(&results)?;
    let result = results.to_json(Provenance::Fetched);
    directory.write_results(&results, &result)?;
    if arguments.populations {
        directory.write_populations(&results)?;
    }
    results.print(&result, directory.path(), arguments.json)
}
