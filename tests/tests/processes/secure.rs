//! Clusters with an access directory: the same digests as elsewhere, and nobody else gets in.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Output},
    time::{Duration, Instant},
};

use evoxo_access::{AccessFile, Role};
use evoxo_proto::v1::{CancelRequest, ListAccessRequest, PauseRequest, RunState};
use evoxo_tests::{
    live::{PATIENCE, Process, Site, objects_in},
    person::{Person, digest_of_one_thread},
    programs::program,
    secure::{Secure, channel},
};
use tonic::{Code, Request, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use crate::{DISPATCH, lasting};

/// The standard error of a program that must fail with exit status 1.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The last lines of a worker that must be refused.
async fn gone(worker: &mut Process) -> String {
    assert_eq!(worker.end().await.code(), Some(3), "{}", worker.log());
    worker.log()
}

/// Two workers; the coordinator and a worker are killed at several moments.
#[tokio::test]
async fn a_secure_cluster_computes_what_one_thread_does() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let token = secure.token(address, Role::Worker, 3600, 2).await;
    let mut workers = ["one", "two"].map(|name| secure.worker(address, &token, name));
    let mut person = secure.person(address);
    let config = lasting(4, 40);
    person.submit("run", &config).await;
    person.submit("echo", DISPATCH).await;
    let mut cut_short = 0;
    for round in 0..3 {
        let before = person.wait("run", |_| true).await.rounds_done;
        let run = person.wait("run", |run| run.rounds_done >= before + 10 || run.state() == RunState::Finished).await;
        cut_short += u32::from(run.state() == RunState::Running);
        coordinator.process.kill();
        workers[round % 2].kill();
        coordinator = secure.coordinator(&address.to_string(), &[]);
        // The token has no uses left, so the worker is admitted with its kept certificate.
        workers[round % 2] = secure.worker(address, &token, ["one", "two"][round % 2]);
    }
    assert!(cut_short >= 1, "the run ended before anything was killed");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert_eq!(person.finished("echo").await.digest, digest_of_one_thread(DISPATCH));
    assert_eq!(secure.identities(address).await.iter().filter(|known| known.role == "worker").count(), 2);
}

/// Something blocks the epochs in the store and is removed later. Then the coordinator leads by itself, and the store gets
/// all lines of the audit log.
#[tokio::test]
async fn a_store_that_recovers_gets_the_whole_audit_log() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let leader = site.path("store/leader");
    fs::create_dir(site.path("store")).expect("a directory");
    // A dangling link: nothing can be written below it until it is gone.
    symlink(site.path("nowhere"), &leader).expect("a link");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let token = secure.token(address, Role::Worker, 3600, 1).await;
    let worker = secure.worker(address, &token, "one");
    assert!(!site.path("store/audit").exists(), "the store cannot be written");
    fs::remove_file(&leader).expect("the file exists");
    let stored = || {
        let parts = ["store/audit", "store/audit-rights"].map(|part| objects_in(&site.path(part)));
        let batches = parts.into_iter().flatten().map(|batch| fs::read(batch).expect("a batch"));
        batches.map(|batch| String::from_utf8_lossy(&batch).into_owned()).collect::<String>()
    };
    let has_all = || ["create token", "\"join\"", "\"lead\""].iter().all(|what| stored().contains(what));
    let start = std::time::Instant::now();
    while !has_all() {
        assert!(start.elapsed() < PATIENCE, "{}\n{}", stored(), coordinator.process.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let told = secure.audit_log(address, 100).await.lines;
    let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("create token"), count("\"lead\"")), (1, 1), "{told:?}");
    let mut person = secure.person(address);
    person.submit("echo", DISPATCH).await;
    assert_eq!(person.finished("echo").await.digest, digest_of_one_thread(DISPATCH));
    drop(worker);
}

