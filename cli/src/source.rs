//! Experiment files given on the command line, with overrides.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use evoxo_common::{
    digest::Digest,
    experiment::{Arm, Config, FILE_BYTES_MAX, Problems, REPLICAS_MAX, Registry, Said},
};
use evoxo_worker::{Processes, Program};

use crate::{
    file,
    say::{notice, program, usage, whole},
    stop,
};

/// The most files that the settings of one experiment file may name.
const FILES_MAX: usize = 1024;
/// If programs answer within this time, they are asked once more.
const ASKED_AGAIN_WITHIN: Duration = Duration::from_secs(10);
/// If a program has not answered after this time, a notice says that it is being waited for.
const SILENCE_NOTICED: Duration = Duration::from_secs(5);

/// An experiment file and its overrides.
#[derive(clap::Args, Clone)]
pub(crate) struct Experiment {
    /// The experiment file (`evoxo new KIND` prints one to start from)
    file: PathBuf,
    /// Override a setting for all arms, or for one as arms.NAME.SETTING; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    overrides: Vec<(String, String)>,
    /// Compute only this arm of the file; may be repeated. Its results are the same as in a run of all arms
    #[arg(long = "arm", value_name = "NAME")]
    arms: Vec<String>,
    /// The seed, instead of the one in the file
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX >> 1))]
    seed: Option<u64>,
    /// Replicas of each arm, instead of the number in the file; for a finished run, a larger number computes only the new
    /// ones
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = whole::<u32>(1, REPLICAS_MAX.into())
    )]
    replicas: Option<u32>,
    /// A program that the experiment asks, for example rosen="python3 rosen.py"; may be repeated
    #[arg(long = "program", value_name = "NAME=COMMAND")]
    programs: Vec<Program>,
}

/// A setting and its value, as typed.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE, for example penalty=6.5")?;
    Ok((key.trim().into(), value.trim().into()))
}

