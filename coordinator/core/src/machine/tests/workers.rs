//! Workers that join, and their messages.

use bytes::Bytes;
use evoxo_proto::PROTOCOL;

use super::*;
use story::result_of;

#[test]
fn invalid_hellos_are_rejected_with_the_reason() {
    let mut story = Story::begin(Settings::default());
    type Change<'a> = &'a dyn Fn(&mut v1::Hello);
    let refused: [(Change<'_>, &str); 7] = [
        (&|hello| hello.protocol = 9, "wire format 9"),
        (&|hello| hello.slots = 0, "0 slots"),
        (&|hello| hello.slots = 5000, "5000 slots"),
        (&|hello| hello.name = "x".repeat(129), "longer than 128 bytes"),
        (&|hello| hello.kinds.clear(), "computes no kind of experiment that this coordinator knows"),
        (&|hello| hello.kinds = vec![v1::KindSignature::default(); 257], "257 kinds"),
        (
            &|hello| hello.kinds.iter_mut().for_each(|kind| kind.sha256 = Bytes::from_static(&[0; 32])),
            "computes different results for dispatch, evolve, invincible, league, menace, nndtf, rules, td3d, ternary",
        ),
    ];
    for (session, (change, reason)) in refused.iter().enumerate() {
        let session = session as u64;
        let mut hello = Story::hello(session, 1);
        change(&mut hello);
        story.greet(session, hello);
        let close = &story.closed[&session];
        assert_eq!(close.kind(), CloseKind::Refused);
        assert!(close.reason.contains(reason), "{} does not say {reason}", close.reason);
    }
    assert_eq!(story.logged(Topic::WorkerRefused), refused.len());
    story.say(77, heartbeat());
    assert_eq!(story.closed[&77].kind(), CloseKind::Retry, "a late message of an ended session");
    story.join(78, 1);
    story.say(78, from_worker::Message::Hello(Story::hello(78, 1)));
    assert_eq!(story.closed[&78].kind(), CloseKind::Refused, "a second Hello is invalid");
    assert_eq!(PROTOCOL, 3);
}

/// A worker gets only tasks of the kinds for which its signature equals the coordinator's.
#[test]
fn a_worker_gets_only_tasks_of_its_kinds() {
    let mut story = Story::begin(Settings::default());
    let games = "experiment = \"invincible\"\nreplicas = 2\n[settings]\npopulation = 12\nfathers = 3\ngenerations = 2\n\
                 fitness = \"exact\"\n";
    story.submit("echo", CONFIG).unwrap();
    story.submit("games", games).unwrap();
    let mut hello = Story::hello(1, 2);
    hello.kinds.iter_mut().filter(|kind| kind.kind != "dispatch").for_each(|kind| kind.sha256 = vec![0; 32].into());
    hello.kinds.push(v1::KindSignature { kind: "chess".into(), sha256: vec![1; 32].into() });
    story.greet(1, hello);
    assert!(!story.closed.contains_key(&1));
    story.work_to_the_end(1);
    assert_eq!(story.run("echo").digest, expected_digest(CONFIG));
    let waiting = story.run("games");
    assert_eq!((waiting.state(), waiting.workers, waiting.slots), (RunState::Running, 0, 0), "no worker computes it");
    let Ok(Response::Workers(workers)) = story.ask(Request::Workers) else { panic!("the workers") };
    assert_eq!(workers[0].kinds, ["dispatch"]);
    assert_eq!(
        workers[0].kinds_refused,
        ["calls", "evolve", "invincible", "league", "menace", "nndtf", "rules", "td3d", "ternary"]
    );
    story.join(2, 3);
    assert_eq!((story.run("games").workers, story.run("games").slots), (1, 3));
    story.work_to_the_end(2);
    assert_eq!(story.run("games").digest, expected_digest(games));
}

/// A run that calls a program is computed only by workers that have the program with the signature in the run's
/// configuration.
#[test]
fn a_worker_gets_only_tasks_of_its_programs() {
    let mut story = Story::begin(Settings::default());
    let file = format!(
        "experiment = \"evolve\"\nreplicas = 1\n[settings]\nproblem = \"program:p\"\nobjectives = \"min cost\"\n\
         signature = \"{}\"\n[[genome]]\n",
        "ab".repeat(32)
    );
    story.submit("r", &file).unwrap();
    let hello = |session, kind: &str, name: &str, byte: u8| {
        let program = v1::ProgramSignature { kind: kind.into(), name: name.into(), sha256: vec![byte; 32].into() };
        v1::Hello { programs: vec![program], ..Story::hello(session, 1) }
    };
    story.join(1, 1);
    assert_eq!(story.run("r").message, "no worker has the program p yet: start a worker with --program p=COMMAND");
    story.greet(2, hello(2, "evolve", "p", 0xcd));
    story.greet(3, hello(3, "evolve", "q", 0xab));
    story.greet(4, hello(4, "rules", "p", 0xab));
    assert!(story.run("r").message.contains("that of worker w2 computes something else"));
    assert_eq!((story.run("r").workers, story.run("r").tasks_assigned), (0, 0));
    story.greet(5, hello(5, "evolve", "p", 0xab));
    assert_eq!((story.run("r").workers, story.run("r").message.as_str()), (1, ""));
    assert!(!story.tasks_of(5).is_empty());
    assert!((1..=4).all(|session| story.tasks_of(session).is_empty()));
    let unsigned = file.replace(&"ab".repeat(32), "");
    let refused = crate::prepared::Prepared::read(registry(), "the file", &unsigned).unwrap_err();
    assert!(refused.contains("submit it with --program p=COMMAND"), "{refused}");
}

/// A run that calls the program p of the workers.
fn of_program() -> String {
    let signature = "ab".repeat(32);
    format!(
        "experiment = \"evolve\"\nreplicas = 2\n[settings]\nproblem = \"program:p\"\nobjectives = \"min cost\"\n\
         signature = \"{signature}\"\nanswers = \"{signature}\"\n[[genome]]\n"
    )
}

/// A worker that has the program.
fn greet(story: &mut Story, session: u64) {
    let program = v1::ProgramSignature { kind: "evolve".into(), name: "p".into(), sha256: vec![0xab; 32].into() };
    story.greet(session, v1::Hello { programs: vec![program], ..Story::hello(session, 2) });
}

/// One candidate may take a second and the next one ten minutes, the default limit. Its worker stops it then.
#[test]
fn a_program_keeps_its_full_time_limit_after_quick_tasks() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", &of_program()).unwrap();
    let id = story.core.work.runs.find("r").unwrap();
    story.core.work.runs.change(id).expected.learn(0, "evaluate", 1000, true);
    greet(&mut story, 1);
    assert!(!story.tasks_of(1).is_empty());
    for _ in 0..131 {
        story.wait(5000);
        story.say(1, heartbeat());
        assert!(!story.closed.contains_key(&1), "after {:?}: {:?}", story.now, story.closed[&1]);
    }
    (0..2).for_each(|_| story.wait(5000));
    assert!(story.closed[&1].reason.contains("overdue"), "{:?}", story.closed);
}

