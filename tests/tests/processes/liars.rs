//! Workers with certificates send wrong outputs of the right form, for a run that does not trust them.

use std::{fs, net::SocketAddr, time::Duration};

use bytes::Bytes;
use evoxo_access::{AccessFile, Refusal, Role, Token};
use evoxo_common::task::Encoded;
use evoxo_proto::v1::{RunState, Verification, task_result::Outcome};
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread},
    script::{Session, honest},
    secure::{Secure, channel},
};
use serde_json::Value;

use super::standby::secure_standby;
use crate::DISPATCH;

/// After this much silence no task is left for a worker.
const SILENCE: Duration = Duration::from_secs(3);

/// Waits until nobody can join with this token.
async fn is_revoked(secure: &Secure<'_>, token: &Token, coordinator: SocketAddr) {
    let again = secure.join(coordinator, token, "another").await;
    let refused = matches!(&again, Err(Refusal::Final(why)) if why.contains("revoked"));
    assert!(refused, "the token is not revoked: {again:?}");
}

fn id_of(access: &AccessFile) -> String {
    access.certificate().expect("a certificate").identity.id.to_string()
}

fn lie(task: &Encoded) -> Outcome {
    let Outcome::Output(output) = honest(task) else { unreachable!("an honest outcome is an output") };
    let mut bytes = output.to_vec();
    *bytes.last_mut().expect("an output has bytes") ^= 1;
    Outcome::Output(Bytes::from(bytes))
}

/// The name of all runs in these tests.
const RUN: &str = "run";

fn submit(secure: &Secure<'_>, site: &Site, coordinator: SocketAddr, level: &str) -> (bool, String) {
    let file = site.path("echo.toml");
    fs::write(&file, DISPATCH).expect("a file");
    let file = file.to_string_lossy();
    let arguments = ["submit", &*file, "--name", RUN, "--verify", level];
    let output = secure.evoxo(coordinator, Some(secure.operator_path()), &arguments);
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A liar works first and alone. Then a trusted worker comes: the result is right, the liar is revoked, and the audit log
/// says why, even after the coordinator was killed.
#[tokio::test]
async fn a_liar_is_revoked_and_the_result_is_right() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let (accepted, said) = submit(&secure, &site, address, "verified");
    assert!(accepted, "{said}");
    let mut person = secure.person(address);
    let token = secure.token(address, Role::Worker, 60, 9).await.parse().expect("a token");
    let access = secure.join(address, &token, "liar").await.expect("an access file");
    let id = id_of(&access);
    let mut liar = Session::join_over(channel(address, Some(&access)), "liar").await.expect("the client is admitted");
    for _ in 0..3 {
        let assigned = liar.next_tasks().await.expect("tasks");
        liar.answer(assigned.id, &assigned.tasks, lie).await;
    }
    let run = person.wait(RUN, |run| run.message.contains("trusted worker")).await;
    assert_eq!((run.tasks_done, run.verification()), (0, Verification::Verified), "none of its outputs counts");
    let trusted = secure.token(address, Role::TrustedWorker, 3600, 1).await;
    let trusted = secure.worker(address, &trusted, "trusted");
    assert_eq!(person.finished(RUN).await.digest, digest_of_one_thread(DISPATCH));
    let close = liar.end().await;
    assert!(close.is_err() || close.is_ok_and(|close| close.reason.contains("computes wrongly")));
    // Another thread writes the revocation, so it may come later.
    let revoked = async || !secure.identities(address).await.iter().any(|known| known.id == id);
    while !revoked().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    coordinator.process.kill();
    coordinator = secure.coordinator(&address.to_string(), &[]);
    assert!(
        Session::join_over(channel(address, Some(&access)), "liar").await.is_err(),
        "the liar is excluded permanently"
    );
    is_revoked(&secure, &token, address).await;
    let lines = secure.audit_log(address, 100).await.lines;
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let convictions: Vec<Value> = lines.filter(|line| line["what"] == "convict").collect();
    assert_eq!(convictions.len(), 1, "{convictions:?}");
    let object = convictions[0]["object"].as_str().expect("text");
    assert!(object.starts_with(&id) && object.contains("run run, arm \"main\", replica "), "{object}");
    drop((trusted, coordinator));
}

/// A liar computes everything alone, on its own word. The coordinator is killed after the liar's conviction. All of the
/// liar's work is undone.
#[tokio::test]
async fn a_convicted_workers_results_are_undone() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    assert!(submit(&secure, &site, address, "sampled:100%").0);
    let mut person = secure.person(address);
    let access = secure.newcomer(address, Role::Worker, "liar").await;
    let id = id_of(&access);
    let mut liar = Session::join_over(channel(address, Some(&access)), "liar").await.expect("the client is admitted");
    // Until no task is left for it.
    while let Ok(Some(assigned)) = tokio::time::timeout(SILENCE, liar.next_tasks()).await {
        liar.answer(assigned.id, &assigned.tasks, lie).await;
    }
    let run = person.wait(RUN, |run| run.rounds_done >= 3).await;
    assert_eq!(
        (run.state(), run.replicas_finished),
        (RunState::Running, 0),
        "the run waits for recomputations: {run:?}"
    );
    let token = secure.token(address, Role::TrustedWorker, 3600, 1).await;
    let trusted = secure.worker(address, &token, "trusted");
    while secure.identities(address).await.iter().any(|known| known.id == id) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    coordinator.process.kill();
    coordinator = secure.coordinator(&address.to_string(), &[]);
    let run = person.finished(RUN).await;
    assert_eq!((run.digest, run.doubts.len()), (digest_of_one_thread(DISPATCH), 0));
    drop((trusted, coordinator));
}

