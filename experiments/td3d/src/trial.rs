//! A trial: its tests in a run, and the figures of these tests. `result.json` keeps the figures, and the report is computed
//! from them.

use serde::{Deserialize, Serialize};

use super::{facts::Measure, headline::tail};
use evoxo_common::{
    experiment::{Figures, ReplicaTold},
    stats::median_interval,
};

/// The result of a test against the benchmark player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// Training games before the test.
    pub(super) games: u64,
    /// Games that the network won.
    pub(super) wins: u32,
    /// Games drawn.
    pub(super) draws: u32,
    /// Games that the network lost.
    pub(super) losses: u32,
}

impl Test {
    /// Games won in percent, where draws count half.
    pub(super) fn percent(&self) -> f64 {
        let games = f64::from(self.wins) + f64::from(self.draws) + f64::from(self.losses);
        100.0 * (f64::from(self.wins) + f64::from(self.draws) / 2.0) / games
    }
}

/// The percentages for which a report shows how many games it takes to reach them.
pub(super) const LEVELS: [u32; 5] = [50, 80, 90, 95, 98];

/// One replica. It has figures if it finished without a failure.
pub(super) type Trial = ReplicaTold<Reached>;

/// The strength of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Reached {
    /// The trial's best test, in percent.
    peak: f64,
    /// The mean of the last two fifths of the trial's tests (rounded up), in percent.
    pub(super) end: f64,
    /// For each of the [`LEVELS`]: the training games before the first test with at least that percentage.
    #[serde(rename = "games_to_percent", with = "levels")]
    pub(super) games_to: [Option<u64>; LEVELS.len()],
}

impl Reached {
    /// The strength in these tests; `None` without tests.
    pub(super) fn of(tests: &[Test]) -> Option<Self> {
        let last = tail(tests.len());
        let sum = tests[tests.len() - last..].iter().map(Test::percent).sum::<f64>();
        let games_to = |level: u32| tests.iter().find(|test| test.percent() >= f64::from(level)).map(|test| test.games);
        (!tests.is_empty()).then(|| Self {
            peak: tests.iter().map(Test::percent).fold(0.0, f64::max),
            end: sum / last as f64,
            games_to: LEVELS.map(games_to),
        })
    }

    /// The value of a measure, in percent.
    pub(super) fn measure(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Peak => self.peak,
            Measure::End => self.end,
        }
    }
}

impl Figures for Reached {
    fn are_of<F>(trial: &ReplicaTold<F>) -> bool {
        trial.finished && trial.failure.is_none() && trial.rows > 0
    }
}

/// Serializes games as a map from level to games.
mod levels {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    use super::LEVELS;

    type Games = [Option<u64>; LEVELS.len()];

