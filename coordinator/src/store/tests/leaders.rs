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

/// A coordinator that takes over and loads the store.
fn leading(objects: &Arc<Faulty>) -> Store {
    let mut store = over(objects);
    store.lead().unwrap();
    store.load().unwrap();
    store
}

/// An order that wants the run in this state.
fn wanting(wanted: v1::RunState) -> Write {
    let config = "experiment = \"dispatch\"\n".into();
    let order = v1::Order { config, wanted: wanted.into(), ..v1::Order::default() };
    Write::Order { bytes: seal(Kind::Order, &order.encode_to_vec()) }
}

/// The newest order as a coordinator that starts now sees it.
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

/// A build with a later format of the store has led. An earlier one neither leads nor loads, and says which builds fit.
#[test]
fn a_store_of_a_later_format_is_refused() {
    let objects = Arc::new(Faulty::default());
    let store = leading(&objects);
    assert_eq!(store.leader().unwrap().unwrap().format, 2);
    let later = v1::Leader { who: "x".into(), cluster: vec![7; 16].into(), format: 3, ..v1::Leader::default() };
    assert!(store.put("leader/000002", &seal(Kind::Epoch, &later.encode_to_vec())).unwrap());
    let mut earlier = over(&objects);
    let why = "the store memory has format 3, and this build knows formats up to 2: use a build whose --version shows store \
               format 3 or higher, or restore a copy from before the upgrade";
    for fault in [earlier.lead(), earlier.restored().map(drop)] {
        assert_eq!(fault, Err(StoreFault::Failed(why.into())));
    }
    assert_eq!(earlier.load().unwrap_err().to_string(), why);
    assert_eq!(store.leader().unwrap().unwrap().epoch.number, 2, "nothing was written");
}

/// A coordinator that took an unreadable record for an empty one would start another cluster, whatever authority this one
/// has.
#[test]
fn a_temporarily_unreadable_epoch_does_not_count_as_damaged() {
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
    assert_eq!(names(&directory.path().join("leader")), ["000002"], "older epochs are removed");
    assert!(superseded(old.write("demo", &Write::Load)), "the old leader does not load the run");
}

#[test]
fn a_coordinator_that_only_read_leads_at_its_first_write() {
    let (directory, _) = with_run(1);
    let (mut one, mut two) = (open(&directory), open(&directory));
    one.load().unwrap();
    two.load().unwrap();
    one.write("demo", &order(2)).unwrap();
    assert_eq!(names(&directory.path().join("leader")), ["000002"]);
    assert!(superseded(two.write("demo", &order(2))));
}

#[test]
fn a_successful_creation_alone_makes_no_leader() {
    let objects = Arc::new(Faulty::default());
    drop(leading(&objects));
    let mut late = over(&objects);
    let before = late.leader().unwrap();
    let (sender, others) = channel();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        drop(leading(&meanwhile));
        // This takeover removes epoch 2, so its name can be created again.
        keep(&sender, leading(&meanwhile));
    });
    assert_eq!(late.lead_after(before.as_ref()), Ok(false));
    let mut third = others.recv().unwrap();
    assert_eq!(third.epoch().unwrap().number, 3);
    third.write("demo", &order(1)).unwrap();
    assert!(superseded(late.write("demo", &order(1))));
}

/// The leader is suspended between its check and its order. Meanwhile another one takes over and gives an order, which stays
/// in force once it is confirmed.
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

/// The same, but the new leader gives its order after the old leader's late order was written.
#[test]
fn a_late_order_does_not_hide_those_that_follow() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &wanting(v1::RunState::Running)).unwrap();
    let (sender, others) = channel();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || keep(&sender, leading(&meanwhile)));
    assert!(
        superseded(old.write("demo", &wanting(v1::RunState::Cancelled))),
        "nobody learns that the order is in \
                                                                               force"
    );
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
    // The name can be used again, and leftovers of the old run do not mix with the new one.
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
    // States are a function of the configuration, so a late state of the same run does no harm. This one is from another run.
    old.write("demo", &checkpoint(7)).unwrap();
    let mut new = others.recv().unwrap();
    new.write("demo", &order(1)).unwrap();
    let (runs, _) = over(&objects).load().unwrap();
    // One notice for each of the checkpoint's two objects.
    assert!(runs[0].checkpoint.is_none() && runs[0].notices.len() == 2, "{:?}", runs[0].notices);
}

