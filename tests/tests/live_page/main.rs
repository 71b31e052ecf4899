//! The page of a real coordinator, with real sockets: what it answers, whom it refuses, and that it does no harm to runs.

mod door;
pub(crate) mod http;
mod limits;
mod play;
mod report;

use std::time::Duration;

use evoxo_common::{
    experiment::{Config, Replica, curve},
    local,
};
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    registry,
};
use http::{Answer, Events, get, own, post, send};
use serde_json::{Value, json};

/// Two arms, some seconds in total.
pub(crate) const RUN: &str = "experiment = \"invincible\"\nseed = 5\nreplicas = 3\n[settings]\npopulation = 100\n\
    games = 200\ngenerations = 12\nslice = 20\n[arms.one]\npenalty = 1\n[arms.two]\npenalty = 6.5\n";

fn sorted_names(runs: &Value) -> Vec<&str> {
    runs.as_array().expect("a list").iter().filter_map(|run| run["name"].as_str()).collect()
}

#[tokio::test]
async fn files_have_types_and_tags_and_answers_have_security_headers() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let index = get(coordinator.address, "/").await;
    assert_eq!((index.status, index.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let named = |text: &str| -> Vec<String> {
        let parts = text.split(['"', '\'']);
        let path =
            |part: &str| part.strip_prefix("./").map_or_else(|| part.to_owned(), |name| format!("/files/{name}"));
        parts.map(path).filter(|part| part.starts_with("/files/")).collect()
    };
    let (mut known, mut open) = (Vec::new(), named(&index.text()));
    // Every file that a file refers to exists.
    while let Some(path) = open.pop() {
        if known.contains(&path) {
            continue;
        }
        let file = get(coordinator.address, &path).await;
        assert_eq!(file.status, 200, "{path}");
        let media = file.header("content-type").expect("a type");
        let right =
            [("js", "text/javascript; charset=utf-8"), ("css", "text/css; charset=utf-8"), ("svg", "image/svg+xml")];
        assert!(right.iter().any(|(end, of_end)| path.ends_with(end) && media == *of_end), "{path}: {media}");
        open.extend(named(&file.text()));
        known.push(path);
    }
    assert!(known.len() > 10, "{known:?}");
    let tag = index.header("etag").expect("a tag").to_owned();
    let again =
        send(coordinator.address, &format!("GET / HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = send(coordinator.address, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    for (path, status) in
        [("/", 200), ("/api/runs", 200), ("/nothing", 404), ("/files/../Cargo.toml", 404), ("/api/runs/x", 404)]
    {
        let answer = get(coordinator.address, path).await;
        assert_eq!(answer.status, status, "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[tokio::test]
async fn foreign_host_names_and_origins_are_rejected() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--page-host", "lab.example"]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    for (host, status) in [("localhost:1", 200), ("lab.example", 200), ("evil.example", 421), ("10.0.0.1:7600", 421)] {
        let answer = send(coordinator.address, &format!("GET /api/runs HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!((answer.status, answer.text().contains("\"run\"")), (status, status == 200), "{host}");
    }
    let stranger = format!("http://evil.example:{}", coordinator.address.port());
    for origin in ["", "Origin: null\r\n", &format!("Origin: {stranger}\r\n"), "Origin: http://localhost:1\r\n"] {
        let ask = format!("POST /api/runs/run/cancel HTTP/1.1\r\nHost: {}\r\n{origin}\r\n", coordinator.address);
        assert_eq!(send(coordinator.address, &ask).await.status, 403, "{origin}");
    }
    assert_eq!(person.get("run").await.expect("the coordinator answers").state(), RunState::Running);
    // The page's own request is accepted.
    assert_eq!(post(coordinator.address, "/api/runs/run/cancel").await.status, 200);
    assert_eq!(person.get("run").await.expect("the coordinator answers").state(), RunState::Cancelled);
}

#[tokio::test]
async fn the_page_pauses_resumes_and_cancels_a_run() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    for (verb, state) in [("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")] {
        let answer = post(coordinator.address, &format!("/api/runs/run/{verb}")).await;
        assert_eq!((answer.status, answer.json()["state"].clone()), (200, json!(state)), "{verb}");
        let reading = get(coordinator.address, &format!("/api/runs/run/{verb}")).await;
        assert_eq!((reading.status, reading.header("allow")), (405, Some("POST")));
    }
    let late = post(coordinator.address, "/api/runs/run/pause").await;
    assert_eq!(late.status, 409);
    assert!(late.json()["error"].as_str().is_some_and(|why| why.contains("is cancelled")), "{}", late.text());
    assert_eq!(post(coordinator.address, "/api/runs/none/pause").await.status, 404);
    assert_eq!(post(coordinator.address, "/api/runs").await.status, 405);
}

/// The worker leaves as on SIGTERM, and another one continues.
#[tokio::test]
async fn the_page_asks_a_worker_to_leave() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let to = coordinator.address;
    let (mut ant, _bee) = (site.worker(to, &["--name", "ant"]), site.worker(to, &["--name", "bee"]));
    let mut person = Person::of(to);
    person.submit("run", RUN).await;
    let session = person.worker("ant").await.session;
    person.worker("bee").await;
    for path in ["workers/x/drain", "workers/999999/drain", "workers/-1/drain"] {
        assert_eq!(post(to, &format!("/api/{path}")).await.status, 404, "{path}");
    }
    let path = format!("/api/workers/{session}/drain");
    assert_eq!(get(to, &path).await.status, 405);
    let stranger = format!("POST {path} HTTP/1.1\r\nHost: {to}\r\nOrigin: http://evil.example\r\n\r\n");
    assert_eq!(send(to, &stranger).await.status, 403);
    let asked = post(to, &path).await;
    assert_eq!((asked.status, asked.json()["workers"][0]["draining"].clone()), (200, json!(true)));
    assert!(ant.end().await.success(), "{}", ant.log());
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(RUN));
}

