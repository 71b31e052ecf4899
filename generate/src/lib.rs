//! Generated files that are committed: the Rust of `.proto` files, and a WebAssembly module. Each function writes the files
//! that are out of date and returns their paths. The tests call the functions, so they fail once after a change.

use std::{
    fs,
    path::{Path, PathBuf},
};

use prost::Message as _;

/// The directory of the repository.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in the workspace")
}

/// Writes a file if its content differs, and returns its path in that case.
fn update(path: PathBuf, fresh: &[u8]) -> Option<PathBuf> {
    let stale = fs::read(&path).unwrap_or_default() != fresh;
    stale.then(|| {
        fs::write(&path, fresh).expect("a file that can be written");
        path
    })
}

/// Updates the code for the wire: `proto/src/generated` from `proto/proto`, with descriptors for reflection.
///
/// # Panics
/// If a `.proto` file does not compile, or a file cannot be written.
#[must_use]
pub fn wire() -> Vec<PathBuf> {
    let root = workspace().join("proto");
    let files = ["task", "worker", "run", "store", "access"].map(|name| format!("evoxo/v1/{name}.proto"));
    let set = protox::compile(files, [root.join("proto")]).expect("the .proto files compile");
    let mut descriptors = set.clone();
    descriptors.file.iter_mut().for_each(|file| file.source_code_info = None);
    let out = tempfile::tempdir().expect("a temporary directory");
    tonic_prost_build::configure().bytes(".evoxo.v1").out_dir(out.path()).compile_fds(set).expect("code generation");
    let fresh = fs::read(out.path().join("evoxo.v1.rs")).expect("the generated file");
    let generated = root.join("src/generated");
    let code = update(generated.join("evoxo.v1.rs"), &fresh);
    code.into_iter().chain(update(generated.join("evoxo.v1.binpb"), &descriptors.encode_to_vec())).collect()
}

/// Updates the messages of experiments: `messages.rs` from `KIND.proto` in the same folder, which is `experiments/src/KIND`, or
/// `experiments/KIND/src` if the kind is a crate.
///
/// # Panics
/// If a `.proto` file does not compile, or a file cannot be written.
#[must_use]
pub fn messages() -> Vec<PathBuf> {
    let mut stale = Vec::new();
    let experiments = workspace().join("experiments");
    let within = |directory: &Path| fs::read_dir(directory).expect("the sources").flatten().map(|entry| entry.path());
    let folders = within(&experiments.join("src")).map(|folder| (folder.clone(), folder));
    let crates = within(&experiments).map(|package| (package.join("src"), package));
    for (directory, named) in folders.chain(crates) {
        let kind = named.file_name().and_then(|name| name.to_str()).expect("a kind's name is a word");
        if !directory.join(format!("{kind}.proto")).exists() {
            continue;
        }
        let set = protox::compile([format!("{kind}.proto")], [&directory]).expect("the .proto file compiles");
        let out = tempfile::tempdir().expect("a temporary directory");
        let mut build = prost_build::Config::new();
        build.bytes(["."]).out_dir(out.path()).compile_fds(set).expect("code generation");
        let fresh = fs::read(out.path().join(format!("evoxo.{kind}.v1.rs"))).expect("the generated file");
        stale.extend(update(directory.join("messages.rs"), &fresh));
    }
    stale
}

/// Updates the module of a fixed workload from its text.
///
/// # Panics
/// If the text is not a module, or the file cannot be written.
#[must_use]
pub fn module() -> Vec<PathBuf> {
    let text = workspace().join("experiments/evolve/src/wasm/workload.wat");
    let fresh = wat::parse_file(&text).expect("a module");
    update(text.with_extension("wasm"), &fresh).into_iter().collect()
}
