//! `evoxo workers`: lists the workers that are connected, and those that were lost.

use std::{collections::BTreeMap, io::Write as _, process::ExitCode};

use clap::ValueEnum;
use evoxo_common::text::counted;
use evoxo_proto::shown::{cordon_to_json, ends, lost_to_json, worker_to_json};
use evoxo_proto::v1;
use serde_json::json;

use super::runs::minute;
use crate::{
    progress::short_time,
    remote::{Coordinator, connect, converse, refused},
    say::{program, stdout},
    table::{Column, lines, terminal_width},
};

/// The most workers that are named in a sentence about several workers.
const NAMED_MAX: usize = 5;

/// The most cordons that are listed.
const CORDONS_SHOWN_MAX: usize = 50;

/// The coordinator and the output.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    coordinator: Coordinator,
    /// The order of the list, after workers that need a look
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort: Sort,
    /// Print JSON: the connected workers, or with --lost an object that also holds those and the cordons
    #[arg(long)]
    json: bool,
    /// Also list the workers that were lost most recently, with the reason
    #[arg(long)]
    lost: bool,
}

/// The column by which workers are sorted; equal ones by name, then session. Workers with a notice always come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By name.
    #[default]
    Name,
    /// By the name of the host.
    Host,
    /// The highest number of tasks per second first.
    Rate,
    /// The highest number of busy slots first.
    Busy,
    /// The longest silence first.
    Heard,
    /// The newest connection first.
    Connected,
}

impl Sort {
    /// Sorts a list.
    pub(crate) fn apply(self, workers: &mut [v1::Worker]) {
        workers.sort_by(|a, b| {
            let first = match self {
                Self::Name => std::cmp::Ordering::Equal,
                Self::Host => a.host.cmp(&b.host),
                Self::Rate => rate(b).total_cmp(&rate(a)),
                Self::Busy => b.slots_busy.cmp(&a.slots_busy),
                Self::Heard => b.silent_ms.cmp(&a.silent_ms),
                Self::Connected => a.connected_ms.cmp(&b.connected_ms),
            };
            let noticed = a.notice.is_empty().cmp(&b.notice.is_empty());
            noticed.then(first).then_with(|| a.name.cmp(&b.name)).then_with(|| a.session.cmp(&b.session))
        });
    }
}

/// Tasks per second, over the last minute or since the worker connected.
fn rate(worker: &v1::Worker) -> f64 {
    let seconds = (worker.connected_ms as f64 / 1000.0).clamp(1.0, 60.0);
    worker.tasks_last_minute as f64 / seconds
}

/// A rate in readable form.
pub(crate) fn rate_text(per_second: f64) -> String {
    match per_second {
        0.0 => "0/s".into(),
        100.0.. => format!("{per_second:.0}/s"),
        10.0.. => format!("{per_second:.1}/s"),
        1.0.. => format!("{per_second:.2}/s"),
        _ => format!("{:.1}/min", 60.0 * per_second),
    }
}

/// The attempts of a worker that did not end with an output in time, by the reason.
fn bad_ends(worker: &v1::Worker) -> String {
    let bad = ends(worker).into_iter().filter(|(end, count)| *end != "done" && *count > 0);
    bad.map(|(end, count)| format!("{count} {end}")).collect::<Vec<_>>().join(", ")
}

/// The columns of a list of workers.
pub(crate) const COLUMNS: [Column; 12] = [
    Column::text("name", 0),
    Column::figure("session", 0),
    Column::figure("busy", 0),
    Column::figure("rate", 0),
    Column::figure("heard", 1),
    Column::word("state", 1),
    Column::text("computes", 2),
    Column::text("host", 3),
    Column::figure("done", 4),
    Column::word("bad ends", 2),
    Column::text("identity", 5),
    Column::text("build", 6),
];

