//! `evoxo ancestry DIR`: the ancestors of a champion, and where each of its genes was made.

use std::{collections::BTreeMap, io::Write as _, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{anyhow, bail};
use evoxo_common::{
    experiment::{Arm, Registry, Replica},
    report::Table,
    settings::Values,
    text::{counted, rounded, thousands},
};
use evoxo_worker::Processes;
use serde_json::{Value, json};

use crate::{
    family::{Family, Inherited, Pedigree},
    file,
    html::escape,
    json,
    recompute::{Recomputing, advance},
    say::{notice, printed, stdout, usage},
    side::{KeptRun, same},
};

/// The champion.
#[derive(clap::Args)]
#[command(
    after_help = "Parents are not stored: the replica is computed again from its beginning, which takes as long as \
it took one worker, and its digest must be the one of the run. A gene that a child has from a parent is followed to \
the individual in which crossover or mutation made it. Two individuals with the same genes count as one.

It is known for the tables of invincible, the strings of ternary (repairs in games are births too), the rules of rules, and \
for searches of evolve that make candidates from others that they keep: ga, with islands too, nsga2, nsga3, sms-emoa, and map-elites.

Examples:
  evoxo ancestry out/tsp
  evoxo ancestry out/tsp --arm ga --replica 3 --svg ancestry.svg
  evoxo ancestry out/tsp --dot ancestry.dot && dot -Tpdf ancestry.dot > a.pdf"
)]
pub(crate) struct Arguments {
    /// A finished run's directory, or its result.json alone
    run: PathBuf,
    /// The champion's arm [default: the only arm, or the first whose candidates have parents]
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// The champion's replica, from 0 [default: the best of the arm]
    #[arg(long, value_name = "N")]
    replica: Option<u32>,
    #[command(flatten)]
    with: Recomputing,
    /// Write a picture of the family
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the family as a graph for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Print JSON: the champion's genes and all ancestors
    #[arg(long)]
    json: bool,
}

