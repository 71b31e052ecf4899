//! Puts the commit and the compiler into what the programs say of themselves: `EVOXO_COMMIT` if set, else what git says.

fn main() {
    let ask = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // "-dirty" if a file differs from the commit: then the commit alone does not give the same programs.
    let describe = ["describe", "--always", "--exclude=*", "--abbrev=12", "--dirty"];
    let commit = std::env::var("EVOXO_COMMIT").ok().or_else(|| ask("git", &describe));
    println!("cargo::rustc-env=EVOXO_COMMIT={}", commit.as_deref().unwrap_or("no commit"));
    let compiler = std::env::var("RUSTC").ok().and_then(|rustc| ask(&rustc, &["--version"]));
    println!("cargo::rustc-env=EVOXO_RUSTC={}", compiler.unwrap_or_default());
    println!("cargo::rerun-if-env-changed=EVOXO_COMMIT");
    // The log of HEAD grows with every commit and checkout.
    let log = ask("git", &["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| std::path::Path::new(path).exists());
    for path in log.iter().map(String::as_str).chain([
        "src",
        "../experiments/src",
        "../experiments/evolve/src",
        "../experiments/nndtf/src",
        "../experiments/td3d/src",
        "../games/src",
        "../common/src",
        "../process/src",
        "../access/src",
        "../coordinator/src",
        "../coordinator/core/src",
        "../proto/src",
        "../worker/src",
    ]) {
        println!("cargo::rerun-if-changed={path}");
    }
}
