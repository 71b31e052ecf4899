//! Sets and ends cordons: the workers that an operator names get no tasks, now and after every restart.

use evoxo_common::time::Millis;
use evoxo_proto::v1;

use super::{
    Rejection, RequestId, Response, StoreFault, Topic, Write,
    cordons::{covers, shown},
    fleet::Fleet,
    look::Moment,
    out::Out,
    run::Run,
    sessions::Sessions,
    work::Work,
    writes::Refusal,
};
use crate::saved::seal_cordons;

impl Fleet {
    /// Writes a change of the cordons. It takes effect once it is stored.
    pub(super) fn cordon(
        &mut self,
        at: &Moment,
        out: &mut Out,
        request: RequestId,
        named: v1::CordonWorkersRequest,
        (by, at_s): (&str, u64),
    ) -> Result<(), Rejection> {
        if at.stopping {
            return Err(Rejection::Unavailable("the coordinator is stopping".into()));
        }
        let (number, list) = self.cordons.begin(&named, by, at_s)?;
        let refusal = Refusal::Cordoned { request, end: named.end, by: by.to_owned() };
        out.write_refusal(Write::Cordons { number, bytes: seal_cordons(&list) }, refusal);
        Ok(())
    }

    /// The store has reported the outcome of a change of the cordons.
    pub(super) fn on_cordoned(
        &mut self,
        now: Millis,
        work: &mut Work,
        out: &mut Out,
        (request, end, by): (RequestId, bool, &str),
        outcome: Result<(), StoreFault>,
    ) {
        let cordons = self.cordons.end(outcome.is_ok());
        if let Err(fault) = outcome {
            let rejection = match fault {
                StoreFault::Failed(why) | StoreFault::Fenced(why) => Rejection::Unstored(why),
                StoreFault::Superseded(why) => Rejection::Interrupted(why),
            };
            return out.effects.respond(request, Err(rejection));
        }
        for cordon in &cordons {
            let verb = if end { "get tasks again, says" } else { "get no more tasks, says" };
            out.effects.log(Topic::Progress, format!("workers of {}: {verb} {by}", shown(cordon)));
        }
        for id in self.sessions.ids() {
            let cordon = self.cordons.of(&self.sessions[id]);
            self.sessions.change(id, |session| session.cordon = cordon);
        }
        work.runs.move_all();
        work.runs.change_all();
        work.look_due = true;
        let of = self.sessions.iter().filter(|(_, session)| cordons.iter().any(|cordon| covers(cordon, session)));
        let workers = of.map(|(id, session)| self.worker(now, &work.runs, id, session)).collect();
        out.effects.respond(request, Ok(Response::Cordoned(v1::CordonWorkersResponse { cordons, workers })));
    }
}

impl Sessions {
    /// What a run waits for, if all workers that could compute it are cordoned.
    pub(super) fn all_cordoned(&self, run: &Run) -> Option<String> {
        let mut able = self.iter().filter(|(_, session)| session.serves(run) && session.cordon.is_some());
        let first = able.next()?.1;
        let more = able.count();
        let others = if more == 0 { String::new() } else { format!(" and {more} more") };
        Some(format!(
            "workers that could compute it are cordoned ({}{others}): `evoxo drain --uncordon` gives them tasks again",
            first.name
        ))
    }
}
