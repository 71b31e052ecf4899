//! Stories of work that is lost, late or comes to nothing: what goes where next, and what is never lost.

use super::*;

const ONE_ROUND: &str =
    "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 1\ntasks = 40\npayload_bytes = 16";

/// The names of the tasks that a session has, assignment by assignment.
fn tasks_of(story: &Story, session: u64) -> Vec<Vec<Digest>> {
    let assignments = story.assigned.get(&session).into_iter().flatten();
    assignments.map(|assignment| assignment.tasks.iter().map(|task| task.hash).collect()).collect()
}

#[test]
fn a_task_that_failed_goes_alone_to_another_worker_and_may_fail_twice() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", ONE_ROUND).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    let suspect = tasks_of(&story, 1)[..1].to_vec();
    story.answer(1, panicking);
    story.answer(1, honest);
    assert!(tasks_of(&story, 1).len() == 2 && !tasks_of(&story, 1).contains(&suspect[0]), "it does not come back to 1");
    story.answer(2, honest);
    assert_eq!(tasks_of(&story, 2).len(), 1, "2 is kept free for it");
    story.answer(2, honest);
    assert_eq!(tasks_of(&story, 2), suspect, "it is alone");
    story.say(2, from_worker::Message::Beat(v1::Beat {}));
    assert_eq!(tasks_of(&story, 2), suspect, "it stays alone");
    story.answer(2, panicking);
    assert_eq!(tasks_of(&story, 2), suspect, "it has failed everywhere: anybody may try it");
    while story.answer(1, honest) + story.answer(2, honest) > 0 {}
    assert_eq!(story.run("r").digest, expected_digest(ONE_ROUND), "the third time is good");
}

#[test]
fn a_slow_task_gets_a_second_copy_and_no_third() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    let config = CONFIG.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 1");
    story.submit("r", &config).unwrap();
    story.join(1, 1);
    story.answer(1, honest);
    story.join(2, 1);
    story.join(3, 1);
    for _ in 0..5 {
        story.now = story.now + 1000;
        (1..4).for_each(|session| story.say(session, from_worker::Message::Beat(v1::Beat {})));
    }
    assert_eq!(tasks_of(&story, 1), tasks_of(&story, 2));
    assert!(tasks_of(&story, 3).is_empty());
}

#[test]
fn workers_that_left_have_no_share_in_a_batch() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1000);
    story.leave(1);
    story.join(2, 1);
    story.submit("r", ONE_ROUND).unwrap();
    story.answer(2, honest);
    story.answer(2, honest);
    assert!(tasks_of(&story, 2).iter().any(|tasks| tasks.len() > 5), "{:?}", story.assigned);
}

#[test]
fn a_cancelled_run_keeps_its_rounds() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..9 {
        story.answer(1, honest);
    }
    story.ask(Ask::Cancel { name: "r".into(), delete: false }).unwrap();
    story.tell(Event::Stop);
    let mut next = Story::begin(Settings::default());
    next.core = Coordinator::recover(Settings::default(), vec![story.saved("r")]);
    let run = next.run("r");
    assert_eq!((run.state(), run.rounds_done), (RunState::Cancelled, 2));
    next.submit("r", CONFIG).unwrap();
    next.join(1, 1);
    next.work_to_the_end(1);
    let run = next.run("r");
    assert_eq!((run.tasks_done, run.digest), (4 * 4, expected_digest(CONFIG)));
}

#[test]
fn a_silent_worker_is_lost() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1);
    story.now = Millis(9_000);
    story.say(1, from_worker::Message::Beat(v1::Beat {}));
    story.now = Millis(18_000);
    story.tell(Event::Wake);
    assert!(story.closed.is_empty(), "it was heard nine seconds ago");
    story.now = Millis(20_000);
    story.tell(Event::Wake);
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    assert!(story.closed[&1].reason.contains("not heard for 10000 ms"), "{}", story.closed[&1].reason);
}

