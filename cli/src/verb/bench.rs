//! `evoxo bench`: the throughput on one core of the optimized kernels and of their reference implementations, and the
//! behaviour signatures of this build.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use cpu_time::ThreadTime;
use evoxo_common::{
    experiment::{Kernel, Kind, Registry},
    simd,
    task::{Encoder, TaskKind},
};
use evoxo_worker::cli::Simd;
use serde_json::{Map, Value, json};

use super::scale;
use crate::say::{stdout, usage};

/// What to measure.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The figures are for one core, per second of processor time, which other programs on the machine \
disturb less than wall-clock time. Both times of the measurement are printed beside the figures. On other machines, \
only ratios mean much.

A behaviour signature is the hash of a fixed workload's outputs: builds with the same signature may work on the same run.

--workload writes that workload as files KIND-TASK-NUMBER.task and .output, for authors of worker programs in other \
languages."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Measure only the kernel with this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Instructions that the kernels may use; results do not depend on them
    #[arg(long, value_enum, default_value_t)]
    simd: Simd,
    /// Measure nothing; instead write the fixed workload of each kind of task into this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "only")]
    workload: Option<PathBuf>,
    /// Print JSON: {"kernels": [{"kind", "name", "unit", "fast", "reference", "processor_s", "passed_s", "parts"}],
    /// "signatures", "tasks"}
    #[arg(long)]
    json: bool,
}

/// What to measure instead of kernels.
#[derive(clap::Subcommand)]
enum What {
    /// Measure a run with several numbers of workers, beside as many independent processes
    Scale(scale::Arguments),
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    if let Some(What::Scale(arguments)) = &arguments.what {
        return scale::run(arguments, registry);
    }
    simd::set_level(arguments.simd.level());
    if let Some(directory) = &arguments.workload {
        write_workload(registry, directory)?;
        return print(arguments, registry, &[]);
    }
    let all = || registry.kinds().iter().flat_map(|kind| kind.kernels.iter().map(|kernel| (*kind, kernel)));
    let chosen = |(_, kernel): &(&Kind, &Kernel)| arguments.only.as_ref().is_none_or(|only| kernel.name == only);
    let figures: Vec<Figures> = all().filter(chosen).map(|(kind, kernel)| measure(kind, kernel)).collect();
    if figures.is_empty() {
        let names: Vec<&str> = all().map(|(_, kernel)| kernel.name).collect();
        return Err(usage(format!("there is no such kernel: --only takes {}", names.join(", "))));
    }
    print(arguments, registry, &figures)
}