/// A program that cannot start fails at once, while a task on another host takes minutes.
#[test]
fn failed_tasks_do_not_change_expected_durations() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    (1..=2).for_each(|session| story.join(session, 1));
    story.task_us = 1;
    story.answer(1, panicking);
    for _ in 0..60 {
        story.wait(2000);
        (1..=2).for_each(|session| story.say(session, heartbeat()));
    }
    assert!(!story.closed.contains_key(&2), "two minutes, of twenty: {:?}", story.closed);
    story.task_us = 1_000_000;
    story.answer(2, honest);
    let id = story.core.work.runs.find("r").unwrap();
    let expected_us = |story: &Story| story.core.work.runs.get(id).unwrap().expected.us(0, "echo");
    assert_eq!(expected_us(&story), Some(1_000_000));
    story.task_us = 1;
    story.answer(1, panicking);
    assert_eq!(expected_us(&story), Some(1_000_000));
}

/// A worker that finds during a task that its program differs gets no more of these tasks, and the run waits for a worker
/// with the right program.
#[test]
fn a_program_with_other_answers_is_a_different_program() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", &of_program()).unwrap();
    let other = |_: &Encoded| Outcome::OtherProgram("it is\nanother one".into());
    greet(&mut story, 1);
    assert!(!story.tasks_of(1).is_empty());
    for _ in 0..9 {
        story.answer(1, other);
    }
    assert!(story.tasks_of(1).is_empty() && !story.closed.contains_key(&1));
    let run = story.run("r");
    assert_eq!((run.state(), run.workers, run.tasks_assigned), (RunState::Running, 0, 0));
    assert!(
        run.message
            .contains("with which this run was started; that of worker w1 computes something else: `evoxo check`")
    );
    let Ok(Response::Workers(workers)) = story.ask(Request::Workers) else { panic!("the workers") };
    assert_eq!(workers[0].programs, ["p answers differently"]);
    let said: Vec<&str> =
        story.log.iter().map(|(_, line)| line.as_str()).filter(|line| line.contains("another")).collect();
    assert_eq!(said, ["worker w1 gets no tasks of run r: it is another one"]);
    let notice = "worker w1 gets no tasks: it is another one; other events there are not listed";
    assert_eq!(run.notices, [notice]);
    greet(&mut story, 2);
    assert!(!story.tasks_of(2).is_empty() && story.tasks_of(1).is_empty());
    // The time that this took says nothing about the tasks: the other worker may take minutes.
    for _ in 0..15 {
        story.wait(5000);
        (1..3).for_each(|session| story.say(session, heartbeat()));
    }
    assert!(story.closed.is_empty(), "{:?}", story.closed);
    // For a run that calls no program, such a report is invalid.
    story.submit("games", CONFIG).unwrap();
    assert!(!story.tasks_of(1).is_empty());
    story.answer(1, other);
    assert!(story.closed[&1].reason.contains("the run calls no program"), "{:?}", story.closed[&1]);
}

