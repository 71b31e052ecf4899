//! Parts of a result that are the same for all kinds: a replica's entry in `result.json`, and curves.

use serde_json::{Map, Value, json};

use super::{
    Arm, Config, Ends, Registry, Replica, fork,
    screen_report::add_screen,
    screen_responses::{responses, responses_of_result},
};
use crate::{
    math::mean,
    parallel,
    report::{Point, Report, Series},
    stats::quantile,
};

impl Config {
    /// The configuration of a `result.json`.
    ///
    /// # Errors
    /// A sentence if it is not a result.
    pub fn of_result(registry: &Registry, result: &Value) -> Result<Self, String> {
        let no_result =
            || "it is not the result of a run: it lacks experiment, seed, replicas or arms with settings".to_owned();
        let top = |name: &str| result.get(name).ok_or_else(no_result);
        // A seed that a float cannot represent exactly is written as a string.
        let seed = top("seed")?.to_string();
        let seed = seed.trim_matches('"');
        let mut text = format!("experiment = {}\nseed = {seed}\nreplicas = {}\n", top("experiment")?, top("replicas")?);
        if let Some(ends) = result.get("ends") {
            text += &Ends::of_result(ends).ok_or_else(no_result)?;
        }
        if let Some(forks) = result.get("forks") {
            text += &fork::of_result(forks).ok_or_else(no_result)?;
        }
        let arms = top("arms")?.as_array().ok_or_else(no_result)?;
        let own = |arm: &Value| Some((arm["name"].as_str()?.to_owned(), arm["settings"].as_object()?.clone()));
        let arms: Option<Vec<_>> = arms.iter().map(own).collect();
        let arms = arms.ok_or_else(no_result)?;
        let file_arms = match result.get("screen") {
            None => arms.clone(),
            Some(screen) => {
                let (table, arms) = file_of_screen(screen, &arms).ok_or_else(no_result)?;
                text += &table;
                arms
            }
        };
        for (name, settings) in file_arms {
            text += &format!("[arms.{name:?}]\n");
            settings.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        }
        let config = Self::parse(registry, "the result", &text, &[])
            .map_err(|problems| format!("its settings are not valid in this build: {problems}"))?;
        let names = |config: &Self| config.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<String>>();
        if names(&config) != arms.into_iter().map(|(name, _)| name).collect::<Vec<String>>() {
            return Err(no_result());
        }
        Ok(config)
    }

    /// The report of the run's replicas, which are in order of arm, then number; some may be unfinished.
    #[must_use]
    pub fn report(&self, replicas: &[Replica]) -> Report {
        let of_arm = |arm: &Arm| replicas.iter().filter(|replica| replica.arm() == arm.name).collect();
        let of_arms: Vec<Vec<&Replica>> = self.arms.iter().map(of_arm).collect();
        let numbers: Vec<usize> = (0..self.arms.len()).collect();
        let arms: Vec<Value> = parallel::map(&numbers, |arm| (self.kind.arm_json)(self, *arm, &of_arms));
        let mut report = (self.kind.report)(self, &arms).unwrap_or_else(|why| Report {
            notes: vec![format!("There are no tables: {why}.")],
            json: json!({"arms": arms}),
            tables: Vec::new(),
            figures: Vec::new(),
            maps: Vec::new(),
        });
        if let Some(screen) = &self.screen {
            add_screen(self, screen, responses(self, screen, replicas), &mut report);
        }
        add_ends(self, &mut report);
        add_forks(self, &mut report);
        report.notes.extend(self.notes());
        report.add_failures();
        report
    }
}

/// Adds to a report which conditions end replicas before their length, if there are any, and how many replicas they ended.
pub(crate) fn add_ends(config: &Config, report: &mut Report) {
    let Some(ends) = &config.ends else { return };
    let (mut all, mut early) = (0, 0);
    for (arm, told) in config.arms.iter().zip(report.json["arms"].as_array().into_iter().flatten()) {
        let length = (config.kind.demand)(&arm.settings).rows;
        for replica in told["replicas"].as_array().into_iter().flatten() {
            all += 1;
            let whole = replica["finished"] == true && replica.get("failure").is_none();
            early += u64::from(whole && replica["rows"].as_u64().is_some_and(|rows| rows < length));
        }
    }
    let words = ends.words(config.kind.columns);
    report.notes.push(format!("[ends]: {words} ended {early} of {all} replicas before their length."));
    report.json["ends"] = ends.to_json(config.kind.columns);
}

