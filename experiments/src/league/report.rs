//! The report of a league: a sentence, the table of ratings, which player is stronger than which, and what a single number
//! per player hides.

use evoxo_common::{
    experiment::Config,
    report::{Report, Table},
    rng::Stream,
    text::thousands,
};
use serde_json::{Map, Value, json};

use super::{
    NAME,
    rating::{ELO, VIRTUAL_GAMES},
    standing::{DOUBT, OPENINGS_MIN, RESAMPLES, Results, Standing},
    told,
};

/// An arm and its results.
pub(super) struct Rated<'a> {
    pub(super) name: &'a str,
    results: Results,
    standing: Standing,
}

impl<'a> Rated<'a> {
    fn new(config: &'a Config, arm: usize, results: Results) -> Self {
        let name = config.arms[arm].name.as_str();
        let stream = Stream::root(config.seed).text(NAME).text(name).text("bootstrap");
        Self { name, standing: results.standing(stream), results }
    }
}

/// All arms.
///
/// # Errors
/// A sentence if something is missing in the arms of the result.
pub(super) fn rated<'a>(config: &'a Config, arms: &[told::Arm]) -> Result<Vec<Rated<'a>>, String> {
    let rated = |(place, arm): (usize, &told::Arm)| Ok(Rated::new(config, place, arm.results(config, place)?));
    arms.iter().enumerate().map(rated).collect()
}

/// Tables, notes and numbers of all arms.
///
/// # Errors
/// A message if the arms of the result lack something.
pub(super) fn report(config: &Config, arms: &[told::Arm]) -> Result<Report, String> {
    let mut tables = Vec::new();
    let mut notes = Vec::new();
    let mut summary = Map::new();
    for arm in rated(config, arms)? {
        let head = if arms.len() > 1 { format!("{}: ", arm.name) } else { String::new() };
        let sentence = sentence(&arm);
        tables.push(ratings_table(&arm, format!("{head}{sentence}")));
        tables.extend(stronger_tables(&arm, &head));
        tables.extend(scores_tables(&arm, &head));
        notes.extend(arm_notes(&arm).into_iter().map(|note| format!("{head}{note}")));
        summary.insert(arm.name.to_owned(), json!({"sentence": sentence, "ratings": ratings_json(&arm)}));
    }
    notes.extend(common_notes());
    let json = json!({"summary": summary});
    Ok(Report { tables, notes, json, figures: Vec::new(), maps: Vec::new() })
}

/// The verdict in a sentence.
pub(super) fn sentence(arm: &Rated<'_>) -> String {
    let Rated { results, standing, .. } = arm;
    let games: f64 = results.meetings.iter().map(|meeting| meeting.games()).sum();
    let names: Vec<&str> = standing.first.iter().map(|player| results.names[*player].as_str()).collect();
    let known = if results.exact { "from exact odds" } else { "from these games" };
    match (games > 0.0, names.as_slice()) {
        (false, _) => "No games yet".into(),
        (_, [first]) => format!("{first} has the highest rating of {} players, {known}", results.names.len()),
        (_, several) => format!("Tied for first, {known}: {}", several.join(", ")),
    }
}

/// A number of points with its sign.
fn points(value: f64) -> String {
    // Zero has no minus sign.
    let rounded = value.round();
    if rounded == 0.0 { "0".into() } else { format!("{rounded:+.0}") }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1}", 100.0 * share))
}

/// The column of the intervals, which exact odds do not have.
const INTERVAL: usize = 2;

fn ratings_table(arm: &Rated<'_>, title: String) -> Table {
    let Rated { results, standing, .. } = arm;
    let row = |(place, player): (usize, &usize)| {
        let player = *player;
        let place = if standing.first.contains(&player) { 1 } else { place + 1 };
        let known = standing.intervals.as_ref().and_then(|of| of[player]).filter(|_| player != results.anchor);
        let interval = known.map_or_else(|| "-".into(), |(low, high)| format!("{} to {}", points(low), points(high)));
        let mut row = vec![
            format!("{place:>2}. {}", results.names[player]),
            points(standing.ratings.points_above(player, results.anchor)),
            interval,
            percent(results.share(player, None)),
            percent(results.share(player, Some(true))),
            percent(results.share(player, Some(false))),
            format!("{:.1}", 100.0 * standing.nash[player]),
        ];
        if results.exact {
            row.remove(INTERVAL);
        }
        row
    };
    let header = ["player", "rating", "95 % interval", "score %", "first %", "second %", "Nash %"];
    let mut header = header.map(String::from).to_vec();
    if results.exact {
        header.remove(INTERVAL);
    }
    Table { title, header, rows: standing.order.iter().enumerate().map(row).collect() }
}

/// The most columns of a table of all players against each other. This many fit on a page.
const COLUMNS_MAX: usize = 20;

/// Tables of all players against each other, the strongest first. A column is headed by its player's place.
fn squares(arm: &Rated<'_>, title: &str, first: &str, cell: impl Fn(usize, usize) -> String) -> Vec<Table> {
    let order: Vec<(usize, usize)> = (1..).zip(arm.standing.order.iter().copied()).collect();
    let piece = |columns: &[(usize, usize)]| {
        let row = |(place, player): &(usize, usize)| {
            let name = format!("{place:>2}. {}", arm.results.names[*player]);
            let cells =
                columns.iter().map(|(_, other)| if other == player { String::new() } else { cell(*player, *other) });
            std::iter::once(name).chain(cells).collect()
        };
        let places = columns.iter().map(|(place, _)| place.to_string());
        Table {
            title: title.to_owned(),
            header: std::iter::once(first.to_owned()).chain(places).collect(),
            rows: order.iter().map(row).collect(),
        }
    };
    order.chunks(COLUMNS_MAX).map(piece).collect()
}

