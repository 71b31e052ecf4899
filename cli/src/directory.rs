//! A run's directory: results for people, and the store with the run's checkpoints.

use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use evoxo_common::{
    experiment::{Change, Config, Registry, ScreenFiles, screen_files},
    task::ProgramId,
};
use serde_json::Value;

use crate::{
    file::{self, STAGED},
    json, plots,
    results::{REPORT, Results, csv_text},
    say::{notice, usage},
};

/// Files and directories that this program creates.
pub(crate) const CONFIG: &str = "config.toml";
const STORE: &str = "store";
const LOG: &str = "cluster.log";
const RESULT: &str = "result.json";

/// A directory that is empty or contains this run.
pub(crate) struct Directory {
    path: PathBuf,
    /// Whether the run in the directory has a configuration that ends earlier.
    is_shorter: bool,
    /// Whether the run in the directory has other settings and nothing of it has been computed.
    is_void: bool,
}

impl Directory {
    /// Creates a run's directory, or continues the run in it. Refuses a directory with other content. With `may_change`,
    /// accepts a run that ends earlier, and a run of which nothing was computed.
    pub(crate) fn open(registry: &Registry, path: &Path, config: &Config, may_change: bool) -> anyhow::Result<Self> {
        let name = path.display();
        let unfit = match path.to_str() {
            None => Some("its name is not UTF-8"),
            Some(text) => text.contains("://").then_some("it is an address"),
        };
        if let Some(why) = unfit {
            return Err(usage(format_args!(
                "{name} cannot be used as a directory for results ({why}): choose another with --out"
            )));
        }
        fs::create_dir_all(path)
            .with_context(|| format!("cannot make the directory {name}: choose another with --out"))?;
        let entries = fs::read_dir(path).with_context(|| format!("cannot read the directory {name}"))?;
        // The configuration is written first, so it may be incomplete.
        let mut whole = entries.flatten().filter(|entry| !is_staged_config(&entry.file_name().to_string_lossy()));
        let mut directory = Self { path: path.to_owned(), is_shorter: false, is_void: false };
        if whole.next().is_none() {
            // The configuration is written before anything else: if this process ends now, the directory already belongs to
            // this run.
            directory.write_config(config)?;
        } else {
            let Ok(text) = fs::read_to_string(path.join(CONFIG)) else {
                bail!("{name} contains other files: choose an empty directory with --out");
            };
            match Config::parse(registry, &path.join(CONFIG).display().to_string(), &text, &[]) {
                Err(problems) => bail!("{name} does not contain a run of evoxo: {problems}"),
                Ok(there) => match config.change_from(&there) {
                    Change::None => {}
                    Change::Longer(_) if may_change => directory.is_shorter = true,
                    Change::Other(_) if may_change && nothing_is_computed(path) => directory.is_void = true,
                    Change::Longer(what) | Change::Other(what) => {
                        return Err(other_settings(path, config, &there, &what));
                    }
                },
            }
        }
        Ok(directory)
    }

    /// Whether the run in the directory has a configuration that ends earlier; see [`crate::longer`].
    pub(crate) fn is_shorter(&self) -> bool {
        self.is_shorter
    }

    /// Whether the run in the directory has other settings and no results, so another run may replace it; see
    /// [`crate::longer`].
    pub(crate) fn is_void(&self) -> bool {
        self.is_void && nothing_is_computed(&self.path)
    }

