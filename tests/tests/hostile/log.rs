//! The holder of a small token tries to push the lines of operators out of the audit log.

use std::{fs, time::Duration};

use evoxo_access::{AccessFile, Newcomer, Role, Token};
use evoxo_proto::v1::{PauseRequest, access_service_client::AccessServiceClient};
use evoxo_tests::{
    live::{PATIENCE, Site, objects_in},
    person::Person,
    secure::{Secure, channel},
};
use serde_json::Value;
use tokio::task::JoinSet;
use tonic::Code;

use crate::{echoes, pause};

/// The output of `evoxo access log --done`, as the operator.
fn done(secure: &Secure<'_>, coordinator: std::net::SocketAddr) -> Vec<Value> {
    let arguments = ["access", "log", "--done", "--lines", "1000"];
    let printed = secure.evoxo(coordinator, Some(secure.operator_path()), &arguments);
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8(printed.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The actions of operators, in the order of the log.
fn orders(lines: &[Value]) -> Vec<(String, String)> {
    let text = |line: &Value, part: &str| line[part].as_str().expect("text").to_owned();
    let own = lines.iter().filter(|line| line["role"] == "operator");
    own.map(|line| (text(line, "what"), text(line, "object"))).collect()
}

/// The holder of a token joins over and over: with the same key, and with other keys as often as the token allows. It is also
/// refused in each way that writes a line.
async fn attack(site: &Site, coordinator: std::net::SocketAddr, token: &Token, own: &AccessFile, others: usize) {
    let ways = channel(coordinator, Some(own));
    let request = |name: &str, token: &Token| {
        let newcomer = Newcomer::new(token.clone(), site.path(&format!("key-{name}"))).expect("a key");
        newcomer.request(name).expect("a request")
    };
    let mut granted = Vec::new();
    let repeated = request("again", token);
    for _ in 0..200 {
        let mut all = JoinSet::new();
        for _ in 0..100 {
            let (mut client, repeated) = (AccessServiceClient::new(ways.clone()), repeated.clone());
            all.spawn(async move {
                client.join(repeated).await.expect("the join is granted again").into_inner().certificate
            });
        }
        granted.extend(all.join_all().await);
        granted.dedup();
    }
    assert_eq!(granted.len(), 1, "it is the same certificate each time");
    let mut client = AccessServiceClient::new(ways.clone());
    for number in 0..others {
        client.join(request(&format!("other-{number}"), token)).await.expect("the token has a use left");
    }
    let mut person = Person::with(coordinator, own);
    for number in 0..500 {
        let refused = client.join(request("none", token)).await.map(|_| ()).expect_err("the token is used up");
        assert_eq!(refused.code(), Code::Unauthenticated);
        person.try_submit(&format!("run-{number}"), "").await.expect_err("a viewer may not change runs");
        person.client.pause(PauseRequest { name: "run".into() }).await.expect_err("a viewer may not change runs");
    }
}

/// After the attack, all lines of the operator are still there: in the file, and in the store when the files are gone.
#[tokio::test(flavor = "multi_thread")]
async fn holders_of_tokens_cannot_hide_the_actions_of_operators() {
    const OTHERS: usize = 300;
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let mut operator = secure.person(address);
    for number in 0..20 {
        operator.submit(&format!("run-{number}"), &echoes(1, 1, 1, 16)).await;
    }
    let own = secure.newcomer(address, Role::Viewer, "viewer").await;
    let token = secure.token(address, Role::Viewer, 3600, OTHERS as u32 + 1).await.parse().expect("a token");
    let before = orders(&done(&secure, address));
    assert_eq!(before.len(), 22, "{before:?}");
    attack(&site, address, &token, &own, OTHERS).await;
    let lines = done(&secure, address);
    assert_eq!(orders(&lines), before);
    let joins = lines.iter().filter(|line| line["what"] == "join").count();
    assert!((OTHERS..OTHERS + 5).contains(&joins), "{joins} lines of joins");
    // The repeated joins do not add anything else either.
    let bytes = |name: &str| fs::metadata(secure.directory.join(name)).expect("a file").len();
    assert!(bytes("records.jsonl") < 500_000 && bytes("audit.jsonl") < 500_000, "{}", bytes("records.jsonl"));
    let mut stored = 0;
    let start = std::time::Instant::now();
    while stored == 0 || start.elapsed() < Duration::from_secs(4) {
        assert!(start.elapsed() < PATIENCE, "the store gets no lines");
        stored = objects_in(&site.path("store/audit-rights")).len();
        pause(100).await;
    }
    coordinator.process.kill();
    for part in ["audit-rights.jsonl", "audit.jsonl"] {
        fs::remove_file(secure.directory.join(part)).expect("the file exists");
    }
    coordinator = secure.coordinator(&address.to_string(), &[]);
    let lines = done(&secure, address);
    assert_eq!(orders(&lines), before);
    assert!(lines.len() > OTHERS && lines.is_sorted_by_key(|line| line["time"].to_string()), "{}", lines.len());
    drop(coordinator);
}
