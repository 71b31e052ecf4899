//! Power failures during an order, whose bytes and names are synced at the same time: each of its two objects may be missing,
//! be whole, or have its name and not its bytes.

use super::*;

/// What a power failure leaves of an object.
const LEFT: [&str; 5] = ["nothing", "no bytes", "half of the bytes", "zeros", "everything"];

fn leave(path: &Path, left: &str) {
    let bytes = fs::read(path).unwrap();
    match left {
        "nothing" => fs::remove_file(path).unwrap(),
        "no bytes" => fs::write(path, b"").unwrap(),
        "half of the bytes" => fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
        "zeros" => fs::write(path, vec![0; bytes.len()]).unwrap(),
        _ => {}
    }
}

/// The power fails during the newest order of `demo`, and the next coordinator loads the store: its store, the order in
/// force, and the messages.
fn after_failure(directory: &TempDir, order: &str, copy: &str) -> (Store, Option<u64>, Vec<String>) {
    for (part, left) in [("order", order), ("order-copy", copy)] {
        let part = directory.path().join("runs/demo").join(part);
        leave(&part.join(names(&part).pop().unwrap()), left);
    }
    let mut store = open(directory);
    store.lead().unwrap();
    let (mut runs, mut notices) = store.load().unwrap();
    notices.extend(runs.iter_mut().flat_map(|run| std::mem::take(&mut run.notices)));
    let in_force = runs.first().map(|run| run.order.rounds_done);
    (store, in_force, notices)
}

fn in_force(directory: &TempDir) -> Vec<u64> {
    open(directory).load().unwrap().0.iter().map(|run| run.order.rounds_done).collect()
}

#[test]
fn an_interrupted_submission_does_not_block_its_name() {
    for (order_left, copy_left) in LEFT.iter().flat_map(|order| LEFT.map(|copy| (*order, copy))) {
        let what = format!("order: {order_left}, copy: {copy_left}");
        let (directory, _) = with_run(0);
        let (mut store, found, notices) = after_failure(&directory, order_left, copy_left);
        let is_stored = order_left == "everything" || copy_left == "everything";
        assert_eq!(found, is_stored.then_some(1), "{what}");
        let says = |part: &str| notices.iter().any(|notice| notice.contains(part));
        if !is_stored && (order_left, copy_left) != ("nothing", "nothing") {
            assert!(says("run demo has no valid order and nothing else") && says("submit it again"), "{notices:?}");
        }
        store.write("demo", &order(7)).unwrap();
        store.write("demo", &checkpoint(1)).unwrap();
        assert_eq!(in_force(&directory), [7], "{what}");
    }
}

#[test]
fn an_interrupted_order_leaves_the_one_before_it_in_force() {
    for (order_left, copy_left) in LEFT.iter().flat_map(|order| LEFT.map(|copy| (*order, copy))) {
        let what = format!("order: {order_left}, copy: {copy_left}");
        let (directory, mut store) = with_run(1);
        store.write("demo", &order(2)).unwrap();
        let (mut store, found, notices) = after_failure(&directory, order_left, copy_left);
        let is_stored = order_left == "everything" || copy_left == "everything";
        assert_eq!(found, Some(if is_stored { 2 } else { 1 }), "{what}");
        if !is_stored && (order_left, copy_left) != ("nothing", "nothing") {
            assert!(notices.iter().any(|it| it.contains("so order 1 is in force")), "{what}: {notices:?}");
        }
        store.write("demo", &order(7)).unwrap();
        assert_eq!(in_force(&directory), [7], "{what}");
    }
}
