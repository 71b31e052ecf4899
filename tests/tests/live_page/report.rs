//! The report of a run on the page: equal to that of one thread at the end, unfinished before that, with limits that protect
//! runs.

use std::{net::SocketAddr, time::Duration};

use evoxo_common::{
    conclusion::sentence,
    experiment::{Config, Replica},
    local,
    report::Report,
    stats::{Sample, holm, t_test},
};
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread},
    registry,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::http::{Answer, get, post, send};
use crate::RUN;

/// A league that lasts longer than a test.
const LEAGUE: &str = "experiment = \"league\"\nreplicas = 1\n[settings]\ngame = \"score-four\"\npairs = 40000\n\
    pairs_a_round = 1\n[[players]]\nwho = \"random\"\n[[players]]\nwho = \"filtered\"\n[[players]]\nwho = \"alpha-beta:2\"\n";

/// Requests a part of a run's report until it satisfies `wanted`, because a report is shown for some seconds after it was
/// made.
async fn asked(to: SocketAddr, path: &str, wanted: impl Fn(&Value) -> bool) -> Answer {
    let found = async {
        loop {
            let answer = get(to, path).await;
            if answer.status == 200 && wanted(&answer.json()) {
                return answer;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, found).await.expect("a report that satisfies the condition")
}

/// The report of a run's replicas on one thread.
fn right(text: &str) -> (Config, Vec<Replica>, Report) {
    let config = Config::parse(registry(), "test", text, &[]).expect("a good file");
    let replicas = local::run(&config).expect("tasks that are computed");
    let report = config.report(&replicas);
    (config, replicas, report)
}

/// Checks that a report on the page has the tables and notes of this one, each table completely.
fn assert_same(shown: &Value, report: &Report) {
    let tables =
        report.tables.iter().map(|it| json!({"title": it.title, "header": it.header, "rows": it.rows, "more": 0}));
    assert_eq!(shown["tables"], tables.collect::<Value>());
    assert_eq!(shown["notes"], json!(report.notes));
}

#[tokio::test]
async fn the_final_report_matches_a_run_on_one_thread() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&["--checkpoint-interval", "100ms"]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    let none = asked(coordinator.address, "/api/runs/run/report", |_| true).await.json();
    assert_eq!((&none["state"], &none["finished"], &none["replicas"]), (&json!("unfinished"), &json!(0), &json!(6)));
    assert_eq!(get(coordinator.address, "/api/runs/run/plots").await.json()["plots"], json!([]));
    let worker = site.worker(coordinator.address, &[]);
    person.finished("run").await;
    let (config, _, report) = right(RUN);
    let whole = |found: &Value| found["state"] == "finished";
    assert_same(&asked(coordinator.address, "/api/runs/run/report", whole).await.json(), &report);
    // A coordinator that has computed nothing of the run makes the same report from the store. There is no checkpoint any
    // more.
    coordinator.process.kill();
    drop(worker);
    let coordinator = site.coordinator(&[]);
    let answer = get(coordinator.address, "/api/runs/run/report").await;
    let shown = answer.json();
    assert_same(&shown, &report);
    assert_eq!((&shown["finished"], &shown["digest"]), (&json!(6), &json!(digest_of_one_thread(RUN))));
    let mut result = report.json.clone();
    result["digest"] = shown["digest"].clone();
    assert_eq!(shown["conclusion"], json!(sentence(&config, &result)));
    for _ in 0..2 {
        // The second answer is the one that was kept.
        let told = get(coordinator.address, "/api/runs/run/conclusion").await.json();
        assert_eq!(told, json!({ "conclusion": shown["conclusion"] }));
    }
    assert_eq!(get(coordinator.address, "/api/runs/none/conclusion").await.status, 404);
    let plots = get(coordinator.address, "/api/runs/run/plots").await.json();
    let names: Vec<&Value> = plots["plots"].as_array().into_iter().flatten().map(|plot| &plot["name"]).collect();
    let right: Vec<Value> = report.figures.iter().map(|figure| json!(figure.name)).collect();
    assert!(!right.is_empty() && names.into_iter().eq(&right), "{right:?}");
    let svg = plots["plots"][0]["svg"].as_str().expect("a picture");
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("generation"), "{svg}");
    // The browser has the report already.
    let tag = answer.header("etag").expect("a tag");
    let again = format!("GET /api/runs/run/report HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n");
    assert_eq!(send(coordinator.address, &again).await.status, 304);
    for part in ["report", "plots"] {
        assert_eq!(get(coordinator.address, &format!("/api/runs/none/{part}")).await.status, 404);
    }
}

