//! `digests.csv` in a run's directory: the digests of each replica after some of its rounds ([`Link`]).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use evoxo_common::experiment::{Link, Replica, ResultDigest};

use crate::file;

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;

const COLUMNS: [&str; 5] = ["arm", "replica", "round", "rows", "digest"];

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) arm: String,
    pub(crate) replica: u32,
    pub(crate) link: Link,
}

/// The path of the file in a run's directory.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join("digests.csv")
}

/// The content of the file.
pub(crate) fn write(replicas: &[Replica]) -> anyhow::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(COLUMNS)?;
    for replica in replicas {
        let index = replica.index().to_string();
        for Link { round, rows, digest } in replica.links() {
            let [round, rows] = [round, rows].map(u64::to_string);
            table.write_record([replica.arm(), &index, &round, &rows, &digest.to_string()])?;
        }
    }
    table.into_inner().context("cannot write the digests")
}

/// All lines of the file in a run's directory.
pub(crate) fn read(directory: &Path) -> anyhow::Result<Vec<Line>> {
    let path = path(directory);
    let csv = file::read(&path, FILE_BYTES_MAX, "")?;
    parse(&csv, &path)
}

/// All lines of a file with this content. A message names this path.
pub(crate) fn parse(csv: &[u8], path: &Path) -> anyhow::Result<Vec<Line>> {
    let wrong = || anyhow!("{} is damaged: `run` or `fetch` writes it again", path.display());
    let mut reader = csv::Reader::from_reader(csv);
    let line = |record: csv::StringRecord| {
        let (mut fields, number) = (record.iter(), |text: &str| text.parse::<u64>().ok());
        let (arm, replica) = (fields.next()?.to_owned(), number(fields.next()?)?.try_into().ok()?);
        let (round, rows) = (number(fields.next()?)?, number(fields.next()?)?);
        let link = Link { round, rows, digest: ResultDigest::parse(fields.next()?)? };
        Some(Line { arm, replica, link })
    };
    if reader.headers().map_err(|_| wrong())? != COLUMNS.as_slice() {
        return Err(wrong());
    }
    reader.records().map(|record| record.ok().and_then(line).ok_or_else(wrong)).collect()
}