/// A program's last words usually give the reason for a failure, and they come at the end.
#[test]
fn a_failure_notice_has_the_beginning_and_the_end() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    let why = format!("the program ended{}the licence has expired", " and said nothing".repeat(100));
    story.answer(1, |_| Outcome::Failure(why.clone()));
    let notices = story.run("r").notices;
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.contains(": the program ended and") && notice.contains(" ... "), "{notice}");
    assert!(notice.contains("the licence has expired; other events") && notice.len() < 600, "{notice}");
}

/// A script that starts workers according to the open tasks must see failed and lost tasks too.
#[test]
fn failed_and_lost_tasks_count_as_waiting() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    let open = story.run("r").tasks_waiting;
    story.join(1, 1);
    story.answer(1, panicking);
    story.tell(Event::Left { session: SessionId(1) });
    story.wait(1000);
    let run = story.run("r");
    assert_eq!((run.state(), run.tasks_waiting, run.tasks_assigned), (RunState::Running, open, 0));
    assert!(open > 1);
}

/// If tasks fail on every worker, no worker is at fault. None is set aside, and the run ends soon.
#[test]
fn tasks_that_fail_everywhere_end_their_run() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    for _ in 0..60 {
        for session in [1, 2] {
            story.answer(session, |_| Outcome::Failure("it is broken".into()));
            story.say(session, heartbeat());
        }
        story.wait(100);
    }
    assert_eq!(story.run("r").state(), RunState::Failed, "within 6 s");
    let told = story.run("r").notices.iter().filter(|notice| notice.starts_with("a task failed on worker")).count();
    assert_eq!(told, 2, "the first failure on each worker: {:?}", story.run("r").notices);
    assert!(story.closed.len() <= 1, "{:?}", story.closed);
}

#[test]
fn many_workers_at_once_are_admitted_gradually() {
    let mut story = Story::begin(Settings { admissions_per_second: 10, ..Settings::default() });
    (0..50).for_each(|session| story.join(session, 1));
    assert_eq!(story.closed.len(), 40);
    assert!(story.closed.values().all(|close| close.kind() == CloseKind::Retry && close.retry_after_ms > 0));
    story.now = Millis(1000);
    (100..110).for_each(|session| story.join(session, 1));
    assert_eq!(story.closed.len(), 40);
}

/// Each round is a single task. No worker is idle while there are replicas that have not started.
#[test]
fn ten_thousand_workers_all_get_tasks() {
    let mut story = Story::begin(Settings {
        admissions_per_second: 20_000,
        sessions_max: 20_000,
        replicas_max: 20_000,
        ..Settings::default()
    });
    let config = CONFIG.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 10000");
    let config = config + "\n[arms.one]\n[arms.other]\n";
    story.submit("r", &config).unwrap();
    (1..=10_000).for_each(|session| story.join(session, 1));
    let idle = |story: &Story| (1..=10_000).filter(|session| story.tasks_of(*session).is_empty()).count();
    assert_eq!(idle(&story), 0);
    assert_eq!((1..=10_000).map(|session| story.answer(session, honest)).sum::<usize>(), 10_000);
    assert_eq!(idle(&story), 0, "every worker gets a task of the next round");
}

/// A story with one task that is assigned to both session 1 and session 2.
fn one_task_on_two() -> Story {
    let mut story = Story::begin(singly());
    let config = CONFIG.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 1");
    story.submit("r", &config).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    story.wait(6000);
    (1..=2).for_each(|session| story.say(session, heartbeat()));
    assert_eq!(story.tasks_of(1), story.tasks_of(2));
    story
}

/// A different output of the right shape.
fn wrong_output(task: &Encoded) -> Outcome {
    let Outcome::Output(honest) = honest(task) else { panic!("an output") };
    let mut bytes = honest.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    Outcome::Output(bytes.into())
}

