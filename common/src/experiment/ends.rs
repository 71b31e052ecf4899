//! Conditions that end a replica before its length: the table `[ends]` of an experiment file.
//!
//! ```toml
//! [ends]                # a replica ends after the round in which one of these becomes true
//! column = "fitness"    # of the history; by default the primary metric
//! reaches = 0.96        # a row is at least this good
//! stagnates = 20        # this many rows in sequence are not better than the best before them
//! ```

use serde_json::json;

use super::{
    Column, Goal,
    written::{Mistake, Table, column, unknown_keys, word},
};
use crate::{
    ratio::Ratio,
    settings::{Shape, Value},
};

const KEYS: [&str; 4] = ["column", "goal", "reaches", "stagnates"];

/// The values that can be given for `reaches`.
const REACHES: Shape = Shape::Decimal { min: -1_000_000_000, max: 1_000_000_000, places: 6 };
/// The numbers of rows that can be given for `stagnates`.
const STAGNATES: Shape = Shape::Integer { min: 1, max: 1_000_000 };

/// Ends a replica before its length: by one of two conditions, or by whichever becomes true first.
///
/// The conditions are checked between rounds. So results then also depend on how much work is in one round, which settings
/// with the scope [`Scope::Execution`](crate::settings::Scope::Execution) decide. With conditions, these settings are
/// therefore part of the configuration's hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The index, among the kind's columns, of the column that is checked.
    pub column: usize,
    /// Whether greater or smaller values are better.
    pub goal: Goal,
    /// The value that is good enough.
    pub reaches: Option<Ratio>,
    /// The number of rows in sequence that are not better than the best before them.
    pub stagnates: Option<u64>,
}

impl Ends {
    /// Reads the table. The history has these columns and this primary one; `usual` is the goal for a column if the file does
    /// not state a goal.
    ///
    /// # Errors
    /// All mistakes.
    pub(super) fn resolve(
        table: &Table,
        columns: &'static [Column],
        primary: usize,
        usual: impl Fn(usize) -> Goal,
    ) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = unknown_keys(table, "[ends]", &KEYS);
        let found = column(table, "column", columns, primary, &mut mistakes);
        let goal = word(table, "goal", Goal::WORDS, found.map_or(Goal::Maximize, usual), &mut mistakes);
        let [reaches, stagnates] = [("reaches", REACHES), ("stagnates", STAGNATES)].map(|(key, shape)| {
            let raw = table.get(key)?;
            let value = raw.text.clone().ok().and_then(|text| shape.read(&text).ok());
            if value.is_none() {
                mistakes.push((raw.place.clone(), format!("{key} must be {}", shape.allowed())));
            }
            value
        });
        let reaches = reaches.and_then(|value| if let Value::Decimal(value) = value { Some(value) } else { None });
        let stagnates = stagnates.and_then(|rows| if let Value::Integer(rows) = rows { Some(rows) } else { None });
        if let (None, None, Some(raw), []) = (reaches, stagnates, table.values().next(), mistakes.as_slice()) {
            let sentence = "[ends] has no condition that ends a replica: give reaches or stagnates";
            mistakes.push((raw.place.clone(), sentence.into()));
        }
        match (found, goal) {
            (Some(column), Some(goal)) if mistakes.is_empty() => Ok(Self { column, goal, reaches, stagnates }),
            _ => Err(mistakes),
        }
    }

    /// The conditions, in words.
    pub(super) fn words(&self, columns: &[Column]) -> String {
        let column = columns[self.column].name;
        let side = if self.goal == Goal::Maximize { "least" } else { "most" };
        let reached = self.reaches.map(|value| format!("a {column} of at {side} {}", Value::Decimal(value)));
        let stagnated = self.stagnates.map(|rows| match rows {
            1 => format!("a row without a better {column}"),
            _ => format!("{rows} rows without a better {column}"),
        });
        reached.into_iter().chain(stagnated).collect::<Vec<String>>().join(" or ")
    }

    /// The conditions as an entry of `result.json`.
    pub(super) fn to_json(&self, columns: &[Column]) -> serde_json::Value {
        let mut table = json!({"column": columns[self.column].name, "goal": self.goal.word()});
        if let Some(value) = self.reaches {
            table["reaches"] = Value::Decimal(value).to_string().into();
        }
        if let Some(rows) = self.stagnates {
            table["stagnates"] = rows.into();
        }
        table
    }

    /// The table in an experiment file whose result has this entry.
    pub(super) fn of_result(told: &serde_json::Value) -> Option<String> {
        let entries = told.as_object()?.iter().map(|(key, value)| format!("{key} = {value}\n"));
        Some(format!("[ends]\n{}", entries.collect::<String>()))
    }

    /// The table in an experiment file.
    pub(super) fn to_toml(&self, columns: &[Column]) -> String {
        let column = columns[self.column].name;
        let mut text = format!("\n[ends]\ncolumn = \"{column}\"\ngoal = \"{}\"\n", self.goal.word());
        if let Some(value) = self.reaches {
            text += &format!("reaches = {}\n", Value::Decimal(value));
        }
        if let Some(rows) = self.stagnates {
            text += &format!("stagnates = {rows}\n");
        }
        text
    }
}