/// A league that can be watched: while it is played, its ratings with intervals are those of the stored games.
#[tokio::test]
async fn tables_of_a_league_appear_while_it_is_played() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--checkpoint-interval", "100ms"]);
    let mut person = Person::of(coordinator.address);
    person.submit("league", LEAGUE).await;
    let path = "/api/runs/league/report";
    let none = asked(coordinator.address, path, |_| true).await.json();
    assert_eq!((&none["finished"], &none["tables"][0]["title"]), (&json!(0), &json!("No games yet")));
    let _worker = site.worker(coordinator.address, &[]);
    let interval = |found: &Value| found["tables"][0]["rows"][2][2].as_str().unwrap_or("-").to_owned();
    let seen =
        |found: &Value| (0..3).any(|row| found["tables"][0]["rows"][row][2].as_str().is_some_and(|it| it != "-"));
    let first = asked(coordinator.address, path, seen).await.json();
    assert_eq!(first["state"], "unfinished", "{first}");
    assert_eq!(first["tables"][0]["header"][2], "95 % interval");
    let conclusion = first["conclusion"].as_str().expect("a sentence");
    assert!(conclusion.starts_with("No replica is finished yet. "), "{conclusion}");
    // The report changes while games are played.
    let newer = asked(coordinator.address, path, |found| found["tables"] != first["tables"]).await.json();
    assert_eq!((&newer["state"], newer["tables"].as_array().map(Vec::len)), (&json!("unfinished"), Some(3)));
    assert!(!interval(&newer).is_empty());
    assert_eq!(person.get("league").await.expect("the coordinator answers").state(), RunState::Running);
    // A paused run has the report of what was stored, and so has a cancelled one.
    for verb in ["pause", "cancel"] {
        assert_eq!(post(coordinator.address, &format!("/api/runs/league/{verb}")).await.status, 200);
        let still = asked(coordinator.address, path, seen).await.json();
        assert_eq!(still["state"], "unfinished", "{verb}");
    }
}

/// A request for the report of a run that is too large gets a sentence, and many requests at once wait for one another. The
/// run continues.
#[tokio::test]
async fn reports_that_are_too_large_are_rejected_and_slow_no_run() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--checkpoint-interval", "100ms"]);
    let (to, mut person) = (coordinator.address, Person::of(coordinator.address));
    let large = "experiment = \"dispatch\"\nreplicas = 1001\n[settings]\nrounds = 1\ntasks = 1\n";
    person.submit("large", large).await;
    person.submit("run", RUN).await;
    asked(to, "/api/runs/run/report", |_| true).await;
    let refused = get(to, "/api/runs/large/report").await;
    let why = refused.json()["error"].as_str().expect("a sentence").to_owned();
    assert_eq!(refused.status, 429);
    assert!(why.starts_with("this run has more than 1000 replicas, or more than 64 MiB stored"), "{why}");
    let askers = (0..100).map(|number| {
        tokio::spawn(async move {
            let part = if number % 2 == 0 { "report" } else { "plots" };
            for _ in 0..10 {
                let path = format!("/api/runs/{}/{part}", if number % 10 == 0 { "large" } else { "run" });
                let answer = get(to, &path).await;
                assert!(matches!(answer.status, 200 | 429 | 503), "{}: {}", answer.status, answer.text());
            }
        })
    });
    let askers: Vec<_> = askers.collect();
    let _worker = site.worker(to, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(RUN));
    assert_eq!(person.finished("large").await.digest, digest_of_one_thread(large));
    for asker in askers {
        asker.await.expect("the client got its answers");
    }
    asked(to, "/api/runs/run/report", |found| found["state"] == "finished").await;
    assert_eq!(get(to, "/api/runs/large/report").await.status, 429);
    assert!(!coordinator.process.log().contains("panicked"), "{}", coordinator.process.log());
}

