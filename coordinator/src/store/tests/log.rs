//! The audit log in the store.

use super::*;
use crate::store::{Log, LogPart};

fn lines(store: &Store, count: usize) -> Vec<String> {
    store.runtime.block_on(store.reader().newest_log(LogPart::Others, count, |_| true)).unwrap()
}

fn add(store: &Store, log: &mut Log, texts: &[&str]) -> Result<(), String> {
    store.runtime.block_on(log.add(LogPart::Others, texts.iter().map(|text| (*text).to_owned()).collect()))
}

#[test]
fn leaders_lines_are_read_in_order_without_damaged_ones() {
    let (directory, store) = with_run(1);
    assert!(lines(&store, 9).is_empty());
    let mut late = Log::new(store.reader(), 2);
    let mut log = Log::new(store.reader(), 1);
    add(&store, &mut late, &["d"]).unwrap();
    add(&store, &mut log, &["a", "b"]).unwrap();
    add(&store, &mut log, &["c"]).unwrap();
    assert_eq!(lines(&store, 9), ["a", "b", "c", "d"]);
    assert_eq!(lines(&store, 2), ["c", "d"], "only the needed batches are read");
    let batches = names(&directory.path().join("audit"));
    assert!(batches[0].starts_with("000001-000001-") && batches[2].starts_with("000002-000001-"), "{batches:?}");
    fs::write(directory.path().join("audit").join(&batches[1]), b"x").unwrap();
    assert_eq!(lines(&store, 9), ["a", "b", "d"]);
    assert_eq!(open(&directory).load().unwrap().0.len(), 1, "the log is not a run");
}

#[test]
fn a_batch_is_stored_once_after_a_lost_answer_or_a_failure() {
    for fault in [Fault::WrittenButDenied, Fault::WrittenButTaken, Fault::Failed] {
        let (shown, fails) = (format!("{fault:?}"), matches!(fault, Fault::Failed));
        let objects = Arc::new(Faulty::default());
        let store = Store::over(objects.clone(), "memory", registry().clone());
        let mut log = Log::new(store.reader(), 1);
        objects.next_put(fault);
        assert_eq!(add(&store, &mut log, &["a"]).is_err(), fails, "{shown}");
        if fails {
            add(&store, &mut log, &["a"]).unwrap();
        }
        add(&store, &mut log, &["b"]).unwrap();
        assert_eq!(lines(&store, 9), ["a", "b"], "{shown}");
    }
}

/// The newest 1,024 batches stay whatever the clock says, because it may be wrong.
#[test]
fn old_batches_are_removed_if_there_are_many() {
    let (directory, store) = with_run(1);
    let mut log = Log::new(store.reader(), 1);
    add(&store, &mut log, &["old"]).unwrap();
    let audit = directory.path().join("audit");
    let first = names(&audit).remove(0);
    let others = (2..=1025).map(|number| first.replacen("-000001-", &format!("-{number:06}-"), 1));
    for name in others {
        fs::copy(audit.join(&first), audit.join(name)).unwrap();
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(401 * 24 * 3600);
    for name in &names(&audit)[..3] {
        fs::File::options().write(true).open(audit.join(name)).unwrap().set_modified(old).unwrap();
    }
    add(&store, &mut Log::new(store.reader(), 2), &["newest"]).unwrap();
    let left = names(&audit);
    assert!(left.len() == 1025 && left[0].starts_with("000001-000002-"), "{} {}", left.len(), left[0]);
    assert_eq!(lines(&store, 1), ["newest"]);
}

/// Batches of operators stay, however many batches of others there are.
#[test]
fn batches_of_one_part_do_not_push_out_those_of_the_other() {
    let (directory, store) = with_run(1);
    let mut log = Log::new(store.reader(), 1);
    store.runtime.block_on(log.add(LogPart::Rights, vec!["order".into()])).unwrap();
    add(&store, &mut log, &["old"]).unwrap();
    let audit = directory.path().join("audit");
    let first = names(&audit).remove(0);
    for number in 2..=4200 {
        let name = first.replacen("-000001-", &format!("-{number:06}-"), 1);
        fs::copy(audit.join(&first), audit.join(name)).unwrap();
    }
    add(&store, &mut Log::new(store.reader(), 2), &["newest"]).unwrap();
    assert_eq!(names(&audit).len(), 4097, "batches older than the newest 4,096 are gone");
    let rights = store.runtime.block_on(store.reader().newest_log(LogPart::Rights, 9, |_| true));
    assert_eq!((rights.unwrap(), lines(&store, 1)), (vec!["order".to_owned()], vec!["newest".to_owned()]));
    assert_eq!(open(&directory).load().unwrap().0.len(), 1, "the objects are not runs");
}