/// The throughput of a kernel, in units of work per second of processor time.
struct Figures {
    kind: &'static str,
    kernel: &'static Kernel,
    fast: f64,
    reference: f64,
    /// The processor time of both measurements together.
    processor: Duration,
    /// The wall-clock time of both measurements together.
    passed: Duration,
    /// Throughput of the parts of the optimized kernel's work.
    parts: Vec<(&'static str, f64)>,
}

/// Measures both implementations in turns, so that other load affects both. Returns the best rate of each.
fn measure(kind: &'static Kind, kernel: &'static Kernel) -> Figures {
    let (mut best, mut processor, mut passed) = ([0.0_f64; 2], Duration::ZERO, Duration::ZERO);
    // The first call may prepare data, which is not measured.
    (kernel.fast)();
    for _ in 0..5 {
        for (best, work) in best.iter_mut().zip([kernel.fast, kernel.reference]) {
            let (start, work_start, mut done) = (Instant::now(), ThreadTime::now(), 0);
            while work_start.elapsed() < Duration::from_millis(150) {
                done += work();
            }
            let took = work_start.elapsed();
            *best = best.max(done as f64 / took.as_secs_f64());
            (processor, passed) = (processor + took, passed + start.elapsed());
        }
    }
    let [fast, reference] = best;
    let parts = kernel.parts.map_or(Vec::new(), |parts| parts());
    let parts = parts.into_iter().map(|(unit, number)| (unit, number * fast)).collect();
    Figures { kind: kind.name, kernel, fast, reference, processor, passed, parts }
}

fn print(arguments: &Arguments, registry: &Registry, figures: &[Figures]) -> anyhow::Result<ExitCode> {
    let tasks = || registry.kinds().iter().flat_map(|kind| kind.tasks);
    let mut out = stdout();
    if arguments.json {
        let kernel = |it: &Figures| {
            json!({
                "kind": it.kind,
                "name": it.kernel.name,
                "unit": it.kernel.unit,
                "fast": it.fast.round(),
                "reference": it.reference.round(),
                "processor_s": seconds(it.processor),
                "passed_s": seconds(it.passed),
                "parts": it.parts.iter().map(|part| (part.0.to_owned(), part.1.round().into())).collect::<Map<_, _>>(),
            })
        };
        let signature = |kind: &&'static Kind| (kind.name.to_owned(), registry.signature(kind).to_string().into());
        let task = |task: &'static TaskKind| (format!("{task:?}"), task.signature().to_string().into());
        let all = json!({
            "kernels": figures.iter().map(kernel).collect::<Value>(),
            "signatures": registry.kinds().iter().map(signature).collect::<Map<_, _>>(),
            "tasks": tasks().map(task).collect::<Map<_, _>>(),
        });
        writeln!(out, "{all:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !figures.is_empty() {
        let [kernel, fast, processor, passed] = ["kernel", "fast", "processor", "passed"];
        writeln!(
            out,
            "{kernel:<16}{fast:>14}{:>14}{:>8}{processor:>11}{passed:>9}  on one core",
            "reference", "ratio"
        )?;
        for Figures { kernel, fast, reference, processor, passed, parts, .. } in figures {
            let ratio = fast / reference;
            let (fast, reference) = (grouped(*fast), grouped(*reference));
            let times = format!("{:>9.2} s{:>7.2} s", processor.as_secs_f64(), passed.as_secs_f64());
            writeln!(out, "{:<16}{fast:>14}{reference:>14}{ratio:>8.1}{times}  {}", kernel.name, kernel.unit)?;
            for (unit, rate) in parts {
                writeln!(out, "{:<16}{:>14}{:>42}  {unit}", "", grouped(*rate), "")?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "behaviour signatures")?;
    for kind in registry.kinds() {
        writeln!(out, "  {:<24}{}", kind.name, registry.signature(kind))?;
        for task in kind.tasks {
            writeln!(out, "    {:<22}{}", task.work, task.signature())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the tasks behind the signatures to files; the output of each task goes into another file.
fn write_workload(registry: &Registry, directory: &Path) -> anyhow::Result<()> {
    let unwritable = || format!("cannot write into {}: choose another directory", directory.display());
    fs::create_dir_all(directory).with_context(unwritable)?;
    for task in registry.kinds().iter().flat_map(|kind| kind.tasks) {
        for (number, (task, output)) in task.workload().into_iter().enumerate() {
            let stem = format!("{}-{}-{number}", task.kind.experiment, task.kind.work);
            let whole = Encoder::default().encode(task).whole();
            fs::write(directory.join(format!("{stem}.task")), whole).with_context(unwritable)?;
            fs::write(directory.join(format!("{stem}.output")), output).with_context(unwritable)?;
        }
    }
    Ok(())
}

/// Seconds, to the millisecond.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// A whole number with a space between groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use evoxo_common::{
        digest::Digest,
        task::{Encoded, NoPrograms},
    };

    #[test]
    fn every_kernel_does_some_work() {
        let kernels = |kind: &&'static Kind| kind.kernels.iter().map(move |kernel| (kernel.fast, kernel.reference));
        for (fast, reference) in evoxo_experiments::registry().kinds().iter().flat_map(kernels) {
            assert!(fast() > 0 && reference() > 0);
        }
    }

    #[test]
    fn digits_in_groups() {
        assert_eq!([1.0, 999.0, 1000.0, 12_345_678.4].map(grouped), ["1", "999", "1 000", "12 345 678"]);
    }

    /// The files are sufficient: each task yields its output, and the outputs yield the signatures as worker.proto specifies.
    #[test]
    fn another_worker_can_compute_the_workload_files() {
        let registry = evoxo_experiments::registry();
        let directory = tempfile::tempdir().unwrap();
        write_workload(&registry, directory.path()).unwrap();
        for kind in registry.kinds() {
            let hash_of_outputs = |work: &str| {
                let file = |number: usize, ending: &str| {
                    fs::read(directory.path().join(format!("{}-{work}-{number}.{ending}", kind.name))).ok()
                };
                let outputs: Vec<Vec<u8>> = (0..).map_while(|number| file(number, "output")).collect();
                assert!(!outputs.is_empty(), "{}/{work}", kind.name);
                for (number, output) in outputs.iter().enumerate() {
                    let task = Encoded::of_whole(&Bytes::from(file(number, "task").unwrap())).unwrap();
                    let computed =
                        registry.run(&task, &mut NoPrograms).unwrap_or_else(|refusal| refusal.0.into_bytes().into());
                    assert_eq!(computed, *output, "{}/{work} {number}", kind.name);
                }
                Digest::of_pieces(outputs.iter().map(Vec::as_slice))
            };
            let tasks = kind.tasks.iter().map(|task| (task.work, hash_of_outputs(task.work)));
            let played = kind.plays.iter().map(|kind| (kind.name, registry.signature(kind)));
            let hashes: Vec<(&str, Digest)> = tasks.chain(played).collect();
            let signature = Digest::of_pieces(hashes.iter().flat_map(|(name, hash)| [name.as_bytes(), &hash.0]));
            assert_eq!(signature, registry.signature(kind), "{}", kind.name);
        }
    }
}
