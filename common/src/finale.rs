//! What is made of a run's replicas at the end: tables beside the source's figures, curves, numbers for programs.

use serde_json::{Value, json};

use crate::{
    config::{Config, Kind, written},
    experiment::{dispatch, invincible, nndtf, rules, td3d, ternary},
    replica::Replica,
    stats::quantile,
};

/// Everything that is made of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Finale {
    /// In the order in which they are printed.
    pub tables: Vec<Table>,
    /// Sentences below the tables.
    pub notes: Vec<String>,
    /// The run's part of `result.json`: `arms` with their `replicas`, and `summary`.
    pub json: Value,
    /// Curves over generations.
    pub figures: Vec<Figure>,
}

impl Finale {
    /// A note for each replica that ended early.
    fn add_failures(&mut self) {
        let arms = self.json["arms"].as_array().into_iter().flatten();
        let replicas =
            arms.flat_map(|arm| arm["replicas"].as_array().into_iter().flatten().map(move |replica| (arm, replica)));
        let note = |(arm, replica): (&Value, &Value)| {
            let (name, why) = (arm["name"].as_str()?, replica["failure"].as_str()?);
            Some(format!("Replica {} of {name} {why}.", replica["replica"]))
        };
        self.notes.extend(replicas.filter_map(note).collect::<Vec<String>>());
    }
}

/// A table for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// One line.
    pub title: String,
    /// One entry a column.
    pub header: Vec<String>,
    /// As many entries as the header each.
    pub rows: Vec<Vec<String>>,
}

/// A picture with curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Of the file, without directory and ending.
    pub name: String,
    /// One line.
    pub title: String,
    /// With the unit.
    pub x_label: String,
    /// With the unit.
    pub y_label: String,
    /// From the bottom to the top; else as the values are.
    pub y_range: Option<(f64, f64)>,
    /// At least one.
    pub series: Vec<Series>,
}

/// A curve with a band around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// As in the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

impl Series {
    /// To five decimals: what a result keeps of it.
    #[must_use]
    pub fn rounded(self) -> Self {
        let round = |value: f64| (value * 1e5).round() / 1e5;
        let point =
            |point: Point| Point { mean: round(point.mean), low: round(point.low), high: round(point.high), ..point };
        Self { points: self.points.into_iter().map(point).collect(), ..self }
    }

    /// Its values as lists, one entry a round.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let list = |value: fn(&Point) -> f64| self.points.iter().map(value).collect::<Vec<f64>>();
        json!({"mean": list(|point| point.mean), "low": list(|point| point.low), "high": list(|point| point.high)})
    }

    /// The inverse of [`Self::to_json`], of a curve of this name.
    #[must_use]
    pub fn of_json(name: &str, lists: &Value) -> Option<Self> {
        let list = |name: &str| lists[name].as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
        let (means, lows, highs) = (list("mean")?, list("low")?, list("high")?);
        if lows.len() != means.len() || highs.len() != means.len() {
            return None;
        }
        let point =
            |round: usize| Point { x: (round + 1) as f64, mean: means[round], low: lows[round], high: highs[round] };
        Some(Self { name: name.into(), points: (0..means.len()).map(point).collect() })
    }
}

/// A point of a curve: the mean over replicas, and the band in which four of five of them lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// The mean over replicas.
    pub mean: f64,
    /// The 10th percentile of the replicas.
    pub low: f64,
    /// The 90th percentile of the replicas.
    pub high: f64,
}

/// Makes everything of a run's replicas, which come in order of arm, then number; unfinished ones are welcome.
#[must_use]
pub fn finale(config: &Config, replicas: &[Replica]) -> Finale {
    let arms: Vec<(usize, Vec<&Replica>)> = (0..config.arms.len())
        .map(|arm| (arm, replicas.iter().filter(|replica| replica.arm() == config.arms[arm].name).collect()))
        .collect();
    let mut finale = match config.kind {
        Kind::Dispatch => dispatch::finale(config, &arms),
        Kind::Invincible => invincible::finale::finale(config, &arms),
        Kind::Td3d => td3d::finale::finale(config, &arms),
        Kind::Nndtf => nndtf::finale::finale(config, &arms),
        Kind::Rules => rules::finale::finale(config, &arms),
        Kind::Ternary => ternary::finale::finale(config, &arms),
    };
    finale.add_failures();
    finale
}

/// Makes everything again from the content of a `result.json`, if it has all that it takes.
///
/// # Errors
/// If it has not, or is no result, as a sentence.
pub fn of_result(result: &Value) -> Result<Finale, String> {
    let config = config_of(result)?;
    let arms = result["arms"].as_array().map_or(&[][..], Vec::as_slice);
    let mut finale = match config.kind {
        Kind::Td3d => td3d::finale::of_result(&config, arms)?,
        Kind::Nndtf => nndtf::finale::of_result(&config, arms)?,
        Kind::Rules => rules::finale::of_result(&config, arms)?,
        Kind::Ternary => ternary::finale::of_result(&config, arms)?,
        Kind::Invincible => invincible::finale::of_result(&config, arms)?,
        Kind::Dispatch => {
            return Err("a run of \"dispatch\" only measures a cluster: its result says nothing more".into());
        }
    };
    finale.add_failures();
    Ok(finale)
}