/// The row of a worker.
pub(crate) fn row(worker: &v1::Worker) -> [String; 12] {
    let host = match (worker.host.as_str(), worker.address.as_str()) {
        ("", address) => address.to_owned(),
        (host, address) => format!("{host} ({address})"),
    };
    let state = match worker.draining {
        true => "leaving",
        false if worker.cordon.is_some() => "cordoned",
        false if worker.on_trial => "on trial",
        false if worker.slots_busy > 0 => "busy",
        false => "idle",
    };
    [
        worker.name.clone(),
        worker.session.to_string(),
        format!("{}/{}", worker.slots_busy, worker.slots),
        rate_text(rate(worker)),
        short_time(worker.silent_ms as f64 / 1000.0),
        state.to_owned(),
        worker.runs.join(" "),
        host,
        worker.tasks_done.to_string(),
        bad_ends(worker),
        worker.identity.clone(),
        worker.build.clone(),
    ]
}

/// The totals of a list, in a sentence.
pub(crate) fn totals(workers: &[v1::Worker]) -> String {
    let sum = |of: fn(&v1::Worker) -> u32| workers.iter().map(|worker| u64::from(of(worker))).sum::<u64>();
    let (busy, slots) = (sum(|worker| worker.slots_busy), sum(|worker| worker.slots));
    let leaving = workers.iter().filter(|worker| worker.draining).count();
    let leaving = if leaving > 0 { format!(", {leaving} leaving") } else { String::new() };
    let per_second = rate_text(workers.iter().map(rate).sum());
    let noun = if workers.len() == 1 { "worker" } else { "workers" };
    format!("{} {noun}{leaving}; {busy} of {slots} slots busy; {per_second}", workers.len())
}

/// The columns of a list of lost workers.
pub(crate) const LOST_COLUMNS: [Column; 6] = [
    Column::text("lost", 0),
    Column::figure("session", 0),
    Column::figure("ago", 0),
    Column::figure("tasks", 1),
    Column::text("host", 2),
    Column::text("reason", 0),
];

/// The row of a lost worker.
pub(crate) fn lost_row(lost: &v1::LostWorker) -> [String; 6] {
    let host = if lost.host.is_empty() { &lost.address } else { &lost.host };
    [
        lost.name.clone(),
        lost.session.to_string(),
        short_time(lost.ago_ms as f64 / 1000.0),
        lost.tasks.to_string(),
        host.clone(),
        lost.reason.clone(),
    ]
}

/// Further remarks about workers. A remark that applies to several workers is printed once.
fn remarks(workers: &[v1::Worker]) -> Vec<String> {
    let mut said: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let noticed = workers.iter().filter(|worker| !worker.notice.is_empty());
    let noticed = noticed.map(|worker| format!("{} needs a look: {}", worker.name, worker.notice));
    for worker in workers {
        if !worker.kinds_refused.is_empty() {
            let refused = worker.kinds_refused.join(", ");
            let sentence = format!("different results than the coordinator for {refused}, because of another build");
            said.entry(sentence).or_default().push(&worker.name);
        }
        if !worker.programs.is_empty() {
            said.entry(format!("programs {}", worker.programs.join(", "))).or_default().push(&worker.name);
        }
        if !worker.labels.is_empty() {
            said.entry(format!("labels {}", worker.labels.join(", "))).or_default().push(&worker.name);
        }
    }
    let remark = |(sentence, names): (String, Vec<&str>)| {
        let more = names.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{sentence}: {}{more}", names[..names.len().min(NAMED_MAX)].join(", "))
    };
    noticed.chain(said.into_iter().map(remark)).collect()
}

/// Sentences about cordons, with the connected workers that they cover.
fn cordons(cordons: &[v1::Cordon], workers: &[v1::Worker]) -> Vec<String> {
    let sentence = |cordon: &v1::Cordon| {
        let v1::Cordon { worker, host, by, since } = cordon;
        let what = if host.is_empty() { format!("worker {worker}") } else { format!("host {host}") };
        let covered = workers.iter().filter(|worker| worker.cordon.as_ref() == Some(cordon)).count();
        let covered = if covered == 0 { "none connected".into() } else { counted(covered, "worker") };
        format!("cordoned by {by} since {}: {what} ({covered})", minute(*since))
    };
    let more = cordons.len().saturating_sub(CORDONS_SHOWN_MAX);
    let more = (more > 0).then(|| format!("and {more} more cordons: --lost --json lists them"));
    cordons.iter().take(CORDONS_SHOWN_MAX).map(sentence).chain(more).collect()
}

