//! A fork begins with the states of the run from which it forks, if these states are what the fork would compute.

use std::collections::BTreeSet;

use super::*;
use crate::trust::Level;

const PARENT: &str = "experiment = \"invincible\"\nreplicas = 2\n[settings]\npopulation = 8\nfathers = 2\ngames = 4\n\
                      generations = 4\nslice = 3\n";
const FORK: &str = "[[fork]]\nat = 2\n[fork.settings]\npenalty = 6\n";

/// The file of a fork of the parent, with these differences.
fn fork(differences: &[(&str, &str)]) -> String {
    let file = PARENT.replace("slice = 3\n", "slice = 3\npenalty = 9\n") + FORK;
    differences.iter().fold(file, |file, (from, to)| {
        assert!(file.contains(from));
        file.replace(from, to)
    })
}

/// From which run and up to which round the run of this name got states, if from any.
fn loaded(story: &Story, name: &str) -> Option<(String, u64)> {
    let mut loads = story.writes.iter().filter(|(run, _)| run == name).filter_map(|(_, what)| match what {
        Write::Load => Some(None),
        Write::LoadFork { of, rounds, bytes_max } => {
            assert!(*bytes_max > 0, "a replica needs memory");
            Some(Some((of.clone(), *rounds)))
        }
        _ => None,
    });
    loads.next().expect("a run is loaded before it is computed")
}

fn kept(story: &Story, name: &str) -> BTreeSet<u64> {
    let of_run = story.writes.iter().filter(|(run, _)| run == name);
    of_run.filter_map(|(_, what)| if let Write::Checkpoint { keep, .. } = what { Some(*keep) } else { None }).collect()
}

fn compute(story: &mut Story, name: &str) {
    for _ in 0..200 {
        if story.answer(1, honest) == 0 {
            story.wait(500);
            story.say(1, heartbeat());
        }
        if story.run(name).state() == RunState::Finished {
            return;
        }
    }
    panic!("{name} does not end");
}

#[test]
fn a_fork_begins_with_the_states_of_its_past() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 0, ..singly() });
    story.join(1, 1);
    let parent = PARENT.replace("slice = 3\n", "slice = 3\npenalty = 6\n");
    story.submit("parent", &parent).unwrap();
    assert_eq!(loaded(&story, "parent"), None);
    // Its results may still come into doubt.
    story.submit("early", &fork(&[("penalty = 9", "penalty = 8")])).unwrap();
    assert_eq!(loaded(&story, "early"), None);
    compute(&mut story, "parent");
    let past = |of: &str, rounds| Some((of.to_owned(), rounds));
    for (name, differences, expected) in [
        ("fork", &[][..], past("parent", 2)),
        ("more-replicas", &[("replicas = 2", "replicas = 5")], past("parent", 2)),
        ("other-seed", &[("replicas = 2", "replicas = 2\nseed = 7")], None),
        ("other-past", &[("penalty = 6", "penalty = 7")], None),
        // Rounds of other sizes: the same configuration, and other states after round 2.
        ("other-rounds", &[("slice = 3", "slice = 4")], None),
        ("longer", &[("generations = 4", "generations = 5")], None),
    ] {
        story.submit(name, &fork(differences)).unwrap();
        assert_eq!(loaded(&story, name), expected, "{name}");
    }
    // Outputs of a run that trusts every worker are not good enough for one that does not.
    story.submit_at(Level::Verified, "verified", &fork(&[])).unwrap();
    assert_eq!(loaded(&story, "verified"), None);
    // A fork of a fork begins with the states of that one, or else with those of the first run.
    let again =
        fork(&[]).replace("penalty = 9\n", "penalty = 12\n") + "[[fork]]\nat = 3\n[fork.settings]\npenalty = 9\n";
    story.submit("again", &again).unwrap();
    assert_eq!(loaded(&story, "again"), past("parent", 2));
    compute(&mut story, "fork");
    story.submit("again-later", &again).unwrap();
    assert_eq!(loaded(&story, "again-later"), past("fork", 3));
    // Of two runs with this configuration, the one that keeps states.
    story.submit("keeper", &parent.replace("replicas = 2\n", "replicas = 2\nkeep = \"2 MiB\"\n")).unwrap();
    compute(&mut story, "keeper");
    story.submit("third", &fork(&[])).unwrap();
    assert_eq!(loaded(&story, "third"), past("keeper", 2));
    assert_eq!([kept(&story, "keeper"), kept(&story, "fork")], [BTreeSet::from([2 << 20]), BTreeSet::from([0])]);
}

/// Otherwise its states would have rounds of two sizes, and a fork could not tell which.
#[test]
fn more_replicas_change_no_other_setting() {
    let mut story = Story::begin(singly());
    story.submit("run", PARENT).unwrap();
    let more = PARENT.replace("replicas = 2\n", "replicas = 3\nkeep = \"1 MiB\"\n").replace("slice = 3", "slice = 5");
    story.submit("run", &more).unwrap();
    let Ok(Response::Replicas(prepared, _)) = story.ask(Request::Replicas { name: "run".into() }) else {
        panic!("the run is there")
    };
    assert_eq!(prepared.config, story::prepared(&PARENT.replace("replicas = 2", "replicas = 3")).config);
}
