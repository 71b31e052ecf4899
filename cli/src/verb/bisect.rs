//! `evoxo bisect RUN --old BINARY --new BINARY`: the first round that two builds compute differently.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, anyhow, bail};
use evoxo_common::{
    experiment::{Config, Registry},
    text::exact,
};
use evoxo_proto::v1::ReplicaState;
use prost::Message as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    file::{self, temporary},
    json,
    kept::Kept,
    parting::{OtherNumber, first_other},
    say::{stdout, tell, usage, whole},
    side::Name,
    verb::probe::STATE_BYTES_MAX,
};

/// The run and the two builds.
#[derive(clap::Args)]
#[command(
    after_help = "Each build computes a replica of the run up to the same round, and their digests are compared. The \
first probe is the last round; then the rounds that are left are halved, and both builds go on from the last state that \
they share. So all probes together compute each replica about twice. A round is named after at most 1 + log2(rounds) \
probes.

Both builds must know this command, so neither may be older than it.

Examples:
  evoxo bisect out/invincible --old ./evoxo-1.2 --new target/release/evoxo
  evoxo bisect out/td3d --old a/evoxo --new b/evoxo --arm wide --replica 3

Exit status: 0 if both builds compute the same, 1 if they do not, 2 if they cannot be compared."
)]
pub(crate) struct Arguments {
    /// A run's directory, or its result.json alone
    run: PathBuf,
    /// The build that is known to be right, or the older one
    #[arg(long, value_name = "BINARY")]
    old: PathBuf,
    /// The build to compare with it
    #[arg(long, value_name = "BINARY")]
    new: PathBuf,
    /// Compare only replicas of this arm
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Compare only replicas with this number, from 0
    #[arg(long, value_name = "N")]
    replica: Option<u32>,
    /// Threads of each build [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1024))]
    threads: Option<u32>,
    /// A program that the experiment asks, for example rosen="python3 rosen.py"; may be repeated
    #[arg(long = "program", value_name = "NAME=COMMAND")]
    programs: Vec<String>,
    /// Print the finding as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    // Any error has the status 2, because 1 says that the builds differ.
    let outcome = find(arguments, registry).map_err(|error| usage(format_args!("{error:#}")))?;
    let text = match arguments.json {
        true => json::text(&outcome.to_json()),
        false => outcome.text(),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(if outcome.found.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What came of it.
struct Outcome {
    /// Replicas that both builds compute alike to their end.
    alike: usize,
    probes: u32,
    /// Whether the two builds have the same behaviour signature.
    same_signature: bool,
    found: Option<Found>,
}

/// The first round that differs.
struct Found {
    name: Name,
    round: u64,
    of_rounds: u64,
    digests: [String; 2],
    /// The first number of the histories that differs.
    place: Option<OtherNumber>,
    /// The first byte of the states that differs, with its values, if the histories are equal.
    byte: Option<(usize, [Option<u8>; 2])>,
}

/// The directory of the states that builds save.
struct Desk(TempDir);

impl Desk {
    /// The file of a build's state after a round.
    fn state(&self, build: usize, round: u64) -> PathBuf {
        self.0.path().join(format!("{build}-{round}"))
    }
}

/// What a build said about a replica after a round.
#[derive(Clone, PartialEq, Eq)]
struct Said {
    round: u64,
    finished: bool,
    digest: String,
    signature: String,
}

fn find(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Outcome> {
    let kept = Kept::read(registry, &arguments.run)?;
    let config = &kept.config;
    let desk = Desk(temporary()?);
    fs::write(desk.0.path().join("config.toml"), config.to_toml())
        .context("cannot write the configuration: is the disk full?")?;
    let is_asked = |(arm, number): &Name| {
        arguments.arm.as_ref().is_none_or(|asked| asked == arm)
            && arguments.replica.is_none_or(|asked| asked == *number)
    };
    let all = config.arms.iter().flat_map(|arm| (0..config.replicas).map(move |number| (arm.name.clone(), number)));
    let names: Vec<Name> = all.filter(is_asked).collect();
    if names.is_empty() {
        bail!("{} has no such replica: `report` lists its arms", arguments.run.display());
    }
    let mut outcome = Outcome { alike: 0, probes: 0, same_signature: true, found: None };
    for name in names {
        let search = Search { arguments, config, desk: &desk, name };
        if let Some(found) = search.first_round(&mut outcome)? {
            outcome.found = Some(found);
            break;
        }
        outcome.alike += 1;
    }
    Ok(outcome)
}

/// The search for the first round of a replica that differs.
struct Search<'a> {
    arguments: &'a Arguments,
    config: &'a Config,
    desk: &'a Desk,
    name: Name,
}

impl Search<'_> {
    fn first_round(&self, outcome: &mut Outcome) -> anyhow::Result<Option<Found>> {
        let arm = self.config.arms.iter().find(|arm| arm.name == self.name.0).context("the run lacks the arm")?;
        let (mut low, mut high) = (0, (self.config.kind.rounds)(&arm.settings).max(1));
        let mut said = self.probe(high, low, outcome)?;
        outcome.same_signature &= said[0].signature == said[1].signature;
        if said[0].digest == said[1].digest {
            return Ok(None);
        }
        // A replica may end early, in each build after another round. Then the round after the first end is known to differ.
        let of_rounds = said[0].round.min(said[1].round);
        high = high.min(of_rounds + 1);
        let mut states = said.each_ref().map(|said| said.round);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let at_middle = self.probe(middle, low, outcome)?;
            if at_middle[0].digest == at_middle[1].digest {
                low = middle;
            } else {
                (high, said) = (middle, at_middle);
                states = [middle; 2];
            }
        }
        let [old, new] = [self.state(0, states[0])?, self.state(1, states[1])?];
        let rows = [&old, &new].map(|state| state.history.iter().map(|row| row.values.clone()).collect::<Vec<_>>());
        let place = first_other(self.config, [&rows[0], &rows[1]], false);
        let byte = place.is_none().then(|| first_byte(&old.state, &new.state)).flatten();
        let digests = said.map(|said| said.digest);
        Ok(Some(Found { name: self.name.clone(), round: high, of_rounds, digests, place, byte }))
    }

    fn state(&self, build: usize, round: u64) -> anyhow::Result<ReplicaState> {
        let path = self.desk.state(build, round);
        ReplicaState::decode(file::read(&path, STATE_BYTES_MAX, "")?.as_slice()).context("a build saved no state")
    }

    /// Asks both builds for the replica after a round, beginning with the state after an earlier one, which they share.
    fn probe(&self, round: u64, from: u64, outcome: &mut Outcome) -> anyhow::Result<[Said; 2]> {
        outcome.probes += 1;
        let (arm, number) = &self.name;
        tell(format_args!("probe {}: replica {number} of arm {arm:?} after round {round}", outcome.probes));
        let [old, new] = [&self.arguments.old, &self.arguments.new];
        Ok([self.ask(0, old, round, from)?, self.ask(1, new, round, from)?])
    }

    fn ask(&self, build: usize, binary: &Path, round: u64, from: u64) -> anyhow::Result<Said> {
        let (arm, number) = &self.name;
        let save = self.desk.0.path().join(format!("{build}-new"));
        let mut command = Command::new(binary);
        command.arg("probe").arg(self.desk.0.path().join("config.toml"));
        command.args(["--arm", arm, "--replica", &number.to_string(), "--to", &round.to_string(), "--save"]).arg(&save);
        if from > 0 {
            // The states of both builds are the same there.
            command.arg("--from").arg(self.desk.state(0, from));
        }
        if let Some(threads) = self.arguments.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        command.args(self.arguments.programs.iter().flat_map(|program| ["--program", program]));
        let path = binary.display();
        let output = command.output().with_context(|| format!("{path} cannot be started"))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let words: String = words.trim().chars().take(WORDS_MAX).collect();
            bail!("{path} cannot be asked for round {round} ({}): {words:?}", output.status);
        }
        let said: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| anyhow!("{path} does not answer as a build of evoxo does: give the path of one"))?;
        let text = |name: &str| said[name].as_str().map(String::from);
        let said = (|| {
            Some(Said {
                round: said["round"].as_u64()?,
                finished: said["finished"].as_bool()?,
                digest: text("digest")?,
                signature: text("signature")?,
            })
        })();
        let said =
            said.with_context(|| format!("{path} lacks something in its answer: give the path of a build of evoxo"))?;
        if said.round < round && !said.finished {
            bail!("{path} stopped after round {} instead of {round}", said.round);
        }
        fs::rename(&save, self.desk.state(build, said.round)).with_context(|| format!("{path} saved no state"))?;
        Ok(said)
    }
}

