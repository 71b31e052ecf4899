//! The history of a run, `history.csv` of its directory: the last row of each replica, and which replica is best.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use evoxo_common::{
    digest::Digest,
    experiment::{Config, champion_stem},
};
use serde_json::Value;

use crate::file;

/// The longest history that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;

/// The key of `result.json` with the SHA-256 of the history, which is in a file of its own.
pub(crate) const HISTORY_SHA256: &str = "history_sha256";

/// The last row of each replica that has one, for each arm.
pub(crate) struct LastRows(Vec<Vec<(u32, Vec<f64>)>>);

/// The best replica of an arm.
pub(crate) struct Best {
    /// The arm's index.
    pub(crate) arm: usize,
    pub(crate) replica: u32,
    /// Replicas that have a row.
    pub(crate) of: usize,
    /// The index, in the kind's columns, of what decides which is best.
    pub(crate) column: usize,
    /// Its value there.
    pub(crate) value: f64,
}

/// All rows of a run, as CSV.
pub(crate) struct History {
    /// Where they are, for messages.
    path: PathBuf,
    csv: Vec<u8>,
}

impl History {
    /// The file in a run's directory.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join("history.csv")
    }

    /// Reads the one that belongs to the `result.json` in this directory. Results of earlier builds do not say which that is.
    pub(crate) fn read(directory: &Path, result: &Value) -> anyhow::Result<Self> {
        let path = Self::path(directory);
        let history = Self { csv: file::read(&path, FILE_BYTES_MAX, "")?, path };
        match result[HISTORY_SHA256].as_str() {
            Some(sha256) if sha256 != Digest::of(&history.csv).to_string() => Err(history.wrong()),
            _ => Ok(history),
        }
    }

    /// What will be in the file.
    pub(crate) fn of(csv: Vec<u8>) -> Self {
        Self { path: Self::path(Path::new("")), csv }
    }

    fn wrong(&self) -> anyhow::Error {
        anyhow!("{} is not the history of this run: `run` or `fetch` writes it again", self.path.display())
    }

    /// Hands on each row with its arm's index and its replica.
    pub(crate) fn each_row(&self, config: &Config, mut take: impl FnMut(usize, u32, Vec<f64>)) -> anyhow::Result<()> {
        let wrong = || self.wrong();
        let mut reader = csv::Reader::from_reader(self.csv.as_slice());
        for record in reader.records() {
            let record = record.map_err(|_| wrong())?;
            let mut fields = record.iter();
            let arm =
                fields.next().and_then(|name| config.arms.iter().position(|arm| arm.name == name)).ok_or_else(wrong)?;
            let replica: u32 = fields.next().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
            let row: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
            if row.len() != config.kind.columns.len() {
                return Err(wrong());
            }
            take(arm, replica, row);
        }
        Ok(())
    }
}

impl LastRows {
    /// Those of a history.
    pub(crate) fn of(history: &History, config: &Config) -> anyhow::Result<Self> {
        let mut last: Vec<Vec<(u32, Vec<f64>)>> = vec![Vec::new(); config.arms.len()];
        history.each_row(config, |arm, replica, row| match last[arm].last_mut() {
            Some((of, there)) if *of == replica => *there = row,
            _ => last[arm].push((replica, row)),
        })?;
        Ok(Self(last))
    }

    /// What says how good each arm's replicas are, of those that have a solution: see [`evoxo_common::conclusion::last_values`].
    pub(crate) fn values(&self, config: &Config) -> Vec<Vec<f64>> {
        let column = config.deciding_column();
        let of_arm =
            |arm: &Vec<(u32, Vec<f64>)>| arm.iter().filter_map(|(_, row)| config.kind.value(row, column)).collect();
        self.0.iter().map(of_arm).collect()
    }

    /// The best replica of each arm that has a solution; of equals the first.
    pub(crate) fn best<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = Best> + 'a {
        self.0.iter().enumerate().filter_map(move |(arm, replicas)| {
            let better = |one: &(u32, Vec<f64>), other: &(u32, Vec<f64>)| compare(config, arm, &one.1, &other.1);
            let (replica, row) = replicas.iter().rev().min_by(|one, other| better(one, other))?;
            let column = config.kind.deciding_column(&config.arms[arm].settings);
            Some(Best { arm, replica: *replica, of: replicas.len(), column, value: config.kind.value(row, column)? })
        })
    }
}

impl Best {
    /// Its card in a run's directory, whether it is there or not.
    pub(crate) fn card(&self, directory: &Path, config: &Config) -> std::path::PathBuf {
        directory.join("champions").join(champion_stem(config, self.arm, self.replica) + ".json")
    }
}

/// Less is better.
fn compare(config: &Config, arm: usize, one: &[f64], other: &[f64]) -> Ordering {
    match config.kind.ranking {
        Some(ranking) => (ranking.compare)(&config.arms[arm].settings, one, other),
        None => other[config.kind.primary_metric].total_cmp(&one[config.kind.primary_metric]),
    }
}
