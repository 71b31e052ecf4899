//! Damages every object of a small store in every way. The run continues from where it was and ends with the digest of one
//! thread, and the newest order stays in force.

use object_store::{ObjectStore, ObjectStoreExt as _, memory::InMemory};

use evoxo_common::{
    experiment::{Replica, ResultDigest},
    local,
};
use evoxo_proto::v1::RunState;

use super::*;
use crate::{
    core::Mended,
    names::copy_name,
    prepared::Prepared,
    saved::{
        SavedRun, origin_of, seal_checkpoint, seal_conviction, seal_doubt, seal_order, seal_replica, seal_revocation,
    },
    store::index::Thresholds,
};

const LIAR: &str = "0123456789ab";
const GUEST: &str = "ba9876543210";
/// An index is written as soon as a replica has finished.
const INDEXED: Thresholds = Thresholds { replicas: 1, bytes: u64::MAX };
/// The runs of the sample, and their seeds.
const RUNS: [(&str, u64); 3] = [("demo", 1), ("done", 1), ("other", 2)];

fn prepared(seed: u64) -> Arc<Prepared> {
    let text = format!(
        "experiment = \"dispatch\"\nseed = {seed}\nreplicas = 2\n[settings]\nrounds = 6\ntasks = 2\npayload_bytes = 8\nreply_bytes = 8\n"
    );
    Prepared::read(registry(), "test", &text).unwrap()
}

fn ordered(prepared: &Prepared, wanted: RunState) -> Write {
    let order = v1::Order { config: prepared.toml.clone(), wanted: wanted.into(), ..v1::Order::default() };
    Write::Order { bytes: seal_order(&order) }
}

/// A coordinator that takes over.
pub(super) fn leading(directory: &Path) -> Store {
    let (mut store, trouble) = Store::open(directory.to_str().unwrap(), registry().clone()).unwrap();
    assert_eq!(trouble, None);
    store.thresholds = INDEXED;
    store.lead().unwrap();
    store
}

pub(super) fn loaded(store: &mut Store, run: &str) -> SavedRun {
    let (runs, _) = store.load().unwrap();
    runs.into_iter().find(|saved| saved.name == run).unwrap_or_else(|| panic!("the store has no run {run}"))
}

/// How many rounds of each replica the store has.
fn rounds_of(saved: &SavedRun) -> Vec<u64> {
    let unfinished = saved.checkpoint.iter().flat_map(|checkpoint| &checkpoint.replicas);
    let mut rounds = vec![0; 2];
    for replica in unfinished.chain(saved.finished.iter().map(|it| &it.replica)) {
        rounds[replica.index as usize] = replica.rounds;
    }
    rounds
}

/// Loads a run and computes so many rounds of each replica, with a checkpoint after each.
fn go_on(store: &mut Store, run: &str, rounds: [u64; 2]) {
    loaded(store, run);
    let saved = store.load_run(run).unwrap().unwrap();
    let prepared = saved.prepared.unwrap();
    let origin = origin_of(registry(), &prepared);
    let states = saved.checkpoint.map(|checkpoint| checkpoint.states).unwrap_or_default();
    let mut number = saved.checkpoint_number;
    let is_finished = |index: u32| saved.finished.iter().any(|it| it.replica.index == index);
    let mut replicas: Vec<Replica> = local::start(&prepared.config).filter(|it| !is_finished(it.index())).collect();
    for replica in &mut replicas {
        if let Some(state) = states.iter().find(|state| state.replica == replica.index()) {
            *replica = Replica::restore(&prepared.config, state).unwrap();
        }
    }
    for round in 0..rounds[0].max(rounds[1]) {
        for replica in replicas.iter_mut().filter(|it| round < rounds[it.index() as usize]) {
            local::step(replica).unwrap();
            if replica.is_finished() {
                let bytes = seal_replica(&origin, replica.save());
                store.write(run, &Write::Finished { bytes }).unwrap();
            }
        }
        replicas.retain(|replica| !replica.is_finished());
        number += 1;
        let states = replicas.iter().map(Replica::save).collect();
        store.write(run, &Write::Checkpoint { number, bytes: seal_checkpoint(&origin, states), keep: 0 }).unwrap();
    }
}

