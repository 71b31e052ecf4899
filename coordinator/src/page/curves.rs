//! Histories in memory, and the JSON made from them: rows, and curves over the replicas of each arm, as the plots show them.
//!
//! Pure: rows come in, JSON goes out.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use evoxo_common::{
    experiment::{Config, point},
    report::Point,
    stats::quantile,
};
use evoxo_proto::{shown::significant, v1::ReplicaState};
use serde_json::{Value, json};

use crate::{pack::PackPlace, replicas::ReplicaKey};

/// The most bytes of a run's histories. Replicas beyond that are left out.
const BYTES_MAX: usize = 24 << 20;
/// The most rows of an answer, and the most points of a curve.
pub(super) const ROWS_MAX: usize = 1000;
/// The most points of an answer, all arms together, except that each arm gets at least two.
const POINTS_MAX: usize = 50_000;
/// The most replicas of an answer.
const REPLICAS_MAX: usize = 500;
/// The most bytes of answers with curves that are kept for a run.
const SENT_BYTES_MAX: usize = 8 << 20;

/// The most rows of an answer with curves of all arms.
fn rows_max(config: &Config) -> usize {
    (POINTS_MAX / config.arms.len().max(1)).clamp(2, ROWS_MAX)
}

/// What the points of a curve are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Middle {
    /// The mean over replicas, with the 10th and the 90th percentile.
    #[default]
    Mean,
    /// The median with the quartiles: what a logarithmic axis shows, where a single replica would decide the mean.
    Median,
}

impl Middle {
    fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }

    fn point(self, x: f64, values: &[f64]) -> Point {
        match self {
            Self::Mean => point(x, values),
            Self::Median => {
                let [low, mean, high] = [0.25, 0.5, 0.75].map(|share| quantile(values, share));
                Point { x, mean, low, high }
            }
        }
    }
}

/// JSON as it is sent. The buffer has no spare capacity.
fn bytes_of(json: &Value) -> Bytes {
    json.to_string().into_boxed_str().into_boxed_bytes().into()
}

/// A replica's rows.
#[derive(Debug, Default)]
struct Rows {
    values: Vec<f64>,
    columns: usize,
    /// The place of the replica in the store, if it is finished.
    finished: Option<PackPlace>,
    /// Whether the last row remains valid for later rows: the replica has reached its target or its last round.
    stays: bool,
}

impl Rows {
    fn len(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// The row at this index, or the last row if that remains valid.
    fn at(&self, row: usize) -> Option<&[f64]> {
        let last = self.len().checked_sub(1)?;
        self.get(if self.stays { row.min(last) } else { row })
    }

    fn get(&self, row: usize) -> Option<&[f64]> {
        self.values.get(row * self.columns..(row + 1) * self.columns).filter(|values| !values.is_empty())
    }
}

/// The histories of a run's replicas.
#[derive(Debug, Default)]
pub(super) struct Histories {
    replicas: BTreeMap<ReplicaKey, Rows>,
    bytes: usize,
    left_out: BTreeSet<ReplicaKey>,
    /// How many changes there have been.
    version: u64,
    /// Answers with curves as they were sent, by column, middle and number of points.
    sent: BTreeMap<(usize, Middle, usize), Bytes>,
}

impl Histories {
    /// Sets a replica's rows, unless they need too much memory.
    pub(super) fn put(&mut self, key: ReplicaKey, state: &ReplicaState, columns: usize, finished: Option<PackPlace>) {
        let history = state.history.iter();
        let values: Vec<f64> =
            history.filter(|row| row.values.len() == columns).flat_map(|row| &row.values).copied().collect();
        let size = |values: &Vec<f64>| 8 * values.len();
        let before = self.replicas.get(&key).map_or(0, |rows| size(&rows.values));
        let bytes = self.bytes - before + size(&values);
        (self.version, self.sent) = (self.version + 1, BTreeMap::new());
        if bytes > BYTES_MAX {
            self.left_out.insert(key);
            if finished.is_some() {
                self.replicas.entry(key).or_default().finished = finished;
            }
            return;
        }
        let stays = finished.is_some() && state.failure.is_empty();
        self.bytes = bytes;
        self.replicas.insert(key, Rows { values, columns, finished, stays });
    }

    /// Whether all rows of a replica are here, or are left out for good.
    pub(super) fn is_finished(&self, key: ReplicaKey) -> bool {
        self.replicas.get(&key).is_some_and(|rows| rows.finished.is_some())
    }

