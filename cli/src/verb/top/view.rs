//! The contents of the terminal. Pure: keys and answers of the coordinator go in, lines come out.

use std::{collections::BTreeMap, time::Instant};

use evoxo_process::Rate;
use evoxo_proto::shown::state;
use evoxo_proto::v1::{self, RunState};

use crate::{
    progress::time,
    remote::standstill,
    table::{Column, cut, lines},
    terminal::Key,
    verb::workers::{COLUMNS as WORKER_COLUMNS, Sort, rate_text, row, totals},
};

/// Lines besides the entries of both lists: the first line, two titles, two lines of column names, and the last two lines.
const FRAME: usize = 7;
/// The fewest lines of a list.
const LIST_MIN: usize = 2;

/// The sort orders of the workers, in the order in which `s` selects them.
const SORTS: [(Sort, &str); 5] =
    [(Sort::Name, "name"), (Sort::Rate, "rate"), (Sort::Busy, "busy"), (Sort::Heard, "heard"), (Sort::Host, "host")];
/// The sort orders of the runs.
const RUN_SORTS: [&str; 3] = ["state", "name", "rate"];

const RUN_COLUMNS: [Column; 8] = [
    Column::text("run", 0),
    Column::word("state", 0),
    Column::figure("rounds", 1),
    Column::figure("done", 0),
    Column::figure("rate", 1),
    Column::figure("left", 0),
    Column::figure("workers", 2),
    Column::text("why", 3),
];

/// What the person orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Quit,
    Pause(String),
    Resume(String),
    /// A session, and its worker's name.
    Drain(u64, String),
}

/// The list with the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Focus {
    Runs,
    Workers,
}

/// A list with a mark. The mark stays on its entry when the order changes.
#[derive(Debug, Default)]
struct List<K> {
    marked: Option<K>,
    /// The first entry that is visible.
    top: usize,
    sort: usize,
}

impl<K: Clone + PartialEq> List<K> {
    /// The index of the marked entry, or of the first one if the marked entry is gone.
    fn place(&self, keys: &[K]) -> usize {
        self.marked.as_ref().and_then(|marked| keys.iter().position(|key| key == marked)).unwrap_or(0)
    }

    fn move_by(&mut self, keys: &[K], by: isize) {
        let place = self.place(keys).saturating_add_signed(by).min(keys.len().saturating_sub(1));
        self.marked = keys.get(place).cloned();
    }

    /// The range of entries to show if there is room for `room` of them.
    fn window(&mut self, keys: &[K], room: usize) -> std::ops::Range<usize> {
        let place = self.place(keys);
        self.top = self.top.clamp((place + 1).saturating_sub(room), place).min(keys.len().saturating_sub(room));
        self.top..keys.len().min(self.top + room)
    }
}

/// What the terminal shows.
pub(super) struct View {
    coordinator: String,
    runs: Vec<v1::Run>,
    workers: Vec<v1::Worker>,
    lost: Vec<v1::LostWorker>,
    rates: BTreeMap<String, Rate>,
    focus: Focus,
    run_list: List<String>,
    worker_list: List<u64>,
    /// The last message.
    message: String,
    /// The reason why the coordinator cannot be reached now.
    unseen: Option<String>,
    /// The order that is carried out if the person answers yes.
    asked: Option<Order>,
}

impl View {
    pub(super) fn new(coordinator: String) -> Self {
        Self {
            coordinator,
            runs: Vec::new(),
            workers: Vec::new(),
            lost: Vec::new(),
            rates: BTreeMap::new(),
            focus: Focus::Runs,
            run_list: List::default(),
            worker_list: List::default(),
            message: String::new(),
            unseen: None,
            asked: None,
        }
    }

    /// Shows this sentence until the next one.
    pub(super) fn say(&mut self, sentence: String) {
        self.message = sentence;
    }

    /// Notes that the coordinator cannot be reached. The first line says so until it can be reached again; the rest of the
    /// view is old.
    pub(super) fn miss(&mut self, why: String) {
        self.unseen = Some(why);
    }

    /// Takes the coordinator's present answers.
    pub(super) fn see(&mut self, runs: Vec<v1::Run>, workers: v1::ListWorkersResponse) {
        let now = Instant::now();
        self.rates.retain(|name, _| runs.iter().any(|run| run.name == *name));
        for run in &runs {
            self.rates.entry(run.name.clone()).or_default().note(now, run.rounds_done);
        }
        (self.runs, self.workers, self.lost) = (runs, workers.workers, workers.lost);
        self.unseen = None;
        self.sort();
    }

