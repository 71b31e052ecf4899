//! A fork begins with the states of the run from which it forks, if these states are what the fork would compute.

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

/// Where the run of this name got its states from.
fn loaded(story: &Story, name: &str) -> Write {
    let mut loads =
        story.writes.iter().filter(|(run, what)| run == name && matches!(what, Write::Load | Write::LoadFork { .. }));
    loads.next().expect("a run is loaded before it is computed").1.clone()
}

#[test]
fn a_fork_begins_with_the_states_of_its_past() {
    let mut story = Story::begin(singly());
    let parent = PARENT.replace("slice = 3\n", "slice = 3\npenalty = 6\n");
    story.submit("parent", &parent.replace("replicas = 2\n", "replicas = 2\nkeep = \"2 MiB\"\n")).unwrap();
    assert_eq!(loaded(&story, "parent"), Write::Load);
    let past = |rounds| Write::LoadFork { of: "parent".into(), rounds };
    for (name, differences, expected) in [
        ("fork", &[][..], past(2)),
        ("more-replicas", &[("replicas = 2", "replicas = 5")], past(2)),
        ("other-seed", &[("replicas = 2", "replicas = 2\nseed = 7")], Write::Load),
        ("other-past", &[("penalty = 6", "penalty = 7")], Write::Load),
        // Rounds of other sizes: the same configuration, and other states after round 2.
        ("other-rounds", &[("slice = 3", "slice = 4")], Write::Load),
        ("longer", &[("generations = 4", "generations = 5")], Write::Load),
    ] {
        story.submit(name, &fork(differences)).unwrap();
        assert_eq!(loaded(&story, name), expected, "{name}");
    }
    // Outputs of a run that trusts every worker are not good enough for one that does not.
    story.submit_at(Level::Verified, "verified", &fork(&[])).unwrap();
    assert_eq!(loaded(&story, "verified"), Write::Load);
    // A fork of a fork.
    let again =
        fork(&[]).replace("penalty = 9\n", "penalty = 12\n") + "[[fork]]\nat = 3\n[fork.settings]\npenalty = 9\n";
    story.submit("again", &again).unwrap();
    assert_eq!(loaded(&story, "again"), Write::LoadFork { of: "fork".into(), rounds: 3 });
}

#[test]
fn checkpoints_say_how_many_bytes_stay() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 0, ..singly() });
    let file = |keep: &str| PARENT.replace("replicas = 2\n", &format!("replicas = 2\nkeep = \"{keep}\"\n"));
    story.submit("run", &file("2 MiB")).unwrap();
    story.join(1, 1);
    let kept_after = |story: &mut Story| {
        let before = story.writes.len();
        (0..40).for_each(|_| _ = story.answer(1, honest));
        story.wait(500);
        let keeps: Vec<u64> = story.writes[before..]
            .iter()
            .filter_map(|(_, what)| match what {
                Write::Checkpoint { keep, .. } => Some(*keep),
                _ => None,
            })
            .collect();
        keeps.last().copied().expect("a checkpoint")
    };
    assert_eq!(kept_after(&mut story), 2 << 20);
    // The same file with another size changes only that.
    let digest = story.run("run").config_hash;
    story.submit("run", &file("3 MiB")).unwrap();
    assert_eq!((kept_after(&mut story), story.run("run").config_hash), (3 << 20, digest));
    let orders = story.writes.iter().filter(|(_, what)| matches!(what, Write::Order { .. })).count();
    story.submit("run", &file("3 MiB")).unwrap();
    assert_eq!(story.writes.iter().filter(|(_, what)| matches!(what, Write::Order { .. })).count(), orders);
}