/// Sentences about workers that are set aside, with the remaining time and the reason.
fn set_aside(lost: &[v1::LostWorker]) -> Vec<String> {
    let aside = lost.iter().filter(|lost| lost.aside_ms > 0);
    let sentence = |lost: &v1::LostWorker| {
        let host = if lost.host.is_empty() { &lost.address } else { &lost.host };
        let left = short_time(lost.aside_ms as f64 / 1000.0);
        format!("set aside for another {left}: {} on {host}, because {}", lost.name, lost.reason)
    };
    aside.map(sentence).collect()
}

/// Advice for a coordinator without workers. A tool with another name has its own kinds of experiments, so its workers are
/// started with the same tool.
fn advice(program: &str, coordinator: &Coordinator) -> String {
    let worker = if program == "evoxo" { "evoxo-worker".to_owned() } else { format!("{program} worker") };
    let start = format!("no workers: start some with `{worker} --coordinator {}", coordinator.address);
    match coordinator.access {
        None => format!("{start}`"),
        Some(_) => format!("{start} --join TOKEN`; `{program} token create --role worker` prints a token"),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let v1::ListWorkersResponse { mut workers, lost, cordons: all } = converse(async {
        let mut client = connect(&arguments.coordinator).await?;
        Ok(client.list_workers(v1::ListWorkersRequest {}).await.map_err(refused)?.into_inner())
    })?;
    arguments.sort.apply(&mut workers);
    let mut out = stdout();
    if arguments.json {
        let connected: serde_json::Value = workers.iter().map(worker_to_json).collect();
        let all = match arguments.lost {
            true => json!({
                "workers": connected,
                "lost": lost.iter().map(lost_to_json).collect::<serde_json::Value>(),
                "cordons": all.iter().map(cordon_to_json).collect::<serde_json::Value>(),
            }),
            false => connected,
        };
        writeln!(out, "{all:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = terminal_width();
    if workers.is_empty() {
        writeln!(out, "{}", advice(&program(), &arguments.coordinator))?;
    } else {
        let rows: Vec<_> = workers.iter().map(row).collect();
        lines(&COLUMNS, &rows, width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "{}", totals(&workers))?;
        remarks(&workers).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    cordons(&all, &workers).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    set_aside(&lost).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if arguments.lost && !lost.is_empty() {
        let rows: Vec<_> = lost.iter().map(lost_row).collect();
        writeln!(out)?;
        lines(&LOST_COLUMNS, &rows, width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    } else if !lost.is_empty() {
        let (count, program) = (lost.len(), program());
        writeln!(out, "{count} were lost recently: `{program} workers --lost` says why")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(number: u32) -> v1::Worker {
        v1::Worker {
            session: number.into(),
            name: format!("lab{:03}", number % 500),
            host: format!("lab{:03}.cluster.example.org", number % 500),
            address: format!("10.0.{}.{}", number / 250, number % 250),
            slots: 4,
            slots_busy: number % 5,
            tasks_done: 1000 * u64::from(number),
            tasks_last_minute: 6 * u64::from(number),
            connected_ms: 3_600_000,
            silent_ms: 1500,
            identity: "0123456789ab".into(),
            build: "0.1.0 (0123456789ab)".into(),
            runs: vec!["invincible".into()],
            kinds_refused: vec!["rules".into()],
            ..v1::Worker::default()
        }
    }

    #[test]
    fn workers_set_aside_are_listed_with_the_reason() {
        let away = v1::LostWorker {
            name: "w1".into(),
            address: "10.0.0.1".into(),
            reason: "three different tasks failed on it".into(),
            aside_ms: 45_000,
            ..v1::LostWorker::default()
        };
        let lost = v1::LostWorker { aside_ms: 0, ..away.clone() };
        let line = "set aside for another 45 s: w1 on 10.0.0.1, because three different tasks failed on it";
        assert_eq!(set_aside(&[lost, away]), [line]);
        assert_eq!(row(&v1::Worker { on_trial: true, ..worker(1) })[5], "on trial");
    }

    #[test]
    fn cordons_say_who_wanted_them_and_since_when() {
        let cordon = v1::Cordon { host: "lab7".into(), by: "0123456789ab".into(), since: 60, ..v1::Cordon::default() };
        let of = v1::Worker { cordon: Some(cordon.clone()), ..worker(1) };
        assert_eq!(row(&of)[5], "cordoned");
        let line = "cordoned by 0123456789ab since 1970-01-01T00:01Z: host lab7 (1 worker)";
        assert_eq!(cordons(std::slice::from_ref(&cordon), &[of, worker(2)]), [line]);
        let many = cordons(&vec![cordon; 52], &[]);
        assert!(many[0].ends_with("host lab7 (none connected)") && many[50].starts_with("and 2 more"), "{many:?}");
    }

    /// A host on which every task ends by a timeout comes first, whatever the order, with its reasons.
    #[test]
    fn a_worker_whose_attempts_end_badly_comes_first() {
        let ends = v1::AttemptEnds { done: 1, timed_out: 9, lost: 2, ..v1::AttemptEnds::default() };
        let notice = "9 of its last 10 attempts ended badly (9 timed out), and 0 of 64 on the other workers";
        let bad = v1::Worker { ends: Some(ends), notice: notice.into(), ..worker(400) };
        for sort in [Sort::Name, Sort::Rate, Sort::Connected] {
            let mut workers = vec![worker(1), bad.clone(), worker(450)];
            sort.apply(&mut workers);
            assert_eq!(workers[0], bad);
            assert_eq!(remarks(&workers)[0], format!("lab400 needs a look: {notice}"));
        }
        assert_eq!((row(&bad)[9].as_str(), row(&worker(1))[9].as_str()), ("9 timed out, 2 lost", ""));
        let table = lines(&COLUMNS, &[row(&bad), row(&worker(1))], Some(80));
        assert!(table[1].contains("9 timed out, 2 lost"), "{table:?}");
        assert_eq!(worker_to_json(&bad)["ends"]["timed_out"], 9);
    }

    /// A thousand workers on a terminal of 80 columns: names, sessions and figures remain.
    #[test]
    fn many_workers_fit() {
        let workers: Vec<v1::Worker> = (0..1000).map(worker).collect();
        let rows: Vec<_> = workers.iter().map(row).collect();
        let table = lines(&COLUMNS, &rows, Some(80));
        assert_eq!(table.len(), 1001);
        assert!(table.iter().all(|line| line.chars().count() <= 80));
        assert_eq!(table[0], "name    session  busy      rate  heard  state  computes    host");
        assert!(
            table[1000].starts_with("lab499      999   4/4    99.9/s  1.5 s  busy   invincible  lab499.cluster.e"),
            "{}",
            table[1000]
        );
        assert_eq!(totals(&workers), "1000 workers; 2000 of 4000 slots busy; 49950/s");
        let remarks = remarks(&workers);
        assert!(remarks.len() == 1 && remarks[0].ends_with("lab004 and 995 more"), "{remarks:?}");
    }

    /// The advice matches the documentation, and names what a cluster with an access directory requires.
    #[test]
    fn the_advice_can_be_typed() {
        let coordinator = |access: Option<&str>| Coordinator {
            address: "lab1:7600".parse().unwrap(),
            access: access.map(std::path::PathBuf::from),
        };
        for (program, access, worker) in [
            ("evoxo", None, "`evoxo-worker --coordinator lab1:7600`"),
            ("evoxo", Some("my.access"), "`evoxo-worker --coordinator lab1:7600 --join TOKEN`; `evoxo token create "),
            ("onemax", None, "`onemax worker --coordinator lab1:7600`"),
        ] {
            let said = advice(program, &coordinator(access));
            assert!(said.starts_with(&format!("no workers: start some with {worker}")), "{said}");
        }
    }

    #[test]
    fn workers_are_sorted() {
        let sorted = |sort: Sort| {
            let mut workers: Vec<v1::Worker> = [3, 501, 1].map(worker).into();
            sort.apply(&mut workers);
            workers.iter().map(|worker| worker.session).collect::<Vec<_>>()
        };
        assert_eq!(sorted(Sort::Name), [1, 501, 3]);
        assert_eq!(sorted(Sort::Rate), [501, 3, 1]);
        assert_eq!(sorted(Sort::Busy), [3, 1, 501]);
    }

    #[test]
    fn rates_have_sensible_digits() {
        let texts = [0.0, 0.05, 1.234, 12.34, 1234.5].map(rate_text);
        assert_eq!(texts, ["0/s", "3.0/min", "1.23/s", "12.3/s", "1234/s"]);
    }
}