/// The most rows of a table.
const ROWS_MAX: usize = 40;
/// The most first individuals that are listed.
const FOUNDERS_MAX: usize = 5;

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let run = KeptRun::read(registry, &arguments.run)?;
    let config = run.config();
    let Some(lineage) = config.kind.lineage else {
        bail!(
            "the players of {} have no parents that are followed: those of invincible, ternary, rules and evolve have",
            config.kind.name
        );
    };
    let (place, names) = chosen(&run, arguments, lineage.genes)?;
    let arm = &config.arms[place];
    let number = match arguments.replica {
        Some(number) if number < config.replicas => number,
        Some(number) => {
            return Err(usage(format_args!("there is no replica {number}: they are 0 to {}", config.replicas - 1)));
        }
        None => best(&run, registry, place)?,
    };
    let name = (arm.name.clone(), number);
    let Some(kept) = run.replicas.get(&name).filter(|kept| kept.finished) else {
        bail!("replica {number} of {:?} is not finished: choose a finished one with --replica", arm.name);
    };
    let programs = arguments.with.programs(registry, config)?;
    let threads = arguments.with.threads()?;
    let mut processes: Vec<Processes> = (0..threads).map(|_| Processes::new(Arc::clone(&programs))).collect();
    let (mut replica, mut pedigree) = (Replica::start(config, arm, number), Pedigree::default());
    while !replica.is_finished() {
        for generation in replica.births().generations {
            pedigree.add(generation)?;
        }
        advance(&mut replica, &mut processes)?;
    }
    if !same(&replica.digest().to_string(), &kept.digest) {
        bail!(
            "replica {number} of {:?} is not as this build computes it, so its ancestors are unknown: `evoxo verify` says \
             where it differs",
            arm.name
        );
    }
    let family = replica.births().champion.and_then(|genes| pedigree.family(genes));
    let family = family.ok_or_else(|| anyhow!("replica {number} of {:?} has no champion", arm.name))?;
    let value = |gene: usize, bits: u64| (lineage.value)(&arm.settings, gene, bits);
    let title = format!("Ancestors of the champion of replica {number} of {}", arm.name);
    for (path, text) in [(&arguments.svg, family.svg(&escape(&title))), (&arguments.dot, family.dot())] {
        let Some(path) = path else { continue };
        file::write(path, text.as_bytes(), false)
            .map_err(|error| anyhow!("cannot write {}: {error}", path.display()))?;
        notice(format_args!("wrote {}", path.display()));
    }
    let text = match arguments.json {
        true => json::text(&as_json(&name, pedigree.count(), &family, &names, &value)),
        false => as_text(&name, pedigree.count(), &family, &names, &value),
    };
    printed(stdout().write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// The arm whose champion is asked for, and the names of its genes.
fn chosen(
    run: &KeptRun,
    arguments: &Arguments,
    genes: fn(&Values) -> Result<Vec<String>, String>,
) -> anyhow::Result<(usize, Vec<String>)> {
    let arms = &run.config().arms;
    let of = |arm: &Arm| genes(&arm.settings).map_err(|why| anyhow!("in arm {:?} {why}", arm.name));
    let place = match &arguments.arm {
        Some(name) => arms.iter().position(|arm| arm.name == *name).ok_or_else(|| {
            let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
            usage(format_args!("there is no arm {name:?}: give one of {}", names.join(", ")))
        })?,
        None => arms.iter().position(|arm| genes(&arm.settings).is_ok()).unwrap_or(0),
    };
    Ok((place, of(&arms[place])?))
}

/// The number of the best replica of an arm.
fn best(run: &KeptRun, registry: &Registry, place: usize) -> anyhow::Result<u32> {
    let best = run.kept.best(registry)?;
    let own = best.iter().find(|(best, ..)| best.arm == place);
    let none =
        || anyhow!("no replica of {:?} has a champion: choose one with --replica", run.config().arms[place].name);
    Ok(own.ok_or_else(none)?.0.replica)
}

fn as_text(
    (arm, number): &(String, u32),
    births: usize,
    family: &Family<'_>,
    names: &[String],
    value: &dyn Fn(usize, u64) -> Value,
) -> String {
    let (champion, generation) = family.champion();
    let (genes, founders) = (family.genes(names, value), family.founders());
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.as_f64().map_or_else(|| json::whole_or_text(other), rounded),
    };
    let row = |gene: &Inherited| {
        let passed = counted(gene.passed, "generation");
        vec![
            gene.name.clone(),
            shown(&gene.value),
            gene.by.into(),
            thousands(gene.individual as u64),
            thousands(gene.generation),
            passed,
        ]
    };
    let header = ["gene", "value", "made by", "in individual", "in generation", "then unchanged for"];
    let made = Table {
        title: "Where each gene of the champion was made".into(),
        header: header.map(String::from).to_vec(),
        rows: genes.iter().take(ROWS_MAX).map(row).collect(),
    };
    let more = match genes.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("... and {more} more: --json has all\n\n"),
    };
    let founder = |(number, share, genes): &(usize, f64, usize)| {
        vec![thousands(*number as u64), format!("{:.1}", 100.0 * share), genes.to_string()]
    };
    let mut makers: BTreeMap<&str, usize> = BTreeMap::new();
    genes.iter().for_each(|gene| *makers.entry(gene.by).or_default() += 1);
    let makers: Vec<String> = makers.iter().map(|(by, genes)| format!("{by} {genes}")).collect();
    let first = Table {
        title: "The first individuals with the greatest share of it, if all parents give equal parts".into(),
        header: ["individual", "share %", "genes made in it"].map(String::from).to_vec(),
        rows: founders.iter().take(FOUNDERS_MAX).map(founder).collect(),
    };
    format!(
        "The champion of replica {number} of {arm:?} is individual {} of {}, born in generation {}.\nIt has {}, {} of them \
         without parents. Its genes came through {} of these.\nIts {} were made by {}.\n\n{made}\n{more}{first}",
        thousands(champion as u64),
        thousands(births as u64),
        thousands(generation),
        counted(family.ancestors(), "ancestor"),
        founders.len(),
        family.carriers().len() - 1,
        counted(genes.len(), "gene"),
        makers.join(", "),
    )
}

fn as_json(
    (arm, number): &(String, u32),
    births: usize,
    family: &Family<'_>,
    names: &[String],
    value: &dyn Fn(usize, u64) -> Value,
) -> Value {
    let (champion, generation) = family.champion();
    let gene = |gene: Inherited| {
        json!({
            "gene": gene.name, "value": gene.value, "by": gene.by, "individual": gene.individual,
            "generation": gene.generation, "passed": gene.passed,
        })
    };
    json!({
        "arm": arm,
        "replica": number,
        "individuals": births,
        "champion": {"individual": champion, "generation": generation},
        "genes": family.genes(names, value).into_iter().map(gene).collect::<Value>(),
        "carriers": family.carriers(),
        "ancestors": family.members(),
    })
}
