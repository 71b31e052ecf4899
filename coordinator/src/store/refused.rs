//! Identities and tokens that every leader must refuse: convicted identities, and everything that people revoked. Each is an
//! object of its own, and the object's name is all that counts. So nobody is acquitted because an object is damaged, or
//! because two coordinators wrote it.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use evoxo_access::Id;

use super::{Store, StoreError};
use crate::{
    core::{StoreFault, Stored},
    names::{CONVICTED, REVOKED},
};

/// The identities and tokens to refuse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The numbers of convicted identities. Nothing that rests on their word counts.
    pub convicted: BTreeSet<Arc<str>>,
    /// Identities and tokens that people revoked.
    pub revoked: BTreeSet<Id>,
}

impl Store {
    /// Refuses an identity or a token under this and every later leader. If it is refused already, that is not an error.
    pub(super) fn refuse(&mut self, directory: &str, id: &str, bytes: &Bytes) -> Result<Stored, StoreFault> {
        let name = format!("{directory}/{id}");
        let is_new = match self.put(&name, bytes) {
            Ok(is_new) => is_new,
            // A directory of that name counts as well.
            Err(_) if self.list(directory).is_ok_and(|(_, others)| others.iter().any(|other| other == id)) => false,
            Err(error) => return Err(self.not_written(&name, &error)),
        };
        if !is_new {
            tracing::info!("{name} was already in the store {}", self.shown);
        }
        // If another coordinator leads by now, it may have loaded before the object was written.
        self.check_leadership()?;
        Ok(Stored::Written(Some(name)))
    }

    /// Loads everything that is refused. An entry never expires: a clock that is a year ahead must not let anybody in.
    /// Returns a message for each object whose name is not an identity or a token.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, because then nobody can tell whom to refuse.
    pub fn load_refused(&self) -> Result<(Refused, Vec<String>), StoreError> {
        let (mut refused, mut notices) = (Refused::default(), Vec::new());
        for directory in [CONVICTED, REVOKED] {
            let (objects, others) = self.list(directory).map_err(|error| self.unreadable(directory, &error))?;
            // A directory of that name counts as well: only the name matters.
            for name in objects.into_iter().map(|(name, _)| name).chain(others) {
                let Ok(id) = name.parse::<Id>() else {
                    notices.push(format!("{directory}/{name} was not written by evoxo and is not used"));
                    continue;
                };
                match directory {
                    CONVICTED => drop(refused.convicted.insert(id.to_string().into())),
                    _ => drop(refused.revoked.insert(id)),
                }
            }
        }
        Ok((refused, notices))
    }
}
