//! The report of `invincible`, compared with the page's figures.
//!
//! Every champion's odds are exact, and each figure of an arm is a mean over its replicas with a 95 % interval. The fittest
//! player was chosen by its sampled games, so their score overstates it. That score is shown under its own name, together
//! with the player's exact worth. The peak of a replica is the first generation whose fittest player comes within one
//! hundredth of a point of the best in any generation, in exact worth.

use serde_json::{Value, json};

use super::{
    Row,
    facts::{BoardCounts, BoardSearch, SEARCH_GAMES, board_counts, games, random_play, search},
    kept::{CURVES, ChampionFigures, KeptArm},
    settings::{Fitness, Settings},
};
use evoxo_common::{
    experiment::{self, Config, Row as _, file_name},
    ratio::Ratio,
    report::{Drawn, Figure, Reference, Report, Series, Table},
    rng::Stream,
    stats::{Estimate, estimate, odds_interval, share_text, wilson},
};
use evoxo_games::{
    board::Side,
    odds::Odds,
    table::{
        Points,
        optimum::{Optimum, never_losing, optimum},
    },
};

/// An arm as in `result.json`, with everything that the report shows of it.
struct Arm<'a> {
    name: &'a str,
    side: Side,
    points: Points,
    /// Whether fitness is measured in sampled games.
    sampled: bool,
    replicas: usize,
    unfinished: usize,
    /// The champions of the replicas that have begun.
    champions: Vec<&'a ChampionFigures>,
    curves: Vec<Series>,
    optimum: Optimum,
    /// The stream for resampling the arm's intervals.
    stream: Stream,
}

/// Tables, notes, numbers and figures of all arms.
pub(super) fn report(config: &Config, arms: &[KeptArm]) -> Report {
    let read: Vec<Arm<'_>> = arms.iter().enumerate().map(|(index, told)| Arm::new(config, index, told)).collect();
    let summary = read.iter().map(|arm| (arm.name.to_owned(), summary_json(arm)));
    Report {
        tables: [champions_table(&read), optimum_table(&read)]
            .into_iter()
            .chain(fittest_table(&read))
            .chain([page_table(config, &read)])
            .collect(),
        notes: notes(&read),
        json: json!({"summary": summary.collect::<serde_json::Map<_, _>>()}),
        figures: together(&read)
            .into_iter()
            .chain(read.iter().enumerate().filter_map(|(index, arm)| figure(config, index, arm)))
            .collect(),
        maps: Vec::new(),
    }
}

impl<'a> Arm<'a> {
    fn new(config: &'a Config, index: usize, told: &'a KeptArm) -> Self {
        let experiment::Arm { name, settings } = &config.arms[index];
        let settings = Settings::of(settings);
        let (side, points) = (settings.side.into(), settings.points());
        let curve = |(column, shown): &(usize, &str)| told.curves.shown(Row::name(*column), shown);
        Self {
            name,
            side,
            points,
            sampled: settings.fitness == Fitness::Sampled,
            replicas: told.replicas.len(),
            unfinished: told.replicas.iter().filter(|replica| !replica.finished).count(),
            champions: told.replicas.iter().filter_map(|replica| replica.figures.as_ref()).collect(),
            curves: CURVES.iter().map(|shown| curve(shown).unwrap_or_default()).collect(),
            optimum: optimum(side, points),
            // The name is older than this file's name. It must stay, because the intervals depend on it.
            stream: Stream::root(config.seed).text("finale").text(name),
        }
    }

    fn estimate(&self, value: impl Fn(&ChampionFigures) -> f64) -> Option<Estimate> {
        estimate(&self.champions.iter().copied().map(value).collect::<Vec<f64>>())
    }

    /// The estimate of a value, as text for a table.
    fn text(&self, decimals: usize, value: impl Fn(&ChampionFigures) -> f64) -> String {
        self.estimate(value).map_or_else(|| "-".into(), |estimate| estimate.text(decimals))
    }

    /// The estimate of a share in percent, as text for a table.
    fn percent(&self, share: impl Fn(&ChampionFigures) -> Ratio) -> String {
        let estimate = self.estimate(|champion| 100.0 * share(champion).to_f64());
        estimate.map_or_else(|| "-".into(), |estimate| estimate.percent(2))
    }

    fn unbeatable(&self) -> usize {
        self.champions.iter().filter(|champion| champion.unbeatable).count()
    }

    fn optimal(&self) -> usize {
        self.champions.iter().filter(|champion| champion.optimal).count()
    }

