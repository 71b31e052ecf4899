//! Counts how attempts end ([`super::attempts`]), and compares the workers with each other.

use std::collections::BTreeMap;

use evoxo_common::time::Millis;

use super::{
    SessionId, Topic,
    attempts::{AttemptEnd, Recently},
    fleet::{Compared, Fleet},
    out::Out,
    standing::Identity,
};

/// Workers are compared at most this often, in milliseconds.
const COMPARED_MS: u64 = 1000;

impl Fleet {
    /// Counts the end of attempts of a worker. `says` is false if the end says nothing about the worker: for example, a
    /// second copy may be late through no fault of the worker.
    pub(super) fn note_end(&mut self, out: &mut Out, worker: &Identity, end: AttemptEnd, count: u64, says: bool) {
        out.tally.attempts.add(end, count);
        // The record of a worker that has left may have been forgotten.
        let Some(history) = self.standings.history_mut(worker) else { return };
        history.all.add(end, count);
        if says {
            history.mark(end);
            self.compared.due |= end != AttemptEnd::Done || history.notice.is_some();
        }
    }

    /// Like [`Self::note_end`], for one attempt of a session. It also counts what the session computed.
    pub(super) fn note_end_of(&mut self, now: Millis, out: &mut Out, id: SessionId, end: AttemptEnd, says: bool) {
        let identity = self.sessions.change_if_there(id, |session| {
            if matches!(end, AttemptEnd::Done | AttemptEnd::Late) {
                session.tasks_done += 1;
                session.recent.count(now);
            }
            session.identity.clone()
        });
        if let Some(identity) = identity {
            self.note_end(out, &identity, end, 1, says);
        }
    }

    /// A worker has joined. If its attempts ended badly before, it is compared with the others again.
    pub(super) fn compare_joined(&mut self, worker: &Identity) {
        let bad = self.standings.history(worker).is_some_and(|history| history.recent().bad > 0);
        self.compared.due |= bad;
    }

    /// Compares the workers with each other, if attempts have ended badly: gives notices to those that stand out, and takes
    /// them from those that compute again.
    pub(super) fn compare_workers(&mut self, now: Millis, out: &mut Out) {
        if !self.compared.due || now.0 < self.compared.last_ms + COMPARED_MS {
            return;
        }
        self.compared = Compared { due: false, last_ms: now.0 };
        let mut of: BTreeMap<Identity, (SessionId, Recently)> = BTreeMap::new();
        for (id, session) in self.sessions.iter() {
            if let Some(history) = self.standings.history(&session.identity) {
                of.entry(session.identity.clone()).or_insert((id, history.recent()));
            }
        }
        let sum = |sum: Recently, recent: Recently| Recently { bad: sum.bad + recent.bad, all: sum.all + recent.all };
        let all = of.values().map(|(_, recent)| *recent).fold(Recently::default(), sum);
        for (identity, (id, recent)) in of {
            let others = Recently { bad: all.bad - recent.bad, all: all.all - recent.all };
            let session = &self.sessions[id];
            let (name, about) = (session.name.clone(), session.about(id));
            let Some(history) = self.standings.history_mut(&identity) else { continue };
            let had = history.notice.is_some();
            if recent.stands_out(others) || (had && !recent.has_recovered()) {
                let (bad, ends) = (recent.bad, history.bad_ends());
                let sentence = format!(
                    "{bad} of its last {} attempts ended badly ({ends}), and {} of {} on the other workers",
                    recent.all, others.bad, others.all
                );
                history.notice = Some(sentence.clone());
                if !had {
                    let line = format!("worker {name} stands out: {sentence} (session {id})");
                    out.effects.log_about(Topic::Trouble, about, line);
                }
            } else if history.notice.take().is_some() {
                let line = format!("worker {name} no longer stands out: its attempts end well again (session {id})");
                out.effects.log_about(Topic::Progress, about, line);
            }
        }
    }
}
