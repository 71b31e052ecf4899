//! Runs that only some workers get, by their labels.

use super::{shares::submit_on, *};

fn labelled(session: u64, labels: &[&str]) -> v1::Hello {
    v1::Hello { labels: labels.iter().map(ToString::to_string).collect(), ..Story::hello(session, 1) }
}

/// A worker with all labels of the run gets its tasks, others get those of other runs. The run says which labels are missing,
/// and another term changes the choice.
#[test]
fn only_workers_with_all_labels_get_tasks_of_a_run() {
    let mut story = Story::begin(singly());
    submit_on(&mut story, "mine", 1, &[("where", "gpu=a100,site=lab")]).unwrap();
    assert_eq!(story.run("mine").message, "", "without workers nothing is said about labels");
    story.greet(1, labelled(1, &[]));
    story.greet(2, labelled(2, &["gpu=a100", "site=home"]));
    let run = story.run("mine");
    let why = "no connected worker that could compute it has the labels gpu=a100,site=lab: start one with --label gpu=a100 \
               --label site=lab, or";
    assert!(run.message.starts_with(why) && (run.workers, run.slots) == (0, 0), "{run:?}");
    story.greet(3, labelled(3, &["site=lab", "gpu=a100", "cores=4", "gpu=a100"]));
    let run = story.run("mine");
    assert_eq!((run.message.as_str(), run.workers, run.slots), ("", 1, 1));
    submit_on(&mut story, "any", 2, &[]).unwrap();
    let done = |story: &mut Story| {
        let before = ["mine", "any"].map(|name| story.run(name).tasks_done);
        for _ in 0..40 {
            story.now = story.now + 10;
            (1..=3).for_each(|session| _ = story.answer(session, honest));
        }
        let after = ["mine", "any"].map(|name| story.run(name).tasks_done);
        (after[0] - before[0], after[1] - before[1])
    };
    let (mine, any) = done(&mut story);
    assert!((38..=42).contains(&mine) && (76..=84).contains(&any), "both runs share worker 3: {mine}, {any}");
    // A restart keeps the term, which another submission changes.
    story.tell(Event::Stop);
    let mut story = Story::go_on(singly(), story.objects);
    story.greet(1, labelled(1, &[]));
    story.greet(2, labelled(2, &["gpu=a100", "site=home"]));
    assert!(story.run("mine").message.starts_with("no connected worker that could"), "{:?}", story.run("mine"));
    submit_on(&mut story, "mine", 1, &[("where", "gpu=a100")]).unwrap();
    assert_eq!((story.run("mine").message, story.run("mine").workers), (String::new(), 1));
    submit_on(&mut story, "mine", 1, &[("where", "")]).unwrap();
    assert_eq!(story.run("mine").workers, 2);
}

/// Labels come from strangers.
#[test]
fn a_worker_with_invalid_labels_is_refused() {
    let many: Vec<String> = (0..33).map(|number| format!("k{number}=v")).collect();
    let long = format!("k={}", "v".repeat(63));
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases: [(&[&str], &str); 5] = [
        (&["gpu"], "its label \"gpu\" is not KEY=VALUE"),
        (&["a=b", "x=\u{1b}[2J"], "its label \"x=[2J\" is not KEY=VALUE"),
        (&["a=b,c"], "is not KEY=VALUE"),
        (&[&long], "is not KEY=VALUE"),
        (&many, "it has 33 labels: at most 32 are allowed"),
    ];
    for (labels, why) in cases {
        let mut story = Story::begin(singly());
        story.greet(1, labelled(1, labels));
        let closed = story.closed[&1].reason.clone();
        assert!(closed.contains(why), "{labels:?}: {closed}");
    }
    let mut story = Story::begin(singly());
    story.greet(1, labelled(1, &many[..32]));
    let Response::Workers(workers) = story.ask(Request::Workers).unwrap() else { panic!("another response") };
    assert_eq!(workers[0].labels.len(), 32);
}
