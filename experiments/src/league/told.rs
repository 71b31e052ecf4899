//! Results of a league, from its replicas and as JSON.

use evoxo_common::{
    experiment::{Config, Replica, ReplicaTold, Row as _, Told, curve},
    headline::Headline,
    report::{CURVE_POINTS_MAX, Curves, Report},
};
use prost::Message as _;
use serde::{Deserialize, Serialize};

use super::{
    Row, SHARES, headline,
    messages::State,
    play::ODDS_EACH,
    rating::{Blocks, Meeting},
    report,
    settings::Settings,
    standing::Results,
};

/// The letters of games in JSON, by their [outcome](super::rating::outcome).
const LETTERS: [char; 4] = ['-', 'W', 'D', 'L'];

/// Results in which no player has played yet.
fn empty(settings: &Settings) -> Results {
    let both = |(one, two): (usize, usize)| [(one, two), (two, one)];
    Results {
        names: settings.titles().into_iter().map(String::from).collect(),
        anchor: settings.anchor(),
        pairs: settings.pairings().into_iter().flat_map(both).collect(),
        games: Vec::new(),
        meetings: Vec::new(),
        exact: settings.is_exact(),
    }
}

/// The results with the meetings counted from their games.
fn counted(results: Results) -> Results {
    let Results { names, pairs, games, .. } = &results;
    let meetings = Blocks { players: names.len(), pairs, games }.meetings();
    Results { meetings, ..results }
}

/// The results of an arm's replicas. With exact odds all replicas have the same results, so those of the first one are used.
fn of_replicas(config: &Config, arm: usize, replicas: &[&Replica]) -> Results {
    let results = empty(&Settings::of(&config.arms[arm].settings));
    let state =
        |replica: &&Replica| State::decode(replica.save().state).expect("a replica's state is what it has saved");
    let mut states = replicas.iter().map(state);
    if results.exact {
        let odds = states.find(|state| state.openings > 0).map_or(Vec::new(), |state| state.odds);
        return with_odds(results, &odds);
    }
    let games = states.flat_map(|state| state.games.to_vec()).collect();
    counted(Results { games, ..results })
}

/// The results with these sums of odds, six for each pair of players. `odds` is empty until they are known.
fn with_odds(results: Results, odds: &[f64]) -> Results {
    let of = |(place, (first, second)): (usize, &(usize, usize))| {
        let odds = &odds[place * ODDS_EACH / 2..(place + 1) * ODDS_EACH / 2];
        Meeting { first: *first, second: *second, results: [odds[0], odds[1], odds[2]] }
    };
    let meetings = match odds.is_empty() {
        true => Vec::new(),
        false => results.pairs.iter().enumerate().map(of).collect(),
    };
    Results { meetings, ..results }
}

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
pub(super) struct Arm {
    replicas: Vec<ReplicaTold>,
    #[serde(default)]
    curves: Curves,
    pairs: Vec<Pair>,
}

/// A pair of players. The first one moves first.
#[derive(Serialize, Deserialize)]
struct Pair {
    x: String,
    o: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// The results of a pair of players.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    /// One letter per opening.
    Games(String),
    /// Three sums of odds, once they are known.
    Odds(Option<[f64; 3]>),
}

impl Told for Arm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let replicas = &replicas[arm];
        let results = of_replicas(config, arm, replicas);
        let pair = |(place, (first, second)): (usize, &(usize, usize))| {
            let [x, o] = [first, second].map(|player| results.names[*player].clone());
            let games = results.games.iter().skip(place).step_by(results.pairs.len());
            let outcome = match results.exact {
                true => Outcome::Odds(results.meetings.get(place).map(|meeting| meeting.results)),
                false => Outcome::Games(games.map(|game| LETTERS[usize::from(*game & 3)]).collect()),
            };
            Pair { x, o, outcome }
        };
        Self {
            replicas: ReplicaTold::of_all(config, arm, replicas, |_| None),
            curves: curves(replicas),
            pairs: results.pairs.iter().enumerate().map(pair).collect(),
        }
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        report::report(config, arms)
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}

/// The curves of the shares over openings.
fn curves(replicas: &[&Replica]) -> Curves {
    let longest = replicas.iter().max_by_key(|replica| replica.history().len());
    let of = |place: usize| {
        let mut curve = curve(Row::COLUMNS[place].name, replicas, place);
        let rows = longest.iter().flat_map(|replica| replica.history());
        curve.points.iter_mut().zip(rows).for_each(|(point, row)| point.x = row[Row::openings]);
        curve.rounded().thinned(CURVE_POINTS_MAX)
    };
    Curves(SHARES.map(of).into())
}

impl Arm {
    /// The results of this arm of a configuration.
    ///
    /// # Errors
    /// A message if they do not cover all pairs of the arm.
    pub(super) fn results(&self, config: &Config, arm: usize) -> Result<Results, String> {
        let results = empty(&Settings::of(&config.arms[arm].settings));
        let lacks = |what: &str| format!("the arm {:?} of the result has no {what}", config.arms[arm].name);
        if self.pairs.len() != results.pairs.len() {
            return Err(lacks("results of all pairs"));
        }
        let outcomes = self.pairs.iter().map(|pair| &pair.outcome);
        if results.exact {
            let odds = |outcome: &Outcome| match outcome {
                Outcome::Odds(odds) => {
                    odds.map_or(Some(Vec::new()), |odds| odds.iter().all(|sum| *sum >= 0.0).then(|| odds.to_vec()))
                }
                Outcome::Games(_) => None,
            };
            let all = outcomes.map(odds).collect::<Option<Vec<Vec<f64>>>>().map(|all| all.concat());
            let all = all.filter(|all| all.is_empty() || all.len() == 3 * self.pairs.len());
            return Ok(with_odds(results, &all.ok_or_else(|| lacks("odds of all pairs"))?));
        }
        let letter = |letter: char| LETTERS.iter().position(|known| *known == letter).map(|place| place as u8);
        let games = |outcome: &Outcome| match outcome {
            Outcome::Games(games) => games.chars().map(letter).collect::<Option<Vec<u8>>>(),
            Outcome::Odds(_) => None,
        };
        let of_pairs: Option<Vec<Vec<u8>>> = outcomes.map(games).collect();
        let of_pairs = of_pairs.ok_or_else(|| lacks("games of all pairs"))?;
        let openings = of_pairs.first().map_or(0, Vec::len);
        if of_pairs.iter().any(|games| games.len() != openings) {
            return Err(lacks("equally many games of all pairs"));
        }
        let games = (0..openings).flat_map(|opening| of_pairs.iter().map(move |games| games[opening])).collect();
        Ok(counted(Results { games, ..results }))
    }
}
