//! Carries out the effects of the coordinators and workers of a simulated cluster.

use evoxo_coordinator::core::{Effect, StoreFault, Stored, Write};
use evoxo_proto::v1::to_worker;

use super::{Character, Cluster, Encoded, Event, Fault, SessionId, SimEvent, Topic, below, chance, v1, worker_core};
use crate::{objects::names, seat::Done, worker::output_of};

impl Cluster {
    pub(super) fn tell(&mut self, seat: usize, event: Event) {
        if self.is_stopped(seat) {
            let (ms, life) = (self.after_stop_ms(seat), self.seats[seat].life);
            return self.plan(ms, SimEvent::Held(seat, life, event));
        }
        let effects = self.seats[seat].handle(self.now, event);
        effects.into_iter().for_each(|effect| self.carry_out(seat, effect));
        if let Some(at) = self.seats[seat].next_wake() {
            self.plan(at.max(self.now) - self.now, SimEvent::Wake(seat, self.seats[seat].life));
        }
    }

    fn carry_out(&mut self, seat: usize, effect: Effect) {
        match effect {
            Effect::Send { session, message } => {
                let Some(ends) = self.sessions.get(&session).copied() else { return };
                if matches!(message.message, Some(to_worker::Message::Welcome(_))) {
                    self.check_welcome(seat, ends.worker);
                }
                if !self.fault(self.faults.lose) {
                    let ms = self.arrival_ms(session, false);
                    self.plan(ms, SimEvent::ToWorker(ends.worker, session, message));
                }
            }
            Effect::End { session } => {
                let ms = self.arrival_ms(session, false);
                self.plan(ms, SimEvent::StreamEnded(session));
            }
            Effect::Log { topic, sentence, .. } => self.note(seat, topic, &sentence),
            Effect::Respond { id, response } => self.on_response(seat, id, &response),
            Effect::Start { thread, prepared, draw, states, lanes, scope } => {
                self.seats[seat].start_thread(thread, prepared, draw, states, lanes, scope);
            }
            Effect::Drop { thread } => self.seats[seat].drop_thread(thread),
            Effect::ForgetRecalled => self.seats[seat].forget_recalled(),
            Effect::Job { thread, job } => {
                let (life, rng) = (self.seats[seat].life, &mut self.rng);
                for (at, reports) in self.seats[seat].run_job(self.now, thread, job, || below(rng, 6)) {
                    self.plan(at - self.now, SimEvent::Reported(seat, life, thread, reports));
                }
            }
            Effect::ComputeHere { task, .. } => {
                let ms = 1 + self.draw_ms(self.faults.task_ms_max);
                self.plan(ms, SimEvent::ComputedHere(seat, self.seats[seat].life, Some(task)));
            }
            Effect::StopComputing => {
                self.seats[seat].computing_stopped = true;
                self.plan(1, SimEvent::ComputedHere(seat, self.seats[seat].life, None));
            }
            Effect::Store { write, run, what } => {
                if self.seats[seat].put_write(write, run, what) {
                    self.plan_write(seat);
                }
            }
            Effect::Convict { identity, what } => {
                let number = usize::from_str_radix(&identity, 16).expect("a number of the simulation");
                let character = self.workers[number].character;
                assert!(character.lies(), "{character:?} {number} was convicted: {what}");
                let epoch = self.seats[seat].epoch().expect("a coordinator that convicts leads");
                self.outcome.convicted.entry(identity).or_insert(epoch);
            }
            Effect::Audit { .. }
            | Effect::Publish(_)
            | Effect::Unpublish { .. }
            | Effect::Healthy(_)
            | Effect::Stopped => {}
        }
    }

    fn note(&mut self, seat: usize, topic: Topic, sentence: &str) {
        if std::env::var_os("SEED").is_some() {
            println!("{:>8} {seat} {sentence}", self.now.0);
        }
        self.outcome.undone += u64::from(sentence.contains("is computed again, because it had absorbed"));
        match topic {
            Topic::WorkerLost => self.outcome.workers_lost += 1,
            Topic::WorkerRefused => self.outcome.workers_refused += 1,
            Topic::RunFailed => self.outcome.failure = Some(sentence.to_owned()),
            Topic::Doubt => panic!("two workers of one build differed: {sentence}"),
            Topic::Progress | Topic::Trouble => {}
        }
    }

    /// The separate process of a coordinator has ended. A task that kills workers kills this process too.
    pub(super) fn computed_here(&mut self, seat: usize, task: Option<Encoded>) {
        let outcome = match task {
            None => Err("it was asked to stop".to_owned()),
            // This is the process that was asked to stop, which has been reported already.
            Some(_) if std::mem::take(&mut self.seats[seat].computing_stopped) => return,
            Some(task) if Some(task.hash) == self.poison => Err("its process was ended by signal 9".to_owned()),
            Some(task) => {
                self.outcome.computed_here += 1;
                Ok(output_of(&task))
            }
        };
        self.tell(seat, Event::ComputedHere(outcome));
    }

    fn plan_write(&mut self, seat: usize) {
        let ms = self.draw_ms(30);
        self.plan(ms, SimEvent::Written(seat, self.seats[seat].life));
    }