    /// The ratio of mean wins to mean losses, with its interval; infinite if no champion loses.
    fn wins_per_loss(&self) -> (f64, Option<(f64, f64)>) {
        let odds = |champion: &ChampionFigures| (champion.odds.win.to_f64(), champion.odds.loss.to_f64());
        let pairs: Vec<(f64, f64)> = self.champions.iter().copied().map(odds).collect();
        let (wins, losses) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (wins / losses, odds_interval(&pairs, self.stream))
    }

    /// The number of boards that the champions can meet: mean with its interval, least and most.
    fn boards_met(&self) -> String {
        let boards = || self.champions.iter().map(|champion| champion.boards_met);
        match (self.estimate(|champion| champion.boards_met as f64), boards().min(), boards().max()) {
            (Some(mean), Some(least), Some(most)) => format!("{} ({least} to {most})", mean.text(1)),
            _ => "-".into(),
        }
    }
}

/// The champions of each arm, each arm followed by the best possible table.
fn champions_table(arms: &[Arm<'_>]) -> Table {
    let header = ["champions (exact odds)", "win %", "draw %", "loss %", "never lose", "optimal"];
    let mut rows = Vec::new();
    for arm in arms {
        let total = arm.champions.len();
        rows.push(vec![
            arm.name.to_owned(),
            arm.percent(|champion| champion.odds.win),
            arm.percent(|champion| champion.odds.draw),
            arm.percent(|champion| champion.odds.loss),
            share_text(arm.unbeatable(), total),
            share_text(arm.optimal(), total),
        ]);
        let odds = arm.optimum.odds;
        let exact = |share: Ratio| format!("{:.2}", 100.0 * share.to_f64());
        let never = if odds.loss == Ratio::ZERO { "yes" } else { "no" };
        let best = format!("  optimum, {} at {}", arm.side.letter(), arm.points);
        rows.push(vec![best, exact(odds.win), exact(odds.draw), exact(odds.loss), never.into(), "".into()]);
    }
    Table {
        title: "Champions against a random mover, both with the filter: mean over replicas ± 95 % interval".into(),
        header: header.map(String::from).to_vec(),
        rows,
    }
}

/// The best possible table for each side and each set of points among the arms, as exact fractions.
fn optimum_table(arms: &[Arm<'_>]) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for arm in arms {
        let Optimum { odds, fitness, ties, player, .. } = &arm.optimum;
        let row = vec![
            format!("{} at {}", arm.side.letter(), arm.points),
            odds.win.to_string(),
            odds.draw.to_string(),
            odds.loss.to_string(),
            format!("{fitness} = {:.4}", fitness.to_f64()),
            if ties.is_empty() { "one" } else { "several" }.into(),
            player.exact().boards_asked.to_string(),
        ];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Table {
        title: "The optimum: the best possible table for a side and the cost of a loss, exactly".into(),
        header: ["optimum", "win", "draw", "loss", "points a game", "tables", "boards met"].map(String::from).to_vec(),
        rows,
    }
}

/// The exact worth of the fittest players of the last generation, next to their score in sampled games; `None` if no arm
/// samples.
fn fittest_table(arms: &[Arm<'_>]) -> Option<Table> {
    let row = |arm: &Arm<'_>| {
        vec![
            arm.name.to_owned(),
            format!("{:.4}", arm.optimum.fitness.to_f64()),
            arm.text(4, |champion| champion.worth),
            arm.text(4, |champion| champion.fitness),
            arm.text(4, |champion| champion.fitness - champion.worth),
        ]
    };
    let rows: Vec<Vec<String>> = arms.iter().filter(|arm| arm.sampled).map(row).collect();
    let header = ["fittest player", "the optimum", "exact worth", "sampled fitness", "overstated by"];
    (!rows.is_empty()).then(|| Table {
        title: "The fittest player of the last generation, in points a game: mean over replicas ± 95 % interval".into(),
        header: header.map(String::from).to_vec(),
        rows,
    })
}

/// Our results next to the page's.
fn page_table(config: &Config, arms: &[Arm<'_>]) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |what: String, ours: String, page: &str| rows.push(vec![what, ours, page.into()]);
    let [x, o]: [BoardCounts; 2] = Side::BOTH.map(board_counts);
    row("boards X must know (without the empty one)".into(), format!("{} ({})", x.exact, x.source), "57");
    row("boards O must know (without those with two empty cells)".into(), format!("{} ({})", o.exact, o.source), "38");
    let found = search(Stream::root(config.seed).text("invincible").text("boards"), SEARCH_GAMES);
    for ((side, BoardSearch { boards, last_game }), page) in Side::BOTH.into_iter().zip(found).zip(["57", "38"]) {
        let what = format!("  found for {} in a million random games", side.letter());
        row(what, format!("{boards}, the last in game {last_game}"), page);
    }
    let ratio = |odds: Odds| to_one(2, odds.win.to_f64() / odds.loss.to_f64());
    row("random play, X wins : O wins, no filter".into(), ratio(random_play(false)), "about 2 : 1");
    row("random play, X wins : O wins, both with the filter".into(), ratio(random_play(true)), "about 2 : 1");
    for arm in arms.iter().filter(|arm| !arm.champions.is_empty()) {
        let total = arm.champions.len();
        let never = share_text(arm.unbeatable(), total);
        let penalty = arm.points.as_penalty();
        if arm.side == Side::O && penalty == Some(Ratio::ONE) {
            let (odds, interval) = arm.wins_per_loss();
            let interval = interval.map(|(low, high)| format!(" ({low:.1} to {high:.1})")).unwrap_or_default();
            row(format!("{}: O wins : X wins", arm.name), to_one(1, odds) + &interval, "12 : 1");
            row("  the optimum".into(), ratio(arm.optimum.odds), "");
        }
        let page = match penalty.map(|penalty| penalty.to_string()).as_deref() {
            Some("100") => "nobody loses any more",
            Some("6" | "13/2" | "7") => "\"the very best\", no more",
            _ => "",
        };
        row(format!("{}: champions that never lose", arm.name), never, page);
        let peak = arm.text(1, |champion| champion.peak as f64);
        row(format!("{}: generations to the peak", arm.name), peak, "6 to 10");
        row(format!("{}: boards a champion can meet", arm.name), arm.boards_met(), "as few as 17");
    }
    Table {
        title: "Our results and the page's".into(),
        header: ["what", "ours", "the page"].map(String::from).to_vec(),
        rows,
    }
}

/// "11.50 : 1"
fn to_one(decimals: usize, ratio: f64) -> String {
    if ratio.is_infinite() { "all : 0".into() } else { format!("{ratio:.decimals$} : 1") }
}

fn notes(arms: &[Arm<'_>]) -> Vec<String> {
    let mut notes = vec![
        "± and brackets are 95 % intervals over replicas; the brackets of boards are the least and the most.".into(),
        "Peak: the first generation whose fittest player comes within 0.01 points per game of the best in any, in \
         exact worth."
            .into(),
    ];
    if arms.iter().any(|arm| arm.sampled) {
        notes.push(
            "Worth: wins minus the cost of losses, in points per game, computed exactly. The fittest in sampled games \
             is partly the luckiest of many players: its sampled fitness overstates its worth, and can be above the \
             optimum."
                .into(),
        );
    }
    for side in Side::BOTH {
        if let Some((_, odds, penalty)) = never_losing(side) {
            let win = 100.0 * odds.win.to_f64();
            notes.push(format!(
                "For {}, never losing is optimal if a loss costs {penalty} or more; the best that never loses wins {} \
                 ({win:.2} %).",
                side.letter(),
                odds.win
            ));
        }
    }
    for points in other_points(arms) {
        notes.push(match points.as_penalty() {
            Some(penalty) => format!(
                "Points of {points} (win, draw, loss) rank players as 1 for a win, 0 for a draw and a loss that costs {penalty}."
            ),
            None => format!("With points of {points} (win, draw, loss) a win is worth no more than a draw."),
        });
    }
    if arms.iter().any(|arm| !arm.optimum.ties.is_empty()) {
        notes.push("Where several tables are optimal, the one shown loses least and then wins most.".into());
    }
    notes.push(format!(
        "The page's upper limit of 3 x 7 x 5 x 3 x 1 = 315 games multiplies X's own choices. It leaves out O's \
         replies, which make more games, and forced moves, mirror images and early ends, which make fewer. Exactly {} \
         different games can be played.",
        games()
    ));
    let unfinished: usize = arms.iter().map(|arm| arm.unfinished).sum();
    if unfinished > 0 {
        notes.push(format!("Not finished yet: {unfinished} of the replicas. Their champions are the best so far."));
    }
    if arms.iter().any(|arm| arm.champions.len() == 1) {
        notes.push(
            "An arm with one champion has no interval, because one champion does not show how much others would \
             differ."
                .into(),
        );
    }
    notes
}

/// The points of arms that cannot be expressed as a penalty alone, each once.
fn other_points(arms: &[Arm<'_>]) -> Vec<Points> {
    let mut all: Vec<Points> = arms.iter().map(|arm| arm.points).collect();
    all.retain(|points| *points != Points::from(points.penalty));
    all.sort_by_key(|points| (points.win, points.draw, points.penalty));
    all.dedup();
    all
}

fn summary_json(arm: &Arm<'_>) -> Value {
    let estimate = |value: &dyn Fn(&ChampionFigures) -> f64| {
        arm.estimate(value).map(|estimate| {
            let [low, high] = estimate.ends();
            json!({"mean": estimate.mean, "low": low, "high": high})
        })
    };
    let champions = arm.champions.len();
    let (low, high) = wilson(arm.unbeatable(), champions);
    let (odds, interval) = arm.wins_per_loss();
    let mut best = json!(arm.optimum.odds);
    best["fitness"] = arm.optimum.fitness.to_string().into();
    best["unbeatable"] = (arm.optimum.odds.loss == Ratio::ZERO).into();
    best["several"] = (!arm.optimum.ties.is_empty()).into();
    json!({
        "champions": champions,
        "worth": estimate(&|champion| champion.worth),
        "sampled_fitness": arm.sampled.then(|| estimate(&|champion| champion.fitness)),
        "win": estimate(&|champion| champion.odds.win.to_f64()),
        "draw": estimate(&|champion| champion.odds.draw.to_f64()),
        "loss": estimate(&|champion| champion.odds.loss.to_f64()),
        // Null if the ratio is infinite, because JSON has no such number.
        "wins_per_loss": {"mean": odds, "low": interval.map(|ends| ends.0), "high": interval.map(|ends| ends.1)},
        "unbeatable": {"count": arm.unbeatable(), "low": low, "high": high},
        "optimal": arm.optimal(),
        "peak_generation": estimate(&|champion| champion.peak as f64),
        "boards_met": estimate(&|champion| champion.boards_met as f64),
        "optimum": best,
    })
}

/// The worth of the fittest players of all arms, each with its optimum, on one axis. The axis starts at 0: if a loss costs
/// much, the first generations are far below, and would leave no room for the others. `None` for a single arm.
fn together(arms: &[Arm<'_>]) -> Option<Figure> {
    let begun = || arms.iter().filter(|arm| !arm.curves[0].points.is_empty());
    let optimum = |arm: &Arm<'_>| arm.optimum.fitness.to_f64();
    let series = |arm: &Arm<'_>| Series { name: arm.name.to_owned(), points: arm.curves[0].points.clone() };
    let known = |arm: &Arm<'_>| Reference {
        of: Some(arm.name.to_owned()),
        ..Reference::new(format!("the optimum, {:.4}", optimum(arm)), optimum(arm))
    };
    let ends = begun().flat_map(|arm| arm.curves[0].points.last()).map(|point| point.low);
    let points = begun().flat_map(|arm| &arm.curves[0].points).map(|point| point.high);
    (begun().count() > 1).then(|| Figure {
        // No arm's file can have this name.
        name: "all_arms".into(),
        title: "All arms: exact worth of the fittest player".into(),
        x_label: "generation".into(),
        y_label: "points a game".into(),
        y_range: Some((ends.fold(0.0, f64::min), begun().map(optimum).chain(points).fold(0.0, f64::max))),
        drawn: Drawn::Panels,
        references: begun().map(known).collect(),
        series: begun().map(series).collect(),
    })
}

/// Curves over generations, with the optimum. The axis ranges from the least worth of a fittest player to the greatest value
/// of any curve, so the population's mean enters from below.
fn figure(config: &Config, index: usize, arm: &Arm<'_>) -> Option<Figure> {
    let mut series = arm.curves.to_vec();
    series.truncate(if arm.sampled { CURVES.len() } else { CURVES.len() - 1 });
    let most = arm.optimum.fitness.to_f64();
    let low = series[0].points.iter().map(|point| point.low).fold(most, f64::min);
    let high = series.iter().flat_map(|series| &series.points).map(|point| point.high).fold(most, f64::max);
    // A result may keep no curves, or only those of the figure of all arms.
    series.iter().all(|series| !series.points.is_empty()).then(|| Figure {
        name: file_name(config, index),
        title: format!("{} ({} replicas)", arm.name, arm.replicas),
        x_label: "generation".into(),
        y_label: "points a game".into(),
        y_range: Some((low, high)),
        drawn: Drawn::Means,
        references: vec![Reference::new(format!("the optimum, {most:.4}"), most)],
        series,
    })
}

#[cfg(test)]
mod tests;
