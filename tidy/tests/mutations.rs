//! The mutations that `cargo mutate` applies must fit the sources.

use evoxo_tidy::{assert_none, files, mutations::mutations};

#[test]
fn every_fragment_occurs_once() {
    let (list, sources) = (mutations(), files(".rs"));
    assert!(list.len() >= 400, "only {} mutations", list.len());
    assert_none(list.iter().filter_map(|mutation| mutation.place(&sources).err()));
}