/// Two runs are compared arm by arm, with the library's test; those with one seed by pairs of replicas.
#[tokio::test]
async fn two_finished_runs_are_compared() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--checkpoint-interval", "100ms"]);
    let (to, mut person) = (coordinator.address, Person::of(coordinator.address));
    let other = RUN.replace("seed = 5", "seed = 6").replace("population = 100", "population = 60");
    person.submit("one", RUN).await;
    person.submit("two", &other).await;
    person.submit("three", &RUN.replace("population = 100", "population = 60")).await;
    let path = "/api/runs/one/comparison?with=two";
    let why = |found: &Value| found["why"].as_str().unwrap_or_default().to_owned();
    let before = asked(to, path, |_| true).await.json();
    assert_eq!((&before["state"], &before["tests"]), (&json!("unfinished"), &json!([])));
    assert!(why(&before).starts_with("the final values of all replicas"), "{before}");
    let _worker = site.worker(to, &[]);
    for name in ["one", "two", "three"] {
        person.finished(name).await;
    }
    let told = asked(to, path, |found| found["state"] == "finished").await.json();
    let [one, two] = [RUN, &other].map(|text| {
        let (config, replicas, _) = right(text);
        let column = config.kind.primary_metric;
        let ends = |arm: &str| {
            let own = replicas.iter().filter(|replica| replica.arm() == arm);
            own.filter_map(|replica| config.kind.figure(column, replica.history())).collect::<Vec<f64>>()
        };
        config.arms.iter().map(|arm| ends(&arm.name)).collect::<Vec<Vec<f64>>>()
    });
    let sample = |values: &[f64]| Sample::of(values).expect("values");
    let tests: Vec<_> = one.iter().zip(&two).filter_map(|(one, two)| t_test(sample(two), sample(one))).collect();
    let p = holm(&tests.iter().map(|test| test.p).collect::<Vec<f64>>());
    assert_eq!(told["tests"].as_array().map(Vec::len), Some(2), "{told}");
    for (index, (test, arm)) in tests.iter().zip(["one", "two"]).enumerate() {
        let shown = &told["tests"][index];
        let (mean, half_width) = (&shown["difference"]["mean"], &shown["difference"]["half_width"]);
        assert_eq!((&shown["arm"], mean, half_width), (&json!(arm), &json!(test.mean), &json!(test.half_width)));
        assert_eq!((&shown["p"], &shown["one"]["replicas"]), (&json!(p[index]), &json!(3)), "{shown}");
    }
    let path = "/api/runs/one/comparison?with=three";
    let same = asked(to, path, |found| found["state"] == "finished").await.json();
    let test = same["test"].as_str().unwrap_or_default();
    assert!(test.starts_with("a paired t-test") && told["test"] == "Welch's test", "{same}");
    assert_eq!((why(&same), same["tests"].as_array().map(Vec::len)), (String::new(), Some(2)), "{same}");
    for (query, status) in [("?with=none", 404), ("", 400), ("?with=", 404), ("?with=one", 200)] {
        assert_eq!(get(to, &format!("/api/runs/one/comparison{query}")).await.status, status, "{query}");
    }
    assert_eq!(get(to, "/api/runs/none/comparison?with=one").await.status, 404);
}
