//! Several coordinators on one store.

use std::sync::{
    Arc,
    mpsc::{Sender, channel},
};

use evoxo_common::envelope::{Kind, seal};
use evoxo_proto::v1;
use prost::Message as _;

use super::*;
use crate::{core::Stored, store::Security};

fn over(objects: &Arc<Faulty>) -> Store {
    Store::over(objects.clone(), "memory", registry().clone())
}

/// A coordinator that takes over and loads.
fn leading(objects: &Arc<Faulty>) -> Store {
    let mut store = over(objects);
    store.lead().unwrap();
    store.load().unwrap();
    store
}

/// An order with which the run should be in this state.
fn wanting(wanted: v1::RunState) -> Write {
    let config = "experiment = \"dispatch\"\n".into();
    let order = v1::Order { config, wanted: wanted.into(), ..v1::Order::default() };
    Write::Order { bytes: seal(Kind::Order, &order.encode_to_vec()) }
}

/// What a coordinator that starts now takes for the newest order.
fn in_force(objects: &Arc<Faulty>) -> Option<v1::RunState> {
    let (mut runs, _) = over(objects).load().unwrap();
    runs.pop().map(|run| run.order.wanted())
}

fn superseded<T>(outcome: Result<T, StoreFault>) -> bool {
    matches!(outcome, Err(StoreFault::Superseded(_)))
}

/// Keeps a coordinator for later.
fn keep(sender: &Sender<Store>, store: Store) {
    sender.send(store).unwrap();
}

/// Who took it for one that says nothing would begin another cluster, whatever authority holds in this one.
#[test]
fn an_epoch_that_cannot_be_read_now_is_not_taken_for_a_damaged_one() {
    let objects = Arc::new(Faulty::default());
    let cluster = leading(&objects).cluster();
    let mut next = over(&objects);
    objects.cannot_read(Some("leader/000001".into()));
    for error in [next.leader().err(), next.lead().err()] {
        assert!(matches!(&error, Some(StoreFault::Failed(why)) if why.contains("it does not answer")), "{error:?}");
    }
    objects.cannot_read(None);
    next.lead().unwrap();
    assert!(cluster.is_some() && next.cluster() == cluster);
}

#[test]
fn a_higher_epoch_fences() {
    let (directory, mut old) = with_run(1);
    let mut new = open(&directory);
    new.lead().unwrap();
    new.load().unwrap();
    let fault = old.write("demo", &checkpoint(2)).unwrap_err();
    let own = format!("process {} on ", std::process::id());
    assert!(
        matches!(&fault, StoreFault::Superseded(why) if why.contains(&own) && why.contains("epoch 2")),
        "{fault:?}"
    );
    new.write("demo", &checkpoint(2)).unwrap();
    assert_eq!(rounds(&mut open(&directory)), 2);
    assert_eq!(names(&directory.path().join("leader")), ["000002"], "older epochs go");
    assert!(superseded(old.write("demo", &Write::Load)), "and it does not take the run back");
}

#[test]
fn who_only_looked_leads_at_its_first_write_unless_another_one_has_led_since() {
    let (directory, _) = with_run(1);
    let (mut one, mut two) = (open(&directory), open(&directory));
    one.load().unwrap();
    two.load().unwrap();
    one.write("demo", &order(2)).unwrap();
    assert_eq!(names(&directory.path().join("leader")), ["000002"]);
    assert!(superseded(two.write("demo", &order(2))));
}

#[test]
fn a_creation_that_succeeds_makes_no_leader() {
    let objects = Arc::new(Faulty::default());
    drop(leading(&objects));
    let mut late = over(&objects);
    let before = late.leader().unwrap();
    let (sender, others) = channel();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        drop(leading(&meanwhile));
        // Its takeover removes epoch 2, so that the name can be created again.
        keep(&sender, leading(&meanwhile));
    });
    assert_eq!(late.lead_after(before.as_ref()), Ok(false));
    let mut third = others.recv().unwrap();
    assert_eq!(third.epoch().unwrap().number, 3);
    third.write("demo", &order(1)).unwrap();
    assert!(superseded(late.write("demo", &order(1))));
}

