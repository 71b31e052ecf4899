//! A report for kinds that need no other: what each arm has reached in its primary metric, as a table and as a curve.

use serde_json::{Map, Value, json};

use super::{Config, Replica, arm_json, curve};
use crate::{
    headline::{Answer, Entry, Headline, Question},
    report::{Drawn, Figure, Report, Series, Table},
    stats::estimate,
};

/// What is read of an arm.
struct Told<'a> {
    name: &'a str,
    /// The primary metric at the end, of each replica that has come so far.
    ends: Vec<f64>,
    curve: Series,
}

/// [`arm_json`] with the primary metric: its curve, and where it ends in each replica that has a row.
#[must_use]
pub fn standard_arm_json(config: &Config, arm: usize, replicas: &[&Replica]) -> Value {
    let column = config.kind.primary_metric;
    let ends = replicas.iter().filter_map(|replica| config.kind.figure(column, replica.history()));
    let mut json = arm_json(config, arm, replicas);
    json["ends"] = ends.collect();
    json["curve"] = curve("", replicas, column).rounded().to_json();
    json
}

/// The primary metric of each arm at the end, as a mean over its replicas with its 95 % interval, and its curve. A replica
/// that has not come to an end counts with its last row.
///
/// # Errors
/// A sentence if something is missing in the arms of the result.
pub fn standard_report(config: &Config, arms: &[Value]) -> Result<Report, String> {
    let columns = config.kind.columns;
    let metric = &columns[config.kind.primary_metric];
    let read = |(index, json): (usize, &Value)| read(&config.arms[index].name, json);
    let told = arms.iter().enumerate().map(read).collect::<Result<Vec<Told<'_>>, String>>()?;
    let row = |arm: &Told<'_>| {
        let mean = estimate(&arm.ends).map_or_else(|| "-".into(), |estimate| estimate.text(estimate.decimals()));
        vec![arm.name.to_owned(), arm.ends.len().to_string(), mean]
    };
    let table = Table {
        title: format!("{}, {}: mean over replicas ± 95 % interval", metric.name, metric.doc),
        header: ["arm", "replicas", metric.name].map(String::from).to_vec(),
        rows: told.iter().map(row).collect(),
    };
    let summary = told.iter().map(|arm| {
        let json = estimate(&arm.ends).map(|estimate| {
            let [low, high] = estimate.ends();
            json!({"mean": estimate.mean, "low": low, "high": high})
        });
        (arm.name.to_owned(), json.into())
    });
    let summary: Map<String, Value> = summary.collect();
    let series: Vec<Series> = told.into_iter().map(|arm| arm.curve).filter(|curve| !curve.points.is_empty()).collect();
    let figure = Figure {
        name: metric.name.into(),
        title: format!("{}, {}", metric.name, metric.doc),
        x_label: if config.kind.primary_metric == 0 { "row of the history" } else { columns[0].name }.into(),
        y_label: metric.name.into(),
        y_range: None,
        drawn: Drawn::Means,
        references: Vec::new(),
        series,
    };
    Ok(Report {
        tables: vec![table],
        notes: Vec::new(),
        json: json!({"arms": arms, "summary": summary}),
        figures: if figure.series.is_empty() { Vec::new() } else { vec![figure] },
        maps: Vec::new(),
    })
}

fn read<'a>(name: &'a str, json: &Value) -> Result<Told<'a>, String> {
    let lacks = |what: &str| format!("the arm {name:?} of the result has no {what}");
    let ends = json["ends"].as_array().and_then(|ends| ends.iter().map(Value::as_f64).collect());
    let ends = ends.ok_or_else(|| lacks("ends of its replicas"))?;
    let curve = Series::of_json(name, &json["curve"]).ok_or_else(|| lacks("curve"))?;
    Ok(Told { name, ends, curve })
}

/// The headline of kinds whose arms share nothing and can all be compared by the primary metric of a
/// [`standard_report`]: the order of the arms.
#[must_use]
pub fn standard_headline(config: &Config, arms: &[Value]) -> Headline {
    let column = &config.kind.columns[config.kind.primary_metric];
    let entry = |(arm, json): (usize, &Value)| {
        let ends = json["ends"].as_array().into_iter().flatten();
        let values = (0..).zip(ends).filter_map(|(number, end)| Some((number, end.as_f64()?))).collect();
        Entry { arm: config.arms[arm].name.clone(), values }
    };
    let arms: Vec<Entry> = arms.iter().enumerate().map(entry).collect();
    let question = Question {
        asks: format!("Which arm ends with the most {}?", column.name),
        figure: format!("{} ({})", column.name, column.doc),
        by: Answer::Order,
        shared: None,
        arms,
    };
    Headline { sentences: Vec::new(), questions: vec![question] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{local, stats::Estimate, testing};

    #[test]
    fn the_primary_metric_is_told_and_told_again() {
        let config = testing::config("[arms.a]\n[arms.b]\nrounds = 5\n");
        let report = config.report(&local::run(&config).unwrap());
        insta::assert_snapshot!(report.tables[0]);
        let curve = &report.figures[0].series[1];
        assert_eq!((curve.name.as_str(), curve.points.len()), ("b", 5));
        let arms = report.json["arms"].as_array().unwrap();
        assert_eq!(standard_report(&config, arms), Ok(report.clone()));
        for key in ["ends", "curve"] {
            let mut cut = arms.clone();
            cut[1].as_object_mut().unwrap().remove(key);
            assert!(standard_report(&config, &cut).unwrap_err().starts_with("the arm \"b\" of the result"));
        }
    }

    #[test]
    fn an_arm_without_rows_has_no_figures() {
        let config = testing::config("[arms.a]\n");
        let report = config.report(&local::start(&config).collect::<Vec<_>>());
        assert_eq!(report.tables[0].rows, [["a", "0", "-"]]);
        assert!(report.figures.is_empty());
        assert_eq!(report.json["summary"], json!({"a": null}));
    }

    #[test]
    fn as_many_decimals_as_the_interval_has_to_tell() {
        let decimals = |mean, half_width| Estimate { mean, half_width }.decimals();
        assert_eq!([decimals(7.0, Some(12.0)), decimals(7.0, Some(0.12)), decimals(7.0, Some(1e-9))], [0, 2, 6]);
        assert_eq!([decimals(70.0, Some(0.0)), decimals(0.5, None)], [2, 2]);
    }
}
