//! The served text is valid for Prometheus: a strict reader of the format.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use evoxo_access::Role;
use evoxo_proto::v1::{self, RunState};
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    snapshot::{RUNS_MAX, WORKERS_MAX},
    *,
};
use crate::access::Expiries;
use crate::core::{AttemptEnd, Attempts, Figures, StoreFault, Tally, View, Write};

/// Reads the values by metric and labels. Panics if a line is not valid OpenMetrics text.
fn read(text: &str) -> BTreeMap<String, f64> {
    let (mut types, mut values, mut done) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let (body, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    let mut family = String::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (what, rest) = comment.split_once(' ').unwrap();
            let (name, rest) = rest.split_once(' ').unwrap();
            assert!(name.starts_with("evoxo_") && !name.ends_with("_total"), "{line}");
            if what == "HELP" {
                assert!(done.insert(name.to_owned()), "{name} is described twice");
                assert!(!rest.contains(['\\', '\n', '"']) || rest.matches('"').count() == 2, "{line}");
                name.clone_into(&mut family);
            }
            assert_eq!(name, family, "a family's lines are adjacent");
            match what {
                "TYPE" => drop(types.insert(name.to_owned(), rest.to_owned())),
                "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{line}"),
                "HELP" => {}
                other => panic!("{other}"),
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (metric, labels) = match name.split_once('{') {
            Some((metric, labels)) => (metric, check_labels(labels.strip_suffix('}').unwrap())),
            None => (name, Vec::new()),
        };
        let suffixes: &[&str] = match types[&family].as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("{other}"),
        };
        assert!(suffixes.iter().any(|suffix| metric == format!("{family}{suffix}")), "{line} is not of {family}");
        assert!(labels.iter().collect::<BTreeSet<_>>().len() == labels.len(), "{line}");
        let value: f64 = value.parse().unwrap();
        assert!(value >= 0.0, "{line}");
        assert_eq!(values.insert(name.to_owned(), value), None, "{name} has two values");
    }
    values
}

/// The names of the labels. Panics unless their values are correctly quoted and escaped.
fn check_labels(mut rest: &str) -> Vec<String> {
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        names.push(name.to_owned());
        let mut escaped = false;
        let end = value.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            assert!(!escaped || matches!(byte, b'"' | b'\\' | b'n'));
            escaped = byte == b'\\' && !escaped;
            ends
        });
        rest = value[end.unwrap() + 1..].trim_start_matches(',');
    }
    names
}

fn view(name: &str, state: RunState) -> Arc<View> {
    let run = v1::Run { name: name.into(), state: state.into(), rounds_done: 7, ..v1::Run::default() };
    Arc::new(View { run, prepared: None })
}

fn snapshot(runs: Vec<Arc<View>>) -> Snapshot {
    let mut tally = Tally { tasks_done: 5, lost: [("silent", 3)].into(), ..Tally::default() };
    [50, 20_000, 1_000_000_000_000].into_iter().for_each(|us| tally.task.note_us(us));
    tally.attempts.add(AttemptEnd::TimedOut, 6);
    let mut slow = Attempts::default();
    slow.add(AttemptEnd::TimedOut, 5);
    let well = (0..WORKERS_MAX).map(|number| (format!("a{number}"), Attempts::default()));
    let attempts = well.chain([("slow".to_owned(), slow)]).collect();
    let limits = vec![("runs", 9, 1024)];
    let unsaved_ms = [("a".to_owned(), 7900), ("no longer shown".to_owned(), 1)].into();
    let known = Figures { tally, attempts, limits, unsaved_ms, ..Figures::default() };
    let figures = Figures { workers_idle: 2, tasks_out: 4, workers_noticed: 1, ..known };
    Snapshot { figures, runs, epoch: Some(3), healthy: true }
}

