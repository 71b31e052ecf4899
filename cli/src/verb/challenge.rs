//! `evoxo challenge CERT --seed TEXT`: computes a share of a certified run again, drawn by a public text.

use std::{
    io::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use anyhow::{anyhow, bail};
use evoxo_access::VerifyingKey;
use evoxo_common::{
    digest::Digest,
    experiment::{Registry, Replica},
    text::counted,
};
use evoxo_worker::Processes;
use serde_json::{Value, json};

use crate::{
    certificate::{CERTIFICATE_BYTES_MAX, Certificate, Envelope},
    claims::{Claims, Difference},
    file,
    progress::Progress,
    recompute::{Recomputing, advance, as_run, in_lanes},
    results::{Provenance, Results},
    say::{share, stdout},
};

/// The certificate, and the draw.
#[derive(clap::Args)]
#[command(
    after_help = "First everything in the certificate is compared with everything else in it, which computes nothing: states, \
rows, digests, and the hashes of history.csv and the champions. Then pieces of the run are drawn by the hash of the \
certificate and TEXT, and computed from the states before them. Whoever made the certificate could not know the draw if \
TEXT did not exist then: take a random text that was published later, such as the draw of a lottery.

A forger is found if a forged piece is drawn: with the probability of the share if it is a single one, and almost surely if \
there are many. The chances are printed. The same certificate, text and share always give the same draw.

Examples:
  evoxo challenge certificate.json --seed \"lotto 2026-11-28: 4 8 15 16 23\"
  evoxo challenge certificate.json --seed TEXT --share 20% --trust me.pub
  evoxo challenge certificate.json --seed TEXT --against their/results

Exit status: 0 if all is as computed; 1 if not, or if the certificate cannot be checked here; 2 for wrong usage."
)]
pub(crate) struct Arguments {
    /// A certificate, which `evoxo certify` wrote
    certificate: PathBuf,
    /// A random text that did not exist when the certificate was made
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    seed: String,
    /// The share of the pieces to compute, rounded to whole pieces, but at least one
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    share: u32,
    /// Demand a signature of the public key in this PEM file
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Compare a run's directory, or its result.json alone, with the certificate
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    #[command(flatten)]
    with: Recomputing,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// How far a certificate may be dated ahead of this machine's clock.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let name = arguments.certificate.display().to_string();
    let trusted = arguments.trust.as_ref().map(|path| VerifyingKey::read(path)).transpose()?;
    let bytes = file::read(&arguments.certificate, CERTIFICATE_BYTES_MAX, "")?;
    let broken = || {
        anyhow!("{name} is not a whole certificate, or is damaged: ask for the file again; `evoxo certify` writes one")
    };
    let json: Value = serde_json::from_slice(&bytes).map_err(|_| broken())?;
    let envelope = Envelope::read(&json).ok_or_else(broken)?;
    drop((bytes, json));
    let signer = envelope.signer(trusted.as_ref()).map_err(|why| anyhow!("{name} {why}"))?;
    let statement: Value = serde_json::from_slice(&envelope.payload).map_err(|_| broken())?;
    let certificate = Certificate::read(registry, &name, &statement)?;
    let hash = Digest::of(&envelope.payload);
    drop((statement, envelope));
    let made = certificate.about["made"].as_str().and_then(|made| humantime::parse_rfc3339(made).ok());
    if made.is_some_and(|made| made > SystemTime::now() + AHEAD_MAX) {
        bail!("{name} is dated {}, which is in the future: check this machine's clock", certificate.about["made"]);
    }
    let all = certificate.pieces();
    let mut found =
        Found { certificate: &certificate, arguments, signer, drawn: Vec::new(), rounds: 0, differences: Vec::new() };
    match certificate.check()? {
        Err(difference) => found.differences.push(difference),
        Ok(results) => {
            found.differences.extend(against(arguments, registry, &certificate, results)?);
            let rounds: Vec<u64> = all.iter().map(|(at, piece)| length(&certificate, *at, *piece)).collect();
            found.drawn = draw(&rounds, hash, &arguments.seed, arguments.share).into_iter().map(|at| all[at]).collect();
            compute(&mut found, registry)?;
        }
    }
    found.print()
}

/// The pieces that this text draws from a certificate with this hash, if they have these numbers of rounds. The piece in which
/// a random round lies is drawn, so a forger gains nothing from putting many rounds into one piece.
fn draw(rounds: &[u64], hash: Digest, text: &str, millionths: u32) -> Vec<usize> {
    let count = (rounds.len() as u64 * u64::from(millionths) + 500_000) / 1_000_000;
    if count >= rounds.len() as u64 {
        return (0..rounds.len()).collect();
    }
    let mut left: Vec<(usize, u128)> = rounds.iter().map(|rounds| u128::from(*rounds).max(1)).enumerate().collect();
    let mut drawn = Vec::new();
    for number in 0..count.max(1) {
        let pieces = [b"evoxo challenge".as_slice(), &hash.0, text.as_bytes(), &number.to_le_bytes()];
        let random = Digest::of_pieces(pieces).0.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        let mut round = random % left.iter().map(|(_, rounds)| rounds).sum::<u128>();
        let place = left.iter().position(|(_, rounds)| match round.checked_sub(*rounds) {
            Some(rest) => {
                round = rest;
                false
            }
            None => true,
        });
        drawn.push(left.remove(place.expect("the round is less than their sum")).0);
    }
    drawn.sort_unstable();
    drawn
}

