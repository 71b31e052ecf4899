//! The tasks that workers have, as operators see them.

use super::*;

const SLOW: &str = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 2\ntasks = 2\npayload_bytes = 16";

fn tasks(story: &mut Story, name: &str, limit: u32) -> v1::ListTasksResponse {
    match story.ask(Request::Tasks { name: name.into(), limit }) {
        Ok(Response::Tasks(tasks)) => tasks,
        other => panic!("{other:?}"),
    }
}

/// A task hangs on one of two workers. The list says which worker has it and since when; once another one has computed a
/// copy, that it is not needed any more.
#[test]
fn a_task_that_hangs_is_listed_with_its_worker() {
    let mut story = Story::begin(Settings { second_copy_ms_unknown: 5000, ..singly() });
    story.task_us = 1_500_000;
    story.submit("r", SLOW).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    story.wait(1500);
    story.answer(2, honest);
    story.wait(1000);
    let listed = tasks(&mut story, "r", 0);
    let [hung] = &listed.batches[..] else { panic!("{listed:?}") };
    assert_eq!((hung.worker.as_str(), hung.session, hung.host.as_str()), ("w1", 1, "lab"));
    assert_eq!((hung.age_ms, hung.round, hung.replica, hung.copy, hung.copies), (2500, Some(0), 0, 1, 1));
    assert_eq!((hung.work.as_str(), hung.queued, hung.expected_ms), ("echo", false, None));
    // The other worker gets a copy.
    story.wait(3000);
    let listed = tasks(&mut story, "r", 0);
    let copies: Vec<_> = listed.batches.iter().map(|it| (it.session, it.copy, it.copies)).collect();
    assert_eq!(copies, [(1, 1, 2), (2, 2, 2)]);
    story.answer(2, honest);
    story.wait(100);
    let first = tasks(&mut story, "r", 1);
    assert_eq!((first.batches[0].session, first.batches[0].copy, first.left_out), (1, 0, 1), "{first:?}");
    assert_eq!(first.batches[0].round, Some(0), "the task is known while its copies are awaited");
    story.leave(1);
    assert!(tasks(&mut story, "r", 0).batches.iter().all(|it| it.session == 2 && it.round == Some(1)));
}

/// A slot has one task, and others wait behind it; failures before are said.
#[test]
fn what_waits_in_a_batch_is_counted() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(4), ..Settings::default() });
    story.submit("r", ONE_ROUND).unwrap();
    story.join(1, 2);
    let listed = tasks(&mut story, "r", 0);
    let batches: Vec<_> = listed.batches.iter().map(|it| (it.queued, it.more)).collect();
    assert_eq!(batches[..2], [(false, 3), (false, 3)], "{batches:?}");
    assert!(batches[2..].iter().all(|it| *it == (true, 3)), "{batches:?}");
    // A task that failed before is alone, and goes to another worker.
    let mut story = Story::begin(singly());
    story.submit("r", &ONE_ROUND.replace("tasks = 40", "tasks = 1")).unwrap();
    story.join(1, 1);
    story.answer(1, panicking);
    story.join(2, 1);
    story.wait(2000);
    let suspects = tasks(&mut story, "r", 0).batches;
    let suspects: Vec<_> = suspects.iter().map(|it| (it.session, it.failures, it.more)).collect();
    assert_eq!(suspects, [(2, 1, 0)]);
}

#[test]
fn a_list_of_tasks_has_a_limit() {
    let mut story = Story::begin(singly());
    assert!(matches!(story.ask(Request::Tasks { name: "r".into(), limit: 0 }), Err(Rejection::NotFound(_))));
    story.submit("r", ONE_ROUND).unwrap();
    assert!(matches!(story.ask(Request::Tasks { name: "r".into(), limit: 1001 }), Err(Rejection::Invalid(_))));
    (1..=5).for_each(|session| story.join(session, 8));
    let (some, all) = (tasks(&mut story, "r", 7), tasks(&mut story, "r", 1000));
    assert_eq!((some.batches.len(), some.batches.len() + some.left_out as usize), (7, all.batches.len()));
    assert_eq!((all.left_out, &all.batches[..7]), (0, &some.batches[..]));
}
