//! A start reads only those finished replicas that the index of their run lacks.

use super::*;
use crate::{core::Mended, store::index::Thresholds};

const REPLICAS: u32 = 5;

fn over(objects: &Arc<Faulty>, replicas: u64) -> Store {
    let mut store = Store::over(objects.clone(), "memory", registry().clone());
    store.thresholds = Thresholds { replicas, bytes: u64::MAX };
    store.lead().unwrap();
    store
}

/// A run whose replicas are all finished.
fn computed(objects: &Arc<Faulty>, replicas: u64) -> Store {
    let mut store = over(objects, replicas);
    store.write("demo", &order(1)).unwrap();
    for number in 0..REPLICAS {
        store.write("demo", &finished(number)).unwrap();
    }
    store.write("demo", &Write::DropCheckpoints).unwrap();
    store
}

fn in_directory(store: &Store, directory: &str) -> Vec<String> {
    let (found, _) = store.list(&format!("runs/demo/{directory}")).unwrap();
    found.into_iter().map(|(name, _)| format!("runs/demo/{directory}/{name}")).collect()
}

/// The finished replicas that a start knows, how many it has read, and its notices.
fn started(objects: &Arc<Faulty>) -> (Vec<u32>, usize, Vec<String>) {
    let mut store = over(objects, 1);
    let (mut runs, _) = store.load().unwrap();
    let saved = runs.remove(0);
    let read = saved.finished.iter().filter(|it| !it.indexed).count();
    (saved.finished.iter().map(|it| it.replica.index).collect(), read, saved.notices)
}

#[test]
fn indexed_objects_are_not_read_at_a_start() {
    let objects = Arc::new(Faulty::default());
    let store = computed(&objects, 1);
    let all = in_directory(&store, "finished");
    assert_eq!((all.len(), in_directory(&store, "index").len()), (5, 2), "the newest two indices are kept");
    for object in all {
        // The start would fail if it read this object.
        objects.cannot_read(Some(object));
        assert_eq!(started(&objects), ((0..5).collect(), 0, Vec::new()));
    }
}

#[test]
fn few_small_replicas_are_read_without_an_index() {
    let objects = Arc::new(Faulty::default());
    let store = computed(&objects, u64::from(REPLICAS) + 1);
    assert_eq!(in_directory(&store, "index"), [""; 0]);
    assert_eq!(started(&objects), ((0..5).collect(), 5, Vec::new()));
    // That start has written the index.
    assert_eq!(started(&objects), ((0..5).collect(), 0, Vec::new()));
}

#[test]
fn a_damaged_or_missing_index_only_costs_reads() {
    for (how, damaged) in
        [("missing", 1), ("missing", 2), ("flipped", 1), ("flipped", 2), ("halved", 2), ("emptied", 1)]
    {
        let objects = Arc::new(Faulty::default());
        let store = computed(&objects, 1);
        for name in in_directory(&store, "index").into_iter().rev().take(damaged) {
            let mut bytes = store.get(&name).unwrap().to_vec();
            store.remove(vec![name.clone()]).unwrap();
            match how {
                "missing" => continue,
                "flipped" => bytes[30] ^= 2,
                "halved" => bytes.truncate(bytes.len() / 2),
                _ => bytes.clear(),
            }
            store.put(&name, &bytes.into()).unwrap();
        }
        let (replicas, read, notices) = started(&objects);
        let told = if how == "missing" { 0 } else { damaged };
        assert_eq!((replicas.len(), notices.len()), (5, told), "{how}: {notices:?}");
        // The index before lacks the replica that finished last.
        assert_eq!(read, if damaged == 2 { 5 } else { 1 }, "{how}");
        assert_eq!(started(&objects), ((0..5).collect(), 0, Vec::new()), "{how}: the index was rewritten");
    }
}

/// An index is written so rarely that all indices together stay small.
#[test]
fn many_replicas_have_few_indices() {
    let objects = Arc::new(Faulty::default());
    let mut store = over(&objects, 4);
    store.write("demo", &order(1)).unwrap();
    let mut newest = Vec::new();
    for number in 0..64 {
        store.write("demo", &finished(number)).unwrap();
        newest.extend(in_directory(&store, "index").pop());
    }
    newest.dedup();
    assert_eq!(newest.len(), 5, "after 4, 8, 16, 32 and 64 replicas: {newest:?}");
}

#[test]
fn a_damaged_object_is_restored_from_its_copy() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    store.write("demo", &order(1)).unwrap();
    store.write("demo", &finished(3)).unwrap();
    let object = names(&directory.path().join("runs/demo/finished")).remove(0);
    let path = |of: &str| directory.path().join("runs/demo").join(of).join(&object);
    let good = fs::read(path("finished")).unwrap();
    let mut mend = || match store.write("demo", &Write::Mend { object: format!("finished/{object}") }) {
        Ok(Stored::Mended(mended)) => mended,
        other => panic!("{other:?}"),
    };
    assert_eq!(mend(), Mended::Good);
    for damaged in ["finished", "finished-copy"] {
        for how in ["missing", "damaged"] {
            match how {
                "missing" => fs::remove_file(path(damaged)).unwrap(),
                _ => fs::write(path(damaged), &good[1..]).unwrap(),
            }
            let told = mend();
            let Mended::Again(sentence) = &told else { panic!("{told:?}") };
            assert!(sentence.contains(&format!("runs/demo/{damaged}/{object} was {how}")), "{sentence}");
            assert_eq!((fs::read(path(damaged)).unwrap(), mend()), (good.clone(), Mended::Good));
        }
    }
    fs::write(path("finished"), b"x").unwrap();
    fs::remove_file(path("finished-copy")).unwrap();
    let told = mend();
    assert!(matches!(&told, Mended::Lost(sentence) if sentence.contains("is computed again")), "{told:?}");
    assert!(!path("finished").exists());
}