/// The shares of forged rounds for which the chance to miss all of them is given.
const FORGED: [f64; 3] = [0.05, 0.1, 0.5];

/// The most that the probability can be that none of `drawn` out of `all` pieces is forged, if the forged ones have this share
/// of the rounds.
fn missed(all: usize, drawn: usize, forged: f64) -> f64 {
    if drawn == all { 0.0 } else { (0..drawn).map(|_| 1.0 - forged).product() }
}

/// Compares a run's directory with the certificate.
fn against(
    arguments: &Arguments,
    registry: &Registry,
    certificate: &Certificate,
    results: Results,
) -> anyhow::Result<Vec<Difference>> {
    let Some(path) = &arguments.against else { return Ok(Vec::new()) };
    let (claims, mut differences) = Claims::read(registry, path)?;
    if claims.config.hash() != certificate.config.hash() {
        let what = format!("{} has other settings than the certificate", path.display());
        return Ok(vec![Difference::of_run(what)]);
    }
    differences.extend(claims.check_result(&results.to_json(Provenance::Known(Value::Null))));
    for (key, replica) in claims.keys().zip(results.into_replicas()) {
        let other = claims.check_rows(key, &replica, 0, replica.rounds());
        differences.extend(other.or_else(|| claims.check_replica(key, &replica)));
    }
    Ok(differences)
}

/// Computes the drawn pieces again.
fn compute(found: &mut Found<'_>, registry: &Registry) -> anyhow::Result<()> {
    let Found { certificate, arguments, drawn, .. } = &*found;
    let config = &certificate.config;
    let programs = arguments.with.programs(registry, config)?;
    let (rounds, mut progress) = (AtomicU64::new(0), Progress::new());
    let total = drawn.iter().map(|(at, piece)| length(certificate, *at, *piece)).sum();
    let (name, of) = (format!("challenging {}", config.kind.name), drawn.len());
    let job = |at: usize, programs: &mut [Processes]| one_piece(certificate, drawn[at], programs, &rounds);
    let show = |done: usize| progress.show(&as_run(config, &name, [done, of], [rounds.load(Ordering::Relaxed), total]));
    let outcomes = in_lanes(of, arguments.with.threads()?, &programs, &job, show);
    progress.end();
    let differences: Vec<Difference> = outcomes?.into_iter().flatten().collect();
    found.differences.extend(differences);
    found.rounds = rounds.into_inner();
    Ok(())
}

/// The rounds of a piece.
fn length(certificate: &Certificate, at: usize, piece: usize) -> u64 {
    let [from, to] = certificate.replicas[at].rounds_of(piece);
    to - from
}

/// Computes a piece from the state before it, up to its end or to the first difference.
fn one_piece(
    certificate: &Certificate,
    (at, piece): (usize, usize),
    programs: &mut [Processes],
    rounds: &AtomicU64,
) -> anyhow::Result<Option<Difference>> {
    let (config, it) = (&certificate.config, &certificate.replicas[at]);
    let arm = &config.arms[at / config.replicas as usize];
    let mut replica = match piece.checked_sub(1) {
        None => Replica::start(config, arm, it.end.replica),
        Some(before) => Replica::restore(config, &it.after(before)).map_err(anyhow::Error::msg)?,
    };
    let (is_last, [_, to]) = (piece == it.marks.len(), it.rounds_of(piece));
    while !replica.is_finished() && (is_last || replica.rounds() < to) {
        let before = replica.history().len();
        advance(&mut replica, programs)?;
        rounds.fetch_add(1, Ordering::Relaxed);
        if let Some(difference) = certificate.check_rows(it, &replica, before) {
            return Ok(Some(difference));
        }
    }
    Ok(certificate.check_end(it, piece, &replica))
}

/// The findings.
struct Found<'a> {
    certificate: &'a Certificate,
    arguments: &'a Arguments,
    /// The name of the key that signed.
    signer: Option<String>,
    drawn: Vec<(usize, usize)>,
    /// Rounds that were computed.
    rounds: u64,
    differences: Vec<Difference>,
}

