//! Turns fetched replicas into what a person keeps: `result.json`, `history.csv`, champions, plots and tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{IsTerminal as _, Write},
    path::Path,
    process::ExitCode,
    sync::OnceLock,
};

use anyhow::Context as _;
use evoxo_common::{
    card::Card,
    conclusion::{of_result, sentence},
    digest::Digest,
    envelope::{Kind, open},
    experiment::{Config, Replica, ResultDigest, champion_stem, file_name},
    parallel,
    report::{Report, Sheet},
    text::{exact, wrapped},
};
use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use crate::{
    answer::answer_text,
    digests,
    history::{Best, HISTORY_SHA256, History, LastRows},
    html::{self, Told, champions},
    json,
    legs::{Legs, build},
    numbers,
    remote::doubt_to_json,
    say::{digest_text, notice, printed, stdout, tell},
};

/// The version of the format of `result.json`, which docs/result.schema.json describes.
const SCHEMA: u32 = 1;

/// The keys of `result.json` whose values do not follow from what the digest covers: how the work was divided, what went
/// wrong on the way, who computed it and how long that took. No conclusion uses them.
const NOT_HASHED: [&str; 4] = ["rounds", "state", "doubts", "provenance"];

/// The name of the file with the report that can be sent to others, in a run's directory.
pub(crate) const REPORT: &str = "report.html";

/// All or some of a run's replicas, and everything that is made from them.
pub(crate) struct Results {
    pub(crate) config: Config,
    replicas: Vec<Replica>,
    /// The champion of each replica, once something needs them. Some kinds compute exact figures for each card.
    champions: OnceLock<Vec<Option<Card>>>,
    pub(crate) report: Report,
    /// The digest of all these replicas, if all of them are finished.
    digest: Option<ResultDigest>,
    doubts: Vec<v1::Doubt>,
    /// The behaviour signature of the build that computed the replicas, if there are any.
    signature: Option<Digest>,
}

/// How the results came about.
pub(crate) enum Provenance {
    /// This process, or its workers, computed them; other processes may have computed earlier parts.
    Computed(Legs),
    /// They were fetched from a coordinator.
    Fetched,
    /// The provenance that an earlier `result.json` recorded.
    Known(Value),
}

impl Results {
    /// Reads the replicas that a coordinator sent, as far as the configuration names them.
    pub(crate) fn new(config: Config, run: &v1::Run, fetched: &[v1::Replica]) -> anyhow::Result<Self> {
        let restore = |fetched: &&v1::Replica| -> anyhow::Result<(Replica, Option<Digest>)> {
            let name = format!("replica {} of arm {:?}", fetched.replica, fetched.arm);
            let body = open(Kind::Finished, &fetched.state).with_context(|| format!("{name} as fetched"))?;
            let unreadable = || format!("the fetched {name} cannot be read");
            let finished = v1::Finished::decode(body).with_context(unreadable)?;
            let state = finished.replica.with_context(unreadable)?;
            let replica = Replica::restore(&config, &state).map_err(anyhow::Error::msg)?;
            Ok((replica, Digest::from_slice(&finished.signature)))
        };
        let named: Vec<&v1::Replica> = fetched.iter().filter(|replica| replica.replica < config.replicas).collect();
        let restored = parallel::map(&named, restore).into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let (replicas, signatures): (Vec<Replica>, Vec<Option<Digest>>) = restored.into_iter().unzip();
        // The coordinator blocks a run whose replicas were computed by different builds.
        let signature = signatures.last().copied().flatten();
        warn_of_more(&config, run);
        let known =
            |doubt: &&v1::Doubt| doubt.replica < config.replicas && config.arms.iter().any(|arm| arm.name == doubt.arm);
        let doubts = run.doubts.iter().filter(known).cloned().collect();
        // A replica at its last round is not finished while its outputs are being recomputed.
        let finished = named.iter().all(|replica| replica.finished);
        let results = Self::of(config, replicas, doubts, signature);
        Ok(Self { digest: results.digest.filter(|_| finished), ..results })
    }

    /// Makes the results of these replicas, which must be in order of arm, then number.
    pub(crate) fn of(
        config: Config,
        replicas: Vec<Replica>,
        doubts: Vec<v1::Doubt>,
        signature: Option<Digest>,
    ) -> Self {
        let complete = replicas.len() == config.arms.len() * config.replicas as usize;
        let finished = complete && replicas.iter().all(Replica::is_finished);
        let digest = finished.then(|| ResultDigest::of_run(replicas.iter().map(Replica::digest)));
        let report = config.report(&replicas);
        Self { config, replicas, champions: OnceLock::new(), report, digest, doubts, signature }
    }

