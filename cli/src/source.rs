//! Experiment files given on the command line, with overrides.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use evoxo_common::experiment::{Config, FILE_BYTES_MAX, Problems, REPLICAS_MAX, Registry};

use crate::{
    file,
    say::{notice, program, usage, whole},
};

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
    /// The seed, instead of the file's
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX >> 1))]
    seed: Option<u64>,
    /// Replicas of each arm, instead of the file's; more on a finished run computes only the new ones
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = whole::<u32>(1, REPLICAS_MAX.into())
    )]
    replicas: Option<u32>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE, for example penalty=6.5")?;
    Ok((key.trim().into(), value.trim().into()))
}

impl Experiment {
    /// The configuration of the file with the overrides.
    pub(crate) fn read(&self, registry: &Registry) -> anyhow::Result<Config> {
        let name = self.file.display().to_string();
        let advice = format!(", or start from one that `{} new KIND` prints", program());
        let bytes = file::read(&self.file, FILE_BYTES_MAX, &advice)?;
        let text = String::from_utf8(bytes).ok().with_context(|| format!("{name} is not a text in UTF-8"))?;
        let mut overrides = self.overrides.clone();
        overrides.extend(self.seed.map(|seed| ("seed".into(), seed.to_string())));
        overrides.extend(self.replicas.map(|replicas| ("replicas".into(), replicas.to_string())));
        Config::overruled(registry, &text, &self.overrides, &self.arms).iter().for_each(notice);
        let config = Config::parse_arms(registry, &name, &text, &overrides, &self.arms).map_err(|problems| {
            let typed = problems.list.iter().any(|problem| problem.typed);
            if typed { usage(describe(&problems)) } else { anyhow!(describe(&problems)) }
        })?;
        config.notes().iter().for_each(notice);
        Ok(config)
    }

    /// The file's name as a run's name.
    pub(crate) fn run_name(&self) -> String {
        let stem = self.file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c) { c } else { '-' };
        let name: String = stem.chars().map(plain).take(64).collect();
        let name = name.trim_start_matches(['-', '_', '.']);
        if name.is_empty() { "run".into() } else { name.into() }
    }
}

/// One problem on the line of the error, or several below it.
fn describe(problems: &Problems) -> String {
    match problems.list.len() {
        1 => problems.to_string(),
        count => format!("{count} problems in {}\n{problems}", problems.file),
    }
}
