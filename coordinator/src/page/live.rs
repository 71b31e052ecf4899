//! The stream of changes: runs, workers, news. Twice a second the state is written once, as bytes that all viewers receive. A
//! viewer that reads slowly misses some messages and then receives the whole state again.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    fmt::Write as _,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use evoxo_process::{Rate, build};
use evoxo_proto::{
    shown::{run_to_json, significant, worker_to_json},
    v1::{self, RunState},
};
use futures_util::{Stream, stream};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    core::{Request, Response, Topic, View},
    shell::Handle,
    shell::dated::Dates,
    shell::news::{NewsItem, unix_seconds},
};

/// The interval between two messages.
const TICK: Duration = Duration::from_millis(500);
/// The core is asked for its workers every so many ticks. If there are more workers than `WORKERS_A_TICK` per tick, it is
/// asked less often, so the bytes per second stay the same.
const WORKERS_TICKS: u64 = 4;
const WORKERS_A_TICK: u64 = 64;
/// The same for the arms of a run: how many are written per tick.
const ARMS_A_TICK: u64 = 32;
/// After so long without a message a comment is sent, so a lost connection is noticed.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// A worker that was heard from within so many seconds is not shown as silent.
const HEARD_S: u64 = 5;

/// The subject of an item in a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Run(String),
    Worker(u64),
    News(u64),
    /// All workers that are set aside.
    Aside,
}

/// The whole state, each item as JSON text.
type Items = BTreeMap<Key, Arc<str>>;

/// The whole state at one moment.
#[derive(Default)]
pub(super) struct Moment {
    number: u64,
    items: Items,
    /// The message with the changes since the previous moment; empty if there are none.
    changes: Bytes,
    whole: OnceLock<Bytes>,
}

impl Moment {
    fn next(&self, items: Items) -> Self {
        let changed = items.iter().filter(|(key, text)| self.items.get(key) != Some(text));
        let gone = self.items.keys().filter(|key| !items.contains_key(key));
        let changes = message(false, self.number + 1, changed, gone);
        Self { number: self.number + 1, changes, items, whole: OnceLock::new() }
    }

    /// The message with the whole state.
    fn whole(&self) -> Bytes {
        let write = || message(true, self.number, self.items.iter(), std::iter::empty());
        self.whole.get_or_init(write).clone()
    }
}

/// An event of the stream; empty if there is nothing to send.
fn message<'a>(
    whole: bool,
    number: u64,
    items: impl Iterator<Item = (&'a Key, &'a Arc<str>)>,
    gone: impl Iterator<Item = &'a Key>,
) -> Bytes {
    let [mut runs, mut workers, mut news] = [(); 3].map(|()| String::new());
    let mut aside = None;
    for (key, text) in items {
        let list = match key {
            Key::Run(_) => &mut runs,
            Key::Worker(_) => &mut workers,
            Key::News(_) => &mut news,
            Key::Aside => {
                aside = Some(&**text);
                continue;
            }
        };
        list.push_str(if list.is_empty() { "" } else { "," });
        list.push_str(text);
    }
    let (mut gone_runs, mut gone_workers) = (Vec::new(), Vec::new());
    for key in gone {
        match key {
            Key::Run(name) => gone_runs.push(name),
            Key::Worker(session) => gone_workers.push(session),
            // The page keeps old news.
            Key::News(_) | Key::Aside => {}
        }
    }
    let nothing = aside.is_none() && [&runs, &workers, &news].iter().all(|list| list.is_empty());
    if !whole && nothing && gone_runs.is_empty() && gone_workers.is_empty() {
        return Bytes::new();
    }
    let (gone_runs, gone_workers) = (json!(gone_runs), json!(gone_workers));
    let build = json!(build().text());
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "data: {{\"whole\":{whole},\"number\":{number},\"build\":{build},\"at\":{},\"runs\":[{runs}],\
         \"workers\":[{workers}],\"news\":[{news}],\"aside\":{},\"gone_runs\":{gone_runs},\"gone_workers\":{gone_workers}}}\n\n",
        unix_seconds(),
        aside.unwrap_or("null")
    );
    text.into()
}

