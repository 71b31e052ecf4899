//! The report of `ternary`, compared with the chapter's figures.
//!
//! The chapter gives lengths of strings and two arguments: shorter strings and smaller alphabets are better. It ends before
//! any result, so the report tests the arguments. The odds of each arm's champions are exact, and each figure of an arm is a
//! mean over its replicas with a 95 % interval.

use std::ops::Deref;

use serde_json::{Value, json};

use super::Row;
use super::headline::ARGUMENTS;
use super::odds::{WINS_AT_RANDOM, WINS_MOST};
use super::player::Code;
use super::settings::Settings;
use super::told::{self, CURVES, ChampionOdds, Course};
use evoxo_common::{
    experiment::{Config, Row as _, settings_json},
    report::{Drawn, Figure, Reference, Report, Series, Table},
    stats::{Difference, Estimate, Sample, estimate, holm, share_text, t_test, wilson},
    text::probability,
};
use evoxo_games::board::Side;
use evoxo_games::index::{Classes, Index, Strings};

/// An arm with its name and the meaning of its strings.
struct Arm<'a> {
    name: &'a str,
    /// The settings in the form that `result.json` has.
    settings: Value,
    code: Code,
    told: &'a told::Arm,
}

impl Deref for Arm<'_> {
    type Target = told::Arm;

    fn deref(&self) -> &told::Arm {
        self.told
    }
}

/// Tables, notes, numbers and figures of all arms.
pub(super) fn report(config: &Config, arms: &[told::Arm]) -> Report {
    let arm = |(index, told)| {
        let (arm, settings) = (&config.arms[index], settings_json(config, index));
        Arm { name: &arm.name, settings, code: Settings::of(&arm.settings).code(), told }
    };
    let told: &Vec<Arm<'_>> = &arms.iter().enumerate().map(arm).collect();
    let contests = contests(told);
    let mut tables = vec![champions_table(told), repairs_table(told)];
    tables.extend((!contests.is_empty()).then(|| contests_table(&contests)));
    tables.push(chapter_table());
    let summary = told.iter().map(|arm| (arm.name.to_owned(), summary_json(arm)));
    let json = json!({
        "summary": summary.collect::<serde_json::Map<_, _>>(),
        "contests": contests.iter().map(Contest::to_json).collect::<Vec<_>>(),
    });
    Report { tables, notes: notes(told, !contests.is_empty()), json, figures: figures(told), maps: Vec::new() }
}

fn text(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or_else(|| "-".into(), |estimate| estimate.text(decimals))
}

fn header<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).to_vec()
}

/// The percentage of wins against a mover without the rules. Every string can play against it.
fn win(champion: &ChampionOdds) -> f64 {
    100.0 * champion.random.win.to_f64()
}

fn loss(champion: &ChampionOdds) -> f64 {
    100.0 * champion.random.loss.to_f64()
}

/// The champions of each arm.
fn champions_table(arms: &[Arm<'_>]) -> Table {
    let row = |arm: &Arm<'_>| {
        vec![
            arm.name.to_owned(),
            arm.code.len().to_string(),
            text(arm.over_champions(win), 2),
            text(arm.over_champions(loss), 2),
            text(arm.over_champions(|champion| 100.0 * champion.rules.win.to_f64()), 2),
            text(arm.over_champions(|champion| 100.0 * champion.rules.loss.to_f64()), 2),
            share_text(arm.safe(), arm.champions().count()),
        ]
    };
    Table {
        title: "Champions against a random mover, without and with the rules: mean over replicas ± 95 % interval"
            .into(),
        header: header([
            "champions (exact odds)",
            "letters",
            "win % (random)",
            "loss % (random)",
            "win % (rules)",
            "loss % (rules)",
            "never lose",
        ]),
        rows: arms.iter().map(row).collect(),
    }
}

