//! The report of `evolve`: the best that each arm has found, what it took, and the curves.

use std::cmp::Ordering;

use evoxo_common::{
    experiment::{ArmReplicas, Config, Replica, arm_json, file_name, point},
    math::{mean, order},
    report::{Drawn, Figure, Map, Point, Reference, Report, Series, Table},
    settings::Values,
    stats::estimate,
};
use serde_json::{Value, json};

use super::{
    contests::{self, Entry, Outcome},
    optimism::{self, Noisy},
    pictures,
    settings::{AlgorithmName, HYPERVOLUME_OBJECTIVES_MAX, Settings},
};

/// The places of columns in a row.
const EVALUATIONS: usize = 0;
pub(super) const BEST: usize = 1;
pub(super) const VIOLATION: usize = 3;
const FAILURES: usize = 4;
const HYPERVOLUME: usize = 5;
const KEPT: usize = 6;
pub(super) const SEEN: usize = 7;
pub(super) const CONFIRMED: usize = 8;
pub(super) const ERROR: usize = 9;

/// From this size on a number has more digits than are read.
const LONG: f64 = 1e15;

/// What is told of an arm.
struct Told<'a> {
    name: &'a str,
    settings: Settings,
    /// The best objective of each replica that has a feasible one.
    bests: Vec<f64>,
    /// Replicas that have come to a row, or to an end, without a feasible candidate.
    infeasible: usize,
    /// Replicas that have begun.
    replicas: usize,
    /// The evaluations of each.
    evaluations: Vec<f64>,
    failures: f64,
    /// Of each replica, where there is a reference point.
    hypervolumes: Vec<f64>,
    /// The candidates that each replica keeps.
    kept: Vec<f64>,
    /// If the problem is noisy: what the search of each replica saw as its best, and half the width of the interval of what fresh
    /// seeds say of its answer.
    noise: Option<[Vec<f64>; 2]>,
    curve: Series,
    json: &'a Value,
}

pub(super) fn report(config: &Config, arms: &[ArmReplicas<'_>]) -> Report {
    let told = |(arm, replicas): &ArmReplicas<'_>| {
        let settings = Settings::of(&config.arms[*arm].settings);
        // What a noisy search has seen is no result before it is confirmed.
        let counts = |row: &&Vec<f64>| !settings.is_noisy() || row[CONFIRMED] > 0.0;
        let last = |column: usize| -> Vec<f64> {
            replicas.iter().filter_map(|it| it.history().last().filter(counts)).map(|row| row[column]).collect()
        };
        let mut json = arm_json(config, *arm, replicas);
        // Without a single value a replica has no row that counts, and all of its evaluations have failed.
        let ended = |replica: &&&Replica| replica.is_finished() && replica.failure().is_none();
        let without = |replica: &&&Replica| replica.history().last().filter(counts).is_none();
        let valueless = replicas.iter().filter(ended).filter(without).count();
        let spent = vec![settings.evaluations as f64; valueless];
        json["best"] = last(BEST).into();
        json["violations"] = last(VIOLATION).into();
        json["evaluations"] = [last(EVALUATIONS), spent.clone()].concat().into();
        json["failures"] = [last(FAILURES), spent].concat().iter().sum::<f64>().into();
        json["hypervolume"] = last(HYPERVOLUME).into();
        json["kept"] = last(KEPT).into();
        if settings.is_noisy() {
            json["noise"] = json!({"seen": last(SEEN), "errors": last(ERROR), "confirmed": last(CONFIRMED)});
        }
        json["curve"] = curve(replicas, deciding(&settings)).to_json();
        json["runtimes"] = pictures::runtimes(&settings, replicas, [EVALUATIONS, BEST, VIOLATION]);
        json["front"] = pictures::front(&settings, replicas);
        json["map"] = pictures::archive(&settings, replicas);
        json
    };
    let arms: Vec<Value> = arms.iter().map(told).collect();
    report_of_result(config, &arms).unwrap_or_else(|why| Report {
        tables: Vec::new(),
        notes: vec![format!("There are no tables: {why}.")],
        json: json!({"arms": arms}),
        figures: Vec::new(),
        maps: Vec::new(),
    })
}

/// See [`evoxo_common::experiment::Ranking`].
pub(super) fn deciding_column(values: &Values) -> usize {
    deciding(&Settings::of(values))
}

/// The column that says how good a replica is.
fn deciding(settings: &Settings) -> usize {
    if settings.reference_point().is_some() { HYPERVOLUME } else { BEST }
}

