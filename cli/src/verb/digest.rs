//! `evoxo digest DIR`: the digests of a run, of its replicas, and of their rounds.

use std::{collections::BTreeMap, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, anyhow, bail};
use evoxo_common::{
    experiment::{Config, Registry, ResultDigest},
    report::Table,
};
use serde_json::{Value, json};

use crate::{
    digests::{self, Line},
    json, kept,
    recompute::links,
    say::{digest_text, notice, stdout, usage, whole},
};

/// The digests to print.
#[derive(clap::Args)]
#[command(
    after_help = "A digest covers everything that is reported: every row of the history, the state and how each \
replica ended. Two runs with the same configuration and the same digest have the same report. The digest of a \
replica after a round does not depend on how the work was divided into tasks, so two runs diverge in the first round \
whose digests differ.

Examples:
  evoxo digest out/invincible
  evoxo digest out/invincible --rounds --arm X --replica 3
  evoxo digest out/invincible --round 40 --json"
)]
pub(crate) struct Arguments {
    /// A run's directory; without --rounds, its result.json alone is enough
    directory: PathBuf,
    /// Also print digests after single rounds: four for each doubling of the history's rows, and the last round
    #[arg(long)]
    rounds: bool,
    /// Print only the digests after this round, counted from 1; if one was not kept, its replica is computed again up to this
    /// round
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX >> 1))]
    round: Option<u64>,
    /// Print only the digests of this arm
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Print only the digests of the replicas with this number, from 0
    #[arg(long, value_name = "N")]
    replica: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The digest of one replica.