    fn sort(&mut self) {
        let rates = &self.rates;
        let rate = |run: &v1::Run| rates.get(&run.name).and_then(Rate::per_second).unwrap_or(0.0);
        match RUN_SORTS[self.run_list.sort] {
            "name" => self.runs.sort_by(|a, b| a.name.cmp(&b.name)),
            "rate" => self.runs.sort_by(|a, b| rate(b).total_cmp(&rate(a)).then_with(|| a.name.cmp(&b.name))),
            _ => self.runs.sort_by(|a, b| urgency(a).cmp(&urgency(b)).then_with(|| a.name.cmp(&b.name))),
        }
        SORTS[self.worker_list.sort].0.apply(&mut self.workers);
    }

    fn run_keys(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.name.clone()).collect()
    }

    fn worker_keys(&self) -> Vec<u64> {
        self.workers.iter().map(|worker| worker.session).collect()
    }

    /// Moves the mark.
    fn move_by(&mut self, by: isize) {
        match self.focus {
            Focus::Runs => self.run_list.move_by(&self.run_keys(), by),
            Focus::Workers => self.worker_list.move_by(&self.worker_keys(), by),
        }
    }
}

/// Reaction to keys.
impl View {
    /// Handles a key, in a terminal with this number of lines.
    pub(super) fn press(&mut self, key: Key, lines: usize) -> Option<Order> {
        use Key::{Character, Down, End, Escape, Home, PageDown, PageUp, Resized, Tab, Up};
        if key == Resized {
            // The terminal is only drawn again. A change of size does not answer a question.
            return None;
        }
        if let Some(asked) = self.asked.take() {
            self.message.clear();
            return (key == Character('y')).then_some(asked);
        }
        let page = lines.saturating_sub(FRAME).max(2) as isize / 2;
        match key {
            Character('q') | Escape => return Some(Order::Quit),
            Up | Character('k') => self.move_by(-1),
            Down | Character('j') => self.move_by(1),
            PageUp => self.move_by(-page),
            PageDown => self.move_by(page),
            Home => self.move_by(isize::MIN),
            End => self.move_by(isize::MAX),
            Tab => {
                self.focus = if self.focus == Focus::Runs { Focus::Workers } else { Focus::Runs };
            }
            Character('s') => {
                match self.focus {
                    Focus::Runs => self.run_list.sort = (self.run_list.sort + 1) % RUN_SORTS.len(),
                    Focus::Workers => self.worker_list.sort = (self.worker_list.sort + 1) % SORTS.len(),
                }
                self.sort();
            }
            Character(letter @ ('p' | 'c' | 'd')) => self.ask(letter),
            _ => {}
        }
        None
    }

    /// Asks for confirmation before something is done with the marked entry.
    fn ask(&mut self, letter: char) {
        let run = || self.runs.get(self.run_list.place(&self.run_keys())).map(|run| run.name.clone());
        let worker = || self.workers.get(self.worker_list.place(&self.worker_keys()));
        let (question, order) = match (letter, self.focus) {
            ('p', Focus::Runs) => match run() {
                Some(name) => (format!("pause {name}"), Order::Pause(name)),
                None => return,
            },
            ('c', Focus::Runs) => match run() {
                Some(name) => (format!("continue {name}"), Order::Resume(name)),
                None => return,
            },
            ('d', Focus::Workers) => match worker() {
                Some(v1::Worker { name, session, .. }) => {
                    let question = format!("let worker {name} (session {session}) finish its tasks and leave");
                    (question, Order::Drain(*session, name.clone()))
                }
                None => return,
            },
            _ => {
                self.message = "Tab goes to the other list: p and c are for runs, d is for workers".into();
                return;
            }
        };
        self.message = format!("{question}? y: yes, any other key: no");
        self.asked = Some(order);
    }
}