    pub(super) fn serialize<S: Serializer>(games: &Games, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(LEVELS.iter().map(u32::to_string).zip(games))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Games, D::Error> {
        let named = BTreeMap::<String, Option<u64>>::deserialize(deserializer)?;
        let mut games = [None; LEVELS.len()];
        for (level, entry) in LEVELS.iter().zip(&mut games) {
            let lacks = || D::Error::custom(format!("there are no games to {level} percent"));
            *entry = *named.get(&level.to_string()).ok_or_else(lacks)?;
        }
        Ok(games)
    }
}

/// The median over trials of the games until a percentage is reached; `None` if half of the trials did not reach it.
pub(super) fn median_games(games: &[Option<u64>]) -> Option<f64> {
    let sorted = ascending(games);
    let [low, high] = [sorted.len().checked_sub(1)? / 2, sorted.len() / 2].map(|place| sorted[place]);
    low.zip(high).map(|(low, high)| (low as f64 + high as f64) / 2.0)
}

/// The 95 % interval of that median. An end is `None` if it is a trial that never reached the percentage. The result is
/// `None` if there are too few trials.
pub(super) fn median_games_interval(games: &[Option<u64>]) -> Option<[Option<u64>; 2]> {
    let place = median_interval(games.len())?;
    let sorted = ascending(games);
    Some([sorted[place], sorted[sorted.len() - 1 - place]])
}

/// Trials that never reached the percentage come last.
fn ascending(games: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut sorted = games.to_vec();
    sorted.sort_by_key(|games| games.unwrap_or(u64::MAX));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Tests of ten games each, with these numbers of wins and no draws.
    fn tests(wins: &[u32]) -> Vec<Test> {
        let test = |(index, wins): (u64, &u32)| Test { games: 100 * index, wins: *wins, draws: 0, losses: 10 - wins };
        (1..).zip(wins).map(test).collect()
    }

    fn reached(wins: &[u32]) -> Reached {
        Reached::of(&tests(wins)).unwrap()
    }

    #[test]
    fn draws_count_half() {
        assert_eq!(Test { games: 1, wins: 5, draws: 2, losses: 3 }.percent(), 60.0);
    }

    #[test]
    fn the_end_is_the_last_two_fifths() {
        let measure = |wins: &[u32], measure| reached(wins).measure(measure);
        let five = [1, 9, 2, 4, 6];
        assert_eq!((measure(&five, Measure::Peak), measure(&five, Measure::End)), (90.0, 50.0));
        assert_eq!(measure(&[[0; 60], [7; 60]].concat()[..100], Measure::End), 70.0);
        assert_eq!(measure(&[&[9; 60], &[2; 40][..]].concat(), Measure::End), 20.0);
        assert_eq!(measure(&[3], Measure::End), 30.0);
        assert_eq!(measure(&[3, 6], Measure::End), 60.0);
        assert_eq!(Reached::of(&[]), None);
    }

    #[test]
    fn games_to_reach_a_percentage_are_counted() {
        let games_to = |wins: &[u32]| reached(wins).games_to;
        assert_eq!(games_to(&[1, 5, 4, 8, 10]), [Some(200), Some(400), Some(500), Some(500), Some(500)]);
        assert_eq!(games_to(&[1, 8, 4]), [Some(200), Some(200), None, None, None]);
        assert_eq!(median_games(&[Some(5), None, Some(1)]), Some(5.0));
        assert_eq!(median_games(&[Some(5), Some(2), Some(1), None]), Some(3.5));
        assert_eq!(median_games(&[Some(5), None]), None);
        assert_eq!(median_games(&[]), None);
        let ten: Vec<Option<u64>> = (1..=10).rev().map(|games| (games < 9).then_some(games)).collect();
        assert_eq!(median_games_interval(&ten), Some([Some(2), None]));
        assert_eq!(median_games_interval(&ten[..5]), None);
    }

    #[test]
    fn json_is_read_back() {
        let trial = |failure: Option<&str>| Trial {
            replica: 3,
            rows: 4,
            finished: true,
            digest: None,
            failure: failure.map(String::from),
            champion: None,
            figures: failure.is_none().then(|| reached(&[1, 5, 4, 6])),
        };
        let read = |json: &Value| serde_json::from_value::<Trial>(json.clone()).map_err(|why| why.to_string());
        let json = json!(trial(None));
        assert_eq!((&json["peak"], &json["end"]), (&60.0.into(), &50.0.into()));
        assert_eq!(json["games_to_percent"], json!({"50": 200, "80": null, "90": null, "95": null, "98": null}));
        assert_eq!(read(&json), Ok(trial(None)));
        for (key, wrong) in [("end", json!("x")), ("games_to_percent", json!({"50": 200})), ("peak", json!(null))] {
            let mut json = json.clone();
            json[key] = wrong;
            assert!(read(&json).is_err(), "{key}");
        }
        assert_eq!(read(&json!(trial(Some("x")))), Ok(trial(Some("x"))));
        let mut failed = json.clone();
        failed["failure"] = "x".into();
        assert_eq!(read(&failed), Ok(trial(Some("x"))), "the figures of a failed trial do not count");
    }
}
