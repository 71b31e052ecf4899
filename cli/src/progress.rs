//! Shows progress on standard error: as a bar on a terminal that can draw one, else as a line at intervals.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use evoxo_common::text::rounded;
use evoxo_process::Rate;
use evoxo_proto::v1::{self, RunState};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{remote::standstill, say::tell};

/// Without a terminal: the time of the first line, and the interval between later lines.
const LINE_FIRST: Duration = Duration::from_secs(1);
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// A run must stand still for this long before the reason is printed, because the workers of a new run are still connecting.
const STANDSTILL_SHOWN: Duration = Duration::from_secs(5);
/// How long one arm is shown before the next one's turn.
const ARM_SHOWN: Duration = Duration::from_secs(3);

/// Shows the progress of a run.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    rate: Rate,
    line_due: Instant,
    notices: Vec<String>,
    arms: Turns,
    /// The time since which the run has stood still.
    still: Option<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let draws = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg}\n{wide_bar} {pos} of {len} rounds{prefix}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        // If TERM says that nothing can be drawn, the bar would print nothing at all.
        let bar = draws.filter(|bar| !bar.is_hidden());
        Self {
            bar,
            rate: Rate::default(),
            line_due: Instant::now() + LINE_FIRST,
            notices: Vec::new(),
            arms: Turns::default(),
            still: None,
        }
    }

    /// Prints a notice about a run, once.
    pub(crate) fn note(&mut self, notice: &str) {
        if !self.notices.iter().any(|known| known == notice) {
            self.notices.push(notice.to_owned());
            self.say(&format!("note: {notice}"));
        }
    }

    /// Shows the present state of a run.
    pub(crate) fn show(&mut self, run: &v1::Run) {
        run.notices.iter().for_each(|notice| self.note(notice));
        let now = Instant::now();
        self.rate.note(now, run.rounds_done);
        let lines_due = self.bar.is_some() || now >= self.line_due;
        let arm = lines_due.then(|| self.arms.next(now, run)).flatten();
        let why = standstill(run);
        let since = *self.still.get_or_insert(now);
        let begins = run.state() == RunState::Running && now.duration_since(since) < STANDSTILL_SHOWN;
        if why.is_empty() {
            self.still = None;
        }
        let message = describe(run, arm) + if begins { "" } else { &why };
        let rate = pace(&self.rate, run);
        match &self.bar {
            Some(bar) => {
                bar.set_length(run.rounds_total);
                bar.set_position(run.rounds_done);
                bar.set_message(message);
                bar.set_prefix(rate);
            }
            None if now >= self.line_due => {
                self.line_due = now + LINE_INTERVAL;
                let in_all = if run.arms.len() > 1 { "in all " } else { "" };
                self.say(&format!("{message}; {in_all}{} of {} rounds{rate}", run.rounds_done, run.rounds_total));
            }
            None => {}
        }
    }

    /// Prints a line that is not overwritten.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => tell(line),
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Chooses the arm to show: the arms that go on take turns.
#[derive(Default)]
struct Turns {
    shown: Option<(Instant, usize)>,
    /// The rounds of each arm at the last turn.
    rounds: Vec<u64>,
}

impl Turns {
    /// The index of the arm to show now, if possible one that has advanced since the last turn.
    fn next(&mut self, now: Instant, run: &v1::Run) -> Option<usize> {
        let goes_on = |place: usize| run.arms.get(place).is_some_and(|arm| arm.replicas_finished < arm.replicas_total);
        if let Some((since, place)) = self.shown
            && now.saturating_duration_since(since) < ARM_SHOWN
            && goes_on(place)
        {
            return Some(place);
        }
        let count = run.arms.len();
        let from = self.shown.map_or(0, |(_, place)| place + 1);
        let in_turn = || (0..count).map(|step| (from + step) % count).filter(|place| goes_on(*place));
        let moved = |place: &usize| self.rounds.get(*place).is_none_or(|before| run.arms[*place].rounds_done > *before);
        let place = in_turn().find(moved).or_else(|| in_turn().next());
        self.shown = place.map(|place| (now, place));
        self.rounds = run.arms.iter().map(|arm| arm.rounds_done).collect();
        place
    }
}

/// ", 12 a second, 3 min left"; empty without progress.
fn pace(rate: &Rate, run: &v1::Run) -> String {
    let Some(rounds) = rate.per_second() else { return String::new() };
    let left = time(run.rounds_total.saturating_sub(run.rounds_done) as f64 / rounds);
    format!(", {}, {left} left", rate_text(rounds))
}

