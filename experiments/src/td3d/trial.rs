//! A trial with its tests, from a run or from its `result.json`.

use serde_json::{Map, Value};

use super::facts::Measure;
use evoxo_common::stats::median_interval;

/// The result of a test against the benchmark player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// Training games before it.
    pub(super) games: u64,
    /// Games it won.
    pub(super) wins: u32,
    /// Games drawn.
    pub(super) draws: u32,
    /// Games it lost.
    pub(super) losses: u32,
}

impl Test {
    /// Games won in percent, draws counting half.
    pub(super) fn percent(&self) -> f64 {
        let games = f64::from(self.wins) + f64::from(self.draws) + f64::from(self.losses);
        100.0 * (f64::from(self.wins) + f64::from(self.draws) / 2.0) / games
    }
}

/// One replica.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// The keys of `result.json` besides its tests.
    pub(super) about: Map<String, Value>,
    /// In order.
    pub(super) tests: Vec<Test>,
}

impl Trial {
    /// Whether it finished without a failure.
    pub(super) fn complete(&self) -> bool {
        self.about.get("finished") == Some(&Value::Bool(true))
            && !self.about.contains_key("failure")
            && !self.tests.is_empty()
    }

    /// In percent. The end is the mean of the last two fifths of the tests, rounded up.
    ///
    /// # Panics
    /// If there are no tests.
    pub(super) fn measure(&self, measure: Measure) -> f64 {
        let percents = self.tests.iter().map(Test::percent);
        let last = (2 * self.tests.len()).div_ceil(5);
        match measure {
            Measure::Peak => percents.fold(0.0, f64::max),
            Measure::End => percents.skip(self.tests.len() - last).sum::<f64>() / last as f64,
        }
    }

    /// Training games before the first test with this percentage, or more.
    pub(super) fn games_to(&self, percent: f64) -> Option<u64> {
        self.tests.iter().find(|test| test.percent() >= percent).map(|test| test.games)
    }

    /// As in `result.json`: [`Trial::read`] is the inverse, given the training games and the size of its tests.
    pub(super) fn to_json(&self) -> Value {
        let mut json = self.about.clone();
        if self.complete() {
            json.insert("peak".into(), self.measure(Measure::Peak).into());
            json.insert("end".into(), self.measure(Measure::End).into());
        }
        let column = |value: fn(&Test) -> u32| Value::from(self.tests.iter().map(value).collect::<Vec<u32>>());
        json.insert("wins".into(), column(|test| test.wins));
        json.insert("draws".into(), column(|test| test.draws));
        Value::Object(json)
    }

    /// A replica of a `result.json`. Its tests came after `games` training games and had `test_games` games each.
    ///
    /// # Errors
    /// If it is not one, as a sentence.
    pub(super) fn read(json: &Value, games: &[u64], test_games: u32) -> Result<Self, String> {
        let column = |name: &str| -> Option<Vec<u32>> {
            json.get(name)?.as_array()?.iter().map(|count| count.as_u64()?.try_into().ok()).collect()
        };
        let wrong = || "a replica of the result has no numbers of wins and draws that fit its tests".to_owned();
        let (wins, draws) = column("wins").zip(column("draws")).ok_or_else(wrong)?;
        if wins.len() != draws.len() || wins.len() > games.len() {
            return Err(wrong());
        }
        let test = |((wins, draws), games): ((u32, u32), &u64)| {
            let losses = test_games.checked_sub(wins)?.checked_sub(draws)?;
            Some(Test { games: *games, wins, draws, losses })
        };
        let tests: Option<Vec<Test>> = wins.into_iter().zip(draws).zip(games).map(test).collect();
        let mut about = json.as_object().ok_or_else(wrong)?.clone();
        for derived in ["peak", "end", "wins", "draws"] {
            about.shift_remove(derived);
        }
        Ok(Self { about, tests: tests.ok_or_else(wrong)? })
    }
}

