//! A run's directory: results for people, and the store with its checkpoints.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use evoxo_common::{
    experiment::{Change, Config, Registry, ScreenFiles, screen_files},
    task::ProgramId,
};
use serde_json::Value;

use crate::{
    json, plots,
    results::{REPORT, Results, csv_text},
    say::{notice, usage},
};

/// Files and directories that this program creates.
const CONFIG: &str = "config.toml";
const STORE: &str = "store";
const LOG: &str = "cluster.log";
const RESULT: &str = "result.json";
/// Extension of files that are being written.
const STAGED: &str = "new";

/// A directory that is empty or contains this run.
pub(crate) struct Directory {
    path: PathBuf,
    /// Whether the run there has a shorter configuration.
    is_shorter: bool,
}

impl Directory {
    /// Creates or continues the directory of a run. A directory with other content is refused; if `may_grow`, one whose run
    /// ends earlier is not.
    pub(crate) fn open(registry: &Registry, path: &Path, config: &Config, may_grow: bool) -> anyhow::Result<Self> {
        let name = path.display();
        if path.to_str().is_none_or(|text| text.contains("://")) {
            return Err(usage(format_args!("{name} cannot be a directory for results: choose another with --out")));
        }
        fs::create_dir_all(path)
            .with_context(|| format!("cannot make the directory {name}: choose another with --out"))?;
        let entries = fs::read_dir(path).with_context(|| format!("cannot read the directory {name}"))?;
        // The configuration, which is written first, may be incomplete.
        let staged = path.join(CONFIG).with_extension(STAGED);
        let mut whole = entries.flatten().filter(|entry| entry.path() != staged);
        let mut directory = Self { path: path.to_owned(), is_shorter: false };
        if whole.next().is_none() {
            // Written before anything else: if this process ends now, the directory belongs to this run.
            directory.write_config(config)?;
        } else {
            let Ok(text) = fs::read_to_string(path.join(CONFIG)) else {
                bail!("{name} contains other files: choose an empty directory with --out");
            };
            match Config::parse(registry, &path.join(CONFIG).display().to_string(), &text, &[]) {
                Err(problems) => bail!("{name} does not contain a run of evoxo: {problems}"),
                Ok(there) => match config.change_from(&there) {
                    Change::None => {}
                    Change::Longer if may_grow => directory.is_shorter = true,
                    Change::Longer => return Err(other_settings(path, config, &there, None)),
                    Change::Other(what) => return Err(other_settings(path, config, &there, what)),
                },
            }
        }
        Ok(directory)
    }

    /// Whether the run there has a configuration that ends earlier: see [`crate::longer`].
    pub(crate) fn is_shorter(&self) -> bool {
        self.is_shorter
    }

    /// The name of the run whose checkpoints are there, which may differ from the experiment file's present name.
    pub(crate) fn run(&self) -> Option<String> {
        stored(&self.path).map(|(_, run)| run)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the checkpoints.
    pub(crate) fn store(&self) -> String {
        self.path.join(STORE).display().to_string()
    }

    /// The log of the local cluster's processes.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Writes the resolved configuration, which marks the directory as this run's.
    pub(crate) fn write_config(&self, config: &Config) -> anyhow::Result<()> {
        self.write(CONFIG, config.to_toml())
    }

    /// The provenance in `result.json`, if there is a complete one.
    pub(crate) fn provenance(&self) -> Option<Value> {
        let bytes = fs::read(self.path.join(RESULT)).ok()?;
        let result: Value = serde_json::from_slice(&bytes).ok()?;
        result.get("provenance").filter(|provenance| provenance.is_object()).cloned()
    }

    /// Writes all files of a run's results, with `result` as `result.json`. A file that exists is not touched, unless
    /// it differs: then it is damaged or out of date.
    pub(crate) fn write_results(&self, results: &Results, result: &Value) -> anyhow::Result<()> {
        self.write_config(&results.config)?;
        self.write("history.csv", results.history()?)?;
        self.write_champions(results)?;
        let ScreenFiles { pictures, effects } = screen_files(&results.config, &results.report.json);
        for (name, svg) in plots::pictures(&results.report).chain(pictures) {
            self.write(&format!("plots/{name}.svg"), svg)?;
        }
        if !effects.is_empty() {
            self.write("effects.csv", csv_text(&effects)?)?;
        }
        results.sheets()?.into_iter().try_for_each(|(name, bytes)| self.write(&name, bytes))?;
        self.write(REPORT, results.html(&name(&self.path), result)?)?;
        self.write(RESULT, json::text(result))
    }

    /// Writes the champions' cards.
    pub(crate) fn write_champions(&self, results: &Results) -> anyhow::Result<()> {
        results.champions().try_for_each(|(name, bytes)| self.write(&format!("champions/{name}"), bytes))
    }

    /// Writes the cards of whole populations, and says which arms have none.
    pub(crate) fn write_populations(&self, results: &Results) -> anyhow::Result<()> {
        let without = results.without_population().iter().map(|arm| format!("{arm:?}")).collect::<Vec<_>>().join(", ");
        if !without.is_empty() {
            notice(format_args!(
                "no population of {without}: their replicas have at most one player, which is in champions/"
            ));
        }
        results.populations().try_for_each(|(name, bytes)| self.write(&format!("populations/{name}"), bytes))
    }

    /// Writes a file whole or not at all, unless it is there as it should be.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let path = self.path.join(name);
        let content = content.as_ref();
        let length = fs::metadata(&path).map_or(0, |file| file.len());
        if length == content.len() as u64 && fs::read(&path).is_ok_and(|there| there == content) {
            return Ok(());
        }
        let unwritable = || format!("cannot write {}: is the disk full, or the directory read-only?", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(unwritable)?;
        }
        let staged = path.with_extension(STAGED);
        fs::write(&staged, content).with_context(unwritable)?;
        if name == CONFIG {
            // As durable as the store, which is of no use without it. The same command writes all other files again.
            File::open(&staged).and_then(|file| file.sync_all()).with_context(unwritable)?;
        }
        fs::rename(&staged, &path).with_context(unwritable)
    }
}

/// The store in a run's directory, and the name of the only run in it.
pub(crate) fn stored(directory: &Path) -> Option<(String, String)> {
    let store = directory.join(STORE);
    let mut runs = fs::read_dir(store.join("runs")).ok()?.flatten();
    let only = runs.next()?.file_name().into_string().ok()?;
    runs.next().is_none().then(|| (store.display().to_string(), only))
}

/// What people call the run in a directory: the directory's name.
pub(crate) fn name(directory: &Path) -> String {
    let name = directory.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "run".into())
}

/// Why a directory that contains this run is refused.
fn other_settings(path: &Path, config: &Config, there: &Config, what: Option<String>) -> anyhow::Error {
    let name = path.display();
    let same_name =
        |program: &ProgramId| config.programs().iter().any(|other| other.name == program.name && other != program);
    if let Some(program) = there.programs().iter().find(|program| same_name(program)) {
        return usage(format_args!(
            "{name} contains a run with another version of the program {}: choose another directory with --out",
            program.name
        ));
    }
    let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
    usage(format_args!(
        "{name} contains a run with other settings{what}: choose another directory with --out, or use the settings of {name}/{CONFIG}"
    ))
}