/// Rounds of each replica of `demo` in the sample. Only the newest checkpoint has the last round of the second replica.
const ROUNDS: [u64; 2] = [6, 5];

/// A store of two epochs. One replica of `demo` is finished, and the newest order pauses the run; `done` is finished.
fn sample(directory: &Path) {
    let mut store = leading(directory);
    for (run, seed) in RUNS {
        store.write(run, &ordered(&prepared(seed), RunState::Running)).unwrap();
        go_on(&mut store, run, [2, 1]);
    }
    // The next leader removes the record.
    let record = fs::read(directory.join("leader/000001")).unwrap();
    let mut store = leading(directory);
    for (run, _) in RUNS {
        go_on(&mut store, run, [4, 4]);
        let poison = Write::Poison { hash: Digest::of(run.as_bytes()), bytes: Bytes::from_static(b"x") };
        store.write(run, &poison).unwrap();
        let doubt = v1::Doubt { arm: run.into(), ..v1::Doubt::default() };
        store.write(run, &Write::Doubt { number: 1, bytes: seal_doubt(&doubt) }).unwrap();
    }
    go_on(&mut store, "done", [0, 1]);
    store.write("done", &Write::DropCheckpoints).unwrap();
    store.write("demo", &ordered(&prepared(1), RunState::Paused)).unwrap();
    store.write("done", &ordered(&prepared(1), RunState::Paused)).unwrap();
    store.write("other", &ordered(&prepared(2), RunState::Cancelled)).unwrap();
    store.write("", &Write::Convict { identity: LIAR.into(), bytes: seal_conviction(LIAR, "it lied") }).unwrap();
    store.write("", &Write::Revoke { id: GUEST.into(), bytes: seal_revocation(GUEST, "0000000000aa") }).unwrap();
    fs::write(directory.join("record"), record).unwrap();
}

fn files(below: &Path, into: &mut Vec<std::path::PathBuf>) {
    for name in names(below) {
        let path = below.join(name);
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

fn copy(from: &Path, to: &Path) {
    let mut found = Vec::new();
    files(from, &mut found);
    for path in found {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&path, target).unwrap();
    }
}

/// Another object of the same kind: from the other run, or from an earlier time of the same run.
fn another(path: &Path, of_other_run: bool) -> Option<Vec<u8>> {
    let text = path.to_str().unwrap();
    let directory = path.parent().unwrap();
    if text.contains("/leader/") {
        return fs::read(directory.parent().unwrap().join("record")).ok();
    }
    let foreign = directory.to_str().unwrap().replace("demo", "other").replace("done", "other");
    let directory = if of_other_run { foreign.into() } else { directory.to_owned() };
    let name = names(&directory).into_iter().find(|name| of_other_run || directory.join(name) != path)?;
    fs::read(directory.join(name)).ok()
}

pub(super) fn damage(path: &Path, how: &str) -> bool {
    let mut bytes = fs::read(path).unwrap();
    match how {
        "deleted" => fs::remove_file(path).unwrap(),
        "emptied" => fs::write(path, b"").unwrap(),
        "halved" => fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
        "flipped" => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            fs::write(path, bytes).unwrap();
        }
        "directory" => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
        _ => {
            let Some(others) = another(path, how == "of another run") else { return false };
            fs::write(path, others).unwrap();
        }
    }
    true
}

/// A store that is taken over again and again.
enum Place {
    Directory(TempDir),
    Bucket(Arc<dyn ObjectStore>),
}

impl Place {
    fn lead(&self) -> Store {
        match self {
            Self::Directory(directory) => leading(directory.path()),
            Self::Bucket(objects) => {
                let mut store = Store::over(Arc::clone(objects), "a bucket", registry().clone());
                store.thresholds = INDEXED;
                store.lead().unwrap();
                store
            }
        }
    }

    /// The same objects in a bucket. Where the directory has a subdirectory, the bucket has an object below that name.
    fn bucket(directory: &Path) -> Self {
        fn add(root: &Path, below: &Path, objects: &InMemory) {
            for path in names(below).into_iter().map(|name| below.join(name)) {
                if path.is_dir() {
                    let is_object = |name: &std::ffi::OsStr| name.to_string_lossy().contains(char::is_numeric);
                    if path.file_name().is_some_and(is_object) {
                        fs::write(path.join("foreign"), b"x").unwrap();
                    }
                    add(root, &path, objects);
                    continue;
                }
                let name = object_store::path::Path::from(path.strip_prefix(root).unwrap().to_str().unwrap());
                let put = objects.put(&name, fs::read(&path).unwrap().into());
                tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(put).unwrap();
            }
        }
        let objects = InMemory::new();
        add(directory, directory, &objects);
        Self::Bucket(Arc::new(objects))
    }
}