/// A rate with two or three significant digits: "12,300 a second", "7.5 a minute".
fn rate_text(per_second: f64) -> String {
    match per_second {
        1000.0.. => {
            let unit = 10_f64.powf(per_second.log10().floor() - 2.0);
            format!("{} a second", grouped(((per_second / unit).round() * unit).round() as u64))
        }
        10.0.. => format!("{per_second:.0} a second"),
        1.0.. => format!("{per_second:.1} a second"),
        _ if per_second * 60.0 >= 1.0 => format!("{:.1} a minute", 60.0 * per_second),
        _ => format!("{:.1} an hour", 3600.0 * per_second),
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in a few characters: "0.4 s", "12 s", "3 m", "2 h", "4 d".
pub(crate) fn short_time(seconds: f64) -> String {
    match seconds {
        ..9.95 => format!("{seconds:.1} s"),
        ..99.5 => format!("{seconds:.0} s"),
        ..5970.0 => format!("{:.0} m", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

/// A duration in readable units: "40 s", "3 min", "2 h 5 min", "4 d 3 h".
pub(crate) fn time(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil() as u64;
    let hours = minutes / 60;
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        ..3600.0 => format!("{minutes} min"),
        ..86_400.0 => format!("{hours} h {} min", minutes - 60 * hours),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// "invincible: 12 of 120 replicas finished; arm O, 6.5 (2 of 6): 40 of 100 rounds, best fitness 0.42". With a single arm,
/// its rounds are those of the run, which are printed separately.
fn describe(run: &v1::Run, arm: Option<usize>) -> String {
    let (name, finished, total) = (&run.name, run.replicas_finished, run.replicas_total);
    let arm = arm.and_then(|place| run.arms.get(place).map(|arm| (place, arm)));
    let arm = arm.map(|(place, arm)| {
        let v1::ArmProgress { rounds_done, rounds_total, primary_metric_name, .. } = arm;
        let which = match run.arms.len() {
            1 => String::new(),
            count => format!("; arm {} ({} of {count}): {rounds_done} of {rounds_total} rounds", arm.name, place + 1),
        };
        let metric =
            arm.primary_metric.map(|value| format!(", {primary_metric_name} {}", rounded(value))).unwrap_or_default();
        which + &metric
    });
    format!("{name}: {finished} of {total} replicas finished{}", arm.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rounds_done: u64) -> v1::Run {
        let arm = |name: &str, finished: u32, metric: f64| v1::ArmProgress {
            name: name.into(),
            replicas_total: 10,
            replicas_finished: finished,
            primary_metric: Some(metric),
            primary_metric_name: "best fitness".into(),
            ..v1::ArmProgress::default()
        };
        v1::Run {
            name: "mine".into(),
            kind: "invincible".into(),
            state: v1::RunState::Running.into(),
            replicas_total: 30,
            replicas_finished: 14,
            rounds_done,
            rounds_total: 1000,
            arms: vec![arm("one", 10, 0.5), arm("two", 4, 0.25), arm("three", 0, 0.125)],
            workers: 2,
            ..v1::Run::default()
        }
    }

    #[test]
    fn progress_is_described() {
        assert_eq!(
            describe(&run(10), Some(1)),
            "mine: 14 of 30 replicas finished; arm two (2 of 3): 0 of 0 rounds, best fitness 0.25"
        );
        let mut single = run(10);
        single.arms.truncate(1);
        assert_eq!(describe(&single, Some(0)), "mine: 14 of 30 replicas finished, best fitness 0.5");
        assert_eq!(describe(&run(10), None), "mine: 14 of 30 replicas finished");
    }

    /// Every arm that goes on has its turn, even if only one advances. Finished arms are not shown.
    #[test]
    fn unfinished_arms_are_shown_in_turn() {
        let (mut turns, start) = (Turns::default(), Instant::now());
        let mut run = run(10);
        run.arms.push(v1::ArmProgress { name: "four".into(), replicas_total: 10, ..v1::ArmProgress::default() });
        let mut shown = |seconds: u64, moved: usize| {
            run.arms[moved].rounds_done += 1;
            turns.next(start + Duration::from_secs(seconds), &run)
        };
        assert_eq!([shown(0, 1), shown(1, 2), shown(2, 3)], [Some(1); 3]);
        assert_eq!([shown(4, 3), shown(8, 3)], [Some(2), Some(3)]);
        assert_eq!([shown(12, 1), shown(16, 1)], [Some(1), Some(1)], "the arm that advances is shown first");
        assert_eq!(shown(20, 2), Some(2));
        run.arms.iter_mut().for_each(|arm| arm.replicas_finished = 10);
        assert_eq!(turns.next(start + Duration::from_secs(99), &run), None);
    }

    #[test]
    fn rates_have_a_sensible_number_of_digits() {
        let rates = [123_456.0, 1_000.4, 123.4, 12.3, 1.23, 0.5, 0.001].map(rate_text);
        let texts = [
            "123,000 a second",
            "1,000 a second",
            "123 a second",
            "12 a second",
            "1.2 a second",
            "30.0 a minute",
            "3.6 an hour",
        ];
        assert_eq!(rates, texts);
        assert_eq!([0.44, 59.0, 100.0, 7000.0, 200_000.0].map(short_time), ["0.4 s", "59 s", "2 m", "2 h", "2 d"]);
    }

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let mut seen = |seconds: u64, rounds: u64| {
            rate.note(start + Duration::from_secs(seconds), rounds);
            pace(&rate, &run(rounds))
        };
        assert_eq!(seen(0, 100), "");
        assert_eq!(seen(10, 100), "");
        assert_eq!(seen(20, 300), ", 10 a second, 2 min left");
        // Much later, the first rounds no longer influence the rate.
        assert_eq!(seen(100, 310), ", 7.5 a minute, 1 h 32 min left");
        assert_eq!(seen(200, 315), ", 3.0 a minute, 3 h 49 min left");
    }

    #[test]
    fn times_have_at_most_two_units() {
        let times = [0.4, 59.0, 61.0, 3599.0, 3601.0, 90_000.0].map(time);
        assert_eq!(times, ["0 s", "59 s", "2 min", "60 min", "1 h 1 min", "1 d 1 h"]);
    }
}
