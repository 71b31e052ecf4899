//! Workers as clients see them, and requests that workers leave.

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::time::Millis;
use evoxo_proto::v1::{self, to_worker};

use super::{
    Rejection, SessionId, Topic,
    about::About,
    fleet::Fleet,
    out::Out,
    runs::Runs,
    sessions::{Session, Sessions},
};

/// The maximum number of names and sessions in one request.
const NAMED_MAX: usize = 4096;
/// The reason that is sent to a worker that must leave.
const LEAVE: &str = "an operator requested it";

impl Session {
    /// The fields of log lines about the worker.
    pub(super) fn about(&self, id: SessionId) -> About {
        let identity = self.identity_number().map(ToString::to_string);
        About { worker: Some(Arc::clone(&self.name)), identity, session: Some(id), ..About::default() }
    }
}

impl Runs {
    /// The names of the runs that a worker is computing.
    fn computed_by(&self, session: &Session) -> Vec<String> {
        let runs = session.assignments.values().filter_map(|assignment| self.get(assignment.run));
        let names: BTreeSet<&String> = runs.map(|run| &run.name).collect();
        names.into_iter().cloned().collect()
    }
}

impl Fleet {
    pub(super) fn workers(&self, now: Millis, runs: &Runs) -> Vec<v1::Worker> {
        self.sessions.iter().map(|(id, session)| self.worker(now, runs, id, session)).collect()
    }

    pub(super) fn worker(&self, now: Millis, runs: &Runs, id: SessionId, session: &Session) -> v1::Worker {
        let history = self.standings.history(&session.identity);
        v1::Worker {
            session: id.0,
            name: session.name.to_string(),
            build: session.build.clone(),
            slots: session.slots,
            tasks_assigned: session.tasks_assigned as u32,
            tasks_done: session.tasks_done,
            silent_ms: now - session.heard,
            connected_ms: now - session.connected,
            draining: session.draining,
            kinds: session.abilities.kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            kinds_refused: session.kinds_refused.iter().map(|kind| (*kind).to_owned()).collect(),
            address: session.address.clone(),
            programs: session.program_texts(),
            labels: session.abilities.labels.iter().cloned().collect(),
            runs: runs.computed_by(session),
            host: session.host.clone(),
            identity: session.identity_number().map(ToString::to_string).unwrap_or_default(),
            slots_busy: session.slots_busy(),
            tasks_last_minute: session.recent.of_last_minute(now),
            on_trial: session.on_trial,
            ends: history.map(|history| history.all.message()),
            cordon: session.cordon.as_deref().cloned(),
            notice: history.and_then(|history| history.notice.clone()).unwrap_or_default(),
        }
    }

    /// Asks workers to leave: all that are named or, after an error, none.
    pub(super) fn drain(
        &mut self,
        now: Millis,
        runs: &mut Runs,
        out: &mut Out,
        named: &v1::DrainWorkersRequest,
    ) -> Result<Vec<v1::Worker>, Rejection> {
        let ids = self.sessions.meant(named)?;
        for id in &ids {
            self.ask_to_leave(out, *id);
        }
        runs.change_all();
        Ok(ids.iter().map(|id| self.worker(now, runs, *id, &self.sessions[*id])).collect())
    }

    /// Assigns nothing more to a worker, and asks it to leave.
    pub(super) fn ask_to_leave(&mut self, out: &mut Out, id: SessionId) {
        self.sessions.change(id, |session| session.draining = true);
        let session = &self.sessions[id];
        self.leaving.add(session.process);
        out.effects.send(id, to_worker::Message::Leave(v1::Leave { reason: LEAVE.into() }));
        let sentence = format!("worker {} is asked to leave (session {id})", session.name);
        out.effects.log_about(Topic::Progress, session.about(id), sentence);
    }
}

impl Sessions {
    /// The sessions that a request names.
    fn meant(&self, named: &v1::DrainWorkersRequest) -> Result<BTreeSet<SessionId>, Rejection> {
        let v1::DrainWorkersRequest { names, sessions, host } = named;
        if names.is_empty() && sessions.is_empty() && host.is_empty() {
            return Err(Rejection::Invalid("name a worker, a session or a host".into()));
        }
        if names.len() + sessions.len() > NAMED_MAX {
            return Err(Rejection::Invalid(format!("at most {NAMED_MAX} workers can be named at once")));
        }
        let matching = |holds: &dyn Fn(&Session) -> bool| -> Vec<SessionId> {
            self.iter().filter(|(_, session)| holds(session)).map(|(id, _)| id).collect()
        };
        let mut ids = BTreeSet::new();
        for id in sessions.iter().copied().map(SessionId) {
            if self.get(id).is_none() {
                return Err(not_connected(&format!("session {id}")));
            }
            ids.insert(id);
        }
        for name in names {
            let found = matching(&|session| {
                *session.name == **name || session.identity_number().is_some_and(|id| **id == **name)
            });
            match found.as_slice() {
                [id] => drop(ids.insert(*id)),
                [] => return Err(not_connected(&format!("worker {name:?}"))),
                several => return Err(self.several(name, several)),
            }
        }
        if !host.is_empty() {
            let found = matching(&|session| session.host == *host || session.address == *host);
            if found.is_empty() {
                return Err(not_connected(&format!("worker on the host {host:?}")));
            }
            ids.extend(found);
        }
        Ok(ids)
    }

    /// The error for a name that several workers share.
    fn several(&self, name: &str, ids: &[SessionId]) -> Rejection {
        const SHOWN_MAX: usize = 8;
        let shown = ids.iter().take(SHOWN_MAX).map(|id| format!("{id} (from {})", self[*id].address));
        let shown: Vec<String> = shown.collect();
        let more = if ids.len() > SHOWN_MAX { ", ..." } else { "" };
        Rejection::Conflict(format!(
            "{} workers match {name:?}, in the sessions {}{more}: select one with --session, or all of a host with \
             --host",
            ids.len(),
            shown.join(", ")
        ))
    }
}

fn not_connected(what: &str) -> Rejection {
    let what: String = what.chars().take(200).collect();
    Rejection::NotFound(format!("there is no {what} here: `evoxo workers` lists the connected workers"))
}
