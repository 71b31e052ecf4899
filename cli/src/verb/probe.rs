//! `evoxo probe`, which `evoxo bisect` calls in two builds: computes a replica from a saved state to a round, and prints its
//! digest there.

use std::{fs, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, anyhow};
use evoxo_common::{
    experiment::{Config, FILE_BYTES_MAX, Registry, Replica},
    text::quoted,
};
use evoxo_proto::v1::ReplicaState;
use evoxo_worker::Processes;
use prost::Message as _;
use serde_json::json;

use crate::{
    file,
    recompute::{Recomputing, advance},
    say::{stdout, usage, whole},
};

/// The replica and the round.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A configuration
    config: PathBuf,
    /// The arm
    #[arg(long)]
    arm: String,
    /// The number of the replica, from 0
    #[arg(long)]
    replica: u32,
    /// Compute up to this round, or to the replica's end
    #[arg(long, value_parser = whole::<u64>(1, u64::MAX >> 1))]
    to: u64,
    /// Begin with this state instead of the first one
    #[arg(long)]
    from: Option<PathBuf>,
    /// Write the state that is reached into this file
    #[arg(long)]
    save: Option<PathBuf>,
    #[command(flatten)]
    with: Recomputing,
}

/// The longest state that is read, in bytes.
pub(crate) const STATE_BYTES_MAX: usize = 1 << 30;

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let name = arguments.config.display().to_string();
    let text = String::from_utf8(file::read(&arguments.config, FILE_BYTES_MAX, "")?);
    let text = text.ok().with_context(|| format!("{name} is not UTF-8 text"))?;
    let config = Config::parse(registry, &name, &text, &[]).map_err(|problems| anyhow!("{problems}"))?;
    let arm = config.arms.iter().find(|arm| arm.name == arguments.arm);
    let arm = arm.ok_or_else(|| usage(format_args!("{name} has no arm {}", quoted(&arguments.arm))))?;
    let given = arguments.with.programs(registry, &config)?;
    let mut processes: Vec<Processes> = (0..arguments.with.threads()?).map(|_| Processes::new(given.clone())).collect();
    let mut replica = match &arguments.from {
        None => Replica::start(&config, arm, arguments.replica),
        Some(path) => {
            let saved = ReplicaState::decode(file::read(path, STATE_BYTES_MAX, "")?.as_slice());
            let saved = saved.with_context(|| format!("{} is no state", path.display()))?;
            Replica::restore(&config, &saved).map_err(|why| anyhow!("{}: {why}", path.display()))?
        }
    };
    if (replica.arm(), replica.index()) != (arguments.arm.as_str(), arguments.replica) {
        return Err(usage("the state belongs to another replica"));
    }
    while replica.rounds() < arguments.to && !replica.is_finished() {
        advance(&mut replica, &mut processes)?;
    }
    if let Some(path) = &arguments.save {
        let written = fs::write(path, replica.save().encode_to_vec());
        written.with_context(|| format!("cannot write {}: is the disk full?", path.display()))?;
    }
    let reached = json!({
        "round": replica.rounds(),
        "rows": replica.history().len(),
        "finished": replica.is_finished(),
        "digest": replica.digest().to_string(),
        "signature": config.kind.signature().to_string(),
    });
    writeln!(stdout(), "{reached}")?;
    Ok(ExitCode::SUCCESS)
}
