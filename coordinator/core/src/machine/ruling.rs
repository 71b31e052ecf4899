//! What rules want is done ([`super::rules`]).

use super::{
    Coordinator, Effect, Topic, Write,
    rules::{Act, Look, Ordered, Rules},
    run::Run,
    runs::RunId,
    writes::Pending,
};

impl Coordinator {
    /// What rules look at.
    pub(super) fn look(&self) -> Look<'_> {
        let Self { now, settings, runs, tasks, sessions, writes, .. } = self;
        Look { now: *now, settings, runs, tasks, sessions, writes }
    }

    /// A run is there from now on.
    pub(super) fn add_run(&mut self, run: Run) -> RunId {
        let id = self.runs.add(run);
        self.note_order(id);
        id
    }

    /// A run is computed on these terms from now on.
    pub(super) fn note_order(&mut self, id: RunId) {
        let Run { submitter, terms, .. } = &self.runs[id];
        self.rules.ordered(id, &Ordered { submitter, terms });
    }

    /// Asks all rules, and does what they want.
    pub(super) fn follow_rules(&mut self, ask: impl FnOnce(&mut Rules, &Look) -> Vec<Act>) {
        let Self { rules, now, settings, runs, tasks, sessions, writes, .. } = self;
        let acts = ask(rules, &Look { now: *now, settings, runs, tasks, sessions, writes });
        for act in acts {
            match act {
                Act::Lose(session, cause) => self.facts.note_lost(session, cause),
                Act::Delete(id, why) => {
                    let run = self.runs.adjust(id);
                    run.orders.set_deleting(true);
                    let line = format!("run {}: deleted, because {why}", run.name);
                    self.effects.push(Effect::Audit { what: "retire", object: run.name.clone() });
                    self.effects.log(Topic::Progress, line);
                    self.write(id, Write::Delete, Pending::Delete(None));
                }
            }
        }
    }
}
