//! The store in a real directory, and over objects that fail on purpose.

mod buckets;
mod checked;
mod cordons;
mod damage;
mod faulty;
mod index;
mod kept;
mod leaders;
mod log;
mod packs;
mod power;
mod refused;
mod upgrade;

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, seal},
};
use evoxo_proto::v1;
use prost::Message as _;
use tempfile::TempDir;

use super::{Lock, Registry, Store, StoreError};
use crate::{
    core::{StoreFault, Stored, Write},
    names::{object_name, order_name},
};
use faulty::{Fault, Faulty};

fn order(number: u64) -> Write {
    let config = "experiment = \"dispatch\"\n".into();
    let order = v1::Order { config, wanted: 1, rounds_done: number, ..v1::Order::default() };
    Write::Order { bytes: seal(Kind::Order, &order.encode_to_vec()) }
}

fn checkpoint(number: u64) -> Write {
    let replica = v1::ReplicaState { arm: "main".into(), rounds: number, ..Default::default() };
    let checkpoint = v1::Checkpoint { replicas: vec![replica], ..Default::default() };
    Write::Checkpoint { number, bytes: seal(Kind::Checkpoint, &checkpoint.encode_to_vec()), keep: 0 }
}

/// A finished replica with this number.
fn finished(number: u32) -> Write {
    finished_after(number, 0)
}

fn finished_after(number: u32, rounds: u64) -> Write {
    let replica = v1::ReplicaState { arm: "main".into(), replica: number, rounds, ..Default::default() };
    let finished = v1::Finished { replica: Some(replica), ..Default::default() };
    Write::Finished { bytes: seal(Kind::Finished, &finished.encode_to_vec()) }
}

fn open(directory: &TempDir) -> Store {
    let (store, trouble) = Store::open(directory.path().to_str().unwrap(), registry().clone()).unwrap();
    assert_eq!(trouble, None);
    store
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(evoxo_experiments::registry)
}

/// The path of the object that the first coordinator, or the first order of a run, creates with this write.
fn object(directory: &TempDir, write: &Write) -> std::path::PathBuf {
    directory.path().join("runs/demo").join(object_name(write, 1).unwrap_or_else(|| order_name(1, 1)))
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A store with one run: an order and checkpoints up to this number.
fn with_run(checkpoints: u64) -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    store.write("demo", &order(1)).unwrap();
    for number in 1..=checkpoints {
        store.write("demo", &checkpoint(number)).unwrap();
    }
    (directory, store)
}

fn rounds(store: &mut Store) -> u64 {
    let (runs, _) = store.load().unwrap();
    runs[0].checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.replicas[0].rounds)
}

#[test]
fn written_objects_are_loaded() {
    let (directory, mut store) = with_run(5);
    store.write("demo", &finished(3)).unwrap();
    store.write("demo", &order(2)).unwrap();
    let poison = Write::Poison { hash: Digest::of(b"x"), bytes: Bytes::from_static(b"x") };
    store.write("demo", &poison).unwrap();
    let mut reopened = open(&directory);
    let (runs, notices) = reopened.load().unwrap();
    assert_eq!((runs.len(), notices), (1, vec![]));
    let run = &runs[0];
    assert_eq!((run.name.as_str(), run.order_number, run.order.rounds_done), ("demo", 2, 2));
    assert_eq!((run.checkpoint_number, run.finished.len(), run.notices.len()), (5, 1, 0));
    assert_eq!(run.checkpoint.as_ref().unwrap().replicas[0].rounds, 5);
    assert!(run.checkpoint.as_ref().unwrap().states.is_empty(), "states are read when they are needed");
    let loaded = reopened.load_run("demo").unwrap().unwrap().checkpoint.unwrap();
    assert_eq!((loaded.replicas.len(), loaded.states[0].rounds), (1, 5));
    assert!(reopened.load_run("other").unwrap().is_none());
    assert_eq!(fs::read(object(&directory, &poison)).unwrap(), b"x");
}