/// All figures of a leader with these runs.
fn written(meters: &Meters, runs: Vec<Arc<View>>) -> String {
    let identity = ("0123456789ab".parse().unwrap(), "lab7".to_owned(), Role::Worker, 90);
    let tokens = vec![("ba9876543210".parse().unwrap(), Role::Viewer, 80)];
    let expiries = Expiries { own: vec![("authority", 1000), ("server", 100)], identities: vec![identity], tokens };
    let process = Process::new(1, true, Some(5_000)).with_expiries(Some(expiries));
    write(process, Some(meters), Some(snapshot(runs))).unwrap()
}

#[test]
fn the_served_metrics_have_the_format_and_the_values() {
    let lost: Counter = Counter::default();
    lost.inc_by(4);
    let meters = Meters::new().with_lost_lines(lost);
    meters.stored(&Write::Load, Duration::from_millis(2), Some(&StoreFault::Failed("full".into())));
    meters.ran("take", Duration::from_secs(200));
    meters.received(10);
    meters.kept_away();
    let strange = "a\"b\\c\nd} 1";
    let runs = vec![view("a", RunState::Running), view(strange, RunState::Failed)];
    let text = written(&meters, runs);
    let values = read(&text);
    for (name, value) in [
        ("evoxo_tasks_done_total", 5.0),
        ("evoxo_workers_lost_total{cause=\"silent\"}", 3.0),
        // The counter exists before the first loss, so that the first loss shows as an increase.
        ("evoxo_workers_lost_total{cause=\"connection ended\"}", 0.0),
        ("evoxo_workers{state=\"idle\"}", 2.0),
        ("evoxo_attempts_ended_total{end=\"timed out\"}", 6.0),
        ("evoxo_attempts_ended_total{end=\"late\"}", 0.0),
        ("evoxo_worker_attempts_ended_total{worker=\"slow\",end=\"timed out\"}", 5.0),
        ("evoxo_workers_noticed", 1.0),
        ("evoxo_workers_left_out", 1.0),
        ("evoxo_tasks{state=\"out\"}", 4.0),
        ("evoxo_task_duration_seconds_count", 3.0),
        ("evoxo_task_duration_seconds_bucket{le=\"0.0001\"}", 1.0),
        ("evoxo_task_duration_seconds_bucket{le=\"0.02\"}", 2.0),
        ("evoxo_task_duration_seconds_bucket{le=\"+Inf\"}", 3.0),
        ("evoxo_run_job_seconds_bucket{le=\"+Inf\",job=\"take\"}", 1.0),
        ("evoxo_store_failures_total{object=\"load\",reason=\"failed\"}", 1.0),
        ("evoxo_store_failures_total{object=\"checkpoint\",reason=\"failed\"}", 0.0),
        ("evoxo_received_bytes_total", 10.0),
        ("evoxo_audit_lines_lost_total", 4.0),
        ("evoxo_runs{state=\"failed\"}", 1.0),
        ("evoxo_runs{state=\"in doubt\"}", 0.0),
        ("evoxo_epoch", 3.0),
        ("evoxo_limit_used{limit=\"runs\"}", 9.0),
        ("evoxo_limit{limit=\"runs\"}", 1024.0),
        ("evoxo_store_free_bytes", 5000.0),
        ("evoxo_workers_kept_away_total", 1.0),
        ("evoxo_leads", 1.0),
        ("evoxo_certificate_expires_seconds{certificate=\"authority\"}", 1000.0),
        ("evoxo_identity_expires_seconds{identity=\"0123456789ab\",name=\"lab7\",role=\"worker\"}", 90.0),
        ("evoxo_token_expires_seconds{token=\"ba9876543210\",role=\"viewer\"}", 80.0),
        ("evoxo_run_checkpoint_age_seconds{run=\"a\"}", 7.0),
        ("evoxo_runs_expiring", 0.0),
        ("evoxo_store_failures_total{object=\"leader\",reason=\"failed\"}", 0.0),
        ("evoxo_run_rounds{run=\"a\\\"b\\\\c\\nd} 1\"}", 7.0),
    ] {
        assert_eq!(values.get(name), Some(&value), "{name} in\n{text}");
    }
}

