//! A certificate as an in-toto statement (version 1): the files and the run as subjects, all else as the predicate.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::{Config, Link, Registry, ResultDigest},
};
use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::{Certificate, Certified, Mark, envelope::from_base64};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The type of the predicate without its version.
const PREDICATE: &str = "urn:evoxo:certificate:";
const VERSION: &str = "v1";
/// The name under which a run is a subject, and the name of the hash of its digest.
const RUN: &str = "run";
const RUN_HASH: &str = "evoxo-r1";

impl Certificate {
    /// The statement.
    pub(crate) fn to_json(&self) -> Value {
        let file = |(name, hash): (&String, &Digest)| json!({"name": name, "digest": {"sha256": hash.to_string()}});
        let digest = self.digest.to_string();
        let hash = digest.strip_prefix("r1:").unwrap_or(&digest);
        let run = json!({"name": RUN, "digest": {RUN_HASH: hash}});
        let subjects: Vec<Value> = std::iter::once(run).chain(self.files.iter().map(file)).collect();
        let mut predicate = self.about.clone();
        predicate["experiment"] = self.config.kind.name.into();
        predicate["configuration"] = self.config.to_toml().into();
        predicate["config_hash"] = self.config.hash().to_string().into();
        predicate["digest"] = digest.into();
        predicate["replicas"] = self.replicas.iter().map(replica_to_json).collect();
        json!({
            "_type": STATEMENT,
            "subject": subjects,
            "predicateType": format!("{PREDICATE}{VERSION}"),
            "predicate": predicate,
        })
    }

    /// Reads a statement. `name` is that of its file, for messages.
    pub(crate) fn read(registry: &Registry, name: &str, statement: &Value) -> anyhow::Result<Self> {
        let Some(version) = statement["predicateType"].as_str().and_then(|it| it.strip_prefix(PREDICATE)) else {
            bail!("{name} is a statement of another kind, and not a certificate of evoxo: `evoxo certify` writes one");
        };
        let predicate = &statement["predicate"];
        let maker =
            format!("evoxo {}", predicate["certified_with"]["version"].as_str().unwrap_or("of an unknown version"));
        if version != VERSION {
            bail!(
                "{name} has the format {version}, and this build reads {VERSION}: challenge it with {maker}, which made it"
            );
        }
        let damaged = |what: &str| anyhow!("{name} is damaged: its {what} cannot be read; ask for the file again");
        let text = predicate["configuration"].as_str().ok_or_else(|| damaged("configuration"))?;
        let config = Config::parse(registry, name, text, &[]).map_err(|problems| {
            let first = problems.list.first().map(|problem| problem.sentence.clone()).unwrap_or_default();
            anyhow!("{name} has a configuration that this build does not know ({first}): challenge it with {maker}, which made it")
        })?;
        if predicate["signature"] != registry.signature(config.kind).to_string().as_str() {
            bail!(
                "{name} is of a build whose tasks of {} have other results than this one's: challenge it with {maker}, which \
                 made it",
                config.kind.name
            );
        }
        if predicate["config_hash"] != config.hash().to_string().as_str() {
            bail!(
                "{name} is forged or damaged: its configuration has the hash {}, and not the one that it names",
                config.hash()
            );
        }
        let digest = predicate["digest"].as_str().and_then(ResultDigest::parse).ok_or_else(|| damaged("digest"))?;
        let entries = predicate["replicas"].as_array().ok_or_else(|| damaged("list of replicas"))?;
        let mut names = config.arms.iter().flat_map(|arm| (0..config.replicas).map(move |number| (&arm.name, number)));
        let mut replicas = Vec::new();
        for entry in entries {
            let it = replica_of_json(entry, config.kind.columns.len());
            let it = it.with_context(|| damaged(&format!("replica {}", replicas.len() + 1)).to_string())?;
            if names.next() != Some((&it.end.arm, it.end.replica)) {
                bail!("{name} is forged or damaged: it has not the replicas of its configuration");
            }
            replicas.push(it);
        }
        if names.next().is_some() {
            bail!("{name} is forged or damaged: it has not all replicas of its configuration");
        }
        let files = files_of(statement, &digest).ok_or_else(|| damaged("list of files"))?;
        let mut about = predicate.clone();
        if let Some(about) = about.as_object_mut() {
            ["configuration", "replicas"].iter().for_each(|key| drop(about.shift_remove(*key)));
        }
        Ok(Self { config, digest, about, replicas, files })
    }
}

