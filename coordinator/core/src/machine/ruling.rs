//! Carries out what the rules decide ([`super::rules`]).

use super::{
    Coordinator, Effect, Topic, Write,
    rules::{Act, Look, Ordered, Rules, labels::wanted},
    run::Run,
    runs::RunId,
    writes::Pending,
};

impl Coordinator {
    /// The parts of the coordinator that rules may read.
    pub(super) fn look(&self) -> Look<'_> {
        let Self { now, settings, runs, tasks, sessions, writes, .. } = self;
        Look { now: *now, settings, runs, tasks, sessions, writes }
    }

    /// Adds a run.
    pub(super) fn add_run(&mut self, run: Run) -> RunId {
        let id = self.runs.add(run);
        self.note_order(id);
        id
    }

    /// Tells the rules that a run is computed on its current terms from now on.
    pub(super) fn note_order(&mut self, id: RunId) {
        let now = self.now;
        let run = self.runs.change(id);
        run.since = now;
        run.labels = wanted(&run.terms);
        self.rules.ordered(id, &Ordered { submitter: &run.submitter, terms: &run.terms });
    }

    /// Consults all rules, and carries out what they decide.
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
