//! The report of a run so far: conclusion, tables, notes and plots, as JSON.
//!
//! Pure: stored objects come in, JSON goes out.

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::{
    candidates::{Candidate, Quantity},
    comparison::Measured,
    conclusion::{sentence, state},
    envelope,
    experiment::{Arm, Config, Replica, ResultDigest, screen_files},
    plot,
    report::{Drawn, Figure, Report, Table},
};
use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::best::best;
use crate::replicas::ReplicaKey;

/// The most bytes of the text of all tables. Rows beyond it are left out and counted.
const TABLES_BYTES_MAX: usize = 2 << 20;
/// The most bytes of all plots, and the most points of a curve in them.
const PLOTS_BYTES_MAX: usize = 2 << 20;
const POINTS_MAX: usize = 300;
/// The most bytes of the candidates of all arms, and how many of a replica's candidates besides its champion are shown.
const CANDIDATES_BYTES_MAX: usize = 1 << 20;
const OTHERS_MAX: usize = 200;
/// The most notes. One more then says how many were left out.
const NOTES_MAX: usize = 200;

/// An object of the store.
pub(super) enum Stored {
    /// The states of unfinished replicas.
    Checkpoint(Bytes),
    /// The final state of this replica.
    End(ReplicaKey, Bytes),
}

/// A report as JSON.
#[derive(Debug)]
pub(super) struct Told {
    /// A tag that changes with the rest.
    pub(super) tag: String,
    /// The conclusion, as a sentence.
    pub(super) conclusion: String,
    /// The values that are compared with other runs.
    pub(super) measured: Measured,
    tables: Bytes,
    plots: Bytes,
    candidates: Bytes,
}

/// A part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Conclusion, tables and notes.
    Tables,
    /// Plots as SVG.
    Plots,
    /// The candidates of a search.
    Candidates,
}

impl Told {
    pub(super) fn part(&self, part: Part) -> Bytes {
        match part {
            Part::Tables => self.tables.clone(),
            Part::Plots => self.plots.clone(),
            Part::Candidates => self.candidates.clone(),
        }
    }
}

/// The report of the stored replicas.
///
/// # Errors
/// A sentence if a stored object cannot be read.
pub(super) fn tell(config: &Config, stored: Vec<Stored>, in_doubt: bool, tag: String) -> Result<Told, String> {
    // A replica at its last round is not finished while its outputs are recomputed: it is still in a checkpoint.
    let finished = stored.iter().filter(|object| matches!(object, Stored::End(..))).count();
    let mut replicas = BTreeMap::new();
    for object in stored {
        for (key, state) in states(config, &object)? {
            replicas.insert(key, Replica::restore(config, &state)?);
        }
    }
    let replicas: Vec<Replica> = replicas.into_values().collect();
    let (report, all) = (config.report(&replicas), config.arms.len() * config.replicas as usize);
    let digest = (finished == all).then(|| ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string());
    let mut result = report.json.clone();
    result["digest"] = digest.into();
    result["state"] = if in_doubt { "in doubt" } else { "finished" }.into();
    let conclusion = sentence(config, &result);
    let about = json!({
        "state": state(&result),
        "digest": result["digest"],
        "finished": finished,
        "replicas": all,
        "conclusion": conclusion,
        "best": best(config, &replicas),
        "first": first(&report),
        "ratings": ratings(&result),
        "searches": config.arms.iter().any(|arm| !(config.kind.quantities)(&arm.settings).is_empty()),
    });
    let with = |mut about: Value, more: &mut [(&str, Value)]| {
        more.iter_mut().for_each(|(name, value)| about[*name] = value.take());
        Bytes::from(about.to_string())
    };
    let (plots, more_plots) = plots(config, &report);
    let tables = &mut [("tables", tables(&report.tables)), ("notes", notes(report.notes).into())];
    let plots = &mut [("plots", plots.into()), ("more", more_plots.into())];
    let candidates = &mut [("arms", candidates(config, &replicas))];
    let measured = Measured::of_replicas(config, &result, &replicas);
    let [tables, plots, candidates] = [&mut tables[..], plots, candidates].map(|more| with(about.clone(), more));
    Ok(Told { tag, conclusion, measured, tables, plots, candidates })
}