/// The coordinator was killed when the store had a conviction but the access directory did not. The token is refused all the
/// same.
#[tokio::test]
async fn a_convicted_workers_token_is_revoked_even_after_a_kill() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let token: Token = secure.token(address, Role::Worker, 3600, 9).await.parse().expect("a token");
    let access = secure.join(address, &token, "liar").await.expect("an access file");
    coordinator.process.kill();
    // The name of the object is all that counts.
    let convicted = site.path("store/convicted");
    fs::create_dir_all(&convicted).expect("a directory");
    fs::write(convicted.join(id_of(&access)), "").expect("a file");
    coordinator = secure.coordinator(&address.to_string(), &[]);
    is_revoked(&secure, &token, address).await;
    assert!(site.path("store/revoked").join(token.id.to_string()).exists(), "later leaders reject the token too");
    drop(coordinator);
}

/// The standby's copy of the access directory is older. A liar is convicted, a guest is revoked, and the leader is killed.
/// Both stay out, as does a newcomer with the liar's token, and the liar's work is undone.
#[tokio::test]
async fn revoked_workers_stay_out_when_a_standby_takes_over() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut one = secure.coordinator("127.0.0.1:0", &[]);
    let liars: Token = secure.token(one.address, Role::Worker, 3600, 9).await.parse().expect("a token");
    let two = secure_standby(&site);
    // A revoked worker exits, even if it also has the address of a standby that admits nobody.
    let both = format!("{},{}", one.address, two.address);
    let with = |token: &str, name: &str| {
        let file = site.path(&format!("{name}.access")).to_string_lossy().into_owned();
        let access = ["--coordinator", &both, "--join", token, "--access", &file, "--name", name];
        site.program("evoxo-worker", &access)
    };
    let mut third = with(&liars.to_string(), "third");
    secure.person(one.address).worker("third").await;
    let known = secure.identities(one.address).await;
    let id = &known.iter().find(|known| known.name == "third").expect("the worker has joined").id;
    assert!(secure.revoke(one.address, id).await.known);
    assert_eq!(third.end().await.code(), Some(3), "{}", third.log());
    assert!(submit(&secure, &site, one.address, "sampled:100%").0);
    let access = secure.join(one.address, &liars, "liar").await.expect("an access file");
    let guest = secure.newcomer(one.address, Role::Viewer, "guest").await;
    assert!(Person::with(one.address, &guest).get(RUN).await.is_ok());
    assert!(secure.revoke(one.address, &id_of(&guest)).await.known);
    let mut liar =
        Session::join_over(channel(one.address, Some(&access)), "liar").await.expect("the client is admitted");
    while let Ok(Some(assigned)) = tokio::time::timeout(SILENCE, liar.next_tasks()).await {
        liar.answer(assigned.id, &assigned.tasks, lie).await;
    }
    let token = secure.token(one.address, Role::TrustedWorker, 3600, 1).await;
    let trusted = with(&token, "trusted");
    while secure.identities(one.address).await.iter().any(|known| known.id == id_of(&access)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let kept = site.path("store/revoked").join(liars.id.to_string());
    let is_kept = async {
        while !kept.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_kept).await.expect("the store knows of the token");
    one.process.kill();
    let records = fs::read_to_string(site.path("copy/records.jsonl")).expect("records");
    assert!(!records.contains("revoked"), "the copy already has revocations: {records}");
    let run = secure.person(two.address).finished(RUN).await;
    assert_eq!((run.digest, run.doubts.len()), (digest_of_one_thread(DISPATCH), 0));
    assert!(
        Session::join_over(channel(two.address, Some(&access)), "liar").await.is_err(),
        "the liar is excluded permanently"
    );
    assert!(Person::with(two.address, &guest).get(RUN).await.is_err(), "the revoked guest is excluded too");
    is_revoked(&secure, &liars, two.address).await;
    drop(trusted);
}

/// Two identities make a quorum; one identity does not, however often it connects.
#[tokio::test]
async fn a_quorum_needs_two_identities() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    assert!(submit(&secure, &site, address, "quorum").0);
    let token = secure.token(address, Role::Worker, 3600, 2).await;
    let mut person = secure.person(address);
    let first = secure.worker(address, &token, "one");
    person.worker("one").await;
    // The same certificate in another process.
    let second = secure.worker(address, &token, "one");
    let run = person.wait(RUN, |run| run.message.contains("two identities")).await;
    assert_eq!((run.state(), run.tasks_done), (RunState::Running, 0));
    let two = secure.worker(address, &token, "two");
    assert_eq!(person.finished(RUN).await.digest, digest_of_one_thread(DISPATCH));
    drop((first, second, two));
}

#[tokio::test]
async fn without_certificates_nothing_can_be_verified() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let file = site.path("echo.toml");
    fs::write(&file, DISPATCH).expect("a file");
    let address = coordinator.address.to_string();
    let file = file.to_string_lossy();
    let mut program = site.program("evoxo", &["submit", &file, "--verify", "quorum", "--coordinator", &address]);
    assert_eq!(program.end().await.code(), Some(1));
    assert!(program.log().contains("has no access directory"), "{}", program.log());
    assert!(Person::of(coordinator.address).get("echo").await.is_err());
}
