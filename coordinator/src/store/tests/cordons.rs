//! The list of cordons is in the store for every later leader.

use super::*;
use crate::saved::seal_cordons;

fn cordon(host: &str) -> v1::Cordon {
    v1::Cordon { host: host.into(), by: "0123456789ab".into(), since: 7, ..v1::Cordon::default() }
}

fn list(number: u64, hosts: &[&str]) -> Write {
    let cordons: Vec<v1::Cordon> = hosts.iter().map(|host| cordon(host)).collect();
    Write::Cordons { number, bytes: seal_cordons(&cordons) }
}

fn hosts(store: &Store) -> Vec<String> {
    store.load_cordons().unwrap().0.into_iter().map(|cordon| cordon.host).collect()
}

/// The newest list of the highest epoch counts; old ones are removed.
#[test]
fn the_next_leader_knows_the_newest_list() {
    let (directory, mut store) = with_run(1);
    assert_eq!(hosts(&store), Vec::<String>::new());
    for number in 1..=9 {
        store.write("", &list(number, &["lab1", "lab2"][..1 + number as usize % 2])).unwrap();
    }
    let mut next = open(&directory);
    next.lead().unwrap();
    assert_eq!(hosts(&next), ["lab1", "lab2"]);
    next.write("", &list(1, &["lab3"])).unwrap();
    assert_eq!(hosts(&open(&directory)), ["lab3"]);
    assert_eq!(fs::read_dir(directory.path().join("cordons")).unwrap().count(), 4);
    assert!(matches!(store.write("", &list(10, &["late"])), Err(StoreFault::Superseded(_))));
    assert_eq!(hosts(&open(&directory)), ["lab3"]);
    assert_eq!(open(&directory).load().unwrap().0.len(), 1, "the lists are not runs");
}

/// A damaged list is named, and the one before it counts.
#[test]
fn a_damaged_list_is_left_out_and_said() {
    let (directory, mut store) = with_run(1);
    store.write("", &list(1, &["lab1"])).unwrap();
    store.write("", &list(2, &["lab1", "lab2"])).unwrap();
    let folder = directory.path().join("cordons");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    fs::write(folder.join(&names[1]), b"evoxo").unwrap();
    fs::write(folder.join("notes"), b"mine").unwrap();
    let (cordons, notices) = open(&directory).load_cordons().unwrap();
    assert_eq!((cordons, notices.len()), (vec![cordon("lab1")], 1));
    assert!(notices[0].contains("cordons/000001-000002-") && notices[0].contains("an older list"), "{notices:?}");
}