impl Experiment {
    /// An experiment file as it is, with a program that it asks.
    pub(crate) fn of(file: PathBuf, program: Program) -> Self {
        Self { file, overrides: Vec::new(), arms: Vec::new(), seed: None, replicas: None, programs: vec![program] }
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the configuration: the file with the overrides.
    pub(crate) fn read(&self, registry: &Registry) -> anyhow::Result<Config> {
        Ok(self.read_timed(registry)?.0)
    }

    /// Reads the configuration for a run. The programs are asked once more and must give the same answers: each worker asks
    /// them too and would refuse different ones, and then nobody would compute the run.
    pub(crate) fn read_to_compute(&self, registry: &Registry) -> anyhow::Result<Config> {
        let (config, took) = self.read_timed(registry)?;
        if took < ASKED_AGAIN_WITHIN {
            let mut again = Processes::new(self.programs.as_slice().into());
            if config.arms.iter().any(|arm| self.settings_of_program(&config, arm, &mut again).is_err()) {
                let check = program();
                bail!(
                    "a program gave another answer when it was asked again, so workers could not agree: `{check} check` \
                    shows the difference"
                );
            }
        }
        Ok(config)
    }

    /// The configuration, and how long it took to ask programs and read files.
    fn read_timed(&self, registry: &Registry) -> anyhow::Result<(Config, Duration)> {
        let name = self.file.display().to_string();
        let advice = format!(", or start from one that `{} new KIND` prints", program());
        let bytes = file::read(&self.file, FILE_BYTES_MAX, &advice)?;
        let text = String::from_utf8(bytes).ok().with_context(|| format!("{name} is not UTF-8 text"))?;
        let mut overrides = self.overrides.clone();
        overrides.extend(self.seed.map(|seed| ("seed".into(), seed.to_string())));
        overrides.extend(self.replicas.map(|replicas| ("replicas".into(), replicas.to_string())));
        Config::overruled(registry, &text, &self.overrides, &self.arms).iter().for_each(notice);
        let parse = |overrides: &[(String, String)]| {
            Config::parse_arms(registry, &name, &text, overrides, &self.arms).map_err(|problems| {
                let typed = problems.list.iter().any(|problem| problem.typed);
                if typed { usage(describe(&problems)) } else { anyhow!(describe(&problems)) }
            })
        };
        let mut config = parse(&overrides)?;
        let mut asked = Duration::ZERO;
        for _ in 0..FILES_MAX {
            let began = Instant::now();
            let said = self.settings_from_outside(&config)?;
            asked += began.elapsed();
            overrides.retain(|(key, _)| said.iter().all(|(other, _)| other != key));
            let done = said.is_empty();
            overrides.extend(said);
            config = if done { config } else { parse(&overrides)? };
            // A file may name another file.
            if config.missing_file().is_none() {
                break;
            }
        }
        Config::follows(registry, &text, &overrides, &self.arms).iter().for_each(notice);
        config.notes().iter().for_each(notice);
        Config::idle(registry, &text, &overrides, &self.arms).iter().for_each(notice);
        let given = config.arms.len();
        let config = config.completed(self.arms.is_empty());
        for arm in &config.arms[given..] {
            let (name, new, kind) = (&arm.name, program(), config.kind.name);
            notice(format_args!("arm {name:?} is added to the arms of the file (`{new} new {kind}` says why)"));
        }
        Ok((config, asked))
    }

    /// The settings that follow from the given programs and from files that settings name, as overrides for the arms that do
    /// not have these settings.
    fn settings_from_outside(&self, config: &Config) -> anyhow::Result<Vec<(String, String)>> {
        if !self.programs.is_empty() {
            stop::with_programs()?;
        }
        let mut processes = Processes::new(self.programs.as_slice().into());
        let of_arm = |arm: &Arm| {
            let mut said = self.settings_of_program(config, arm, &mut processes)?;
            said.extend(self.settings_of_file(config, arm)?);
            Ok(said)
        };
        let said = with_notice(&self.programs, || config.arms.iter().map(of_arm).collect::<anyhow::Result<Vec<_>>>())?;
        let owned = |(name, value): &Said| ((*name).to_owned(), value.clone());
        match said.split_first() {
            // In a file without arms, the only arm has no name that an override could use.
            Some((first, others)) if others.iter().all(|other| other == first) => Ok(first.iter().map(owned).collect()),
            _ => {
                let of_arm = |(arm, said): (&Arm, &Vec<Said>)| {
                    let name = format!("arms.{:?}", arm.name);
                    said.iter().map(|(setting, value)| (format!("{name}.{setting}"), value.clone())).collect::<Vec<_>>()
                };
                Ok(config.arms.iter().zip(&said).flat_map(of_arm).collect())
            }
        }
    }

    /// The settings that follow from the program that an arm asks, if that program was given.
    fn settings_of_program(&self, config: &Config, arm: &Arm, programs: &mut Processes) -> anyhow::Result<Vec<Said>> {
        let given = |name: &str| self.programs.iter().any(|program| program.name == name);
        match config.kind.asks {
            Some(asks) if (asks.program)(&arm.settings).is_some_and(|asked| given(&asked.name)) => {
                (asks.settings)(&arm.settings, programs).map_err(|why| anyhow!("arm {:?}: {why}", arm.name))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The settings that follow from the file that an arm's settings name, if they name one.
    fn settings_of_file(&self, config: &Config, arm: &Arm) -> anyhow::Result<Vec<Said>> {
        let Some(reads) = config.kind.reads else { return Ok(Vec::new()) };
        let Some(named) = (reads.file)(&arm.settings) else { return Ok(Vec::new()) };
        let path = self.file.with_file_name(named);
        let advice = format!(", which is relative to the directory of {}", self.file.display());
        let bytes = file::read(&path, reads.bytes_max, &advice)?;
        (reads.settings)(&arm.settings, &bytes).map_err(|why| anyhow!("arm {:?}: {}: {why}", arm.name, path.display()))
    }

    /// The programs for a run on this machine. They must be exactly those that the run asks.
    pub(crate) fn programs_of(&self, config: &Config) -> anyhow::Result<Arc<[Program]>> {
        let all = config.programs();
        let given = |name: &str| self.programs.iter().any(|program| program.name == name);
        if let Some(asked) = all.iter().find(|asked| !given(&asked.name)) {
            return Err(usage(format!(
                "the experiment asks the program {0}: give its command, for example --program {0}=\"python3 {0}.py\"",
                asked.name
            )));
        }
        if let Some(Program { name, .. }) =
            self.programs.iter().find(|given| all.iter().all(|asked| asked.name != given.name))
        {
            return Err(usage(format!("the experiment does not ask a program {name}: leave out --program {name}")));
        }
        Ok(self.programs.as_slice().into())
    }

    /// The file's name, made into a run's name.
    pub(crate) fn run_name(&self) -> String {
        plain_name(&self.file.file_stem().unwrap_or_default().to_string_lossy())
    }
}

/// A run's name made from any text: in lower case, with "-" in place of characters that a run's name cannot have.
pub(crate) fn plain_name(called: &str) -> String {
    let called = called.to_lowercase();
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c) { c } else { '-' };
    let name: String = called.chars().map(plain).take(64).collect();
    let name = name.trim_start_matches(['-', '_', '.']);
    let name = if name.is_empty() { "run" } else { name };
    // Names in other scripts must stay distinct too.
    match called.is_ascii() {
        true => name.into(),
        false => format!(
            "{}-{}",
            name[..name.len().min(48)].trim_end_matches('-'),
            &Digest::of(called.as_bytes()).to_string()[..8]
        ),
    }
}

/// Calls `ask`, which asks programs. A notice is printed if they do not answer for long.
pub(crate) fn with_notice<T>(programs: &[Program], ask: impl FnOnce() -> T) -> T {
    if programs.is_empty() {
        return ask();
    }
    let (done, waits) = mpsc::channel::<()>();
    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(SILENCE_NOTICED) == Err(RecvTimeoutError::Timeout) {
                notice(format_args!(
                    "no answer of {} for {} s: it is waited for. If it computes nothing, it may wait for more input: it must \
                     read each line at once (`mawk -W interactive`) and flush what it writes",
                    names.join(", "),
                    SILENCE_NOTICED.as_secs()
                ));
            }
        });
        let answer = ask();
        drop(done);
        answer
    })
}

/// One problem on the line of the error, or several problems below it.
fn describe(problems: &Problems) -> String {
    match problems.list.len() {
        1 => problems.to_string(),
        count => format!("{count} problems in {}\n{problems}", problems.file),
    }
}