/// The median over trials of the games to a percentage; `None` if half of the trials did not reach it.
pub(super) fn median_games(games: &[Option<u64>]) -> Option<f64> {
    let sorted = ascending(games);
    let [low, high] = [sorted.len().checked_sub(1)? / 2, sorted.len() / 2].map(|place| sorted[place]);
    low.zip(high).map(|(low, high)| (low as f64 + high as f64) / 2.0)
}

/// The 95 % interval of that median, with `None` for an end that is a trial that never came there; `None` of too few trials.
pub(super) fn median_games_interval(games: &[Option<u64>]) -> Option<[Option<u64>; 2]> {
    let place = median_interval(games.len())?;
    let sorted = ascending(games);
    Some([sorted[place], sorted[sorted.len() - 1 - place]])
}

/// Those that never came there are the last.
fn ascending(games: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut sorted = games.to_vec();
    sorted.sort_by_key(|games| games.unwrap_or(u64::MAX));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A trial with tests of ten games, with these wins and no draws.
    fn trial(wins: &[u32]) -> Trial {
        let about = Map::from_iter([("finished".to_owned(), true.into()), ("replica".to_owned(), 3.into())]);
        let test = |(index, wins): (u64, &u32)| Test { games: 100 * index, wins: *wins, draws: 0, losses: 10 - wins };
        Trial { about, tests: (1..).zip(wins).map(test).collect() }
    }

    #[test]
    fn draws_count_half() {
        assert_eq!(Test { games: 1, wins: 5, draws: 2, losses: 3 }.percent(), 60.0);
    }

    #[test]
    fn the_end_is_the_last_two_fifths() {
        let five = trial(&[1, 9, 2, 4, 6]);
        assert_eq!((five.measure(Measure::Peak), five.measure(Measure::End)), (90.0, 50.0));
        let hundred = trial(&[[0; 60], [7; 60]].concat()[..100]);
        assert_eq!(hundred.measure(Measure::End), 70.0);
        assert_eq!(trial(&[&[9; 60], &[2; 40][..]].concat()).measure(Measure::End), 20.0);
        assert_eq!(trial(&[3]).measure(Measure::End), 30.0);
        assert_eq!(trial(&[3, 6]).measure(Measure::End), 60.0);
    }

    #[test]
    fn games_to_a_percentage() {
        let trial = trial(&[1, 5, 4, 6]);
        assert_eq!(
            [40.0, 50.0, 55.0, 60.0, 60.1].map(|percent| trial.games_to(percent)),
            [Some(200), Some(200), Some(400), Some(400), None]
        );
        assert_eq!(median_games(&[Some(5), None, Some(1)]), Some(5.0));
        assert_eq!(median_games(&[Some(5), Some(2), Some(1), None]), Some(3.5));
        assert_eq!(median_games(&[Some(5), None]), None);
        assert_eq!(median_games(&[]), None);
        let ten: Vec<Option<u64>> = (1..=10).rev().map(|games| (games < 9).then_some(games)).collect();
        assert_eq!(median_games_interval(&ten), Some([Some(2), None]));
        assert_eq!(median_games_interval(&ten[..5]), None);
    }

    #[test]
    fn json_is_read_again() {
        let whole = trial(&[1, 5, 4, 6]);
        let json = whole.to_json();
        assert_eq!((&json["peak"], &json["end"]), (&60.0.into(), &50.0.into()));
        assert_eq!(Trial::read(&json, &[100, 200, 300, 400, 500], 10), Ok(whole));
        for (games, test_games) in [(&[100, 200, 300][..], 10), (&[100, 200, 300, 400], 5)] {
            assert!(Trial::read(&json, games, test_games).is_err());
        }
        assert!(Trial::read(&json!({"wins": [1], "draws": [1.5]}), &[100], 10).is_err());
        let failed = Trial {
            about: Map::from_iter([("failure".to_owned(), "x".into()), ("finished".to_owned(), true.into())]),
            ..trial(&[1])
        };
        assert!(!failed.complete() && failed.to_json().get("peak").is_none());
    }
}
