//! `evoxo bench scale FILE`: the time of a run with some numbers of workers, beside as many independent processes of one
//! thread. It computes nothing itself: each measurement is an `evoxo run` of this program.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    thread::{available_parallelism, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use evoxo_common::experiment::Registry;
use evoxo_worker::Program;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    file::temporary,
    say::{notice, stdout, tell, whole},
    source::Experiment,
    stop::Stop,
};

/// The run, and the numbers of workers.
#[derive(clap::Args)]
#[command(
    after_help = "For each number of workers N, the file is computed twice: by a cluster of N workers, and by N \
independent processes with --workers 0 at the same time, each of which computes all of it. Nothing else should run on \
the machine.

  seconds      of the run with N workers, from start to end
  waiting      of these, how long a worker had no task (mean over workers)
  report       of these, how long the report took after the last round
  independent  seconds until all N independent processes have ended
  share        rate of the run, relative to the N processes: 1 means that
               nothing is lost

Example:
  evoxo bench scale experiments/invincible.toml --workers 1,2,4

Exit status: 1 if the digests are not all equal, or if a run fails."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// Numbers of workers, separated by commas [default: 1, 2, 4 and so on, up to the number of cores]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = whole::<u32>(1, WORKERS_MAX.into()))]
    workers: Vec<u32>,
    /// Print JSON: {"cores", "equal", "rows": [{"workers", "seconds", "phases", "independent", "share", "digest"}]}
    #[arg(long)]
    json: bool,
}

/// The most workers, which are as many independent processes.
const WORKERS_MAX: u32 = 1024;
/// How often processes are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// After Ctrl-C, which the runs get too, they may take this long to end by themselves.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let config = arguments.experiment.read_to_compute(registry)?;
    let programs = arguments.experiment.programs_of(&config)?;
    let cores = available_parallelism().context("cannot determine the number of cores")?.get() as u32;
    let asked = Some(arguments.workers.clone()).filter(|asked| !asked.is_empty()).unwrap_or_else(|| usual(cores));
    if let Some(many) = asked.iter().max().filter(|many| **many > cores) {
        notice(format_args!("{many} processes share {cores} cores, so no figure of theirs says how a run scales"));
    }
    // Ctrl-C ends the processes, and this one removes what they wrote.
    let stop = Stop::listen()?;
    let desk = temporary()?;
    fs::write(desk.path().join(FILE), config.to_toml())
        .with_context(|| format!("cannot write into {}: set TMPDIR to another place", desk.path().display()))?;
    let session = Session { desk, programs, stop };
    let mut rows: Vec<Row> = Vec::new();
    let mut out = stdout();
    if !arguments.json {
        let [workers, seconds, waiting, report, independent, share] =
            ["workers", "seconds", "waiting", "report", "independent", "share"];
        writeln!(out, "{workers:>7}{seconds:>10}{waiting:>10}{report:>10}{independent:>13}{share:>7}  digest")?;
    }
    for workers in asked {
        let row = session.row(workers)?;
        if !arguments.json {
            writeln!(out, "{}", row.text())?;
            // Each row takes long, so show it at once.
            out.flush()?;
        }
        rows.push(row);
    }
    let digests = || rows.iter().flat_map(|row| &row.digests);
    let equal = digests().all(|digest| Some(digest) == digests().next());
    if arguments.json {
        let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
        writeln!(out, "{:#}", json!({"cores": cores, "equal": equal, "rows": rows}))?;
    }
    if !equal {
        tell("error: the digests differ, so a process of this machine computes wrongly: `evoxo doctor` tries it");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Powers of two up to the number of cores, and this number.
fn usual(cores: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..WORKERS_MAX.ilog2()).map(|power| 1 << power).take_while(|it| *it < cores).collect();
    all.push(cores.min(WORKERS_MAX));
    all
}

/// The name of the experiment file in the temporary directory.
const FILE: &str = "scale.toml";

/// What all measurements have in common.
struct Session {
    desk: TempDir,
    programs: Arc<[Program]>,
    stop: Stop,
}

/// Runs that began at the same time.
struct Measured {
    /// From the start of the first to the end of the last.
    seconds: f64,
    /// The digest of each.
    digests: Vec<String>,
    /// Where the time of the first one went.
    phases: Value,
}

/// A number of workers, and what was measured with it.
struct Row {
    workers: u32,
    seconds: f64,
    phases: Value,
    independent: f64,
    digests: Vec<String>,
}

impl Row {
    /// The rate of the run, relative to that of as many independent processes as it has workers.
    fn share(&self) -> f64 {
        self.independent / (f64::from(self.workers) * self.seconds)
    }

