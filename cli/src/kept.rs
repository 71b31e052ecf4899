//! A run as it is kept: its `result.json`, and what lies beside it in the run's directory.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use evoxo_common::{
    conclusion,
    experiment::{Config, Registry},
    report::Report,
};
use serde_json::Value;

use crate::{
    champion, file,
    history::LastRows,
    html::{self, CHAMPIONS_MAX, Champion, Told},
    say::notice,
};

/// The longest result that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;

/// A kept run.
pub(crate) struct Kept {
    pub(crate) config: Config,
    /// The content of `result.json`.
    pub(crate) result: Value,
    /// What is told of it, made anew.
    pub(crate) report: Report,
    /// The path of `result.json`.
    path: PathBuf,
}

impl Kept {
    /// Reads a `result.json`, or the directory that it is in.
    pub(crate) fn read(registry: &Registry, given: &Path) -> anyhow::Result<Self> {
        let path = if given.is_dir() { given.join("result.json") } else { given.to_owned() };
        let name = path.display();
        let bytes = file::read(&path, FILE_BYTES_MAX, "")?;
        let result: Value = serde_json::from_slice(&bytes).map_err(|error| anyhow!("{name} is not JSON: {error}"))?;
        let report = registry.report_of_result(&result).map_err(|why| anyhow!("{name}: {why}"))?;
        let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{name}: {why}"))?;
        Ok(Self { config, result, report, path })
    }

    /// The last rows of the history beside the result. A result alone has none.
    fn rows(&self) -> anyhow::Result<Option<LastRows>> {
        let directory = self.directory();
        match self.path.ends_with("result.json") && directory.join("history.csv").exists() {
            true => LastRows::read(directory, &self.config).map(Some),
            false => Ok(None),
        }
    }

    /// What came of it, in a sentence.
    pub(crate) fn conclusion(&self) -> String {
        let rows = self.rows().unwrap_or_else(|why| {
            notice(format_args!("{why:#}; until then the first sentence is the one that was written down"));
            None
        });
        let values = rows.map(|rows| rows.values(&self.config));
        conclusion::of_result(&self.config, &self.result, values.as_deref())
    }

    /// The report as one HTML file.
    pub(crate) fn html(&self, registry: &Registry) -> anyhow::Result<String> {
        let rows = self.rows()?;
        let (mut champions, mut more_champions) = (Vec::new(), 0);
        for best in rows.iter().flat_map(|rows| rows.best(&self.config)) {
            let card = best.card(self.directory(), &self.config);
            if !card.exists() {
                continue;
            }
            if champions.len() == CHAMPIONS_MAX {
                more_champions += 1;
            } else {
                let (arm, card) = (self.config.arms[best.arm].name.clone(), champion::read(registry, &card)?);
                champions.push(Champion { arm, replica: best.replica, of: best.of, value: best.value, card });
            }
        }
        Ok(html::document(&Told {
            name: &self.name(),
            config: &self.config,
            result: &self.result,
            report: &self.report,
            rows: rows.as_ref(),
            champions,
            more_champions,
        }))
    }

    /// What people call it: its directory, or the file if it has a name of its own.
    pub(crate) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem != "result" {
            return stem.strip_prefix("result-").unwrap_or(&stem).to_owned();
        }
        let whole = self.path.canonicalize().ok();
        let directory = whole.and_then(|path| Some(path.parent()?.file_name()?.to_string_lossy().into_owned()));
        directory.unwrap_or(stem)
    }

    /// The directory that `result.json` is in.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}
