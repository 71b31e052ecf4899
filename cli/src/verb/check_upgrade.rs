//! `evoxo check-upgrade`: what a coordinator of this build would do with the runs that a coordinator of another build has.

use std::process::ExitCode;

use bytes::Bytes;
use evoxo_common::{digest::Digest, experiment::Registry};
use evoxo_coordinator::{
    prepared::Prepared,
    print_upgrade,
    saved::{Origin, origin_of, unfit_between},
    store::{Judged, Prospect, Upgrade},
};
use evoxo_proto::{
    shown::state,
    v1::{self, RunState},
};

use super::which::Which;
use crate::remote::{Client, Coordinator, connect, converse, refused};

/// The runs and the coordinator.
#[derive(clap::Args)]
#[command(after_help = "Example, with the program of the new build:
  new/evoxo check-upgrade --coordinator lab7:7600

The status is 0 if all runs go on. Without a coordinator: evoxo-coordinator check-upgrade STORE")]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let runs = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        let mut judged = Vec::new();
        for run in arguments.which.runs(&mut client).await? {
            judged.extend(with_config(&mut client, run.name).await?.map(|run| judge(registry, &run)));
        }
        anyhow::Ok(judged)
    })?;
    let upgrade = Upgrade { runs, notices: Vec::new() };
    print_upgrade(&upgrade, &arguments.coordinator.address.to_string(), arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The run with its configuration, unless it was deleted meanwhile.
async fn with_config(client: &mut Client, name: String) -> anyhow::Result<Option<v1::Run>> {
    match client.get(v1::GetRequest { name }).await {
        Ok(run) => Ok(Some(run.into_inner())),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
        Err(status) => Err(refused(status)),
    }
}

fn judge(registry: &Registry, run: &v1::Run) -> Judged {
    let complete = run.replicas_total > 0 && run.replicas_finished == run.replicas_total;
    let ended = complete || run.state() == RunState::Cancelled;
    let why = unfit(registry, run);
    let prospect = Prospect::of(why.as_ref(), ended);
    let (run, kind, state, why) = (run.name.clone(), run.kind.clone(), state(run), why.unwrap_or_default());
    Judged { run, kind, state, prospect, why }
}

/// Why this build could not continue the run, if so.
fn unfit(registry: &Registry, run: &v1::Run) -> Option<String> {
    let hash_of = |text: &str| Digest::from_hex(text).map(|hash| Bytes::copy_from_slice(&hash.0));
    let Some((signature, config_hash)) = hash_of(&run.signature).zip(hash_of(&run.config_hash)) else {
        return Some(match run.state() {
            RunState::Blocked => format!("it is blocked now: {}", run.message),
            _ => {
                "the coordinator does not say which build computed it: use evoxo-coordinator check-upgrade STORE".into()
            }
        });
    };
    let prepared = match Prepared::read(registry, &format!("run {}", run.name), &run.config) {
        Ok(prepared) => prepared,
        Err(problems) => return Some(format!("this build cannot read its configuration: {problems}")),
    };
    let (ours, theirs) = (origin_of(registry, &prepared), Origin { config_hash, signature });
    // A run without states can begin under any build.
    let begun = run.rounds_done > 0 || run.replicas_finished > 0;
    (begun && ours != theirs).then(|| unfit_between(&ours, &theirs))
}

#[cfg(test)]
mod tests {
    use evoxo_common::experiment::Config;

    use super::*;

    #[test]
    fn runs_of_another_build_are_named() {
        let registry = evoxo_experiments::registry();
        let text = "experiment = \"dispatch\"\nreplicas = 2\n";
        let config = Config::parse(&registry, "a file", text, &[]).unwrap();
        let run = v1::Run {
            config: config.to_toml(),
            config_hash: config.hash().to_string(),
            signature: registry.signature(config.kind).to_string(),
            state: RunState::Running.into(),
            replicas_total: 2,
            rounds_done: 1,
            ..v1::Run::default()
        };
        let told = |run: v1::Run| {
            let Judged { prospect, why, .. } = judge(&registry, &run);
            (prospect, why)
        };
        assert_eq!(told(run.clone()), (Prospect::GoesOn, String::new()));
        let other = v1::Run { signature: Digest::of(b"other").to_string(), ..run.clone() };
        let (prospect, why) = told(other.clone());
        assert!(prospect == Prospect::MustEndFirst && why.contains("a build that computes different results"), "{why}");
        assert_eq!(told(v1::Run { rounds_done: 0, ..other.clone() }).0, Prospect::GoesOn);
        assert_eq!(told(v1::Run { replicas_finished: 2, ..other.clone() }).0, Prospect::Blocked);
        assert_eq!(told(v1::Run { state: RunState::Cancelled.into(), ..other }).0, Prospect::Blocked);
        let unknown = v1::Run { config: format!("{}later = 1\n", run.config), ..run.clone() };
        assert!(told(unknown).1.starts_with("this build cannot read its configuration"));
        let changed = v1::Run { config_hash: Digest::of(b"x").to_string(), ..run.clone() };
        assert!(told(changed).1.contains("belong to another configuration"));
        let silent = v1::Run { signature: String::new(), ..run };
        assert!(told(silent.clone()).1.contains("check-upgrade STORE"));
        let blocked = v1::Run { state: RunState::Blocked.into(), message: "it is too large".into(), ..silent };
        assert_eq!(told(blocked).1, "it is blocked now: it is too large");
    }
}
