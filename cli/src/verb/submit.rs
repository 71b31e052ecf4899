//! `evoxo submit FILE`: starts a run on a coordinator.

use std::{io::Write as _, process::ExitCode};

use evoxo_common::experiment::{Config, Registry};
use evoxo_proto::{Level, v1};

use crate::{
    autoscale::Autoscale,
    remote::{Coordinator, connect, converse, is_lost, refused, run_to_json, standstill},
    say::{notice, program, share, stdout},
    source::Experiment,
};

/// The experiment and the coordinator.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evoxo submit mine.toml --coordinator lab7:7600
  evoxo submit mine.toml --coordinator lab7:7600 --autoscale slurm \\
      --max-jobs 20 -- --cpus-per-task=8 deploy/slurm/worker.sbatch

The last command stays until the run ends; Ctrl-C ends the jobs, not the run.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// The run's name on the coordinator [default: the file's name]
    #[arg(long)]
    name: Option<String>,
    /// Workers that must have computed a task before it counts. Needs a coordinator with --access [default: any one worker]
    ///
    /// quorum: workers with certificates of two identities sent the same output, or a trusted worker computed it. verified: a
    /// trusted worker computed it; other outputs are compared with it. sampled:5%: any worker computed it; a trusted worker
    /// computes 5% of these tasks again. If it finds a wrong output, everything that relies on the worker that sent it is
    /// computed again. A worker that differs from a trusted worker is revoked.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    verify: Option<Level>,
    /// A term of the run, which changes no result: priority=20, where=gpu=a100, keep=yes or keep=30d
    ///
    /// priority=20 gives the run twice as much of your share as your other runs. where=gpu=a100,site=lab lets only workers with
    /// these labels compute it; where= ends that. keep=yes keeps it from `evoxo prune` and from --keep-finished of the
    /// coordinator; keep=30d does so for 30 days after its end, and then the coordinator deletes it. To change a term while the
    /// run is computed, submit the run again with another value. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = term)]
    term: Vec<v1::Term>,
    #[command(flatten)]
    autoscale: Autoscale,
    #[command(flatten)]
    coordinator: Coordinator,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

/// Parses a term. The coordinator knows which terms there are.
fn term(text: &str) -> Result<v1::Term, String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE, for example priority=20")?;
    Ok(v1::Term { name: name.into(), value: value.into() })
}

/// Parses a level of verification.
fn level(text: &str) -> Result<Level, String> {
    match (text, text.strip_prefix("sampled:")) {
        ("quorum", _) => Ok(Level::Quorum),
        ("verified", _) => Ok(Level::Verified),
        (_, Some(percent)) => Ok(Level::Sampled { millionths: share(percent)? }),
        _ => Err("give quorum, verified or a share as sampled:5%".into()),
    }
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let autoscale = arguments.autoscale.is_wanted()?;
    let config = arguments.experiment.read_to_compute(registry)?;
    let name = arguments.name.clone().unwrap_or_else(|| arguments.experiment.run_name());
    if autoscale {
        arguments.autoscale.try_scheduler(&arguments.coordinator, &name)?;
    }
    let level = arguments.verify.unwrap_or_default();
    let (verification, sampled_millionths) = (level.message().into(), level.millionths());
    let terms = arguments.term.clone();
    let request =
        v1::SubmitRequest { name: name.clone(), verification, sampled_millionths, terms, ..Default::default() };
    submit(&arguments.coordinator, request, &config, arguments.json)?;
    match autoscale {
        true => arguments.autoscale.follow(&arguments.coordinator, &name, arguments.json),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Submits a run with this configuration, and prints the answer.
pub(crate) fn submit(
    coordinator: &Coordinator,
    request: v1::SubmitRequest,
    config: &Config,
    as_json: bool,
) -> anyhow::Result<()> {
    let (name, request) = (request.name.clone(), v1::SubmitRequest { config: config.to_toml(), ..request });
    let answer = converse(async {
        let answer = connect(coordinator).await?.submit(request).await.map_err(|status| match is_lost(&status) {
            true => refused(status),
            false => refused(status).context("the coordinator refuses the run"),
        })?;
        Ok(answer.into_inner())
    })?;
    let run = answer.run.unwrap_or_default();
    more_than_asked(config, &run).iter().for_each(notice);
    if answer.created {
        run.notices.iter().for_each(notice);
    }
    let mut out = stdout();
    if as_json {
        let mut json = run_to_json(&run);
        json["created"] = answer.created.into();
        writeln!(out, "{json:#}")?;
    } else if answer.created {
        let (program, address) = (program(), &coordinator.address);
        writeln!(out, "{name} is accepted: `{program} watch {name} --coordinator {address}` follows it")?;
    } else {
        let (done, total) = (run.rounds_done, run.rounds_total);
        writeln!(out, "{name} exists already, with {done} of {total} rounds done{}", standstill(&run))?;
    }
    Ok(())
}

/// The notice that the stored run has more replicas than this configuration, and keeps them.
fn more_than_asked(config: &Config, run: &v1::Run) -> Option<String> {
    let each = run.replicas_total / (config.arms.len() as u32).max(1);
    let asked = config.replicas;
    (each > asked).then(|| {
        format!("the run has {each} replicas of each arm, not {asked}, and computes all of them (for a new run, give another \
            --name)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_replicas_of_an_existing_run_are_reported() {
        let text = "experiment = \"dispatch\"\nreplicas = 2\n[arms.a]\n[arms.b]\n";
        let config = Config::parse(&evoxo_experiments::registry(), "a file", text, &[]).unwrap();
        let told = |replicas_total| more_than_asked(&config, &v1::Run { replicas_total, ..v1::Run::default() });
        assert_eq!(told(4), None);
        assert!(told(10).unwrap().starts_with("the run has 5 replicas of each arm, not 2"));
    }
}
