//! Loading: the newest valid objects of every run, and a message for each object that is not used.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use super::{
    Known, Outlook, Store, StoreError,
    answer::{self, cause},
    leader::epoch_number,
};
use crate::{
    names::{
        CHECKPOINT, CHECKPOINT_COPY, DELETED, FINISHED, FINISHED_COPY, ORDER, ORDER_COPY, check_run_name, object_named,
    },
    saved::{Objects, SavedRun},
};

/// How long a start may take to write copies for the runs of builds that wrote none.
const COPYING_MAX: Duration = Duration::from_secs(5);

/// The directories of a run. They are deleted in this order. `deleted` comes last: as long as anything else is there, it says what
/// becomes of it. `epoch` is of builds before there was one leader for all runs.
pub(super) const DIRECTORIES: [&str; 10] =
    [CHECKPOINT_COPY, CHECKPOINT, FINISHED_COPY, FINISHED, "doubt", "poison", "epoch", ORDER_COPY, ORDER, DELETED];

/// The objects of a run, and foreign objects among them.
#[derive(Default)]
pub(super) struct Found {
    /// Names below the run, in the order of [`DIRECTORIES`].
    pub(super) ours: Vec<String>,
    /// Names in the store.
    pub(super) foreign: Vec<String>,
    /// The bytes of each of `ours`.
    pub(super) sizes: BTreeMap<String, u64>,
    /// When the newest of `ours` was written.
    modified: Option<SystemTime>,
}

impl Store {
    /// Reads all runs without their states, the most recently written last, and returns a message for each object that
    /// belongs to none of them. Damaged and foreign objects are reported and left as they are.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, or an object cannot be read: it may be good.
    pub fn load(&mut self) -> Result<(Vec<SavedRun>, Vec<String>), StoreError> {
        self.look_who_leads().map_err(|error| self.unreadable("leader", &error))?;
        let (files, directories) = self.list("runs").map_err(|error| self.unreadable("runs", &error))?;
        let mut notices: Vec<String> =
            files.iter().map(|(name, _)| foreign_sentence(&format!("runs/{name}"))).collect();
        let (mut runs, copying_until) = (Vec::new(), Instant::now() + COPYING_MAX);
        for run in directories {
            let mut found = match check_run_name(&run) {
                Ok(()) => {
                    if self.epoch.is_some() {
                        self.sweep_staged(&run);
                    }
                    self.find_objects(&run).map_err(|error| self.unreadable(&run, &error))?
                }
                Err(_) => Found::default(),
            };
            if let Some(born) = self.deleted(&run, &found).filter(|_| self.epoch.is_some()) {
                // Somebody was interrupted.
                self.remove_deleted(&run, born).map_err(|error| self.unreadable(&run, &error))?;
                found = self.find_objects(&run).map_err(|error| self.unreadable(&run, &error))?;
                if found.ours.is_empty() && found.foreign.is_empty() {
                    continue;
                }
            }
            if found.ours.is_empty() {
                notices.push(foreign_sentence(&format!("runs/{run}")));
                continue;
            }
            let (mut saved, refused) = self.interpret_run(&run, &found, false)?;
            if let Some(saved) = saved.as_mut().filter(|_| self.epoch.is_some()) {
                self.mend_orders(&found, saved);
                self.mend_copied(&found, saved, copying_until);
            }
            notices.extend(refused);
            runs.extend(saved.map(|saved| (found.modified, saved)));
        }
        runs.sort_by(|(one, a), (two, b)| one.cmp(two).then(a.name.cmp(&b.name)));
        Ok((runs.into_iter().map(|(_, saved)| saved).collect(), notices))
    }

    /// Reads one run with the states of its unfinished replicas, if it exists and has a valid order.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, or an object cannot be read: it may be good.
    pub fn load_run(&mut self, run: &str) -> Result<Option<SavedRun>, StoreError> {
        let found = self.find_objects(run).map_err(|error| self.unreadable(run, &error))?;
        Ok(self.interpret_run(run, &found, true)?.0)
    }

