//! The messages about programs that do not answer.

use super::*;

fn answer_within(command: &str, ms: u64) -> Result<(u64, String), Refusal> {
    let program = Program { name: "p".into(), command: command.into() };
    Processes::new(Arc::from([program])).ask("p", &|_| "question".into(), ms)
}

fn answer(command: &str) -> Result<(u64, String), Refusal> {
    answer_within(command, 30_000)
}

#[test]
fn an_exit_is_noticed_while_a_child_holds_the_output() {
    let ends = |last: &str| answer(&format!("echo intro; read q; sleep 60 & {last}"));
    let why = ends("exit 7").unwrap_err().0;
    assert!(why.contains("ended (exit status: 7) before it could answer"), "{why}");
    assert_eq!(ends("echo \"to $q\"").unwrap(), (1, "to question".into()), "the last line that it wrote counts");
}

#[test]
fn an_unterminated_line_is_reported() {
    assert_eq!(answer("echo intro; read q; echo \"to $q\"").unwrap(), (1, "to question".into()));
    let why = answer_within("echo intro; read q; printf '{\"half\"'; sleep 60", 1500).unwrap_err().0;
    assert!(why.contains("was stopped; it wrote \"{\\\"half\\\"\" without a line break"), "{why}");
}
