//! Objects of several finished replicas.

use super::{
    damage::{damage, leading, loaded},
    *,
};
use crate::{core::Mended, names::copy_name};

/// Replicas that are written together are in one object and its copy, and each can be read alone. Whoever no longer leads writes
/// none of them.
#[test]
fn finished_replicas_are_written_together() {
    let (directory, mut store) = with_run(1);
    let several: Vec<Write> = (0..20).map(finished).collect();
    store.write("demo", &several[0]).unwrap();
    let outcomes = store.write_all_finished("demo", &several[1..]);
    for (write, outcome) in several[1..].iter().zip(outcomes) {
        let (Write::Finished { bytes }, Ok(Stored::Finished(place))) = (write, outcome) else { panic!("{write:?}") };
        assert_eq!(store.read_finished("demo", &place), Ok(bytes.clone()));
    }
    for part in ["finished", "finished-copy"] {
        let names = names(&directory.path().join("runs/demo").join(part));
        assert!(names.len() == 2 && names[1].starts_with("000001-000002-000019-"), "{names:?}");
    }
    let mut next = open(&directory);
    let (runs, notices) = next.load().unwrap();
    assert_eq!((runs[0].finished.len(), &runs[0].notices, notices), (20, &Vec::new(), Vec::new()));
    next.lead().unwrap();
    let refused = store.write_all_finished("demo", &[finished(21), finished(22)]);
    assert!(refused.iter().all(|outcome| matches!(outcome, Err(StoreFault::Superseded(_)))), "{refused:?}");
    let gone = next.write_all_finished("other", &[finished(0)]);
    assert!(matches!(gone[0], Err(StoreFault::Fenced(_))), "{gone:?}");
}

/// A replica that was void and is computed again is there twice, in two objects or in one. The later one counts, also by an index.
#[test]
fn of_a_replica_that_is_stored_twice_the_later_one_counts() {
    for indexed in [1, u64::MAX] {
        let (directory, mut store) = with_run(1);
        store.thresholds.replicas = indexed;
        store.write_all_finished("demo", &[finished_after(0, 1), finished_after(1, 1)]);
        store.write_all_finished("demo", &[finished_after(0, 2), finished_after(2, 1), finished_after(2, 2)]);
        let mut next = open(&directory);
        let run = next.load().unwrap().0.remove(0);
        let rounds: Vec<(u32, u64)> = run.finished.iter().map(|it| (it.replica.index, it.replica.rounds)).collect();
        assert_eq!((rounds, run.superseded.len()), (vec![(0, 2), (1, 1), (2, 2)], 2));
        assert!(run.notices.is_empty() && run.finished.iter().all(|it| it.indexed == (indexed == 1)));
        next.write("demo", &finished(3)).unwrap();
        let names = names(&directory.path().join("runs/demo/finished"));
        assert!(names[2].starts_with("000002-000003-000001-"), "numbers go on after a start: {names:?}");
    }
}

/// An object of many replicas: one bad place costs none of them, and with both objects bad all are computed again.
#[test]
fn many_replicas_in_one_damaged_object() {
    let all: Vec<Write> = (0..9).map(finished).collect();
    for (how, word) in [("deleted", "missing"), ("emptied", "damaged"), ("halved", "damaged"), ("flipped", "damaged")] {
        for indexed in [1, u64::MAX] {
            let (directory, mut store) = with_run(1);
            store.thresholds.replicas = indexed;
            let outcomes = store.write_all_finished("demo", &all);
            let places = outcomes.into_iter().map(|outcome| match outcome {
                Ok(Stored::Finished(place)) => place,
                other => panic!("{other:?}"),
            });
            let places: Vec<_> = places.collect();
            let object = places[0].object.to_string();
            let path = |name: &str| directory.path().join("runs/demo").join(name);
            damage(&path(&object), how);
            for (place, write) in places.iter().zip(&all) {
                let Write::Finished { bytes } = write else { unreachable!() };
                assert_eq!(store.read_finished("demo", place), Ok(bytes.clone()), "{how}");
            }
            let Ok(Stored::Mended(Mended::Again(told))) = store.write("demo", &Write::Mend { object: object.clone() })
            else {
                panic!("{how}")
            };
            assert!(told.contains(&format!("{object} was {word} and was rewritten from")), "{told}");
            // Now both.
            [object.clone(), copy_name(&object).unwrap()].iter().for_each(|name| assert!(damage(&path(name), how)));
            let found = open(&directory).load().unwrap().0.remove(0);
            match (how, indexed) {
                // A start does not read what the index lists.
                ("flipped", 1) => assert_eq!((found.finished.len(), found.notices.len()), (9, 0)),
                _ => assert_eq!(found.finished.len(), 0, "{how}"),
            }
            let told = "can be used: its 9 replicas are computed again, except those that another object has";
            let is_told = found.notices.iter().any(|notice| notice.ends_with(told));
            assert_eq!(is_told, how != "deleted" && (how, indexed) != ("flipped", 1), "{how}: {:?}", found.notices);
            let Ok(Stored::Mended(Mended::Lost(lost))) = store.write("demo", &Write::Mend { object: object.clone() })
            else {
                panic!("{how}")
            };
            assert!(lost.contains(&object) && lost.contains(word) && lost.ends_with(told), "{lost}");
            assert!(!path(&object).exists() && open(&directory).load().unwrap().0[0].finished.is_empty());
        }
    }
}

/// Format 1 of the store had one replica in each object, under another name, and indices without places.
#[test]
fn a_store_of_format_1_is_read() {
    let (directory, mut store) = with_run(1);
    for number in 0..3 {
        let Write::Finished { bytes } = finished(number) else { unreachable!() };
        let name = format!("{number:013}-000001-{}", Digest::of(&bytes).short());
        for part in ["finished", "finished-copy"] {
            fs::create_dir_all(directory.path().join("runs/demo").join(part)).unwrap();
            fs::write(directory.path().join("runs/demo").join(part).join(&name), &bytes).unwrap();
        }
    }
    fs::create_dir(directory.path().join("runs/demo/index")).unwrap();
    // Field 2, a list, with one replica.
    let first = seal(Kind::Index, &[0x12, 0x03, 0x0a, 0x01, b'x']);
    let name = format!("runs/demo/index/000001-000001-{}", Digest::of(&first).short());
    fs::write(directory.path().join(name), &first).unwrap();
    let mut next = leading(directory.path());
    for indexed in [false, true] {
        let run = loaded(&mut next, "demo");
        assert_eq!((run.finished.len(), run.notices), (3, Vec::new()));
        for it in &run.finished {
            let Write::Finished { bytes } = finished(it.replica.index) else { unreachable!() };
            assert_eq!((next.read_finished("demo", &it.place), it.indexed), (Ok(bytes), indexed));
        }
    }
    // A replica of this build supersedes one of the format before.
    next.write("demo", &finished_after(1, 5)).unwrap();
    let run = loaded(&mut next, "demo");
    assert_eq!((run.finished.len(), run.finished[1].replica.rounds, run.superseded.len()), (3, 5, 1));
    drop(store.write("demo", &order(2)).unwrap_err());
}
