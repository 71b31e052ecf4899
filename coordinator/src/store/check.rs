//! `evoxo-coordinator check-store`: whether a store keeps the two promises that leadership and orders rest on. If many create
//! the same name, exactly one succeeds; and a listing shows every object written before it, and none removed before it. Names
//! are created exactly as the coordinator creates them: if a creation is refused or gets no answer, the name is read before
//! the outcome is decided.
//!
//! A store that passes today may still fail tomorrow. The race is repeated, and finds a fault with overwhelming probability,
//! not with certainty. If several hosts share a directory, run the check on all of them at the same time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Barrier},
    thread,
};

use bytes::Bytes;
use object_store::{Error, ObjectStore, path::Path};

use super::{answer, place};

/// The directory in the store for the names that are created; removed at the end.
const DIRECTORY: &str = "check-store";
/// How many creators compete for a name at the same moment.
const CREATORS: usize = 16;

/// The extent of a check that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// How many names were created by many creators at once.
    pub races: u32,
    /// How many creators competed for each name.
    pub creators: usize,
}

/// Checks a store with this number of races.
///
/// # Errors
/// A sentence that says which promise the store breaks, or why it cannot be used.
pub fn check(spec: &str, races: u32) -> Result<Checked, String> {
    // A coordinator creates its directory. A check must not: a new directory would say nothing about the share that was
    // meant.
    if place::directory_of(spec).is_some_and(|directory| matches!(directory.try_exists(), Ok(false))) {
        return Err(format!(
            "there is no directory {spec} to check: check the name, mount the share, or create the directory first"
        ));
    }
    let place = place::open(spec).map_err(|error| error.to_string())?;
    let probed = runtime()?.block_on(answer::probe(&*place.objects));
    probed.map_err(|error| place.unusable(spec, &error).to_string())?;
    check_objects(&place.objects, spec, races)
}

/// Checks any objects; `shown` is their name in messages.
///
/// # Errors
/// See [`check`].
pub fn check_objects(objects: &Arc<dyn ObjectStore>, shown: &str, races: u32) -> Result<Checked, String> {
    // Several hosts may check one store at the same time.
    let own = format!("{DIRECTORY}/{:016x}", u64::from_le_bytes(evoxo_access::random()));
    let checker = Checker { objects: Arc::clone(objects), shown, own };
    let outcome = (0..races).try_for_each(|race| checker.race(race)).and_then(|()| checker.names_are_reused());
    let removed = checker.clean();
    outcome.and(removed)?;
    Ok(Checked { races, creators: CREATORS })
}

struct Checker<'a> {
    objects: Arc<dyn ObjectStore>,
    shown: &'a str,
    own: String,
}

/// A runtime for one thread.
fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("the system cannot create a runtime: {error}"))
}

impl Checker<'_> {
    /// Many create one name at once, each with different bytes. Exactly one must succeed, and its bytes must stay.
    fn race(&self, number: u32) -> Result<(), String> {
        let name = format!("{}/{number:06}", self.own);
        let barrier = Barrier::new(CREATORS);
        let outcomes: Vec<Result<Tried, String>> = thread::scope(|scope| {
            let create = |creator: usize| {
                let (barrier, path, objects) = (&barrier, Path::from(name.as_str()), Arc::clone(&self.objects));
                scope.spawn(move || {
                    let runtime = runtime();
                    barrier.wait();
                    runtime.map(|runtime| runtime.block_on(create(&*objects, &path, bytes_of(creator))))
                })
            };
            let threads: Vec<_> = (0..CREATORS).map(create).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|tried| tried.unwrap_or_else(|_| Err("a creator panicked".into()))).collect()
        });
        let outcomes = outcomes.into_iter().collect::<Result<Vec<Tried>, String>>()?;
        let winners: Vec<usize> = (0..CREATORS).filter(|creator| outcomes[*creator] == Tried::Created).collect();
        let unclear: Vec<&str> = outcomes.iter().filter_map(Tried::unclear).collect();
        let kept = runtime()?.block_on(answer::read(&*self.objects, &Path::from(name.as_str())));
        let kept = kept.map_err(|error| self.unusable(&name, &error))?;
        match winners.as_slice() {
            [one] if kept == bytes_of(*one) => {}
            // The winner got no answer and could not read the outcome.
            [] if !unclear.is_empty() => {}
            [] => return Err(self.broken(&format!("nobody could create {name}, although it was new"))),
            [_] => return Err(self.broken(&format!("{name} does not have the bytes that its only creator wrote"))),
            more => {
                let count = more.len();
                return Err(self.broken(&format!("{count} of {CREATORS} creators were told that they created {name}")));
            }
        }
        let listed = self.listed()?;
        match listed.contains(&name) {
            true => Ok(()),
            false => Err(self.broken(&format!("{name} was written, but a later listing does not show it"))),
        }
    }

    /// A removed name must not be listed any more, and can be created again.
    fn names_are_reused(&self) -> Result<(), String> {
        let name = format!("{}/000000", self.own);
        let path = Path::from(name.as_str());
        let runtime = runtime()?;
        runtime.block_on(answer::remove(&*self.objects, &path)).map_err(|error| self.unusable(&name, &error))?;
        if self.listed()?.contains(&name) {
            return Err(self.broken(&format!("{name} was removed, but a later listing still shows it")));
        }
        match runtime.block_on(create(&*self.objects, &path, bytes_of(0))) {
            Tried::Created => Ok(()),
            Tried::Exists => Err(self.broken(&format!("{name} was removed, but cannot be created again"))),
            Tried::Unclear(why) => Err(format!("{name} in the store {} cannot be written: {why}", self.shown)),
        }
    }

    fn listed(&self) -> Result<BTreeSet<String>, String> {
        let prefix = Path::from(self.own.as_str());
        let list = runtime()?.block_on(self.objects.list_with_delimiter(Some(&prefix)));
        let list = list.map_err(|error| self.unusable(&self.own, &error))?;
        Ok(list.objects.into_iter().map(|meta| meta.location.to_string()).collect())
    }

    fn clean(&self) -> Result<(), String> {
        let runtime = runtime()?;
        for name in self.listed()? {
            let removed = runtime.block_on(answer::remove(&*self.objects, &Path::from(name.as_str())));
            removed.map_err(|error| self.unusable(&name, &error))?;
        }
        Ok(())
    }

    fn broken(&self, what: &str) -> String {
        format!(
            "the store {} cannot be used by a coordinator and a standby: {what}; two of them could lead at once, so name \
             another store",
            self.shown
        )
    }

    fn unusable(&self, name: &str, error: &Error) -> String {
        format!("{name} in the store {} cannot be used: {}", self.shown, answer::cause(error))
    }
}

/// The outcome of an attempt to create a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tried {
    Created,
    Exists,
    /// The store gave another answer.
    Unclear(String),
}

impl Tried {
    fn unclear(&self) -> Option<&str> {
        if let Self::Unclear(why) = self { Some(why) } else { None }
    }
}

async fn create(objects: &dyn ObjectStore, path: &Path, bytes: Bytes) -> Tried {
    match answer::create(objects, path, &bytes).await {
        Ok(true) => Tried::Created,
        Ok(false) => Tried::Exists,
        Err(error) => Tried::Unclear(answer::cause(&error)),
    }
}

/// The bytes that a creator writes.
fn bytes_of(creator: usize) -> Bytes {
    format!("creator {creator} of a check\n").into()
}