/// Unfinished runs come first, and the number is limited.
#[test]
fn the_number_of_runs_with_metrics_is_limited() {
    let finished = (0..RUNS_MAX).map(|number| view(&format!("a{number}"), RunState::Finished));
    let runs = finished.chain([view("z", RunState::Running)]).collect();
    let values = read(&written(&Meters::new(), runs));
    assert_eq!(values["evoxo_run_rounds{run=\"z\"}"], 7.0);
    assert_eq!(values["evoxo_runs_left_out"], 1.0);
    let shown = values.keys().filter(|name| name.starts_with("evoxo_run_rounds{")).count();
    assert_eq!(shown, RUNS_MAX);
}

/// A standby shows that it is one, and nothing else.
#[test]
fn a_standby_serves_few_metrics() {
    let values = read(&write(Process::new(7, false, None), None, None).unwrap());
    assert_eq!((values["evoxo_leads"], values["evoxo_start_time_seconds"]), (0.0, 7.0));
    assert_eq!(values.len(), 3, "{values:?}");
}

/// Held connections keep nobody out: others are answered at once, and each answer ends its connection.
#[tokio::test]
async fn held_connections_lock_no_one_out() {
    let endpoint = Endpoint::listen(SocketAddr::from(([127, 0, 0, 1], 0)), std::env::temp_dir(), None).unwrap();
    let to = endpoint.listener.local_addr().unwrap();
    endpoint.serve(None).unwrap();
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX + 8 {
        held.push(TcpStream::connect(to).await.unwrap());
    }
    let mut answer = String::new();
    let asked = async {
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes()).await?;
        stream.read_to_string(&mut answer).await
    };
    timeout(REQUEST_TIMEOUT / 2, asked).await.expect("an answer and an end").unwrap();
    assert!(answer.contains("evoxo_leads 0"), "{answer}");
    // Only the oldest connections made room.
    assert_eq!(held[0].read(&mut [0]).await.unwrap(), 0);
    assert!(
        held[CONNECTIONS_MAX].try_read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    );
}

/// The address with the most connections makes room.
#[tokio::test]
async fn the_oldest_connection_of_the_largest_holder_makes_room() {
    let [greedy, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    let mut open = Open::default();
    let mut add = |peer: IpAddr| {
        let served = tokio::spawn(std::future::pending::<()>());
        open.add(peer, served.abort_handle());
        served
    };
    let honest = add(other);
    let mut held: VecDeque<_> = (0..CONNECTIONS_MAX).map(|_| add(greedy)).collect();
    assert!(held.pop_front().unwrap().await.unwrap_err().is_cancelled());
    assert!(!honest.is_finished() && held.iter().all(|served| !served.is_finished()));
    add(other);
    assert!(held.pop_front().unwrap().await.unwrap_err().is_cancelled());
    assert!(!honest.is_finished() && held.iter().all(|served| !served.is_finished()));
}

/// The metrics that the dashboard and the alerts name exist, with an access directory.
#[test]
fn dashboards_and_alerts_use_existing_metrics() {
    let meters = Meters::new().with_lost_lines(Counter::default());
    meters.ran("take", Duration::ZERO);
    meters.stored(&Write::Load, Duration::ZERO, None);
    let text = written(&meters, vec![view("a", RunState::Running)]);
    let served: BTreeSet<String> =
        read(&text).into_keys().map(|name| name.split('{').next().unwrap_or_default().to_owned()).collect();
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus");
    for file in ["dashboard.json", "alerts.yml"] {
        let text = std::fs::read_to_string(directory.join(file)).unwrap();
        let words = text.split(|character: char| !(character.is_ascii_lowercase() || character == '_'));
        let named: BTreeSet<&str> = words.filter(|word| word.starts_with("evoxo_")).collect();
        assert!(named.len() > 5, "{file}");
        assert!(named.iter().all(|name| served.contains(*name)), "{file}: {named:?}\n{served:?}");
    }
}