/// The names directly in one directory of a run.
fn names_in(store: &Store, run: &str, directory: &str) -> Vec<String> {
    let (objects, inner) = store.list(&format!("runs/{run}/{directory}")).unwrap();
    objects.into_iter().map(|(name, _)| name).chain(inner).collect()
}

#[test]
fn no_damaged_object_stops_or_changes_a_run() {
    every_object_in_every_way(Place::Directory);
}

#[test]
fn no_damaged_object_of_a_bucket_stops_or_changes_a_run() {
    every_object_in_every_way(|directory| Place::bucket(directory.path()));
}

fn every_object_in_every_way(place: impl Fn(TempDir) -> Place) {
    let whole = tempfile::tempdir().unwrap();
    sample(whole.path());
    let right = ResultDigest::of_run(local::run(&prepared(1).config).unwrap().iter().map(Replica::digest));
    let mut objects = Vec::new();
    files(whole.path(), &mut objects);
    objects.retain(|path| !path.ends_with("record") && !path.starts_with(whole.path().join("runs/other")));
    assert!(objects.len() > 15, "{objects:?}");
    let ways = ["deleted", "emptied", "halved", "flipped", "directory", "of another run", "of another epoch"];
    for (object, how) in objects.iter().flat_map(|object| ways.map(|how| (object, how))) {
        let directory = tempfile::tempdir().unwrap();
        copy(whole.path(), directory.path());
        let name = object.strip_prefix(whole.path()).unwrap();
        if !damage(&directory.path().join(name), how) {
            continue;
        }
        let case = format!("{} {how}", name.display());
        let place = place(directory);
        let mut store = place.lead();
        assert!(store.epoch().unwrap().number > 2, "{case}: its objects would be taken for those of an earlier run");
        let (refused, _) = store.load_refused().unwrap();
        let count = refused.convicted.len() + refused.revoked.len();
        assert_eq!(
            count,
            2 - usize::from(how == "deleted" && !name.starts_with("runs") && !name.starts_with("leader")),
            "{case}"
        );
        for (run, before) in [("demo", ROUNDS), ("done", [6, 6])] {
            let saved = loaded(&mut store, run);
            assert_eq!(
                (saved.order.wanted(), saved.order_number),
                (RunState::Paused, 2),
                "{case}: {:?}",
                saved.notices
            );
            assert_eq!(rounds_of(&saved), before, "{case}: the remaining rounds of {run}");
            if let Some(checkpoint) = saved.checkpoint.filter(|_| how != "directory") {
                let copies = names_in(&store, run, "checkpoint-copy");
                assert_eq!(
                    copies,
                    [checkpoint.object.unwrap().split_once('/').unwrap().1],
                    "{case}: only the newest has it"
                );
                let mended = saved.notices.iter().any(|notice| notice.contains("was rewritten from"));
                assert!(mended || !checkpoint.from_copy, "{case}: {:?}", saved.notices);
            }
            // The next coordinator finds nothing to mend, and everything computed since.
            go_on(&mut store, run, [6, 6]);
            let saved = loaded(&mut place.lead(), run);
            let told = |notice: &String| notice.contains("order") || notice.contains("finished");
            assert!(how == "directory" || !saved.notices.iter().any(told), "{case}: {:?}", saved.notices);
            let count = |of: &&str| names_in(&store, run, of).len();
            let counts: Vec<usize> = ["order", "order-copy", "finished", "finished-copy"].iter().map(count).collect();
            assert_eq!(counts, [2; 4], "{case}: {run}");
            let mut ends: Vec<_> = saved.finished.iter().map(|it| (it.replica.index, it.replica.digest)).collect();
            ends.sort_unstable_by_key(|(index, _)| *index);
            assert_eq!(ResultDigest::of_run(ends.into_iter().map(|(_, digest)| digest)), right, "{case}: {run}");
            store = place.lead();
            // Damage that keeps the length is found by the first reader, and mended.
            store.load().unwrap();
            for it in saved.finished.iter().filter(|_| how != "directory") {
                let mut mend = || match store.write(run, &Write::Mend { object: it.place.object.to_string() }) {
                    Ok(Stored::Mended(mended)) => mended,
                    other => panic!("{case}: {other:?}"),
                };
                assert!(matches!(mend(), Mended::Good | Mended::Again(_)), "{case}");
                assert_eq!(mend(), Mended::Good, "{case}");
            }
        }
    }
}

