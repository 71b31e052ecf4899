//! Measures what the sources say about how players change from generation to generation, which a run's result does not
//! contain.
//!
//! `cargo run --release -p evoxo-experiments --example generations -- FILE [KEY=VALUE...]`
//!
//! FILE is an experiment file of `invincible` (how far champions look ahead), `nndtf` (which candidate of the improved
//! algorithm wins), `ternary` (what becomes of good and bad repairs) or `rules` (how much the agents' rules differ, and how
//! many are not valid). Its replicas are computed on one thread.

mod candidates;
mod foresight;
mod repairs;
mod variety;

use std::{fs, process::ExitCode};

use evoxo_common::{
    experiment::{Config, Replica},
    report::Table,
    stats::estimate,
};

/// A measurement for one kind: it takes the experiment file and returns a table.
type Measure = fn(&Config) -> Table;

const MEASURES: [(&str, Measure); 4] = [
    ("invincible", foresight::table),
    ("nndtf", candidates::table),
    ("rules", variety::table),
    ("ternary", repairs::table),
];

/// The replicas of each arm with the arm's number, before their first rounds.
fn replicas(config: &Config) -> impl Iterator<Item = (usize, Replica)> {
    let arms = config.arms.iter().enumerate();
    arms.flat_map(move |(arm, settings)| {
        (0..config.replicas).map(move |it| (arm, Replica::start(config, settings, it)))
    })
}

/// Computes a replica's next round. Returns false if the replica was finished.
fn step(replica: &mut Replica) -> bool {
    evoxo_common::local::step(replica).expect("a replica plans tasks that can be computed")
}

/// "97.8 ± 0.6": the mean over replicas with its 95 % interval, or a dash if there are none.
fn figure(replicas: &[f64], decimals: usize) -> String {
    estimate(replicas).map_or("-".into(), |estimate| estimate.text(decimals))
}

#[expect(clippy::disallowed_methods, reason = "the engine has no arguments and no files, but its examples have")]
fn table() -> Result<Table, String> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("give an experiment file, then settings as KEY=VALUE")?;
    let text = fs::read_to_string(&file).map_err(|why| format!("cannot read {file}: {why}"))?;
    let setting = |text: String| match text.split_once('=') {
        Some((key, value)) => Ok((key.into(), value.into())),
        None => Err(format!("{text}: give KEY=VALUE")),
    };
    let settings: Vec<(String, String)> = arguments.map(setting).collect::<Result<_, String>>()?;
    let config = Config::parse(&evoxo_experiments::registry(), &file, &text, &settings);
    let config = config.map_err(|problems| problems.to_string())?;
    let measure = MEASURES.iter().find(|(kind, _)| *kind == config.kind.name);
    let known = MEASURES.map(|(kind, _)| kind).join(", ");
    let (_, measure) = measure.ok_or_else(|| format!("{file} is of {}: give one of {known}", config.kind.name))?;
    Ok(measure(&config))
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a report for the person who runs it")]
fn main() -> ExitCode {
    match table() {
        Ok(table) => {
            print!("{}", table.within(200));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
