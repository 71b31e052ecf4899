//! Recovery of runs from the store.

use bytes::Bytes;
use evoxo_common::digest::Digest;
use evoxo_proto::v1::{self, RunState};

use super::{
    Coordinator, Topic, View,
    orders::{Orders, Wanted},
    run::{Blocked, Run},
};
use crate::{
    saved::{Origin, SavedRun, origin_of},
    trust::Level,
};

impl Coordinator {
    /// Recovers a run from the store, without its states.
    pub(super) fn recover_run(&mut self, mut saved: SavedRun) {
        // The objects of void replicas are removed when the run is loaded.
        self.convictions.leave_out_void(&mut saved);
        let prepared = match &saved.prepared {
            Ok(prepared) => prepared.clone(),
            Err(problems) => {
                let why = format!("run {} cannot be read by this build and is not used: {problems}", saved.name);
                self.effects.log(Topic::Trouble, why.clone());
                let (name, state) = (saved.name.clone(), RunState::Blocked.into());
                let run = v1::Run { name: name.clone(), state, message: why.clone(), ..v1::Run::default() };
                self.effects.publish(View { run, prepared: None });
                self.runs.unreadable.insert(name, why);
                return;
            }
        };
        let orders = Orders::stored(Wanted::of_order(&saved.order));
        let mut run = Run::new(saved.name.clone(), prepared, orders);
        run.submitter.clone_from(&saved.order.submitter);
        run.terms.clone_from(&saved.order.terms);
        run.level = Level::of_order(&saved.order);
        run.blocked = self.unfit_because(&saved).map(Blocked::Unfit);
        run.adopt(&saved);
        for notice in &run.notices {
            self.effects.log_about(Topic::Trouble, run.about(), format!("run {}: {notice}", run.name));
        }
        if let Some(blocked) = &run.blocked {
            let line = format!("run {} is blocked: {}", run.name, blocked.why());
            self.effects.log_about(Topic::Trouble, run.about(), line);
        }
        if let Wanted::Failed(why) = run.orders.wanted() {
            let line = format!("run {} has failed: {why}; `evoxo resume {0}` tries again", run.name);
            self.effects.log_about(Topic::Trouble, run.about(), line);
        }
        self.add_run(run);
    }

    /// Why this build cannot use the states of a run, if it cannot.
    pub(super) fn unfit_because(&self, saved: &SavedRun) -> Option<String> {
        let prepared = saved.prepared.as_ref().ok()?;
        let ours = origin_of(&self.registry, prepared);
        let mut origins = saved.checkpoint.iter().map(|checkpoint| &checkpoint.origin);
        let finished = saved.finished.iter().map(|finished| &finished.origin);
        let theirs: &Origin = origins.by_ref().chain(finished).find(|theirs| **theirs != ours)?;
        if theirs.signature == ours.signature {
            return Some(
                "the run's stored states belong to another configuration: start it again under another name or in \
                 another directory"
                    .into(),
            );
        }
        let short = |signature: &Bytes| Digest::from_slice(signature).map_or_else(|| "unknown".into(), |it| it.short());
        Some(format!(
            "the run was computed by a build that computes different results (behaviour {}, this build {}): continue \
             with that build, or start it again under another name or in another directory",
            short(&theirs.signature),
            short(&ours.signature)
        ))
    }
}