/// The effects of repair.
fn repairs_table(arms: &[Arm<'_>]) -> Table {
    let row = |arm: &Arm<'_>| {
        let mean = |value: fn(&Course) -> f64| estimate(&arm.over_courses(value));
        vec![
            arm.name.to_owned(),
            text(mean(|course| course.repairs.first), 1),
            text(mean(|course| course.repairs.last), 2),
            text(mean(|course| 100.0 * course.broken.first), 1),
            text(mean(|course| 100.0 * course.broken.last), 1),
            text(mean(|course| course.mean_at_the_end), 3),
        ]
    };
    Table {
        title: "Repairs: decisions rewritten per player and generation, and the share of decisions that still name a taken cell".into(),
        header: header([
            "repairs",
            "first gen.",
            "last gen.",
            "broken % (first)",
            "broken % (last)",
            "mean fitness (last gen.)",
        ]),
        rows: arms.iter().map(row).collect(),
    }
}

/// Two arms that differ only in the subject of one of the chapter's arguments.
struct Contest<'a> {
    /// The arm that the argument favours.
    better: &'a str,
    worse: &'a str,
    /// The differences in percentage points: the champions' wins, their losses, and the wins of the fittest player over all
    /// generations.
    differences: [Difference; 3],
    /// Probabilities after Holm's correction for all contests, separately for each kind of difference.
    corrected: [f64; 3],
}

/// The names of a contest's differences in `result.json`.
const DIFFERENCES: [&str; 3] = ["win", "loss", "win_over_time"];

fn contests<'a>(arms: &[Arm<'a>]) -> Vec<Contest<'a>> {
    let mut all = Vec::new();
    for (key, favoured, other, _) in ARGUMENTS {
        for better in arms.iter().filter(|arm| arm.settings[key] == favoured) {
            let mut settings = better.settings.clone();
            settings[key] = other.into();
            all.extend(arms.iter().filter(|arm| arm.settings == settings).filter_map(|worse| contest(better, worse)));
        }
    }
    for kind in 0..DIFFERENCES.len() {
        let corrected = holm(&all.iter().map(|contest| contest.differences[kind].p).collect::<Vec<f64>>());
        all.iter_mut().zip(corrected).for_each(|(contest, p)| contest.corrected[kind] = p);
    }
    all
}

/// A contest of two arms; `None` unless both have at least two champions.
fn contest<'a>(better: &Arm<'a>, worse: &Arm<'a>) -> Option<Contest<'a>> {
    let differ =
        |values: &dyn Fn(&Arm<'a>) -> Vec<f64>| t_test(Sample::of(&values(better))?, Sample::of(&values(worse))?);
    let percent = |arm: &Arm<'a>| arm.over_courses(|course| 100.0 * course.win_over_time);
    let differences = [
        differ(&|arm| arm.champions().map(win).collect())?,
        differ(&|arm| arm.champions().map(loss).collect())?,
        differ(&percent)?,
    ];
    Some(Contest { better: better.name, worse: worse.name, differences, corrected: [1.0; 3] })
}

impl Contest<'_> {
    fn to_json(&self) -> Value {
        let mut json = json!({"better": self.better, "worse": self.worse});
        for (name, (difference, p)) in DIFFERENCES.iter().zip(self.differences.iter().zip(self.corrected)) {
            let Difference { mean, half_width, .. } = difference;
            json[*name] = json!({"difference": mean, "half_width": half_width, "p": difference.p, "p_holm": p});
        }
        json
    }
}

fn contests_table(contests: &[Contest<'_>]) -> Table {
    let row = |contest: &Contest<'_>| {
        let mut row = vec![format!("{} - {}", contest.better, contest.worse)];
        for (Difference { mean, half_width, .. }, p) in contest.differences.iter().zip(contest.corrected) {
            row.extend([format!("{mean:+.2} ± {half_width:.2}"), probability(p)]);
        }
        row
    };
    Table {
        title: "The chapter's arguments: shorter strings, smaller alphabet (first arm minus second, percentage points)"
            .into(),
        header: header(["against a random mover", "champions win", "P", "champions lose", "P", "win, all gen.", "P"]),
        rows: contests.iter().map(row).collect(),
    }
}

