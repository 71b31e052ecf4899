//! Orders. The store has each of them twice, so that one damaged or missing object neither makes a run unusable nor undoes an
//! order.
//!
//! The first object, `order/BORN-NUMBER`, decides which coordinator gave the order: an order is confirmed when this object is
//! written and its coordinator still leads. The copy follows at once. In a directory the bytes and names of both are synced
//! at the same time, so an order waits for one sync; the copy gets its name only after the order has got its own. If the copy
//! cannot be written, for example because the disk is full, the order is valid all the same. The copy is then written before
//! the run's next write, or when the next coordinator loads the run.
//!
//! A power failure during that sync may leave the names of both objects without their bytes. The order was not confirmed
//! then, so the one before it is in force, and the next one has a higher number. If it was the first, the run was never
//! submitted: see [`is_unconfirmed`].
//!
//! A coordinator that was suspended between the two writes may write late, after the run was deleted. So after the second
//! write it checks whether it still leads, and removes the object if not.

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, open},
};
use object_store::Error;

use super::{Known, Store, answer::cause, disk::Waits, objects::Found};
use crate::{
    core::StoreFault,
    names::{Named, ORDER, ORDER_COPY, object_named, order_copy_name, order_name},
    saved::SavedRun,
};

/// Whether a run without a valid order was never submitted, as far as anybody was told: the only objects of it are those of
/// a first order. A confirmed order was synced with its copy, so a power failure during the submission left them, or both
/// were damaged before anything was computed. A new run may have the name.
pub(super) fn is_unconfirmed(found: &Found) -> bool {
    let is_first = |name: &String| {
        let named = [ORDER, ORDER_COPY].iter().find_map(|directory| object_named(name, directory));
        named.is_some_and(|named| named.number == 1)
    };
    found.ours.iter().all(is_first)
}

/// How many numbers taken by orders of former leaders the next order of a run skips at most.
const LATE_ORDERS_MAX: usize = 64;

impl Store {
    /// Creates the next order of a run. The first order creates the run. Returns the order's name, relative to the run.
    pub(super) fn give_order(&mut self, run: &str, epoch: u64, bytes: &Bytes) -> Result<String, StoreFault> {
        let Known { born, order_number, .. } = *self.known(run);
        let born = born.unwrap_or(epoch);
        // A number may be taken by an order that its coordinator could no longer confirm, or by a foreign object.
        for number in (order_number + 1..).take(LATE_ORDERS_MAX) {
            if number > order_number + 1 {
                // If the coordinator that leads now gave that order, this one would hide it.
                self.check_leadership()?;
            }
            let object = order_name(born, number);
            let name = format!("runs/{run}/{object}");
            let copy = format!("runs/{run}/{}", order_copy_name(born, number, bytes));
            let mut written = self.put_all(&[(&name, bytes), (&copy, bytes)], Waits::Once).into_iter();
            let order = written.next().expect("there is an outcome for the order");
            let copied = matches!(written.next(), Some(Ok(true)));
            match order {
                Ok(true) => {}
                Ok(false) => continue,
                // A run is found only by its first order.
                Err(Error::AlreadyExists { .. }) if number > 1 => continue,
                Err(error) => {
                    self.withdraw(&[&name, &copy]);
                    return Err(self.not_written(&name, &error));
                }
            }
            // If another coordinator leads by now, it may have loaded before the order was written.
            self.confirm(copied.then_some(copy.as_str()))?;
            let known = self.known(run);
            (known.born, known.order_number) = (Some(born), number);
            known.uncopied = (!copied).then(|| (number, bytes.clone()));
            if let Err(why) = self.copy_newest(run) {
                tracing::warn!("{why}; the order of run {run} is valid, and writing its copy will be retried");
            }
            return Ok(object);
        }
        Err(StoreFault::Failed(format!(
            "run {run} in the store {} has {LATE_ORDERS_MAX} orders that were never confirmed: stop all coordinators \
             but one",
            self.shown
        )))
    }

    /// Takes back the names of an order that could not be synced. Its bytes may be lost although they can be read until the
    /// power fails, so a repeated order must not find them. If another coordinator leads, it may have loaded the order.
    fn withdraw(&mut self, names: &[&str]) {
        if self.directory.is_some() && self.check_leadership().is_ok() {
            // If this fails as well, the order may be in force after the next start. The client knows that this is unknown.
            let _ = self.remove(names.iter().map(|name| (*name).to_owned()).collect());
        }
    }

    /// Writes the copy of a run's newest order if an earlier attempt failed.
    pub(super) fn copy_late(&mut self, run: &str) {
        if self.known(run).uncopied.is_some() && self.copy_newest(run).is_ok() {
            tracing::info!("the copy of the newest order of run {run} is in the store {} now", self.shown);
        }
    }

