//! The committed Rust and descriptors in `src/generated` are what the `.proto` files say.
//! On a mismatch the test writes the right files and fails once: look at the difference and commit it.

use std::{fs, path::Path};

use prost::Message as _;

#[test]
fn generated_code_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["task", "worker", "run", "store", "access"].map(|name| format!("evoxo/v1/{name}.proto"));
    let set = protox::compile(files, [root.join("proto")]).expect("the .proto files compile");
    let mut descriptors = set.clone();
    descriptors.file.iter_mut().for_each(|file| file.source_code_info = None);
    let descriptors = descriptors.encode_to_vec();
    let out = tempfile::tempdir().expect("a temporary directory");
    tonic_prost_build::configure().bytes(".evoxo.v1").out_dir(out.path()).compile_fds(set).expect("code generation");
    let fresh = fs::read_to_string(out.path().join("evoxo.v1.rs")).expect("the generated file");
    let committed = root.join("src/generated/evoxo.v1.rs");
    let binary = root.join("src/generated/evoxo.v1.binpb");
    let same = fs::read_to_string(&committed).unwrap_or_default() == fresh;
    if !same || fs::read(&binary).unwrap_or_default() != descriptors {
        fs::write(&committed, &fresh).expect("write the fresh file");
        fs::write(&binary, &descriptors).expect("write the fresh file");
        panic!("{} and its descriptors were stale and have been rewritten: commit them", committed.display());
    }
}
