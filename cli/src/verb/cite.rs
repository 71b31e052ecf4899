//! `evoxo cite DIR`: what a paper needs to know about a run.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::bail;
use evoxo_common::experiment::{Config, Publication, Registry, ResultDigest, bibtex};
use serde_json::{Map, Value, json};

use crate::{
    json,
    kept::Kept,
    legs::made_with,
    say::{program, stdout},
};

/// The run.
#[derive(clap::Args)]
#[command(
    after_help = "The digest covers every reported number, so whoever runs the command with the same version can check \
all of them. The cost counts work, which is the same on every machine, and no seconds.

Examples:
  evoxo cite out/invincible
  evoxo cite docs/reproduction/td3d/result-finished.json --json
  evoxo cite colleague/result.json --config > again.toml
      Its experiment file; `evoxo run again.toml` computes it again."
)]
pub(crate) struct Arguments {
    /// A finished run's directory, or its result.json alone
    run: PathBuf,
    /// Print only the configuration, as an experiment file
    #[arg(long, conflicts_with = "json")]
    config: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let kept = Kept::read(registry, &arguments.run)?;
    let text = if arguments.config {
        kept.config.to_toml()
    } else {
        let name = arguments.run.display();
        let Some(digest) = kept.result["digest"].as_str() else {
            bail!(
                "{name} is not finished, so there is no digest to cite: the command that started the run continues it"
            );
        };
        if ResultDigest::parse(digest).is_none() {
            bail!("{name} has the digest of an earlier build, which did not cover the history: compute the run again");
        }
        let cited = Cited::of(&kept, arguments, digest)?;
        if arguments.json { json::text(&cited.to_json(&kept.config)) } else { cited.text() }
    };
    stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// What is cited.
struct Cited {
    command: String,
    /// The version that computed the run, or only fetched it if nothing else is known, with its commit.
    version: String,
    commit: String,
    signature: Option<String>,
    config_hash: String,
    digest: String,
    in_doubt: bool,
    /// Amounts of work, each with its unit.
    cost: Vec<(String, f64)>,
    sources: &'static [Publication],
}

impl Cited {
    fn of(kept: &Kept, arguments: &Arguments, digest: &str) -> anyhow::Result<Self> {
        let provenance = &kept.result["provenance"];
        let [version, commit] = made_with(provenance);
        Ok(Self {
            command: command(kept, arguments),
            version,
            commit,
            signature: provenance["signature"].as_str().map(String::from),
            config_hash: kept.config.hash().to_string(),
            digest: digest.into(),
            in_doubt: kept.result["state"] == "in doubt",
            cost: cost(kept)?,
            sources: kept.config.kind.sources,
        })
    }

    /// The entry of evoxo.
    fn software(&self) -> String {
        let note = format!("Commit {}", self.commit);
        let fields = [
            ("author", "{The evoxo contributors}"),
            ("title", "{evoxo}: evolution of game players on many machines, the same result bit for bit"),
            ("version", self.version.as_str()),
            ("url", env!("CARGO_PKG_REPOSITORY")),
            ("license", env!("CARGO_PKG_LICENSE")),
            ("note", &note),
        ];
        bibtex("software", "evoxo", fields)
    }

    fn to_json(&self, config: &Config) -> Value {
        let cost: Map<String, Value> = self.cost.iter().map(|(unit, amount)| (unit.clone(), number(*amount))).collect();
        let entries = std::iter::once(self.software()).chain(self.sources.iter().map(Publication::bibtex));
        json!({
            "command": self.command,
            "version": self.version,
            "commit": self.commit,
            "signature": self.signature,
            "config_hash": self.config_hash,
            "digest": self.digest,
            "in_doubt": self.in_doubt,
            "cost": cost,
            "bibtex": entries.collect::<Vec<String>>(),
            "sources": self.sources.iter().map(Publication::to_json).collect::<Value>(),
            "configuration": config.to_toml(),
        })
    }

    fn text(&self) -> String {
        let cost: Vec<String> = self.cost.iter().map(|(unit, amount)| format!("{} {unit}", number(*amount))).collect();
        let lines = [
            ("command", self.command.as_str()),
            ("version", &format!("evoxo {}, commit {}", self.version, self.commit)),
            ("behaviour", self.signature.as_deref().unwrap_or("not recorded")),
            ("configuration", &self.config_hash),
            ("digest", &self.digest),
            ("cost", &cost.join(", ")),
        ];
        let mut text: String = lines.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect();
        if self.in_doubt {
            text += "\nThe run is in doubt: a task that was computed twice had two outputs. Do not cite it.\n";
        }
        text += &format!("\n{}", self.software());
        self.sources.iter().for_each(|source| text += &format!("\n{}", source.bibtex()));
        text
    }
}

/// The command that makes the run again.
fn command(kept: &Kept, arguments: &Arguments) -> String {
    let config = kept.directory().join("config.toml");
    let (file, before) = match arguments.run.is_dir() && config.exists() {
        true => (config.display().to_string(), None),
        false => {
            let words = [&program(), "cite", &arguments.run.display().to_string(), "--config"].map(quoted).join(" ");
            ("again.toml".into(), Some(format!("{words} > again.toml && ")))
        }
    };
    let asked = kept.config.programs();
    let programs: String = asked.iter().map(|it| format!(" --program {0}=COMMAND-OF-{0}", it.name)).collect();
    format!("{}{} run {}{programs} --out again", before.unwrap_or_default(), program(), quoted(&file))
}

/// A word as a shell needs it.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

/// The work that was done, in units that do not depend on the machine: what the last row of each replica says of it.
fn cost(kept: &Kept) -> anyhow::Result<Vec<(String, f64)>> {
    let arms = kept.result["arms"].as_array().map_or(&[][..], Vec::as_slice);
    let replicas = arms.iter().map(|arm| arm["replicas"].as_array().map_or(0, Vec::len)).sum::<usize>();
    let mut cost = vec![("replicas".to_owned(), replicas as f64)];
    cost.extend(kept.result["rounds"].as_f64().map(|rounds| ("rounds".to_owned(), rounds)));
    if !kept.has_history() {
        return Ok(cost);
    }
    // The first column of every kind counts what was done so far.
    let columns = kept.config.kind.columns;
    let counts: Vec<usize> =
        (0..columns.len()).filter(|at| *at == 0 || ["evaluations", "games"].contains(&columns[*at].name)).collect();
    let mut sums = vec![0.0; counts.len()];
    let mut last: Option<((usize, u32), Vec<f64>)> = None;
    let mut add = |row: &[f64]| counts.iter().zip(&mut sums).for_each(|(at, sum)| *sum += row[*at]);
    kept.history()?.each_row(&kept.config, |arm, replica, row| {
        if let Some((key, before)) = &last
            && *key != (arm, replica)
        {
            add(before);
        }
        last = Some(((arm, replica), row));
    })?;
    last.iter().for_each(|(_, row)| add(row));
    let named = |(at, sum): (&usize, f64)| {
        let name = columns[*at].name;
        (if name.ends_with('s') { name.to_owned() } else { format!("{name}s") }, sum)
    };
    cost.extend(counts.iter().zip(sums).map(named).filter(|(name, _)| name != "rounds"));
    Ok(cost)
}

/// A whole amount without a decimal point.
fn number(amount: f64) -> Value {
    if amount.fract() == 0.0 && amount < 9e15 { Value::from(amount as u64) } else { Value::from(amount) }
}
