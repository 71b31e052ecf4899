//! The committed Rust in `src/generated` is what the `.proto` files say.
//! On a mismatch the test writes the right file and fails once: look at the difference and commit it.

use std::{fs, path::Path};

#[test]
fn generated_code_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["task", "worker", "run", "store", "access"].map(|name| format!("evoxo/v1/{name}.proto"));
    let set = protox::compile(files, [root.join("proto")]).expect("the .proto files compile");
    let out = tempfile::tempdir().expect("a temporary directory");
    tonic_prost_build::configure().bytes(".evoxo.v1").out_dir(out.path()).compile_fds(set).expect("code generation");
    let fresh = fs::read_to_string(out.path().join("evoxo.v1.rs")).expect("the generated file");
    let committed = root.join("src/generated/evoxo.v1.rs");
    if fs::read_to_string(&committed).unwrap_or_default() != fresh {
        fs::write(&committed, &fresh).expect("write the fresh file");
        panic!("{} was stale and has been rewritten: commit it", committed.display());
    }
}