#[test]
fn a_damaged_checkpoint_is_reported_and_the_previous_one_used() {
    type Damage = fn(&Path, Vec<u8>);
    let truncate: Damage = |path, bytes| fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    let empty: Damage = |path, _| fs::write(path, b"").unwrap();
    let flip: Damage = |path, mut bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(path, bytes).unwrap();
    };
    let another: Damage = |path, _| fs::write(path, seal(Kind::Checkpoint, b"")).unwrap();
    let foreign: Damage =
        |path, _| fs::write(path, b"hello, this is a letter to my aunt, and it is long enough").unwrap();
    for (damage, word) in [
        (truncate, "truncated"),
        (empty, "truncated"),
        (flip, "has changed"),
        (another, "has changed"),
        (foreign, "not written by evoxo"),
    ] {
        let (directory, _) = with_run(3);
        let path = object(&directory, &checkpoint(3));
        damage(&path, fs::read(&path).unwrap());
        let mut store = open(&directory);
        assert_eq!(rounds(&mut store), 3, "its copy is valid");
        fs::remove_dir_all(directory.path().join("runs/demo/checkpoint-copy")).unwrap();
        let run = store.load().unwrap().0.remove(0);
        assert_eq!(run.checkpoint.unwrap().replicas[0].rounds, 2);
        assert_eq!(run.checkpoint_number, 3, "its number is not used again");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(run.notices.len() == 1 && run.notices[0].contains(name), "{:?}", run.notices);
        assert!(run.notices[0].contains(word), "{:?} does not say {word}", run.notices);
    }
}

#[test]
fn foreign_files_are_reported_and_kept() {
    let (directory, mut store) = with_run(1);
    let foreign = [
        "runs/README",
        "runs/Not A Run/file",
        "runs/src/main.rs",
        "runs/demo/notes.txt",
        "runs/demo/checkpoint/notes",
        "runs/demo/old/000001",
    ];
    for name in foreign {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"mine").unwrap();
    }
    let (runs, notices) = store.load().unwrap();
    assert_eq!(runs.len(), 1);
    let messages = [notices, runs[0].notices.clone()].concat().join("\n");
    for name in ["README", "Not A Run", "src", "demo/notes.txt", "demo/checkpoint/notes", "demo/old"] {
        assert!(messages.contains(&format!("runs/{name} was not written by evoxo")), "{name} is not in {messages}");
    }
    store.write("demo", &Write::Delete).unwrap();
    for name in foreign {
        assert!(directory.path().join(name).exists(), "{name} was removed");
    }
    assert!(!directory.path().join("runs/demo/order").exists());
    assert!(store.load().unwrap().0.is_empty());
}

/// An order and its copy get their names together. If the number is taken, the copy of the order does not appear.
#[test]
fn an_order_that_comes_too_late_leaves_no_copy() {
    let (directory, mut store) = with_run(0);
    let run = directory.path().join("runs/demo");
    fs::write(run.join(order_name(1, 2)), b"of another coordinator").unwrap();
    store.write("demo", &order(3)).unwrap();
    assert_eq!(names(&run.join("order")), ["000001-000001", "000001-000002", "000001-000003"]);
    let copies = names(&run.join("order-copy"));
    assert!(copies.len() == 2 && copies[1].starts_with("000001-000003-"), "{copies:?}");
}

#[test]
fn a_run_without_a_valid_order_is_not_used() {
    let (directory, _) = with_run(1);
    fs::write(object(&directory, &order(1)), b"evoxo").unwrap();
    let copies = directory.path().join("runs/demo/order-copy");
    names(&copies).iter().for_each(|name| fs::write(copies.join(name), b"evoxo").unwrap());
    let mut store = open(&directory);
    let (runs, notices) = store.load().unwrap();
    assert!(runs.is_empty());
    assert!(notices.iter().any(|notice| notice.contains("run demo has no valid order")), "{notices:?}");
    let fault = store.write("demo", &order(1)).unwrap_err();
    assert!(matches!(&fault, StoreFault::Fenced(why) if why.contains("choose another name")), "{fault:?}");
}

/// Other threads read ahead for so many runs.
#[test]
fn many_runs_are_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let runs: Vec<String> = (0..40).map(|number| format!("run-{number:02}")).collect();
    runs.iter().for_each(|run| drop(store.write(run, &order(1)).unwrap()));
    fs::write(directory.path().join("runs/run-07").join(order_name(1, 1)), b"damaged").unwrap();
    let (loaded, notices) = open(&directory).load().unwrap();
    let mut found: Vec<&String> = loaded.iter().map(|run| &run.name).collect();
    found.sort();
    assert_eq!((found, notices), (runs.iter().collect(), Vec::new()));
    assert!(loaded.iter().all(|run| run.notices.is_empty() == (run.name != "run-07")));
}