    /// The name of the run whose checkpoints are in the store. It may differ from the experiment file's present name.
    pub(crate) fn run(&self) -> anyhow::Result<Option<String>> {
        Ok(stored(&self.path)?.map(|(_, run)| run))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the store with the checkpoints.
    pub(crate) fn store(&self) -> String {
        self.path.join(STORE).display().to_string()
    }

    /// The log file of the local cluster's processes.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Writes the resolved configuration, which marks the directory as this run's.
    pub(crate) fn write_config(&self, config: &Config) -> anyhow::Result<()> {
        self.write(CONFIG, config.to_toml())
    }

    /// The provenance in `result.json`, if the file is complete.
    pub(crate) fn provenance(&self) -> Option<Value> {
        self.result()?.get("provenance").filter(|provenance| provenance.is_object()).cloned()
    }

    fn result(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.path.join(RESULT)).ok()?).ok()
    }

    /// Refuses to replace the results of a finished run by those of an unfinished one.
    pub(crate) fn keep_finished(&self, results: &Results) -> anyhow::Result<()> {
        if results.state() == "unfinished" && self.result().is_some_and(|result| result["digest"].is_string()) {
            return Err(usage(format_args!(
                "{} contains the results of a finished run, and this one is not finished: choose another directory with --out",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Writes all files of a run's results, with `result` as `result.json`. An existing file is written again only if it
    /// differs, which means that it is damaged or out of date.
    pub(crate) fn write_results(&self, results: &Results, result: &Value) -> anyhow::Result<()> {
        self.write_files(results, result)?;
        self.write_result(result)
    }

    /// Writes `result.json`, which comes last: it says that the other files are complete.
    pub(crate) fn write_result(&self, result: &Value) -> anyhow::Result<()> {
        self.write(RESULT, json::text(result))
    }

    /// Writes all files of a run's results but `result.json`, with what this file will contain.
    pub(crate) fn write_files(&self, results: &Results, result: &Value) -> anyhow::Result<()> {
        self.write_config(&results.config)?;
        self.write("history.csv", results.history()?)?;
        self.write("digests.csv", results.digests()?)?;
        self.write_champions(results)?;
        self.remove_others("champions", results, results.champions())?;
        self.remove_others("populations", results, results.populations())?;
        let ScreenFiles { pictures, effects } = screen_files(&results.config, &results.report.json);
        for (name, svg) in plots::pictures(&results.report).chain(pictures) {
            self.write(&format!("plots/{name}.svg"), svg)?;
        }
        if !effects.is_empty() {
            self.write("effects.csv", csv_text(&effects)?)?;
        }
        results.sheets()?.into_iter().try_for_each(|(name, bytes)| self.write(&name, bytes))?;
        self.write(REPORT, results.html(&name(&self.path), result)?)
    }

    /// Writes the champions' cards.
    pub(crate) fn write_champions(&self, results: &Results) -> anyhow::Result<()> {
        results.champions().try_for_each(|(name, bytes)| self.write(&format!("champions/{name}"), bytes))
    }

    /// Removes files with the names of this run's cards that are not among these cards. They belong to replicas or
    /// generations that the results no longer have.
    fn remove_others(
        &self,
        place: &str,
        results: &Results,
        cards: impl Iterator<Item = (String, Vec<u8>)>,
    ) -> anyhow::Result<()> {
        let path = self.path.join(place);
        let Ok(entries) = fs::read_dir(&path) else { return Ok(()) };
        let mut others: BTreeSet<PathBuf> = entries
            .flatten()
            .filter(|entry| results.could_be_card(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        for (name, bytes) in cards {
            let file = path.join(name);
            if fs::read(&file).is_ok_and(|there| there == bytes) {
                others.remove(&file);
            }
        }
        others.iter().try_for_each(|file| {
            fs::remove_file(file).with_context(|| format!("cannot remove {}: remove it by hand", file.display()))
        })
    }

    /// Writes the cards of whole populations, and says which arms have none.
    pub(crate) fn write_populations(&self, results: &Results) -> anyhow::Result<()> {
        let without = results.without_population().iter().map(|arm| format!("{arm:?}")).collect::<Vec<_>>().join(", ");
        if !without.is_empty() {
            notice(format_args!(
                "there is no population for {without}: their replicas have at most one player, which is in champions/"
            ));
        }
        results.populations().try_for_each(|(name, bytes)| self.write(&format!("populations/{name}"), bytes))
    }

    /// Writes a file completely or not at all; does nothing if the file already has this content.
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
        // The configuration must be as durable as the store, which is useless without it. The same command would write all
        // other files again.
        file::write(&path, content, name == CONFIG).with_context(unwritable)
    }
}

/// Whether this is the name of a configuration that was being written.
fn is_staged_config(name: &str) -> bool {
    let behind = Path::new(CONFIG).with_extension(STAGED);
    behind.to_str().and_then(|begin| name.strip_prefix(begin)).is_some_and(|id| id.parse::<u32>().is_ok())
}

/// The path of the store in a run's directory, and the name of the only run in the store. `None` if there is no such store;
/// an error if the store cannot be read.
pub(crate) fn stored(directory: &Path) -> anyhow::Result<Option<(String, String)>> {
    let store = directory.join(STORE);
    let runs = store.join("runs");
    let mut runs = match fs::read_dir(&runs) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("cannot read the directory {}", runs.display()))?.flatten(),
    };
    let only = runs.next().and_then(|run| run.file_name().into_string().ok());
    Ok(only.filter(|_| runs.next().is_none()).map(|only| (store.display().to_string(), only)))
}

/// Whether nothing of a run was computed: its directory has no results, its store has no checkpoint and no finished replica,
/// and there is no store that [`crate::longer`] has put aside.
pub(crate) fn nothing_is_computed(directory: &Path) -> bool {
    let is_empty = |path: PathBuf| !fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    let has_none = |store: &str| {
        let runs = fs::read_dir(directory.join(store).join("runs"));
        let mut runs = runs.into_iter().flatten().flatten().map(|run| run.path());
        let objects = ["checkpoint", "checkpoint-copy", "finished", "finished-copy"];
        runs.all(|run| objects.iter().all(|objects| is_empty(run.join(objects))))
    };
    [RESULT, "history.csv"].iter().all(|name| !directory.join(name).exists())
        && has_none(STORE)
        && !directory.join(STORE).with_extension("before").exists()
}

/// The name under which people know the run in a directory: the directory's name.
pub(crate) fn name(directory: &Path) -> String {
    let name = directory.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "run".into())
}

/// Describes how the run in the directory differs: "another version of the program rosen", "other settings (seed is 1 there,
/// and 2 here)".
pub(crate) fn differs(config: &Config, there: &Config, what: &str) -> String {
    let same_name =
        |program: &ProgramId| config.programs().iter().any(|other| other.name == program.name && other != program);
    match there.programs().iter().find(|program| same_name(program)) {
        Some(program) => format!("another version of the program {}", program.name),
        None => format!("other settings ({what})"),
    }
}

/// The error that refuses a directory because of the run in it.
fn other_settings(path: &Path, config: &Config, there: &Config, what: &str) -> anyhow::Error {
    let (name, how) = (path.display(), differs(config, there, what));
    let or_use = if how.starts_with("other settings") {
        format!(", or use the settings of {name}/{CONFIG}")
    } else {
        String::new()
    };
    usage(format_args!("{name} contains a run with {how}: choose another directory with --out{or_use}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_results_do_not_replace_finished_ones() {
        let registry = evoxo_experiments::registry();
        let text = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 1\n";
        let config = Config::parse(&registry, "a file", text, &[]).unwrap();
        let desk = tempfile::tempdir().unwrap();
        let directory = Directory::open(&registry, desk.path(), &config, false).unwrap();
        let unfinished = Results::of(config, Vec::new(), Vec::new(), None);
        assert!(directory.keep_finished(&unfinished).is_ok(), "there is no earlier result");
        for (digest, refused) in [(Value::Null, false), ("77".into(), true)] {
            directory.write(RESULT, serde_json::json!({ "digest": digest }).to_string()).unwrap();
            assert_eq!(directory.keep_finished(&unfinished).is_err(), refused, "{digest}");
        }
    }

    /// A store that cannot be read must not pass for an empty one.
    #[test]
    fn an_unreadable_store_is_an_error() {
        let desk = tempfile::tempdir().unwrap();
        assert_eq!(stored(desk.path()).unwrap(), None);
        fs::create_dir(desk.path().join(STORE)).unwrap();
        assert_eq!(stored(desk.path()).unwrap(), None);
        fs::write(desk.path().join(STORE).join("runs"), "").unwrap();
        let why = format!("{:#}", stored(desk.path()).unwrap_err());
        assert!(why.contains("cannot read the directory") && why.contains("store/runs"), "{why}");
    }

    #[test]
    fn the_message_names_the_differences() {
        let registry = evoxo_experiments::registry();
        let config = |text: &str| Config::parse(&registry, "a file", text, &[]).unwrap();
        let text = "experiment = \"dispatch\"\nseed = 1\nreplicas = 1\n[settings]\nrounds = 2\n[arms.a]\n[arms.b]\n";
        let desk = tempfile::tempdir().unwrap();
        let open = |text: &str| Directory::open(&registry, desk.path(), &config(text), false).map(drop);
        open(text).unwrap();
        for (from, to, what) in [
            ("seed = 1", "seed = 2", "(seed is 1 there, and 2 here)"),
            ("[arms.b]", "", "(arm \"b\" is there, and not here)"),
            ("[arms.b]", "[arms.b]\n[arms.c]", "(arm \"c\" is here, and not there)"),
            ("[arms.a]\n[arms.b]", "[arms.b]\n[arms.a]", "(the arms have another order there)"),
            ("rounds = 2", "rounds = 3", "(rounds is 2 there, and 3 here)"),
            (text, "experiment = \"menace\"", "(experiment is \"dispatch\" there, and \"menace\" here)"),
        ] {
            let why = open(&text.replace(from, to)).unwrap_err().to_string();
            assert!(why.contains(&format!("contains a run with other settings {what}: choose")), "{why}");
        }
    }

    #[test]
    fn an_unusable_directory_is_rejected_with_the_reason() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
        let registry = evoxo_experiments::registry();
        let config = Config::parse(&registry, "a file", "experiment = \"dispatch\"\n", &[]).unwrap();
        for (name, why) in [(&b"out/\xfe"[..], "(its name is not UTF-8)"), (b"s3://bucket/a", "(it is an address)")] {
            let refused = Directory::open(&registry, Path::new(OsStr::from_bytes(name)), &config, false).map(drop);
            assert!(refused.unwrap_err().to_string().contains(why));
        }
    }

    #[test]
    fn two_processes_write_to_different_files() {
        let desk = tempfile::tempdir().unwrap();
        let directory = Directory { path: desk.path().to_owned(), is_shorter: false, is_void: false };
        // If another process is writing the same file, this one cannot write it.
        for other in ["config.new", "config.new-1"] {
            fs::create_dir(desk.path().join(other)).unwrap();
        }
        directory.write(CONFIG, "ours").unwrap();
        assert_eq!(fs::read_to_string(desk.path().join(CONFIG)).unwrap(), "ours");
        let names = ["config.new-1", "config.new-", "config.new", "config.toml", "result.new-1"];
        assert_eq!(names.map(is_staged_config), [true, false, false, false, false]);
    }
}