/// Gives viewers their messages. Cheap to clone.
#[derive(Clone)]
pub(super) struct Live(watch::Receiver<Arc<Moment>>);

impl Live {
    /// Starts writing moments, until the runtime ends.
    pub(super) fn start(core: Handle) -> Self {
        let (sender, receiver) = watch::channel(Arc::default());
        tokio::spawn(write_down(core, sender));
        Self(receiver)
    }

    /// The stream for one viewer: first the whole state, then the changes.
    pub(super) fn events(&self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + use<> {
        let mut feed = self.0.clone();
        // The present moment may be old, from the last time there was a viewer.
        feed.mark_unchanged();
        let begin = stream::iter([Ok(Frame::data(Bytes::from_static(b"retry: 1000\n\n")))]);
        let rest = stream::unfold(
            (feed, None),
            |(mut feed, mut seen): (watch::Receiver<Arc<Moment>>, Option<u64>)| async move {
                let began = Instant::now();
                loop {
                    let Ok(changed) = timeout(QUIET_MAX.saturating_sub(began.elapsed()), feed.changed()).await else {
                        return Some((Ok(Frame::data(Bytes::from_static(b": quiet\n\n"))), (feed, seen)));
                    };
                    changed.ok()?;
                    let moment = Arc::clone(&feed.borrow_and_update());
                    let follows = seen.is_some_and(|seen| seen + 1 == moment.number);
                    seen = Some(moment.number);
                    let bytes = if follows { moment.changes.clone() } else { moment.whole() };
                    if !bytes.is_empty() {
                        return Some((Ok(Frame::data(bytes)), (feed, seen)));
                    }
                }
            },
        );
        stream::StreamExt::chain(begin, rest)
    }
}

/// Writes a moment at every tick while there is a viewer.
async fn write_down(core: Handle, feed: watch::Sender<Arc<Moment>>) {
    let mut sight = Sight::default();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut workers_due = 0;
    for tick in 0_u64.. {
        ticks.tick().await;
        let now = Instant::now();
        let runs = core.views.list();
        sight.note_rates(now, runs.iter().map(|view| &view.run));
        // `Live` itself holds one receiver.
        if feed.receiver_count() <= 1 {
            workers_due = 0;
            continue;
        }
        if tick >= workers_due {
            match core.ask(Request::Workers).await {
                Ok(Response::Workers(workers)) => sight.see_workers(now, &workers),
                _ => return,
            }
            match core.ask(Request::Lost).await {
                Ok(Response::Lost(lost)) => sight.see_lost(&lost),
                _ => return,
            }
            workers_due = tick + WORKERS_TICKS.max(sight.workers.len() as u64 / WORKERS_A_TICK);
        }
        core.dated.refresh(&runs);
        let items = sight.items(tick, &runs, core.news.after(0), |run| core.dated.of(run));
        let next = feed.borrow().next(items);
        feed.send_replace(Arc::new(next));
    }
}

/// What is remembered from one tick to the next.
#[derive(Default)]
struct Sight {
    rates: BTreeMap<String, Rate>,
    runs: BTreeMap<String, Written>,
    workers: BTreeMap<u64, Seen>,
    /// The workers that are set aside, by session.
    aside: BTreeMap<u64, Value>,
}

/// A run as it was last written.
struct Written {
    view: Arc<View>,
    dates: Dates,
    text: Arc<str>,
    /// The tick from which on a running run is written again.
    due: u64,
}

impl Written {
    fn holds(&self, tick: u64, view: &Arc<View>, dates: Dates) -> bool {
        let waits = view.run.state() != RunState::Running || tick < self.due;
        let same = Arc::ptr_eq(&self.view, view) || (tick < self.due && self.view.run.state == view.run.state);
        waits && same && self.dates == dates
    }
}

/// A worker as it was last written.
struct Seen {
    rate: Rate,
    since_s: u64,
    text: Arc<str>,
}

impl Sight {
    fn note_rates<'a>(&mut self, now: Instant, runs: impl Iterator<Item = &'a v1::Run>) {
        let mut known = BTreeSet::new();
        for run in runs.filter(|run| run.state() == RunState::Running) {
            self.rates.entry(run.name.clone()).or_default().note(now, run.rounds_done);
            known.insert(run.name.as_str());
        }
        self.rates.retain(|name, _| known.contains(name.as_str()));
    }

