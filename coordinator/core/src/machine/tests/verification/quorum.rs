//! Two identities that lie alike in a quorum, and are exposed in another run.

use super::*;

/// A configuration with one task at a time.
fn small() -> String {
    SMALL.replace("tasks = 4", "tasks = 1")
}

/// Two liars have computed a whole run, which is finished. One always answers first, and the other confirms the output.
fn of_liars() -> Story {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Quorum, "q", &small()).unwrap();
    story.greet_as(1, "one", false);
    story.greet_as(2, "two", false);
    for _ in 0..60 {
        story.answer(1, lie);
        story.answer(2, lie);
        story.wait(500);
        [1, 2].into_iter().for_each(|session| story.say(session, heartbeat()));
    }
    assert_eq!(story.run("q").state(), RunState::Finished);
    assert_ne!(story.run("q").digest, expected_digest(&small()), "the two identities are a quorum");
    story
}

#[test]
fn a_quorum_is_recomputed_when_both_identities_are_convicted() {
    let mut story = of_liars();
    story.submit_at(Level::Verified, "v", &SMALL.replace("replicas = 1", "replicas = 1\nseed = 5")).unwrap();
    assert!(story.answer(1, lie) > 0 && story.answer(2, lie) > 0);
    story.greet_as(3, "trusted", true);
    work(&mut story, &[(3, honest)]);
    assert_eq!(story.convicted.len(), 2);
    assert_eq!((story.run("q").state(), story.run("q").digest), (RunState::Finished, expected_digest(&small())));
    assert!(story.run("q").doubts.is_empty() && story.run("v").state() == RunState::Finished);
}

/// The stored states list the identities on whose word they rest. If only one of the two is convicted, the output may be
/// right.
#[test]
fn a_quorum_of_two_convicts_is_not_resumed_after_a_restart() {
    let story = of_liars();
    for (convicted, void) in [(&["one"][..], false), (&["one", "two"], true)] {
        let mut objects = story.objects.clone();
        for identity in convicted {
            objects.insert(format!("convicted/{identity}"), seal_conviction(identity, "it lied"));
        }
        let mut again = Story::go_on(singly(), objects);
        again.greet_as(3, "trusted", true);
        work(&mut again, &[(3, honest)]);
        assert_eq!(again.run("q").state(), RunState::Finished);
        assert_eq!(again.run("q").digest == expected_digest(&small()), void, "{convicted:?}");
    }
}
