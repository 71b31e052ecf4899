//! Loading: the newest valid objects of every run, and a message for each object that is not used.

use std::time::SystemTime;

use super::{
    Known, Store, StoreError, ahead::while_reading_ahead, answer::cause, index::Indexed, objects::Found,
    orders::is_unconfirmed,
};
use crate::{
    names::{FINISHED, FINISHED_COPY, check_run_name, object_named},
    saved::{Objects, SavedRun},
};

impl Store {
    /// Reads all runs without their states, the most recently written last. Returns a message for each object that belongs to
    /// no run. Damaged and foreign objects are reported and left unchanged.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, or an object cannot be read, because that object may be good.
    pub fn load(&mut self) -> Result<(Vec<SavedRun>, Vec<String>), StoreError> {
        self.look_who_leads().map_err(|error| self.unreadable("leader", &error))?;
        // A record that cannot be read now says nothing about the format.
        if let Ok(leader) = self.leader() {
            self.check_format(leader.as_ref())?;
        }
        let (files, directories) = self.list("runs").map_err(|error| self.unreadable("runs", &error))?;
        let mut notices: Vec<String> =
            files.iter().map(|(name, _)| foreign_sentence(&format!("runs/{name}"))).collect();
        let (root, mut runs) = (self.directory.clone(), Vec::new());
        while_reading_ahead(root.as_ref(), &directories, || self.load_each(&directories, &mut runs, &mut notices))?;
        runs.sort_by(|(one, a), (two, b): &(_, SavedRun)| one.cmp(two).then(a.name.cmp(&b.name)));
        Ok((runs.into_iter().map(|(_, saved)| saved).collect(), notices))
    }

    /// Reads these runs, and adds each with the time when its newest object was written.
    fn load_each(
        &mut self,
        directories: &[String],
        runs: &mut Vec<(Option<SystemTime>, SavedRun)>,
        notices: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        for run in directories {
            let mut found = match check_run_name(run) {
                Ok(()) => {
                    if self.epoch.is_some() {
                        self.sweep_staged(run);
                    }
                    self.find_objects(run).map_err(|error| self.unreadable(run, &error))?
                }
                Err(_) => Found::default(),
            };
            if let Some(born) = self.deleted(run, &found).filter(|_| self.epoch.is_some()) {
                // An earlier deletion was interrupted.
                self.remove_deleted(run, born).map_err(|error| self.unreadable(run, &error))?;
                found = self.find_objects(run).map_err(|error| self.unreadable(run, &error))?;
                if found.ours.is_empty() && found.foreign.is_empty() {
                    continue;
                }
            }
            if found.ours.is_empty() {
                notices.push(foreign_sentence(&format!("runs/{run}")));
                continue;
            }
            let (mut saved, refused) = self.interpret_run(run, &found, false)?;
            if let Some(saved) = saved.as_mut().filter(|_| self.epoch.is_some()) {
                self.mend_orders(&found, saved);
                self.mend_copied(&found, saved);
                self.index_at_rest(run);
            }
            notices.extend(refused);
            runs.extend(saved.map(|saved| (found.modified, saved)));
        }
        Ok(())
    }

    /// Reads one run with the states of its unfinished replicas; `None` if it does not exist or has no valid order.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, or an object cannot be read, because that object may be good.
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
        // An object that cannot be read now is not damaged. If it were skipped, an older order would count.
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
        let size = |name: &str| found.sizes.get(name).copied();
        let objects = Objects { run, names: &found.ours, size: &size, read: &mut read };
        let has_orders = objects.has_orders();
        let (mut saved, mut notices) = objects.interpret(&self.registry, with_states);
        if let Some((saved, ended)) = saved.as_mut().zip(found.ended()) {
            // The clock of the store may be ahead of this one.
            let ago = SystemTime::now().duration_since(ended).unwrap_or_default();
            saved.ended_ago_ms = u64::try_from(ago.as_millis()).ok();
        }
        if let Some((name, error)) = unreadable {
            return Err(self.unreadable(&name, &error));
        }
        let unreadable = saved.is_none() && has_orders && !is_unconfirmed(found);
        let foreign = found.foreign.iter().map(|name| foreign_sentence(name));
        match &mut saved {
            Some(saved) => saved.notices.extend(foreign),
            None => {
                notices.extend(foreign);
                if unreadable {
                    notices.push(format!("run {run} has no valid order and is not used: give a new run another name"));
                } else if has_orders {
                    notices.push(format!(
                        "run {run} has no valid order and nothing else: a power failure interrupted its submission, or both \
                         objects of its order are damaged: submit it again"
                    ));
                }
            }
        }
        let known = Known {
            unreadable,
            born: saved.as_ref().map(|saved| saved.born),
            order_number: saved.as_ref().map_or(0, |saved| saved.order_number),
            pack_number: pack_number(found),
            indexed: saved.as_ref().map(|saved| Indexed::of(found, saved)).unwrap_or_default(),
            ..Known::default()
        };
        *self.known(run) = known;
        for name in &found.ours {
            self.know_checkpoint(run, name);
        }
        self.know_kept(run, found);
        Ok((saved, notices))
    }

    /// See [`Objects::deleted`].
    fn deleted(&self, run: &str, found: &Found) -> Option<u64> {
        let mut read = |_: &str| Err(String::new());
        Objects { run, names: &found.ours, size: &|_| None, read: &mut read }.deleted()
    }
}

/// The highest number of an object of finished replicas, or of the copy of one.
fn pack_number(found: &Found) -> u64 {
    let named = |name: &String| [FINISHED, FINISHED_COPY].iter().find_map(|directory| object_named(name, directory));
    found.ours.iter().filter_map(named).map(|named| named.number).max().unwrap_or(0)
}

fn foreign_sentence(name: &str) -> String {
    format!("{name} was not written by evoxo and is not used")
}
