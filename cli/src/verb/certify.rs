//! `evoxo certify DIR`: writes a certificate of a run, from which others compute a share of it again.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use anyhow::{Context as _, anyhow, bail};
use evoxo_access::SigningKey;
use evoxo_common::{
    experiment::{Registry, Replica},
    text::counted,
};
use serde_json::{Value, json};

use crate::{
    certificate::{CERTIFICATE_BYTES_MAX, Certificate, DESCRIPTION, Envelope, Mark, Marks},
    claims::{Claims, Difference, Key},
    file, json,
    legs::build,
    progress::Progress,
    recompute::{Recomputing, recompute},
    results::{Provenance, Results},
    say::{notice, program, stdout, usage, whole},
};

/// The run, the key, and how finely it can be challenged.
#[derive(clap::Args)]
#[command(
    after_help = "The certificate is a file that `evoxo challenge` takes: whoever has it computes a share of the run again, \
without the directory. It has the configuration, the digests of each replica, its last state and all rows. What is in the \
directory must fit; a directory that does not is refused.

A share can only be as small as one piece. A run of 20 replicas or more has a piece for each, and nothing is computed. A \
run of fewer is computed again to keep states between pieces, which also verifies it, and takes as long as `evoxo verify`.

The file is a DSSE envelope with an in-toto statement, which other tools read. With --key it is signed; without, nobody knows \
who made it. A key is a PEM file with an ECDSA P-256 or Ed25519 key: your access file, or one that openssl makes.

A certificate in the run's directory makes it a Workflow Run RO-Crate, which archives such as WorkflowHub read: \
ro-crate-metadata.json describes the files, with their hashes. Write there how the directory may be used, under \"license\".

Examples:
  evoxo certify out/invincible
  evoxo certify out/td3d --key me.access --out td3d-certificate.json
  openssl genpkey -algorithm ed25519 -out me.key
  openssl pkey -in me.key -pubout -out me.pub
  evoxo certify out/td3d --key me.key --pieces 100