/// The files among the subjects. The run must be among them too.
fn files_of(statement: &Value, digest: &ResultDigest) -> Option<BTreeMap<String, Digest>> {
    let (mut files, mut runs) = (BTreeMap::new(), 0);
    for subject in statement["subject"].as_array()? {
        let (name, hashes) = (subject["name"].as_str()?, &subject["digest"]);
        match hashes[RUN_HASH].as_str() {
            Some(hash) => runs += usize::from(name == RUN && format!("r1:{hash}") == digest.to_string()),
            None => drop(files.insert(name.to_owned(), Digest::from_hex(hashes["sha256"].as_str()?)?)),
        }
    }
    (runs == 1 && files.len() + runs == statement["subject"].as_array()?.len()).then_some(files)
}

fn replica_to_json(it: &Certified) -> Value {
    let mark = |mark: &Mark| {
        json!({
            "round": mark.rounds,
            "rows": mark.rows,
            "digest": mark.digest.to_string(),
            "state": STANDARD.encode(&mark.state),
        })
    };
    let link = |link: &Link| json!({"round": link.round, "rows": link.rows, "digest": link.digest.to_string()});
    json!({
        "arm": it.end.arm,
        "replica": it.end.replica,
        "rounds": it.end.rounds,
        "rows": it.end.history.len(),
        "digest": it.digest.to_string(),
        "digests": it.links.iter().map(link).collect::<Value>(),
        "end": STANDARD.encode(it.end.encode_to_vec()),
        "between": it.marks.iter().map(mark).collect::<Value>(),
    })
}

/// The inverse; `None` if it is not possible, whatever the settings are.
fn replica_of_json(json: &Value, columns: usize) -> Option<Certified> {
    let digest = |it: &Value| ResultDigest::parse(it["digest"].as_str()?);
    let link =
        |it: &Value| Some(Link { round: it["round"].as_u64()?, rows: it["rows"].as_u64()?, digest: digest(it)? });
    let mark = |it: &Value| {
        let rows = usize::try_from(it["rows"].as_u64()?).ok()?;
        let state = Bytes::from(from_base64(&it["state"])?);
        Some(Mark { rounds: it["round"].as_u64()?, rows, digest: digest(it)?, state })
    };
    let end = v1::ReplicaState::decode(from_base64(&json["end"])?.as_slice()).ok()?;
    let links: Vec<Link> = json["digests"].as_array()?.iter().map(link).collect::<Option<_>>()?;
    let marks: Vec<Mark> = json["between"].as_array()?.iter().map(mark).collect::<Option<_>>()?;
    let says_the_same = json["arm"] == end.arm.as_str()
        && json["replica"] == end.replica
        && json["rounds"] == end.rounds
        && json["rows"] == end.history.len();
    let is_plain = end.exposed.is_empty() && end.recomputations.is_empty();
    let is_finite = |row: &v1::HistoryRow| row.values.len() == columns && row.values.iter().all(|it| it.is_finite());
    let rises = marks.is_sorted_by(|one, next| one.rounds < next.rounds && one.rows <= next.rows)
        && marks.iter().all(|mark| (1..=end.rounds).contains(&mark.rounds) && mark.rows <= end.history.len());
    let fits = says_the_same && is_plain && rises && end.history.iter().all(is_finite);
    fits.then_some(Certified { digest: digest(json)?, end, links, marks })
}
