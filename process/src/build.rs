//! The build that a process runs: what it says of itself in `--version`, results, logs, figures and on the page.

use std::sync::OnceLock;

use crate::lack::end_on_lack;

/// A build of evoxo. Only the crate of the programs knows its own, so that a commit compiles only that crate again.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The version of evoxo.
    pub version: &'static str,
    /// The commit of the sources, with `-dirty` if a file differs from it.
    pub commit: &'static str,
    /// What the compiler says of itself.
    pub rustc: &'static str,
}

static BUILD: OnceLock<Build> = OnceLock::new();

/// Begins a program: this is its build, and from now on a lack of threads, files or memory ends it with a sentence.
pub fn begin(build: Build) {
    let _ = BUILD.set(build);
    end_on_lack();
}

/// The build of this process. Tests have one without a commit.
#[must_use]
pub fn build() -> Build {
    *BUILD.get().unwrap_or(&Build { version: env!("CARGO_PKG_VERSION"), commit: "no commit", rustc: "" })
}

impl Build {
    /// Version and commit: `0.1.0 (0123456789ab)`.
    #[must_use]
    pub fn text(self) -> String {
        format!("{} ({})", self.version, self.commit)
    }
}