/// The configuration whose result this is.
fn config_of(result: &Value) -> Result<Config, String> {
    let no_result =
        || "it is not the result of a run: it has no experiment, seed, replicas and arms with settings".to_owned();
    let top = |name: &str| result.get(name).ok_or_else(no_result);
    let mut text =
        format!("experiment = {}\nseed = {}\nreplicas = {}\n", top("experiment")?, top("seed")?, top("replicas")?);
    for arm in top("arms")?.as_array().ok_or_else(no_result)? {
        let (name, settings) = (arm["name"].as_str(), arm["settings"].as_object());
        let (name, settings) = name.zip(settings).ok_or_else(no_result)?;
        text += &format!("[arms.{name:?}]\n");
        settings.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
    }
    Config::parse("the result", &text, &[]).map_err(|problems| format!("its settings are not known here: {problems}"))
}

/// The name of a replica's champion's card in a run's directory `champions`, without its ending. Arms whose names differ
/// only in what no file name should hold still get different files.
#[must_use]
pub fn champion_stem(config: &Config, arm: usize, replica: u32) -> String {
    format!("{}-{replica}", file_name(config, arm))
}

/// An arm's name as part of a file's: letters, digits, points and dashes. If an earlier arm has that already, or nothing is
/// left, the arm's index follows an underscore, which no other name has.
#[must_use]
pub fn file_name(config: &Config, arm: usize) -> String {
    let plain = |name: &str| {
        let words: Vec<&str> =
            name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').filter(|w| !w.is_empty()).collect();
        words.join("-").trim_matches('.').to_owned()
    };
    let name = plain(&config.arms[arm].name);
    let taken = config.arms[..arm].iter().any(|other| plain(&other.name).eq_ignore_ascii_case(&name));
    if taken || name.is_empty() { format!("{name}_{arm}") } else { name }
}

/// What every replica says of itself in `result.json`.
#[must_use]
pub fn replica_json(config: &Config, arm: usize, replica: &Replica) -> Value {
    let mut json = json!({
        "replica": replica.index(),
        "rows": replica.history().len(),
        "finished": replica.plan().is_empty(),
        "digest": replica.digest().to_string(),
    });
    if let Some(why) = replica.failure() {
        json["failure"] = why.into();
    }
    if replica.champion().is_some() {
        json["champion"] = format!("champions/{}.json", champion_stem(config, arm, replica.index())).into();
    }
    json
}

/// An arm's settings in `result.json`, each as in a file.
#[must_use]
pub fn settings_json(config: &Config, arm: usize) -> Value {
    let settings = config.arms[arm].settings.iter();
    settings.map(|(field, value)| (field.name.to_owned(), Value::from(written(value).trim_matches('"')))).collect()
}

/// A number as people write it: "1,000,000".
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

/// A probability to four decimals.
#[must_use]
pub fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}

/// A column of the history as a curve over rounds: the mean over the replicas that got so far, and their band.
#[must_use]
pub fn curve(name: &str, replicas: &[&Replica], column: usize) -> Series {
    let rounds = replicas.iter().map(|replica| replica.history().len()).max().unwrap_or(0);
    let point = |round: usize| {
        let values: Vec<f64> =
            replicas.iter().filter_map(|replica| replica.history().get(round)).map(|row| row[column]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Point { x: (round + 1) as f64, mean, low: quantile(&values, 0.1), high: quantile(&values, 0.9) }
    };
    Series { name: name.into(), points: (0..rounds).map(point).collect() }
}

impl std::fmt::Display for Table {
    /// Columns side by side, two spaces apart; the first to the left, the others to the right.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let whole = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        writeln!(f, "{}\n{}\n{}", self.title, line(&self.header), "-".repeat(whole))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{}", line(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local;
    use std::collections::BTreeSet;

    #[test]
    fn every_arm_has_files_of_its_own() {
        let names = ["O, 1", "O 1", "o/1", "O-1_1", "O-1-1", "..", "*", "../../x"];
        let arms: String = names.iter().map(|name| format!("[arms.\"{name}\"]\n")).collect();
        let config = Config::parse("t", &format!("experiment = \"dispatch\"\n{arms}"), &[]).unwrap();
        let files: Vec<String> = (0..names.len()).map(|arm| champion_stem(&config, arm, 7)).collect();
        insta::assert_snapshot!(files.join("\n"));
        assert_eq!(files.iter().map(|file| file.to_lowercase()).collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn dispatch_says_what_was_computed() {
        let text = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 5\n[arms.a]\n[arms.b]\ntasks = 7\n";
        let config = Config::parse("t", text, &[]).unwrap();
        let finale = finale(&config, &local::run(&config).unwrap());
        insta::assert_snapshot!(finale.tables[0]);
        assert!(finale.figures.is_empty());
    }
}
