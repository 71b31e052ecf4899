//! One replica between two rounds: an experiment's state machine, with its identity and its history.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use evoxo_proto::v1::{HistoryRow, ReplicaState};
use serde_json::Value;

use super::{
    Arm, Births, Config, Kind, Saved,
    chain::{Link, ResultDigest, RowChain, is_due, read_links, write_links},
    ends::Watch,
    running::Running,
};
use crate::{candidates::Candidate, card::Card, report::Sheet, task::Task};

/// One replica of one arm.
pub struct Replica {
    kind: &'static Kind,
    seed: u64,
    arm: String,
    index: u32,
    rounds: u64,
    history: Vec<Vec<f64>>,
    /// The hashes of all rows in the history.
    chain: RowChain,
    links: Vec<Link>,
    failure: String,
    /// Checks the history for conditions that end the replica, if there are any.
    watch: Option<Watch>,
    /// The changes of settings that are still to come: the arm as it is after this many rounds.
    later: VecDeque<(u64, Arm)>,
    /// The births of the next round, if its candidate was made before the last change of settings.
    settled: Option<Births>,
    experiment: Box<dyn Running>,
}

impl Replica {
    /// The replica before its first round.
    #[must_use]
    pub fn start(config: &Config, arm: &Arm, index: u32) -> Self {
        let (first, later) = config.stage(arm, 0);
        let experiment = (config.kind.start)(config.seed, &first, index);
        Self {
            kind: config.kind,
            seed: config.seed,
            arm: arm.name.clone(),
            index,
            rounds: 0,
            history: Vec::new(),
            chain: RowChain::of([]),
            links: Vec::new(),
            failure: String::new(),
            watch: config.ends.clone().map(Watch::new),
            later,
            settled: None,
            experiment,
        }
    }

    /// Restores a replica from what [`Replica::save`] returned.
    ///
    /// # Errors
    /// A sentence if a replica of this configuration cannot have this state.
    pub fn restore(config: &Config, saved: &ReplicaState) -> Result<Self, String> {
        let name = format!("replica {} of arm {:?}", saved.replica, saved.arm);
        let arm = config.arms.iter().find(|arm| arm.name == saved.arm);
        let arm = arm.ok_or_else(|| format!("{name} belongs to no arm of this configuration"))?;
        let (stage, later) = config.stage(arm, saved.rounds);
        let experiment = (config.kind.restore)(config.seed, &stage, saved.replica, &saved.state)
            .map_err(|why| format!("{name}: {why}"))?;
        let links = links(config, &name, saved)?;
        let mut watch = config.ends.clone().map(Watch::new);
        watch.iter_mut().for_each(|watch| saved.history.iter().for_each(|row| watch.see(&row.values)));
        let mut replica = Self {
            kind: config.kind,
            seed: config.seed,
            arm: saved.arm.clone(),
            index: saved.replica,
            rounds: saved.rounds,
            history: saved.history.iter().map(|row| row.values.clone()).collect(),
            chain: RowChain::of(saved.history.iter().map(|row| row.values.as_slice())),
            links,
            failure: saved.failure.clone(),
            watch,
            later,
            settled: None,
            experiment,
        };
        replica.change();
        Ok(replica)
    }

    /// Converts what [`Replica::save`] returned in a run that ended earlier, for this longer configuration.
    ///
    /// # Errors
    /// The same as for [`Replica::restore`].
    pub fn lengthened(config: &Config, mut saved: ReplicaState) -> Result<ReplicaState, String> {
        let name = format!("replica {} of arm {:?}", saved.replica, saved.arm);
        let arm = config.arms.iter().find(|arm| arm.name == saved.arm);
        let arm = arm.ok_or_else(|| format!("{name} belongs to no arm of this configuration"))?;
        let mut links = links(config, &name, &saved)?;
        let history = saved.history.into_iter().map(|row| row.values).collect();
        let whole = Saved { state: saved.state.into(), rounds: saved.rounds, history, is_amid_round: false };
        let (stage, _) = config.stage(arm, saved.rounds);
        let Saved { state, rounds, history, is_amid_round } =
            (config.kind.lengthen)(config.seed, &stage, saved.replica, whole)
                .map_err(|why| format!("{name}: {why}"))?;
        (saved.state, saved.rounds) = (state.into(), rounds);
        saved.history = history.into_iter().map(|values| HistoryRow { values }).collect();
        // Removes links of rounds that a longer run does not have, or for which it has no link.
        let rows = saved.history.len() as u64;
        let mut before = 0;
        links.retain(|link| {
            let is_kept = link.round < rounds || is_amid_round && link.round == rounds;
            let stays = is_kept && link.rows <= rows && is_due(before, link.rows);
            before = link.rows;
            stays
        });
        // The state after the last whole round may have changed, so its link is made again. All rounds before it keep their links.
        saved.chain = write_links(&links);
        let is_finished = Self::restore(config, &saved)?.is_finished();
        if !is_amid_round && (is_finished || is_due(links.last().map_or(0, |link| link.rows), rows)) {
            links.push(Link { round: rounds, rows, digest: ResultDigest::of_state(&saved) });
            saved.chain = write_links(&links);
        }
        Ok(saved)
    }