    /// Forgets the finished replicas that are not at these places: they were void and are being computed again.
    pub(super) fn forget_others(&mut self, places: &[(ReplicaKey, PackPlace)]) {
        let places: BTreeMap<ReplicaKey, &PackPlace> = places.iter().map(|(key, place)| (*key, place)).collect();
        let is_other = |(key, rows): (&ReplicaKey, &Rows)| {
            let other = rows.finished.as_ref().is_some_and(|place| places.get(key) != Some(&place));
            other.then_some(*key)
        };
        for key in self.replicas.iter().filter_map(is_other).collect::<Vec<_>>() {
            self.bytes -= self.replicas.remove(&key).map_or(0, |rows| 8 * rows.values.len());
            self.left_out.remove(&key);
            (self.version, self.sent) = (self.version + 1, BTreeMap::new());
        }
    }

    /// A text that changes with the histories.
    pub(super) fn tag(&self) -> String {
        format!("{}-{}", self.version, self.bytes)
    }

    /// The rows of an arm's replicas.
    fn of_arm(&self, arm: usize) -> Vec<&Rows> {
        let key = |index| ReplicaKey { arm: arm as u32, index };
        self.replicas.range(key(0)..=key(u32::MAX)).map(|(_, rows)| rows).collect()
    }

    fn most_rows(&self) -> usize {
        self.replicas.values().map(Rows::len).max().unwrap_or(0)
    }

    /// Curves of a column with at most this many points each: every row, or rows at even distances including the last one.
    pub(super) fn curves(&mut self, config: &Config, (column, middle): (usize, Middle), points: usize) -> Bytes {
        // Asking for more points than there are rows gives the same answer.
        let points = points.min(self.most_rows()).clamp(2, rows_max(config));
        if let Some(sent) = self.sent.get(&(column, middle, points)) {
            return sent.clone();
        }
        let rows = |arm: usize| {
            let rows = self.of_arm(arm).iter().map(|rows| rows.len()).max().unwrap_or(0);
            let count = rows.min(points);
            // Evenly spaced rows, including the first and the last.
            (0..count).map(|at| if count < 2 { 0 } else { at * (rows - 1) / (count - 1) }).collect()
        };
        let bytes = bytes_of(&self.json(config, (column, middle), rows));
        if self.sent.values().map(Bytes::len).sum::<usize>() + bytes.len() > SENT_BYTES_MAX {
            self.sent.clear();
        }
        self.sent.insert((column, middle, points), bytes.clone());
        bytes
    }

    /// Curves of a column at these rows of each arm.
    fn json(&self, config: &Config, (column, middle): (usize, Middle), rows: impl Fn(usize) -> Vec<usize>) -> Value {
        let arm = |arm: usize| {
            let of_arm = self.of_arm(arm);
            let at = rows(arm);
            let points: Vec<(Point, usize)> = at
                .iter()
                .filter_map(|&row| {
                    let values: Vec<f64> = of_arm.iter().filter_map(|rows| Some(rows.at(row)?[column])).collect();
                    // The horizontal position is the mean over the replicas that have such a row.
                    let places: Vec<f64> = of_arm.iter().filter_map(|rows| Some(rows.get(row)?[0])).collect();
                    let x = places.iter().sum::<f64>() / places.len() as f64;
                    (!places.is_empty()).then(|| (middle.point(x, &values), values.len()))
                })
                .collect();
            let list = |value: fn(&Point) -> f64| -> Value {
                points.iter().map(|(point, _)| Value::from(significant(value(point)))).collect()
            };
            json!({
                "name": config.arms[arm].name,
                "replicas": of_arm.len(),
                "row": at,
                "x": list(|point| point.x),
                middle.name(): list(|point| point.mean),
                "low": list(|point| point.low),
                "high": list(|point| point.high),
                "count": points.iter().map(|(_, count)| *count).collect::<Vec<usize>>(),
            })
        };
        json!({
            "version": self.version,
            "column": column,
            "rows": self.most_rows(),
            "left_out": self.left_out.len(),
            "arms": (0..config.arms.len()).map(arm).collect::<Vec<Value>>(),
        })
    }
}

/// Curves of a column at each row from `from_row` on, at most [`rows_max`] rows; and the row at which to continue.
pub(super) fn rows(
    histories: &Histories,
    config: &Config,
    (column, middle): (usize, Middle),
    from_row: usize,
) -> Bytes {
    let end = from_row.saturating_add(rows_max(config)).min(histories.most_rows());
    let of_arm = |arm: usize| {
        let rows = histories.of_arm(arm).iter().map(|rows| rows.len()).max().unwrap_or(0);
        (from_row..end.min(rows)).collect()
    };
    let mut json = histories.json(config, (column, middle), of_arm);
    json["from_row"] = from_row.into();
    json["next_row"] = (end < histories.most_rows()).then_some(end).into();
    bytes_of(&json)
}

/// The newest rows of replicas, at most [`REPLICAS_MAX`] from index `from` on; and the index at which to continue.
pub(super) fn replicas(histories: &Histories, from: usize) -> Bytes {
    let one = |(key, rows): (&ReplicaKey, &Rows)| {
        let last = rows.len().checked_sub(1).and_then(|row| rows.get(row)).unwrap_or_default();
        json!({
            "arm": key.arm, "replica": key.index, "rows": rows.len(), "finished": rows.finished.is_some(),
            "last": last.iter().copied().map(significant).collect::<Vec<f64>>(),
        })
    };
    let list: Vec<Value> = histories.replicas.iter().skip(from).take(REPLICAS_MAX).map(one).collect();
    let next = from.saturating_add(list.len());
    let next = (next < histories.replicas.len()).then_some(next);
    bytes_of(&json!({"version": histories.version, "from": from, "next": next, "replicas": list}))
}

/// The exact rows of one replica, at most [`ROWS_MAX`] from `from_row` on; and the row at which to continue.
pub(super) fn replica(
    histories: &Histories,
    config: &Config,
    replica: ReplicaKey,
    from_row: usize,
) -> Result<Bytes, String> {
    let rows =
        histories.replicas.get(&replica).ok_or("this replica has not started, or nothing of it is stored yet")?;
    let end = from_row.saturating_add(ROWS_MAX).min(rows.len());
    let json = json!({
        "arm": config.arms.get(replica.arm as usize).map(|arm| &arm.name),
        "replica": replica.index,
        "finished": rows.finished.is_some(),
        "columns": config.kind.columns.iter().map(|column| column.name).collect::<Vec<&str>>(),
        "from_row": from_row,
        "next_row": (end < rows.len()).then_some(end),
        "rows": (from_row..end).filter_map(|row| rows.get(row)).collect::<Vec<&[f64]>>(),
    });
    Ok(bytes_of(&json))
}

#[cfg(test)]
mod tests {
    use evoxo_proto::v1::HistoryRow;

