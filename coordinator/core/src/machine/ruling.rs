//! Carries out what the rules decide ([`super::rules`]).

use super::{
    Coordinator, Effect, Topic, Write,
    rules::{Act, Look, Ordered, Rules, expiry::ANNOUNCES, labels::wanted},
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
        // It may be kept by its new terms, or continue.
        run.expiry_said = None;
        run.notices.retain(|notice| !notice.starts_with(ANNOUNCES));
        run.labels = wanted(&run.terms);
        self.rules.ordered(id, &Ordered { submitter: &run.submitter, terms: &run.terms });
    }

    /// Notes which runs have ended, for the rules that delete them.
    pub(super) fn note_ends(&mut self) {
        for id in self.runs.ids() {
            let now = self.now;
            let run = self.runs.adjust(id);
            run.over_since = run.is_over().then(|| run.over_since.unwrap_or(now.0 as i64));
        }
    }

    /// Consults all rules, and carries out what they decide.
    pub(super) fn follow_rules(&mut self, ask: impl FnOnce(&mut Rules, &Look) -> Vec<Act>) {
        let Self { rules, now, settings, runs, tasks, sessions, writes, .. } = self;
        let acts = ask(rules, &Look { now: *now, settings, runs, tasks, sessions, writes });
        for act in acts {
            match act {
                Act::Lose(session, cause) => self.facts.note_lost(session, cause),
                Act::Announce(id, sentence) => {
                    let now = self.now;
                    let run = self.runs.change(id);
                    run.expiry_said = Some(now);
                    let (line, about) = (format!("run {}: {sentence}", run.name), run.about());
                    run.notice(sentence);
                    self.effects.log_about(Topic::Progress, about, line);
                }
                Act::Delete(id, why) => {
                    self.tally.retired += 1;
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
