//! Ended runs that are deleted because of their age or their bytes.

use super::{shares::submit_on, *};

const DAY_MS: u64 = 24 * 3_600_000;

fn names(story: &Story) -> Vec<&str> {
    story.views.keys().map(String::as_str).collect()
}

/// Runs that were cancelled one after the other, a day apart.
fn ended(story: &mut Story, names: &[(&str, &[(&str, &str)])]) {
    for (seed, (name, terms)) in names.iter().enumerate() {
        submit_on(story, name, seed, terms).unwrap();
        story.ask(Request::Cancel { name: (*name).into(), delete: false }).unwrap();
        story.wait(DAY_MS);
    }
}

#[test]
fn old_runs_are_announced_a_day_before_they_are_deleted() {
    let settings = Settings { retain_ms: Some(10 * DAY_MS), ..singly() };
    let mut story = Story::begin(settings);
    ended(&mut story, &[("a", &[]), ("pinned", &[("keep", "yes")]), ("b", &[])]);
    assert!(story.run("a").notices.is_empty());
    story.wait(6 * DAY_MS);
    let said = story.run("a").notices;
    assert!(said[0].starts_with("this run will be deleted 10 days after its end: `evoxo fetch a` saves"), "{said:?}");
    assert!(
        story.run("b").notices.is_empty() && story.log.iter().any(|(_, line)| line.contains("run a: this run will"))
    );
    let Response::Figures(figures) = story.ask(Request::Figures).unwrap() else { panic!("another response") };
    assert_eq!((figures.runs_expiring, figures.tally.retired), (1, 0));
    // The submitter hears of it at the next submission, too.
    submit_on(&mut story, "next", 9, &[("keep", "yes")]).unwrap();
    assert!(
        story.run("next").notices[0].starts_with("ended runs of the same submitter will be deleted, first a: `evoxo")
    );
    story.ask(Request::Cancel { name: "next".into(), delete: true }).unwrap();
    story.wait(DAY_MS);
    assert_eq!(names(&story), ["b", "pinned"]);
    assert_eq!(story.audited, ["retire: a"]);
    assert!(story.log.iter().any(|(_, line)| line == "run a: deleted, because it ended more than 10 days ago"));
    // A run that is kept after all loses its notice.
    story.wait(DAY_MS);
    assert_eq!(story.run("b").notices.len(), 1);
    submit_on(&mut story, "b", 2, &[("keep", "yes")]).unwrap();
    story.ask(Request::Cancel { name: "b".into(), delete: false }).unwrap();
    assert!(story.run("b").notices.is_empty());
    story.wait(30 * DAY_MS);
    assert_eq!(names(&story), ["b", "pinned"]);
}

/// A run may have a time of its own, with or without one of the coordinator.
#[test]
fn a_run_with_a_time_of_its_own_goes_after_it() {
    for (retain, kept) in [(None, &["always", "plain"][..]), (Some(2 * DAY_MS), &["always"][..])] {
        let mut story = Story::begin(Settings { retain_ms: retain, finished_runs_kept: Some(1), ..singly() });
        ended(
            &mut story,
            &[("short", &[("keep", "84h")]), ("always", &[("keep", "yes")]), ("long", &[("keep", "10d")])],
        );
        submit_on(&mut story, "plain", 9, &[]).unwrap();
        story.ask(Request::Cancel { name: "plain".into(), delete: false }).unwrap();
        let said = story.run("short").notices;
        assert!(said[0].starts_with("this run will be deleted 3 days after its end: `evoxo fetch short`"), "{said:?}");
        story.wait(DAY_MS);
        assert_eq!(names(&story), ["always", "long", "plain"]);
        assert!(story.log.iter().any(|(_, line)| line == "run short: deleted, because it ended more than 3 days ago"));
        story.wait(6 * DAY_MS);
        assert!(names(&story).contains(&"long"), "neither the coordinator's time nor its number counts");
        // It is announced, and goes an hour later.
        story.wait(3 * DAY_MS);
        story.wait(DAY_MS);
        assert_eq!(names(&story), kept);
        let wrong = submit_on(&mut story, "always", 1, &[("keep", "2 weeks")]).unwrap_err();
        assert!(format!("{wrong:?}").contains("a time after the end of the run as 30d or 12h"), "{wrong:?}");
    }
}

