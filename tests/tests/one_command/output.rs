//! A command that cannot print, or cannot continue, says so.

use std::process::{Command, Stdio};

use evoxo_tests::programs::program;

use crate::Desk;

/// Runs a shell's line with the program as `$0`. Returns its status and its standard error.
fn shell(desk: &Desk, line: &str) -> (Option<i32>, String) {
    let mut command = Command::new("bash");
    command.arg("-c").arg(line).arg(program("evoxo")).current_dir(desk.path(""));
    let output = command.stdout(Stdio::null()).output().expect("bash");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn failed_output_is_an_error() {
    let desk = Desk::new();
    for verb in ["new invincible", "--help", "--version", "schema result"] {
        for (place, why) in [(">&-", "it is closed"), (">/dev/full", "No space left on device (os error 28)")] {
            let said = format!("error: cannot write to standard output: {why}\n");
            assert_eq!(shell(&desk, &format!("$0 {verb} {place}")), (Some(1), said), "{verb} {place}");
        }
        // `head` expects this, and so does a caller that does not want the output, however it has opened /dev/null.
        for place in ["| true; exit ${PIPESTATUS[0]}", "| head -1; exit ${PIPESTATUS[0]}", ">/dev/null", "1<>/dev/null"]
        {
            assert_eq!(shell(&desk, &format!("$0 {verb} {place}")), (Some(0), String::new()), "{verb} {place}");
        }
    }
}

#[test]
fn a_run_without_files_or_memory_ends_with_a_message() {
    let desk = Desk::new();
    for files in [8, 12, 40] {
        let (status, said) = shell(&desk, &format!("ulimit -n {files}; $0 run table.toml --workers 2 --out out"));
        assert!(status == Some(1) && said.starts_with("error: ") && said.lines().count() == 1, "{files}: {said}");
    }
    // Under `ulimit -f`, either the first file is too large, or a checkpoint.
    for blocks in [0, 1] {
        let line = format!(
            "ulimit -f {blocks}; timeout -s INT 12 $0 run table.toml --workers 2 --replicas 12 --out out{blocks}"
        );
        let (status, said) = shell(&desk, &line);
        assert!(status != Some(0) && said.contains("File too large"), "{blocks}: {status:?} {said}");
    }
    // How much memory is just enough depends on the machine. The command must never wait for something that does not come.
    for kib in [150_000, 260_000] {
        let line = format!("ulimit -v {kib}; RUST_BACKTRACE=1 timeout 40 $0 run table.toml --workers 2 --out out");
        let (status, said) = shell(&desk, &line);
        assert!(status == Some(0) || status == Some(1) && said.contains("error: "), "{kib}: {status:?} {said}");
    }
}