impl Found<'_> {
    /// The chance to miss a forgery, by its share of the rounds.
    fn chances(&self) -> impl Iterator<Item = (f64, f64)> {
        let (all, drawn) = (self.certificate.pieces().len(), self.drawn.len());
        FORGED.into_iter().map(move |forged| (forged, missed(all, drawn, forged)))
    }

    fn of_rounds(&self) -> u64 {
        self.certificate.replicas.iter().map(|it| it.end.rounds).fold(0, u64::saturating_add)
    }

    /// Prints the findings and returns the exit status.
    fn print(&self) -> anyhow::Result<ExitCode> {
        let is_good = self.differences.is_empty();
        let text = if self.arguments.json { format!("{:#}\n", self.to_json()) } else { self.text() };
        stdout().write_all(text.as_bytes())?;
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn to_json(&self) -> Value {
        let drawn = |(at, piece): &(usize, usize)| {
            let it = &self.certificate.replicas[*at];
            let [from, to] = it.rounds_of(*piece);
            json!({"arm": it.end.arm, "replica": it.end.replica, "after_round": from, "to_round": to})
        };
        let chances = self.chances().map(|(forged, chance)| json!({"forged_share": forged, "chance": chance}));
        let chances: Value = chances.collect();
        json!({
            "as_computed": self.differences.is_empty(),
            "digest": self.certificate.digest.to_string(),
            "made": self.certificate.about["made"],
            "signed_by": self.signer,
            "trusted": self.arguments.trust.is_some(),
            "pieces": self.drawn.len(),
            "of_pieces": self.certificate.pieces().len(),
            "rounds": self.rounds,
            "of_rounds": self.of_rounds(),
            "seed": self.arguments.seed,
            "drawn": self.drawn.iter().map(drawn).collect::<Value>(),
            "chance_to_miss": chances,
            "differences": self.differences.iter().map(Difference::to_json).collect::<Value>(),
        })
    }

    fn text(&self) -> String {
        let (rounds, of) = (self.rounds, self.of_rounds());
        let (pieces, of_pieces) = (self.drawn.len(), counted(self.certificate.pieces().len(), "piece"));
        let mut text = match self.differences.len() {
            0 => format!(
                "as computed: {pieces} of {of_pieces}, {rounds} of {of} rounds; digest {}\n",
                self.certificate.digest
            ),
            _ if self.drawn.is_empty() => {
                "not as computed: the certificate contradicts itself, and nothing was computed:\n".into()
            }
            count => format!(
                "not as computed: {}; computed again were {pieces} of {of_pieces}, {rounds} of {of} rounds:\n",
                counted(count, "difference")
            ),
        };
        self.differences.iter().for_each(|difference| text += &format!("  {difference}\n"));
        if self.differences.is_empty() {
            let chance = |(forged, chance): (f64, f64)| format!("{:.0} % with {:.1} %", 100.0 * forged, 100.0 * chance);
            let chances = self.chances().map(chance).collect::<Vec<String>>().join(", ");
            text += &format!("the chance to miss forged pieces, by their share of all rounds, is at most: {chances}\n");
        }
        let made = self.certificate.about["made"].as_str().unwrap_or("an unknown time");
        text += &match (&self.signer, self.arguments.trust.is_some()) {
            (Some(id), true) => format!("made {made}, signed by the trusted key {id}\n"),
            (Some(id), false) => {
                format!("made {made}, signed by the key {id}; only with --trust is it known whose key that is\n")
            }
            (None, _) => format!("made {made} by an unknown person: no signature can be checked\n"),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_asked_size_and_depend_on_certificate_and_text() {
        let rounds = [7; 60];
        let of = |hash: &[u8], text: &str, percent: u32| draw(&rounds, Digest::of(hash), text, percent * 10_000);
        assert_eq!([5, 1, 99, 100].map(|percent| of(b"a", "x", percent).len()), [3, 1, 59, 60]);
        let first = of(b"a", "x", 20);
        assert!(first == of(b"a", "x", 20) && first.is_sorted_by(|one, next| one < next));
        assert!(first != of(b"a", "y", 20) && first != of(b"b", "x", 20));
        // Each round is as likely as any other, and a piece without rounds can be drawn too.
        let rounds = [30, 10, 10, 0, 50];
        let mut counts = [0; 5];
        for text in 0..2000 {
            draw(&rounds, Digest::of(b"a"), &text.to_string(), 200_000).iter().for_each(|at| counts[*at] += 1);
        }
        let near = |count: i32, of: i32| (count - of).abs() < 100;
        assert!(near(counts[0], 594) && near(counts[1], 198) && near(counts[4], 990) && counts[3] > 0, "{counts:?}");
    }

    #[test]
    fn the_chance_to_miss_falls_with_each_drawn_piece() {
        assert!((missed(20, 1, 0.05) - 0.95).abs() < 1e-12 && (missed(20, 3, 0.5) - 0.125).abs() < 1e-12);
        assert_eq!(missed(20, 20, 0.05), 0.0);
    }
}