/// Which of two rows is better: the one with the greater hypervolume, where there is one, and else the one with the better candidate:
/// one that breaks its constraints less, then the better objective.
pub(super) fn compare(values: &Values, one: &[f64], other: &[f64]) -> Ordering {
    let settings = Settings::of(values);
    let volume = settings.reference_point().map(|_| order(other[HYPERVOLUME], one[HYPERVOLUME]));
    let maximised = settings.objectives().first().is_some_and(|(maximised, _)| *maximised);
    let best = order(one[BEST], other[BEST]);
    let violation = order(one[VIOLATION], other[VIOLATION]);
    // Of a noisy problem, whose values before they are confirmed are luck.
    let confirmed = (other[CONFIRMED] > 0.0).cmp(&(one[CONFIRMED] > 0.0));
    confirmed.then(volume.unwrap_or(Ordering::Equal)).then(violation).then(if maximised { best.reverse() } else { best })
}

/// The rows of a search, without that of what follows it.
fn searched(replica: &Replica) -> &[Vec<f64>] {
    match replica.history() {
        [search @ .., last] if last[CONFIRMED] > 0.0 => search,
        history => history,
    }
}

/// Mean and band of a column over the evaluations, as the searches saw it, of replicas that have a feasible candidate by then. A replica that has ended before
/// others stays at what it has reached.
fn curve(replicas: &[&Replica], column: usize) -> Series {
    let rows = replicas.iter().map(|replica| searched(replica).len()).max().unwrap_or(0);
    let at = |row: usize| {
        let (mut xs, mut values) = (Vec::new(), Vec::new());
        for replica in replicas {
            let history = searched(replica);
            xs.extend(history.get(row).map(|row| row[EVALUATIONS]));
            let last = || history.last().filter(|_| replica.is_finished());
            let feasible = history.get(row).or_else(last).filter(|row| row[VIOLATION] == 0.0);
            values.extend(feasible.map(|row| row[column]));
        }
        (!values.is_empty()).then(|| point(mean(&xs).unwrap_or(0.0), &values))
    };
    Series { name: String::new(), points: (0..rows).filter_map(at).collect() }
}

pub(super) fn report_of_result(config: &Config, arms: &[Value]) -> Result<Report, String> {
    let told = arms.iter().enumerate().map(|(index, json)| read(&config.arms[index].name, config, index, json));
    let told = told.collect::<Result<Vec<Told<'_>>, String>>()?;
    let (direction, name) = objective_of_all(&told);
    let several = told.iter().all(|arm| arm.settings.reference_point().is_some());
    let mut tables = Vec::new();
    if !several {
        tables.push(Table {
            title: format!("The {direction} {name} of a replica: mean ± 95 % interval, and range"),
            header: ["arm", "replicas", "mean", "range", "evaluations", "target reached", "ERT"]
                .map(String::from)
                .to_vec(),
            rows: told.iter().map(Told::row).collect(),
        });
    }
    tables.extend(kept_table(&told));
    let noisy: Vec<Noisy<'_>> = told.iter().filter_map(Told::noisy).collect();
    tables.extend(optimism::table(&noisy));
    let mut notes: Vec<String> = told.iter().filter_map(Told::failures).collect();
    notes.extend(optimism::note(&noisy));
    notes.extend(told.iter().filter_map(Told::unused_reference));
    notes.extend(told.iter().any(Told::lacks_reference).then(missing_reference));
    // What a screen has to say are its effects.
    let entries = told.iter().filter(|_| config.screen.is_none()).filter_map(Told::entry).collect::<Vec<_>>();
    let contests = contests::contests(&entries);
    tables.extend(contests::table(&contests));
    notes.extend(contests::notes(&contests));
    let contests: Vec<Value> = contests.iter().map(contests::Contest::to_json).collect();
    if let Some(settings) = told.first().map(|arm| &arm.settings).filter(|_| !several) {
        let optimum = settings.built_in().and_then(|problem| {
            let genes = settings.genome().genes();
            let name = problem.objectives.first()?.name;
            Some(format!("The best {name} of {} of this length is {}.", problem.name, (problem.optimum)(genes)?))
        });
        notes.extend(optimum);
    }
    let random = |arm: &Told<'_>| arm.settings.algorithm == AlgorithmName::Random;
    let single = told.iter().all(|arm| arm.settings.objectives().len() == 1);
    if single && !told.iter().any(random) {
        notes.push(
            "No arm is random search: add one with algorithm = \"random\" to see what the search is worth.".into(),
        );
    }
    let summary = told.iter().map(|arm| (arm.name.to_owned(), arm.summary())).collect::<serde_json::Map<_, _>>();
    let (figures, maps) = pictures(config, &told);
    let mut references = if several { Vec::new() } else { references(&told) };
    let series: Vec<Series> = told.iter().map(|arm| arm.curve.clone()).filter(|curve| !curve.points.is_empty()).collect();
    let (what, title) = match several {
        true => ("hypervolume", "The hypervolume up to the reference point".to_owned()),
        false => ("best", format!("The {direction} {name} so far")),
    };
    let title = if noisy.is_empty() { title } else { format!("{title}, as the searches saw it") };
    let drawn = if falls_by_powers(&series) { Drawn::Powers } else { Drawn::Means };
    // On a logarithmic axis there is no place for others.
    references.retain(|known| drawn == Drawn::Means || known.value > 0.0);
    let figure = Figure {
        name: what.into(),
        title: format!("{title}, and the middle 80 % of replicas"),
        x_label: "evaluations".into(),
        y_label: if several { what.into() } else { name },
        y_range: None,
        drawn,
        references,
        series,
    };
    Ok(Report {
        tables,
        notes,
        json: json!({"arms": arms, "summary": summary, "contests": contests}),
        figures: Some(figure).into_iter().filter(|figure| !figure.series.is_empty()).chain(figures).collect(),
        maps,
    })
}