/// The most characters that are shown of what a build says on standard error.
const WORDS_MAX: usize = 300;

/// The first byte in which two states differ, with its values.
fn first_byte(old: &[u8], new: &[u8]) -> Option<(usize, [Option<u8>; 2])> {
    let place = (0..old.len().max(new.len())).find(|at| old.get(*at) != new.get(*at))?;
    Some((place, [old.get(place).copied(), new.get(place).copied()]))
}

impl Outcome {
    fn to_json(&self) -> Value {
        let found = self.found.as_ref().map(|found| {
            json!({
                "arm": found.name.0,
                "replica": found.name.1,
                "round": found.round,
                "of_rounds": found.of_rounds,
                "old_digest": found.digests[0],
                "new_digest": found.digests[1],
                "number": found.place.as_ref().map(OtherNumber::to_json),
                "state_byte": found.byte.map(|(at, values)| json!({"byte": at, "values": values})),
            })
        });
        json!({
            "equal": self.found.is_none(),
            "replicas_alike": self.alike,
            "probes": self.probes,
            "same_signature": self.same_signature,
            "first": found,
        })
    }

    fn text(&self) -> String {
        let alike = match self.alike {
            1 => "1 replica".to_owned(),
            count => format!("{count} replicas"),
        };
        let probes = if self.probes == 1 { "1 probe".to_owned() } else { format!("{} probes", self.probes) };
        let Some(found) = &self.found else {
            return format!("Both builds compute the same in every round: {alike}, {probes}.\n");
        };
        let ((arm, number), round) = (&found.name, found.round);
        let mut text = format!(
            "Round {round} of {} is the first that the builds compute differently, in replica {number} of arm {arm:?} ({probes}).\n",
            found.of_rounds
        );
        if self.alike > 0 {
            text += &format!("Before it, {alike} are the same to the end.\n");
        }
        text += &format!("old: {}\nnew: {}\n", found.digests[0], found.digests[1]);
        if let Some(OtherNumber { row, column, values }) = &found.place {
            let [old, new] = values.map(|value| value.map_or_else(|| "missing".to_owned(), exact));
            text += &format!("The first number that differs is {column} in row {row}: {old} (old), {new} (new).\n");
        }
        if let Some((at, values)) = found.byte {
            let [old, new] =
                values.map(|value| value.map_or_else(|| "missing".to_owned(), |byte| format!("{byte:#04x}")));
            text += &format!(
                "All numbers of the histories are equal. The states differ from byte {at} on: {old} (old), {new} (new).\n"
            );
        }
        if self.same_signature {
            text += "The builds have the same behaviour signature, so a cluster would let them work together.\n";
        }
        text
    }
}