/// The leader is stopped between its look and its order; another one takes over and gives one meanwhile. What it has
/// confirmed stays in force.
#[test]
fn two_leaders_cannot_both_give_the_same_order() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &wanting(v1::RunState::Running)).unwrap();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        leading(&meanwhile).write("demo", &wanting(v1::RunState::Paused)).unwrap();
    });
    assert!(superseded(old.write("demo", &wanting(v1::RunState::Cancelled))));
    assert_eq!(in_force(&objects), Some(v1::RunState::Paused));
}

/// The same, but the new leader gives its order when the old one's late order is already there.
#[test]
fn a_late_order_does_not_hide_those_that_follow() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &wanting(v1::RunState::Running)).unwrap();
    let (sender, others) = channel();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || keep(&sender, leading(&meanwhile)));
    assert!(superseded(old.write("demo", &wanting(v1::RunState::Cancelled))), "nobody is told that it is in force");
    let given = others.recv().unwrap().write("demo", &wanting(v1::RunState::Paused)).unwrap();
    assert!(matches!(given, Stored::Written(Some(name)) if name == order_name(1, 3)));
    assert_eq!(in_force(&objects), Some(v1::RunState::Paused));
}

#[test]
fn a_late_order_does_not_bring_a_deleted_run_back() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &wanting(v1::RunState::Running)).unwrap();
    let (sender, others) = channel();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        let mut new = leading(&meanwhile);
        new.write("demo", &Write::Delete).unwrap();
        keep(&sender, new);
    });
    assert!(superseded(old.write("demo", &wanting(v1::RunState::Paused))));
    assert_eq!(in_force(&objects), None);
    // The name can be used again, and what is left of the old run does not mix with the new one.
    let mut new = others.recv().unwrap();
    new.write("demo", &wanting(v1::RunState::Running)).unwrap();
    new.write("demo", &checkpoint(1)).unwrap();
    let (runs, _) = over(&objects).load().unwrap();
    assert_eq!((runs[0].born, runs[0].order.wanted()), (2, v1::RunState::Running));
    assert!(
        runs[0].notices.iter().any(|notice| notice.contains("is of an earlier run of this name")),
        "{:?}",
        runs[0].notices
    );
}

#[test]
fn a_late_checkpoint_of_a_deleted_run_is_not_used() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &order(1)).unwrap();
    let (sender, others) = channel();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        let mut new = leading(&meanwhile);
        new.write("demo", &Write::Delete).unwrap();
        keep(&sender, new);
    });
    // States are a function of the configuration, so a late one of the same run does no harm. This one is of another run.
    old.write("demo", &checkpoint(7)).unwrap();
    let mut new = others.recv().unwrap();
    new.write("demo", &order(1)).unwrap();
    let (runs, _) = over(&objects).load().unwrap();
    // One notice for each of its two objects.
    assert!(runs[0].checkpoint.is_none() && runs[0].notices.len() == 2, "{:?}", runs[0].notices);
}

#[test]
fn of_checkpoints_and_finished_replicas_the_highest_epoch_counts() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &order(1)).unwrap();
    old.write("demo", &finished(7)).unwrap();
    let meanwhile = Arc::clone(&objects);
    let corrected = |rounds| {
        let replica = v1::ReplicaState { arm: "main".into(), replica: 7, rounds, ..Default::default() };
        let finished = v1::Finished { replica: Some(replica), ..Default::default() };
        Write::Finished { ordinal: 7, bytes: seal(Kind::Finished, &finished.encode_to_vec()) }
    };
    objects.before_next_put(move || {
        let mut new = leading(&meanwhile);
        new.write("demo", &checkpoint(2)).unwrap();
        new.write("demo", &corrected(5)).unwrap();
    });
    old.write("demo", &checkpoint(9)).unwrap();
    let run = over(&objects).load().unwrap().0.remove(0);
    assert_eq!(run.checkpoint.unwrap().replicas[0].rounds, 2);
    assert_eq!(run.checkpoint_number, 9, "its number is not used again");
    assert_eq!((run.finished.len(), run.finished[0].replica.rounds), (1, 5));
}