#[tokio::test]
async fn a_revoked_worker_is_excluded_at_once_and_its_run_continues() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let token = secure.token(address, Role::Worker, 3600, 3).await;
    let [mut one, two] = ["one", "two"].map(|name| secure.worker(address, &token, name));
    let mut person = secure.person(address);
    let config = lasting(4, 40);
    person.submit("run", &config).await;
    let (_, _) = (person.worker("one").await, person.worker("two").await);
    let identities = secure.identities(address).await;
    let id = &identities.iter().find(|known| known.name == "one").expect("the worker has joined").id;
    let revoked = secure.revoke(address, id).await;
    assert!(revoked.known && revoked.connections == 1 && token.contains(&revoked.token), "{revoked:?}");
    assert!(gone(&mut one).await.contains("because it was revoked"), "{}", one.log());
    assert_eq!(person.reason_of_loss("one").await, "its identity was revoked");
    // Neither restarting the worker nor restarting the coordinator brings it back.
    coordinator.process.kill();
    coordinator = secure.coordinator(&address.to_string(), &[]);
    let mut again = secure.worker(address, &token, "one");
    assert!(gone(&mut again).await.contains("because it was revoked"), "{}", again.log());
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    // A revoked token admits nobody.
    secure.revoke(address, &revoked.token).await;
    let mut three = secure.worker(address, &token, "three");
    assert!(gone(&mut three).await.contains("the token is not known here, or it was revoked"), "{}", three.log());
    drop((coordinator, two));
}

#[tokio::test]
async fn tokens_are_limited_by_uses_time_secret_and_cluster() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    // Whoever creates a token for people learns that the page accepts it too.
    for (role, page) in [("viewer", true), ("worker", false)] {
        let made = secure.evoxo(address, Some(secure.operator_path()), &["token", "create", "--role", role]);
        assert!(made.status.success() && made.stdout.starts_with(b"evoxo1."), "{made:?}");
        assert_eq!(
            String::from_utf8_lossy(&made.stderr).contains("log in with the token on the coordinator's page"),
            page
        );
    }
    let token = secure.token(address, Role::Worker, 3600, 2).await;
    let _first = secure.worker(address, &token, "first");
    secure.person(address).worker("first").await;
    // Uses that were taken stay taken when the coordinator is killed.
    coordinator.process.kill();
    coordinator = secure.coordinator(&address.to_string(), &[]);
    let _second = secure.worker(address, &token, "second");
    secure.person(address).worker("second").await;
    assert!(gone(&mut secure.worker(address, &token, "third")).await.contains("was used up"));

    let brief = secure.token(address, Role::Worker, 1, 2).await;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(gone(&mut secure.worker(address, &brief, "late")).await.contains("has expired"));

    let parts: Vec<String> = secure.token(address, Role::Worker, 3600, 2).await.split('.').map(str::to_owned).collect();
    let [version, id, secret, pin] = <[String; 4]>::try_from(parts).expect("four parts");
    let other_secret = token.split('.').nth(2).expect("a secret");
    let forged = format!("{version}.{id}.{other_secret}.{pin}");
    assert!(gone(&mut secure.worker(address, &forged, "guess")).await.contains("the token is not known here"));

    let mut other = pin.into_bytes();
    other[0] = if other[0] == b'A' { b'B' } else { b'A' };
    let misled = format!("{version}.{id}.{secret}.{}", String::from_utf8_lossy(&other));
    let words = gone(&mut secure.worker(address, &misled, "misled")).await;
    assert!(words.contains("not the coordinator of this cluster"), "{words}");
    let names = secure.identities(address).await;
    assert_eq!(names.iter().filter(|known| known.role == "worker").count(), 2, "{names:?}");
    assert!(!coordinator.process.log().contains(&secret), "secrets are not logged");
    for name in ["records.jsonl", "audit.jsonl"] {
        let text = fs::read_to_string(secure.directory.join(name)).expect("a file");
        assert!(!text.contains(&secret), "secrets are not stored");
    }
}

