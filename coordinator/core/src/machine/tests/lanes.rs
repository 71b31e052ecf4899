//! The lanes of runs: how many there are, and that each plans a piece of its own.

use super::*;
use crate::replicas::Job;

/// Every piece has 15 tasks, about 1 MiB.
const IN_PIECES: &str =
    "experiment = \"dispatch\"\nreplicas = 8\n[settings]\nrounds = 1\ntasks = 1000\npayload_bytes = 65536\n";

/// The replicas of which pieces are being planned.
fn planning(story: &Story) -> Vec<u32> {
    let held = story.held_plans.as_deref().unwrap_or_default().iter();
    held.map(|(_, job)| if let Job::Plan(replica) = job { replica.index } else { panic!("{job:?}") }).collect()
}

fn holding_plans(settings: Settings) -> Story {
    let mut story = Story::begin(settings);
    story.held_plans = Some(Vec::new());
    story.submit("r", IN_PIECES).unwrap();
    story
}

fn is_planning(story: &Story) -> usize {
    story.core.work.runs.iter().map(|(_, run)| run.planning.replicas().count()).sum()
}

#[test]
fn each_lane_plans_one_piece_at_a_time() {
    let mut story = holding_plans(Settings { lanes_max: 3, ..Settings::default() });
    assert_eq!(planning(&story), [0, 1, 2], "one replica of each lane");
    story.plan(1);
    assert_eq!(planning(&story), [0, 2, 1], "the lane that has answered plans its first replica again");
    // An order may come before the answers.
    story.ask(Request::Cancel { name: "r".into(), delete: false }).unwrap();
    assert_eq!(is_planning(&story), 0);
    story.plan(0);
    assert_eq!(story.core.work.tasks.len(), 0, "a piece that comes too late adds no task");
    assert_eq!(planning(&story), [2, 1]);
}

/// Many lanes together plan no more bytes ahead than one. While all pieces are held back, each replica of which one is being
/// planned has its first piece in memory.
#[test]
fn pieces_that_are_being_planned_take_memory() {
    let settings = Settings { lanes_max: 100, ..Settings::default() };
    let mut story = Story::begin(settings);
    story.held_plans = Some(Vec::new());
    story.join(1, 32);
    let config = IN_PIECES.replace("replicas = 8", "replicas = 100");
    story.submit("r", &config).unwrap();
    let (id, run) = story.core.work.runs.iter().next().unwrap();
    assert_eq!((run.replicas.open().len(), run.planning.lanes()), (100, 100));
    let first = story.core.work.tasks.bytes(id) / 100;
    let both = first + story::prepared(&config).piece_bytes(0);
    let (held, ahead) = (planning(&story).len() as u64, settings.plan_ahead_bytes());
    assert!(held > 1 && held * both < ahead + both, "{held} pieces are being planned");
    while !planning(&story).is_empty() {
        story.plan(0);
    }
    // A few tasks are computed, so there is room for another piece, although all lanes could plan one.
    while planning(&story).is_empty() {
        assert!(story.answer(1, honest) > 0, "there is room only after some tasks");
    }
    assert_eq!(planning(&story).len(), 1);
}

/// After a crash nothing is known of pieces that were requested. They are planned again.
#[test]
fn pieces_requested_before_a_crash_are_planned_again() {
    let config = IN_PIECES.replace("tasks = 1000", "tasks = 40");
    let settings = Settings { lanes_max: 3, ..Settings::default() };
    let mut story = Story::begin(settings);
    story.held_plans = Some(Vec::new());
    story.submit("r", &config).unwrap();
    assert_eq!(planning(&story), [0, 1, 2]);
    let mut next = Story::go_on(settings, story.objects);
    next.join(1, 2);
    next.work_to_the_end(1);
    assert_eq!(next.run("r").digest, expected_digest(&config));
}

#[test]
fn many_runs_have_one_lane_each() {
    let mut story = Story::begin(Settings { lanes_max: 2, ..Settings::default() });
    for number in 0..6 {
        story.submit(&format!("r{number}"), CONFIG).unwrap();
    }
    let lanes: Vec<usize> = story.core.work.runs.iter().map(|(_, run)| run.planning.lanes()).collect();
    assert_eq!(lanes, [2, 2, 2, 2, 1, 1], "eight lanes are enough for two cores");
    // A run without threads has no lanes.
    for name in ["r0", "r1"] {
        story.ask(Request::Cancel { name: name.into(), delete: true }).unwrap();
    }
    story.submit("r6", CONFIG).unwrap();
    assert_eq!(story.core.work.runs.iter().last().unwrap().1.planning.lanes(), 2);
}