    fn copy_newest(&mut self, run: &str) -> Result<(), String> {
        let Known { born: Some(born), uncopied: Some((number, bytes)), .. } = self.known(run) else { return Ok(()) };
        let name = format!("runs/{run}/{}", order_copy_name(*born, *number, bytes));
        let bytes = bytes.clone();
        self.write_second(&name, &bytes)?;
        self.known(run).uncopied = None;
        Ok(())
    }

    /// Writes the second object of an order or of a finished replica, or rewrites one of the two.
    pub(super) fn write_second(&mut self, name: &str, bytes: &Bytes) -> Result<(), String> {
        let sentence = |fault: StoreFault| match fault {
            StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why) => why,
        };
        self.create(name, bytes).map_err(sentence)?;
        self.confirm(Some(name)).map_err(sentence)
    }

    /// Checks that this coordinator still leads after it has written an object, and otherwise removes its second object.
    fn confirm(&mut self, second: Option<&str>) -> Result<(), StoreFault> {
        self.check_leadership().inspect_err(|_| {
            // The new leader may have deleted the run before this object was written.
            if let Some(name) = second
                && let Err(error) = self.remove(vec![name.to_owned()])
            {
                tracing::warn!("{name} in the store {} cannot be removed: {}", self.shown, cause(&error));
            }
        })
    }

    /// Rewrites damaged or missing objects of a run's orders. Both objects of the newest order are read; of older orders both
    /// only have to exist. Each object that was mended or cannot be mended becomes a notice of the run.
    pub(super) fn mend_orders(&mut self, found: &Found, saved: &mut SavedRun) {
        let of = |directory: &str| {
            let named = found.ours.iter().filter_map(|name| object_named(name, directory));
            named.filter(|named| named.epoch == saved.born).collect::<Vec<_>>()
        };
        let (firsts, copies) = (of(ORDER), of(ORDER_COPY));
        let mut numbers: Vec<u64> = firsts.iter().chain(&copies).map(|named| named.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let (run, mut copied) = (saved.name.clone(), 0);
        for number in numbers {
            let first = firsts.iter().rfind(|named| named.number == number);
            let copy = copies.iter().find(|named| named.number == number);
            if first.is_some() && copy.is_some() && number != saved.order_number {
                continue;
            }
            let digest = copy.and_then(|copy| copy.digest.as_ref());
            let read = |named: Option<&Named>| named.map_or(Ok(None), |named| self.valid_order(&run, named, digest));
            // An object that cannot be read now is not damaged.
            let (Ok(good_first), Ok(good_copy)) = (read(first), read(copy)) else { continue };
            let (object, other, bytes) = match (good_first, good_copy) {
                (Some(bytes), None) => {
                    (order_copy_name(saved.born, number, &bytes), order_name(saved.born, number), bytes)
                }
                (None, Some(bytes)) => {
                    let named = first.map_or_else(|| order_name(saved.born, number), |named| named.object.clone());
                    (named, "its copy".to_owned(), bytes)
                }
                (Some(_), Some(_)) | (None, None) => continue,
            };
            let name = format!("runs/{run}/{object}");
            if found.foreign.contains(&name) {
                let what = format!("{name} is not an object, so the store has order {number} of run {run} only once");
                saved.notices.push(format!("{what}: remove {name}, and the next start writes the order there"));
                continue;
            }
            let was_there = first.is_some_and(|it| it.object == object) || copy.is_some_and(|it| it.object == object);
            let state = if was_there { "damaged" } else { "missing" };
            match self.write_second(&name, &bytes) {
                // A coordinator may have been killed before it wrote one.
                Ok(()) if copy.is_none() => copied += 1,
                Ok(()) => {
                    saved.notices.push(format!("the object {name} was {state} and was rewritten from {other}"));
                }
                Err(why) => {
                    saved.notices.push(format!("the object {name} is {state} and cannot be rewritten: {why}"));
                }
            }
        }
        if copied > 0 {
            tracing::info!("run {run}: {copied} orders had no copy in the store {}, and have one now", self.shown);
        }
    }

    /// The bytes of an order's object if they are valid; `digest` is the one in its copy's name. An error if the store cannot
    /// be read.
    fn valid_order(&self, run: &str, named: &Named, digest: Option<&String>) -> Result<Option<Bytes>, Error> {
        let bytes = match self.get(&format!("runs/{run}/{}", named.object)) {
            Ok(bytes) => bytes,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let digest = named.digest.as_ref().or(digest);
        let is_that = digest.is_none_or(|digest| Digest::of(&bytes).short() == *digest);
        Ok((is_that && open(Kind::Order, &bytes).is_ok()).then_some(bytes))
    }
}