#[tokio::test]
async fn foreign_protocols_and_clusters_get_a_reason() {
    let site = Site::new();
    let (secure, other) = (Secure::init(&site, "access"), Secure::init(&site, "other"));
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let plain = refused(&secure.evoxo(address, None, &["runs"]));
    assert!(plain.contains("speaks only TLS: give --access FILE"), "{plain}");
    let worker = gone(&mut site.worker(address, &[])).await;
    assert!(worker.contains("speaks only TLS"), "{worker}");
    let foreign = refused(&secure.evoxo(address, Some(other.operator_path()), &["runs"]));
    assert!(foreign.contains("not the coordinator of this cluster"), "{foreign}");
    // The reverse: TLS to a coordinator without an access directory.
    let open_site = Site::new();
    let open = open_site.coordinator(&[]);
    let tls = refused(&secure.evoxo(open.address, Some(secure.operator_path()), &["runs"]));
    assert!(tls.contains("does not use TLS: if it is a coordinator without --access, leave out"), "{tls}");
    let tokens = refused(&secure.evoxo(open.address, None, &["access", "list"]));
    assert!(tokens.contains("has no access directory"), "{tokens}");
    let good = secure.evoxo(address, Some(secure.operator_path()), &["runs"]);
    assert!(good.status.success(), "{good:?}");
}

/// The status of a call with an empty request.
async fn call(coordinator: SocketAddr, access: Option<&AccessFile>, path: &'static str) -> Option<Code> {
    let mut client = tonic::client::Grpc::new(channel(coordinator, access));
    client.ready().await.ok()?;
    let codec = ProstCodec::<(), ()>::default();
    let answer = client.unary::<(), (), _>(Request::new(()), PathAndQuery::from_static(path), codec);
    match tokio::time::timeout(PATIENCE, answer).await.expect("an answer") {
        Ok(_) => Some(Code::Ok),
        // A refused connection has no answer from a service.
        Err(status) if std::error::Error::source(&status).is_some() => None,
        Err(status) => Some(status.code()),
    }
}