/// Drawing.
impl View {
    /// The lines, and the index of the line with the mark.
    pub(super) fn draw(&mut self, columns: usize, height: usize) -> (Vec<String>, Option<usize>) {
        let room = height.saturating_sub(FRAME).max(2 * LIST_MIN);
        // The runs get at most half of the room, unless the workers need less than the other half.
        let half = room.div_ceil(2);
        let for_runs = self.runs.len().clamp(LIST_MIN, half.max(room.saturating_sub(self.workers.len().max(LIST_MIN))));
        let mut text = vec![self.head(columns)];
        let mut marked = None;
        let (keys, focus) = (self.run_keys(), self.focus);
        let window = self.run_list.window(&keys, for_runs);
        let rows: Vec<_> = self.runs[window.clone()].iter().map(|run| self.run_row(run)).collect();
        let title = format!("RUNS by {}{}", RUN_SORTS[self.run_list.sort], of(&window, keys.len()));
        let place = self.run_list.place(&keys);
        let lists = lines(&RUN_COLUMNS, &rows, Some(columns.saturating_sub(2)));
        let at = append(&mut text, title, &lists, place.checked_sub(window.start));
        marked = if focus == Focus::Runs && !rows.is_empty() { at } else { marked };
        let keys = self.worker_keys();
        let window = self.worker_list.window(&keys, room - for_runs);
        let rows: Vec<_> = self.workers[window.clone()].iter().map(row).collect();
        let title = format!("WORKERS by {}{}", SORTS[self.worker_list.sort].1, of(&window, keys.len()));
        let place = self.worker_list.place(&keys);
        let lists = lines(&WORKER_COLUMNS, &rows, Some(columns.saturating_sub(2)));
        let at = append(&mut text, title, &lists, place.checked_sub(window.start));
        marked = if focus == Focus::Workers && !rows.is_empty() { at } else { marked };
        if let Some(line) = marked.and_then(|line| text.get_mut(line)) {
            // Visible even on a terminal without reverse video.
            line.replace_range(..1, ">");
        }
        text.truncate(height.saturating_sub(2));
        text.resize(height.saturating_sub(2), String::new());
        text.push(self.message.clone());
        text.push("q quit  Tab other list  arrows move  s sort  p pause  c continue  d drain".into());
        let text: Vec<String> = text.iter().map(|line| cut(&printable(line), columns)).collect();
        let marked = marked.filter(|line| *line + 2 < height);
        (text[text.len().saturating_sub(height.max(1))..].to_vec(), marked)
    }

    fn head(&self, columns: usize) -> String {
        if let Some(why) = &self.unseen {
            return cut(why, columns);
        }
        let running = self.runs.iter().filter(|run| run.state() == RunState::Running).count();
        let waiting = self.runs.iter().any(|run| run.state() == RunState::Running && run.workers == 0);
        // At the beginning, so that it is visible in a narrow terminal too.
        let nobody = if waiting { "NO WORKER for a run; " } else { "" };
        let lost = self.lost.first().filter(|lost| lost.ago_ms < 60_000);
        let lost = lost.map(|lost| format!("; lost {}: {}", lost.name, lost.reason)).unwrap_or_default();
        let (address, runs) = (&self.coordinator, self.runs.len());
        cut(&format!("{address}: {nobody}{running} of {runs} runs active; {}{lost}", totals(&self.workers)), columns)
    }

    fn run_row(&self, run: &v1::Run) -> [String; 8] {
        let rate = self.rates.get(&run.name).and_then(Rate::per_second);
        let rate = rate.filter(|_| run.state() == RunState::Running);
        let left = rate.map(|rate| time(run.rounds_total.saturating_sub(run.rounds_done) as f64 / rate));
        let done = 100.0 * run.rounds_done as f64 / run.rounds_total.max(1) as f64;
        let why = standstill(run);
        [
            run.name.clone(),
            state(run).to_owned(),
            format!("{} of {}", run.rounds_done, run.rounds_total),
            format!("{:.1} %", (10.0 * done).floor() / 10.0),
            rate.map(rate_text).unwrap_or_default(),
            left.unwrap_or_default(),
            if run.state() == RunState::Running { run.workers.to_string() } else { String::new() },
            why.strip_prefix("; ").unwrap_or(&why).to_owned(),
        ]
    }
}

/// Adds a list to the text; returns the line of the marked entry.
fn append(text: &mut Vec<String>, title: String, list: &[String], marked: Option<usize>) -> Option<usize> {
    text.push(title);
    let first = text.len() + 1;
    text.extend(list.iter().map(|line| format!("  {line}")));
    marked.map(|place| first + place).filter(|line| *line < text.len())
}

/// " (11 to 20 of 100)", or nothing if all entries are shown.
fn of(window: &std::ops::Range<usize>, all: usize) -> String {
    match window.len() < all {
        true => format!(" ({} to {} of {all})", window.start + 1, window.end),
        false => String::new(),
    }
}

/// A sort key that puts runs that need attention first.
fn urgency(run: &v1::Run) -> u8 {
    match run.state() {
        RunState::Running => 0,
        RunState::Failed | RunState::Blocked | RunState::InDoubt => 1,
        RunState::Paused => 2,
        _ => 3,
    }
}

/// The line without characters that would move the cursor.
fn printable(line: &str) -> String {
    line.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
