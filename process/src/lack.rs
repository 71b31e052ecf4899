//! Ends a process with a sentence if the system denies it a thread, a file or memory. A panic would end only the thread in
//! question, and whatever waits for that thread would wait forever.

use std::{
    io::{Write as _, stderr},
    panic::{PanicHookInfo, set_hook, take_hook},
    process::exit,
};

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

/// SIGXFSZ on Linux and macOS: a file would exceed the size that `ulimit -f` allows.
const FILE_TOO_LARGE: i32 = 25;

/// The system's messages, and advice on what to allow more of.
const REFUSALS: [(&[&str], &str); 2] = [
    (
        &["Resource temporarily unavailable", "Cannot allocate memory", "(os error 12)"],
        "the system gives this process no more threads or memory: allow more (`ulimit -u`, `ulimit -v`), or compute with fewer workers",
    ),
    (
        &["Too many open files", "(os error 24)"],
        "the system lets this process open no more files: allow more (`ulimit -n`), or compute with fewer workers",
    ),
];

/// From now on, a panic because the system denies something ends the process with status 1 and a sentence. A write beyond
/// `ulimit -f` becomes an error, as on a full disk. Without this, its signal would end the process silently.
pub(crate) fn end_on_lack() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if let Some(sentence) = sentence(&text(panic)) {
            // Print no backtrace, because that needs memory.
            drop(stderr().write_all(format!("error: {sentence}\n").as_bytes()));
            exit(1);
        }
        before(panic);
    }));
    // The handler stays after the runtime has ended. If the system has no room for the runtime, something else fails with a
    // sentence soon.
    if let Ok(runtime) = Builder::new_current_thread().enable_io().build() {
        let _inside = runtime.enter();
        drop(signal(SignalKind::from_raw(FILE_TOO_LARGE)));
    }
}

fn text(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let plain =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    plain.unwrap_or_default().to_owned()
}

/// The sentence for a panic with this text; `None` if the panic has another cause.
fn sentence(text: &str) -> Option<&'static str> {
    let refused = |(said, _): &&(&[&str], &'static str)| said.iter().any(|said| text.contains(said));
    REFUSALS.iter().find(refused).map(|(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_system_limits_count_as_a_lack() {
        for (text, wanted) in [
            ("OS can't spawn worker thread: Resource temporarily unavailable (os error 11)", "threads or memory"),
            (
                "a thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
                "threads or memory",
            ),
            ("Os { code: 24, kind: Uncategorized, message: \"Too many open files\" }", "files"),
        ] {
            assert!(sentence(text).is_some_and(|said| said.contains(wanted)), "{text}");
        }
        assert_eq!(sentence("index out of bounds: the len is 3 but the index is 11"), None);
    }
}
