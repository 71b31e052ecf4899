//! `evoxo verify DIR`: checks whether results are what the run computes. It needs no cluster and trusts nobody.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::Write,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use evoxo_common::{
    experiment::Registry,
    parallel,
    report::Report,
    rng::{Stream, shuffle},
};
use serde_json::{Value, json};

use crate::{
    claims::{Claims, Difference, Key},
    progress::Progress,
    recompute::{Recomputed, Recomputing, recompute},
    results::{Provenance, Results, add_report},
    say::{notice, printed, share, stdout, whole},
};

/// The results, and how much of them to compute.
#[derive(clap::Args)]
#[command(
    after_help = "Each replica is computed from its beginning, on this machine, and compared with everything that \
the results claim about it: each row of history.csv, the digests, the champion, the state in store/. Then the tables \
and figures in result.json are made again and compared. With --share less is verified: a wrong replica is found with \
that probability, and curves and figures of replicas in result.json are not checked.

Sentences, state, doubts and provenance in result.json, config.toml, plots/, other tables and populations/ are not \
compared: they follow from the rest, or describe how the run went.

Examples:
  evoxo verify out/invincible
  evoxo verify out/td3d-paper --share 5%
  evoxo verify docs/reproduction/td3d/result-nearest.json --share 1%

Exit status: 0 if the results are as computed; 1 if they are not, or cannot be computed here; 2 for wrong usage."
)]
pub(crate) struct Arguments {
    /// A finished run's directory, or its result.json alone
    path: PathBuf,
    /// Compute only this share of the replicas, drawn at random, but at least one
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = share)]
    share: u32,
    /// The seed for that draw [default: unpredictable; it is printed]
    #[arg(long, value_parser = whole::<u64>(0, u64::MAX >> 1))]
    seed: Option<u64>,
    #[command(flatten)]
    with: Recomputing,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// A share of 100 %, in millionths.
const ALL: u32 = 1_000_000;
/// The most differences that are printed as text.
const SHOWN_MAX: usize = 10;

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (claims, mut differences) = Claims::read(registry, &arguments.path)?;
    if claims.is_of_early_build() {
        bail!(
            "{} has the digest of an earlier build, which did not cover the history: compute the run again with `evoxo run`",
            arguments.path.display()
        );
    }
    let config = &claims.config;
    let other_build = note_of_build(registry, &claims);
    let programs = arguments.with.programs(registry, config)?;
    let all: Vec<Key> = claims.keys().collect();
    let seed = arguments.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 1);
    let keys = draw(&all, arguments.share, seed);
    let threads = arguments.with.threads()?;
    let mut progress = Progress::new();
    let recomputed = recompute(&claims, &keys, threads, &programs, &mut progress, &|_, _| {});
    progress.end();
    let Recomputed { replicas, differences: of_replicas, rounds } = recomputed?;
    differences.extend(of_replicas);
    parallel::set_threads(threads);
    if keys.len() == all.len() && replicas.len() == all.len() {
        let computed = Results::of(config.clone(), replicas, Vec::new(), None).to_json(Provenance::Known(Value::Null));
        differences.extend(claims.check_result(&computed));
        claims.note_of_sentence(&computed);
    } else if keys.len() < all.len() {
        // The tables are made from the replicas in result.json.
        match registry.report_of_result(&claims.result) {
            Ok(report) => differences.extend(claims.check_result(&with_report(&claims.result, &report))),
            Err(why) => notice(format_args!("the tables in result.json are not compared: {why}")),
        }
    }
    let found = Found { claims: &claims, keys: &keys, of: all.len(), rounds, seed, differences, other_build };
    found.print(arguments.json)
}

/// The result, with the parts that a report contributes.
fn with_report(result: &Value, report: &Report) -> Value {
    let mut made = result.clone();
    add_report(&mut made, report);
    made
}

/// Prints a notice, and returns true, if the results come from a build with another behaviour signature.
fn note_of_build(registry: &Registry, claims: &Claims) -> bool {
    let ours = registry.signature(claims.config.kind).to_string();
    let theirs = claims.result["provenance"]["signature"].as_str();
    let other = theirs.is_some_and(|theirs| theirs != ours);
    if other {
        let short = |text: &str| text.chars().take(16).collect::<String>();
        notice(format_args!(
            "the results were computed by a build with the behaviour {}, and this one has {}: differences may come from \
            that, and agreement counts all the more",
            short(theirs.unwrap_or_default()),
            short(&ours)
        ));
    }
    other
}

/// Draws this share of the replicas, rounded up, and returns them in order.
fn draw(all: &[Key], millionths: u32, seed: u64) -> Vec<Key> {
    let count = (all.len() as u64 * u64::from(millionths)).div_ceil(u64::from(ALL)) as usize;
    let mut drawn = all.to_vec();
    shuffle(&mut Stream::root(seed).text("verify").rng(), &mut drawn);
    drawn.truncate(count.max(1));
    drawn.sort_unstable();
    drawn
}

