//! The coordinators of a simulated cluster: they are killed, stopped and cut off from each other, and take over from each
//! other.

use std::sync::{Arc, Mutex, PoisonError};

use evoxo_coordinator::{
    core::{Stored, Write},
    names::object_named,
    prepared::Prepared,
    saved::seal_order,
    store::Store,
};
use evoxo_proto::v1::{CloseKind, RunState, to_worker};
use evoxo_tests::registry;

use super::{Cluster, Ends, Event, SimEvent, below, chance, damage, v1};
use crate::{objects::Objects, seat::Seen};

/// How often a coordinator checks who leads, in milliseconds.
const LOOK_MS: u64 = 100;
/// The longest time that a coordinator is stopped, or that coordinators cannot reach each other.
const PAUSE_MS_MAX: u64 = 3000;
/// The epoch and the number of a run's newest confirmed order.
type Place = (u64, u64);

/// The confirmed orders by run, each with the epoch of the coordinator that confirmed it.
pub(super) type Confirmed = Arc<Mutex<std::collections::BTreeMap<String, (Place, u64)>>>;

fn confirm(confirmed: &Confirmed, run: &str, stored: &Stored, by: Option<u64>) {
    let Stored::Written(Some(object)) = stored else { return };
    let Some(named) = object_named(object, "order") else { return };
    let mut confirmed = confirmed.lock().unwrap_or_else(PoisonError::into_inner);
    let newest = confirmed.entry(run.to_owned()).or_default();
    *newest = (*newest).max(((named.epoch, named.number), by.expect("a coordinator that confirms leads")));
}

impl Cluster {
    /// The seats that lead, or believe that they lead, and are not stopped.
    pub(super) fn leading(&self) -> Vec<usize> {
        (0..self.seats.len()).filter(|seat| self.seats[*seat].leads() && !self.is_stopped(*seat)).collect()
    }

    /// One of the leading seats. In a split, people ask either.
    pub(super) fn asked(&mut self) -> Option<usize> {
        let leading = self.leading();
        let count = leading.len() as u64;
        (count > 0).then(|| leading[below(&mut self.rng, count) as usize])
    }

    pub(super) fn is_stopped(&self, seat: usize) -> bool {
        self.now <= self.seats[seat].stopped_until
    }

    /// After how long events for a stopped coordinator reach it.
    pub(super) fn after_stop_ms(&self, seat: usize) -> u64 {
        self.seats[seat].stopped_until - self.now + 1
    }

    /// Starts a process, which takes over at once or waits as a standby.
    pub(super) fn start(&mut self, seat: usize, as_standby: bool) {
        if self.seats[seat].is_taken() {
            return;
        }
        let objects = Arc::clone(&self.objects);
        if as_standby {
            self.seats[seat].stand_by(&objects);
        } else if self.seats[seat].take_over_at_once(self.settings, &objects) {
            self.begin(seat);
        } else {
            return self.plan(1000, SimEvent::Start(seat, false));
        }
        self.plan(LOOK_MS, SimEvent::Look(seat, self.seats[seat].life));
    }

    /// Notes that a seat leads now, and checks that it has every confirmed order. Orders confirmed by a coordinator that took
    /// over while this one was still loading are excepted.
    fn begin(&mut self, seat: usize) {
        self.outcome.lives += 1;
        let confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (run, (place, by)) in confirmed {
            if self.may_be_deleted(&run, by) || Some(by) > self.seats[seat].epoch() {
                continue;
            }
            let loaded = self.seats[seat].loaded_orders.get(&run).copied();
            assert!(loaded >= Some(place), "the order {place:?} of {run} is lost: {loaded:?} is in force");
        }
        self.tell(seat, Event::Wake);
        // A client submits again whatever was not confirmed. That must not create a second run.
        (0..self.runs.len()).for_each(|run| self.plan(20, SimEvent::Submit(run)));
    }

    /// Lets a coordinator check who leads.
    pub(super) fn look(&mut self, seat: usize) {
        if self.is_stopped(seat) {
            let ms = self.after_stop_ms(seat);
            return self.plan(ms, SimEvent::Look(seat, self.seats[seat].life));
        }
        let split = self.now <= self.split_until;
        let answering = if split { Vec::new() } else { self.leading() };
        let answering: Vec<u64> = answering.into_iter().filter_map(|leads| self.seats[leads].epoch()).collect();
        match self.seats[seat].look(self.settings, &answering) {
            Seen::Nothing => {}
            Seen::Superseded => self.supersede(seat),
            Seen::TookOver => {
                self.outcome.takeovers += 1;
                self.begin(seat);
            }
        }
        self.plan(LOOK_MS, SimEvent::Look(seat, self.seats[seat].life));
    }

    /// A coordinator learns that it no longer leads: it sends its workers away and becomes a standby.
    pub(super) fn supersede(&mut self, seat: usize) {
        self.outcome.superseded += 1;
        let sessions = self.sessions.iter().filter(|(_, ends)| ends.seat == seat);
        let sessions: Vec<_> = sessions.map(|(id, ends)| (*id, ends.worker)).collect();
        for (session, worker) in sessions {
            let reason = "another coordinator leads".to_owned();
            let close = v1::Close { kind: CloseKind::Retry.into(), reason, retry_after_ms: 0 };
            let message = v1::ToWorker { message: Some(to_worker::Message::Close(close)) };
            let ms = self.arrival_ms(session, false);
            self.plan(ms, SimEvent::ToWorker(worker, session, message));
            let ms = self.arrival_ms(session, false);
            self.plan(ms, SimEvent::StreamEnded(session));
        }
        let objects = Arc::clone(&self.objects);
        self.seats[seat].kill(false);
        self.seats[seat].stand_by(&objects);
        self.plan(LOOK_MS, SimEvent::Look(seat, self.seats[seat].life));
    }

