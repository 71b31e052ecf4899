//! What an operator sees and does, with real programs: figures for Prometheus, logs as JSON, workers that are asked to leave,
//! health and reflection.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use evoxo_proto::v1::{DrainWorkersRequest, ListWorkersRequest};
use evoxo_tests::{
    live::{Coordinator, PATIENCE, Process, Site},
    person::{Person, digest_of_one_thread},
    programs::{self, program, workspace},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

/// Long enough to do something meanwhile: its rounds are computed one after the other, however many workers there are.
const LONG: &str = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 4000\ntasks = 8\npayload_bytes = 16\n\
                    reply_bytes = 16\n";

/// An answer of the listener for figures: status and body.
async fn ask(to: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end").expect("an answer");
    let text = String::from_utf8(answer).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, body.to_owned())
}

async fn scrape(to: SocketAddr) -> String {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    let (status, body) = ask(to, &request).await;
    assert_eq!(status, 200, "{body}");
    body
}

/// The value of a figure; 0 if there is none of that name.
fn figure(text: &str, name: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().expect("a number"))
}

/// The address of the figures, from the log.
async fn metrics_of(coordinator: &Coordinator) -> SocketAddr {
    let start = Instant::now();
    loop {
        let log = coordinator.process.log();
        let rest = log.split("figures for Prometheus at http://").nth(1);
        if let Some((address, _)) = rest.and_then(|rest| rest.split_once("/metrics")) {
            return address.parse().expect("an address");
        }
        assert!(start.elapsed() < PATIENCE, "no figures: {log}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_metrics_match_the_run() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--metrics", "0"]);
    let mut person = Person::of(coordinator.address);
    person.submit("long", LONG).await;
    person.wait("long", |run| run.rounds_total > 0).await;
    let to = metrics_of(&coordinator).await;
    let before = scrape(to).await;
    assert_eq!(figure(&before, "evoxo_runs{state=\"running\"}"), 1.0, "{before}");
    assert_eq!(figure(&before, "evoxo_run_workers{run=\"long\"}"), 0.0);
    let worker = site.worker(coordinator.address, &[]);
    let run = person.finished("long").await;
    drop(worker);
    let start = Instant::now();
    let after = loop {
        let after = scrape(to).await;
        if figure(&after, "evoxo_workers_lost_total{cause=\"connection ended\"}") == 1.0 {
            break after;
        }
        assert!(start.elapsed() < PATIENCE, "the loss is not counted:\n{after}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(figure(&after, "evoxo_tasks_done_total"), run.tasks_done as f64, "{after}");
    assert_eq!(figure(&after, "evoxo_rounds_done_total"), run.rounds_done as f64);
    assert_eq!(figure(&after, "evoxo_run_rounds{run=\"long\"}"), run.rounds_done as f64);
    assert_eq!(figure(&after, "evoxo_runs{state=\"finished\"}"), 1.0);
    assert_eq!(figure(&after, "evoxo_epoch"), 1.0);
    for name in [
        "evoxo_task_duration_seconds_count",
        "evoxo_assignment_round_trip_seconds_count",
        "evoxo_store_seconds_count{object=\"finished\"}",
        "evoxo_run_job_seconds_count{job=\"take\"}",
        "evoxo_core_event_seconds_count",
        "evoxo_received_bytes_total",
        "evoxo_sent_bytes_total",
    ] {
        assert!(figure(&after, name) > 0.0, "{name} in\n{after}");
    }
}

/// Strangers read nothing through somebody's browser, and requests for anything but figures are refused.
#[tokio::test]
async fn only_metrics_are_served_and_only_locally() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--metrics", "127.0.0.1:0"]);
    let to = metrics_of(&coordinator).await;
    let host = format!("Host: {to}\r\nConnection: close");
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned(), 421),
        ("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), 421),
        (format!("POST /metrics HTTP/1.1\r\n{host}\r\nContent-Length: 0\r\n\r\n"), 405),
        (format!("GET / HTTP/1.1\r\n{host}\r\n\r\n"), 404),
        (format!("GET /metrics HTTP/1.1\r\n{host}\r\nX: {}\r\n\r\n", "x".repeat(20_000)), 431),
    ] {
        assert_eq!(ask(to, &request).await.0, status, "{request:.80}");
    }
    // Silent connections keep others out only briefly, and the coordinator works.
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(to).await.expect("the server listens"));
    }
    assert!(scrape(to).await.contains("evoxo_build_info{"));
    drop(silent);
    // A second request within a second gets the same answer again.
    let (first, second) = (scrape(to).await, scrape(to).await);
    assert_eq!(first, second);
}