const FOR_PEOPLE: [&str; 8] = [
    "/evoxo.v1.RunService/List",
    "/evoxo.v1.RunService/Get",
    "/evoxo.v1.RunService/Watch",
    "/evoxo.v1.RunService/Fetch",
    "/evoxo.v1.RunService/FetchChampion",
    "/evoxo.v1.RunService/ListWorkers",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
const FOR_SUBMITTERS: [&str; 4] = [
    "/evoxo.v1.RunService/Submit",
    "/evoxo.v1.RunService/Pause",
    "/evoxo.v1.RunService/Resume",
    "/evoxo.v1.RunService/Cancel",
];
const FOR_OPERATORS: [&str; 5] = [
    "/evoxo.v1.RunService/DrainWorkers",
    "/evoxo.v1.AccessService/CreateToken",
    "/evoxo.v1.AccessService/ListAccess",
    "/evoxo.v1.AccessService/Revoke",
    "/evoxo.v1.AccessService/ReadLog",
];
const FOR_WORKERS: [&str; 1] = ["/evoxo.v1.WorkerService/Work"];
// Health/Watch would never end. The table of rights is tested for it instead.
const FOR_ALL: [&str; 2] = ["/evoxo.v1.AccessService/Renew", "/grpc.health.v1.Health/Check"];
const JOIN: &str = "/evoxo.v1.AccessService/Join";

fn every_call() -> impl Iterator<Item = &'static &'static str> {
    let people = FOR_PEOPLE.iter().chain(&FOR_SUBMITTERS).chain(&FOR_OPERATORS);
    people.chain(&FOR_WORKERS).chain(&FOR_ALL).chain([&JOIN])
}

/// Every call with a certificate of every role, with one of another cluster, with an expired one, and in plain text.
#[tokio::test]
async fn every_caller_may_make_exactly_its_calls() {
    let site = Site::new();
    let (secure, other) = (Secure::init(&site, "access"), Secure::init(&site, "other"));
    let coordinator = secure.coordinator("127.0.0.1:0", &["--worker-certificate-life", "15m"]);
    let address = coordinator.address;
    let mut files = Vec::new();
    for role in Role::ALL {
        files.push((role, secure.newcomer(address, role, role.name()).await));
    }
    let denied = [Some(Code::PermissionDenied), Some(Code::Unauthenticated), None];
    for (role, file) in &files {
        let is_operator = *role == Role::Operator;
        let groups: [(&[&str], bool); 5] = [
            (&FOR_PEOPLE, !role.is_worker()),
            (&FOR_SUBMITTERS, is_operator || *role == Role::Submitter),
            (&FOR_OPERATORS, is_operator),
            (&FOR_WORKERS, role.is_worker()),
            (&FOR_ALL, true),
        ];
        for (calls, may) in groups {
            for path in calls {
                let answer = call(address, Some(file), path).await;
                assert_eq!(!denied.contains(&answer), may, "{role} {path}: {answer:?}");
            }
        }
        assert_eq!(call(address, Some(file), "/evoxo.v1.RunService/None").await, Some(Code::Unimplemented));
    }
    for path in every_call() {
        assert_eq!(call(address, None, path).await, Some(Code::Unauthenticated), "{path} in plain text");
    }
    // A certificate of another authority, shown to the right coordinator: the connection is refused.
    let mixed = mixed(&site, &secure, &other);
    // An expired certificate.
    let restarted = {
        drop(coordinator);
        secure.coordinator(&address.to_string(), &["--worker-certificate-life", "1s"])
    };
    let expired = secure.newcomer(address, Role::Worker, "worker").await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    for path in every_call() {
        assert_eq!(call(address, Some(&mixed), path).await, None, "{path} with another cluster's certificate");
        let answer = call(address, Some(&expired), path).await;
        assert_eq!(answer == Some(Code::Unavailable), !path.ends_with("/Renew"), "{path}, expired: {answer:?}");
    }
    drop(restarted);
}

/// The certificate and key of one cluster, with the authority of another cluster, so that the holder trusts the latter.
fn mixed(site: &Site, secure: &Secure<'_>, other: &Secure<'_>) -> AccessFile {
    let text = |path: PathBuf| fs::read_to_string(path).expect("text");
    let foreign = text(other.operator_path());
    let end = foreign.rfind("-----BEGIN CERTIFICATE").expect("the authority's certificate comes last");
    let path = site.path("mixed.access");
    fs::write(&path, format!("{}{}", &foreign[..end], text(secure.directory.join("ca.pem")))).expect("a file");
    AccessFile::load(&path).expect("an access file")
}

#[tokio::test]
async fn certificates_are_renewed_and_the_coordinators_is_reloaded() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &["--worker-certificate-life", "9s"]);
    let address = coordinator.address;
    let token = secure.token(address, Role::Worker, 3600, 1).await;
    let mut worker = secure.worker(address, &token, "one");
    let mut person = secure.person(address);
    person.worker("one").await;
    let path = site.path("one.access");
    let first = AccessFile::load(&path).expect("a file").certificate().expect("a certificate");
    // The coordinator gets another certificate while it runs.
    let old = secure.operator();
    fs::remove_file(secure.directory.join("server.pem")).expect("there is one");
    let again = Secure::init(&site, "access");
    tokio::time::sleep(Duration::from_secs(21)).await;
    let later = AccessFile::load(&path).expect("a file").certificate().expect("a certificate");
    assert!(later.identity == first.identity && later.expires_s > first.expires_s + 9, "{first:?} {later:?}");
    person.submit("run", DISPATCH).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
    assert!(!worker.has_ended(), "{}", worker.log());
    assert!(coordinator.process.log().contains("new certificates were loaded from"), "{}", coordinator.process.log());
    // The second `init` created another operator, and both have access.
    again.person(address).get("run").await.expect("the run");
    Person::with(address, &old).get("run").await.expect("the run");
    assert_ne!(again.operator(), old);
}

