//! Results of a league, from its replicas and as JSON.

use evoxo_common::{
    experiment::{Config, Replica},
    stats::rating::{Blocks, Meeting},
};
use prost::Message as _;
use serde_json::{Value, json};

use super::{messages::State, play::ODDS_EACH, settings::Settings, standing::Results};

/// The letters of games in JSON, by their [outcome](evoxo_common::stats::rating::outcome).
const LETTERS: [char; 4] = ['-', 'W', 'D', 'L'];

/// Results of nobody yet.
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

/// With the meetings of its games.
fn counted(results: Results) -> Results {
    let Results { names, pairs, games, .. } = &results;
    let meetings = Blocks { players: names.len(), pairs, games }.meetings();
    Results { meetings, ..results }
}

/// The results of an arm's replicas. Of exact odds those of the first one: all are the same.
pub(super) fn of_replicas(config: &Config, arm: usize, replicas: &[&Replica]) -> Results {
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

/// With these sums of odds, six for each pair of players; none before they are known.
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

/// The results as JSON: for each pair of players, both ways, a letter for each opening, or three sums of odds.
pub(super) fn to_json(results: &Results) -> Value {
    let entry = |(place, (first, second)): (usize, &(usize, usize))| {
        let [first, second] = [first, second].map(|player| results.names[*player].as_str());
        match results.exact {
            true => {
                let odds = results.meetings.get(place).map(|meeting| meeting.results);
                json!({"x": first, "o": second, "odds": odds})
            }
            false => {
                let games = results.games.iter().skip(place).step_by(results.pairs.len());
                let letters: String = games.map(|game| LETTERS[usize::from(*game & 3)]).collect();
                json!({"x": first, "o": second, "games": letters})
            }
        }
    };
    results.pairs.iter().enumerate().map(entry).collect()
}

/// The inverse of [`to_json`] for an arm of a configuration, or a sentence.
pub(super) fn of_json(config: &Config, arm: usize, pairs: &Value) -> Result<Results, String> {
    let results = empty(&Settings::of(&config.arms[arm].settings));
    let lacks = |what: &str| format!("the arm {:?} of the result has no {what}", config.arms[arm].name);
    let pairs = pairs.as_array().filter(|pairs| pairs.len() == results.pairs.len()).ok_or_else(|| lacks("games"))?;
    if results.exact {
        let odds = |pair: &Value| -> Option<Vec<f64>> {
            match &pair["odds"] {
                Value::Null => Some(Vec::new()),
                odds => odds.as_array()?.iter().map(|sum| sum.as_f64().filter(|sum| *sum >= 0.0)).collect(),
            }
        };
        let all: Option<Vec<Vec<f64>>> = pairs.iter().map(odds).collect();
        let all = all.map(|all| all.concat()).filter(|all| all.is_empty() || all.len() == 3 * pairs.len());
        return Ok(with_odds(results, &all.ok_or_else(|| lacks("odds of all pairs"))?));
    }
    let letter = |letter: char| LETTERS.iter().position(|known| *known == letter).map(|place| place as u8);
    let games = |pair: &Value| pair["games"].as_str()?.chars().map(letter).collect::<Option<Vec<u8>>>();
    let of_pairs: Option<Vec<Vec<u8>>> = pairs.iter().map(games).collect();
    let of_pairs = of_pairs.ok_or_else(|| lacks("games of all pairs"))?;
    let openings = of_pairs.first().map_or(0, Vec::len);
    if of_pairs.iter().any(|games| games.len() != openings) {
        return Err(lacks("equally many games of all pairs"));
    }
    let games = (0..openings).flat_map(|opening| of_pairs.iter().map(move |games| games[opening])).collect();
    Ok(counted(Results { games, ..results }))
}
