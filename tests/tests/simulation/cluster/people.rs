//! People: they submit, pause and resume runs, ask for more replicas of some, and delete some, which they may submit again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
};

use evoxo_common::{
    experiment::Config,
    rng::{Generator, Stream},
};
use evoxo_coordinator::{
    core::{Rejection, Response},
    names::object_named,
    prepared::Prepared,
};

use super::{Cluster, Event, Request, RequestId, SimEvent, below, chance};

/// The first id of a request to delete a run.
const DELETIONS: u64 = 1 << 32;

/// After every so many orders to pause or resume, the pause between two of them grows by the initial one.
const ORDERS: u64 = 64;

/// What people do about deletion and more replicas. It has its own random stream, so nothing else depends on it.
pub(super) struct People {
    rng: Generator,
    /// How many times people wanted to pause or resume a run.
    orders: u64,
    /// The runs whose deletion is not confirmed yet, with the highest epoch that was asked.
    asked: BTreeMap<usize, u64>,
    /// How many times each run was deleted.
    pub(super) deleted: BTreeMap<usize, u64>,
    /// The runs that nobody submits again.
    gone: BTreeSet<usize>,
    /// The runs as they were before more replicas were requested, until that request is answered.
    smaller: BTreeMap<usize, Arc<Prepared>>,
}

impl People {
    pub(super) fn new(seed: u64) -> Self {
        let rng = Stream::root(seed).text("deletions").rng();
        Self {
            rng,
            orders: 0,
            asked: BTreeMap::new(),
            deleted: BTreeMap::new(),
            gone: BTreeSet::new(),
            smaller: BTreeMap::new(),
        }
    }
}

impl Cluster {
    pub(super) fn submit(&mut self, run: usize) {
        if self.people.gone.contains(&run) {
            return;
        }
        let (name, prepared) = self.runs[run].clone();
        let level = self.faults.level;
        let request = Request::Submit { name, prepared, level, submitter: "10.0.1.1".into(), terms: Vec::new() };
        if let Some(seat) = self.asked() {
            self.tell(seat, Event::Request { id: RequestId(run as u64), request });
        }
        if !self.submitted.contains(&run) {
            self.plan(1000, SimEvent::Submit(run));
        }
    }

    /// A person pauses or resumes a run. The pauses grow, because all orders of a run are kept and listed: otherwise a
    /// cluster that computes for hours would take minutes.
    pub(super) fn pause_or_resume(&mut self) {
        let ms = self.draw_ms(200) * (1 + self.people.orders / ORDERS);
        self.people.orders += 1;
        self.plan(ms, SimEvent::PauseOrResume);
        let run = below(&mut self.rng, self.runs.len() as u64) as usize;
        let name = self.runs[run].0.clone();
        let request = match chance(&mut self.rng, 1, 10) {
            true => Request::Pause { name },
            false => Request::Resume { name },
        };
        if let Some(seat) = self.asked() {
            self.tell(seat, Event::Request { id: RequestId(u64::MAX), request });
        }
    }

    /// From now on people also ask for more replicas, up to twice.
    pub(crate) fn let_people_extend(&mut self) {
        for _ in 0..below(&mut self.people.rng, 3) {
            let ms = below(&mut self.people.rng, 40 * self.faults.task_ms_max);
            let run = below(&mut self.people.rng, self.runs.len() as u64) as usize;
            self.plan(300 + ms, SimEvent::Extend(run));
        }
    }

    /// A person asks for more replicas of a run, until they are confirmed. Nothing happens if the run is being deleted or was
    /// deleted for good.
    pub(super) fn extend(&mut self, run: usize) {
        let People { asked, gone, .. } = &self.people;
        if !self.submitted.contains(&run) || asked.contains_key(&run) || gone.contains(&run) {
            return;
        }
        let smaller = Arc::clone(&self.runs[run].1);
        let replicas = smaller.config.replicas + 1 + below(&mut self.people.rng, 3) as u32;
        self.runs[run].1 = Prepared::new(Config { replicas, ..smaller.config.clone() });
        self.people.smaller.insert(run, smaller);
        self.submitted.remove(&run);
        self.outcome.extended += 1;
        self.submit(run);
    }

    /// From now on people also delete runs, up to three times.
    pub(crate) fn let_people_delete(&mut self) {
        for _ in 0..1 + below(&mut self.people.rng, 3) {
            let ms = below(&mut self.people.rng, 20 * self.faults.task_ms_max);
            let run = below(&mut self.people.rng, self.runs.len() as u64) as usize;
            self.plan(300 + ms, SimEvent::Delete(run, false));
        }
    }

