//! Cordons: workers and hosts that get no tasks until an operator ends that. A change takes effect once the store has it, so
//! every later leader knows it.

use std::sync::Arc;

use evoxo_proto::{NAME_BYTES_MAX, v1};

use super::{Rejection, sessions::Session};

/// The maximum number of cordons, and of names in one request.
const CORDONS_MAX: usize = 1000;

/// A change of the cordons that is being written.
struct Change {
    after: Vec<Arc<v1::Cordon>>,
    /// The cordons that are set or ended.
    these: Vec<v1::Cordon>,
}

/// All cordons.
#[derive(Default)]
pub(super) struct Cordons {
    all: Vec<Arc<v1::Cordon>>,
    writing: Option<Change>,
    /// The number of the last list that was written in this epoch.
    number: u64,
}

impl Cordons {
    /// Starts with the cordons in the store.
    pub(super) fn known(cordons: Vec<v1::Cordon>) -> Self {
        Self { all: cordons.into_iter().map(Arc::new).collect(), ..Self::default() }
    }

    pub(super) fn all(&self) -> Vec<v1::Cordon> {
        self.all.iter().map(|cordon| (**cordon).clone()).collect()
    }

    /// The cordon of a worker, if there is one.
    pub(super) fn of(&self, session: &Session) -> Option<Arc<v1::Cordon>> {
        self.all.iter().find(|cordon| covers(cordon, session)).cloned()
    }

    /// Prepares a change, and returns the number and the content of the next list. A cordon that exists stays as it is.
    pub(super) fn begin(
        &mut self,
        named: &v1::CordonWorkersRequest,
        by: &str,
        at_s: u64,
    ) -> Result<(u64, Vec<v1::Cordon>), Rejection> {
        if self.writing.is_some() {
            let sentence = "another change of the cordons is being written: try again in a moment";
            return Err(Rejection::Unavailable(sentence.into()));
        }
        let (mut after, mut these) = (self.all.clone(), Vec::new());
        for cordon in named_by(named, by, at_s)? {
            let place = after.iter().position(|other| is_same(other, &cordon));
            match (place, named.end) {
                (Some(place), true) => these.push((*after.remove(place)).clone()),
                (Some(place), false) => these.push((*after[place]).clone()),
                (None, true) => {
                    let what = shown(&cordon);
                    let sentence = format!("there is no cordon of {what}: `evoxo workers` lists the cordons");
                    return Err(Rejection::NotFound(sentence));
                }
                (None, false) => {
                    these.push(cordon.clone());
                    after.push(Arc::new(cordon));
                }
            }
        }
        if after.len() > CORDONS_MAX {
            let sentence = format!("there may be {CORDONS_MAX} cordons: end some with `evoxo drain --uncordon` first");
            return Err(Rejection::Exhausted(sentence));
        }
        self.number += 1;
        let list = after.iter().map(|cordon| (**cordon).clone()).collect();
        self.writing = Some(Change { after, these });
        Ok((self.number, list))
    }

    /// The store has the change, or not. Returns the cordons that are set or ended.
    pub(super) fn end(&mut self, is_stored: bool) -> Vec<v1::Cordon> {
        let Change { after, these } = self.writing.take().expect("a change is written before it ends");
        if is_stored {
            self.all = after;
        }
        these
    }

    /// Whether nothing is being written.
    pub(super) fn are_stored(&self) -> bool {
        self.writing.is_none()
    }
}

/// Whether a cordon covers a worker.
pub(super) fn covers(cordon: &v1::Cordon, session: &Session) -> bool {
    let v1::Cordon { worker, host, .. } = cordon;
    let named = || *worker == *session.name || session.identity_number().is_some_and(|id| **id == **worker);
    let hosted = || *host == session.host || *host == session.address;
    (!worker.is_empty() && named()) || (!host.is_empty() && hosted())
}

/// The worker or the host of a cordon, for people.
pub(super) fn shown(cordon: &v1::Cordon) -> String {
    match cordon.host.as_str() {
        "" => format!("worker {:?}", cordon.worker),
        host => format!("host {host:?}"),
    }
}

fn is_same(one: &v1::Cordon, other: &v1::Cordon) -> bool {
    (&one.worker, &one.host) == (&other.worker, &other.host)
}

/// The cordons that a request names.
fn named_by(named: &v1::CordonWorkersRequest, by: &str, at_s: u64) -> Result<Vec<v1::Cordon>, Rejection> {
    let v1::CordonWorkersRequest { workers, hosts, .. } = named;
    if workers.is_empty() && hosts.is_empty() {
        return Err(Rejection::Invalid("name a worker or a host".into()));
    }
    if workers.len() + hosts.len() > CORDONS_MAX {
        return Err(Rejection::Invalid(format!("at most {CORDONS_MAX} workers and hosts can be named at once")));
    }
    let is_name = |name: &&String| (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if let Some(bad) = workers.iter().chain(hosts).find(|name| !is_name(name)) {
        let bad: String = bad.chars().take(NAME_BYTES_MAX).collect();
        return Err(Rejection::Invalid(format!(
            "{bad:?} names no worker and no host: names have 1 to {NAME_BYTES_MAX} bytes"
        )));
    }
    let of =
        |worker: &str, host: &str| v1::Cordon { worker: worker.into(), host: host.into(), by: by.into(), since: at_s };
    Ok(workers.iter().map(|worker| of(worker, "")).chain(hosts.iter().map(|host| of("", host))).collect())
}