async fn drain(person: &mut Person, request: DrainWorkersRequest) -> Result<usize, Code> {
    let answer = person.client.drain_workers(request).await;
    answer.map(|answer| answer.into_inner().workers.len()).map_err(|status| status.code())
}

/// Two workers share a name, and one has another. Each leaves in order when it is named, and nothing is lost.
#[tokio::test]
async fn workers_leave_when_they_are_asked() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let mut twins = [(); 2].map(|()| site.worker(coordinator.address, &["--name", "twin"]));
    let mut other = site.worker(coordinator.address, &["--name", "other"]);
    person.worker("other").await;
    let start = Instant::now();
    while person.client.list_workers(ListWorkersRequest {}).await.expect("an answer").into_inner().workers.len() < 3 {
        assert!(start.elapsed() < PATIENCE, "a worker is missing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    person.submit("long", LONG).await;
    let run = person.wait("long", |run| run.workers == 3).await;
    assert!(run.rounds_done < run.rounds_total);
    let twin = DrainWorkersRequest { names: vec!["twin".into()], ..DrainWorkersRequest::default() };
    assert_eq!(drain(&mut person, twin).await, Err(Code::FailedPrecondition));
    let session = person.worker("twin").await.session;
    let one = DrainWorkersRequest { sessions: vec![session], ..DrainWorkersRequest::default() };
    assert_eq!(drain(&mut person, one.clone()).await, Ok(1));
    let gone = first_to_end(&mut twins).await;
    let log = twins[gone].log();
    assert_eq!(twins[gone].end().await.code(), Some(0), "{log}");
    assert!(log.contains("an operator requested it") && log.contains("all results were accepted"), "{log}");
    assert!(!log.contains("WARN"), "a normal exit is not a warning: {log}");
    assert_eq!(drain(&mut person, one).await, Err(Code::NotFound));
    // For a whole host, the command-line client waits.
    let address = coordinator.address.to_string();
    let mut tool = site.program("evoxo", &["drain", "--host", "127.0.0.1", "--wait", "--coordinator", &address]);
    assert_eq!(tool.end().await.code(), Some(0), "{}", tool.log());
    assert_eq!(other.end().await.code(), Some(0), "{}", other.log());
    assert_eq!(twins[1 - gone].end().await.code(), Some(0));
    assert_eq!(person.lost().await, []);
    assert!(!coordinator.process.log().contains("WARN"), "{}", coordinator.process.log());
    // A new worker continues their work.
    let _new = site.worker(coordinator.address, &["--name", "twin"]);
    assert_eq!(person.finished("long").await.digest, digest_of_one_thread(LONG));
}

/// A command of the client: its status, and what it prints.
fn said(site: &Site, coordinator: &Coordinator, arguments: &[&str]) -> (Option<i32>, String) {
    let address = coordinator.address.to_string();
    let (text, status) = programs::said(&site.path("."), &[arguments, &["--coordinator", &address]].concat());
    (status, text)
}

/// A host is cordoned. Its worker gets no tasks, also after it and the coordinator were restarted, until that is ended; and
/// meanwhile a task that hangs on a stopped worker can be seen.
#[tokio::test]
async fn a_cordon_lasts_and_tasks_say_where_they_are() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let worker = site.worker(coordinator.address, &["--name", "one"]);
    person.worker("one").await;
    let (status, log) = said(&site, &coordinator, &["drain", "one", "--cordon", "--wait"]);
    assert!(status == Some(0) && log.contains("worker one: no more tasks from now on"), "{log}");
    person.submit("long", LONG).await;
    let waits = person.wait("long", |run| !run.message.is_empty()).await;
    assert!(waits.message.contains("workers that could compute it are cordoned (one)"), "{}", waits.message);
    drop(worker);
    let _worker = site.worker(coordinator.address, &["--name", "one"]);
    coordinator.process.signal("TERM");
    assert_eq!(coordinator.process.end().await.code(), Some(0));
    let address = coordinator.address.to_string();
    let coordinator = site.coordinator_on(&address, &[]);
    let mut person = Person::of(coordinator.address);
    let one = person.worker("one").await;
    assert!(one.cordon.is_some_and(|cordon| cordon.by == "127.0.0.1" && cordon.since > 1_700_000_000));
    let (_, log) = said(&site, &coordinator, &["workers"]);
    assert!(log.contains("cordoned") && log.contains("worker one (1 worker)"), "{log}");
    // Another one computes.
    let other = site.worker(coordinator.address, &["--name", "other"]);
    person.wait("long", |run| run.rounds_done > 0).await;
    other.signal("STOP");
    let start = Instant::now();
    loop {
        let (_, log) = said(&site, &coordinator, &["tasks", "long", "--json"]);
        let tasks: Value = serde_json::from_str(&log).unwrap_or_else(|error| panic!("{error}: {log}"));
        let batches = tasks["batches"].as_array().expect("a list");
        assert!(start.elapsed() < PATIENCE && batches.iter().all(|batch| batch["worker"] == "other"), "{log}");
        if batches.first().is_some_and(|batch| batch["age_ms"].as_u64() > Some(1000)) {
            break;
        }
    }
    let (_, log) = said(&site, &coordinator, &["tasks", "long"]);
    assert!(log.contains("worker") && log.contains("other ("), "{log}");
    other.signal("CONT");
    let (status, log) = said(&site, &coordinator, &["drain", "one", "--uncordon"]);
    assert!(status == Some(0) && log.contains("one (session") && log.contains("gets tasks again"), "{log}");
    let (status, log) = said(&site, &coordinator, &["drain", "one", "--uncordon"]);
    assert!(status == Some(1) && log.contains("there is no cordon of worker \"one\""), "{log}");
    drop(other);
    assert_eq!(person.finished("long").await.digest, digest_of_one_thread(LONG));
}