    /// A person deletes a run, and repeats the request until the run is deleted.
    pub(super) fn delete(&mut self, run: usize, again: bool) {
        let People { asked, gone, .. } = &self.people;
        if again != asked.contains_key(&run) || gone.contains(&run) || !self.submitted.contains(&run) {
            return;
        }
        let Some(seat) = self.asked() else { return self.plan(500, SimEvent::Delete(run, again)) };
        let asked = self.people.asked.entry(run).or_default();
        *asked = self.seats[seat].epoch().max(Some(*asked)).unwrap_or_default();
        self.plan(1000, SimEvent::Delete(run, true));
        let request = Request::Cancel { name: self.runs[run].0.clone(), delete: true };
        self.tell(seat, Event::Request { id: RequestId(DELETIONS + run as u64), request });
    }

    /// Handles an answer of a seat.
    pub(super) fn on_response(&mut self, seat: usize, id: RequestId, response: &Result<Response, Rejection>) {
        let epoch = self.seats[seat].epoch().expect("a coordinator that answers leads");
        let run = (DELETIONS..u64::MAX).contains(&id.0).then(|| (id.0 - DELETIONS) as usize);
        let leads = self.seats.iter().all(|other| other.epoch() <= Some(epoch));
        match (response, run) {
            // An earlier submission may have had fewer replicas.
            (Ok(Response::Submitted { run: view, .. }), _) => {
                let run = id.0 as usize;
                if u64::from(view.replicas_total) == self.runs[run].1.replicas() {
                    self.people.smaller.remove(&run);
                    self.submitted.insert(run);
                }
            }
            (Err(Rejection::Exhausted(why)), _) => self.on_refused(id.0 as usize, why),
            (Err(Rejection::Invalid(why)), _) => panic!("a generated run was rejected: {why}"),
            (Ok(Response::Run(_)), Some(run)) => self.note_deleted(run, epoch),
            // A former leader does not know the runs of the present one.
            (Err(Rejection::NotFound(_)), Some(run)) if leads => self.note_deleted(run, epoch),
            _ => {}
        }
    }

    /// There is not enough memory. With more replicas a run may need too much, and then it stays as it was.
    fn on_refused(&mut self, run: usize, why: &str) {
        if let Some(smaller) = self.people.smaller.remove(&run) {
            self.runs[run].1 = smaller;
            self.submitted.insert(run);
        }
        assert!(self.submitted.contains(&run), "a generated run was rejected: {why}");
    }

    /// Notes that a person was told in this epoch that a run is deleted, and checks that nothing of it is left.
    fn note_deleted(&mut self, run: usize, epoch: u64) {
        if self.people.asked.remove(&run).is_none() {
            return;
        }
        let name = self.runs[run].0.clone();
        for object in self.objects_of(&name) {
            let (directory, _) = object.split_once('/').expect("an object of a run is in a directory");
            let since = object_named(&object, directory).map(|named| named.epoch);
            assert!(since > Some(epoch), "{name} is deleted in epoch {epoch}, and {object} is still there");
        }
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        // Unless somebody has submitted the run to a later leader.
        match confirmed.get(&name) {
            Some((_, by)) if *by > epoch => self.outcome.revived += 1,
            _ => drop(confirmed.remove(&name)),
        }
        drop(confirmed);
        *self.people.deleted.entry(run).or_default() += 1;
        self.outcome.deleted += 1;
        if chance(&mut self.people.rng, 1, 2) {
            let ms = below(&mut self.people.rng, 1000);
            self.submitted.remove(&run);
            self.plan(ms, SimEvent::Submit(run));
        } else {
            self.people.gone.insert(run);
        }
    }

    /// Whether a run is deleted for good.
    pub(super) fn is_gone(&self, run: usize) -> bool {
        let confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        self.people.gone.contains(&run) && !confirmed.contains_key(&self.runs[run].0)
    }

    /// Whether an order that was confirmed in this epoch may be gone because the run's deletion was requested later.
    pub(super) fn may_be_deleted(&self, name: &str, confirmed_in: u64) -> bool {
        let run = self.runs.iter().position(|(known, _)| known == name);
        run.and_then(|run| self.people.asked.get(&run)).is_some_and(|asked| confirmed_in <= *asked)
    }
}