    fn interpret_run(
        &mut self,
        run: &str,
        found: &Found,
        with_states: bool,
    ) -> Result<(Option<SavedRun>, Vec<String>), StoreError> {
        // What cannot be read now is not damaged. Without it an older order would count.
        let mut unreadable = None;
        let mut read = |name: &str| {
            let name = format!("runs/{run}/{name}");
            self.get(&name).map_err(|error| {
                let sentence = format!("cannot be read: {}", cause(&error));
                if !matches!(error, object_store::Error::NotFound { .. }) {
                    unreadable.get_or_insert((name, error));
                }
                sentence
            })
        };
        let objects = Objects { run, names: &found.ours, read: &mut read };
        let has_orders = objects.has_orders();
        let (mut saved, mut notices) = objects.interpret(&self.registry, with_states);
        if let Some((name, error)) = unreadable {
            return Err(self.unreadable(&name, &error));
        }
        let foreign = found.foreign.iter().map(|name| foreign_sentence(name));
        match &mut saved {
            Some(saved) => saved.notices.extend(foreign),
            None => {
                notices.extend(foreign);
                if has_orders {
                    notices.push(format!("run {run} has no valid order and is not used: give a new run another name"));
                }
            }
        }
        let unreadable = saved.is_none() && has_orders;
        let known = Known {
            unreadable,
            born: saved.as_ref().map(|saved| saved.born),
            order_number: saved.as_ref().map_or(0, |saved| saved.order_number),
            ..Known::default()
        };
        *self.known(run) = known;
        for name in &found.ours {
            self.know_checkpoint(run, name);
        }
        Ok((saved, notices))
    }

    /// See [`Objects::deleted`].
    fn deleted(&self, run: &str, found: &Found) -> Option<u64> {
        let mut read = |_: &str| Err(String::new());
        Objects { run, names: &found.ours, read: &mut read }.deleted()
    }

    /// Lists a run's objects.
    pub(super) fn find_objects(&self, run: &str) -> object_store::Result<Found> {
        let mut found = Found::default();
        let (files, directories) = self.list(&format!("runs/{run}"))?;
        let strange = directories.iter().filter(|directory| !DIRECTORIES.contains(&directory.as_str()));
        let foreign = files.iter().map(|(name, _)| name).chain(strange);
        found.foreign.extend(foreign.map(|name| format!("runs/{run}/{name}")));
        for directory in DIRECTORIES.into_iter().filter(|directory| directories.iter().any(|there| there == directory))
        {
            let (objects, inner) = self.list(&format!("runs/{run}/{directory}"))?;
            found.foreign.extend(inner.into_iter().map(|name| format!("runs/{run}/{directory}/{name}")));
            for (name, meta) in objects {
                let name = format!("{directory}/{name}");
                if is_ours(&name, directory) {
                    found.sizes.insert(name.clone(), meta.size);
                    found.ours.push(name);
                    found.modified = found.modified.max(Some(meta.last_modified.into()));
                } else {
                    found.foreign.push(format!("runs/{run}/{name}"));
                }
            }
        }
        Ok(found)
    }

    pub(super) fn unreadable(&self, name: &str, error: &object_store::Error) -> StoreError {
        let outlook = if self.directory.is_none() { answer::outlook(error) } else { Outlook::Stays };
        StoreError::Unreadable { place: self.shown.clone(), name: name.to_owned(), cause: cause(error), outlook }
    }
}

/// Whether an object's name, below its run, is one that this program creates.
pub(super) fn is_ours(name: &str, directory: &str) -> bool {
    let Some((_, file)) = name.split_once('/') else { return false };
    match directory {
        "epoch" => epoch_number(file).is_some(),
        "poison" => file
            .strip_suffix(".task")
            .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())),
        _ => object_named(name, directory).is_some(),
    }
}

fn foreign_sentence(name: &str) -> String {
    format!("{name} was not written by evoxo and is not used")
}