    /// The content of `result.json`. Measurements of the computation itself are only under `provenance`.
    pub(crate) fn to_json(&self, provenance: Provenance) -> Value {
        let mut result = json!({
            "experiment": self.config.kind.name,
            "config_hash": self.config.hash().to_string(),
            "digest": self.digest.map(|digest| digest.to_string()),
            "seed": self.config.seed,
            "replicas": self.config.replicas,
            "rounds": self.rounds(),
            "state": self.state(),
            "doubts": self.doubts.iter().map(doubt_to_json).collect::<Value>(),
            "conclusion": null,
            "not_hashed": NOT_HASHED,
            HISTORY_SHA256: self.history().map(|csv| Digest::of(&csv).to_string()).ok(),
        });
        add_report(&mut result, &self.report);
        result["conclusion"] = sentence(&self.config, &result).into();
        result["provenance"] = match provenance {
            Provenance::Known(known) => known,
            Provenance::Fetched => json!({"signature": self.signature(), "fetched_with": build()}),
            Provenance::Computed(legs) => {
                let mut computed = build();
                computed["signature"] = self.signature().into();
                computed["workers"] = legs.workers().into();
                computed["seconds"] = legs.seconds().into();
                computed["legs"] = legs.into_json();
                computed
            }
        };
        result
    }

    /// The replicas.
    pub(crate) fn into_replicas(self) -> Vec<Replica> {
        self.replicas
    }

    fn signature(&self) -> Option<String> {
        self.signature.map(|signature| signature.to_string())
    }

    /// Whether all replicas are finished and none of them found a solution that satisfies all constraints.
    fn is_without_solution(&self) -> bool {
        let kind = self.config.kind;
        let metric = |replica: &Replica| replica.history().last().and_then(|row| kind.metric(row));
        kind.is_solution.is_some() && self.digest.is_some() && self.replicas.iter().all(|it| metric(it).is_none())
    }

    fn rounds(&self) -> u64 {
        self.replicas.iter().map(Replica::rounds).sum()
    }