fn stronger_tables(arm: &Rated<'_>, head: &str) -> Vec<Table> {
    let Some(stronger) = &arm.standing.stronger else { return Vec::new() };
    let title = format!("{head}how often the row's player is stronger: % of {RESAMPLES} resamples of the openings");
    squares(arm, &title, "stronger", |player, other| format!("{:.0}", 100.0 * stronger[player][other]))
}

fn scores_tables(arm: &Rated<'_>, head: &str) -> Vec<Table> {
    let scores = arm.results.scores();
    let title = format!("{head}points of the row's player against the column's, % (a draw is half a point)");
    squares(arm, &title, "score", |player, other| {
        scores[player][other].map_or("-".into(), |it| format!("{:.0}", 100.0 * it))
    })
}

/// The notes about a single arm.
fn arm_notes(arm: &Rated<'_>) -> Vec<String> {
    let Rated { results, standing, .. } = arm;
    let names = |players: &[usize]| -> String {
        players.iter().map(|player| results.names[*player].as_str()).collect::<Vec<&str>>().join(", ")
    };
    let mut notes = Vec::new();
    if standing.groups.len() > 1 {
        let groups: Vec<String> = standing.groups.iter().map(|group| names(group)).collect();
        notes.push(format!(
            "These groups never met, so their ratings cannot be compared with each other: {}.",
            groups.join("; ")
        ));
    }
    notes.push(match &standing.circles.largest {
        None => "No three players beat each other in a circle.".into(),
        Some((players, scores)) => {
            let [one, two, three] = players.map(|player| results.names[player].as_str());
            let [a, b, c] = scores.map(|score| 100.0 * score);
            let sure = match standing.circles.certain {
                true => "",
                false => " (not all three are beyond chance)",
            };
            let which = match standing.circles.count {
                1 => "the only circle of three".into(),
                count => format!("the largest of {} circles of three", thousands(count as u64)),
            };
            format!(
                "{one} beats {two} ({a:.1} %), {two} beats {three} ({b:.1} %), {three} beats {one} ({c:.1} %){sure}: \
                 {which}. No ratings can express a circle."
            )
        }
    });
    if let Some(misfit) = &standing.misfit {
        let ((first, second), score, expected) = misfit.worst;
        let [first, second] = [first, second].map(|player| results.names[player].as_str());
        let ratio = misfit.ratio.map_or(String::new(), |ratio| {
            format!(
                "The scores scatter {ratio:.2} times as much as the ratings expect (variance; 1 if the model holds). "
            )
        });
        notes.push(format!(
            "{ratio}The worst misfit is {first} moving first against {second}: {:.1} % of the points, where the ratings expect \
             {:.1} %.",
            100.0 * score,
            100.0 * expected
        ));
    }
    if standing.intervals.as_ref().is_some_and(|of| of[results.anchor].is_none()) {
        notes.push(format!(
            "No rating has an interval, because the anchor {} won or lost every point: make another player the anchor.",
            results.names[results.anchor]
        ));
    }
    if !results.meetings.is_empty() {
        let first = ELO * standing.ratings.first_move;
        notes.push(format!(
            "The first move is worth {} points. Apart from that, two equal players would draw {:.1} % of their games.",
            points(first),
            100.0 * standing.ratings.draws_of_equals()
        ));
    }
    notes
}

/// The notes that explain the tables.
fn common_notes() -> Vec<String> {
    vec![
        format!(
            "Ratings are the maximum likelihood of Bradley and Terry's model with Davidson's draws and a term for the \
             first move; 400 points are odds of 10 to 1. Only one player's rating is fixed, at 0. Each player also has \
             one virtual game of weight {VIRTUAL_GAMES}, a third of it won, drawn and lost against a player of average \
             strength: without it, a player that never lost would be infinitely strong."
        ),
        format!(
            "Intervals and the shares of \"stronger\" are from {RESAMPLES} resamples of the openings, each with all \
             games from it. A player is tied for first if the strongest one is above it in less than {:.1} % of them, \
             a limit that is corrected for the number of players. Exact odds have no intervals. Neither has a player \
             that won or lost every game, because only the virtual game makes its rating finite. From fewer than \
             {OPENINGS_MIN} openings there are no intervals either, and all players are tied for first.",
            100.0 * (1.0 - DOUBT)
        ),
        "Nash % is the mixture of players that no player beats; of several, it is the most even one (Nash averaging). \
         It does not change if a player is entered twice."
            .into(),
    ]
}

fn ratings_json(arm: &Rated<'_>) -> Value {
    let Rated { results, standing, .. } = arm;
    let player = |player: &usize| {
        let interval = standing.intervals.as_ref().and_then(|of| of[*player]).map(|(low, high)| [low, high]);
        json!({
            "player": results.names[*player],
            "rating": standing.ratings.points_above(*player, results.anchor),
            "interval": interval,
            "score": results.share(*player, None),
            "nash": standing.nash[*player],
            "tied_for_first": standing.first.contains(player),
        })
    };
    standing.order.iter().map(player).collect()
}