/// The index of the process that ends first.
async fn first_to_end(processes: &mut [Process]) -> usize {
    let start = Instant::now();
    loop {
        if let Some(ended) = processes.iter_mut().position(Process::has_ended) {
            return ended;
        }
        assert!(start.elapsed() < PATIENCE, "none ends");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The lines of a log in JSON.
fn lines(process: &Process) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    process.log().lines().map(read).collect()
}

fn line<'a>(lines: &'a [Value], part: &str) -> &'a Value {
    let found = lines.iter().find(|line| line["message"].as_str().is_some_and(|message| message.contains(part)));
    found.unwrap_or_else(|| panic!("no line {part:?}: {lines:#?}"))
}

/// The lines of both sides have the same fields, and only trouble is a warning.
#[tokio::test]
async fn logs_of_both_sides_can_be_correlated() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&["--log-format", "json"]);
    let mut person = Person::of(coordinator.address);
    let mut worker = site.worker(coordinator.address, &["--log-format", "json", "--name", "a \"b\"\\"]);
    person.submit("long", LONG).await;
    person.wait("long", |run| run.rounds_done > 0).await;
    let mut killed = site.worker(coordinator.address, &["--name", "killed"]);
    person.worker("killed").await;
    killed.kill();
    let start = Instant::now();
    while person.lost().await.is_empty() {
        assert!(start.elapsed() < PATIENCE, "the killed worker is not reported as lost");
    }
    person.finished("long").await;
    worker.signal("TERM");
    assert_eq!(worker.end().await.code(), Some(0));
    coordinator.process.signal("TERM");
    assert_eq!(coordinator.process.end().await.code(), Some(0));
    let (ours, theirs) = (lines(&coordinator.process), lines(&worker));
    let (joined, connected) = (line(&ours, "joined with"), line(&theirs, "connected to the coordinator"));
    for field in ["worker", "session"] {
        assert!(!joined[field].is_null(), "{joined}");
        assert_eq!(joined[field], connected[field], "{field}");
    }
    assert_eq!(joined["worker"], "a \"b\"\\");
    assert_eq!(line(&ours, "long is finished")["run"], "long");
    let missed = line(&ours, "is lost with");
    assert_eq!((&missed["worker"], &missed["level"]), (&"killed".into(), &"WARN".into()));
    for line in ours.iter().chain(&theirs) {
        assert!(line["timestamp"].is_string() && line["message"].is_string(), "{line}");
        assert!(line["level"] == "INFO" || line == missed, "{line}");
    }
}

