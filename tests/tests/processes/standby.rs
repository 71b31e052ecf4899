//! A coordinator and its standby on one store. The leader is killed, stopped, or started twice, and runs end as they should.

use std::{fs, net::SocketAddr, process::Command, time::Duration, time::Instant};

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::{Coordinator, PATIENCE, Process, Site, objects_in},
    person::{Person, digest_of_one_thread, is_absence},
    programs::program,
    secure::Secure,
};
use serde_json::Value;
use tonic_health::pb::health_check_response::ServingStatus;

use super::leaders::health;
use crate::lasting;

/// The arguments of a standby with little patience.
pub(super) const STANDBY: [&str; 3] = ["--standby", "--takeover-after", "2s"];

const TAKES_OVER: &str = "this coordinator takes over: ";

/// A worker that knows the addresses of both coordinators.
fn worker(site: &Site, name: &str, coordinators: &str) -> Process {
    site.program("evoxo-worker", &["--coordinator", coordinators, "--slots", "1", "--name", name])
}

/// Waits until this process reports that it leads, or that it does not.
pub(super) async fn serves(coordinator: SocketAddr, wanted: ServingStatus) {
    let start = Instant::now();
    while health(coordinator).await != wanted {
        assert!(start.elapsed() < PATIENCE, "{coordinator} does not become {wanted:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the process's log has these words.
async fn says(process: &Process, words: &str) {
    let start = Instant::now();
    while !process.log().contains(words) {
        assert!(start.elapsed() < PATIENCE, "it does not say {words:?}: {}", process.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until this standby, which knows no runs, says that the other one leads.
async fn names(standby: &mut Person, leader: SocketAddr) {
    let start = Instant::now();
    loop {
        let refused = standby.get("run").await.expect_err("a standby knows nothing of runs");
        if refused.message().contains("is a standby") && refused.message().contains(&leader.to_string()) {
            return;
        }
        // A coordinator that was just superseded says so and ends its connections, but may not know the new leader yet.
        assert!(
            is_absence(&refused) && start.elapsed() < PATIENCE,
            "the rejection does not name the leader: {refused}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The output of `evoxo` for a run, with all addresses given.
fn asked(coordinators: &str, arguments: &[&str]) -> String {
    let output = Command::new(program("evoxo")).args(arguments).args(["--coordinator", coordinators]).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until the run has advanced by so many rounds.
async fn advances(person: &mut Person, rounds: u64) {
    let before = person.wait("run", |_| true).await.rounds_done;
    let run = person.wait("run", |run| run.rounds_done >= before + rounds || run.state() == RunState::Finished).await;
    assert_eq!(run.state(), RunState::Running, "the run is too short for this test");
}

#[tokio::test]
async fn a_run_survives_the_loss_of_its_leaders() {
    let site = Site::new();
    let mut one = site.coordinator(&[]);
    let two = site.coordinator(&STANDBY);
    assert_eq!(
        (health(one.address).await, health(two.address).await),
        (ServingStatus::Serving, ServingStatus::NotServing)
    );
    let both = format!("{},{}", two.address, one.address);
    let workers = [worker(&site, "left", &both), worker(&site, "right", &both)];
    let config = lasting(3, 200);
    let (mut first, mut second) = (Person::of(one.address), Person::of(two.address));
    first.submit("run", &config).await;
    names(&mut second, one.address).await;
    let mut watch = site.program("evoxo", &["watch", "run", "--coordinator", &both]);
    advances(&mut first, 20).await;

    one.process.kill();
    advances(&mut second, 20).await;
    assert!(two.process.log().contains(TAKES_OVER), "{}", two.process.log());
    assert!(asked(&both, &["runs"]).contains("run"));

    // The first coordinator comes back as a standby, and the second one is stopped without being ended.
    let again = site.coordinator_on(&one.address.to_string(), &STANDBY);
    two.process.signal("STOP");
    serves(again.address, ServingStatus::Serving).await;
    two.process.signal("CONT");
    serves(two.address, ServingStatus::NotServing).await;
    advances(&mut first, 20).await;
    assert!(two.process.log().contains("it is a standby from now on"), "{}", two.process.log());
    // One of the workers may have been on its way to the next coordinator.
    let told = |worker: &Process| worker.log().contains("it closed the session: another coordinator leads");
    assert!(workers.iter().any(told), "no worker was sent away by the superseded coordinator");
    assert!(asked(&both, &["runs"]).contains("run"));
    assert_eq!(first.finished("run").await.digest, digest_of_one_thread(&config));
    assert!(watch.end().await.success(), "{}", watch.log());
    assert!(watch.log().contains("; trying to reach run again, for up to a minute"), "{}", watch.log());
}

/// The standby's process hangs in the store, as on a share whose server is gone, and the operating system does not interrupt
/// it.
#[tokio::test]
async fn a_standby_that_hangs_while_loading_is_superseded() {
    let site = Site::new();
    let config = lasting(1, 3);
    let one = site.coordinator(&[]);
    let mut person = Person::of(one.address);
    person.submit("run", &config).await;
    drop(one);
    let orders = site.path("store/runs/run/order");
    let order = fs::read_dir(&orders).expect("orders").next().expect("an order").expect("an entry").path();
    let kept = site.path("order");
    fs::rename(&order, &kept).expect("the order is moved");
    // A process that opens the pipe waits for a writer.
    assert!(Command::new("mkfifo").arg(&order).status().expect("the program starts").success());
    let two = site.coordinator(&STANDBY);
    says(&two.process, "the store has not answered for 30 s").await;
    assert!(two.process.log().contains(TAKES_OVER), "{}", two.process.log());
    fs::rename(&kept, &order).expect("the order is moved back");
    let three = site.coordinator(&STANDBY);
    let _worker = site.worker(three.address, &[]);
    let mut person = Person::of(three.address);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

/// A damaged epoch does not say who leads, and under which authority.
#[tokio::test]
async fn a_standby_does_not_take_over_from_an_epoch_that_is_damaged() {
    let site = Site::new();
    let one = site.coordinator(&[]);
    drop(one);
    fs::write(site.path("store/leader/000001"), b"damaged").expect("it is written");
    let two = site.coordinator(&STANDBY);
    says(&two.process, "the object of epoch 1 in the store is damaged").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(health(two.address).await, ServingStatus::NotServing);
    let three = site.coordinator(&[]);
    serves(three.address, ServingStatus::Serving).await;
}

/// Both start as if from hosts that do not see the lock: the later one leads, and the other one waits for its turn.
#[tokio::test]
async fn the_later_of_two_coordinators_on_one_store_leads() {
    let site = Site::new();
    let config = lasting(3, 100);
    let first = site.coordinator(&STANDBY[1..]);
    let mut person = Person::of(first.address);
    person.submit("run", &config).await;
    fs::remove_file(site.path("store/lock")).expect("a lock");
    let second = site.coordinator(&[]);
    let both = format!("{},{}", first.address, second.address);
    let _workers = [worker(&site, "left", &both), worker(&site, "right", &both)];
    serves(first.address, ServingStatus::NotServing).await;
    names(&mut person, second.address).await;
    advances(&mut Person::of(second.address), 10).await;
    drop(second);
    serves(first.address, ServingStatus::Serving).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

/// A client that has seen a later epoch with its access file does not trust an earlier one, even if nobody else answers.
#[tokio::test]
async fn tools_do_not_return_to_a_superseded_leader() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    drop(secure.coordinator("127.0.0.1:0", &[]));
    let before = site.path("before");
    let copied = Command::new("cp").arg("-a").arg(site.path("store")).arg(&before).status();
    assert!(copied.is_ok_and(|status| status.success()));
    drop(secure.coordinator("127.0.0.1:0", &[]));
    let leader = secure.coordinator("127.0.0.1:0", &[]);
    let superseded = secure.coordinator("127.0.0.1:0", &["--store", &before.to_string_lossy()]);
    let access = secure.operator_path();
    let runs = |coordinator: &str| {
        let mut command = Command::new(program("evoxo"));
        command.args(["runs", "--coordinator", coordinator, "--access"]).arg(&access);
        command.output().expect("the program starts")
    };
    let [old, new] = [&superseded, &leader].map(|coordinator| coordinator.address.to_string());
    assert!(runs(&old).status.success(), "the client knows no epoch yet");
    assert!(runs(&format!("{old},{new}")).status.success());
    for addresses in [old.clone(), format!("{old},127.0.0.1:9")] {
        let refused = runs(&addresses);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("no longer leads: it says epoch 2, and a later one was seen"), "{said}");
    }
    assert!(runs(&new).status.success());
    // As after a restored backup.
    fs::remove_file(site.path("access/operator.access.epochs")).expect("the file exists");
    assert!(runs(&old).status.success());
}

/// An older copy of a store is restored, and the step `restored` is forgotten: workers have seen a later epoch and stay away. Both
/// sides say so, and the step mends it.
#[tokio::test]
async fn workers_that_stay_away_after_a_restore_are_reported() {
    let site = Site::new();
    let first = site.coordinator(&[]);
    let address = first.address.to_string();
    drop(first);
    let before = site.path("before");
    let copied = Command::new("cp").arg("-a").arg(site.path("store")).arg(&before).status();
    assert!(copied.is_ok_and(|status| status.success()));
    drop(site.coordinator_on(&address, &[]));
    let third = site.coordinator_on(&address, &[]);
    let worker = worker(&site, "seer", &address);
    says(&worker, "connected to the coordinator, session 1").await;
    drop(third);
    let copy = before.to_string_lossy().into_owned();
    let restored = site.coordinator_on(&address, &["--store", &copy]);
    says(&restored.process, "has seen epoch 3 of this store, and this coordinator leads in epoch 2").await;
    says(&worker, "no longer leads, because this worker has seen a later epoch").await;
    drop(restored);
    let mended = Command::new(program("evoxo-coordinator")).args(["restored", &copy]).output().expect("it starts");
    assert!(mended.status.success(), "{}", String::from_utf8_lossy(&mended.stderr));
    let again = site.coordinator_on(&address, &["--store", &copy]);
    says(&again.process, "worker seer").await;
}

/// As after a start without the share that both use: a client that knows both addresses takes neither cluster for the other.
#[tokio::test]
async fn tools_reject_the_addresses_of_two_clusters() {
    let site = Site::new();
    let one = site.coordinator(&[]);
    let empty = site.path("empty");
    let empty = ["--store", empty.to_str().expect("a path of plain letters")];
    // This makes the epoch of the second cluster higher.
    drop(site.coordinator(&empty));
    let two = site.coordinator(&empty);
    for both in [[&one, &two], [&two, &one]].map(|[first, next]| format!("{},{}", first.address, next.address)) {
        let runs =
            Command::new(program("evoxo")).args(["runs", "--coordinator", &both]).output().expect("the program starts");
        let said = String::from_utf8_lossy(&runs.stderr).into_owned();
        assert_eq!(runs.status.code(), Some(1), "{said}");
        assert!(said.contains("lead two different clusters"), "{said}");
        assert!([&one, &two].iter().all(|each| said.contains(&each.address.to_string())), "{said}");
    }
}

/// Three standbys on an unused store: one leads, and then another one.
#[tokio::test]
async fn one_of_several_standbys_leads() {
    let site = Site::new();
    let mut standbys: Vec<Coordinator> = (0..3).map(|_| site.coordinator(&STANDBY)).collect();
    for left in [3, 2, 1] {
        let start = Instant::now();
        let leads = loop {
            let mut leading = Vec::new();
            for (number, standby) in standbys.iter().enumerate() {
                if health(standby.address).await == ServingStatus::Serving {
                    leading.push(number);
                }
            }
            match leading.as_slice() {
                [one] => break *one,
                _ => assert!(start.elapsed() < PATIENCE, "{leading:?} of {left} lead"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        drop(standbys.remove(leads));
    }
}

/// A standby with a copy of the access directory as it is now.
pub(crate) fn secure_standby(site: &Site) -> Coordinator {
    let copied = Command::new("cp").arg("-a").arg(site.path("access")).arg(site.path("copy")).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let copy = site.path("copy");
    let copy = copy.to_str().expect("a path of plain letters");
    site.coordinator(&[STANDBY.as_slice(), &["--access", copy]].concat())
}

/// With TLS, each with a copy of the access directory.
#[tokio::test]
async fn a_secure_standby_takes_over() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let mut one = secure.coordinator("127.0.0.1:0", &[]);
    let two = secure_standby(&site);
    let (mut first, mut second) = (secure.person(one.address), secure.person(two.address));
    first.submit("echo", crate::DISPATCH).await;
    // The standby sees that the leader is alive.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let seen = first.get("echo").await;
    assert!(seen.is_ok() && !two.process.log().contains(TAKES_OVER), "{seen:?}\n{}", two.process.log());
    one.process.kill();
    assert_eq!(second.wait("echo", |_| true).await.name, "echo");
}

/// Waits until this standby says that it waits, and why.
async fn waits(standby: &Coordinator, why: &str) {
    let start = Instant::now();
    while !standby.process.log().contains(why) {
        assert!(start.elapsed() < PATIENCE, "it does not say {why:?}: {}", standby.process.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The leader is killed, and neither standby takes over. When a person starts one of them as a leader, it leads.
#[tokio::test]
async fn standbys_of_another_authority_and_in_plain_text_wait() {
    let site = Site::new();
    let (secure, other) = (Secure::init(&site, "access"), Secure::init(&site, "other"));
    let mut one = secure.coordinator("127.0.0.1:0", &[]);
    let mut strange = other.coordinator("127.0.0.1:0", &STANDBY);
    let plain = site.coordinator(&STANDBY);
    waits(&strange, "give it a new copy of the leader's access directory").await;
    waits(&plain, "start it with --access").await;
    one.process.kill();
    tokio::time::sleep(Duration::from_secs(4)).await;
    for standby in [&strange, &plain] {
        assert!(!standby.process.log().contains(TAKES_OVER), "{}", standby.process.log());
    }
    strange.process.kill();
    let started = other.coordinator("127.0.0.1:0", &[]);
    other.person(started.address).submit("echo", crate::DISPATCH).await;
    assert!(started.process.log().contains("was led under the authority"), "{}", started.process.log());
}

#[tokio::test]
async fn a_leader_with_an_unresolvable_name_is_not_superseded() {
    let site = Site::new();
    let leader = site.coordinator(&["--advertise", "nobody.invalid:7600"]);
    let standby = site.coordinator(&STANDBY);
    waits(&standby, "nobody.invalid:7600 cannot be resolved on this host").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!standby.process.log().contains(TAKES_OVER), "{}", standby.process.log());
    assert_eq!(health(leader.address).await, ServingStatus::Serving);
}

/// The completed actions in the audit log, as this coordinator returns it, each with its epoch.
async fn told(secure: &Secure<'_>, coordinator: SocketAddr) -> Vec<(String, u64)> {
    let lines = secure.audit_log(coordinator, 1000).await.lines;
    let line = |line: &String| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["what"].as_str().expect("text").to_owned(), line["epoch"].as_u64().unwrap_or(0))
    };
    lines.iter().map(line).collect()
}

/// The leader is stopped and comes back. The audit log has the lines of both hosts, and outlives the first host's own.
#[tokio::test]
async fn the_current_leaders_audit_log_names_earlier_leaders() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let one = secure.coordinator("127.0.0.1:0", &[]);
    let mut two = secure_standby(&site);
    secure.person(one.address).submit("echo", crate::DISPATCH).await;
    let stored = || {
        let mut texts =
            objects_in(&site.path("store/audit-rights")).into_iter().filter_map(|batch| fs::read(batch).ok());
        texts.any(|text| String::from_utf8_lossy(&text).contains("\"submit\""))
    };
    let start = Instant::now();
    while !stored() {
        assert!(start.elapsed() < PATIENCE, "the store gets no audit log");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    one.process.signal("STOP");
    secure.person(two.address).wait("echo", |_| true).await;
    // The first host's own directory is lost with the host.
    let at_once = told(&secure, two.address).await;
    let led = |epoch| ("lead".to_owned(), epoch);
    let place = |what: &(String, u64)| at_once.iter().position(|line| line == what);
    let submitted = place(&("submit".into(), 1));
    assert!(place(&led(1)) < submitted && submitted < place(&led(2)) && place(&led(1)).is_some(), "{at_once:?}");
    one.process.signal("CONT");
    while !told(&secure, two.address).await.contains(&("superseded".into(), 1)) {
        assert!(start.elapsed() < PATIENCE, "{:?}", told(&secure, two.address).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    two.process.signal("TERM");
    assert!(two.process.end().await.success());
    let own = fs::read_to_string(site.path("copy/audit-rights.jsonl")).expect("an audit log");
    assert!(own.lines().last().is_some_and(|line| line.contains("\"step down\"")), "{own}");
}
