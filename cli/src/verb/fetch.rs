//! `evoxo fetch NAME`: saves a run's results from a coordinator.

use std::{num::NonZero, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use evoxo_common::{
    experiment::{Config, Registry},
    parallel,
};
use evoxo_proto::v1;

use crate::{
    directory::Directory,
    numbered::RunDirectory,
    remote::{self, Coordinator, connect, converse},
    results::{Provenance, Results},
    say::notice,
    sight::{OrLost, Sight, or_lost},
};

/// The run, and the directory for its results.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run's name
    name: String,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Directory for the results [default: out/NAME, with a number appended if a run with other settings is there]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Also write the cards of all players in the last population into populations/
    #[arg(long)]
    populations: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (run, replicas) = converse(fetch(arguments))?;
    let config = Config::parse(registry, "the coordinator's configuration", &run.config, &[])
        .context("this build cannot read the run: use the coordinator's version")?;
    let place = arguments.out.is_none().then(|| RunDirectory::of(registry, &run.name, &config, false));
    let out = place.as_ref().map(|place| place.path.clone()).or(arguments.out.clone()).unwrap_or_default();
    place.iter().for_each(RunDirectory::tell);
    let directory = Directory::open(registry, &out, &config, false)?;
    parallel::set_threads(std::thread::available_parallelism().map_or(1, NonZero::get));
    let results = Results::new(config, &run, &replicas)?;
    directory.keep_finished(&results)?;
    let result = results.to_json(Provenance::Fetched);
    directory.write_results(&results, &result)?;
    if arguments.populations {
        directory.write_populations(&results)?;
    }
    let compared = place.and_then(|place| place.compared(registry));
    results.print(&result, directory.path(), compared, arguments.json)
}

/// The run and its replicas. If the coordinator is lost during the transfer, the coordinator that leads then is asked.
async fn fetch(arguments: &Arguments) -> anyhow::Result<(v1::Run, Vec<v1::Replica>)> {
    let (mut sight, mut most) = (Sight::Never, 0);
    loop {
        match fetch_once(arguments, &mut sight, &mut most).await? {
            Ok(fetched) => return Ok(fetched),
            Err(why) => sight.look_again(&arguments.name, why, |note| notice(note)).await?,
        }
    }
}

/// Fetches on one connection. The run counts as in sight again only if more of its replicas arrive than on any connection
/// before. Otherwise, whatever ends each connection at the same place will not let the rest through.
async fn fetch_once(
    arguments: &Arguments,
    sight: &mut Sight,
    most: &mut usize,
) -> anyhow::Result<OrLost<(v1::Run, Vec<v1::Replica>)>> {
    let mut client = match connect(&arguments.coordinator).await {
        Ok(client) => client,
        Err(why) => return Ok(Err(why)),
    };
    let request = v1::GetRequest { name: arguments.name.clone() };
    let fetched = async {
        let run = client.get(request.clone()).await?.into_inner();
        if *sight == Sight::Never {
            *sight = Sight::Seen;
        }
        let more = |count| {
            if count > *most {
                (*sight, *most) = (Sight::Seen, count);
            }
        };
        let replicas = remote::fetch(&mut client, &arguments.name, more).await?;
        // Doubts that arose during the transfer must be in the results too.
        let doubts = client.get(request).await?.into_inner().doubts;
        Ok((v1::Run { doubts, ..run }, replicas))
    };
    or_lost(fetched.await)
}
