//! Progress on standard error: a bar on a terminal, a line now and then otherwise.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use evoxo_proto::v1::{self, RunState};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::remote;

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows how far a run has come.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
    /// Rounds that were done when we began to look: for the rate.
    first_rounds: Option<u64>,
    line_due: Instant,
    notices: Vec<String>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg}\n{wide_bar} {pos}/{len} rounds  {per_sec}  {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let start = Instant::now();
        Self { bar, start, first_rounds: None, line_due: start, notices: Vec::new() }
    }

    /// Shows a run as it is now.
    pub(crate) fn show(&mut self, run: &v1::Run) {
        for notice in &run.notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
                self.say(&format!("note: {notice}"));
            }
        }
        let first = *self.first_rounds.get_or_insert(run.rounds_done);
        let message = describe(run);
        match &self.bar {
            Some(bar) => {
                if bar.length() != Some(run.rounds_total) {
                    bar.set_length(run.rounds_total);
                    bar.set_position(first);
                    bar.reset_eta();
                }
                bar.set_message(message);
                bar.set_position(run.rounds_done);
            }
            None if Instant::now() >= self.line_due => {
                self.line_due = Instant::now() + LINE_INTERVAL;
                let rate = (run.rounds_done - first) as f64 / self.start.elapsed().as_secs_f64().max(0.001);
                let rate = if rate >= 1.0 { format!(", {rate:.0} a second") } else { String::new() };
                self.say(&format!("{message}; {} of {} rounds{rate}", run.rounds_done, run.rounds_total));
            }
            None => {}
        }
    }

    /// A line that stays.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => crate::tell(line),
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// "invincible: 12 of 120 replicas finished, best fitness 0.42 (O, 6.5)".
fn describe(run: &v1::Run) -> String {
    let leading = run.arms.iter().find(|arm| arm.headline.is_some() && arm.replicas_finished < run.replicas_total);
    let headline =
        leading.and_then(|arm| arm.headline.map(|value| format!(", {} {value:.3} ({})", arm.headline_name, arm.name)));
    format!(
        "{}: {} of {} replicas finished{}{}",
        run.name,
        run.replicas_finished,
        run.replicas_total,
        headline.unwrap_or_default(),
        standstill(run)
    )
}

/// "; held: why", if nothing goes on.
pub(crate) fn standstill(run: &v1::Run) -> String {
    match run.state() {
        RunState::Running | RunState::Finished => String::new(),
        _ if run.message.is_empty() => format!("; {}", remote::state(run)),
        _ => format!("; {}: {}", remote::state(run), run.message),
    }
}
