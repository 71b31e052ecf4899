//! What `td3d` says at the end: how each arm did at its peak and at its end.

use serde_json::{Value, json};

use crate::{
    config::Config,
    finale::{Figure, Finale, Table, curve, replica_json, settings_json},
    math::mean,
    replica::Replica,
};

/// Peak and end of a trial, in percent: the best test, and the mean of the last two fifths of the tests.
fn peak_and_end(replica: &Replica) -> Option<(f64, f64)> {
    let percents: Vec<f64> = replica.history().iter().map(|row| row[1]).collect();
    let peak = percents.iter().copied().reduce(f64::max)?;
    Some((peak, mean(&percents[percents.len() - (percents.len() * 2).div_ceil(5)..])?))
}

/// Makes everything of a run's replicas.
#[must_use]
pub fn finale(config: &Config, arms: &[(usize, Vec<&Replica>)]) -> Finale {
    let row = |(index, replicas): &(usize, Vec<&Replica>)| {
        let (peaks, ends): (Vec<f64>, Vec<f64>) = replicas.iter().filter_map(|replica| peak_and_end(replica)).unzip();
        let shown = |values: &[f64]| mean(values).map_or("-".into(), |mean| format!("{mean:.1}"));
        vec![config.arms[*index].name.clone(), peaks.len().to_string(), shown(&peaks), shown(&ends)]
    };
    let arm_json = |(index, replicas): &(usize, Vec<&Replica>)| {
        let replicas: Vec<Value> = replicas.iter().map(|replica| replica_json(config, *index, replica)).collect();
        json!({"name": config.arms[*index].name, "settings": settings_json(config, *index), "replicas": replicas})
    };
    let curves = arms.iter().map(|(index, replicas)| curve(&config.arms[*index].name, replicas, 1)).collect();
    Finale {
        tables: vec![Table {
            title: "Percent of the games against the benchmark player".into(),
            header: ["arm", "trials", "peak", "end"].map(String::from).to_vec(),
            rows: arms.iter().map(row).collect(),
        }],
        notes: Vec::new(),
        json: json!({"arms": arms.iter().map(arm_json).collect::<Vec<_>>(), "summary": {}}),
        figures: vec![Figure {
            name: "td3d".into(),
            title: "Against the benchmark player".into(),
            x_label: "test".into(),
            y_label: "percent".into(),
            y_range: Some((0.0, 100.0)),
            series: curves,
        }],
    }
}
