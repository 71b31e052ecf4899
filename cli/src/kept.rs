//! A run as it is kept: its `result.json` and the files next to it, or the contents of its store if the run is not finished.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use evoxo_common::{
    card::Card,
    experiment::{Config, Registry, small::whole},
    report::Report,
};
use serde_json::Value;

use crate::{
    champion,
    digests::{self, Line},
    directory, file,
    history::{Best, History, LastRows},
    html::{self, Told, champions},
    results::{Provenance, Results, concluded},
    say::usage,
    stored,
};

/// The longest result that is read, in bytes.
pub(crate) const RESULT_BYTES_MAX: usize = 1 << 28;

/// The path of a `result.json`, given either directly or as the directory that contains it.
fn result_path(given: &Path) -> PathBuf {
    if given.is_dir() { given.join("result.json") } else { given.to_owned() }
}

/// Reads a `result.json`, given directly or as its directory. Returns its path, and its content in the usual form, even if
/// the file is in the small form.
pub(crate) fn read_result(given: &Path) -> anyhow::Result<(PathBuf, Value)> {
    let (path, result) = read_as_it_is(given)?;
    let result = whole(result).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    Ok((path, result))
}

/// Reads a `result.json`, given directly or as its directory. Returns its path, and its content, which may be in the small
/// form.
pub(crate) fn read_as_it_is(given: &Path) -> anyhow::Result<(PathBuf, Value)> {
    let path = result_path(given);
    if given.is_dir() && !path.exists() && directory::stored(given)?.is_some() {
        return Err(usage(format_args!(
            "{} has no result.json, which a run writes when it is finished or stopped by Ctrl-C: the command that started \
            the run continues it",
            given.display()
        )));
    }
    let else_do = if given.is_dir() { ", and give a directory that `evoxo run` or `evoxo fetch` wrote" } else { "" };
    let bytes = file::read(&path, RESULT_BYTES_MAX, else_do)?;
    let result = serde_json::from_slice(&bytes).map_err(|error| {
        anyhow!(
            "{} is not JSON ({error}): give a result.json, or a directory that `evoxo run` or `evoxo fetch` wrote",
            path.display()
        )
    })?;
    Ok((path, result))
}

/// A kept run.
pub(crate) struct Kept {
    pub(crate) config: Config,
    /// The content of `result.json`.
    pub(crate) result: Value,
    /// The run's report, made again by this build.
    pub(crate) report: Report,
    /// The path of `result.json`.
    path: PathBuf,
    /// The results from the store, if those are shown.
    stored: Option<Results>,
}

impl Kept {
    /// Reads a `result.json`, given directly or as its directory. A run that goes on or was killed has none, or an old one:
    /// then its store is read.
    pub(crate) fn read(registry: &Registry, given: &Path) -> anyhow::Result<Self> {
        let path = result_path(given);
        if given.is_dir()
            && !path.exists()
            && let Some(results) = stored::read(registry, given)?
        {
            return Ok(Self::of_store(results, path, Provenance::Fetched));
        }
        let (path, result) = read_result(given)?;
        let name = path.display();
        if given.is_dir()
            && result["state"] == "unfinished"
            && let Some(results) = stored::read(registry, given)?
        {
            let provenance = result["provenance"].clone();
            return Ok(Self::of_store(results, path, Provenance::Known(provenance)));
        }
        let report = registry.report_of_result(&result).map_err(|why| anyhow!("{name}: {why}"))?;
        let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{name}: {why}"))?;
        Ok(Self { config, result, report, path, stored: None })
    }

    /// Whether this file is the result, which must not be overwritten.
    pub(crate) fn is_at(&self, file: &Path) -> bool {
        file::same(&self.path, file)
    }

    fn of_store(results: Results, path: PathBuf, provenance: Provenance) -> Self {
        let result = results.to_json(provenance);
        let (config, report) = (results.config.clone(), results.report.clone());
        Self { config, result, report, path, stored: Some(results) }
    }

    /// The history next to the result.
    pub(crate) fn history(&self) -> anyhow::Result<History> {
        match &self.stored {
            Some(results) => results.history().map(History::of),
            None => History::read(self.directory(), &self.result),
        }
    }

    /// The digests after some rounds, which are kept next to the result; empty if there are none.
    pub(crate) fn digests(&self) -> anyhow::Result<Vec<Line>> {
        let path = digests::path(self.directory());
        match &self.stored {
            Some(results) => digests::parse(&results.digests()?, &path),
            None if self.is_in_directory() && path.exists() => digests::read(self.directory()),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the history is kept next to the result.
    pub(crate) fn has_history(&self) -> bool {
        self.stored.is_some() || self.is_in_directory() && History::path(self.directory()).exists()
    }

    /// Whether the file has the name that it has in the directory of a run.
    fn is_in_directory(&self) -> bool {
        self.path.ends_with("result.json")
    }

    /// The last rows of the history next to the result; `None` for a result without its directory.
    fn rows(&self) -> anyhow::Result<Option<LastRows>> {
        match self.has_history() {
            true => LastRows::of(&self.history()?, &self.config).map(Some),
            false => Ok(None),
        }
    }

    /// The best champion of each arm that has one, with its card, and the card's file if it exists.
    pub(crate) fn best(&self, registry: &Registry) -> anyhow::Result<Vec<(Best, Card, Option<PathBuf>)>> {
        let rows = LastRows::of(&self.history()?, &self.config)?;
        let with_card = |best: Best| -> anyhow::Result<Option<(Best, Card, Option<PathBuf>)>> {
            let Some(card) = self.card(registry, &best)? else { return Ok(None) };
            let file = self.stored.is_none().then(|| best.card(self.directory(), &self.config));
            Ok(Some((best, card, file)))
        };
        rows.best(&self.config).filter_map(|best| with_card(best).transpose()).collect()
    }

    /// The card of a champion, if there is one.
    fn card(&self, registry: &Registry, best: &Best) -> anyhow::Result<Option<Card>> {
        if let Some(results) = &self.stored {
            return Ok(results.card(best));
        }
        let file = best.card(self.directory(), &self.config);
        // Some kinds leave no champions, and a result without its directory has none next to it.
        match file.parent().is_some_and(Path::is_dir) {
            true if !file.exists() => {
                Err(anyhow!("{} is missing: the command that wrote its directory writes it again", file.display()))
            }
            true => champion::read(registry, &file).map(Some),
            false => Ok(None),
        }
    }

    /// The run's conclusion, in a sentence.
    pub(crate) fn conclusion(&self) -> String {
        concluded(&self.config, &self.result, &self.report)
    }

    /// The report as one HTML file.
    pub(crate) fn html(&self, registry: &Registry) -> anyhow::Result<String> {
        let rows = self.rows()?;
        let shown = rows.as_ref().map(|rows| champions(rows, &self.config, |best| self.card(registry, best)));
        let (champions, more_champions) = shown.transpose()?.unwrap_or_default();
        Ok(html::document(&Told {
            name: &self.name(),
            config: &self.config,
            result: &self.result,
            report: &self.report,
            conclusion: self.conclusion(),
            champions,
            more_champions,
        }))
    }

    /// The name under which people know the run: its directory's name, or the file's if that is not `result.json`.
    pub(crate) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem != "result" {
            return stem.strip_prefix("result-").unwrap_or(&stem).to_owned();
        }
        directory::name(self.directory())
    }

    /// The directory that `result.json` is in.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}
