//! The operator's view, and workers that are asked to leave.

use super::*;

fn named(names: &[&str], sessions: &[u64], host: &str) -> v1::DrainWorkersRequest {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    v1::DrainWorkersRequest { names, sessions: sessions.to_vec(), host: host.into() }
}

impl Story {
    /// Asks workers to leave. Returns their sessions.
    fn drain(&mut self, named: v1::DrainWorkersRequest) -> Result<Vec<u64>, Rejection> {
        match self.ask(Request::Drain(named))? {
            Response::Workers(workers) => Ok(workers.iter().map(|worker| worker.session).collect()),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn figures(&mut self) -> Figures {
        match self.ask(Request::Figures) {
            Ok(Response::Figures(figures)) => *figures,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn lost(&mut self) -> Vec<v1::LostWorker> {
        match self.ask(Request::Lost) {
            Ok(Response::Lost(lost)) => lost,
            other => panic!("{other:?}"),
        }
    }

    fn greet_from(&mut self, session: u64, name: &str, host: &str) {
        self.greet(session, v1::Hello { name: name.into(), host: host.into(), ..Self::hello(session, 1) });
    }
}

/// A worker that is asked to leave keeps its tasks, gets no more, and does not count as lost when it goes.
#[test]
fn a_drained_worker_finishes_its_tasks() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    let had = story.assigned[&1].len();
    assert!(had > 0);
    assert_eq!(story.drain(named(&["w1"], &[], "")), Ok(vec![1]));
    assert_eq!(story.left_to, [(1, "an operator requested it".to_owned())]);
    story.wait(300);
    assert_eq!(story.run("r").workers, 0, "the worker no longer counts for the run");
    while story.answer(1, honest) > 0 {}
    assert_eq!(story.figures().tally.tasks_done, had as u64, "the worker got no more tasks");
    assert_eq!(story.figures().workers_leaving, 1);
    story.leave(1);
    assert!(story.lost().is_empty() && story.logged(Topic::WorkerLost) == 0);
    story.join(2, 1);
    story.work_to_the_end(2);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

/// The request may be lost with the connection. The same process is asked again; another process is not.
#[test]
fn a_process_that_reconnects_is_asked_to_leave_again() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.drain(named(&[], &[1], "")).unwrap();
    story.leave(1);
    assert_eq!(story.lost().len(), 1, "the worker left before its tasks were done");
    let again = |session| v1::Hello { process: 1, name: "w1".into(), ..Story::hello(session, 1) };
    story.greet(2, again(2));
    assert_eq!(story.left_to.len(), 2);
    assert!(!story.assigned.contains_key(&2), "the worker gets no tasks");
    story.leave(2);
    // The process has left normally, so a new start with the same number works again.
    story.greet(3, again(3));
    assert_eq!(story.left_to.len(), 2);
    assert!(story.assigned.contains_key(&3));
}

#[test]
fn only_the_selected_workers_are_asked_to_leave() {
    let mut story = Story::begin(Settings::default());
    for (session, name, host) in [(1, "twin", "lab1"), (2, "twin", "lab2"), (3, "only", "lab2")] {
        story.greet_from(session, name, host);
    }
    let Err(Rejection::Conflict(why)) = story.drain(named(&["only", "twin"], &[], "")) else {
        panic!("the drain was not rejected")
    };
    assert!(why.contains("in the sessions 1 (from 10.0.0.1), 2 (from 10.0.0.1): select one with --session"), "{why}");
    assert!(matches!(story.drain(named(&["only", "nobody"], &[], "")), Err(Rejection::NotFound(_))));
    assert!(matches!(story.drain(named(&["only"], &[9], "")), Err(Rejection::NotFound(_))));
    assert!(matches!(story.drain(named(&["only"], &[], "lab9")), Err(Rejection::NotFound(_))));
    assert!(matches!(story.drain(named(&[""], &[], "")), Err(Rejection::NotFound(_))));
    assert!(matches!(story.drain(named(&[], &[], "")), Err(Rejection::Invalid(_))));
    let many: Vec<u64> = (0..5000).collect();
    assert!(matches!(story.drain(named(&[], &many, "")), Err(Rejection::Invalid(_))));
    assert!(story.left_to.is_empty(), "no worker was asked to leave");
    assert_eq!(story.drain(named(&["only"], &[], "lab2")), Ok(vec![2, 3]));
    assert_eq!(story.drain(named(&[], &[], "10.0.0.1")), Ok(vec![1, 2, 3]));
}

/// The figures match the events, and lost workers are listed with the reason.
#[test]
fn figures_and_lost_workers() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.greet_from(1, "one", "lab1");
    story.join(2, 3);
    let figures = story.figures();
    assert_eq!((figures.slots, figures.workers_busy + figures.workers_idle), (4, 2));
    let out: usize = [1, 2].iter().flat_map(|session| story.assigned.get(session)).map(Vec::len).sum();
    assert_eq!((figures.tasks_out, figures.tally.assignments), (out as u64, out as u64));
    assert_eq!(figures.memory_bytes_max, Settings::default().memory_bytes_max);
    story.now = story.now + 20;
    story.answer(1, honest);
    let tally = story.figures().tally;
    assert_eq!((tally.tasks_done, tally.task.count(), tally.assignment.count()), (1, 1, 1));
    assert!((tally.assignment.sum_s() - 0.02).abs() < 1e-9);
    story.leave(1);
    story.now = story.now + 5000;
    let lost = story.lost();
    assert_eq!((lost[0].name.as_str(), lost[0].host.as_str(), lost[0].ago_ms), ("one", "lab1", 5000));
    assert_eq!((lost[0].reason.as_str(), lost[0].session), ("its connection ended", 1));
    assert_eq!(story.figures().tally.lost["connection ended"], 1);
    story.work_to_the_end(2);
    let figures = story.figures();
    assert_eq!((figures.tasks_out, figures.tasks_ready, figures.memory_bytes), (0, 0, 0));
    assert!(figures.tally.rounds > 0 && figures.tally.joined == 2);
    for session in 100..200 {
        story.join(session, 1);
        story.leave(session);
        story.now = story.now + 400_000;
    }
    assert!(story.lost().len() <= 64);
}