    fn see_workers(&mut self, now: Instant, workers: &[v1::Worker]) {
        let at_s = unix_seconds();
        let connected: BTreeSet<u64> = workers.iter().map(|worker| worker.session).collect();
        self.workers.retain(|session, _| connected.contains(session));
        for worker in workers {
            let new = || Seen {
                rate: Rate::default(),
                since_s: at_s.saturating_sub(worker.connected_ms / 1000),
                text: "".into(),
            };
            let seen = self.workers.entry(worker.session).or_insert_with(new);
            seen.rate.note(now, worker.tasks_done);
            seen.text = seen.text_of(worker).into();
        }
    }

    /// Keeps the workers that are set aside, with the time when they may return, in seconds since 1970. The time is computed
    /// once, so it does not change.
    fn see_lost(&mut self, lost: &[v1::LostWorker]) {
        let mut before = std::mem::take(&mut self.aside);
        for lost in lost.iter().filter(|lost| lost.aside_ms > 0) {
            let new = || {
                let host = if lost.host.is_empty() { &lost.address } else { &lost.host };
                let until = unix_seconds() + lost.aside_ms.div_ceil(1000);
                json!({"session": lost.session, "name": lost.name, "host": host, "reason": lost.reason, "until": until})
            };
            self.aside.insert(lost.session, before.remove(&lost.session).unwrap_or_else(new));
        }
    }

    /// What is shown now, with the dates of runs.
    fn items(&mut self, tick: u64, runs: &[Arc<View>], news: Vec<NewsItem>, dates: impl Fn(&str) -> Dates) -> Items {
        let mut written = BTreeMap::new();
        for view in runs {
            let name = &view.run.name;
            let dates = dates(name);
            let known = self.runs.remove(name).filter(|known| known.holds(tick, view, dates));
            let new = || Written {
                view: Arc::clone(view),
                dates,
                text: self.run_json(view, dates).to_string().into(),
                due: tick + 1 + view.run.arms.len() as u64 / ARMS_A_TICK,
            };
            written.insert(name.clone(), known.unwrap_or_else(new));
        }
        self.runs = written;
        let runs = self.runs.iter().map(|(name, written)| (Key::Run(name.clone()), Arc::clone(&written.text)));
        let workers = self.workers.iter().map(|(session, seen)| (Key::Worker(*session), Arc::clone(&seen.text)));
        let news = news.into_iter().map(|item| (Key::News(item.number), news_json(&item).to_string().into()));
        let aside = Value::from(self.aside.values().cloned().collect::<Vec<_>>()).to_string();
        runs.chain(workers).chain(news).chain([(Key::Aside, aside.into())]).collect()
    }

    /// A run with the column of its primary metric, when it began and ended, its rate in rounds per second, and the seconds
    /// left at that rate.
    fn run_json(&self, view: &View, dates: Dates) -> Value {
        let run = &view.run;
        let mut json = run_to_json(run);
        json["primary"] = view.prepared.as_ref().map(|prepared| prepared.config.kind.primary_metric).into();
        (json["began"], json["ended"]) = (dates.began.into(), dates.ended.into());
        let rate = self.rates.get(&run.name).and_then(Rate::per_second);
        json["rate"] = rate.map(significant).into();
        json["left_s"] =
            rate.map(|rate| (run.rounds_total.saturating_sub(run.rounds_done) as f64 / rate).ceil()).into();
        json
    }
}

impl Seen {
    /// A worker without the values that change although nothing happens.
    fn text_of(&self, worker: &v1::Worker) -> String {
        let mut json = worker_to_json(worker);
        let silent_s = Some(worker.silent_ms / 1000).filter(|seconds| *seconds >= HEARD_S).unwrap_or(0);
        json["silent_s"] = silent_s.into();
        json["since"] = self.since_s.into();
        json["rate"] = self.rate.per_second().map(significant).into();
        if let Value::Object(entries) = &mut json {
            entries.retain(|name, _| name != "silent_ms" && name != "connected_ms");
        }
        json.to_string()
    }
}