#[test]
fn a_checkpoint_that_was_not_taken_is_taken_later_even_if_nothing_happens() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..4 {
        story.answer(1, honest);
    }
    let checkpoints =
        |story: &Story| story.writes.iter().filter(|(_, write)| matches!(write, Write::Checkpoint { .. })).count();
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    story.now = Millis(4_000);
    story.tell(Event::Wake);
    assert_eq!(checkpoints(&story), 1);
    story.store = Ok(());
    story.now = Millis(9_000);
    story.tell(Event::Wake);
    story.now = Millis(14_000);
    story.tell(Event::Wake);
    assert_eq!(checkpoints(&story), 2, "once more, and then there is nothing new");
}

/// 400 ms to write: the next one not before eight seconds more.
#[test]
fn a_checkpoint_that_took_long_is_followed_by_a_long_rest() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.store_ms = 400;
    let checkpoints =
        |story: &Story| story.writes.iter().filter(|(_, write)| matches!(write, Write::Checkpoint { .. })).count();
    for (at, expected) in [(3_100, 1), (7_000, 1), (11_400, 1), (11_600, 2)] {
        for _ in 0..4 {
            _ = story.answer(1, honest);
        }
        story.now = Millis(at);
        story.tell(Event::Wake);
        assert_eq!(checkpoints(&story), expected, "at {at} ms");
    }
}

#[test]
fn what_tasks_share_travels_once_a_session_and_their_poison_is_whole() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    let config = CONFIG.replace("reply_bytes = 8", "reply_bytes = 30\nshared_bytes = 20");
    let config = config.replace("replicas = 2", "replicas = 1");
    story.submit("r", &config).unwrap();
    story.join(1, 1);
    assert_eq!((story.assigned[&1].len(), story.shared.len()), (2, 1), "two assignments, one round");
    story.join(2, 1);
    assert_eq!((story.shared.len(), &story.shared[0]), (2, &story.shared[1]), "another worker needs it too");
    story.answer(1, honest);
    story.leave(2);
    story.work_to_the_end(1);
    assert_eq!(story.shared.len(), 1 + 1 + 2, "each round has its own");
    assert_eq!(story.run("r").digest, expected_digest(&config));

    story.submit("bad", &config.replace("replicas = 1", "replicas = 1\nseed = 9")).unwrap();
    let poison = story.assigned[&1][0].tasks[0].clone();
    let judge = |task: &Encoded| if task.hash == poison.hash { panicking(task) } else { honest(task) };
    while story.answer(1, judge) > 0 {}
    let saved = story.writes.iter().find_map(|(_, write)| match write {
        Write::Poison { bytes, .. } => Some(bytes.clone()),
        _ => None,
    });
    let saved = saved.expect("it failed three times");
    assert_eq!(honest(&poison), Outcome::Output(task::run_encoded(&saved).unwrap()), "the file is all that it takes");
}

/// A task on one worker after the other, none of which makes progress; each is lost because it is silent, or if it `beats`
/// because it is overdue. For each worker how many seconds it was there, and what became of the run.
fn lost_workers(beats: bool) -> (Vec<u64>, v1::RunState) {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    let config = ONE_ROUND.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 1");
    story.submit("r", &config).unwrap();
    let mut lives = Vec::new();
    for session in 1..=6 {
        story.join(session, 1);
        let begin = story.now;
        while !story.closed.contains_key(&session) && story.run("r").state() == v1::RunState::Running {
            story.now = story.now + 1000;
            if beats {
                story.say(session, from_worker::Message::Beat(v1::Beat {}));
            }
            story.tell(Event::Wake);
        }
        lives.push((story.now - begin) / 1000);
    }
    (lives, story.run("r").state())
}

#[test]
fn silent_workers_speak_against_no_task() {
    let (lives, state) = lost_workers(false);
    assert_eq!(lives, [11; 6]);
    assert_eq!(state, v1::RunState::Running);
}

#[test]
fn a_task_that_never_ends_has_more_time_each_time_and_is_poison_in_the_end() {
    let (lives, state) = lost_workers(true);
    assert_eq!(state, v1::RunState::Failed);
    let first = lives[1];
    assert_eq!(lives[..4], [first, first, 4 * (first - 1) + 1, 16 * (first - 1) + 1], "{lives:?}");
}