/// The states in an object. A finished replica's object is newer than any checkpoint's.
fn states(config: &Config, object: &Stored) -> Result<Vec<(ReplicaKey, v1::ReplicaState)>, String> {
    match object {
        Stored::Checkpoint(bytes) => {
            let body = envelope::open(envelope::Kind::Checkpoint, bytes).ok();
            let checkpoint = body.and_then(|body| v1::Checkpoint::decode(body).ok());
            let checkpoint =
                checkpoint.ok_or("the newest checkpoint of this run is damaged: see the coordinator's log")?;
            let key = |state: &v1::ReplicaState| {
                let arm = config.arms.iter().position(|arm| arm.name == state.arm)?;
                (state.replica < config.replicas).then_some(ReplicaKey { arm: arm as u32, index: state.replica })
            };
            Ok(checkpoint.replicas.into_iter().filter_map(|state| Some((key(&state)?, state))).collect())
        }
        Stored::End(key, bytes) => {
            let body = envelope::open(envelope::Kind::Finished, bytes).ok();
            let state = body.and_then(|body| v1::Finished::decode(body).ok()?.replica);
            let damaged = || {
                let arm = config.arms.get(key.arm as usize).map_or("", |arm| arm.name.as_str());
                format!("the stored state of replica {} of {arm:?} is damaged: see the coordinator's log", key.index)
            };
            Ok(vec![(*key, state.ok_or_else(damaged)?)])
        }
    }
}

/// Tables as JSON, as far as there is room; `more` counts the rows that are left out.
fn tables(tables: &[Table]) -> Value {
    let mut room = TABLES_BYTES_MAX;
    let table = |Table { title, header, rows }: &Table| {
        let fits = |row: &&Vec<String>| {
            let bytes: usize = row.iter().map(|cell| cell.len() + 3).sum();
            let fits = bytes <= room;
            room = if fits { room - bytes } else { 0 };
            fits
        };
        let shown: Vec<&Vec<String>> = rows.iter().take_while(fits).collect();
        json!({"title": title, "header": header, "rows": shown, "more": rows.len() - shown.len()})
    };
    tables.iter().map(table).collect()
}

fn notes(mut notes: Vec<String>) -> Vec<String> {
    if notes.len() > NOTES_MAX {
        let more = notes.len() - NOTES_MAX;
        notes.truncate(NOTES_MAX);
        notes.push(format!("{more} more notes are not shown."));
    }
    notes
}

/// The candidates of each arm that searches for numbers, as far as there is room: the champions of all replicas, then what
/// each replica keeps besides. `more` says whether some were left out.
fn candidates(config: &Config, replicas: &[Replica]) -> Value {
    let room = CANDIDATES_BYTES_MAX / config.arms.len().max(1);
    let arm = |arm: &Arm| {
        let quantities = (config.kind.quantities)(&arm.settings);
        if quantities.is_empty() {
            return None;
        }
        let own: Vec<&Replica> = replicas.iter().filter(|replica| replica.arm() == arm.name).collect();
        let (mut rows, mut others, mut left, mut more) = (Vec::new(), Vec::new(), room, false);
        let mut row = |replica: &Replica, best: bool, values: Candidate, rows: &mut Vec<Value>| {
            let row = json!({"replica": replica.index(), "best": best, "values": values});
            let bytes = row.to_string().len();
            match left.checked_sub(bytes) {
                Some(rest) => {
                    left = rest;
                    rows.push(row);
                }
                None => more = true,
            }
        };
        for replica in own {
            let mut all = replica.candidates().into_iter();
            let Some(champion) = all.next() else { continue };
            others.extend(all.filter(|other| *other != champion).take(OTHERS_MAX).map(|other| (replica, other)));
            row(replica, true, champion, &mut rows);
        }
        for (replica, other) in others {
            row(replica, false, other, &mut rows);
        }
        let quantities: Vec<Value> = quantities.iter().map(Quantity::json).collect();
        Some(json!({"name": arm.name, "quantities": quantities, "rows": rows, "more": more}))
    };
    config.arms.iter().filter_map(arm).collect()
}

/// The name of the picture that shows the result best, if the curves of the page do not: a map of what is kept, a front, or
/// medians on a linear axis. The page's curves are medians where the axis is logarithmic.
fn first(report: &Report) -> Option<&str> {
    let medians = |figure: &&Figure| figure.drawn == Drawn::PlainMedians;
    let front = report.figures.iter().find(|figure| figure.name == "front");
    let figure = front.or(report.figures.first().filter(medians)).map(|figure| figure.name.as_str());
    report.maps.first().map(|map| map.name.as_str()).or(figure)
}

