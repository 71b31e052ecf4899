//! What people ask, and what they get.

use evoxo_common::{config::Config, finale::champion_stem};
use evoxo_proto::v1::{self, RunState};

use super::{
    Answer, Ask, Coordinator, Effect, Rejection, Ticket,
    durable::arm_progress,
    run::{Run, RunId},
    seal::seal_finished,
};
use crate::names::check_run_name;

type Reply = Result<Answer, Rejection>;

impl Coordinator {
    pub(super) fn ask(&mut self, ticket: Ticket, ask: Ask) {
        let reply = match ask {
            Ask::Submit { name, config } => self.submit(ticket, &name, &config),
            Ask::List => Ok(Some(Answer::Runs(self.runs.keys().filter_map(|id| self.view(*id)).collect()))),
            Ask::Get { name } => self.find(&name).map(|id| self.view(id).map(Answer::Run)),
            Ask::Pause { name } => self.want(ticket, &name, RunState::Paused, false),
            Ask::Resume { name } => self.want(ticket, &name, RunState::Running, false),
            Ask::Cancel { name, delete } => self.want(ticket, &name, RunState::Cancelled, delete),
            Ask::Fetch { name } => self.fetch(&name).map(Some),
            Ask::FetchChampion { name, arm, replica } => self.fetch_champion(&name, &arm, replica).map(Some),
            Ask::Workers => Ok(Some(Answer::Workers(self.workers()))),
        };
        // What must be written first is answered when it is kept.
        if let Some(answer) = reply.transpose() {
            self.effects.push(Effect::Answer { ticket, answer });
        }
    }

    fn find(&self, name: &str) -> Result<RunId, Rejection> {
        let found = self.runs.iter().find(|(_, run)| run.name == name).map(|(id, _)| *id);
        found.ok_or_else(|| Rejection::NotFound(format!("there is no run {name:?} here: `evoxo runs` lists them")))
    }

    fn submit(&mut self, ticket: Ticket, name: &str, config: &str) -> Result<Option<Answer>, Rejection> {
        if self.stopping {
            return Err(Rejection::Unavailable("the coordinator is stopping".into()));
        }
        check_run_name(name).map_err(Rejection::Invalid)?;
        let config = Config::parse("the submitted file", config, &[])
            .map_err(|problems| Rejection::Invalid(problems.to_string()))?;
        let replicas = u64::from(config.replicas) * config.arms.len() as u64;
        if replicas > self.settings.replicas_max {
            let limit = self.settings.replicas_max;
            return Err(Rejection::Exhausted(format!(
                "the run has {replicas} replicas over all arms: at most {limit}"
            )));
        }
        if let Ok(id) = self.find(name) {
            return self.submit_again(ticket, id, config);
        }
        if self.runs.len() >= self.settings.runs_max {
            let limit = self.settings.runs_max;
            return Err(Rejection::Exhausted(format!(
                "the coordinator has {limit} runs: cancel and delete old ones first"
            )));
        }
        self.run_last = RunId(self.run_last.0 + 1);
        let mut run = Run::new(name.into(), config.clone());
        run.unborn = true;
        self.runs.insert(self.run_last, run);
        self.order(self.run_last, ticket, config, RunState::Running, true, false);
        Ok(None)
    }

    /// The same once more is nothing new; more replicas extend the run; a cancelled run goes on.
    fn submit_again(&mut self, ticket: Ticket, id: RunId, config: Config) -> Result<Option<Answer>, Rejection> {
        let Some(run) = self.runs.get(&id) else { return Ok(None) };
        if run.config.hash() != config.hash() {
            let name = &run.name;
            return Err(Rejection::Conflict(format!("run {name:?} exists with other settings: choose another name")));
        }
        if run.unborn {
            return Err(Rejection::Unavailable(format!("run {:?} is being stored: ask again", run.name)));
        }
        let more = config.replicas > run.config.replicas;
        if !more && run.wanted != RunState::Cancelled {
            return Ok(self.view(id).map(|run| Answer::Submitted { run, created: false }));
        }
        let config = if more { config } else { run.config.clone() };
        self.order(id, ticket, config, RunState::Running, true, false);
        Ok(None)
    }