/// Damage that happens while a coordinator runs is found when the replica is requested.
#[test]
fn a_finished_replica_is_read_from_its_copy() {
    for how in ["deleted", "emptied", "halved", "flipped", "directory"] {
        let directory = tempfile::tempdir().unwrap();
        sample(directory.path());
        let mut store = leading(directory.path());
        let place = loaded(&mut store, "done").finished.remove(1).place;
        let good = store.read_finished("done", &place).unwrap();
        assert!(damage(&directory.path().join("runs/done").join(&*place.object), how));
        assert_eq!(store.read_finished("done", &place), Ok(good), "{how}");
        // Now neither object is good, or there is no copy.
        let copy = copy_name(&place.object).unwrap();
        assert!(damage(&directory.path().join("runs/done").join(&copy), how));
        let why = store.read_finished("done", &place).unwrap_err();
        assert!(why.contains(&*place.object) && why.contains(&copy), "{how}: {why}");
    }
}

/// The store of a build that wrote no copies has them after the next start, and no damage is reported.
#[test]
fn a_missing_copy_of_a_finished_replica_is_made_at_a_start() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path());
    let copies = directory.path().join("runs/done/finished-copy");
    let before = names(&copies);
    fs::remove_dir_all(&copies).unwrap();
    assert_eq!(loaded(&mut leading(directory.path()), "done").notices, [""; 0]);
    assert_eq!((names(&copies), before.len()), (before, 2));
}

/// If the replica's state were in neither object, a crash would lose the whole replica. Its object is written before the
/// checkpoint, and a retry of the core makes no second one.
#[test]
fn no_checkpoint_omits_an_unwritten_finished_replica() {
    for fails in ["the first", "the copy"] {
        let objects = Arc::new(Faulty::default());
        let mut store = Store::over(objects.clone(), "memory", registry().clone());
        store.write("demo", &order(1)).unwrap();
        let fail = || {
            let (first, second) = (Arc::clone(&objects), Arc::clone(&objects));
            match fails {
                "the first" => first.next_put(Fault::Failed),
                // After the first of the two objects.
                _ => second.before_next_put(move || {
                    let objects = Arc::clone(&first);
                    first.before_next_put(move || objects.next_put(Fault::Failed));
                }),
            }
        };
        fail();
        assert!(matches!(store.write("demo", &finished(3)), Err(StoreFault::Failed(_))), "{fails}");
        fail();
        let refused = store.write("demo", &checkpoint(1));
        assert!(matches!(&refused, Err(StoreFault::Failed(why)) if why.contains("/finished")), "{refused:?}");
        store.write("demo", &checkpoint(1)).unwrap();
        assert_eq!(open_to(&objects).finished.len(), 1, "{fails}");
        let outcomes = store.write_all_finished("demo", &[finished(4), finished(3)]);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(names_in(&store, "demo", "finished").len(), 2, "{fails}");
        assert_eq!((open_to(&objects).finished.len(), open_to(&objects).superseded.len()), (2, 0), "{fails}");
    }
}

/// Packs that failed one after the other are all written before the next checkpoint, and one that fails for good keeps no other
/// from being written.
#[test]
fn no_checkpoint_omits_one_of_several_failed_packs() {
    let objects = Arc::new(Faulty::default());
    let mut store = Store::over(objects.clone(), "memory", registry().clone());
    store.write("demo", &order(1)).unwrap();
    objects.next_put(Fault::Failed);
    assert!(store.write("demo", &finished(3)).is_err());
    // The first is tried again and fails, and the second is written.
    objects.next_put(Fault::Failed);
    let outcomes = store.write_all_finished("demo", &[finished(4)]);
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    objects.next_put(Fault::Failed);
    assert!(store.write("demo", &checkpoint(1)).is_err(), "the first is in neither object");
    store.write("demo", &checkpoint(1)).unwrap();
    assert_eq!((open_to(&objects).finished.len(), open_to(&objects).superseded.len()), (2, 0));
    // The core's retry makes no second object.
    assert!(store.write("demo", &finished(3)).is_ok());
    assert_eq!(names_in(&store, "demo", "finished").len(), 2);
}

