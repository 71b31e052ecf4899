//! Two people with the role submitter, and an operator, who use the command line.

use evoxo_access::Role;
use evoxo_proto::v1::RunState;
use evoxo_tests::{live::Site, secure::Secure};

use crate::DISPATCH;

/// Each may change only its own runs; the operator may change all. The audit log has the refusals.
#[tokio::test]
async fn a_submitter_may_change_only_its_own_runs() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let file = site.path("long.toml");
    std::fs::write(&file, DISPATCH).expect("a file");
    let file = file.to_string_lossy().into_owned();
    for name in ["ann", "bob", "eve"] {
        let role = if name == "eve" { Role::Viewer } else { Role::Submitter };
        secure.newcomer(address, role, name).await;
    }
    let evoxo = |who: &str, arguments: &[&str]| {
        let access = if who == "operator" { secure.operator_path() } else { site.path(&format!("joined-{who}")) };
        let output = secure.evoxo(address, Some(access), arguments);
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text.into_owned())
    };
    for who in ["ann", "bob", "operator"] {
        let (done, said) = evoxo(who, &["submit", &file, "--name", &format!("of-{who}")]);
        assert!(done, "{said}");
    }
    let (done, said) = evoxo("eve", &["submit", &file, "--name", "of-eve"]);
    assert!(!done && said.contains("Submit needs the role submitter or operator"), "{said}");
    for order in ["pause", "resume", "cancel"] {
        for run in ["of-bob", "of-operator"] {
            let (done, said) = evoxo("ann", &[order, run]);
            assert!(!done && said.contains(&format!("run \"{run}\" was submitted by")), "{order}: {said}");
            assert!(said.contains("your role lets you change only your own runs"), "{said}");
        }
    }
    let (done, said) = evoxo("ann", &["submit", &file, "--name", "of-bob", "--set", "replicas=9"]);
    assert!(!done && said.contains("your own runs"), "{said}");
    // Of all runs, ann deletes her own, and the others stay.
    let (done, said) = evoxo("ann", &["cancel", "of-*", "--delete"]);
    assert!(!done && said.contains("2 of 3 runs could not be changed"), "{said}");
    let mut operator = secure.person(address);
    assert!(operator.get("of-ann").await.is_err());
    assert_eq!(operator.get("of-bob").await.expect("the run").state(), RunState::Running);
    let (done, said) = evoxo("operator", &["cancel", "of-*"]);
    assert!(done, "{said}");
    let (_, log) = evoxo("operator", &["access", "log"]);
    let line = |words: &[&str]| log.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["paused", "of-bob", "refused: run", "\"role\":\"submitter\""]), "{log}");
    assert!(line(&["cancelled and deleted", "of-ann", "done", "\"role\":\"submitter\""]), "{log}");
}
