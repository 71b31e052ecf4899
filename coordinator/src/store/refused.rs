//! Who is refused, whoever leads: identities that were convicted, and what people have revoked. Each is an object of its own, and
//! its name says it all: nobody is acquitted because an object is damaged, or because two coordinators wrote one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use evoxo_access::Id;

use super::{Store, StoreError, answer::cause};
use crate::{
    core::{StoreFault, Stored},
    names::{CONVICTED, REVOKED},
};

/// How long a revocation is remembered: longer than any certificate or token is valid.
pub(crate) const REVOKED_LIFE: Duration = Duration::from_secs(366 * 24 * 3600);

/// Who is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The numbers of convicted identities: nothing counts that rests on their word.
    pub convicted: BTreeSet<Arc<str>>,
    /// Identities and tokens that were revoked, each with the time until which that must be remembered, in seconds since 1970.
    pub revoked: BTreeMap<Id, u64>,
}

impl Store {
    /// Refuses somebody, for whoever leads from now on. That somebody is refused already is no error.
    pub(super) fn refuse(&mut self, directory: &str, id: &str, bytes: &Bytes) -> Result<Stored, StoreFault> {
        let name = format!("{directory}/{id}");
        if !self.put(&name, bytes).map_err(|error| self.not_written(&name, &error))? {
            tracing::info!("{name} was in the store {} before", self.shown);
        }
        // If another coordinator leads by now, it may not have seen it.
        self.check_leadership()?;
        Ok(Stored::Written(Some(name)))
    }

    /// Reads who is refused, and forgets revocations of what cannot be valid any more. Returns a message for each object that
    /// names nobody.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed: then nobody can tell who must stay out.
    pub fn load_refused(&self) -> Result<(Refused, Vec<String>), StoreError> {
        let (mut refused, mut notices, mut over) = (Refused::default(), Vec::new(), Vec::new());
        for directory in [CONVICTED, REVOKED] {
            let (objects, _) = self.list(directory).map_err(|error| self.unreadable(directory, &error))?;
            for (name, meta) in objects {
                let Ok(id) = name.parse::<Id>() else {
                    notices.push(format!("{directory}/{name} was not written by evoxo and is not used"));
                    continue;
                };
                let until = SystemTime::from(meta.last_modified) + REVOKED_LIFE;
                match directory {
                    CONVICTED => drop(refused.convicted.insert(id.to_string().into())),
                    _ if until < SystemTime::now() => over.push(format!("{directory}/{name}")),
                    _ => {
                        let until_s = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                        refused.revoked.insert(id, until_s);
                    }
                }
            }
        }
        if self.epoch.is_some()
            && let Err(error) = self.remove(over)
        {
            tracing::warn!("old revocations cannot be removed from the store {}: {}", self.shown, cause(&error));
        }
        Ok((refused, notices))
    }
}
