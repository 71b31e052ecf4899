//! Tests of the store on a real directory.

use evoxo_common::config::Config;
use evoxo_proto::v1::RunState;

use super::*;
use crate::core::{seal_checkpoint, seal_order};

fn order(number: u64) -> Write {
    let config = Config::parse("t", "experiment = \"dispatch\"\nreplicas = 1", &[]).unwrap();
    Write::Order { number, bytes: seal_order(&config, RunState::Running, number) }
}

fn checkpoint(number: u64, mark: u8) -> Write {
    let config = Config::parse("t", "experiment = \"dispatch\"\nreplicas = 1", &[]).unwrap();
    let signature = evoxo_common::digest::Digest([mark; 32]);
    Write::Checkpoint { number, bytes: seal_checkpoint(&config, signature, []) }
}

fn open(directory: &tempfile::TempDir) -> Store {
    Store::open(directory.path().to_str().unwrap()).unwrap()
}

fn file(directory: &tempfile::TempDir, write: &Write) -> std::path::PathBuf {
    directory.path().join("runs/r").join(object_name(write).unwrap())
}

fn newest(directory: &tempfile::TempDir) -> (SavedRun, u8) {
    let (mut runs, _) = open(directory).load().unwrap();
    let run = runs.pop().unwrap();
    let mark = run.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.signature[0]);
    (run, mark)
}

#[test]
fn what_is_written_is_loaded_and_damage_falls_back_to_the_newest_good_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    for write in [order(1), checkpoint(1, 1), checkpoint(2, 2), checkpoint(3, 3)] {
        store.write("r", &write).unwrap();
        store.write("r", &write).expect("the same bytes again are one write");
    }
    let (run, mark) = newest(&directory);
    assert_eq!((run.order_number, run.checkpoint_number, mark, run.notices.len()), (1, 3, 3, 0));

    let bytes = std::fs::read(file(&directory, &checkpoint(3, 3))).unwrap();
    std::fs::write(file(&directory, &checkpoint(3, 3)), &bytes[..bytes.len() / 2]).unwrap();
    let (run, mark) = newest(&directory);
    assert_eq!((run.checkpoint_number, mark), (3, 2));
    assert!(run.notices[0].contains("checkpoint/000003-") && run.notices[0].contains("truncated"), "{:?}", run.notices);

    let mut bytes = std::fs::read(file(&directory, &checkpoint(2, 2))).unwrap();
    bytes[30] ^= 4;
    std::fs::write(file(&directory, &checkpoint(2, 2)), &bytes).unwrap();
    let (run, mark) = newest(&directory);
    assert_eq!((mark, run.notices.len()), (1, 2));
    assert!(run.notices[1].contains("has changed since it was written"), "{:?}", run.notices);

    std::fs::write(file(&directory, &checkpoint(1, 1)), "something else").unwrap();
    assert_eq!(newest(&directory).1, 0, "no checkpoint is good: the run begins anew");
}

#[test]
fn foreign_files_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    open(&directory).write("r", &order(1)).unwrap();
    std::fs::create_dir_all(directory.path().join("runs/My Run")).unwrap();
    std::fs::write(directory.path().join("runs/My Run/x"), "mine").unwrap();
    std::fs::write(directory.path().join("runs/r/order/notes.txt"), "mine").unwrap();
    let (runs, notices) = open(&directory).load().unwrap();
    assert_eq!(runs.len(), 1);
    assert!(notices[0].contains("My Run is not a run"), "{notices:?}");
    assert!(directory.path().join("runs/r/order/notes.txt").exists());
}

#[test]
fn a_higher_epoch_fences_the_old_leader() {
    let directory = tempfile::tempdir().unwrap();
    let (mut old, mut new) = (open(&directory), open(&directory));
    old.write("r", &order(1)).unwrap();
    new.take_over("r").unwrap();
    assert!(matches!(old.write("r", &checkpoint(1, 1)), Err(StoreFault::Fenced(why)) if why.contains("epoch 2")));
    new.write("r", &checkpoint(1, 2)).unwrap();
    assert_eq!(newest(&directory).1, 2);
}

#[test]
fn old_checkpoints_go_and_so_does_a_deleted_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    store.write("r", &order(1)).unwrap();
    for number in 60..70 {
        store.write("r", &checkpoint(number, number as u8)).unwrap();
    }
    let kept = |path: &str| std::fs::read_dir(directory.path().join(path)).map_or(0, Iterator::count);
    assert_eq!(kept("runs/r/checkpoint"), CHECKPOINTS_KEPT + 1, "the newest, and number 64");
    store.write("r", &Write::DropCheckpoints).unwrap();
    assert_eq!(kept("runs/r/checkpoint"), 0);
    store.write("r", &Write::Delete).unwrap();
    assert!(open(&directory).load().unwrap().0.is_empty());
}

#[test]
fn an_unusable_place_is_told_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "").unwrap();
    let why = Store::open(path.to_str().unwrap()).err().unwrap().to_string();
    assert!(why.contains("file cannot be used") && why.contains("--store"), "{why}");
    let why = Store::open("s3://bucket/x").err().map(|error| error.to_string());
    assert!(cfg!(feature = "aws") || why.unwrap().contains("--features aws"));
}