/// Adds to a report which settings change after which round, if any do.
pub(crate) fn add_forks(config: &Config, report: &mut Report) {
    if !config.forks.is_empty() {
        report.notes.extend(config.forks_text());
        report.json["forks"] = config.forks_json();
    }
}

/// An arm's name and settings in a result.
type WrittenArm = (String, Map<String, Value>);

/// The table `[screen]` of the file that gave a result, and the file's arms without the settings of factors.
fn file_of_screen(screen: &Value, arms: &[WrittenArm]) -> Option<(String, Vec<WrittenArm>)> {
    let key = |name: &str| screen.get(name);
    let factors = key("factors")?.as_object()?;
    let names = key("arms")?.as_array()?;
    let (generators, response, at, goal) = (key("generators")?, key("response")?, key("at")?, key("goal")?);
    let mut text = format!("[screen]\ngenerators = {generators}\nresponse = {response}\nat = {at}\ngoal = {goal}\n");
    let mut set: Vec<&String> = Vec::new();
    for (letter, settings) in factors {
        text += &format!("[screen.factors.{letter:?}]\n");
        for (name, levels) in settings.as_object()? {
            text += &format!("{name} = {levels}\n");
            set.push(name);
        }
    }
    let each = arms.len() / names.len().max(1);
    let arm = |(name, first): (&Value, &WrittenArm)| {
        let settings = first.1.iter().filter(|(name, _)| !set.contains(name));
        let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        Some((name["name"].as_str()?.to_owned(), settings))
    };
    let arms: Option<Vec<WrittenArm>> = names.iter().zip(arms.iter().step_by(each.max(1))).map(arm).collect();
    Some((text, arms?))
}

impl Registry {
    /// Makes the report again from the content of a `result.json`.
    ///
    /// # Errors
    /// A sentence if something is missing, or if it is not a result.
    pub fn report_of_result(&self, result: &Value) -> Result<Report, String> {
        let config = Config::of_result(self, result)?;
        let arms = result["arms"].as_array().map_or(&[][..], Vec::as_slice);
        let mut report = (config.kind.report)(&config, arms)?;
        if let Some(screen) = &config.screen {
            let told = responses_of_result(screen, &result["screen"]);
            let told = told.ok_or("the screen of the result lacks responses of some treatments")?;
            add_screen(&config, screen, told, &mut report);
        }
        add_ends(&config, &mut report);
        add_forks(&config, &mut report);
        report.notes.extend(config.notes());
        report.add_failures();
        Ok(report)
    }
}

/// An arm's settings in `result.json`, each written as in a file.
#[must_use]
pub fn settings_json(config: &Config, arm: usize) -> Value {
    let settings = config.arms[arm].settings.iter();
    settings.map(|(field, value)| (field.name.to_owned(), Value::from(value.bare()))).collect()
}

/// A column of the history as a curve over rounds: mean and band over the replicas that have reached each round.
#[must_use]
pub fn curve(name: &str, replicas: &[&Replica], column: usize) -> Series {
    let rounds = replicas.iter().map(|replica| replica.history().len()).max().unwrap_or(0);
    let at = |round: usize| {
        let rows = replicas.iter().filter_map(|replica| replica.row(round));
        point((round + 1) as f64, &rows.map(|row| row[column]).collect::<Vec<f64>>())
    };
    Series { name: name.into(), points: (0..rounds).map(at).collect() }
}

/// The point of a curve: mean and band of the values of replicas.
///
/// # Panics
/// If there are no values.
#[must_use]
pub fn point(x: f64, values: &[f64]) -> Point {
    let mean = mean(values).expect("there are values");
    Point { x, mean, low: quantile(values, 0.1), high: quantile(values, 0.9) }
}