#[test]
fn differing_copies_leave_the_run_in_doubt_permanently() {
    let mut story = one_task_on_two();
    story.answer(1, honest);
    // Repeating a wrong output does not count as a second doubt.
    let task = story.assigned[&2][0].clone();
    let results = vec![result_of(&task.tasks[0], wrong_output(&task.tasks[0]), task.id); 3];
    story.say(2, from_worker::Message::Outputs(v1::Outputs { results }));
    story.assigned.get_mut(&2).unwrap().clear();
    story.work_to_the_end(1);
    let config = CONFIG.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 1");
    let run = story.run("r");
    assert_eq!((run.state(), run.doubts.len(), run.digest), (RunState::InDoubt, 1, expected_digest(&config)));
    assert!(run.message.contains("had two outputs") && run.notices[0].contains("not deterministic: task "));
    let doubt = &run.doubts[0];
    assert_eq!((doubt.worker.as_str(), doubt.other_worker.as_str(), doubt.arm.as_str()), ("w1", "w2", "main"));
    assert!(doubt.output != doubt.other_output && doubt.round == 0);
    assert_eq!(story.logged(Topic::Doubt), 1);
    let mut next = Story::go_on(Settings::default(), story.objects);
    let again = next.run("r");
    assert_eq!((again.state(), again.doubts), (RunState::InDoubt, run.doubts), "a restart keeps the doubts");
}

/// A varint may be padded, and fields may come in another order. Outputs are compared by value, not by their bytes.
#[test]
fn an_output_in_another_encoding_is_the_same_output() {
    let mut story = one_task_on_two();
    story.answer(1, honest);
    let padded = |task: &Encoded| {
        let Outcome::Output(honest) = honest(task) else { panic!("an output") };
        assert_eq!(honest[..2], [0x0a, 8], "field 1 of eight bytes");
        Outcome::Output([&[0x0a, 0x88, 0x00], &honest[2..]].concat().into())
    };
    story.answer(2, padded);
    story.work_to_the_end(1);
    let run = story.run("r");
    assert_eq!((run.state(), run.doubts.len()), (RunState::Finished, 0));
}

#[test]
fn only_assigned_workers_can_cause_doubt() {
    let mut story = one_task_on_two();
    story.join(3, 1);
    let task = story.assigned[&1][0].clone();
    story.answer(1, honest);
    let results = vec![result_of(&task.tasks[0], wrong_output(&task.tasks[0]), task.id)];
    story.say(3, from_worker::Message::Outputs(v1::Outputs { results }));
    assert_eq!(story.run("r").doubts.len(), 0);
    story.answer(2, wrong_output);
    assert_eq!(story.run("r").doubts.len(), 1);
}

#[test]
fn invalid_outputs_are_blamed_on_their_worker() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    for (session, bytes) in [(1, Bytes::from_static(&[0xff; 9])), (2, Bytes::new()), (3, vec![0; 1 << 20].into())] {
        story.join(session, 1);
        story.answer(session, |_| Outcome::Output(bytes.clone()));
        let close = &story.closed[&session];
        assert_eq!(close.kind(), CloseKind::Refused);
        assert!(close.reason.contains("its output of task "), "{}", close.reason);
    }
    story.join(4, 1);
    story.work_to_the_end(4);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG), "these results do not count against a task");
}

/// Outputs of an earlier session, or for the coordinator before its restart, are accepted too.
#[test]
fn late_outputs_are_accepted() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    let task = story.assigned[&1][0].tasks[0].clone();
    story.tell(Event::Stop);
    let mut next = Story::go_on(singly(), story.objects);
    next.join(1, 1);
    let results = vec![result_of(&task, honest(&task), 0)];
    next.say(1, from_worker::Message::Outputs(v1::Outputs { results }));
    next.work_to_the_end(1);
    let run = next.run("r");
    assert_eq!((run.tasks_done, run.digest), (24, expected_digest(CONFIG)));
}

/// A message with very many results would keep the core busy, and the answer to it would take much memory.
#[test]
fn a_message_has_a_limited_number_of_results() {
    let mut story = Story::begin(Settings::default());
    let results = |count| {
        let result = v1::TaskResult { hash: vec![7; 32].into(), ..result_of_nothing() };
        from_worker::Message::Outputs(v1::Outputs { results: vec![result; count] })
    };
    for (session, count, closed) in [(1, 16_384, false), (2, 16_385, true)] {
        story.join(session, 1);
        story.say(session, results(count));
        assert_eq!(story.closed.contains_key(&session), closed, "{count}");
    }
    assert!(story.closed[&2].reason.contains("more than 16384"), "{}", story.closed[&2].reason);
}

fn result_of_nothing() -> v1::TaskResult {
    v1::TaskResult { outcome: Some(Outcome::Output(bytes::Bytes::new())), ..v1::TaskResult::default() }
}
