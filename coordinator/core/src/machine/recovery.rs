//! Recovery of runs from the store.

use evoxo_common::experiment::Registry;
use evoxo_proto::v1::{self, RunState};

use super::{
    Topic, View,
    look::Moment,
    orders::{Orders, Wanted},
    out::Out,
    run::{Blocked, Run},
    work::Work,
};
use crate::{
    saved::{SavedRun, foreign_signature, unfit_because},
    trust::Level,
};

impl Work {
    /// Recovers a run from the store, without its states.
    pub(super) fn recover_run(&mut self, at: &Moment, registry: &Registry, out: &mut Out, mut saved: SavedRun) {
        self.convictions.leave_out_void(&mut saved);
        let prepared = match &saved.prepared {
            Ok(prepared) => prepared.clone(),
            Err(problems) => {
                let why = format!("run {} cannot be read by this build and is not used: {problems}", saved.name);
                out.effects.log(Topic::Trouble, why.clone());
                let (name, state) = (saved.name.clone(), RunState::Blocked.into());
                let run = v1::Run { name: name.clone(), state, message: why.clone(), ..v1::Run::default() };
                out.effects.publish(View { run, prepared: None });
                self.runs.unreadable.insert(name, why);
                return;
            }
        };
        let orders = Orders::stored(Wanted::of_order(&saved.order));
        let mut run = Run::new(saved.name.clone(), prepared, orders);
        run.submitter.clone_from(&saved.order.submitter);
        run.terms.clone_from(&saved.order.terms);
        run.level = Level::of_order(&saved.order);
        run.blocked = unfit_because(registry, &saved).map(Blocked::Unfit);
        run.foreign = foreign_signature(registry, &saved);
        run.adopt(&saved);
        if run.is_over() {
            let ago_ms = saved.ended_ago_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or_default();
            run.over_since = Some(at.now.0 as i64 - ago_ms);
        }
        for notice in &run.notices {
            out.effects.log_about(Topic::Trouble, run.about(), format!("run {}: {notice}", run.name));
        }
        if let Some(blocked) = &run.blocked {
            let line = format!("run {} is blocked: {}", run.name, blocked.why());
            out.effects.log_about(Topic::Trouble, run.about(), line);
        }
        if let Wanted::Failed(why) = run.orders.wanted() {
            let line = format!("run {} has failed: {why}; `evoxo resume {0}` tries again", run.name);
            out.effects.log_about(Topic::Trouble, run.about(), line);
        }
        self.add_run(at.now, run);
    }
}
