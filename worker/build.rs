//! Tells the build which commit it is of: `EVOXO_COMMIT` if set, else what git says, else "unknown".

use std::{path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=EVOXO_COMMIT");
    let commit = std::env::var("EVOXO_COMMIT")
        .ok()
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]))
        .unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=EVOXO_COMMIT={commit}");
    // The log of HEAD grows with every commit and checkout; without git there is nothing to wait for.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| Path::new(path).exists());
    println!("cargo::rerun-if-changed={}", log.as_deref().unwrap_or("build.rs"));
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let line = String::from_utf8(output.stdout).ok()?;
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}