/// The run as a start finds it.
fn open_to(objects: &Arc<Faulty>) -> SavedRun {
    Store::over(objects.clone(), "memory", registry().clone()).load().unwrap().0.remove(0)
}

/// The order before the newest one has the opposite effect. If it came into force again, that must not go unnoticed.
#[test]
fn an_order_lost_with_its_copy_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path());
    for of in ["order", "order-copy"] {
        let below = directory.path().join("runs/demo").join(of);
        fs::write(below.join(names(&below).pop().unwrap()), b"evoxo").unwrap();
    }
    let saved = loaded(&mut leading(directory.path()), "demo");
    assert_eq!((saved.order.wanted(), saved.order_number), (RunState::Running, 2), "its number is not used again");
    let told = "order 2 of run demo and its copy are lost, so order 1 is in force, which wants RUN_STATE_RUNNING";
    assert!(saved.notices.iter().any(|notice| notice.contains(told)), "{:?}", saved.notices);
}

/// The disk is full after the first of the two objects.
#[test]
fn an_order_is_valid_before_its_copy_is_written() {
    let (directory, mut store) = with_run(1);
    let copies = directory.path().join("runs/demo/order-copy");
    fs::remove_dir_all(&copies).unwrap();
    fs::write(&copies, b"").unwrap();
    store.write("demo", &order(2)).unwrap();
    store.write("demo", &checkpoint(2)).unwrap();
    fs::remove_file(&copies).unwrap();
    assert_eq!(open(&directory).load().unwrap().0[0].order_number, 2);
    store.write("demo", &checkpoint(3)).unwrap();
    let found = names(&copies);
    assert!(found.len() == 1 && found[0].starts_with("000001-000002-"), "{found:?}");
    // The copy of the first order is missing, as if its coordinator had been killed.
    let mut next = leading(directory.path());
    next.load().unwrap();
    assert_eq!(names(&copies).len(), 2);
}

/// A coordinator is suspended between the two objects of an order. Meanwhile the next one deletes the run.
#[test]
fn a_late_copy_does_not_bring_a_deleted_run_back() {
    let objects = Arc::new(Faulty::default());
    let mut old = Store::over(objects.clone(), "memory", registry().clone());
    old.lead().unwrap();
    let (first, second) = (Arc::clone(&objects), Arc::clone(&objects));
    objects.before_next_put(move || {
        first.before_next_put(move || {
            let mut new = Store::over(second, "memory", registry().clone());
            new.lead().unwrap();
            assert_eq!(new.load().unwrap().0.len(), 1);
            new.write("demo", &Write::Delete).unwrap();
        });
    });
    old.write("demo", &order(1)).unwrap();
    assert!(old.list("runs").unwrap().1.is_empty(), "no object of the run is left");
}

#[test]
fn names_taken_by_foreign_objects_are_skipped() {
    let (directory, mut store) = with_run(1);
    for name in ["leader/000002", "leader/000003", "leader/000099", "runs/demo/order/000001-000002"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    store.write("demo", &order(2)).unwrap();
    let cluster = store.cluster();
    let mut next = leading(directory.path());
    assert_eq!((next.epoch().unwrap().number, next.cluster()), (4, cluster), "the cluster is the same");
    let saved = loaded(&mut next, "demo");
    assert_eq!((saved.order_number, saved.order.rounds_done), (3, 2));
    assert!(matches!(store.write("demo", &order(4)), Err(StoreFault::Superseded(_))));
    let file = tempfile::tempdir().unwrap();
    fs::write(file.path().join("leader"), b"").unwrap();
    let error = Store::open(file.path().to_str().unwrap(), registry().clone()).err().unwrap().to_string();
    assert!(error.starts_with("leader in the store") && error.contains("move it away"), "{error}");
}