#[test]
fn a_run_that_was_removed_is_not_written() {
    let (directory, mut store) = with_run(2);
    fs::remove_dir_all(directory.path().join("runs/demo")).unwrap();
    let fault = store.write("demo", &checkpoint(3)).unwrap_err();
    assert!(matches!(&fault, StoreFault::Fenced(why) if why.contains("removed")), "{fault:?}");
    assert!(!directory.path().join("runs/demo").exists());
}

#[test]
fn old_checkpoints_are_pruned() {
    let (directory, mut store) = with_run(130);
    let kept: Vec<String> = [128, 129, 130].map(|n| object_name(&checkpoint(n), 1).unwrap()).into();
    let found: Vec<String> =
        names(&directory.path().join("runs/demo/checkpoint")).iter().map(|name| format!("checkpoint/{name}")).collect();
    assert_eq!(found, kept);
    // A new process also prunes the checkpoints that it found.
    let mut store_two = open(&directory);
    store_two.load().unwrap();
    store_two.lead().unwrap();
    store_two.write("demo", &checkpoint(131)).unwrap();
    assert_eq!(names(&directory.path().join("runs/demo/checkpoint")).len(), 3);
    store_two.write("demo", &checkpoint(132)).unwrap();
    assert_eq!(names(&directory.path().join("runs/demo/checkpoint")).len(), 3);
    store_two.write("demo", &Write::DropCheckpoints).unwrap();
    assert_eq!(names(&directory.path().join("runs/demo/checkpoint")), [""; 0]);
    assert_eq!(rounds(&mut store), 0);
}

#[test]
fn deleting_also_removes_half_written_files() {
    let (directory, mut store) = with_run(3);
    store.write("demo", &finished(0)).unwrap();
    let half = format!("{}#1", object(&directory, &checkpoint(4)).display());
    fs::write(&half, b"half").unwrap();
    assert!(store.load().unwrap().0[0].notices.is_empty(), "a half-written file is not an object");
    store.write("demo", &Write::Delete).unwrap();
    assert_eq!(names(directory.path()), ["leader"]);
    // The name can be used again.
    store.write("demo", &order(1)).unwrap();
    assert_eq!(open(&directory).load().unwrap().0.len(), 1);
}

#[test]
fn taking_over_removes_half_written_files() {
    let (directory, _) = with_run(1);
    let half = format!("{}#12", object(&directory, &checkpoint(2)).display());
    let foreign = directory.path().join("runs/demo/checkpoint/draft#1");
    fs::write(&half, b"half").unwrap();
    fs::write(&foreign, b"mine").unwrap();
    let mut store = open(&directory);
    store.load().unwrap();
    assert!(Path::new(&half).exists(), "opening a store to read removes nothing");
    store.lead().unwrap();
    store.load().unwrap();
    assert!(!Path::new(&half).exists());
    assert!(foreign.exists());
}

#[test]
fn repeated_writes_only_replace_damaged_objects() {
    let (directory, mut store) = with_run(1);
    store.write("demo", &checkpoint(7)).unwrap();
    store.write("demo", &checkpoint(7)).unwrap();
    let path = object(&directory, &checkpoint(7));
    let good = fs::read(&path).unwrap();
    fs::write(&path, b"damaged").unwrap();
    store.write("demo", &checkpoint(7)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), good);
}

#[test]
fn an_unclear_result_is_checked() {
    let faulty = Arc::new(Faulty::default());
    let mut store = Store::over(faulty.clone(), "memory", registry().clone());
    store.write("demo", &order(1)).unwrap();
    faulty.next_put(Fault::WrittenButDenied);
    store.write("demo", &checkpoint(1)).unwrap();
    faulty.next_put(Fault::Failed);
    let fault = store.write("demo", &checkpoint(2)).unwrap_err();
    let name = object_name(&checkpoint(2), 1).unwrap();
    let said = |why: &str| why.contains(&name) && why.contains("the disk is on fire") && why.contains("memory");
    assert!(matches!(&fault, StoreFault::Failed(why) if said(why)), "{fault:?}");
    store.write("demo", &checkpoint(2)).unwrap();
    assert_eq!(rounds(&mut store), 2);
    // The outcome of creating an epoch may be unclear too.
    faulty.next_put(Fault::WrittenButDenied);
    store.lead().unwrap();
    assert_eq!(store.epoch().unwrap().number, 2);
    store.write("demo", &checkpoint(3)).unwrap();
    faulty.next_put(Fault::Failed);
    assert!(matches!(store.lead(), Err(StoreFault::Failed(_))));
}

