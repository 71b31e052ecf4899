//! The committed `src/KIND/messages.rs` is what `src/KIND/KIND.proto` says, and the module of a fixed workload what its text says.
//! On a mismatch the test writes the right file and fails once: look at the difference and commit it.

use std::{fs, path::Path};

#[allow(clippy::disallowed_methods, reason = "the engine has no files, but its tests have")]
#[test]
fn generated_code_is_fresh() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut stale = Vec::new();
    for directory in fs::read_dir(&sources).expect("the sources").flatten().map(|entry| entry.path()) {
        let kind = directory.file_name().and_then(|name| name.to_str()).expect("a kind's name is a word");
        if !directory.join(format!("{kind}.proto")).exists() {
            continue;
        }
        let set = protox::compile([format!("{kind}.proto")], [&directory]).expect("the .proto file compiles");
        let out = tempfile::tempdir().expect("a temporary directory");
        let mut build = prost_build::Config::new();
        build.bytes(["."]).out_dir(out.path()).compile_fds(set).expect("code generation");
        let fresh = fs::read_to_string(out.path().join(format!("evoxo.{kind}.v1.rs"))).expect("the generated file");
        let committed = directory.join("messages.rs");
        if fs::read_to_string(&committed).unwrap_or_default() != fresh {
            fs::write(&committed, &fresh).expect("write the fresh file");
            stale.push(committed);
        }
    }
    assert!(stale.is_empty(), "these were stale and have been rewritten: commit them: {stale:?}");
}

#[allow(clippy::disallowed_methods, reason = "the engine has no files, but its tests have")]
#[test]
fn the_module_of_the_workload_is_fresh() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/evolve/wasm/workload.wat");
    let fresh = wat::parse_file(&text).expect("a module");
    let committed = text.with_extension("wasm");
    if fs::read(&committed).unwrap_or_default() != fresh {
        fs::write(&committed, &fresh).expect("write the fresh file");
        panic!("{} was stale and has been rewritten: commit it", committed.display());
    }
}