/// The curves of a run are those of its report, even on a coordinator that was restarted.
#[tokio::test]
async fn curves_match_a_run_on_one_thread() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(RUN));
    let config = Config::parse(registry(), "test", RUN, &[]).expect("a good file");
    let replicas = local::run(&config).expect("tasks that are computed");
    coordinator.process.kill();
    let coordinator = site.coordinator(&[]);
    let column = config.kind.primary_metric;
    let answer = get(coordinator.address, &format!("/api/runs/run/curves?column={column}")).await;
    let seen = answer.json();
    for (arm, place) in config.arms.iter().zip(0..) {
        let of_arm: Vec<&Replica> = replicas.iter().filter(|replica| replica.arm() == arm.name).collect();
        let right = curve(&arm.name, &of_arm, column);
        assert_eq!((right.points.len(), of_arm.len()), (12, 3));
        let told = &seen["arms"][place];
        assert_eq!((told["name"].as_str(), told["count"].clone()), (Some(arm.name.as_str()), json!(vec![3; 12])));
        for (point, at) in right.points.iter().zip(0..) {
            for (name, value) in [("mean", point.mean), ("low", point.low), ("high", point.high), ("x", point.x)] {
                let shown = told[name][at].as_f64().expect("a number");
                assert!((shown - value).abs() <= 1e-6 * value.abs(), "{name} {at}: {shown}, not {value}");
            }
        }
        let rows = get(coordinator.address, &format!("/api/runs/run/history?arm={place}&replica=1&from_row=10")).await;
        assert_eq!(rows.json()["rows"], json!(of_arm[1].history()[10..]));
    }
    let listed = get(coordinator.address, "/api/runs/run/replicas").await.json();
    assert_eq!(listed["replicas"].as_array().map(Vec::len), Some(6));
    assert!(
        listed["replicas"].as_array().into_iter().flatten().all(|one| one["finished"] == true && one["rows"] == 12)
    );
    // The browser has the curves already.
    let tag = answer.header("etag").expect("a tag");
    let again =
        format!("GET /api/runs/run/curves?column={column} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n");
    assert_eq!(send(coordinator.address, &again).await.status, 304);
    for bad in [
        "curves",
        "curves?column=99",
        "curves?column=-1",
        "curves?column=1&points=x",
        "history?arm=0",
        "replicas?from=x",
    ] {
        assert_eq!(get(coordinator.address, &format!("/api/runs/run/{bad}")).await.status, 400, "{bad}");
    }
    let missing =
        ["curves?column=0&from_row=18446744073709551615", "history?arm=9&replica=4294967295", "replicas?from=99999999"];
    let statuses = missing.map(|path| format!("/api/runs/run/{path}"));
    assert_eq!(get(coordinator.address, &statuses[0]).await.status, 200);
    assert_eq!(get(coordinator.address, &statuses[1]).await.status, 404);
    assert_eq!(get(coordinator.address, &statuses[2]).await.status, 200);
}

