//! Progress on standard error: a bar on a terminal, otherwise a line at intervals.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use evoxo_coordinator::rate::Rate;
use evoxo_proto::v1;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{remote::standstill, say::tell};

/// Without a terminal: the time of the first line, and the interval of further ones.
const LINE_FIRST: Duration = Duration::from_secs(1);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of a run.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    rate: Rate,
    line_due: Instant,
    notices: Vec<String>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg}\n{wide_bar} {pos} of {len} rounds{prefix}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, rate: Rate::default(), line_due: Instant::now() + LINE_FIRST, notices: Vec::new() }
    }

    /// Shows the present state of a run.
    pub(crate) fn show(&mut self, run: &v1::Run) {
        for notice in &run.notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
                self.say(&format!("note: {notice}"));
            }
        }
        let now = Instant::now();
        self.rate.note(now, run.rounds_done);
        let (message, rate) = (describe(run), pace(&self.rate, run));
        match &self.bar {
            Some(bar) => {
                bar.set_length(run.rounds_total);
                bar.set_position(run.rounds_done);
                bar.set_message(message);
                bar.set_prefix(rate);
            }
            None if now >= self.line_due => {
                self.line_due = now + LINE_INTERVAL;
                self.say(&format!("{message}; {} of {} rounds{rate}", run.rounds_done, run.rounds_total));
            }
            None => {}
        }
    }

    /// Prints a line that stays.
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

/// ", 12 a second, 3 min left"; empty if there is no progress.
fn pace(rate: &Rate, run: &v1::Run) -> String {
    let Some(rounds) = rate.per_second() else { return String::new() };
    let text = match rounds {
        10.0.. => format!("{rounds:.0} a second"),
        1.0.. => format!("{rounds:.1} a second"),
        _ => format!("{:.1} a minute", 60.0 * rounds),
    };
    format!(", {text}, {} left", time(run.rounds_total.saturating_sub(run.rounds_done) as f64 / rounds))
}

/// A time in readable units: "40 s", "3 min", "2 h 5 min", "4 d 3 h".
fn time(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil() as u64;
    let hours = minutes / 60;
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        ..3600.0 => format!("{minutes} min"),
        ..86_400.0 => format!("{hours} h {} min", minutes - 60 * hours),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// "invincible: 12 of 120 replicas finished, O, 6.5: best fitness 0.42"; the metric is that of the first unfinished
/// arm.
fn describe(run: &v1::Run) -> String {
    let going_on = |arm: &&v1::ArmProgress| arm.replicas_finished < arm.replicas_total;
    let arm = run.arms.iter().find(going_on);
    let figure =
        arm.and_then(|arm| Some(format!(", {}: {} {:.3}", arm.name, arm.primary_metric_name, arm.primary_metric?)));
    format!(
        "{}: {} of {} replicas finished{}{}",
        run.name,
        run.replicas_finished,
        run.replicas_total,
        figure.unwrap_or_default(),
        standstill(run)
    )
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

    /// The arm that is shown is an unfinished one. Without workers there is no rate.
    #[test]
    fn progress_is_described() {
        assert_eq!(describe(&run(10)), "mine: 14 of 30 replicas finished, two: best fitness 0.250");
        let alone = v1::Run { workers: 0, ..run(10) };
        assert!(describe(&alone).ends_with("; no worker computes \"invincible\" yet"), "{}", describe(&alone));
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
        // Much later, the beginning no longer counts.
        assert_eq!(seen(100, 310), ", 7.5 a minute, 1 h 32 min left");
        assert_eq!(seen(200, 315), ", 3.0 a minute, 3 h 49 min left");
    }

    #[test]
    fn times_have_at_most_two_units() {
        let times = [0.4, 59.0, 61.0, 3599.0, 3601.0, 90_000.0].map(time);
        assert_eq!(times, ["0 s", "59 s", "2 min", "60 min", "1 h 1 min", "1 d 1 h"]);
    }
}
