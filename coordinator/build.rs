//! Puts the commit into `--version`; a build without git has none.

fn main() {
    let ask = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = ask(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "no commit".into());
    println!("cargo:rustc-env=EVOXO_COMMIT={commit}");
    if let Some(head) = ask(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={head}");
    }
}