    use super::*;

    fn state(index: u32, values: &[f64]) -> ReplicaState {
        let history = values.iter().map(|value| HistoryRow { values: vec![*value] }).collect();
        ReplicaState { arm: "one".into(), replica: index, history, ..ReplicaState::default() }
    }

    fn config() -> Config {
        let text = "experiment = \"dispatch\"\n[arms.one]\n";
        Config::parse(&evoxo_experiments::registry(), "test", text, &[]).unwrap()
    }

    fn json(bytes: &Bytes) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    fn place(object: &str) -> PackPlace {
        PackPlace { object: object.into(), offset: 0, bytes: 1, mark: 7 }
    }

    const MEANS: (usize, Middle) = (0, Middle::Mean);
    const FIRST: ReplicaKey = ReplicaKey { arm: 0, index: 0 };
    const SECOND: ReplicaKey = ReplicaKey { arm: 0, index: 1 };

    #[test]
    fn a_curve_is_the_mean_over_replicas_extended_by_last_rows() {
        let (config, mut histories) = (config(), Histories::default());
        histories.put(FIRST, &state(0, &[1.0, 3.0]), 1, Some(place("a")));
        histories.put(SECOND, &state(1, &[2.0, 4.0, 6.0]), 1, None);
        let curves = json(&histories.curves(&config, MEANS, 100));
        assert_eq!(curves["arms"][0]["mean"], json!([1.5, 3.5, 4.5]));
        assert_eq!(curves["arms"][0]["count"], json!([2, 2, 2]));
        assert_eq!(curves["arms"][0]["low"][0], json!(1.1));
        // The last row of a failed replica does not remain valid, nor does that of an unfinished one.
        let failed = ReplicaState { failure: "ended: badly".into(), ..state(0, &[1.0, 3.0]) };
        histories.put(FIRST, &failed, 1, Some(place("a")));
        assert_eq!(json(&histories.curves(&config, MEANS, 100))["arms"][0]["mean"], json!([1.5, 3.5, 6.0]));
    }

    /// One replica in five that stalls at 1000 is most of the mean, but the median does not see it.
    #[test]
    fn a_median_is_not_moved_by_one_replica() {
        let (config, mut histories) = (config(), Histories::default());
        for (index, value) in [1.0, 2.0, 3.0, 4.0, 1000.0].into_iter().enumerate() {
            let key = ReplicaKey { arm: 0, index: index as u32 };
            histories.put(key, &state(key.index, &[value]), 1, None);
        }
        let arm = json(&histories.curves(&config, (0, Middle::Median), 100))["arms"][0].clone();
        assert_eq!((&arm["median"], &arm["low"], &arm["high"]), (&json!([3.0]), &json!([2.0]), &json!([4.0])));
        assert!(arm.get("mean").is_none());
        let means = json(&histories.curves(&config, MEANS, 100));
        assert_eq!(means["arms"][0]["mean"], json!([202.0]));
    }