    /// The state: finished, unfinished or in doubt.
    pub(crate) fn state(&self) -> &'static str {
        match (self.digest, self.doubts.is_empty()) {
            (None, _) => "unfinished",
            (Some(_), true) => "finished",
            (Some(_), false) => "in doubt",
        }
    }

    /// The content of `history.csv`: the rows of all replicas, each with its arm and replica number.
    pub(crate) fn history(&self) -> anyhow::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        let columns = self.config.kind.columns.iter().map(|column| column.name);
        table.write_record(["arm", "replica"].into_iter().chain(columns))?;
        for replica in &self.replicas {
            let name = [replica.arm().to_owned(), replica.index().to_string()];
            for row in replica.history() {
                table.write_record(name.iter().cloned().chain(row.iter().copied().map(exact)))?;
            }
        }
        table.into_inner().context("cannot write the history")
    }

    /// The content of `digests.csv`.
    pub(crate) fn digests(&self) -> anyhow::Result<Vec<u8>> {
        digests::write(&self.replicas)
    }

    /// The files of the directory `champions`, each with its content: cards and the files that they name.
    pub(crate) fn champions(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let files = |(replica, card)| Some(files(card, &self.stem(replica)?));
        self.with_champion().filter_map(files).flatten()
    }

    /// The replicas that have a champion, each with its card.
    fn with_champion(&self) -> impl Iterator<Item = (&Replica, &Card)> {
        let champions = self.champions.get_or_init(|| parallel::map(&self.replicas, Replica::champion));
        self.replicas.iter().zip(champions).filter_map(|(replica, card)| Some((replica, card.as_ref()?)))
    }

    /// The files of the directory `populations`: all present players, numbered from 0.
    pub(crate) fn populations(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let all = |replica: &Replica| {
            let stem = self.stem(replica)?;
            let cards = replica.population().into_iter().enumerate();
            Some(cards.flat_map(move |(number, card)| files(&card, &format!("{stem}-{number}"))))
        };
        self.replicas.iter().filter_map(all).flatten()
    }

    /// All present players, each with the name of its card: a replica's population, or its champion if there is no
    /// population.
    pub(crate) fn players(&self) -> Vec<(String, Card)> {
        let of = |replica: &Replica| {
            let stem = self.stem(replica)?;
            let population = replica.population();
            Some(match population.is_empty() {
                true => replica.champion().map(|card| (stem, card)).into_iter().collect::<Vec<_>>(),
                false => (0..).zip(population).map(|(number, card)| (format!("{stem}-{number}"), card)).collect(),
            })
        };
        self.replicas.iter().filter_map(of).flatten().collect()
    }

    /// The champions of all replicas that have one, each with the name of its card.
    pub(crate) fn champion_cards(&self) -> Vec<(String, Card)> {
        self.with_champion().filter_map(|(replica, card)| Some((self.stem(replica)?, card.clone()))).collect()
    }

    /// The tables of present players, each with its file name. The tables of all replicas are joined into one, which has
    /// every column that any of them has.
    pub(crate) fn sheets(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let mut sheets: BTreeMap<&str, Vec<(&Replica, Sheet)>> = BTreeMap::new();
        for replica in &self.replicas {
            if let Some(sheet) = replica.sheet() {
                sheets.entry(sheet.name).or_default().push((replica, sheet));
            }
        }
        let text = |(name, sheets): (&str, Vec<(&Replica, Sheet)>)| {
            let (mut columns, mut places): (Vec<&str>, BTreeMap<&str, usize>) = Default::default();
            let headers: Vec<Vec<String>> = sheets.iter().map(|(_, sheet)| distinct(&sheet.header)).collect();
            for column in headers.iter().flatten() {
                places.entry(column).or_insert_with(|| {
                    columns.push(column);
                    columns.len() - 1
                });
            }
            let mut table = csv::Writer::from_writer(Vec::new());
            table.write_record(OF_REPLICA.iter().chain(&columns))?;
            for ((replica, sheet), header) in sheets.iter().zip(&headers) {
                let number = replica.index().to_string();
                for row in &sheet.rows {
                    let mut entries = vec![""; columns.len()];
                    header.iter().zip(row).for_each(|(column, entry)| entries[places[column.as_str()]] = entry);
                    table.write_record([replica.arm(), &number].into_iter().chain(entries))?;
                }
            }
            Ok((format!("{name}.csv"), table.into_inner().context("cannot write a table")?))
        };
        sheets.into_iter().map(text).collect()
    }

    /// The arms whose replicas have no population.
    pub(crate) fn without_population(&self) -> Vec<&str> {
        let arms = self.config.arms.iter().map(|arm| arm.name.as_str());
        let has_one = |arm: &str| self.replicas.iter().any(|it| it.arm() == arm && !it.population().is_empty());
        arms.filter(|arm| !has_one(arm)).collect()
    }

    /// Whether a file of this name could be a card of a run with these arms, or the file that a card names: `ARM-3.json`,
    /// `ARM-3-17.safetensors`.
    pub(crate) fn could_be_card(&self, name: &str) -> bool {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let of_arm = |arm: usize| {
            let behind = name.strip_prefix(&file_name(&self.config, arm))?.strip_prefix('-')?;
            let (numbers, ending) = behind.split_once('.')?;
            Some(numbers.split('-').count() <= 2 && numbers.split('-').all(number) && !ending.contains('.'))
        };
        (0..self.config.arms.len()).any(|arm| of_arm(arm) == Some(true))
    }

    /// The name of the card of a replica's champion, without its extension.
    fn stem(&self, replica: &Replica) -> Option<String> {
        let arm = self.config.arms.iter().position(|arm| arm.name == replica.arm())?;
        Some(champion_stem(&self.config, arm, replica.index()))
    }

    /// The report as one HTML file; `name` is the run's name for people, and `result` is the content of `result.json`.
    pub(crate) fn html(&self, name: &str, result: &Value) -> anyhow::Result<String> {
        let rows = LastRows::of(&History::of(self.history()?), &self.config)?;
        let (champions, more_champions) = champions(&rows, &self.config, |best| Ok(self.card(best)))?;
        let (config, report) = (&self.config, &self.report);
        let conclusion = concluded(config, result, report);
        Ok(html::document(&Told { name, config, result, report, conclusion, champions, more_champions }))
    }

    /// The report, followed by the best candidate of each arm in rounded numbers, and the comparison with an earlier run.
    fn answered(&self, result: &Value, directory: &Path, compared: Option<String>) -> anyhow::Result<String> {
        let rows = LastRows::of(&History::of(self.history()?), &self.config)?;
        let found = rows.best(&self.config).filter_map(|best| self.card(&best).map(|card| (best, card)));
        let (found, first) = (found.collect::<Vec<_>>(), rows.best_arm(&self.config));
        let mut answer = answer_text(&self.config, &found, first, directory, columns());
        answer += &compared.map(|line| line + "\n").unwrap_or_default();
        let mut text = report_text(result["conclusion"].as_str(), &self.report);
        // After its notes, the report does not end with an empty line yet.
        if !answer.is_empty() && !text.ends_with("\n\n") {
            text.push('\n');
        }
        Ok(text + &answer)
    }

    /// The champion of a replica.
    pub(crate) fn card(&self, best: &Best) -> Option<Card> {
        let arm = &self.config.arms[best.arm].name;
        let mut all = self.with_champion();
        all.find(|(it, _)| it.arm() == arm && it.index() == best.replica).map(|(_, card)| card.clone())
    }

    /// Prints the results, with the comparison, and returns the exit status: success only without doubts.
    pub(crate) fn print(
        &self,
        result: &Value,
        directory: &Path,
        compared: Option<String>,
        as_json: bool,
    ) -> anyhow::Result<ExitCode> {
        let text = match as_json {
            true => json::text(result),
            false => format!(
                "{}\n{}\nresults are in {}\na report to send to others is {}\n",
                self.answered(result, directory, compared)?,
                digest_text(result),
                directory.display(),
                directory.join(REPORT).display()
            ),
        };
        printed(stdout().write_all(text.as_bytes()))?;
        if self.doubts.is_empty() {
            return Ok(if self.is_without_solution() {
                tell(format_args!(
                    "error: no replica found a candidate that has a value and satisfies all constraints: give more \
                    evaluations, or check why candidates fail"
                ));
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            });
        }
        tell(format_args!(
            "error: these results are in doubt: {} tasks were computed twice with different outputs, and one worker of each pair \
             computes wrongly; \"doubts\" in result.json names them: find the host that computes wrongly, and compute the \
                 run again without it",
            self.doubts.len()
        ));
        Ok(ExitCode::FAILURE)
    }
}

