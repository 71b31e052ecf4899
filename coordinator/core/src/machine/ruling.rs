//! Carries out what the rules decide ([`super::rules`]).

use evoxo_common::time::Millis;

use super::{
    Effect, Topic, Write,
    look::{Look, Moment},
    out::Out,
    rules::{Act, Ordered, Rules, expiry::ANNOUNCES, labels::wanted},
    run::Run,
    runs::RunId,
    sessions::Sessions,
    work::Work,
    writes::Pending,
};

impl Work {
    /// Adds a run.
    pub(super) fn add_run(&mut self, now: Millis, run: Run) -> RunId {
        let id = self.runs.add(run);
        self.note_order(now, id);
        id
    }

    /// Tells the rules that a run is computed on its current terms from now on.
    pub(super) fn note_order(&mut self, now: Millis, id: RunId) {
        let run = self.runs.change(id);
        run.since = now;
        // It may be kept by its new terms, or continue.
        run.expiry_said = None;
        run.notices.retain(|notice| !notice.starts_with(ANNOUNCES));
        run.labels = wanted(&run.terms);
        self.rules.ordered(id, &Ordered { submitter: &run.submitter, terms: &run.terms });
    }

    /// Notes which runs have ended, for the rules that delete them.
    pub(super) fn note_ends(&mut self, now: Millis) {
        for id in self.runs.ids() {
            let run = self.runs.adjust(id);
            run.over_since = run.is_over().then(|| run.over_since.unwrap_or(now.0 as i64));
        }
    }

    /// Consults all rules, and carries out what they decide.
    pub(super) fn follow_rules(
        &mut self,
        at: &Moment,
        sessions: &Sessions,
        out: &mut Out,
        ask: impl FnOnce(&mut Rules, &Look) -> Vec<Act>,
    ) {
        let Self { rules, runs, tasks, .. } = self;
        let look = Look { now: at.now, settings: &at.settings, runs, tasks, sessions, writes: &out.writes };
        let acts = ask(rules, &look);
        for act in acts {
            match act {
                Act::Lose(session, cause) => out.facts.note_lost(session, cause),
                Act::Announce(id, sentence) => {
                    let run = self.runs.change(id);
                    run.expiry_said = Some(at.now);
                    let (line, about) = (format!("run {}: {sentence}", run.name), run.about());
                    run.notice(sentence);
                    out.effects.log_about(Topic::Progress, about, line);
                }
                Act::Delete(id, why) => {
                    out.tally.retired += 1;
                    let run = self.runs.adjust(id);
                    run.orders.set_deleting(true);
                    let line = format!("run {}: deleted, because {why}", run.name);
                    out.effects.push(Effect::Audit { what: "retire", object: run.name.clone() });
                    out.effects.log(Topic::Progress, line);
                    out.write(id, &run.name, Write::Delete, Pending::Delete(None));
                }
            }
        }
    }
}