/// A coordinator starts with a shorter time: nothing disappears before it was announced for an hour.
#[test]
fn nothing_is_deleted_at_a_start() {
    let mut story = Story::begin(singly());
    ended(&mut story, &[("a", &[]), ("b", &[])]);
    let mut next = Story::go_on(Settings { retain_ms: Some(5 * DAY_MS), ..singly() }, story.objects);
    assert_eq!(names(&next), ["a", "b"]);
    next.wait(5 * DAY_MS);
    assert_eq!(names(&next), ["a", "b"], "it was just announced");
    assert!(next.run("a").notices[0].starts_with("this run will be deleted in 60 min, because it ended"));
    next.wait(3_600_000);
    assert!(names(&next).is_empty());
}

/// The ended runs of one submitter take more than they may: the oldest go, announced at four fifths.
#[test]
fn the_oldest_runs_of_a_submitter_go_when_they_take_too_much() {
    let bytes = {
        let mut story = Story::begin(singly());
        story.join(1, 1);
        story.submit("a", CONFIG).unwrap();
        story.work_to_the_end(1);
        let finished = story.objects.iter().filter(|(name, _)| name.contains("/finished/"));
        2 * finished.map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    };
    let config = |seed: u64| CONFIG.replace("replicas = 2", &format!("replicas = 2\nseed = {seed}"));
    let settings = Settings { retain_bytes: Some(3 * bytes + bytes / 2), ..singly() };
    let mut story = Story::begin(settings);
    story.join(1, 1);
    let compute = |story: &mut Story, by: &str, name: &str, seed: u64| {
        story.submit_by(by, name, &config(seed)).unwrap();
        story.work_to_the_end(1);
        story.wait(1000);
    };
    compute(&mut story, "10.0.0.8", "other", 9);
    for (seed, name) in ["a", "b"].into_iter().enumerate() {
        compute(&mut story, "10.0.0.7", name, seed as u64);
    }
    assert!(story.run("a").notices.is_empty());
    compute(&mut story, "10.0.0.7", "c", 3);
    let said = story.run("a").notices;
    assert!(said[0].starts_with("this run will be deleted when the ended runs of its submitter take"), "{said:?}");
    assert!(["b", "c", "other"].iter().all(|name| story.run(name).notices.is_empty()));
    let Response::Figures(figures) = story.ask(Request::Figures).unwrap() else { panic!("another response") };
    let used = figures.limits.iter().find(|(limit, ..)| *limit == "bytes of ended runs of one submitter");
    assert_eq!(used.map(|(_, used, most)| used * 5 >= most * 4), Some(true), "{used:?}");
    compute(&mut story, "10.0.0.7", "d", 4);
    assert_eq!(names(&story), ["a", "b", "c", "d", "other"], "it was announced a moment ago");
    story.wait(3_600_000);
    assert_eq!(names(&story), ["b", "c", "d", "other"]);
}

/// A run that takes more than the limit alone stays, as long as it is the newest.
#[test]
fn the_newest_run_stays_however_large_it_is() {
    let mut story = Story::begin(Settings { retain_bytes: Some(1), ..singly() });
    story.join(1, 1);
    story.submit("a", CONFIG).unwrap();
    story.work_to_the_end(1);
    story.wait(10 * DAY_MS);
    assert!(story.run("a").notices.is_empty());
    assert_eq!(names(&story), ["a"]);
    story.submit("b", &CONFIG.replace("rounds = 3", "rounds = 2")).unwrap();
    // The first worker was silent for days.
    story.join(2, 1);
    story.work_to_the_end(2);
    story.wait(1000);
    assert!(story.run("a").notices[0].starts_with("this run will be deleted in 60 min, because the ended runs"));
    story.wait(3_600_000);
    assert_eq!(names(&story), ["b"]);
}