/// First the whole state, then changes, at most twice a second: workers and what they compute, and the loss of one.
#[tokio::test]
async fn events_report_changes() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut events = Events::open(coordinator.address).await;
    let empty = events.next().await;
    assert_eq!((empty["whole"].clone(), empty["runs"].clone()), (json!(true), json!([])));
    let begun = tokio::time::Instant::now();
    let mut worker = site.worker(coordinator.address, &["--name", "desk"]);
    let mut person = Person::of(coordinator.address);
    // The run ends with the test.
    person.submit("run", &RUN.replace("generations = 12", "generations = 100000")).await;
    let (mut messages, mut last) = (0, empty["number"].as_u64());
    let (mut seen_run, mut seen_worker) = (false, false);
    while !(seen_run && seen_worker) {
        let event = events.next().await;
        messages += 1;
        assert!(event["whole"] == false && event["number"].as_u64() > last, "{event}");
        last = event["number"].as_u64();
        seen_run |= sorted_names(&event["runs"]) == ["run"] && event["runs"][0]["rounds_done"].as_u64() > Some(0);
        let computes = |worker: &Value| worker["name"] == "desk" && worker["runs"] == json!(["run"]);
        seen_worker |= event["workers"].as_array().expect("a list").iter().any(computes);
    }
    let most = begun.elapsed().as_millis() / 450 + 2;
    assert!(messages <= most, "{messages} messages in {:?}", begun.elapsed());
    // A second viewer first gets the whole state, and then the same changes.
    let mut second = Events::open(coordinator.address).await;
    assert_eq!(second.next().await["whole"], true);
    // The page of the run says which worker has its tasks.
    let tasks = async || get(coordinator.address, "/api/runs/run/tasks").await;
    loop {
        let tasks = tasks().await.json();
        let batches = tasks["batches"].as_array().expect("a list");
        if batches.iter().any(|batch| batch["worker"] == "desk" && batch["age_ms"].is_u64()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(get(coordinator.address, "/api/runs/none/tasks").await.status, 404);
    worker.kill();
    for viewer in [&mut events, &mut second] {
        loop {
            let event = viewer.next().await;
            let lost = |news: &Value| {
                news["topic"] == "worker lost" && news["sentence"].as_str().is_some_and(|it| it.contains("desk"))
            };
            if event["news"].as_array().expect("a list").iter().any(lost) {
                break;
            }
        }
    }
    assert_eq!(post(coordinator.address, "/api/runs/run/cancel").await.status, 200);
    person
        .client
        .cancel(evoxo_proto::v1::CancelRequest { name: "run".into(), delete: true })
        .await
        .expect("it is deleted");
    loop {
        let event = events.next().await;
        if event["gone_runs"] == json!(["run"]) {
            break;
        }
        assert_eq!(event["gone_runs"], json!([]));
    }
}

#[tokio::test]
async fn without_a_page_only_grpc_is_served() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--no-page"]);
    let answer = send(coordinator.address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!((answer.status, answer.body.len()), (0, 0));
    assert!(Person::of(coordinator.address).get("x").await.is_err_and(|status| status.code() == tonic::Code::NotFound));
}

/// `evoxo run` prints the address of its page.
#[tokio::test]
async fn evoxo_run_prints_the_address_of_its_page() {
    let site = Site::new();
    std::fs::write(site.path("run.toml"), RUN.replace("generations = 12", "generations = 4000")).expect("a file");
    let run = site.program("evoxo", &["run", "run.toml", "--workers", "1", "--out", "out"]);
    let address = loop {
        let log = run.log();
        if let Some(rest) = log.split("watch it at http://").nth(1) {
            break rest.split(['\n', '/']).next().expect("an address").parse().expect("an address");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let answer: Answer = get(address, "/api/runs").await;
    assert!(["run", ""].contains(&sorted_names(&answer.json()["runs"]).first().copied().unwrap_or_default()));
    assert_eq!(own(address, "GET", "/").await.status, 200);
    drop(run);
    let mut quiet = site
        .program("evoxo", &["run", "run.toml", "--workers", "1", "--no-page", "--set", "generations=2", "--out", "2"]);
    assert!(quiet.end().await.success() && !quiet.log().contains("http://"), "{}", quiet.log());
}
