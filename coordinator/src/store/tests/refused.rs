//! Refused identities are in the store for every later leader.

use super::*;
use crate::{
    core::Stored,
    saved::{seal_conviction, seal_revocation},
};

const LIAR: &str = "0123456789ab";
const GUEST: &str = "ba9876543210";

fn conviction(what: &str) -> Write {
    Write::Convict { identity: LIAR.into(), bytes: seal_conviction(LIAR, what) }
}

fn revocation() -> Write {
    Write::Revoke { id: GUEST.into(), bytes: seal_revocation(GUEST, "0000000000aa") }
}

fn over(objects: &Arc<Faulty>) -> Store {
    Store::over(objects.clone(), "memory", registry().clone())
}

fn leading(objects: &Arc<Faulty>) -> Store {
    let mut store = over(objects);
    store.lead().unwrap();
    store
}

fn convicted(store: &Store) -> Vec<String> {
    store.load_refused().unwrap().0.convicted.iter().map(ToString::to_string).collect()
}

#[test]
fn the_next_leader_knows_revocations_even_if_damaged() {
    let (directory, mut store) = with_run(1);
    let stored = store.write("", &conviction("it lied")).unwrap();
    assert!(matches!(stored, Stored::Written(Some(name)) if name == format!("convicted/{LIAR}")));
    store.write("", &revocation()).unwrap();
    fs::remove_file(directory.path().join("convicted").join(LIAR)).unwrap();
    fs::create_dir(directory.path().join("convicted").join(LIAR)).unwrap();
    fs::write(directory.path().join("revoked").join(GUEST), b"").unwrap();
    fs::write(directory.path().join("revoked/notes"), b"").unwrap();
    let (refused, notices) = open(&directory).load_refused().unwrap();
    assert_eq!(refused.convicted.iter().map(|id| &**id).collect::<Vec<_>>(), [LIAR]);
    assert_eq!(refused.revoked.iter().map(ToString::to_string).collect::<Vec<_>>(), [GUEST]);
    assert_eq!(notices, ["revoked/notes was not written by evoxo and is not used"]);
    assert_eq!(open(&directory).load().unwrap().0.len(), 1, "the objects are not runs");
    // Another coordinator has found the same, and words it differently.
    assert!(open(&directory).lead().is_ok());
    let mut next = open(&directory);
    next.lead().unwrap();
    assert!(next.write("", &conviction("it lied again")).is_ok());
}

#[test]
fn revocations_are_never_dropped() {
    let (directory, mut store) = with_run(1);
    store.write("", &conviction("it lied")).unwrap();
    store.write("", &revocation()).unwrap();
    // These objects look old to a clock that is ten years ahead.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(10 * 366 * 24 * 3600);
    for name in [format!("convicted/{LIAR}"), format!("revoked/{GUEST}")] {
        let file = fs::File::options().write(true).open(directory.path().join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    let (refused, _) = store.load_refused().unwrap();
    assert_eq!((refused.convicted.len(), refused.revoked.len()), (1, 1));
    assert_eq!(names(&directory.path().join("revoked")), [GUEST]);
    assert_eq!(names(&directory.path().join("convicted")), [LIAR]);
}

#[test]
fn a_conviction_survives_a_lost_answer_and_reports_a_full_store() {
    for (fault, good) in
        [(Fault::WrittenButDenied, true), (Fault::WrittenButTaken, true), (Fault::Failed, false), (Fault::Taken, true)]
    {
        let objects = Arc::new(Faulty::default());
        let mut store = leading(&objects);
        let shown = format!("{fault:?}");
        objects.next_put(fault);
        let outcome = store.write("", &conviction("it lied"));
        match good {
            true => assert!(outcome.is_ok(), "{shown}: {outcome:?}"),
            false => assert!(matches!(outcome, Err(StoreFault::Failed(_))), "{shown}: {outcome:?}"),
        }
        assert_eq!(convicted(&over(&objects)).len(), usize::from(good), "{shown}");
        assert!(store.write("", &conviction("it lied")).is_ok(), "{shown}: the next attempt");
        assert_eq!(convicted(&over(&objects)), [LIAR]);
    }
}

/// The new leader loaded before the old one's conviction was written. The old one must not act on a conviction that nobody
/// else knows.
#[test]
fn a_superseded_leader_cannot_convict() {
    let objects = Arc::new(Faulty::default());
    let mut old = leading(&objects);
    let meanwhile = Arc::clone(&objects);
    objects.before_next_put(move || drop(leading(&meanwhile)));
    assert!(matches!(old.write("", &conviction("it lied")), Err(StoreFault::Superseded(_))));
    assert!(matches!(old.write("", &conviction("it lied")), Err(StoreFault::Superseded(_))));
}