/// The first columns of a table of all replicas.
const OF_REPLICA: [&str; 2] = ["arm", "replica"];

/// The names of a table's columns, made distinct: a name that occurs again gets a number, from 2 on.
fn distinct(header: &[String]) -> Vec<String> {
    let mut taken: BTreeSet<String> = OF_REPLICA.map(String::from).into();
    let numbered = |name: &String| {
        let names = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(names).find(|name| taken.insert(name.clone()));
        free.unwrap_or_default()
    };
    header.iter().map(numbered).collect()
}

/// Prints a warning if a run has more replicas than these results cover.
fn warn_of_more(config: &Config, run: &v1::Run) {
    let each = run.replicas_total / (config.arms.len() as u32).max(1);
    if each > config.replicas {
        let asked = config.replicas;
        notice(format_args!(
            "the run has {each} replicas of each arm; these are the results of the first {asked} (--replicas {each} gives all)"
        ));
    }
}

/// The content of a .csv with these rows.
pub(crate) fn csv_text(rows: &[Vec<String>]) -> anyhow::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| table.write_record(row))?;
    table.into_inner().context("cannot write a table")
}

/// A card's file, preceded by the file that the card names: the named file must exist when the card does.
fn files(card: &Card, stem: &str) -> impl Iterator<Item = (String, Vec<u8>)> + use<> {
    let (card, file) = card.write(stem);
    file.into_iter().chain([(format!("{stem}.json"), card.into_bytes())])
}

/// Puts a report into a result, which then has the present form.
pub(crate) fn add_report(result: &mut Value, report: &Report) {
    if let (Some(result), Some(told)) = (result.as_object_mut(), report.json.as_object()) {
        result.shift_insert(0, "schema".into(), SCHEMA.into());
        let mut told = Value::from(told.clone());
        numbers::beside(&mut told);
        result.extend(told.as_object().cloned().unwrap_or_default());
        result.insert("notes".into(), report.notes.clone().into());
    }
}

/// The conclusion of a run, from its `result.json` and the report that belongs to it.
pub(crate) fn concluded(config: &Config, result: &Value, report: &Report) -> String {
    // A small result lacks parts that the report has again.
    let mut result = result.clone();
    add_report(&mut result, report);
    of_result(config, &result)
}

/// The width of the terminal in letters; no limit if the output goes elsewhere.
fn columns() -> usize {
    let columns = std::io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    columns.map_or(usize::MAX, |(columns, _)| usize::from(columns).max(COLUMNS_MIN))
}

/// The text that is printed at the end. It begins with the conclusion, if known, and fits the terminal if the output is one.
pub(crate) fn report_text(conclusion: Option<&str>, report: &Report) -> String {
    let width = columns();
    let tables: Vec<String> = report.tables.iter().map(|table| table.within(width)).collect();
    let notes: Vec<String> =
        report.notes.iter().map(|note| wrapped(&format!("- {note}"), width, "  ") + "\n").collect();
    let conclusion = conclusion.map(|sentence| wrapped(sentence, width, "") + "\n\n").unwrap_or_default();
    format!("{conclusion}{}\n{}", tables.join("\n"), notes.concat())
}

/// Tables are never made narrower than this. A terminal that reports less is wrong, or nothing fits into it.
const COLUMNS_MIN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_table_have_different_names() {
        let header = ["x", "x", "arm", "x (2)", "y"].map(String::from);
        assert_eq!(distinct(&header), ["x", "x (2)", "arm (2)", "x (2) (2)", "y"]);
    }
}