/// Unless all replicas are computed again, these parts of `result.json` are not verified.
const BELIEVED: &str = "curves and figures of replicas in result.json were not computed again, only the tables made from \
    them; without --share all of them are";

/// The findings.
struct Found<'a> {
    claims: &'a Claims,
    keys: &'a [Key],
    of: usize,
    rounds: u64,
    seed: u64,
    differences: Vec<Difference>,
    other_build: bool,
}

impl Found<'_> {
    /// Prints the findings and returns the exit status.
    fn print(&self, as_json: bool) -> anyhow::Result<ExitCode> {
        printed(self.write(&mut stdout(), as_json))?;
        Ok(if self.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn write(&self, out: &mut impl Write, as_json: bool) -> std::io::Result<()> {
        let all = self.keys.len() == self.of;
        if as_json {
            let found = json!({
                "as_computed": self.differences.is_empty(),
                "replicas": self.keys.len(),
                "of_replicas": self.of,
                "rounds": self.rounds,
                "of_rounds": self.claims.result["rounds"],
                "seed": (!all).then_some(self.seed),
                "not_compared": (!all).then_some(BELIEVED),
                "other_build": self.other_build,
                "differences": self.differences.iter().map(Difference::to_json).collect::<Value>(),
            });
            writeln!(out, "{found:#}")?;
        } else {
            let (replicas, rounds) = (self.keys.len(), self.rounds);
            let of_rounds = self.claims.result["rounds"].as_u64().filter(|_| !all);
            let of = match (all, of_rounds) {
                (true, _) => format!("all {replicas} replicas, {rounds} rounds"),
                (false, Some(of_rounds)) => {
                    format!("{replicas} of {} replicas, {rounds} of {of_rounds} rounds (--seed {})", self.of, self.seed)
                }
                (false, None) => format!("{replicas} of {} replicas, {rounds} rounds (--seed {})", self.of, self.seed),
            };
            let digest = self.claims.result["digest"].as_str().unwrap_or_default();
            if self.differences.is_empty() {
                writeln!(out, "as computed: {of}; digest {digest}")?;
            } else {
                let count = self.differences.len();
                let differences = if count == 1 { "difference" } else { "differences" };
                writeln!(out, "not as computed: {count} {differences}; computed again were {of}:")?;
                for difference in self.differences.iter().take(SHOWN_MAX) {
                    writeln!(out, "  {difference}")?;
                }
                if let Some(more @ 1..) = self.differences.len().checked_sub(SHOWN_MAX) {
                    writeln!(out, "  and {more} more (--json has all)")?;
                }
            }
            if !all {
                writeln!(out, "{BELIEVED}")?;
            }
            if !self.claims.has_history() {
                let why = match self.claims.is_alone() {
                    true => "result.json was given alone, so history.csv was not compared",
                    false => "there was no history.csv to compare",
                };
                writeln!(out, "{why}: the round in which a replica goes wrong is not known")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn a_sample_is_rounded_up_without_repeats_and_depends_on_the_seed() {
        let all: Vec<Key> = (0..3).flat_map(|arm| (0..7).map(move |index| (arm, index))).collect();
        assert_eq!(draw(&all, 1, 1).len(), 1);
        assert_eq!(draw(&all, ALL, 1), all);
        let (one, other) = (draw(&all, 250_000, 1), draw(&all, 250_000, 2));
        assert_eq!((one.len(), other.len()), (6, 6), "a quarter of 21");
        assert!(one != other && one.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(one, draw(&all, 250_000, 1));
    }

    /// Tables, tests and figures follow from the replicas, so a change of a statistic changes the committed results.
    #[test]
    fn committed_results_follow_from_their_replicas() {
        let registry = evoxo_experiments::registry();
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reproduction");
        let folders = fs::read_dir(committed).unwrap().flatten().filter(|entry| entry.path().is_dir());
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()).map(|entry| entry.path());
        let (mut looked, mut early) = (0, 0);
        for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
            let (claims, differences) = Claims::read(&registry, &path).unwrap();
            let report = registry.report_of_result(&claims.result).unwrap();
            let found = claims.check_result(&with_report(&claims.result, &report)).map(|found| found.to_string());
            assert!(differences.is_empty() && found.is_none(), "{}: {found:?}", path.display());
            looked += 1;
            early += usize::from(claims.is_of_early_build());
        }
        assert!(looked > 10, "{looked}");
        // Results that are computed again get digests in the present form, so this number can only fall.
        assert_eq!(early, 26, "committed results whose digests do not cover the history");
    }
}