fn news_json(item: &NewsItem) -> Value {
    let topic = match item.topic {
        Topic::Progress => "progress",
        Topic::Trouble => "trouble",
        Topic::WorkerLost => "worker lost",
        Topic::WorkerRefused => "worker refused",
        Topic::Doubt => "doubt",
        Topic::RunFailed => "run failed",
    };
    json!({"number": item.number, "at": item.at_s, "topic": topic, "sentence": item.sentence})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undated(_: &str) -> Dates {
        Dates::default()
    }

    fn view(name: &str, state: RunState, rounds_done: u64) -> Arc<View> {
        let run =
            v1::Run { name: name.into(), state: state.into(), rounds_done, rounds_total: 100, ..v1::Run::default() };
        Arc::new(View { run, prepared: None })
    }

    fn read(bytes: &Bytes) -> Value {
        let text = std::str::from_utf8(bytes).unwrap();
        serde_json::from_str(text.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap()).unwrap()
    }

    #[test]
    fn a_message_has_only_changes() {
        let (mut sight, start) = (Sight::default(), Moment::default());
        let (one, two) = (view("one", RunState::Running, 1), view("two", RunState::Paused, 2));
        let first = start.next(sight.items(1, &[one.clone(), two.clone()], Vec::new(), undated));
        assert_eq!(read(&first.changes)["runs"].as_array().map(Vec::len), Some(2));
        let same = first.next(sight.items(2, &[one, two.clone()], Vec::new(), undated));
        assert!(same.changes.is_empty());
        let further = same.next(sight.items(3, &[view("one", RunState::Running, 5), two], Vec::new(), undated));
        let message = read(&further.changes);
        assert_eq!(
            (message["runs"].as_array().map(Vec::len), &message["runs"][0]["rounds_done"]),
            (Some(1), &json!(5))
        );
        assert_eq!(
            (message["whole"].clone(), read(&further.whole())["runs"][1]["name"].clone()),
            (json!(false), json!("two"))
        );
        let gone = further.next(sight.items(4, &[], Vec::new(), undated));
        assert_eq!(read(&gone.changes)["gone_runs"], json!(["one", "two"]));
    }

    /// A run with many arms is long and is written less often, but at once when its state changes.
    #[test]
    fn long_runs_are_written_more_rarely() {
        let long = |state: RunState, rounds_done: u64| {
            let run = view("long", state, rounds_done).run.clone();
            Arc::new(View { run: v1::Run { arms: vec![v1::ArmProgress::default(); 320], ..run }, prepared: None })
        };
        let mut sight = Sight::default();
        let mut texts: Vec<Arc<str>> = (0..40)
            .map(|tick| {
                sight.items(tick, &[long(RunState::Running, tick)], Vec::new(), undated)[&Key::Run("long".into())]
                    .clone()
            })
            .collect();
        texts.dedup();
        assert_eq!(texts.len(), 4);
        let paused = sight.items(40, &[long(RunState::Paused, 40)], Vec::new(), undated);
        assert!(paused[&Key::Run("long".into())].contains("\"rounds_done\":40"));
    }

    /// The list of workers that are set aside is sent when it changes, and stays the same while they wait.
    #[test]
    fn workers_set_aside_are_shown() {
        let (mut sight, start) = (Sight::default(), Moment::default());
        let lost = |aside_ms: u64| v1::LostWorker { name: "w1".into(), aside_ms, ..v1::LostWorker::default() };
        sight.see_lost(&[lost(0)]);
        let nobody = start.next(sight.items(1, &[], Vec::new(), undated));
        assert_eq!(read(&nobody.changes)["aside"], json!([]));
        sight.see_lost(&[lost(60_000)]);
        let one = nobody.next(sight.items(2, &[], Vec::new(), undated));
        assert_eq!(read(&one.changes)["aside"][0]["name"], json!("w1"));
        sight.see_lost(&[lost(40_000)]);
        let same = one.next(sight.items(3, &[], Vec::new(), undated));
        assert!(same.changes.is_empty() && read(&same.whole())["aside"][0]["name"] == json!("w1"));
        sight.see_lost(&[lost(0)]);
        let back = same.next(sight.items(4, &[], Vec::new(), undated));
        assert_eq!(read(&back.changes)["aside"], json!([]));
    }
}
