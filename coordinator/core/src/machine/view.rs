//! A run as clients see it.

use evoxo_proto::v1::{self, RunState};

use super::{about::About, budget::Shortage, orders::Wanted, phases::ReplicaRecord, run::Run, standing::Identity};
use crate::replicas::ReplicaKey;

/// The maximum number of a run's notices about workers that cannot compute its tasks.
const FAILING_MAX: usize = 8;
/// How many characters from the beginning and from the end of such a worker's message are kept.
const BEGINNING_MAX: usize = 100;
const END_MAX: usize = 300;

impl Run {
    /// The fields of log lines about the run.
    pub(super) fn about(&self) -> About {
        About { run: Some(self.name.clone()), ..About::default() }
    }

    /// The fields of log lines about one of the run's replicas.
    pub(super) fn about_replica(&self, replica: ReplicaKey) -> About {
        let arm = self.prepared.config.arms.get(replica.arm as usize).map(|arm| arm.name.clone());
        About { arm, replica: Some(replica.index), ..self.about() }
    }

    /// The run as clients see it, without figures about workers.
    pub(super) fn view(&self) -> v1::Run {
        let arms: Vec<v1::ArmProgress> =
            (0..self.prepared.config.arms.len()).map(|arm| self.arm_progress(arm)).collect();
        v1::Run {
            name: self.name.clone(),
            kind: self.prepared.config.kind.name.into(),
            state: self.state().into(),
            message: self.message(),
            config_hash: self.prepared.hash.to_string(),
            replicas_total: self.replicas.len() as u32,
            replicas_finished: self.replicas.finished() as u32,
            rounds_done: arms.iter().map(|arm| arm.rounds_done).sum(),
            rounds_total: arms.iter().map(|arm| arm.rounds_total).fold(0, u64::saturating_add),
            tasks_done: self.tasks_done,
            spent: Some(self.spent),
            digest: self.digest.map(|digest| digest.to_string()).unwrap_or_default(),
            notices: self.notices.clone(),
            arms,
            doubts: self.doubts.clone(),
            terms: self.terms.clone(),
            submitter: self.submitter.clone(),
            verification: self.level.message().into(),
            sampled_millionths: self.level.millionths(),
            ..v1::Run::default()
        }
    }

    /// Adds a notice that a worker cannot compute something, with the worker's own message. There is one notice for each
    /// worker and kind of trouble. A host may lack something that the tasks need.
    pub(super) fn note_failure(&mut self, worker: &Identity, what: &str, why: &str) {
        if self.failing.len() < FAILING_MAX && self.failing.insert((worker.clone(), what.to_owned())) {
            let why = shortened(why);
            self.notice(format!("{what}: {why}; other events there are not listed"));
        }
    }

    fn message(&self) -> String {
        match (&self.blocked, self.orders.wanted()) {
            (Some(blocked), _) => blocked.why().to_owned(),
            (None, Wanted::Failed(why)) => why.clone(),
            _ if self.state() == RunState::InDoubt => {
                let tasks = match self.doubts.len() {
                    1 => "a task that was computed twice had two outputs".to_owned(),
                    count => format!("{count} tasks that were computed twice had two outputs"),
                };
                format!(
                    "{tasks}, so one of the workers computes wrongly, and its other outputs may be wrong too; see \
                     the doubts"
                )
            }
            _ => match self.waits_for_memory {
                Some(Shortage::All) => "it waits for memory that other runs use".into(),
                Some(Shortage::Own) => format!(
                    "it waits for memory: other runs of {} use most of the three quarters that one submitter may have",
                    self.submitter
                ),
                None => self.trouble.sentence().cloned().unwrap_or_default(),
            },
        }
    }

    fn arm_progress(&self, arm: usize) -> v1::ArmProgress {
        let (kind, number) = (self.prepared.config.kind, arm as u32);
        let first = ReplicaKey { arm: number, index: 0 };
        let last = ReplicaKey { arm: number, index: u32::MAX };
        let records = || self.replicas.range(first..=last).map(|(_, record)| record);
        // A replica may end before its maximum number of rounds.
        let most = self.prepared.rounds(number);
        let rounds = |record: &ReplicaRecord| if record.is_finished() { record.rounds } else { most };
        let (sum, count) = records()
            .filter_map(|record| record.metric)
            .fold((0.0, 0), |(sum, count), metric| (sum + metric, count + 1));
        v1::ArmProgress {
            name: self.prepared.config.arms[arm].name.clone(),
            replicas_finished: records().filter(|record| record.is_finished()).count() as u32,
            primary_metric: (count > 0).then(|| sum / f64::from(count)),
            primary_metric_name: kind.columns[kind.primary_metric].name.into(),
            replicas_total: self.prepared.config.replicas,
            rounds_done: records().map(|record| record.rounds).sum(),
            rounds_total: records().map(rounds).fold(0, u64::saturating_add),
        }
    }
}

/// Why a task failed, short enough for a notice. A program's last words usually give the reason, so the end is kept too.
fn shortened(why: &str) -> String {
    let characters: Vec<char> = why.chars().collect();
    if characters.len() <= BEGINNING_MAX + END_MAX {
        return why.to_owned();
    }
    let (beginning, rest) = characters.split_at(BEGINNING_MAX);
    let end = &rest[rest.len() - END_MAX..];
    beginning.iter().chain(&[' ', '.', '.', '.', ' ']).chain(end).collect()
}