/// The ratings of the players of each arm, if the kind rates players.
fn ratings(result: &Value) -> Value {
    let arms = result["summary"].as_object().into_iter().flatten();
    let rated = arms.filter_map(|(arm, summary)| Some(json!({"arm": arm, "players": summary.get("ratings")?})));
    rated.collect()
}

/// Plots with their names, as far as there is room, and how many were left out.
fn plots(config: &Config, report: &Report) -> (Vec<Value>, usize) {
    let figure = |(number, figure): (usize, &evoxo_common::report::Figure)| {
        let svg = plot::svg_with_id(&figure.thinned(POINTS_MAX), &format!("axes-{number}"));
        (figure.name.clone(), svg)
    };
    let figures = report.figures.iter().enumerate().map(figure);
    let maps = report.maps.iter().map(|map| (map.name.clone(), plot::map(map)));
    let of_screen = screen_files(config, &report.json).pictures;
    let (mut room, mut more, mut shown) = (PLOTS_BYTES_MAX, 0, Vec::new());
    for (name, svg) in figures.chain(maps).chain(of_screen) {
        match room.checked_sub(svg.len()) {
            Some(left) => {
                room = left;
                shown.push(json!({"name": name, "svg": svg}));
            }
            None => more += 1,
        }
    }
    (shown, more)
}

#[cfg(test)]
mod tests {
    use evoxo_common::local;
    use evoxo_experiments::registry;

    use super::*;

    fn table(rows: usize, cell: usize) -> Table {
        let row = |number: usize| vec![number.to_string(), "x".repeat(cell)];
        Table { title: "t".into(), header: vec!["a".into(), "b".into()], rows: (0..rows).map(row).collect() }
    }

    #[test]
    fn the_first_picture_shows_the_result_best() {
        let figure = |name: &str, drawn: Drawn| Figure {
            name: name.into(),
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            y_range: None,
            drawn,
            references: Vec::new(),
            series: Vec::new(),
        };
        let report = |figures: Vec<Figure>| Report {
            tables: Vec::new(),
            notes: Vec::new(),
            json: Value::Null,
            figures,
            maps: Vec::new(),
        };
        assert_eq!(first(&report(Vec::new())), None);
        assert_eq!(first(&report(vec![figure("worth", Drawn::Means), figure("best", Drawn::Medians)])), None);
        assert_eq!(first(&report(vec![figure("best", Drawn::Medians)])), None);
        assert_eq!(first(&report(vec![figure("best", Drawn::PlainMedians)])), Some("best"));
        let several = report(vec![figure("hypervolume", Drawn::PlainMedians), figure("front", Drawn::Dots)]);
        assert_eq!(first(&several), Some("front"));
        let rated = json!({"summary": {"all": {"ratings": [{"player": "a"}]}, "other": {}}});
        assert_eq!(ratings(&rated), json!([{"arm": "all", "players": [{"player": "a"}]}]));
    }

    /// Candidates have a value for each quantity, the champion of each replica is first, and all of them have limits.
    #[test]
    fn candidates_are_listed_as_far_as_there_is_room() {
        let text = |settings: &str| {
            format!("experiment = \"evolve\"\nreplicas = 2\n[settings]\nproblem = \"sphere\"\n{settings}\n[arms.one]\n")
        };
        let told = |settings: &str| {
            let config = Config::parse(&registry(), "test", &text(settings), &[]).unwrap();
            let replicas = local::run(&config).unwrap();
            candidates(&config, &replicas)[0].clone()
        };
        let ga = told("algorithm = \"ga\"\nlength = 2\npopulation = 10\nevaluations = 100");
        let shown = json!([{"name": "f", "role": "objective", "best": "least"},
            {"name": "x[0]", "role": "gene", "low": -5.0, "high": 5.0},
            {"name": "x[1]", "role": "gene", "low": -5.0, "high": 5.0}]);
        assert_eq!((&ga["quantities"], &ga["more"]), (&shown, &json!(false)));
        let rows = ga["rows"].as_array().unwrap();
        let best: Vec<(&Value, &Value)> = rows.iter().map(|row| (&row["replica"], &row["best"])).collect();
        assert_eq!(best[..3], [(&json!(0), &json!(true)), (&json!(1), &json!(true)), (&json!(0), &json!(false))]);
        assert!(rows.len() > 10 && rows.iter().all(|row| row["values"].as_array().unwrap().len() == 3));
        let champions: Vec<&Value> = rows.iter().filter(|row| row["best"] == true).map(|row| &row["values"]).collect();
        let others = rows.iter().filter(|row| row["best"] == false);
        assert!(others.clone().all(|row| row["values"] != *champions[row["replica"].as_u64().unwrap() as usize]));
        let long = told("algorithm = \"ga\"\nlength = 1000\npopulation = 80\nevaluations = 200");
        assert_eq!(long["more"], true);
        assert!(long.to_string().len() < CANDIDATES_BYTES_MAX + 200_000);
        let config = Config::parse(&registry(), "test", "experiment = \"dispatch\"\n", &[]).unwrap();
        assert_eq!(candidates(&config, &local::run(&config).unwrap()), json!([]));
    }

