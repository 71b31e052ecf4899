//! A run's history, `history.csv` in its directory: the last row of each replica, and which replica is best.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use evoxo_common::{
    digest::Digest,
    experiment::{Config, champion_stem},
    math::order,
};
use serde_json::Value;

use crate::file;

/// The longest history that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;

/// The key of `result.json` that holds the SHA-256 of the history, which is a separate file.
pub(crate) const HISTORY_SHA256: &str = "history_sha256";

/// For each arm, the last row of each replica that has one, with the values that rank the replica.
pub(crate) struct LastRows(Vec<Vec<Last>>);

/// The last row of a replica.
struct Last {
    replica: u32,
    row: Vec<f64>,
    /// The values of the ranking column in all rows of the replica.
    values: Vec<f64>,
}

/// The best replica of an arm.
pub(crate) struct Best {
    /// The arm's index.
    pub(crate) arm: usize,
    pub(crate) replica: u32,
    /// The number of replicas that have a row.
    pub(crate) of: usize,
    /// The index, among the kind's columns, of the column that ranks replicas.
    pub(crate) column: usize,
    /// The replica's value in that column.
    pub(crate) value: f64,
}

/// All rows of a run, as CSV.
pub(crate) struct History {
    /// The path of the file, for messages.
    path: PathBuf,
    csv: Vec<u8>,
}

impl History {
    /// The path of the file in a run's directory.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join("history.csv")
    }

    /// Reads the history that belongs to the `result.json` in this directory.
    pub(crate) fn read(directory: &Path, result: &Value) -> anyhow::Result<Self> {
        let path = Self::path(directory);
        let history = Self { csv: file::read(&path, FILE_BYTES_MAX, "")?, path };
        let belongs = result[HISTORY_SHA256] == Digest::of(&history.csv).to_string();
        if belongs { Ok(history) } else { Err(history.wrong()) }
    }

    /// A history with this content, which may not be written yet.
    pub(crate) fn of(csv: Vec<u8>) -> Self {
        Self { path: Self::path(Path::new("")), csv }
    }

    fn wrong(&self) -> anyhow::Error {
        anyhow!("{} is not the history of this run: `run` or `fetch` writes it again", self.path.display())
    }

    /// Calls `take` with each row, its arm's index and its replica.
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
    /// Collects the last rows of a history.
    pub(crate) fn of(history: &History, config: &Config) -> anyhow::Result<Self> {
        let mut last: Vec<Vec<Last>> = config.arms.iter().map(|_| Vec::new()).collect();
        history.each_row(config, |arm, replica, row| {
            let value = row[config.kind.deciding_column(&config.arms[arm].settings)];
            match last[arm].last_mut() {
                Some(there) if there.replica == replica => {
                    there.row = row;
                    there.values.push(value);
                }
                _ => last[arm].push(Last { replica, row, values: vec![value] }),
            }
        })?;
        Ok(Self(last))
    }

    /// The best replica of each arm that has a solution. If several are equal, the last of them.
    pub(crate) fn best<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = Best> + 'a {
        self.0.iter().enumerate().filter_map(move |(arm, replicas)| {
            let best = best_of(config, arm, replicas)?;
            let column = config.kind.deciding_column(&config.arms[arm].settings);
            let value = best.figure(config, column)?;
            Some(Best { arm, replica: best.replica, of: replicas.len(), column, value })
        })
    }

    /// The arm with the best replica of all, if the same column ranks the replicas of all arms.
    pub(crate) fn best_arm(&self, config: &Config) -> Option<usize> {
        let column = |arm: usize| config.kind.deciding_column(&config.arms[arm].settings);
        let bests =
            self.0.iter().enumerate().filter_map(|(arm, replicas)| Some((arm, best_of(config, arm, replicas)?)));
        let best = bests.min_by(|(arm, one), (_, other)| compare(config, *arm, one, other))?;
        (0..config.arms.len()).all(|arm| column(arm) == column(best.0)).then_some(best.0)
    }
}

/// The best replica of an arm. If several are equal, the last of them.
fn best_of<'a>(config: &Config, arm: usize, replicas: &'a [Last]) -> Option<&'a Last> {
    replicas.iter().rev().min_by(|one, other| compare(config, arm, one, other))
}

impl Best {
    /// The path of its card in a run's directory, whether or not the card exists.
    pub(crate) fn card(&self, directory: &Path, config: &Config) -> std::path::PathBuf {
        directory.join("champions").join(champion_stem(config, self.arm, self.replica) + ".json")
    }
}

impl Last {
    fn figure(&self, config: &Config, column: usize) -> Option<f64> {
        config.kind.figure_of(column, &self.row, &self.values)
    }
}

/// The better replica is `Less`.
fn compare(config: &Config, arm: usize, one: &Last, other: &Last) -> Ordering {
    let figure = |last: &Last| last.figure(config, config.kind.primary_metric).unwrap_or(f64::NEG_INFINITY);
    match config.kind.ranking {
        Some(ranking) => (ranking.compare)(&config.arms[arm].settings, &one.row, &other.row),
        None => order(figure(other), figure(one)),
    }
}