    /// Everything that a checkpoint needs.
    #[must_use]
    pub fn save(&self) -> ReplicaState {
        ReplicaState {
            arm: self.arm.clone(),
            replica: self.index,
            rounds: self.rounds,
            state: self.experiment.save().into(),
            history: self.history.iter().map(|row| HistoryRow { values: row.clone() }).collect(),
            failure: self.failure.clone(),
            exposed: Vec::new(),
            recomputations: Vec::new(),
            chain: write_links(&self.links),
        }
    }

    /// The number of tasks in the next round; without a [barrier](super::Experiment::has_barrier), in all rounds that can be
    /// planned now. 0 when the replica is finished.
    #[must_use]
    pub fn tasks(&self) -> usize {
        if self.is_over() || !self.failure.is_empty() {
            return 0;
        }
        let tasks = self.experiment.tasks();
        match self.later.front() {
            // Tasks must stay the same once they are planned, so none is planned beyond the next change.
            Some((at, _)) if !self.has_barrier() => tasks.min(at.saturating_sub(self.rounds) as usize),
            _ => tasks,
        }
    }

    /// Whether a condition of the run has ended the replica.
    fn is_over(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::is_over)
    }

    /// Changes the settings, if a change is due. A replica that has ended keeps its settings. One that failed has done so in
    /// the round after the change.
    fn change(&mut self) {
        let is_due = self.later.front().is_some_and(|(at, _)| *at == self.rounds);
        let goes_on = !self.failure.is_empty() || self.experiment.tasks() > 0;
        if !is_due || self.is_over() || !goes_on {
            return;
        }
        let Some((at, arm)) = self.later.pop_front() else { return };
        let state = self.experiment.save();
        let changed = (self.kind.restore)(self.seed, &arm, self.index, &state);
        let kept = |changed: Box<dyn Running>| match changed.save() == state {
            true => Ok(changed),
            false => Err("they would change the state".to_owned()),
        };
        match changed.and_then(kept) {
            Ok(changed) => {
                // Without a barrier the next candidate exists already.
                self.settled = (!self.has_barrier()).then(|| self.experiment.births());
                self.experiment = changed;
            }
            Err(_) if !self.failure.is_empty() => {}
            Err(why) => self.failure = format!("ended: its settings cannot change after round {at}: {why}"),
        }
    }

    /// Whether all rounds are absorbed, or the replica has ended early.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.tasks() == 0
    }

    /// These tasks of the next round.
    #[must_use]
    pub fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        self.experiment.plan(tasks)
    }

    /// Whether all outputs of a round are absorbed together; see [`Experiment::has_barrier`](super::Experiment::has_barrier).
    #[must_use]
    pub fn has_barrier(&self) -> bool {
        self.experiment.has_barrier()
    }

    /// The number of tasks whose outputs [`Self::absorb`] takes next.
    #[must_use]
    pub fn needed(&self) -> usize {
        if self.has_barrier() { self.tasks() } else { self.tasks().min(1) }
    }

    /// Advances by one round, with the outputs of the first [`Self::needed`] tasks. A sentence from the experiment, or a
    /// number in its rows that is not finite, ends the replica; the rows before that are kept.
    pub fn absorb(&mut self, outputs: &[Bytes]) {
        self.settled = None;
        let mut rows = Vec::new();
        let outcome = self.experiment.absorb(outputs, &mut rows).map_err(|why| format!("ended: {why}"));
        let odd = rows.iter().enumerate().find_map(|(row, values)| {
            values.iter().position(|value| !value.is_finite()).map(|column| (row, self.kind.columns[column].name))
        });
        rows.truncate(odd.map_or(rows.len(), |(row, _)| row));
        rows.iter().for_each(|row| self.chain.add(row));
        self.watch.iter_mut().for_each(|watch| rows.iter().for_each(|row| watch.see(row)));
        let (round, before) = (self.rounds + 1, self.history.len() as u64);
        self.history.extend(rows);
        let odd =
            odd.map(|(_, name)| format!("ended: {name} is not a finite number in row {}", self.history.len() + 1));
        match odd.map_or(outcome, Err) {
            Ok(()) => self.rounds += 1,
            Err(why) => self.failure = why,
        }
        self.change();
        let rows = self.history.len() as u64;
        if is_due(before, rows) || self.is_finished() {
            self.links.push(Link { round, rows, digest: self.digest() });
        }
    }

    /// The arm's name.
    #[must_use]
    pub fn arm(&self) -> &str {
        &self.arm
    }

    /// The replica's number within its arm, from 0.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The number of rounds absorbed so far.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The rows of the history, each with one value per column.
    #[must_use]
    pub fn history(&self) -> &[Vec<f64>] {
        &self.history
    }

    /// The row with this index, for a curve over several replicas. A replica that [`Ends`](super::Ends) has ended stays at
    /// its last row.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[f64]> {
        let row = self.history.get(index).or_else(|| self.history.last().filter(|_| self.is_over()));
        row.map(Vec::as_slice)
    }

    /// The reason why the replica ended early, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        (!self.failure.is_empty()).then_some(self.failure.as_str())
    }

    /// The digest of everything that is reported about the replica; see [`ResultDigest`].
    #[must_use]
    pub fn digest(&self) -> ResultDigest {
        self.chain.digest(&self.arm, self.index, &self.experiment.save(), &self.failure)
    }

    /// The digests after some of the rounds so far; see [`Link`].
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The champion's card, with what the experiment knows about the champion, and its origin.
    #[must_use]
    pub fn champion(&self) -> Option<Card> {
        Some(self.signed(self.experiment.champion()?, &self.digest().to_string()))
    }

    /// The cards of all present players; empty if there is at most one.
    #[must_use]
    pub fn population(&self) -> Vec<Card> {
        let digest = self.digest().to_string();
        self.experiment.population().into_iter().map(|card| self.signed(card, &digest)).collect()
    }

    /// The present players as a table, if the kind has one.
    #[must_use]
    pub fn sheet(&self) -> Option<Sheet> {
        self.experiment.sheet()
    }

    /// The present candidates, the champion first; empty if the kind searches for no numbers.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        self.experiment.candidates()
    }

    /// Who is born in the next round, and the champion so far; nobody if the kind has no [lineage](super::Kind::lineage).
    #[must_use]
    pub fn births(&self) -> Births {
        self.settled.clone().unwrap_or_else(|| self.experiment.births())
    }

    fn signed(&self, mut card: Card, digest: &str) -> Card {
        let entries: [(&str, Value); 4] = [
            ("experiment", self.kind.name.into()),
            ("arm", self.arm.as_str().into()),
            ("replica", self.index.into()),
            ("digest", digest.into()),
        ];
        card.about.extend(entries.map(|(name, value)| (name.to_owned(), value)));
        card
    }
}

