//! Who is refused, whoever leads: identities that were convicted, and what people have revoked. Each is an object of its own, and
//! its name says it all: nobody is acquitted because an object is damaged, or because two coordinators wrote one.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use evoxo_access::Id;

use super::{Store, StoreError};
use crate::{
    core::{StoreFault, Stored},
    names::{CONVICTED, REVOKED},
};

/// Who is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The numbers of convicted identities: nothing counts that rests on their word.
    pub convicted: BTreeSet<Arc<str>>,
    /// Identities and tokens that were revoked.
    pub revoked: BTreeSet<Id>,
}

impl Store {
    /// Refuses somebody, for whoever leads from now on. That somebody is refused already is no error.
    pub(super) fn refuse(&mut self, directory: &str, id: &str, bytes: &Bytes) -> Result<Stored, StoreFault> {
        let name = format!("{directory}/{id}");
        let is_new = match self.put(&name, bytes) {
            Ok(is_new) => is_new,
            // A directory of that name refuses as well.
            Err(_) if self.list(directory).is_ok_and(|(_, others)| others.iter().any(|other| other == id)) => false,
            Err(error) => return Err(self.not_written(&name, &error)),
        };
        if !is_new {
            tracing::info!("{name} was in the store {} before", self.shown);
        }
        // If another coordinator leads by now, it may not have seen it.
        self.check_leadership()?;
        Ok(Stored::Written(Some(name)))
    }

    /// Reads who is refused. Nobody is ever forgotten: a clock that is a year ahead must not let anybody in. Returns a message for each
    /// object that names nobody.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed: then nobody can tell who must stay out.
    pub fn load_refused(&self) -> Result<(Refused, Vec<String>), StoreError> {
        let (mut refused, mut notices) = (Refused::default(), Vec::new());
        for directory in [CONVICTED, REVOKED] {
            let (objects, others) = self.list(directory).map_err(|error| self.unreadable(directory, &error))?;
            // A directory of that name refuses too: the name says it all.
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