/// The lengths of strings next to the chapter's.
fn chapter_table() -> Table {
    let classes = |side: Side, strings: Strings| Index::of(side, strings, Classes::Rotations).len();
    let row = |what: &str, ours: usize, chapter: &str| vec![what.into(), ours.to_string(), chapter.into()];
    let long = classes(Side::X, Strings::Long);
    let short = classes(Side::X, Strings::Short);
    Table {
        title: "Our results and the chapter's".into(),
        header: header(["what", "ours", "the chapter"]),
        rows: vec![
            row("boards X decides on, rotations counted once", long, "612"),
            row("  letters of a string, three letters", 2 * long, "1224"),
            row("boards left by the two rules", short, "104"),
            row("  letters of a string, three letters", 2 * short, "208"),
            row("boards O decides on", classes(Side::O, Strings::Long), "-"),
            row("boards left by the two rules for O", classes(Side::O, Strings::Short), "-"),
        ],
    }
}

fn notes(arms: &[Arm<'_>], compared: bool) -> Vec<String> {
    let mut notes = vec![
        "± and brackets are 95 % intervals over replicas. If a champion's string names a taken cell, it plays any \
         empty cell."
            .into(),
        "The chapter speaks of flips, but its 612 boards and its sample table fit only quarter-turns (with mirror \
         images there would be 338 boards)."
            .into(),
    ];
    if compared {
        notes.push(
            "P is by Welch's t-test, corrected by Holm's method for the rows of a column. \"All gen.\" is the mean over \
             all generations of the fittest player's exact odds, so it is greater if players learn faster."
                .into(),
        );
    }
    let unfinished: usize = arms.iter().map(|arm| arm.unfinished()).sum();
    if unfinished > 0 {
        notes.push(format!("Not finished yet: {unfinished} of the replicas. Their champions are the best so far."));
    }
    notes
}

fn summary_json(arm: &Arm<'_>) -> Value {
    let json = |estimate: Option<Estimate>| {
        estimate.map(|estimate| json!({"mean": estimate.mean, "half_width": estimate.half_width}))
    };
    let champions = arm.champions().count();
    let (low, high) = wilson(arm.safe(), champions);
    json!({
        "letters": arm.code.len(),
        "champions": champions,
        "win_percent": json(arm.over_champions(win)),
        "loss_percent": json(arm.over_champions(loss)),
        "unbeatable": {"count": arm.safe(), "low": low, "high": high},
        "repairs_first": json(estimate(&arm.over_courses(|course| course.repairs.first))),
        "repairs_last": json(estimate(&arm.over_courses(|course| course.repairs.last))),
    })
}

/// The values of the best possible players and of random play in this curve.
fn references(side: Side, column: usize) -> Vec<Reference> {
    let (most, random) = match column {
        Row::win => (WINS_MOST[side as usize], WINS_AT_RANDOM[side as usize]),
        Row::loss => (0.0, WINS_AT_RANDOM[side.other() as usize]),
        _ => return Vec::new(),
    };
    let known = [("the best possible", most), ("random play", random)];
    known.map(|(name, value)| Reference::new(format!("{name}, {value:.3}"), value)).into()
}

/// For each side, figures with one curve per arm: how often the fittest player wins and loses, exactly, and repairs.
fn figures(arms: &[Arm<'_>]) -> Vec<Figure> {
    let figure = |side: Side, (column, title, y_label): (usize, &str, &str)| {
        let series: Vec<Series> = arms
            .iter()
            .filter(|arm| arm.code.side == side)
            .filter_map(|arm| arm.curves.shown(Row::name(column), arm.name))
            .collect();
        // Repairs fall by several orders of magnitude.
        let repaired = series.iter().flat_map(|series| &series.points).any(|point| point.mean > 0.0);
        let drawn = if column == Row::repairs && repaired { Drawn::Powers } else { Drawn::Means };
        (!series.is_empty()).then(|| Figure {
            name: format!("{}-{}", Row::name(column), side.letter()),
            title: format!("{title}: {}", side.letter()),
            x_label: "generation".into(),
            y_label: y_label.into(),
            y_range: None,
            drawn,
            references: references(side, column),
            series,
        })
    };
    Side::BOTH.into_iter().flat_map(|side| CURVES.into_iter().filter_map(move |curve| figure(side, curve))).collect()
}