#[test]
fn of_checkpoints_and_finished_replicas_the_highest_epoch_counts() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    old.write("demo", &order(1)).unwrap();
    old.write("demo", &finished(7)).unwrap();
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || {
        let mut new = leading(&meanwhile);
        new.write("demo", &checkpoint(2)).unwrap();
        new.write("demo", &finished_after(7, 5)).unwrap();
    });
    old.write("demo", &checkpoint(9)).unwrap();
    let run = over(&objects).load().unwrap().0.remove(0);
    assert_eq!(run.checkpoint.unwrap().replicas[0].rounds, 2);
    assert_eq!(run.checkpoint_number, 9, "its number is not used again");
    assert_eq!((run.finished.len(), run.finished[0].replica.rounds), (1, 5));
}

/// A coordinator is suspended while it deletes a run. The next one deletes it too, and has another run of the same name by
/// the time the first one resumes.
#[test]
fn a_late_deletion_does_not_affect_the_next_run_of_that_name() {
    for looks_again in [false, true] {
        let objects = Arc::new(Faulty::default());
        let mut old = leading(&objects);
        old.write("demo", &wanting(v1::RunState::Cancelled)).unwrap();
        (1..4).for_each(|number| drop(old.write("demo", &checkpoint(number)).unwrap()));
        let others = Arc::clone(&objects);
        let meanwhile = move || {
            let mut new = over(&others);
            new.lead().unwrap();
            assert_eq!(new.load().unwrap().0.len(), 0, "the run is deleted");
            assert!(new.list("runs").unwrap().1.is_empty(), "no object of the run is left");
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

/// The checkpoint was being sealed when the run was deleted.
#[test]
fn writes_for_a_deleted_run_are_rejected() {
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

/// A coordinator is suspended before it records a deletion. Meanwhile the run is continued under the next one.
#[test]
fn a_late_deletion_has_no_effect() {
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

/// A coordinator is killed while it deletes a run, at any point of the removal. The next one removes the rest.
#[test]
fn an_interrupted_deletion_is_completed() {
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
            // The store does not leave empty directories behind either.
            drop(fs::remove_dir(path.parent().unwrap()));
        }
        assert_eq!(
            open(&directory).load().unwrap().0.len(),
            0,
            "a coordinator that does not lead does not show the \
                                                                 run"
        );
        assert!(run.exists());
        let mut next = open(&directory);
        next.lead().unwrap();
        let (runs, notices) = next.load().unwrap();
        assert_eq!((runs.len(), notices, run.exists()), (0, vec![], false), "{killed_after}");
    }
}

/// A coordinator is suspended before it removes the checkpoints of a finished run. Meanwhile the run is extended under the
/// next one.
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
fn lost_answers_create_no_second_order() {
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
fn an_epoch_records_its_authority() {
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

/// Workers and tools have seen epochs that are newer than the copy.
#[test]
fn a_restored_store_continues_above_all_earlier_epochs() {
    let objects = Arc::new(Faulty::default());
    let mut store = leading(&objects);
    store.write("demo", &wanting(v1::RunState::Paused)).unwrap();
    let cluster = store.cluster();
    let (before, now) = over(&objects).restored().unwrap();
    assert_eq!((before, now), (1, 1_000_001));
    // The step is greater than the number of leaders since the copy was made.
    let mut next = leading(&objects);
    assert_eq!((next.epoch().unwrap().number, next.cluster()), (now + 1, cluster));
    assert!(
        superseded(store.write("demo", &wanting(v1::RunState::Running))),
        "the leader from before the copy no longer leads"
    );
    assert_eq!(in_force(&objects), Some(v1::RunState::Paused));
    next.write("demo", &wanting(v1::RunState::Running)).unwrap();
    next.write("other", &wanting(v1::RunState::Running)).unwrap();
    assert_eq!(over(&objects).load().unwrap().0.len(), 2);
    // The store is restored once more.
    assert_eq!(over(&objects).restored().unwrap(), (now + 1, now + 1 + 1_000_000));
}