/// A coordinator is stopped while it deletes a run. The next one deletes it too, and has another run of the same name by the time
/// that the first one goes on.
#[test]
fn a_late_deletion_does_not_hurt_the_next_run_of_that_name() {
    for looks_again in [false, true] {
        let objects = Arc::new(Faulty::default());
        let mut old = leading(&objects);
        old.write("demo", &wanting(v1::RunState::Cancelled)).unwrap();
        (1..4).for_each(|number| drop(old.write("demo", &checkpoint(number)).unwrap()));
        let others = Arc::clone(&objects);
        let meanwhile = move || {
            let mut new = over(&others);
            new.lead().unwrap();
            assert_eq!(new.load().unwrap().0.len(), 0, "it is deleted");
            assert!(new.list("runs").unwrap().1.is_empty(), "nothing of it is left");
            for write in [order(7), checkpoint(5), finished(3)] {
                new.write("demo", &write).unwrap();
            }
        };
        match looks_again {
            true => objects.before_next_list("runs/demo".into(), meanwhile),
            false => objects.before_next_removal(meanwhile),
        }
        old.write("demo", &Write::Delete).unwrap();
        let run = over(&objects).load().unwrap().0.remove(0);
        assert_eq!((run.born, run.order.rounds_done, run.notices), (2, 7, vec![]));
        assert_eq!((run.checkpoint.unwrap().replicas[0].rounds, run.finished.len()), (5, 1));
    }
}

/// It was being sealed when somebody deleted the run.
#[test]
fn what_comes_for_a_deleted_run_is_not_written() {
    let objects = Arc::new(Faulty::default());
    let mut store = leading(&objects);
    store.write("demo", &wanting(v1::RunState::Cancelled)).unwrap();
    store.write("demo", &Write::Delete).unwrap();
    for late in [checkpoint(1), finished(3)] {
        assert!(matches!(store.write("demo", &late), Err(StoreFault::Fenced(_))));
    }
    assert!(store.list("runs").unwrap().1.is_empty());
    store.write("demo", &order(1)).unwrap();
    store.write("demo", &checkpoint(1)).unwrap();
}

/// A coordinator is stopped before it says that a run is deleted. Somebody goes on with the run under the next one.
#[test]
fn a_deletion_that_comes_late_counts_for_nothing() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &wanting(v1::RunState::Cancelled)).unwrap();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        leading(&meanwhile).write("demo", &wanting(v1::RunState::Running)).unwrap();
    });
    assert!(superseded(old.write("demo", &Write::Delete)));
    assert_eq!(in_force(&objects), Some(v1::RunState::Running));
    let mut third = leading(&objects);
    assert_eq!(in_force(&objects), Some(v1::RunState::Running));
    third.write("demo", &Write::Delete).unwrap();
    assert_eq!((in_force(&objects), third.list("runs").unwrap().1), (None, vec![]));
}