/// The links of a saved replica with this name, whose history must be one of this configuration.
fn links(config: &Config, name: &str, saved: &ReplicaState) -> Result<Vec<Link>, String> {
    let columns = config.kind.columns.len();
    if saved.history.iter().any(|row| row.values.len() != columns) {
        return Err(format!("{name} has a history whose rows do not have {columns} values each"));
    }
    read_links(saved.chain.as_ref(), saved.history.len())
        .ok_or_else(|| format!("{name} has digests that do not fit its history"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// An experiment that never ends. The value of its row is this number.
    struct Reporter(f64);

    impl Running for Reporter {
        fn tasks(&self) -> usize {
            1
        }

        fn plan(&self, _: Range<usize>) -> Vec<Task> {
            Vec::new()
        }

        fn absorb(&mut self, _: &[Bytes], history: &mut Vec<Vec<f64>>) -> Result<(), String> {
            history.extend([0.5, self.0, 0.5].map(|number| vec![number]));
            Ok(())
        }

        fn save(&self) -> Vec<u8> {
            Vec::new()
        }

        fn champion(&self) -> Option<Card> {
            None
        }

        fn has_barrier(&self) -> bool {
            true
        }

        fn population(&self) -> Vec<Card> {
            Vec::new()
        }

        fn sheet(&self) -> Option<Sheet> {
            None
        }

        fn births(&self) -> Births {
            unreachable!()
        }

        fn candidates(&self) -> Vec<Candidate> {
            Vec::new()
        }
    }

    #[test]
    fn a_non_finite_number_ends_the_replica_and_is_not_stored() {
        let config = testing::config("");
        for (number, ends) in [(1.5, false), (f64::NAN, true), (f64::INFINITY, true), (f64::NEG_INFINITY, true)] {
            let mut replica = Replica::start(&config, &config.arms[0], 0);
            replica.experiment = Box::new(Reporter(number));
            replica.absorb(&[]);
            assert_eq!((replica.is_finished(), replica.rounds()), (ends, u64::from(!ends)), "{number}");
            assert_eq!(replica.history().len(), if ends { 1 } else { 3 });
            let sentence = ends.then_some("ended: sum is not a finite number in row 2");
            assert_eq!(replica.failure(), sentence);
            let rows = replica.history().len() as u64;
            assert_eq!(replica.links(), [Link { round: 1, rows, digest: replica.digest() }]);
            assert_eq!(replica.digest(), ResultDigest::of_state(&replica.save()));
        }
    }
}