Exit status: 0 if the certificate was written; 1 if the run does not fit, or cannot be certified; 2 for wrong usage."
)]
pub(crate) struct Arguments {
    /// A finished run's directory, or its result.json alone
    run: PathBuf,
    /// Sign with the private key in this PEM file
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The file to write [default: certificate.json in the run's directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The least number of pieces of the run that can be challenged
    #[arg(long, value_name = "N", default_value = "20", value_parser = whole::<u32>(1, 100_000))]
    pieces: u32,
    #[command(flatten)]
    with: Recomputing,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let name = arguments.run.display();
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None if arguments.run.is_dir() => arguments.run.join("certificate.json"),
        None => return Err(usage(format_args!("give --out FILE: {name} is not the directory of a run"))),
    };
    let key = arguments.key.as_ref().map(|path| SigningKey::read(path)).transpose()?;
    let (claims, differences) = Claims::read(registry, &arguments.run)?;
    if claims.is_of_early_build() {
        bail!("{name} has the digest of an earlier build, which did not cover the history: compute the run again");
    }
    if claims.result["state"] == "in doubt" {
        bail!("{name} is in doubt, because a task that was computed twice had two outputs: compute the run again");
    }
    differences.first().map_or(Ok(()), |difference| Err(no_fit(arguments, difference)))?;
    let (replicas, marks) = match stored(&claims, registry, arguments)? {
        Some(replicas) => (replicas, Marks::new()),
        None => computed(&claims, registry, arguments)?,
    };
    let is_computed = !marks.is_empty();
    let results = Results::of(claims.config.clone(), replicas, Vec::new(), None);
    let whole = results.to_json(Provenance::Known(Value::Null));
    claims.check_result(&whole).map_or(Ok(()), |difference| Err(no_fit(arguments, &difference)))?;
    let about = about(&claims, registry, is_computed);
    let conclusion = claims.result["conclusion"].as_str().unwrap_or_default().to_owned();
    let certificate = Certificate::of(claims.config, results.into_replicas(), marks, about)?;
    let payload = certificate.to_json().to_string().into_bytes();
    let envelope = Envelope::new(payload, key.as_ref())?;
    let text = json::text(&envelope.to_json());
    if text.len() > CERTIFICATE_BYTES_MAX {
        bail!(
            "the certificate of {name} would have {} bytes, and the maximum is {CERTIFICATE_BYTES_MAX}: give fewer --pieces, \
             or certify a run with fewer replicas",
            text.len()
        );
    }
    file::write(&out, text.as_bytes(), true)
        .with_context(|| format!("cannot write {}: is the disk full?", out.display()))?;
    if let (Some(directory), None) = (arguments.run.is_dir().then_some(&arguments.run), &arguments.out) {
        let name = directory.canonicalize()?.file_name().map(|name| name.to_string_lossy().into_owned());
        let described = certificate.research_object(&name.unwrap_or_default(), directory, &conclusion)?;
        let path = directory.join(DESCRIPTION);
        file::write(&path, json::text(&described).as_bytes(), true)
            .with_context(|| format!("cannot write {}: is the disk full?", path.display()))?;
    }
    let pieces = counted(certificate.pieces().len(), "piece");
    let signed = key.map_or("not signed".to_owned(), |key| format!("signed with the key {}", key.public().id()));
    let (path, digest, program, bytes) = (out.display(), certificate.digest, program(), text.len());
    writeln!(
        stdout(),
        "{path}: {bytes} bytes, {pieces}, {signed}; digest {digest}\n\
         to check a share: {program} challenge {path} --seed TEXT --share 5%\n\
         TEXT must be random, public and younger than the certificate, such as the next draw of a lottery"
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The error for a directory whose parts do not fit.
fn no_fit(arguments: &Arguments, difference: &Difference) -> anyhow::Error {
    let (run, program) = (arguments.run.display(), program());
    anyhow!(
        "{run} is not certified, because it does not fit: {difference}; `{program} verify {run}` shows all differences"
    )
}

/// The replicas as they are stored, if all of them are, with this build's behaviour, and are pieces enough.
fn stored(claims: &Claims, registry: &Registry, arguments: &Arguments) -> anyhow::Result<Option<Vec<Replica>>> {
    let keys: Vec<Key> = claims.keys().collect();
    let signature = registry.signature(claims.config.kind).to_string();
    if claims.result["provenance"]["signature"] != signature.as_str() || keys.len() < arguments.pieces as usize {
        return Ok(None);
    }
    let mut replicas = Vec::new();
    for key in keys {
        let Some(state) = claims.stored_state(key) else { return Ok(None) };
        let replica = Replica::restore(&claims.config, state).map_err(anyhow::Error::msg)?;
        let other = claims.check_rows(key, &replica, 0, replica.rounds());
        let other = other.or_else(|| claims.check_replica(key, &replica));
        other.map_or(Ok(()), |difference| Err(no_fit(arguments, &difference)))?;
        replicas.push(replica);
    }
    Ok(Some(replicas))
}

/// The replicas, computed again, with the states between pieces of about equal numbers of rounds.
fn computed(claims: &Claims, registry: &Registry, arguments: &Arguments) -> anyhow::Result<(Vec<Replica>, Marks)> {
    let keys: Vec<Key> = claims.keys().collect();
    let each = u64::from(arguments.pieces).div_ceil(keys.len() as u64);
    notice(format_args!(
        "computing {} again, to keep states between {}",
        counted(keys.len(), "replica"),
        counted(keys.len() * each as usize, "piece")
    ));
    let wanted = |key: &Key| -> BTreeSet<u64> {
        let rounds = claims.rounds(*key);
        (1..each).map(|part| rounds * part / each).filter(|round| (1..rounds).contains(round)).collect()
    };
    let wanted: BTreeMap<Key, BTreeSet<u64>> = keys.iter().map(|key| (*key, wanted(key))).collect();
    let marks = Mutex::new(keys.iter().map(|key| (*key, Vec::new())).collect::<Marks>());
    let keep = |key: Key, replica: &Replica| {
        if wanted[&key].contains(&replica.rounds()) && !replica.is_finished() {
            marks.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().push(Mark::of(replica));
        }
    };
    let programs = arguments.with.programs(registry, &claims.config)?;
    let mut progress = Progress::new();
    let recomputed = recompute(claims, &keys, arguments.with.threads()?, &programs, &mut progress, &keep);
    progress.end();
    let recomputed = recomputed?;
    recomputed.differences.first().map_or(Ok(()), |difference| Err(no_fit(arguments, difference)))?;
    Ok((recomputed.replicas, marks.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// When and where the certificate is made, and what is known of how the run was computed.
fn about(claims: &Claims, registry: &Registry, is_computed: bool) -> Value {
    let mut provenance = claims.result["provenance"].clone();
    if let Some(provenance) = provenance.as_object_mut() {
        provenance.shift_remove("legs");
    }
    let recomputed = json!({"share": 1, "by": "evoxo certify, from the beginning of each replica"});
    json!({
        "made": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "certified_with": build(),
        "environment": {"os": std::env::consts::OS, "processor": std::env::consts::ARCH},
        "signature": registry.signature(claims.config.kind).to_string(),
        "provenance": provenance,
        "recomputed": is_computed.then_some(recomputed),
    })
}