    fn want(
        &mut self,
        ticket: Ticket,
        name: &str,
        wanted: RunState,
        delete: bool,
    ) -> Result<Option<Answer>, Rejection> {
        let id = self.find(name)?;
        let Some(run) = self.runs.get(&id) else { return Ok(None) };
        if let Some(why) = &run.held {
            return Err(Rejection::Conflict(format!("run {name:?} is held: {why}")));
        }
        if run.unborn {
            return Err(Rejection::Unavailable(format!("run {name:?} is being stored: ask again")));
        }
        if run.wanted == RunState::Cancelled && wanted != RunState::Cancelled {
            return Err(Rejection::Conflict(format!("run {name:?} is cancelled: submit it again to go on")));
        }
        if run.wanted == wanted && !delete {
            return Ok(self.view(id).map(Answer::Run));
        }
        if run.state() == RunState::Finished && wanted != RunState::Cancelled {
            return Err(Rejection::Conflict(format!("run {name:?} is finished")));
        }
        let config = run.config.clone();
        self.order(id, ticket, config, wanted, false, delete);
        Ok(None)
    }

    fn fetch(&self, name: &str) -> Reply {
        let signature = self.signature_digest();
        let run = &self.runs[&self.find(name)?];
        let replica = |(replica, finished): (&evoxo_common::replica::Replica, bool)| v1::Replica {
            arm: replica.arm().into(),
            replica: replica.index(),
            finished,
            state: seal_finished(&run.config, signature, replica),
        };
        Ok(Answer::Replicas(run.begun().map(replica).collect()))
    }

    fn fetch_champion(&self, name: &str, arm: &str, number: u32) -> Reply {
        let run = &self.runs[&self.find(name)?];
        let replica = run.begun().map(|(replica, _)| replica).find(|r| r.arm() == arm && r.index() == number);
        let place = run.config.arms.iter().position(|other| other.name == arm);
        let champion = place.zip(replica.and_then(evoxo_common::replica::Replica::champion));
        let missing =
            || Rejection::NotFound(format!("run {name:?} has no champion of replica {number} of arm {arm:?} yet"));
        let (place, champion) = champion.ok_or_else(missing)?;
        let (card, file) = champion.write(&champion_stem(&run.config, place, number));
        let file = file.map(|(_, bytes)| bytes.into()).unwrap_or_default();
        Ok(Answer::Champion(v1::Champion { card, file }))
    }

    /// Answers with the run as it is now.
    pub(super) fn answer_run(&mut self, id: RunId, ticket: Ticket, submitted: bool) {
        let Some(run) = self.view(id) else { return };
        let answer = if submitted { Answer::Submitted { run, created: true } } else { Answer::Run(run) };
        self.effects.push(Effect::Answer { ticket, answer: Ok(answer) });
    }

    fn view(&self, id: RunId) -> Option<v1::Run> {
        let run = self.runs.get(&id)?;
        let rounds: u64 = run.config.arms.iter().map(|arm| run.config.kind.rounds(&arm.settings)).sum();
        Some(v1::Run {
            name: run.name.clone(),
            kind: run.config.kind.name().into(),
            state: run.state().into(),
            message: run.message(),
            config_hash: run.config.hash().to_string(),
            replicas_total: run.slots.len() as u32,
            replicas_finished: run.done as u32,
            rounds_done: run.rounds_done,
            rounds_total: rounds.saturating_mul(u64::from(run.config.replicas)),
            tasks_done: run.tasks_done,
            tasks_assigned: self.tasks.assigned(id) as u32,
            digest: run.digest.map(|digest| digest.to_string()).unwrap_or_default(),
            config: run.config.to_toml(),
            notices: run.notices.clone(),
            arms: arm_progress(run),
        })
    }

    fn workers(&self) -> Vec<v1::Worker> {
        let worker = |(id, session): (&super::SessionId, &super::Session)| v1::Worker {
            session: id.0,
            name: session.name.clone(),
            build: session.build.clone(),
            slots: session.slots,
            tasks_assigned: session.tasks_assigned() as u32,
            tasks_done: session.tasks_done,
            silent_ms: self.now - session.heard,
            connected_ms: self.now - session.connected,
            draining: session.draining,
        };
        self.sessions.iter().map(worker).collect()
    }
}
