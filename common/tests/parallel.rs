//! Several threads work on items. The number of threads belongs to the whole process, so this test has one of its own. What it
//! waits for comes whichever thread is first, so it waits at each of many items and not at one.

use std::{
    sync::Mutex,
    thread::{self, ThreadId},
    time::Duration,
};

use evoxo_common::parallel::{map, set_threads};

/// The threads that work on the items of a call.
#[derive(Default)]
struct Met {
    /// Who worked on each item.
    who: Vec<ThreadId>,
    now: usize,
    most: usize,
}

/// Works on an item. While fewer than four threads have met at it, an item takes a millisecond, so that others come.
fn work(met: &Mutex<Met>) {
    let locked = || met.lock().expect("nobody panics");
    let few = {
        let mut met = locked();
        met.who.push(thread::current().id());
        met.now += 1;
        met.most = met.most.max(met.now);
        met.most < 4
    };
    if few {
        thread::sleep(Duration::from_millis(1));
    }
    locked().now -= 1;
}

#[test]
fn threads_share_the_items_and_keep_their_order() {
    const ITEMS: u64 = 20_000;
    let items: Vec<u64> = (0..ITEMS).collect();
    let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
    let met = Mutex::default();
    let squared = |met: &Mutex<Met>, item: &u64| {
        work(met);
        item * item
    };
    let few = &items[..100];
    assert_eq!(map(few, |item| squared(&met, item)), squares[..100]);
    let alone = met.into_inner().expect("nobody panics").who;
    assert_eq!(alone, [thread::current().id(); 100], "one thread until more are allowed");
    set_threads(4);
    let met = Mutex::default();
    assert_eq!(map(&items, |item| squared(&met, item)), squares);
    assert_eq!(met.into_inner().expect("nobody panics").most, 4);
    // Calls in calls: the last long one gets the threads of those that have ended, and the place of a caller that waits for it.
    let met = Mutex::default();
    let nested = map(&[1, items.len()], |count| {
        let inner = &items[..*count];
        if *count == 1 { map(inner, |item| item * item) } else { map(inner, |item| squared(&met, item)) }
    });
    assert_eq!(nested, [squares[..1].to_vec(), squares]);
    assert_eq!(met.into_inner().expect("nobody panics").most, 4);
    assert_eq!(map(&[0_u8; 0], |_| 1), [0_u8; 0]);
}
