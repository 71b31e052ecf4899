//! A connection of a browser, counted until it ends.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use tokio::sync::OwnedSemaphorePermit;

use crate::peers::Counted;

/// A connection.
pub(crate) struct Visit {
    /// Where it comes from.
    pub(super) peer: IpAddr,
    _counted: (OwnedSemaphorePermit, Counted),
    /// Counts it among the strangers, until somebody is known.
    stranger: Mutex<Option<Counted>>,
}

impl Visit {
    pub(super) fn new(peer: IpAddr, counted: (OwnedSemaphorePermit, Counted), stranger: Option<Counted>) -> Self {
        Self { peer, _counted: counted, stranger: Mutex::new(stranger) }
    }

    /// It is no stranger's.
    pub(super) fn is_known(&self) {
        drop(self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