/// Tools that know nothing about evoxo can see its protocol, and whether each service works.
#[tokio::test]
async fn services_are_described_and_healthy() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let channel = tonic::transport::Endpoint::new(format!("http://{}", coordinator.address)).expect("a good URL");
    let channel = channel.connect().await.expect("the server listens");
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let services = ["evoxo.v1.WorkerService", "evoxo.v1.RunService", "evoxo.v1.AccessService"];
    for service in services {
        let request = tonic_health::pb::HealthCheckRequest { service: service.into() };
        let status = health.check(request).await.expect("an answer").into_inner().status();
        assert_eq!(status, tonic_health::pb::health_check_response::ServingStatus::Serving, "{service}");
    }
    let mut reflection = ServerReflectionClient::new(channel);
    let asked = ["list", "evoxo.v1.RunService"].map(|what| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(match what {
            "list" => MessageRequest::ListServices(String::new()),
            symbol => MessageRequest::FileContainingSymbol(symbol.into()),
        }),
    });
    let mut answers =
        reflection.server_reflection_info(tokio_stream::iter(asked)).await.expect("an answer").into_inner();
    let mut next = async || answers.message().await.expect("an answer").and_then(|answer| answer.message_response);
    let Some(MessageResponse::ListServicesResponse(list)) = next().await else { panic!("a list") };
    let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
    assert!(services.iter().all(|service| names.contains(service)), "{names:?}");
    let Some(MessageResponse::FileDescriptorResponse(files)) = next().await else { panic!("a file") };
    let file = files.file_descriptor_proto.concat();
    assert!(String::from_utf8_lossy(&file).contains("DrainWorkers"));
}

/// In a real terminal: lists, keys, orders, a change of size. However it ends, the terminal is restored.
#[tokio::test]
async fn top_in_a_terminal() {
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|python| python.status.success()) {
        println!("left out: there is no python3");
        return;
    }
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("long", &LONG.replace("4000", "1000000")).await;
    let _stays = site.worker(coordinator.address, &["--name", "lab-a"]);
    let mut leaves = site.worker(coordinator.address, &["--name", "lab-b"]);
    person.worker("lab-a").await;
    person.worker("lab-b").await;
    let script = workspace().join("tests/tests/top.py");
    let mut command = std::process::Command::new("python3");
    command.arg(script).arg(program("evoxo")).arg(coordinator.address.to_string());
    command.arg(coordinator.process.id().to_string());
    let mut ran = site.start("top", &mut command);
    assert_eq!(ran.end().await.code(), Some(0), "{}", ran.log());
    assert_eq!(leaves.end().await.code(), Some(0));
    // Without a terminal there is a sentence.
    let mut without = site.program("evoxo", &["top", "--coordinator", &coordinator.address.to_string()]);
    assert_eq!(without.end().await.code(), Some(2));
    assert!(without.log().contains("top needs a terminal"), "{}", without.log());
}
