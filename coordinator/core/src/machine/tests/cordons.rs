//! Workers without tasks, because an operator wants it so.

use super::*;

fn cordon(story: &mut Story, workers: &[&str], hosts: &[&str], end: bool) -> Result<Response, Rejection> {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let named = v1::CordonWorkersRequest { workers: names(workers), hosts: names(hosts), end };
    story.ask(Request::Cordon { named, by: "10.0.0.9".into(), at_s: 1_000_000 })
}

fn cordoned(story: &mut Story) -> Vec<(String, bool)> {
    let Ok(Response::Workers(workers)) = story.ask(Request::Workers) else { panic!("another response") };
    workers.into_iter().map(|worker| (worker.name, worker.cordon.is_some())).collect()
}

/// A cordon holds over restarts of the worker and of the coordinator, until it is ended. What the worker has, it finishes.
#[test]
fn a_cordon_lasts_over_restarts() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    let had = story.tasks_of(1).len();
    let Ok(Response::Cordoned(done)) = cordon(&mut story, &["w1"], &[], false) else { panic!("another response") };
    assert_eq!((done.workers.len(), done.cordons[0].by.as_str(), done.cordons[0].since), (1, "10.0.0.9", 1_000_000));
    (0..had).for_each(|_| assert_eq!(story.answer(1, honest), 1));
    story.answer(2, honest);
    assert!(story.tasks_of(1).is_empty() && !story.tasks_of(2).is_empty());
    // The worker was restarted.
    story.leave(1);
    story.greet(11, story::hello_as("w1", 11));
    story.core.check_invariants();
    assert!(story.tasks_of(11).is_empty());
    // The coordinator too.
    story.tell(Event::Stop);
    let mut story = Story::go_on(singly(), story.objects);
    story.join(1, 1);
    assert_eq!((cordoned(&mut story), story.tasks_of(1).len()), (vec![("w1".into(), true)], 0));
    let message = story.run("r").message;
    assert!(message.starts_with("workers that could compute it are cordoned (w1): `evoxo drain --unc"), "{message}");
    assert!(matches!(cordon(&mut story, &["w2"], &[], true), Err(Rejection::NotFound(why)) if why.contains("w2")));
    cordon(&mut story, &["w1"], &[], true).unwrap();
    assert!(!story.tasks_of(1).is_empty() && story.run("r").message.is_empty());
    let mut story = Story::go_on(singly(), story.objects);
    story.join(1, 1);
    assert_eq!(cordoned(&mut story), [("w1".into(), false)]);
}

/// A host is known by its name and by its address, a worker by its name and by its identity. The first one who cordons it is
/// named.
#[test]
fn a_cordon_knows_workers_by_all_their_names() {
    let mut story = Story::begin(singly());
    story.greet_at(1, "10.0.0.1", Story::hello(1, 1));
    story.greet_at(2, "10.0.0.2", v1::Hello { host: "other".into(), ..Story::hello(2, 1) });
    story.greet_as(3, "0123456789ab", false);
    cordon(&mut story, &["0123456789ab"], &["10.0.0.2"], false).unwrap();
    assert_eq!(cordoned(&mut story).iter().map(|(_, it)| *it).collect::<Vec<_>>(), [false, true, true]);
    cordon(&mut story, &[], &["lab"], false).unwrap();
    assert!(cordoned(&mut story).iter().all(|(_, it)| *it));
    let Ok(Response::Cordons(all)) = story.ask(Request::Cordons) else { panic!("another response") };
    assert_eq!(all.len(), 3);
    let named = v1::CordonWorkersRequest { workers: vec!["0123456789ab".into()], ..Default::default() };
    let again = story.ask(Request::Cordon { named, by: "another".into(), at_s: 2_000_000 });
    assert!(matches!(again, Ok(Response::Cordoned(done)) if done.cordons[0].by == "10.0.0.9"));
}

/// If the store cannot be written, nothing changes; and what strangers send has limits.
#[test]
fn a_cordon_that_is_not_stored_has_no_effect() {
    let mut story = Story::begin(singly());
    story.join(1, 1);
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    assert!(matches!(cordon(&mut story, &["w1"], &[], false), Err(Rejection::Unstored(_))));
    assert_eq!(cordoned(&mut story), [("w1".into(), false)]);
    story.store = Ok(());
    let long = "x".repeat(2000);
    let many: Vec<String> = (0..1001).map(|number| format!("w{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for names in [&[][..], &[""], &["a\nb"], &[&long], &many] {
        assert!(matches!(cordon(&mut story, names, &[], false), Err(Rejection::Invalid(_))));
    }
    cordon(&mut story, &many[..1000], &[], false).unwrap();
    assert!(matches!(cordon(&mut story, &["one-more"], &[], false), Err(Rejection::Exhausted(_))));
    assert_eq!(cordoned(&mut story), [("w1".into(), true)]);
}
