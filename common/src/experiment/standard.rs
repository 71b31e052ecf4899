//! The report of kinds that need nothing else: what each arm has reached in its primary metric, as a table and as a curve.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Config, Replica, ReplicaTold, Told, curve};
use crate::{
    headline::{Answer, Entry, Headline, Question},
    report::{Drawn, Figure, Report, Series, Table},
    stats::estimate,
};

/// What such kinds keep of an arm: its primary metric, as a curve and at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standard {
    replicas: Vec<ReplicaTold>,
    /// The primary metric at the end of each replica that has a row.
    ends: Vec<f64>,
    curve: Series,
}

impl Told for Standard {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let (column, replicas) = (config.kind.primary_metric, &replicas[arm]);
        Self {
            replicas: ReplicaTold::of_all(config, arm, replicas, |_| None),
            ends: replicas.iter().filter_map(|replica| config.kind.figure(column, replica.history())).collect(),
            curve: curve("", replicas, column).rounded(),
        }
    }

    /// A table of each arm's primary metric at the end, as a mean over its replicas with its 95 % interval, and a curve of
    /// it. A replica that has not ended counts with its last row.
    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        let columns = config.kind.columns;
        let metric = &columns[config.kind.primary_metric];
        let told = || config.arms.iter().map(|arm| arm.name.as_str()).zip(arms);
        let row = |(name, arm): (&str, &Self)| {
            let mean = estimate(&arm.ends).map_or_else(|| "-".into(), |estimate| estimate.text(estimate.decimals()));
            vec![name.to_owned(), arm.ends.len().to_string(), mean]
        };
        let table = Table {
            title: format!("{}, {}: mean over replicas ± 95 % interval", metric.name, metric.doc),
            header: ["arm", "replicas", metric.name].map(String::from).to_vec(),
            rows: told().map(row).collect(),
        };
        let summary = told().map(|(name, arm)| {
            let json = estimate(&arm.ends).map(|estimate| {
                let [low, high] = estimate.ends();
                json!({"mean": estimate.mean, "low": low, "high": high})
            });
            (name.to_owned(), json.into())
        });
        let figure = Figure {
            name: metric.name.into(),
            title: format!("{}, {}", metric.name, metric.doc),
            x_label: if config.kind.primary_metric == 0 { "row of the history" } else { columns[0].name }.into(),
            y_label: metric.name.into(),
            y_range: None,
            drawn: Drawn::Means,
            references: Vec::new(),
            series: told().filter_map(|(name, arm)| arm.curve.shown(name)).collect(),
        };
        Ok(Report {
            tables: vec![table],
            notes: Vec::new(),
            json: json!({"summary": summary.collect::<Map<String, Value>>()}),
            figures: if figure.series.is_empty() { Vec::new() } else { vec![figure] },
            maps: Vec::new(),
        })
    }

    /// One question about all arms: they share no random numbers, and all can be compared by the primary metric.
    fn headline(config: &Config, arms: &[Self]) -> Headline {
        let column = &config.kind.columns[config.kind.primary_metric];
        let entry = |(index, arm): (usize, &Self)| Entry {
            arm: config.arms[index].name.clone(),
            values: (0..).zip(arm.ends.iter().copied()).collect(),
        };
        let question = Question {
            asks: format!("Which arm ends with the most {}?", column.name),
            figure: format!("{} ({})", column.name, column.doc),
            by: Answer::Order,
            shared: None,
            arms: arms.iter().enumerate().map(entry).collect(),
        };
        Headline { sentences: Vec::new(), questions: vec![question] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{local, stats::Estimate, testing};

    #[test]
    fn the_report_shows_the_primary_metric_and_can_be_repeated() {
        let config = testing::config("[arms.a]\n[arms.b]\nrounds = 5\n");
        let report = config.report(&local::run(&config).unwrap());
        insta::assert_snapshot!(report.tables[0]);
        let curve = &report.figures[0].series[1];
        assert_eq!((curve.name.as_str(), curve.points.len()), ("b", 5));
        let arms = report.json["arms"].as_array().unwrap();
        assert_eq!((config.kind.report)(&config, arms), Ok(report.clone()));
        for key in ["ends", "curve"] {
            let mut cut = arms.clone();
            cut[1].as_object_mut().unwrap().remove(key);
            let why = (config.kind.report)(&config, &cut).unwrap_err();
            assert_eq!(why, format!("the arm \"b\" of the result cannot be read: missing field `{key}`"));
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
    fn decimals_follow_the_width_of_the_interval() {
        let decimals = |mean, half_width| Estimate { mean, half_width }.decimals();
        assert_eq!([decimals(7.0, Some(12.0)), decimals(7.0, Some(0.12)), decimals(7.0, Some(1e-9))], [0, 2, 6]);
        assert_eq!([decimals(70.0, Some(0.0)), decimals(0.5, None)], [2, 2]);
    }
}