    /// Kills a coordinator that leads. Its disk may be damaged.
    pub(super) fn crash(&mut self) {
        let Some(seat) = self.asked() else { return };
        self.outcome.crashes += 1;
        self.leave_seat(seat);
        if self.fault(self.faults.damage) && damage(&self.objects, &mut self.rng) {
            self.outcome.objects_damaged += 1;
        }
        let ms = self.draw_ms(1000);
        let as_standby = self.faults.standbys > 0 && chance(&mut self.rng, 1, 2);
        self.plan(ms, SimEvent::Start(seat, as_standby));
    }

    /// Stops a coordinator that leads for a while, or cuts the network between the coordinators.
    pub(super) fn stop_or_split(&mut self) {
        let ms = 1 + self.draw_ms(PAUSE_MS_MAX);
        if chance(&mut self.rng, 1, 2) {
            self.split_until = self.now + ms;
        } else if let Some(seat) = self.asked() {
            self.seats[seat].stop(self.now, ms);
        }
    }

    fn leave_seat(&mut self, seat: usize) {
        let write_is_made = chance(&mut self.rng, 1, 2);
        self.seats[seat].kill(write_is_made);
        let of_seat = self.sessions.iter().filter(|(_, ends)| ends.seat == seat);
        let of_seat: Vec<_> = of_seat.map(|(id, ends)| (*id, ends.worker)).collect();
        for (session, worker) in of_seat {
            self.sessions.remove(&session);
            if self.workers[worker].link == Some(session) {
                let effects = self.workers[worker].link_down(self.now);
                self.carry_out_for(worker, effects);
            }
        }
    }

    /// Where a worker connects: to the first coordinator of its list that leads in an epoch no lower than it has seen.
    pub(super) fn address_of(&mut self, worker: usize) -> Option<usize> {
        let first = self.workers[worker].seat;
        let seats = self.seats.len();
        let seen = self.seen.entry(worker).or_default();
        for seat in (0..seats).map(|step| (first + step) % seats) {
            let is_stopped = self.now <= self.seats[seat].stopped_until;
            if let Some(epoch) = self.seats[seat].epoch().filter(|epoch| *epoch >= *seen && !is_stopped) {
                *seen = epoch;
                self.workers[worker].seat = seat;
                return Some(seat);
            }
        }
        None
    }

    /// Arranges that this coordinator is stopped before the next creation of an object. Meanwhile another one takes over,
    /// gives an order that is confirmed, and ends. If the write removes objects, it may happen before the listing or the
    /// removal instead; the rival then also submits the runs that are missing.
    pub(super) fn arrange_rival(&mut self, seat: usize) {
        let (objects, confirmed): (Arc<Objects>, Confirmed) = (Arc::clone(&self.objects), Arc::clone(&self.confirmed));
        let looks_in = match self.seats[seat].next_write() {
            Some((run, Write::Delete)) => Some(format!("runs/{run}")),
            Some((run, Write::DropCheckpoints)) => Some(format!("runs/{run}/checkpoint")),
            _ => None,
        };
        let how = looks_in.map(|directory| (below(&mut self.rng, 3), directory));
        let (runs, level) = (if how.is_some() { self.runs.clone() } else { Vec::new() }, self.faults.level);
        self.outcome.rivals += 1;
        let meanwhile = move || {
            let mut store = Store::over(objects, "the rival", registry().clone());
            if store.lead().is_err() {
                // The fault that was meant for the other coordinator has hit this one.
                return;
            }
            let (saved, _) = store.load().expect("objects in memory can be listed");
            let missing = runs.into_iter().filter(|(name, _)| saved.iter().all(|saved| saved.name != *name));
            let order = |prepared: &Prepared| {
                let (verification, sampled_millionths) = (level.message().into(), level.millionths());
                v1::Order { config: prepared.toml.clone(), verification, sampled_millionths, ..v1::Order::default() }
            };
            let missing = missing.map(|(name, prepared)| (name, order(&prepared))).collect::<Vec<_>>();
            for (name, order) in saved.iter().map(|saved| (saved.name.clone(), saved.order.clone())).chain(missing) {
                let order = v1::Order { wanted: RunState::Running.into(), ..order };
                let write = Write::Order { bytes: seal_order(&order) };
                if let Ok(stored) = store.write(&name, &write) {
                    confirm(&confirmed, &name, &stored, store.epoch().map(|epoch| epoch.number));
                }
            }
        };
        match how {
            Some((0, directory)) => self.objects.before_next_list(directory, meanwhile),
            Some((1, _)) => self.objects.before_next_removal(meanwhile),
            _ => self.objects.before_next_put(meanwhile),
        }
    }

    /// Notes an order that the store reports as written.
    pub(super) fn note_confirmed(&self, seat: usize, run: &str, event: &Event) {
        if let Event::Stored { outcome: Ok(stored), .. } = event {
            confirm(&self.confirmed, run, stored, self.seats[seat].epoch());
        }
    }

    /// Checks that every leader since a conviction refuses the convicted worker.
    pub(super) fn check_welcome(&self, seat: usize, worker: usize) {
        let (epoch, holder) = (self.seats[seat].epoch(), self.workers[worker].holder());
        let since = self.outcome.convicted.get(&*holder.id);
        assert!(
            since.is_none_or(|since| epoch < Some(*since)),
            "worker {worker} was convicted in epoch {since:?} and is admitted again in {epoch:?}"
        );
    }

    /// Opens a new session of a worker with a seat.
    pub(super) fn join(&mut self, worker: usize, seat: usize) {
        self.counter += 1;
        let session = super::SessionId(self.counter);
        self.sessions.insert(session, Ends { worker, seat });
        self.workers[worker].link = Some(session);
    }
}