    #[test]
    fn long_curves_are_thinned_and_keep_their_ends() {
        let (config, mut histories) = (config(), Histories::default());
        let values: Vec<f64> = (0..2500).map(f64::from).collect();
        histories.put(FIRST, &state(0, &values), 1, None);
        let rows = json(&histories.curves(&config, MEANS, 4))["arms"][0]["row"].clone();
        assert_eq!(rows, json!([0, 833, 1666, 2499]));
        // All rows, in pages.
        let page = |from| json(&rows_from(&histories, &config, from));
        assert_eq!((page(0)["next_row"].clone(), page(2000)["next_row"].clone()), (json!(1000), Value::Null));
        assert_eq!(page(2000)["arms"][0]["mean"].as_array().unwrap().len(), 500);
        assert_eq!(page(usize::MAX)["arms"][0]["mean"], json!([]));
        let one = |from| json(&replica(&histories, &config, FIRST, from).unwrap());
        assert_eq!((one(2499)["rows"].clone(), one(usize::MAX)["rows"].clone()), (json!([[2499.0]]), json!([])));
        assert!(replica(&histories, &config, SECOND, 0).is_err());
    }

    fn rows_from(histories: &Histories, config: &Config, from: usize) -> Bytes {
        rows(histories, config, MEANS, from)
    }

    /// A finished replica was void: nothing is shown of it until it is finished again, in another object.
    #[test]
    fn a_finished_replica_is_read_from_its_object() {
        let mut histories = Histories::default();
        for (key, index) in [(FIRST, 0), (SECOND, 1)] {
            histories.put(key, &state(index, &[1.0, 3.0]), 1, Some(place("a")));
        }
        let tag = histories.tag();
        histories.forget_others(&[(FIRST, place("a")), (SECOND, place("a"))]);
        assert_eq!((histories.is_finished(SECOND), histories.tag()), (true, tag.clone()));
        histories.forget_others(&[(FIRST, place("a")), (SECOND, place("b"))]);
        assert_eq!((histories.is_finished(FIRST), histories.is_finished(SECOND)), (true, false));
        assert_ne!(histories.tag(), tag);
        histories.forget_others(&[]);
        assert!(histories.replicas.is_empty() && histories.bytes == 0);
    }

    #[test]
    fn excess_rows_are_omitted_and_counted() {
        let (config, mut histories) = (config(), Histories::default());
        let long = state(0, &vec![1.0; BYTES_MAX / 8 - 10]);
        histories.put(FIRST, &long, 1, Some(place("a")));
        histories.put(SECOND, &state(1, &[1.0; 20]), 1, Some(place("a")));
        assert!(histories.is_finished(SECOND) && histories.bytes <= BYTES_MAX);
        let curves = json(&histories.curves(&config, MEANS, 2));
        assert_eq!((curves["left_out"].clone(), curves["arms"][0]["count"].clone()), (json!(1), json!([1, 1])));
    }

    #[test]
    fn answers_have_few_points_and_cached_ones_few_bytes() {
        let config = config();
        let mut histories = Histories::default();
        histories.put(FIRST, &state(0, &[1.0; 2500]), 1, None);
        // This would be 11 MB if all were kept.
        (2..1000).for_each(|points| drop(histories.curves(&config, MEANS, points)));
        let kept: usize = histories.sent.values().map(Bytes::len).sum();
        assert!((SENT_BYTES_MAX / 8..=SENT_BYTES_MAX).contains(&kept), "{kept} bytes");
        // Asking for more points than there are rows gives one answer.
        histories.put(FIRST, &state(0, &[1.0; 3]), 1, None);
        (3..1000).for_each(|points| drop(histories.curves(&config, MEANS, points)));
        assert_eq!(histories.sent.len(), 1);

        let mut config = config;
        config.arms = vec![config.arms[0].clone(); 250];
        for arm in 0..250 {
            histories.put(ReplicaKey { arm, index: 0 }, &state(0, &[1.0; 500]), 1, None);
        }
        let points = |answer: &Value| -> usize {
            let arms = answer["arms"].as_array().unwrap();
            arms.iter().map(|arm| arm["mean"].as_array().unwrap().len()).sum()
        };
        assert_eq!(points(&json(&histories.curves(&config, MEANS, ROWS_MAX))), POINTS_MAX);
        let page = |from| json(&rows(&histories, &config, MEANS, from));
        assert_eq!((points(&page(0)), page(0)["next_row"].clone()), (POINTS_MAX, json!(200)));
        assert_eq!((points(&page(400)), page(400)["next_row"].clone()), (POINTS_MAX / 2, Value::Null));
    }
}
