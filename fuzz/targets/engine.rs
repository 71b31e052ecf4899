//! Lines for `evoxo engine`, made of arbitrary bytes.

#![no_main]

/// The most bytes of a conversation.
const BYTES_MAX: usize = 2000;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [who, rest @ ..] = input else { return };
    let who = ["random", "filtered", "benchmark", "alpha-beta:1"][usize::from(who % 4)];
    let mut out = Vec::new();
    let said = evoxo::speak(evoxo_fuzz::registry(), who, &rest[..rest.len().min(BYTES_MAX)], &mut out);
    said.expect("nothing but the streams can fail");
    assert!(String::from_utf8(out).is_ok(), "it writes text");
});