    #[test]
    fn excess_rows_are_counted() {
        let told = tables(&[table(3, 10), table(100, 100_000), table(2, 10)]);
        let shown = told[1]["rows"].as_array().map_or(0, Vec::len);
        assert_eq!((told[0]["more"].clone(), shown), (json!(0), 20));
        assert_eq!((told[1]["more"].clone(), told[2]["more"].clone()), (json!(80), json!(2)));
        assert!(told.to_string().len() < TABLES_BYTES_MAX + 1000);
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        assert_eq!(notes(many).last().map(String::as_str), Some("800 more notes are not shown."));
    }

    /// The report before anything is stored, with unfinished replicas, and with the final states of all replicas, whatever an
    /// older checkpoint still says.
    #[test]
    fn a_run_can_be_reported_at_any_time() {
        let text = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 2\n";
        let config = Config::parse(&registry(), "test", text, &[]).unwrap();
        let json = |stored: Vec<Stored>| -> Value {
            let told = tell(&config, stored, false, "tag".into()).unwrap();
            serde_json::from_slice(&told.part(Part::Tables)).unwrap()
        };
        let seen = |told: &Value| (told["state"].clone(), told["finished"].clone(), told["replicas"].clone());
        assert_eq!(seen(&json(Vec::new())), (json!("unfinished"), json!(0), json!(2)));
        let checkpoint = || {
            let replicas = local::start(&config).map(|replica| replica.save()).collect();
            let checkpoint = v1::Checkpoint { replicas, ..v1::Checkpoint::default() };
            Stored::Checkpoint(envelope::seal(envelope::Kind::Checkpoint, &checkpoint.encode_to_vec()))
        };
        assert_eq!(seen(&json(vec![checkpoint()])), (json!("unfinished"), json!(0), json!(2)));
        let ends = local::run(&config).unwrap();
        let end = |replica: &Replica| {
            let finished = v1::Finished { replica: Some(replica.save()), ..v1::Finished::default() };
            let bytes = envelope::seal(envelope::Kind::Finished, &finished.encode_to_vec());
            Stored::End(ReplicaKey { arm: 0, index: replica.index() }, bytes)
        };
        // All replicas have computed their last rounds and wait for recomputations.
        let replicas = ends.iter().map(Replica::save).collect();
        let last = v1::Checkpoint { replicas, ..v1::Checkpoint::default() };
        let last = Stored::Checkpoint(envelope::seal(envelope::Kind::Checkpoint, &last.encode_to_vec()));
        let told = json(vec![last]);
        assert_eq!((seen(&told), &told["digest"]), ((json!("unfinished"), json!(0), json!(2)), &Value::Null));
        assert!(told["conclusion"].as_str().unwrap().starts_with("The run is not finished: its last rounds "));
        let told = json(vec![checkpoint(), end(&ends[1])]);
        assert_eq!(seen(&told), (json!("unfinished"), json!(1), json!(2)));
        assert!(told["conclusion"].as_str().unwrap().starts_with("The run is not finished: 1 of 2 replicas are. "));
        let told = json(vec![checkpoint(), end(&ends[1]), end(&ends[0])]);
        assert_eq!(seen(&told), (json!("finished"), json!(2), json!(2)));
        assert_eq!(told["digest"], json!(ResultDigest::of_run(ends.iter().map(Replica::digest)).to_string()));
        let report = config.report(&ends);
        assert_eq!(told["tables"][0]["rows"], json!(report.tables[0].rows));
        assert_eq!((&told["best"], &told["ratings"]), (&json!({"replicas": [1], "arm": 0}), &json!([])));
        let broken = Stored::End(ReplicaKey { arm: 0, index: 1 }, Bytes::from_static(b"nonsense"));
        let why = tell(&config, vec![broken], false, String::new()).unwrap_err();
        assert_eq!(why, "the stored state of replica 1 of \"main\" is damaged: see the coordinator's log");
    }
}
