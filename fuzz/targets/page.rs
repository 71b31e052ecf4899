//! HTTP requests to the page, made of arbitrary bytes, from this host and from another one.

#![no_main]

use std::sync::{LazyLock, Mutex};

use evoxo_coordinator::fuzzing::Pages;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static PAGES: LazyLock<Mutex<Pages>> =
        LazyLock::new(|| Mutex::new(Pages::start(evoxo_fuzz::registry().clone(), evoxo_fuzz::configs::config(0))));
    let [who, rest @ ..] = input else { return };
    let answer = PAGES.lock().expect("nothing panics here").answer(who % 2 == 0, rest);
    let text = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || text.starts_with("HTTP/1."), "{text}");
    assert!(!text.starts_with("HTTP/1.1 500"), "{text}");
});
