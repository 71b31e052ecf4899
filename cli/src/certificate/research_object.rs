//! The description of a certified run for archives: a Workflow Run RO-Crate, version 0.5
//! (<https://www.researchobject.org/workflow-run-crate/profiles/workflow_run_crate>). The experiment file is the workflow, and
//! evoxo the program that ran it.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use evoxo_common::{digest::Digest, experiment::Publication};
use serde_json::{Value, json};

use super::Certificate;
use crate::legs::made_with;

/// The name of the description, in the run's directory.
pub(crate) const DESCRIPTION: &str = "ro-crate-metadata.json";
/// What a run's directory has for the programs that continue it.
const NOT_DESCRIBED: [&str; 3] = ["store", "cluster.log", DESCRIPTION];
const WORKFLOW: &str = "config.toml";
const LANGUAGE: &str = "#experiment-file";
const RUN: &str = "#run";
const DIGEST: &str = "#digest";
const PROGRAM: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "#evoxo");
const SHA256: &str = "https://w3id.org/ro/terms/workflow-run#sha256";
const NO_LICENSE: &str = "Not stated. Whoever publishes this directory writes here how it may be used.";
/// The profiles, each with its name.
const PROFILES: [[&str; 2]; 3] = [
    ["https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate"],
    ["https://w3id.org/ro/wfrun/workflow/0.5", "Workflow Run Crate"],
    ["https://w3id.org/workflowhub/workflow-ro-crate/1.0", "Workflow RO-Crate"],
];

impl Certificate {
    /// The description of the run in this directory, with all files in it. `conclusion` is the run's, in a sentence.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn research_object(&self, name: &str, directory: &Path, conclusion: &str) -> anyhow::Result<Value> {
        let files = files(directory, "")?;
        let id = |id: &str| json!({"@id": id});
        let names = || files.keys().map(|name| encoded(name));
        let all = |names: &mut dyn Iterator<Item = String>| names.map(|name| id(&name)).collect::<Value>();
        let results = all(&mut names().filter(|name| name != WORKFLOW).chain([DIGEST.to_owned()]));
        let (kind, version) = (self.config.kind.name, self.version());
        let sources = self.config.kind.sources;
        let mut graph = vec![
            json!({
                "@id": DESCRIPTION,
                "@type": "CreativeWork",
                "about": id("./"),
                "conformsTo": [id("https://w3id.org/ro/crate/1.1"), id(PROFILES[2][0])],
            }),
            json!({
                "@id": "./",
                "@type": "Dataset",
                "name": format!("{name}, a run of {kind} with evoxo"),
                "description": format!("{conclusion} Digest of all results: {}.", self.digest).trim_start(),
                "datePublished": self.about["made"],
                "license": stated_license(directory).unwrap_or_else(|| NO_LICENSE.into()),
                "conformsTo": PROFILES.map(|[profile, _]| id(profile)),
                "mainEntity": id(WORKFLOW),
                "mentions": id(RUN),
                "hasPart": all(&mut names()),
            }),
            json!({
                "@id": LANGUAGE,
                "@type": "ComputerLanguage",
                "name": "experiment file of evoxo",
                "url": id(env!("CARGO_PKG_REPOSITORY")),
            }),
            json!({
                "@id": PROGRAM,
                "@type": "SoftwareApplication",
                "name": "evoxo",
                "url": env!("CARGO_PKG_REPOSITORY"),
                "softwareVersion": version,
            }),
            json!({
                "@id": RUN,
                "@type": "CreateAction",
                "name": format!("evoxo run {WORKFLOW}"),
                "description": "The results are the same for any number of workers, so the command computes them again.",
                "instrument": id(WORKFLOW),
                "actionStatus": "http://schema.org/CompletedActionStatus",
                "result": results,
            }),
            json!({
                "@id": DIGEST,
                "@type": "PropertyValue",
                "name": "digest of all results",
                "value": self.digest.to_string(),
            }),
        ];
        // A list of one is written without brackets.
        let mut citations: Vec<Value> = sources.iter().map(|source| id(&format!("#{}", source.key))).collect();
        match citations.len() {
            0 => {}
            1 => graph[1]["citation"] = citations.swap_remove(0),
            _ => graph[1]["citation"] = citations.into(),
        }
        let profile = |[profile, name]: [&str; 2]| {
            let version = profile.rsplit('/').next();
            json!({"@id": profile, "@type": "CreativeWork", "name": name, "version": version})
        };
        graph.extend(PROFILES.map(profile));
        graph.extend(sources.iter().map(source));
        graph.extend(files.iter().map(|(name, about)| self.file(name, about, &version)));
        let context = json!(["https://w3id.org/ro/crate/1.1/context", {"sha256": SHA256}]);
        Ok(json!({"@context": context, "@graph": graph}))
    }

    /// The version that computed the run, with its commit.
    fn version(&self) -> String {
        let [version, commit] = made_with(&self.about["provenance"]);
        format!("{version}, commit {commit}")
    }

    fn file(&self, name: &str, File { bytes, hash }: &File, version: &str) -> Value {
        let mut file = json!({
            "@id": encoded(name),
            "@type": "File",
            "name": name,
            "contentSize": bytes.to_string(),
            "sha256": hash.to_string(),
        });
        if let Some(format) = format(name) {
            file["encodingFormat"] = format.into();
        }
        if name == WORKFLOW {
            file["@type"] = json!(["File", "SoftwareSourceCode", "ComputationalWorkflow"]);
            file["url"] = env!("CARGO_PKG_REPOSITORY").into();
            file["programmingLanguage"] = json!({"@id": LANGUAGE});
            file["runtimePlatform"] = format!("evoxo {version}").into();
            file["version"] = self.config.hash().to_string().into();
        }
        file
    }
}

/// The license that the directory's description has already, because somebody wrote it there.
fn stated_license(directory: &Path) -> Option<Value> {
    let described: Value = serde_json::from_slice(&fs::read(directory.join(DESCRIPTION)).ok()?).ok()?;
    let root = described["@graph"].as_array()?.iter().find(|entity| entity["@id"] == "./")?;
    root.get("license").cloned()
}

/// A file's size and hash.
struct File {
    bytes: usize,
    hash: Digest,
}

/// The files of a directory and those below it, by their paths from the run's directory, with `/`. Links are not followed, and
/// names that are not UTF-8 have no address: such entries are left out.
fn files(directory: &Path, above: &str) -> anyhow::Result<BTreeMap<String, File>> {
    let cannot = || format!("cannot read {}", directory.display());
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        if name.starts_with('.') || (above.is_empty() && NOT_DESCRIBED.contains(&name.as_str())) {
            continue;
        }
        let below = format!("{above}{name}");
        if kind.is_dir() {
            files.append(&mut self::files(&path, &format!("{below}/"))?);
        } else if kind.is_file() {
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(below, File { bytes: content.len(), hash: Digest::of(&content) });
        }
    }
    Ok(files)
}

/// The type of a file, by its ending.
fn format(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "toml" => "application/toml",
        "json" => "application/json",
        "csv" => "text/csv",
        "html" => "text/html",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        _ => return None,
    })
}

/// A path as it stands in an address.
fn encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A publication that the kind of experiment implements.
fn source(source: &Publication) -> Value {
    let of = |wanted: &str| source.fields.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text);
    let mut work = json!({"@id": format!("#{}", source.key), "@type": "CreativeWork", "name": of("title")});
    for (name, term) in [("author", "creditText"), ("year", "datePublished"), ("doi", "identifier")] {
        if let Some(text) = of(name) {
            work[term] = text.replace(['{', '}'], "").into(); // BibTeX's braces
        }
    }
    work
}
