//! Puts the commit and the compiler into `--version` and the provenance of results; a build without git has no commit.

fn main() {
    let ask = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = ask("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "no commit".into());
    println!("cargo:rustc-env=EVOXO_COMMIT={commit}");
    let compiler = std::env::var("RUSTC").ok().and_then(|rustc| ask(&rustc, &["--version"])).unwrap_or_default();
    println!("cargo:rustc-env=EVOXO_RUSTC={compiler}");
    if let Some(head) = ask("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={head}");
    }
}