/// How the first objective is told: its direction and its name if all arms have the same, else words that fit all of them.
fn objective_of_all(told: &[Told<'_>]) -> (&'static str, String) {
    let of = |arm: &Told<'_>| arm.settings.objectives().into_iter().next();
    match told.first().and_then(of).filter(|first| told.iter().all(|arm| of(arm).as_ref() == Some(first))) {
        Some((maximised, name)) => (if maximised { "greatest" } else { "least" }, name),
        None => ("best", "objective".into()),
    }
}

/// The target and the optimum, where they are known and all arms have the same.
fn references(told: &[Told<'_>]) -> Vec<Reference> {
    let of_all = |name: &str, value: fn(&Settings) -> Option<f64>| {
        let first = value(&told.first()?.settings)?;
        told.iter().all(|arm| value(&arm.settings) == Some(first)).then(|| Reference::new(name, first))
    };
    let target = of_all("target", Settings::target_number);
    let optimum = of_all("optimum", |settings| (settings.built_in()?.optimum)(settings.genome().genes()));
    let mut lines: Vec<Reference> = target.into_iter().chain(optimum).collect();
    // A target that is the optimum needs one line.
    lines.dedup_by_key(|known| known.value);
    lines
}

/// The other pictures.
fn pictures(config: &Config, told: &[Told<'_>]) -> (Vec<Figure>, Vec<Map>) {
    let of = |key: &str| told.iter().map(|arm| (arm.name, &arm.settings, &arm.json[key])).collect::<Vec<_>>();
    let figures = [pictures::runtimes_figure(&of("runtimes")), pictures::front_figure(&of("front"))];
    let map = |(index, (name, settings, json)): (usize, &(&str, &Settings, &Value))| {
        pictures::archive_map(&file_name(config, index), name, settings, json)
    };
    (figures.into_iter().flatten().collect(), of("map").iter().enumerate().filter_map(map).collect())
}

/// Whether the curves are positive and fall by powers of ten, as to an optimum of 0: they are seen on a logarithmic axis.
fn falls_by_powers(series: &[Series]) -> bool {
    let least =
        |value: fn(&Point) -> f64| series.iter().flat_map(|it| &it.points).map(value).fold(f64::INFINITY, f64::min);
    let most = series.iter().flat_map(|it| &it.points).map(|point| point.high).fold(0.0, f64::max);
    least(|point| point.low) > 0.0 && most > 100.0 * least(|point| point.mean)
}

fn read<'a>(name: &'a str, config: &Config, index: usize, json: &'a Value) -> Result<Told<'a>, String> {
    let lacks = |what: &str| format!("the arm {name:?} of the result has no {what}");
    let numbers = |key: &str| -> Result<Vec<f64>, String> {
        let list = json[key].as_array().and_then(|list| list.iter().map(Value::as_f64).collect());
        list.ok_or_else(|| lacks(key))
    };
    let noise = |key: &str| -> Result<Vec<f64>, String> {
        let list = json["noise"][key].as_array().and_then(|list| list.iter().map(Value::as_f64).collect());
        list.ok_or_else(|| lacks(key))
    };
    let (bests, violations) = (numbers("best")?, numbers("violations")?);
    let replicas = json["replicas"].as_array().ok_or_else(|| lacks("replicas"))?.len();
    // A replica all of whose candidates have failed has evaluations, and no best one.
    let evaluations = numbers("evaluations")?;
    let feasible = bests.into_iter().zip(violations).filter(|(_, violation)| *violation == 0.0);
    let bests: Vec<f64> = feasible.map(|(best, _)| best).collect();
    Ok(Told {
        name,
        settings: Settings::of(&config.arms[index].settings),
        infeasible: evaluations.len().saturating_sub(bests.len()),
        bests,
        replicas,
        evaluations,
        failures: json["failures"].as_f64().ok_or_else(|| lacks("failures"))?,
        hypervolumes: numbers("hypervolume")?,
        kept: numbers("kept")?,
        noise: if json["noise"].is_null() { None } else { Some([noise("seen")?, noise("errors")?]) },
        curve: Series::of_json(name, &json["curve"]).ok_or_else(|| lacks("curve"))?,
        json,
    })
}

/// What NSGA-II and MAP-Elites keep, if an arm is one of them.
fn kept_table(told: &[Told<'_>]) -> Option<Table> {
    let keeps = |arm: &&Told<'_>| matches!(arm.settings.algorithm, AlgorithmName::Nsga2 | AlgorithmName::MapElites);
    let text = |numbers: &[f64]| estimate(numbers).map_or_else(|| "-".into(), |it| it.text(it.decimals()));
    let row = |arm: &Told<'_>| {
        let hypervolume = arm.settings.reference_point().map_or_else(|| "-".into(), |_| text(&arm.hypervolumes));
        vec![arm.name.to_owned(), hypervolume, text(&arm.kept)]
    };
    let rows: Vec<Vec<String>> = told.iter().filter(keeps).map(row).collect();
    let title = "What is kept, also what is dominated or not feasible: mean ± 95 % interval".into();
    (!rows.is_empty()).then(|| Table {
        title,
        header: ["arm", "hypervolume", "candidates"].map(String::from).to_vec(),
        rows,
    })
}

impl Told<'_> {
    fn maximised(&self) -> bool {
        self.settings.objectives().first().is_some_and(|(maximised, _)| *maximised)
    }

    /// Whether a value is as good as the target; none without a target.
    fn reaches(&self, best: f64) -> Option<bool> {
        let target = self.settings.target_number()?;
        Some(if self.maximised() { best >= target } else { best <= target })
    }

    /// Replicas that are as good as the target.
    fn reached(&self) -> Option<usize> {
        self.settings.target_number()?;
        Some(self.bests.iter().filter(|best| self.reaches(**best) == Some(true)).count())
    }

    /// What it is tested with against other arms, if all its replicas are finished and have a feasible candidate, and one number
    /// says which of two is better.
    fn entry(&self) -> Option<Entry<'_>> {
        let mut replicas = self.json["replicas"].as_array()?.iter();
        let complete = self.bests.len() == self.replicas && replicas.all(|replica| replica["finished"] == true);
        let objectives = self.settings.objectives().len();
        let noisy = self.settings.is_noisy();
        let single = |(best, evaluations): (&f64, &f64)| match self.reaches(*best) {
            // A noisy search does not end when it has seen its target.
            Some(true) if !noisy => Outcome::Reached(*evaluations),
            _ => Outcome::Ended(if self.maximised() { -best } else { *best }),
        };
        let outcomes: Vec<Outcome> = match self.settings.reference_point() {
            None if objectives == 1 => self.bests.iter().zip(&self.evaluations).map(single).collect(),
            Some(_) => self.hypervolumes.iter().map(|volume| Outcome::Ended(-volume)).collect(),
            None => return None,
        };
        (complete && !outcomes.is_empty()).then_some(Entry { name: self.name, settings: &self.settings, outcomes })
    }

    /// What it saw, and what of it is confirmed.
    fn noisy(&self) -> Option<Noisy<'_>> {
        let [seen, errors] = self.noise.as_ref()?;
        Some(Noisy { name: self.name, settings: &self.settings, seen, confirmed: &self.bests, errors })
    }

    fn row(&self) -> Vec<String> {
        let infeasible = || if self.infeasible > 0 { "none is feasible" } else { "-" }.to_owned();
        let mean = estimate(&self.bests).map_or_else(infeasible, |estimate| match estimate.half_width {
            half_width if estimate.mean.abs() >= LONG => {
                short(estimate.mean) + &half_width.map_or_else(String::new, |it| format!(" ± {}", short(it)))
            }
            // Where decimals would be noughts.
            Some(half_width) if estimate.mean.abs() < 1e-3 && estimate.mean != 0.0 => {
                format!("{} ± {}", short(estimate.mean), short(half_width))
            }
            _ => estimate.text(estimate.decimals()),
        });
        let ends = |pick: fn(f64, f64) -> f64| self.bests.iter().copied().reduce(pick);
        let range = ends(f64::min).zip(ends(f64::max)).map_or_else(
            || "-".into(),
            |(low, high)| match low == high {
                true => short(low),
                false => format!("{} to {}", short(low), short(high)),
            },
        );
        let evaluations =
            estimate(&self.evaluations).map_or_else(|| "-".into(), |estimate| format!("{:.0}", estimate.mean));
        let reached = self.reached().map_or_else(|| "-".into(), |reached| format!("{reached} of {}", self.replicas));
        // The expected runtime (Hansen et al. 2022): what it takes to reach the target once, failures included.
        let runtime = match self.reached() {
            Some(reached @ 1..) => format!("{:.0}", self.evaluations.iter().sum::<f64>() / reached as f64),
            _ => "-".into(),
        };
        let replicas = match self.bests.len() {
            feasible if self.infeasible > 0 => format!("{feasible} of {}", self.replicas),
            _ => self.replicas.to_string(),
        };
        vec![self.name.to_owned(), replicas, mean, range, evaluations, reached, runtime]
    }

    fn summary(&self) -> Value {
        let mean = estimate(&self.bests).map(|estimate| {
            let [low, high] = estimate.ends();
            json!({"mean": estimate.mean, "low": low, "high": high})
        });
        json!({
            "best": mean,
            "reached": self.reached(),
            "feasible": self.bests.len(),
            "failures": self.failures,
            "compared": self.compared(),
            "without_solution": self.without_solution(),
        })
    }

    /// Which column of the last rows says how good the replicas are, and for which problem: arms of other runs that say the same
    /// can be compared with this one. None with a target, where it matters how soon it is reached.
    fn compared(&self) -> Option<Value> {
        self.entry().filter(|_| self.settings.target_number().is_none())?;
        let by = if self.settings.reference_point().is_some() { "hypervolume" } else { "best" };
        Some(json!({"by": by, "of": self.settings.problem_hash().to_string()}))
    }

    fn without_solution(&self) -> Option<String> {
        let (infeasible, all) = (self.infeasible, self.replicas);
        (infeasible > 0).then(|| format!("{infeasible} of {all} replicas found no feasible candidate"))
    }

    fn unused_reference(&self) -> Option<String> {
        let objectives = self.settings.objectives().len();
        (!self.settings.reference.is_empty() && objectives > HYPERVOLUME_OBJECTIVES_MAX).then(|| {
            format!(
                "Arm {:?}: the reference point is not used, because the hypervolume is only computed for up to \
                 {HYPERVOLUME_OBJECTIVES_MAX} objectives, and there are {objectives}.",
                self.name
            )
        })
    }

    /// Whether its candidates have several objectives and could have a hypervolume, for which a point is missing.
    fn lacks_reference(&self) -> bool {
        let objectives = self.settings.objectives().len();
        (2..=HYPERVOLUME_OBJECTIVES_MAX).contains(&objectives) && self.settings.reference_point().is_none()
    }

    fn failures(&self) -> Option<String> {
        let count = self.failures;
        (count > 0.0)
            .then(|| format!("Arm {:?}: {count} candidates had no value, and counted as the worst.", self.name))
    }
}

/// How to measure and test arms with several objectives.
fn missing_reference() -> String {
    "Without a reference point there is no hypervolume, and arms are not tested: set `reference` to a number for each objective, in the \
     objective's own unit, that each candidate worth keeping is better than."
        .into()
}

/// A number in few digits: as it is, or with an exponent.
fn short(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-3..1e6).contains(&size) { format!("{number:.4}") } else { format!("{number:.2e}") }
}