struct Replica<'a> {
    arm: &'a str,
    number: u32,
    digest: ResultDigest,
    finished: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (path, result) = kept::read_result(&arguments.directory)?;
    let Some(all) = replicas(&result) else {
        bail!(
            "{} has no digests, or those of an earlier build, which did not cover the history: compute the run again",
            path.display()
        );
    };
    let is_asked = |arm: &str, replica: u32| {
        arguments.arm.as_ref().is_none_or(|asked| asked == arm) && arguments.replica.is_none_or(|it| it == replica)
    };
    let shown: Vec<&Replica> = all.iter().filter(|it| is_asked(it.arm, it.number)).collect();
    if shown.is_empty() {
        return Err(usage(format_args!("{} has no such replica: `report` lists its arms", path.display())));
    }
    let mut lines = Vec::new();
    if arguments.rounds || arguments.round.is_some() {
        if !arguments.directory.is_dir() {
            return Err(usage("the digests of rounds are in digests.csv: give the run's directory"));
        }
        lines = digests::read(&arguments.directory)?;
        check_ends(&all, &lines)?;
        lines.retain(|it| is_asked(&it.arm, it.replica));
        if let Some(round) = arguments.round {
            let config = || Config::of_result(registry, &result).map_err(|why| anyhow!("{}: {why}", path.display()));
            lines = after_round(round, lines, &shown, config)?;
        }
    }
    let text = match arguments.json {
        true => json::text(&as_json(&result, &shown, &lines)),
        false => as_text(&result, &shown, &lines),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The replicas in a `result.json`; `None` if one of them has no digest in the present form.
fn replicas(result: &Value) -> Option<Vec<Replica<'_>>> {
    let mut all = Vec::new();
    for arm in result["arms"].as_array()? {
        for replica in arm["replicas"].as_array()? {
            all.push(Replica {
                arm: arm["name"].as_str()?,
                number: replica["replica"].as_u64()?.try_into().ok()?,
                digest: ResultDigest::parse(replica["digest"].as_str()?)?,
                finished: replica["finished"].as_bool()?,
            });
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Checks that the last digest of each finished replica is the one in `result.json`. For a replica that goes on,
/// `digests.csv` may have a later one.
fn check_ends(replicas: &[Replica], lines: &[Line]) -> anyhow::Result<()> {
    // For each replica, its last line remains in the map.
    let ends: BTreeMap<(&str, u32), ResultDigest> =
        lines.iter().map(|line| ((line.arm.as_str(), line.replica), line.link.digest)).collect();
    for replica in replicas.iter().filter(|replica| replica.finished) {
        if ends.get(&(replica.arm, replica.number)) != Some(&replica.digest) {
            bail!(
                "digests.csv does not belong to result.json: replica {} of arm {:?} ends with another digest; `run` or `fetch` writes \
                 both again",
                replica.number,
                replica.arm
            );
        }
    }
    Ok(())
}

/// The digests of these replicas after a round. Digests that were not kept are computed again, and the digests kept for
/// earlier rounds must come out the same.
fn after_round(
    round: u64,
    kept: Vec<Line>,
    shown: &[&Replica],
    config: impl FnOnce() -> anyhow::Result<Config>,
) -> anyhow::Result<Vec<Line>> {
    let of = |it: &&&Replica| {
        let own = kept.iter().filter(|line| line.arm == it.arm && line.replica == it.number);
        own.map(|line| line.link).collect::<Vec<_>>()
    };
    let is_kept = |it: &&&Replica| of(it).iter().any(|link| link.round == round);
    // The last round of each replica is always kept, so it shows how many rounds there are.
    let has_so_many = |it: &&&Replica| of(it).last().is_some_and(|last| last.round >= round);
    let lacking: Vec<&&Replica> = shown.iter().filter(|it| has_so_many(it) && !is_kept(it)).collect();
    let mut computed = Vec::new();
    if !lacking.is_empty() {
        let config = config()?;
        if let Some(program) = config.programs().first() {
            bail!(
                "the digest after round {round} is not kept, and computing it needs the program {}, which `digest` does not \
                start: choose one of the rounds that --rounds prints",
                program.name
            );
        }
        let threads = std::thread::available_parallelism().context("cannot determine the cores")?.get();
        let count = match lacking.len() {
            1 => "1 replica is".to_owned(),
            count => format!("{count} replicas are"),
        };
        notice(format_args!("the digest after round {round} is not kept: {count} computed again up to this round"));
        for it in lacking {
            let arm = config.arms.iter().position(|arm| arm.name == it.arm);
            let arm = arm.with_context(|| format!("the configuration has no arm {:?}", it.arm))?;
            let earlier = of(&it);
            let mut rounds: Vec<u64> = earlier.iter().map(|link| link.round).filter(|of| *of < round).collect();
            rounds.push(round);
            let links = links(&config, (arm, it.number), &rounds, threads)?;
            if let Some(other) = earlier.iter().find(|link| link.round < round && !links.contains(link)) {
                bail!(
                    "replica {} of arm {:?} has another digest after round {} than this build computes: `evoxo verify` says what differs",
                    it.number,
                    it.arm,
                    other.round
                );
            }
            let link = links.into_iter().find(|link| link.round == round);
            computed.extend(link.map(|link| Line { arm: it.arm.to_owned(), replica: it.number, link }));
        }
    }
    let place = |line: &Line| shown.iter().position(|it| it.arm == line.arm && it.number == line.replica);
    let mut lines: Vec<Line> = kept.into_iter().filter(|line| line.link.round == round).chain(computed).collect();
    lines.sort_by_key(place);
    if lines.is_empty() {
        bail!("none of these replicas has {round} rounds: --rounds prints the last round of each");
    }
    Ok(lines)
}

fn as_json(result: &Value, shown: &[&Replica], lines: &[Line]) -> Value {
    let replica = |replica: &&Replica| {
        let of_it = lines.iter().filter(|line| line.arm == replica.arm && line.replica == replica.number);
        let round = |line: &Line| json!({"round": line.link.round, "rows": line.link.rows, "digest": line.link.digest.to_string()});
        let mut json = json!({"arm": replica.arm, "replica": replica.number, "digest": replica.digest.to_string()});
        if !lines.is_empty() {
            json["rounds"] = of_it.map(round).collect();
        }
        json
    };
    json!({
        "digest": result["digest"],
        "config_hash": result["config_hash"],
        "replicas": shown.iter().map(replica).collect::<Value>(),
    })
}

fn as_text(result: &Value, shown: &[&Replica], lines: &[Line]) -> String {
    let table = |title: &str, header: &[&str], rows: Vec<Vec<String>>| Table {
        title: title.into(),
        header: header.iter().copied().map(String::from).collect(),
        rows,
    };
    let rows = match lines.is_empty() {
        true => {
            let row = |it: &&Replica| vec![it.arm.to_owned(), it.number.to_string(), it.digest.to_string()];
            let rows = shown.iter().map(row).collect();
            table("Each replica", &["arm", "replica (from 0)", "digest"], rows)
        }
        false => {
            let row = |Line { arm, replica, link }: &Line| {
                vec![
                    arm.clone(),
                    replica.to_string(),
                    link.round.to_string(),
                    link.rows.to_string(),
                    link.digest.to_string(),
                ]
            };
            let header = ["arm", "replica (from 0)", "round", "rows", "digest after the round"];
            table(
                "Digests after single rounds: four for each doubling of the rows, and the last round",
                &header,
                lines.iter().map(row).collect(),
            )
        }
    };
    format!("{}\n\n{rows}", digest_text(result))
}