    fn text(&self) -> String {
        let Self { workers, seconds, phases, independent, digests } = self;
        let [waiting, report] = ["waiting", "report"].map(|phase| phases[phase].as_f64().unwrap_or_default());
        let digest: String =
            digests.first().map(|digest| digest.chars().take(DIGEST_LETTERS).collect()).unwrap_or_default();
        let equal = if digests.iter().all(|other| Some(other) == digests.first()) { "" } else { ", others differ" };
        let share = self.share();
        format!(
            "{workers:>7}{seconds:>10.2}{waiting:>10.2}{report:>10.2}{independent:>13.2}{share:>7.2}  {digest}{equal}"
        )
    }

    fn to_json(&self) -> Value {
        let Self { workers, seconds, phases, independent, digests } = self;
        json!({
            "workers": workers,
            "seconds": seconds,
            "phases": phases,
            "independent": independent,
            "share": self.share(),
            "digest": digests.first(),
        })
    }
}

/// How many letters of a digest a table shows.
const DIGEST_LETTERS: usize = 15;

impl Session {
    fn row(&self, workers: u32) -> anyhow::Result<Row> {
        let Measured { seconds, mut digests, phases } = self.measure(workers, 1)?;
        let independent = self.measure(0, workers)?;
        digests.extend(independent.digests);
        Ok(Row { workers, seconds, phases, independent: independent.seconds, digests })
    }

    /// Computes the file so many times at once, each time with so many workers.
    fn measure(&self, workers: u32, times: u32) -> anyhow::Result<Measured> {
        let began = Instant::now();
        let place = |number: u32| self.desk.path().join(format!("{workers}-{number}"));
        let mut runs = Runs(Vec::new());
        for number in 0..times {
            runs.0.push(self.start(workers, &place(number))?);
        }
        let mut asked = None;
        for (number, run) in (0..times).zip(&mut runs.0) {
            let status = loop {
                let status = run.try_wait().context("cannot wait for a run")?;
                if self.stop.is_asked() {
                    let since: &mut Instant = asked.get_or_insert_with(Instant::now);
                    if status.is_some() || since.elapsed() > STOP_PATIENCE {
                        bail!("interrupted: nothing is kept of this measurement");
                    }
                }
                match status {
                    Some(status) => break status,
                    None => sleep(LOOK_INTERVAL),
                }
            };
            if !status.success() {
                let log = fs::read_to_string(log_of(&place(number))).unwrap_or_default();
                let last = log.lines().last().unwrap_or("it printed nothing").to_owned();
                bail!("a run with --workers {workers} failed: {last}");
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let results = (0..times).map(|number| read(&place(number))).collect::<anyhow::Result<Vec<Value>>>()?;
        // Many runs may not fit on the disk together.
        (0..times).try_for_each(|number| fs::remove_dir_all(place(number))).context("cannot remove a run")?;
        let digest = |result: &Value| result["digest"].as_str().unwrap_or_default().to_owned();
        let legs = results.first().and_then(|result| result["provenance"]["legs"].as_array());
        let phases = legs.and_then(|legs| legs.last()).map_or(Value::Null, |leg| leg["phases"].clone());
        Ok(Measured { seconds, digests: results.iter().map(digest).collect(), phases })
    }

    fn start(&self, workers: u32, place: &Path) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let log = log_of(place);
        let log = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        Command::new(program)
            .arg("run")
            .arg(self.desk.path().join(FILE))
            .args(["--no-page", "--workers", &workers.to_string(), "--out"])
            .arg(place)
            .args(self.programs.iter().map(|program| format!("--program={}={}", program.name, program.command)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start a run")
    }
}

/// The file with the messages of the run in this directory.
fn log_of(place: &Path) -> PathBuf {
    place.with_extension("log")
}

/// The result of the run in this directory.
fn read(place: &Path) -> anyhow::Result<Value> {
    let file = place.join("result.json");
    let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", file.display()))
}

/// Runs that go on. Those that still do when this is dropped are ended.
struct Runs(Vec<Child>);

impl Drop for Runs {
    fn drop(&mut self) {
        for run in &mut self.0 {
            // A run that has ended cannot be killed. The workers of a killed one end by themselves.
            drop(run.kill());
            drop(run.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_numbers_end_with_the_cores() {
        assert_eq!([1, 2, 6, 16].map(usual), [vec![1], vec![1, 2], vec![1, 2, 4, 6], vec![1, 2, 4, 8, 16]]);
        assert_eq!(usual(5000).last(), Some(&1024));
    }

    /// Four processes that compute a run each in 8 s do two runs in 4 s; a run with four workers in 2.5 s does less.
    #[test]
    fn the_share_is_a_ratio_of_rates() {
        let phases = json!({"waiting": 0.25, "report": 0.5});
        let digests = vec!["r1:0123456789abcdef".to_owned(); 5];
        let mut row = Row { workers: 4, seconds: 2.5, phases, independent: 8.0, digests };
        assert_eq!(row.share(), 0.8);
        assert_eq!(row.text(), "      4      2.50      0.25      0.50         8.00   0.80  r1:0123456789ab");
        row.digests[3].clear();
        assert!(row.text().ends_with("r1:0123456789ab, others differ"));
    }
}
