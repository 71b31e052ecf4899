//! Cordons of workers. Each change is a list of all of them, in an object of its own; the newest valid list counts.

use bytes::Bytes;
use evoxo_common::envelope::{Kind, open};
use evoxo_proto::v1;
use prost::Message as _;

use super::{Store, StoreError, answer::cause};
use crate::{
    core::{StoreFault, Stored},
    names::{CORDONS, Named, cordons_name, object_named},
};

/// How many of the newest lists are kept. If the newest is damaged, an older one counts.
const KEPT: usize = 4;

impl Store {
    /// Writes a list, and removes old ones.
    pub(super) fn write_cordons(&mut self, number: u64, bytes: &Bytes) -> Result<Stored, StoreFault> {
        let name = cordons_name(self.epoch.as_ref().map_or(0, |epoch| epoch.number), number, bytes);
        self.create(&name, bytes)?;
        // If another coordinator leads by now, it may have loaded before the object was written.
        self.check_leadership()?;
        let old =
            self.cordon_lists().map(|lists| lists.into_iter().rev().skip(KEPT).map(|named| named.object).collect());
        if let Err(error) = old.and_then(|old| self.remove(old)) {
            tracing::warn!("old lists of cordons cannot be removed from the store {}: {}", self.shown, cause(&error));
        }
        Ok(Stored::Written(Some(name)))
    }

    /// Loads the cordons. Returns a message for each list that is damaged.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be read, because then nobody can tell which workers get tasks.
    pub fn load_cordons(&self) -> Result<(Vec<v1::Cordon>, Vec<String>), StoreError> {
        let lists = self.cordon_lists().map_err(|error| self.unreadable(CORDONS, &error))?;
        let mut notices = Vec::new();
        for Named { object, .. } in lists.into_iter().rev() {
            let bytes = self.get(&object).map_err(|error| self.unreadable(&object, &error))?;
            let body = open(Kind::Cordons, &bytes).map_err(|damage| damage.to_string());
            match body.and_then(|body| v1::Cordons::decode(body).map_err(|_| "cannot be read".to_owned())) {
                Ok(list) => return Ok((list.cordons, notices)),
                Err(why) => notices.push(format!(
                    "the object {object} {why}, so an older list of cordons counts: compare `evoxo workers` with what you want"
                )),
            }
        }
        Ok((Vec::new(), notices))
    }

    /// The lists, oldest first.
    fn cordon_lists(&self) -> object_store::Result<Vec<Named>> {
        let (objects, _) = self.list(CORDONS)?;
        let named = objects.into_iter().filter_map(|(name, _)| object_named(&format!("{CORDONS}/{name}"), CORDONS));
        let mut lists: Vec<Named> = named.collect();
        lists.sort_unstable();
        Ok(lists)
    }
}
