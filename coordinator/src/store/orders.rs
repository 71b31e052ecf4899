//! Orders. Each is in the store twice, so that no damaged or missing object makes a run unusable or undoes what somebody ordered.
//!
//! The first object, `order/BORN-NUMBER`, decides who has given the order: an order is confirmed when this object is there and its
//! coordinator still leads. The copy follows at once. If it cannot be written, for example because the disk is full, the order holds
//! all the same; the copy is then written before the run's next write, or when the next coordinator loads the run.
//!
//! A coordinator that was stopped in the middle may write late, when the run is deleted already. So whoever has written the second of
//! the two objects looks whether it still leads, and otherwise removes what it wrote.

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, open},
};
use object_store::Error;

use super::{Known, Store, objects::Found};
use crate::{
    core::StoreFault,
    names::{Named, ORDER, ORDER_COPY, object_named, order_copy_name, order_name},
    saved::SavedRun,
};

/// The most orders of coordinators that do not lead any more, which the next order of a run passes over.
const LATE_ORDERS_MAX: usize = 64;

impl Store {
    /// Creates the next order of a run; the first one makes the run. Returns its name below the run.
    pub(super) fn give_order(&mut self, run: &str, epoch: u64, bytes: &Bytes) -> Result<String, StoreFault> {
        let Known { born, order_number, .. } = *self.known(run);
        let born = born.unwrap_or(epoch);
        // A number may be taken by an order that its coordinator could not confirm any more, or by something foreign.
        for number in (order_number + 1..).take(LATE_ORDERS_MAX) {
            if number > order_number + 1 {
                // If it was given by a coordinator that leads now, this order would hide it.
                self.check_leadership()?;
            }
            let object = order_name(born, number);
            let name = format!("runs/{run}/{object}");
            match self.put(&name, bytes) {
                Ok(true) => {}
                Ok(false) => continue,
                // Without its first order a run would not be found.
                Err(Error::AlreadyExists { .. }) if number > 1 => continue,
                Err(error) => return Err(self.not_written(&name, &error)),
            }
            // If another coordinator leads by now, it may not have seen the order.
            self.check_leadership()?;
            let known = self.known(run);
            (known.born, known.order_number) = (Some(born), number);
            known.uncopied = Some((number, bytes.clone()));
            if let Err(why) = self.copy_newest(run) {
                tracing::warn!("{why}; the order of run {run} holds, and its copy is tried again");
            }
            return Ok(object);
        }
        Err(StoreFault::Failed(format!(
            "run {run} in the store {} has {LATE_ORDERS_MAX} orders that nobody was told of: end all coordinators but one",
            self.shown
        )))
    }

    /// Writes the copy of a run's newest order, if that could not be done before.
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

    /// Writes the second object of an order or of a finished replica, or writes one of the two again.
    pub(super) fn write_second(&mut self, name: &str, bytes: &Bytes) -> Result<(), String> {
        let sentence = |fault: StoreFault| match fault {
            StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why) => why,
        };
        self.create(name, bytes).map_err(sentence)?;
        self.check_leadership().map_err(|fault| {
            // Whoever leads now may have deleted the run before this object came.
            if let Err(error) = self.remove(vec![name.to_owned()]) {
                tracing::warn!("{}", sentence(self.not_written(name, &error)));
            }
            sentence(fault)
        })
    }

    /// Writes again what is damaged or missing of the orders of a run. Both objects of the newest order are read; of older ones it
    /// is enough that they are there. What is mended or cannot be mended is a notice of the run.
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
            // What cannot be read now is not damaged.
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
                let what =
                    format!("{name} is not an object, and order {number} of run {run} is in the store once only");
                saved.notices.push(format!("{what}: remove {name}, and the next start writes the order there"));
                continue;
            }
            let was_there = first.is_some_and(|it| it.object == object) || copy.is_some_and(|it| it.object == object);
            let state = if was_there { "damaged" } else { "missing" };
            match self.write_second(&name, &bytes) {
                // A coordinator may have been killed before it wrote one.
                Ok(()) if copy.is_none() => copied += 1,
                Ok(()) => {
                    saved.notices.push(format!("the object {name} was {state} and is written again from {other}"));
                }
                Err(why) => {
                    saved.notices.push(format!("the object {name} is {state} and cannot be written again: {why}"));
                }
            }
        }
        if copied > 0 {
            tracing::info!("run {run}: {copied} orders had no copy in the store {}, and have one now", self.shown);
        }
    }

    /// The bytes of an order's object, if they are valid; `digest` is that of its copy. An error if the store does not say.
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