/// An object that cannot be read for a while is not damaged. Without the newest order an older one would come into force.
#[test]
fn a_temporarily_unreadable_object_is_not_skipped() {
    let faulty = Arc::new(Faulty::default());
    let mut store = Store::over(faulty.clone(), "memory", registry().clone());
    store.lead().unwrap();
    let given = |write: &Write| object_name(write, 1).map(|name| format!("runs/demo/{name}"));
    let mut names = Vec::new();
    for number in 1..=2 {
        let Stored::Written(Some(name)) = store.write("demo", &order(number)).unwrap() else { panic!("a name") };
        names.push(format!("runs/demo/{name}"));
        store.write("demo", &checkpoint(number)).unwrap();
    }
    let newest = store.load_run("demo").unwrap().unwrap();
    for name in [names[1].clone(), given(&checkpoint(2)).unwrap()] {
        faulty.cannot_read(Some(name.clone()));
        for error in [store.load_run("demo").err(), store.load().err()] {
            let error = error.expect("it cannot be read").to_string();
            assert!(error.contains(&name) && error.contains("it does not answer"), "{error}");
        }
        assert!(matches!(store.write("demo", &Write::Load), Err(StoreFault::Failed(_))), "{name}");
    }
    faulty.cannot_read(Some(names[0].clone()));
    assert_eq!(store.load_run("demo").unwrap().unwrap().order, newest.order, "the older order is not needed");
    faulty.cannot_read(None);
    let again = store.load_run("demo").unwrap().unwrap();
    assert_eq!((again.order_number, again.checkpoint_number, again.order), (2, 2, newest.order));
}

#[test]
fn an_unusable_store_is_rejected_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, b"").unwrap();
    let below_file = file.join("runs");
    // Even root cannot write in /proc.
    for spec in [file.to_str().unwrap(), below_file.to_str().unwrap(), "/proc/evoxo", "/proc"] {
        let error = Store::open(spec, registry().clone()).err().expect(spec).to_string();
        assert!(error.contains("--store") || error.contains("name a directory"), "{error}");
        assert!(error.contains(spec) && !error.contains('\n'), "{error}");
    }
    let unknown = Store::open("ftp://host/runs", registry().clone()).err().unwrap();
    assert!(matches!(unknown, StoreError::UnknownKind(_)));
}

#[test]
fn a_store_that_becomes_unwritable_fails_the_write_and_not_the_process() {
    let (directory, mut store) = with_run(1);
    // A file in place of the directory of checkpoints stops even root from writing.
    fs::remove_dir_all(directory.path().join("runs/demo/checkpoint")).unwrap();
    fs::write(directory.path().join("runs/demo/checkpoint"), b"").unwrap();
    let fault = store.write("demo", &checkpoint(2)).unwrap_err();
    assert!(
        matches!(&fault, StoreFault::Failed(why) if why.contains("runs/demo/checkpoint/000001-000002-")),
        "{fault:?}"
    );
    fs::remove_file(directory.path().join("runs/demo/checkpoint")).unwrap();
    store.write("demo", &checkpoint(2)).unwrap();
}

#[test]
fn a_second_coordinator_on_this_machine_learns_which_process_uses_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let spec = directory.path().to_str().unwrap();
    drop(open(&directory));
    let first = Lock::take(spec).unwrap();
    let refused = Lock::take(spec).unwrap_err();
    let own = format!("process {} on ", std::process::id());
    assert!(matches!(&refused, StoreError::InUse { who, .. } if who.starts_with(&own)), "{refused}");
    let mut standby = Lock::default();
    standby.take_if_free(spec);
    drop(first);
    standby.take_if_free(spec);
    assert!(Lock::take(spec).is_err(), "the standby has the store now");
}