/// A coordinator is killed while it deletes a run, whatever is removed by then. The next one removes the rest.
#[test]
fn a_deletion_that_was_interrupted_is_finished() {
    for killed_after in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let mut store = open(&directory);
        for write in [order(1), order(2), checkpoint(1), checkpoint(2), finished(3), wanting(v1::RunState::Cancelled)] {
            store.write("demo", &write).unwrap();
        }
        let run = directory.path().join("runs/demo");
        fs::create_dir(run.join("deleted")).unwrap();
        fs::write(run.join("deleted/000001-000003"), b"").unwrap();
        let paths = ["checkpoint", "finished", "order"].iter().flat_map(|part| {
            names(&run.join(part)).into_iter().map(|name| run.join(part).join(name)).collect::<Vec<_>>()
        });
        for path in paths.take(killed_after) {
            fs::remove_file(&path).unwrap();
            // The store does not leave empty directories either.
            drop(fs::remove_dir(path.parent().unwrap()));
        }
        assert_eq!(open(&directory).load().unwrap().0.len(), 0, "who does not lead does not show it");
        assert!(run.exists());
        let mut next = open(&directory);
        next.lead().unwrap();
        let (runs, notices) = next.load().unwrap();
        assert_eq!((runs.len(), notices, run.exists()), (0, vec![], false), "{killed_after}");
    }
}

/// A coordinator is stopped before it removes the checkpoints of a finished run, which somebody extends under the next one.
#[test]
fn checkpoints_of_a_later_leader_are_not_dropped() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &order(1)).unwrap();
    old.write("demo", &checkpoint(1)).unwrap();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_list("runs/demo/checkpoint".into(), move || {
        let mut new = leading(&meanwhile);
        new.write("demo", &order(2)).unwrap();
        new.write("demo", &checkpoint(2)).unwrap();
    });
    old.write("demo", &Write::DropCheckpoints).unwrap();
    let run = over(&objects).load().unwrap().0.remove(0);
    assert_eq!(run.checkpoint.unwrap().replicas[0].rounds, 2);
}

#[test]
fn lost_answers_make_no_second_order() {
    let objects = Arc::new(Faulty::default());
    let mut store = leading(&objects);
    store.write("demo", &order(1)).unwrap();
    objects.next_put(Fault::WrittenButDenied);
    store.write("demo", &order(2)).unwrap();
    objects.next_put(Fault::Failed);
    assert!(matches!(store.write("demo", &order(3)), Err(StoreFault::Failed(_))));
    store.write("demo", &order(4)).unwrap();
    let run = over(&objects).load().unwrap().0.remove(0);
    assert_eq!((run.order_number, run.order.rounds_done), (3, 4));
}

#[test]
fn an_epoch_says_under_which_authority_it_is_led() {
    let objects = Arc::new(Faulty::default());
    let mut store = over(&objects);
    let led = |store: &Store| store.leader().unwrap().and_then(|leader| leader.security);
    store.lead().unwrap();
    assert_eq!(led(&store), None, "nobody is served");
    for security in [Security::PlainText, Security::Authority([7; 32].as_slice().try_into().unwrap())] {
        store.speak(security);
        store.lead().unwrap();
        assert_eq!(led(&over(&objects)), Some(security));
    }
}

/// Workers and tools have seen the epochs of the time after the copy.
#[test]
fn a_restored_store_goes_on_above_all_epochs_that_were() {
    let objects = Arc::new(Faulty::default());
    let mut store = leading(&objects);
    store.write("demo", &wanting(v1::RunState::Paused)).unwrap();
    let cluster = store.cluster();
    let (before, now) = over(&objects).restored().unwrap();
    assert_eq!((before, now), (1, 1_000_001));
    // Whoever led meanwhile has not led that often.
    let mut next = leading(&objects);
    assert_eq!((next.epoch().unwrap().number, next.cluster()), (now + 1, cluster));
    assert!(
        superseded(store.write("demo", &wanting(v1::RunState::Running))),
        "who led in the copy's time leads no more"
    );
    assert_eq!(in_force(&objects), Some(v1::RunState::Paused));
    next.write("demo", &wanting(v1::RunState::Running)).unwrap();
    next.write("other", &wanting(v1::RunState::Running)).unwrap();
    assert_eq!(over(&objects).load().unwrap().0.len(), 2);
    // Restored once more.
    assert_eq!(over(&objects).restored().unwrap(), (now + 1, now + 1 + 1_000_000));
}