    /// Lets the store make a write. Sometimes the write fails, or its success is not reported, or its name is reported as
    /// taken.
    pub(super) fn write(&mut self, seat: usize) {
        if self.is_stopped(seat) {
            let ms = self.after_stop_ms(seat);
            return self.plan(ms, SimEvent::Written(seat, self.seats[seat].life));
        }
        if self.fault(self.faults.rival) {
            self.arrange_rival(seat);
        }
        if self.fault(self.faults.store) {
            let (lost, taken) = (chance(&mut self.rng, 1, 2), chance(&mut self.rng, 1, 4));
            self.outcome.answers_lost += u64::from(lost);
            self.objects.next_put(match (lost, taken) {
                (true, false) => Fault::WrittenButDenied,
                (true, true) => Fault::WrittenButTaken,
                (false, false) => Fault::Failed,
                (false, true) => Fault::Taken,
            });
        }
        let loads = |(run, what): (&str, &Write)| match what {
            Write::Load => Some(format!("runs/{run}/")),
            Write::LoadFork { of, .. } => Some(format!("runs/{of}/")),
            _ => None,
        };
        let loads = self.seats[seat].next_write().and_then(loads);
        if let Some(run) = loads.filter(|_| self.fault(self.faults.store)) {
            // The object is listed, but for a moment it cannot be read.
            let mut names = names(&self.objects);
            names.retain(|name| name.starts_with(&run));
            let unreadable = (!names.is_empty()).then(|| below(&mut self.rng, names.len() as u64) as usize);
            self.objects.cannot_read(unreadable.map(|place| names.swap_remove(place)));
        }
        let done = self.seats[seat].make_write();
        self.objects.cannot_read(None);
        let Some(Done { run, each, more }) = done else { return };
        if matches!(&each[0].1, Event::Stored { outcome: Err(StoreFault::Superseded(_)), .. }) {
            return self.supersede(seat);
        }
        self.outcome.packs += u64::from(each.len() > 1);
        if more {
            self.plan_write(seat);
        }
        for (what, event) in each {
            match &what {
                Write::Order { .. } => self.note_confirmed(seat, &run, &event),
                Write::LoadFork { .. } => self.outcome.begun_forks += u64::from(begins_with_a_past(&event)),
                Write::Checkpoint { bytes, .. } if matches!(&event, Event::Stored { outcome: Ok(_), .. }) => {
                    self.note_disputes(bytes);
                }
                _ => {}
            }
            self.tell(seat, event);
        }
    }

    /// The travel time of the next message of a stream. It arrives after the earlier ones, unless a fault changes that.
    pub(super) fn arrival_ms(&mut self, session: SessionId, to_coordinator: bool) -> u64 {
        let ms = self.draw_ms(self.faults.delay_ms_max);
        if self.fault(self.faults.repeat) {
            return ms;
        }
        let last = self.arrivals.entry((session, to_coordinator)).or_default();
        *last = (*last).max(self.now + ms);
        *last - self.now
    }

    pub(super) fn tell_worker(&mut self, worker: usize, event: worker_core::Event) {
        if self.workers[worker].alive {
            let effects = self.workers[worker].tell(self.now, event);
            self.carry_out_for(worker, effects);
        }
    }

    pub(super) fn carry_out_for(&mut self, worker: usize, effects: Vec<worker_core::Effect>) {
        let (life, link) = (self.workers[worker].life, self.workers[worker].link);
        for effect in effects {
            match effect {
                worker_core::Effect::Connect => {
                    let ms = self.draw_ms(20);
                    self.plan(ms, SimEvent::Connect(worker, life));
                }
                worker_core::Effect::Send(message) => self.transmit(worker, message),
                worker_core::Effect::Start { slot, .. } => {
                    let ms = self.draw_ms(self.workers[worker].task_ms);
                    self.plan(1 + ms, SimEvent::Computed(worker, life, slot));
                }
                worker_core::Effect::Disconnect => self.end_stream(link),
                worker_core::Effect::Exit { status, sentence } => {
                    assert_eq!(status, worker_core::STATUS_REFUSED, "{sentence}");
                    let character = self.workers[worker].character;
                    let may = character.lies() || matches!(character, Character::Foreign | Character::Garbled);
                    assert!(may, "{character:?}: {sentence}");
                    self.end_stream(link);
                }
                worker_core::Effect::Log(..) | worker_core::Effect::TaskFailed { .. } => {}
            }
        }
        let state = &mut self.workers[worker];
        if let Some(at) = state.next_wake().filter(|_| state.alive)
            && state.wake_at.is_none_or(|planned| planned > at)
        {
            state.wake_at = Some(at);
            self.plan(at - self.now, SimEvent::WakeWorker(worker, life));
        }
    }

    /// Closes the worker's side of the stream.
    pub(super) fn end_stream(&mut self, link: Option<SessionId>) {
        if let Some(session) = link {
            let ms = self.arrival_ms(session, true);
            self.plan(ms, SimEvent::StreamEnds(session));
        }
    }

    fn transmit(&mut self, worker: usize, message: v1::FromWorker) {
        let Some(session) = self.workers[worker].link else { return };
        let times = if self.fault(self.faults.lose) { 0 } else { 1 + u64::from(self.fault(self.faults.repeat)) };
        // Hello opens the stream, so it cannot be repeated: a second one would belong to another session.
        let hello = matches!(message.message, Some(v1::from_worker::Message::Hello(_)));
        for _ in 0..if hello { times.min(1) } else { times } {
            let ms = self.arrival_ms(session, true);
            self.plan(ms, SimEvent::ToCoordinator(session, message.clone()));
        }
    }
}

/// Whether a run was loaded with states of another one.
fn begins_with_a_past(loaded: &Event) -> bool {
    let Event::Stored { outcome: Ok(Stored::Loaded(Some(saved))), .. } = loaded else { return false };
    saved.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.object.is_none())
}
