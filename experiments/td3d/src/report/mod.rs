//! The report of `td3d`: the paper's tables together with ours, tests of its claims, and curves. For all arms, it says how
//! strong they get and after how many games.
//!
//! It is computed from the figures of each trial and a curve of each arm. `result.json` keeps both, so the report can be
//! computed again.

use serde_json::{Map, Value, json};

use super::{
    arm::Arm,
    claims::{Comparison, claims_notes, claims_table, comparisons, signed},
    facts::{self, GAMES, Measure, NETWORKS, Regime},
    trial::{LEVELS, median_games, median_games_interval},
};
use evoxo_common::{
    report::{Drawn, Figure, Reference, Report, Series, Table},
    stats::{Sample, estimate, holm, t_test},
    text::{probability, thousands},
};

/// The range of percentages in the closer view.
const TOP: (f64, f64) = (90.0, 100.0);

/// Tables, notes, numbers and figures of all arms.
pub(super) fn of_arms(arms: &[Arm<'_>]) -> Report {
    let mut readings: Vec<&str> = Vec::new();
    for arm in arms.iter().filter(|arm| arm.paper.is_some()) {
        if !readings.contains(&arm.reading) {
            readings.push(arm.reading);
        }
    }
    let (mut tables, mut figures, mut claims) = (Vec::from_iter(sizes_table(arms)), Vec::new(), Map::new());
    let (mut told, mut claim_notes) = (0, Vec::new());
    for reading in &readings {
        for regime in Regime::BOTH {
            let rows = paper_rows(arms, reading, regime);
            // A single network needs no table.
            if rows.len() > 1 {
                told += rows.len();
                tables.push(paper_table(&rows, reading, regime));
                let curves = rows.iter().filter_map(|arm| Some(arm.curve(arm.paper?.0.name).per(1000.0)));
                let (name, title) = (paper_figure_name(regime, reading, &readings), paper_title(regime, reading));
                let known = references(&rows, |arm| arm.paper.map_or("", |(network, _)| network.name).to_owned());
                figures.extend(figure(curves.collect(), &name, &title, None, &known));
            }
        }
        let found = comparisons(arms, reading);
        if !found.is_empty() {
            tables.push(claims_table(&found, reading));
            for note in claims_notes(&found) {
                if !claim_notes.contains(&note) {
                    claim_notes.push(note);
                }
            }
            claims.insert((*reading).into(), found.iter().map(Comparison::to_json).collect());
        }
    }
    if told < arms.len() {
        tables.push(arms_table(arms));
        tables.extend(games_table(arms));
        let curves: Vec<Series> = arms.iter().map(|arm| arm.curve(arm.name).per(1000.0)).collect();
        // The closer view separates the strongest arms.
        let strong = curves.iter().any(|curve| curve.points.last().is_some_and(|last| last.mean >= TOP.0 + 5.0));
        let known = references(&arms.iter().collect::<Vec<_>>(), |arm| arm.name.to_owned());
        figures.extend(figure(curves.clone(), "arms", "Against the benchmark player, while learning", None, &known));
        figures
            .extend(strong.then(|| figure(curves, "arms-top", "The same, seen closer", Some(TOP), &known)).flatten());
    }
    let summary: Map<String, Value> = arms.iter().map(|arm| (arm.name.to_owned(), summary_json(arm))).collect();
    let json = json!({"summary": summary, "claims": claims});
    Report { tables, notes: notes(arms, told, claim_notes), json, figures, maps: Vec::new() }
}

/// The arms that are in one of the paper's tables, in its order.
fn paper_rows<'a>(arms: &'a [Arm<'a>], reading: &str, regime: Regime) -> Vec<&'a Arm<'a>> {
    let arm = |network: &facts::Network| {
        let here = |arm: &&Arm<'_>| {
            arm.reading == reading && arm.paper.is_some_and(|(other, at)| other == network && at == regime)
        };
        arms.iter().find(here)
    };
    NETWORKS.iter().filter_map(arm).collect()
}

fn paper_title(regime: Regime, reading: &str) -> String {
    match regime {
        Regime::SelfPlay => format!("Figure 3: self-play ({reading:?})"),
        Regime::Benchmark => format!("Figure 4: against the benchmark player ({reading:?})"),
    }
}

/// The name contains the reading only if there are several.
fn paper_figure_name(regime: Regime, reading: &str, readings: &[&str]) -> String {
    let name = match regime {
        Regime::SelfPlay => "figure-3-self-play",
        Regime::Benchmark => "figure-4-benchmark",
    };
    if readings.len() > 1 { format!("{name}-{reading}") } else { name.into() }
}