/// Everybody whom the previous authority admitted is out, even on an open connection.
#[tokio::test]
async fn replacing_the_authority_ends_its_connections() {
    let site = Site::new();
    let (secure, other) = (Secure::init(&site, "access"), Secure::init(&site, "other"));
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let mut before = secure.access(coordinator.address);
    before.list_access(ListAccessRequest {}).await.expect("the client is admitted");
    for file in ["ca.key", "ca.pem", "server.pem"] {
        fs::copy(other.directory.join(file), secure.directory.join(file)).expect("a copy");
    }
    let start = Instant::now();
    while before.list_access(ListAccessRequest {}).await.is_ok() {
        assert!(start.elapsed() < PATIENCE, "{}", coordinator.process.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        coordinator.process.log().contains("the previous authority had admitted (1) were ended"),
        "{}",
        coordinator.process.log()
    );
    other.access(coordinator.address).list_access(ListAccessRequest {}).await.expect("admitted by the new authority");
}

/// The coordinator and a worker are off for longer than certificates last. The token is used up.
#[tokio::test]
async fn a_worker_comes_back_after_its_certificate_has_expired() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let brief = ["--worker-certificate-life", "3s"];
    let mut coordinator = secure.coordinator("127.0.0.1:0", &brief);
    let address = coordinator.address;
    let token = secure.token(address, Role::Worker, 3600, 2).await;
    let (one, mut two) = (secure.worker(address, &token, "one"), secure.worker(address, &token, "two"));
    for name in ["one", "two"] {
        secure.person(address).worker(name).await;
    }
    let identities = async || {
        let known = secure.identities(address).await.into_iter().filter(|known| known.role == "worker");
        known.map(|known| known.id).collect::<BTreeSet<_>>()
    };
    let before = identities().await;
    two.kill();
    coordinator.process.kill();
    tokio::time::sleep(Duration::from_secs(5)).await;
    coordinator = secure.coordinator(&address.to_string(), &brief);
    let two = secure.worker(address, &token, "two");
    let mut person = secure.person(address);
    for name in ["one", "two"] {
        person.worker(name).await;
    }
    person.submit("run", DISPATCH).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
    assert_eq!(identities().await, before, "{} {} {}", coordinator.process.log(), one.log(), two.log());
}

#[tokio::test]
async fn the_audit_log_names_callers_and_calls() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let mut person = secure.person(address);
    person.submit("run", DISPATCH).await;
    let viewer = secure.newcomer(address, Role::Viewer, "viewer").await;
    let mut looking = Person::with(address, &viewer);
    let denied = looking.try_submit("other", DISPATCH).await.expect_err("a viewer");
    assert_eq!(denied.code(), Code::PermissionDenied);
    person.client.pause(PauseRequest { name: "run".into() }).await.expect("the run is paused");
    person.client.cancel(CancelRequest { name: "run".into(), delete: true }).await.expect("the run is deleted");
    person.client.pause(PauseRequest { name: "none".into() }).await.expect_err("there is no such run");
    let lines = secure.audit_log(address, 0).await.lines;
    let operator = secure.operator().certificate().expect("a certificate").identity.id.to_string();
    let seen: Vec<bool> = [
        ["\"what\":\"submit\",\"object\":\"run\",\"outcome\":\"done\"", &operator],
        ["\"what\":\"create token\"", &operator],
        ["\"what\":\"join\"", "viewer"],
        ["\"what\":\"submit\"", "refused: your role is viewer"],
        ["\"what\":\"paused\",\"object\":\"run\",\"outcome\":\"done\"", &operator],
        ["\"what\":\"cancelled and deleted\"", &operator],
        ["\"what\":\"paused\",\"object\":\"none\",\"outcome\":\"refused", &operator],
    ]
    .iter()
    .map(|words| lines.iter().any(|line| words.iter().all(|word| line.contains(word)) && line.contains("127.0.0.1")))
    .collect();
    assert_eq!(seen, [true; 7], "{lines:#?}");
}

/// Mistakes on the command line.
#[test]
fn mistakes_about_access_have_a_message() {
    let site = Site::new();
    let file = site.path("letter");
    fs::write(&file, "somebody's letter").expect("a file");
    let file = file.to_string_lossy();
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("evoxo-coordinator", &["init", "--access", &file], 1, "cannot make the directory"),
        ("evoxo-worker", &["--access", &file], 1, "is not an access file of evoxo"),
        ("evoxo", &["runs", "--access", &file], 1, "is not an access file of evoxo"),
        ("evoxo", &["token", "create", "--role", "king"], 2, "there is no role \"king\": use one of viewer, submitter"),
        ("evoxo", &["access", "revoke", "x"], 2, "an ID has 12 digits of 0-9 and a-f"),
    ];
    for (name, arguments, status, says) in cases {
        let output = Command::new(program(name)).args(arguments).output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && text.contains(says), "{name} {arguments:?}: {output:?}");
    }
}