/// Checks a history, row after row.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    ends: Ends,
    best: Option<f64>,
    /// The number of rows since the best one.
    since: u64,
    is_over: bool,
}

impl Watch {
    pub(super) fn new(ends: Ends) -> Self {
        Self { ends, best: None, since: 0, is_over: false }
    }

    /// Checks the next row.
    pub(super) fn see(&mut self, row: &[f64]) {
        let worth = |value: f64| self.ends.goal.sign() * value;
        let value = worth(row[self.ends.column]);
        if self.best.is_none_or(|best| value > best) {
            (self.best, self.since) = (Some(value), 0);
        } else {
            self.since += 1;
        }
        let reached = self.ends.reaches.is_some_and(|least| value >= worth(least.to_f64()));
        self.is_over |= reached || self.ends.stagnates.is_some_and(|rows| self.since >= rows);
    }

    /// Whether a condition has become true.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiment::{Change, Config, Replica},
        local::step,
        testing,
    };

    const TEN: &str = "[settings]\nrounds = 10\n";

    fn config(ends: &str) -> Config {
        testing::config(&format!("{TEN}[ends]\n{ends}\n"))
    }

    fn rounds(config: &Config) -> u64 {
        let mut replica = Replica::start(config, &config.arms[0], 0);
        while step(&mut replica).expect("tasks that can be computed") {
            let restored = Replica::restore(config, &replica.save()).expect("the saved state is valid");
            assert_eq!(restored.is_finished(), replica.is_finished());
        }
        assert_eq!(replica.links().last().map(|link| link.digest), Some(replica.digest()));
        replica.rounds()
    }

    #[test]
    fn stop_conditions_end_a_run_and_change_its_name() {
        let whole = testing::config(TEN);
        assert_eq!(rounds(&whole), 10);
        let mut replica = Replica::start(&whole, &whole.arms[0], 0);
        (0..4).for_each(|_| drop(step(&mut replica)));
        let fourth = replica.history()[3][0];
        let four = config(&format!("reaches = {fourth}"));
        assert_eq!(rounds(&four), 4);
        assert_eq!(rounds(&config("goal = \"minimize\"\nstagnates = 3")), 4, "sums only grow");
        assert_eq!(Config::parse(&testing::registry(), "test", &four.to_toml(), &[]), Ok(four.clone()));
        assert_ne!(four.hash(), whole.hash());
        assert_eq!(four.change_from(&whole), Change::Other("the table [ends] differs".into()));
        // How the work is divided into rounds decides when the conditions are checked.
        let slice = |ends: &str| testing::config(&format!("[settings]\nslice = 1\n{ends}"));
        assert_eq!(slice("").hash(), testing::config("").hash());
        assert_ne!(slice("[ends]\nstagnates = 1").hash(), testing::config("[ends]\nstagnates = 1").hash());
    }

    #[test]
    fn mistakes_have_messages() {
        let mistake = |ends: &str| {
            let text = format!("experiment = \"sums\"\n[ends]\n{ends}\n");
            Config::parse(&testing::registry(), "test", &text, &[]).expect_err(ends).to_string()
        };
        for (ends, sentence) in [
            ("column = \"sums\"", "column must be a column of the history, one of sum; did you mean \"sum\"?"),
            ("reach = 1", "unknown key \"reach\" in [ends]; did you mean \"reaches\"?"),
            ("goal = \"less\"", "goal must be one of \"maximize\", \"minimize\""),
            ("stagnates = 0", "stagnates must be a whole number from 1 to 1000000"),
            ("column = \"sum\"", "[ends] has no condition that ends a replica: give reaches or stagnates"),
        ] {
            assert!(mistake(ends).contains(sentence), "{}", mistake(ends));
        }
    }

    /// The number of rows after which a history with these values ends.
    fn over_after(goal: Goal, reaches: Option<Ratio>, stagnates: Option<u64>, values: &[f64]) -> Option<usize> {
        let mut watch = Watch::new(Ends { column: 1, goal, reaches, stagnates });
        let over = |value: &f64| {
            watch.see(&[9.0, *value]);
            watch.is_over()
        };
        values.iter().position(over).map(|row| row + 1)
    }

    #[test]
    fn a_replica_ends_at_its_target_or_without_improvement() {
        let values = [1.0, 3.0, 2.0, 3.0, 3.0, 4.0, 4.0];
        let three = Some(Ratio::new(3, 1));
        assert_eq!(over_after(Goal::Maximize, three, None, &values), Some(2));
        assert_eq!(over_after(Goal::Minimize, three, None, &values), Some(1));
        assert_eq!(
            over_after(Goal::Maximize, None, Some(3), &values),
            Some(5),
            "rows as good as the best are not better"
        );
        assert_eq!(over_after(Goal::Maximize, None, Some(4), &values), None);
        assert_eq!(over_after(Goal::Minimize, None, Some(2), &values), Some(3));
        assert_eq!(
            over_after(Goal::Maximize, Some(Ratio::new(4, 1)), Some(3), &values),
            Some(5),
            "the earlier condition ends the run"
        );
        assert_eq!(
            over_after(Goal::Maximize, Some(Ratio::new(4, 1)), Some(1), &[-0.0, 0.0]),
            Some(2),
            "zeros are equal"
        );
    }
}