/// Table I.
fn sizes_table(arms: &[Arm<'_>]) -> Option<Table> {
    let row = |network: &facts::Network| {
        let arm = arms.iter().find(|arm| arm.paper.is_some_and(|(other, _)| other == network))?;
        Some(vec![
            network.name.into(),
            network.layers.into(),
            arm.connections.to_string(),
            network.weights.to_string(),
            (arm.parameters - arm.connections).to_string(),
        ])
    };
    let rows: Vec<Vec<String>> = NETWORKS.iter().filter_map(row).collect();
    (rows.len() > 1).then(|| Table {
        title: "Table I: the networks".into(),
        header: ["network", "layers", "connections", "the paper's", "biases besides"].map(String::from).to_vec(),
        rows,
    })
}

/// Tables II and III.
fn paper_table(arms: &[&Arm<'_>], reading: &str, regime: Regime) -> Table {
    let row = |arm: &&Arm<'_>| {
        let (network, _) = arm.paper?;
        let mut row = vec![network.name.into(), arm.complete().to_string()];
        for measure in [Measure::Peak, Measure::End] {
            let paper = network.reported(regime, measure);
            let difference = arm.sample(measure).and_then(|sample| t_test(sample, paper));
            row.push(arm.text(measure));
            row.push(format!("{:.1} ± {:.1}", paper.mean, paper.deviation));
            row.push(difference.map_or_else(|| "-".into(), |difference| signed(&difference)));
        }
        Some(row)
    };
    let (number, what) = match regime {
        Regime::SelfPlay => ("II", "by self-play"),
        Regime::Benchmark => ("III", "against the benchmark player"),
    };
    let header = ["network", "trials", "peak %", "the paper's", "difference", "end %", "the paper's", "difference"];
    Table {
        title: format!("Table {number}, reading {reading:?}: % won against the benchmark player after learning {what}"),
        header: header.map(String::from).to_vec(),
        rows: arms.iter().filter_map(row).collect(),
    }
}

/// A table of all arms: strength, and the difference of the end from the first arm's.
fn arms_table(arms: &[Arm<'_>]) -> Table {
    let against_first = |arm: &Arm<'_>| t_test(arm.sample(Measure::End)?, arms[0].sample(Measure::End)?);
    let found: Vec<_> = arms.iter().skip(1).map(against_first).collect();
    let raw: Vec<f64> = found.iter().flatten().map(|difference| difference.p).collect();
    let mut corrected = holm(&raw).into_iter();
    let row = |(index, arm): (usize, &Arm<'_>)| {
        let difference = index.checked_sub(1).and_then(|place| Some((found[place]?, corrected.next()?)));
        let (difference, p) =
            difference.map_or_else(Default::default, |(difference, p)| (signed(&difference), probability(p)));
        let trials = arm.complete().to_string();
        vec![arm.name.to_owned(), trials, arm.text(Measure::Peak), arm.text(Measure::End), difference, p]
    };
    Table {
        title: "All arms: % won against the benchmark player".into(),
        header: ["arm", "trials", "peak %", "end %", "end - first arm's", "P"].map(String::from).to_vec(),
        rows: arms.iter().enumerate().map(row).collect(),
    }
}

/// How many games the arms need for each of the levels that some trial reaches; `None` if no trial reaches any level.
fn games_table(arms: &[Arm<'_>]) -> Option<Table> {
    let reached = |level: &usize| arms.iter().any(|arm| arm.games_to(*level).iter().any(Option::is_some));
    let levels: Vec<usize> = (0..LEVELS.len()).filter(reached).collect();
    let row = |arm: &Arm<'_>| {
        let games = levels.iter().map(|level| games_text(&arm.games_to(*level)));
        std::iter::once(arm.name.to_owned()).chain(games).collect()
    };
    let header = levels.iter().map(|level| format!("games until {} %", LEVELS[*level]));
    (!levels.is_empty()).then(|| Table {
        title: "Thousands of training games until the first test with this % won: median over trials (95 % interval)"
            .into(),
        header: std::iter::once("arm".into()).chain(header).collect(),
        rows: arms.iter().map(row).collect(),
    })
}

/// "120 (90 to 150)", with "never" for a level that is not reached. There is no interval if there are too few trials for one,
/// or if all of it is "never". A dash if no trial reaches the level.
fn games_text(games: &[Option<u64>]) -> String {
    if games.iter().all(Option::is_none) {
        return "-".into();
    }
    let text = |games: Option<f64>| games.map_or_else(|| "never".into(), |games| (games / 1000.0).to_string());
    let interval = median_games_interval(games).filter(|ends| ends.iter().any(Option::is_some)).map(|ends| {
        let [low, high] = ends.map(|end| text(end.map(|games| games as f64)));
        format!(" ({low} to {high})")
    });
    text(median_games(games)) + &interval.unwrap_or_default()
}

/// The paper's results at the end, for the networks that arms repeat with as many games, each once. `curve` returns the name
/// of an arm's curve.
fn references(arms: &[&Arm<'_>], curve: fn(&Arm<'_>) -> String) -> Vec<Reference> {
    let mut known: Vec<Reference> = Vec::new();
    for arm in arms {
        let Some((network, regime)) = arm.paper.filter(|_| arm.games == GAMES) else { continue };
        let value = network.reported(regime, Measure::End).mean;
        let name = format!("the paper's {} at the end, {value:.1}", network.name);
        match known.iter_mut().find(|other| other.name == name) {
            Some(other) => other.of = None,
            None => known.push(Reference { name, value, of: Some(curve(arm)) }),
        }
    }
    known
}

fn figure(
    mut series: Vec<Series>,
    name: &str,
    title: &str,
    y_range: Option<(f64, f64)>,
    references: &[Reference],
) -> Option<Figure> {
    series.retain(|series| !series.points.is_empty());
    (!series.is_empty()).then(|| Figure {
        name: name.into(),
        title: title.into(),
        x_label: "training games (thousands)".into(),
        y_label: "games won (%, draws half)".into(),
        y_range,
        drawn: Drawn::Means,
        references: references.to_vec(),
        series,
    })
}

/// The notes of the report. `told` is the number of arms in the paper's tables.
fn notes(arms: &[Arm<'_>], told: usize, claims: Vec<String>) -> Vec<String> {
    let mut notes = vec![
        "Peak: a trial's best test, as in the paper; as the greatest of many, it overstates strength. End: the mean of \
         the last two fifths of the tests. ±: standard deviation over trials; in brackets the 95 % interval of the \
         mean."
            .to_owned(),
    ];
    if told > 0 {
        notes.push(
            "Differences from the paper's means have 95 % intervals, which use its ten trials and printed standard \
             deviations."
                .into(),
        );
    }
    notes.extend(claims);
    if told < arms.len() {
        notes.push(
            "All arms: P is from Welch's test, corrected by Holm's method for the number of arms. A trial that never \
             reaches a level counts as \"never\"; the median of fewer than six trials has no 95 % interval."
                .into(),
        );
    }
    let shorter = |arm: &&Arm<'_>| told > 0 && arm.paper.is_some() && arm.complete() > 0 && arm.games != GAMES;
    if let Some(arm) = arms.iter().find(shorter) {
        notes.push(format!(
            "The paper's trials have 1,000,000 games, these {}: expect other figures.",
            thousands(arm.games)
        ));
    }
    let started = || arms.iter().flat_map(|arm| &arm.trials);
    let unfinished = started().filter(|trial| !trial.finished).count();
    if unfinished > 0 {
        notes.push(format!(
            "Not finished yet: {unfinished} of the trials; they are in the curves but not in the tables."
        ));
    }
    notes
}

fn summary_json(arm: &Arm<'_>) -> Value {
    let measured = |measure: Measure| {
        let values = arm.values(measure);
        let (sample, mean) = Sample::of(&values).zip(estimate(&values))?;
        let [low, high] = mean.ends();
        Some(json!({"mean": mean.mean, "deviation": sample.deviation, "low": low, "high": high}))
    };
    let games = |(place, level): (usize, &u32)| {
        let games = arm.games_to(place);
        let interval = median_games_interval(&games);
        let json = json!({
            "median": median_games(&games),
            // An end is null if it is a trial that never reaches the level. Both ends are null if there are too few trials.
            "low": interval.and_then(|ends| ends[0]),
            "high": interval.and_then(|ends| ends[1]),
            "reached": games.iter().flatten().count(),
        });
        (level.to_string(), json)
    };
    let games: Map<String, Value> = LEVELS.iter().enumerate().map(games).collect();
    let mut json = json!({
        "trials": arm.complete(),
        "peak": measured(Measure::Peak),
        "end": measured(Measure::End),
        "games_to_percent": games,
    });
    if let Some((network, regime)) = arm.paper {
        let reported = |measure: Measure| {
            let sample = network.reported(regime, measure);
            json!({"mean": sample.mean, "deviation": sample.deviation})
        };
        json["paper"] = json!({"peak": reported(Measure::Peak), "end": reported(Measure::End)});
    }
    json
}

#[cfg(test)]
mod tests;
