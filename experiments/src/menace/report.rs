//! What `menace` says at the end: what the machines of each arm are worth, computed over all games, and how they came there.

use serde_json::{Map, Value, json};

use evoxo_common::{
    experiment::{Arm, ArmReplicas, Config, arm_json, curve},
    report::{Drawn, Figure, Reference, Report, Series, Table},
    stats::{Estimate, estimate},
};
use evoxo_games::board::Side;

use super::{COLUMNS, Settings, column, machine::Machine, messages::Rules, odds::Walk};

/// Columns that are shown as curves, with their title and axis.
const CURVES: [(&str, usize, &str, &str); 2] = [
    (
        "perfect_draw",
        column::PERFECT_DRAW,
        "How often the machine draws against a perfect player",
        "probability to draw",
    ),
    ("lost", column::LOST, "How many games it loses while it learns", "share of games lost"),
];

/// What is read of an arm.
struct Told<'a> {
    name: &'a str,
    settings: Settings,
    /// The last row of each replica that has one.
    last: Vec<Vec<f64>>,
    /// In the order of [`CURVES`].
    curves: Vec<Series>,
}

/// Makes everything of a run's replicas, by the index of their arm.
#[must_use]
pub(super) fn report(config: &Config, arms: &[ArmReplicas<'_>]) -> Report {
    let told = |(arm, replicas): &ArmReplicas<'_>| {
        let every = f64::from(Settings::of(&config.arms[*arm].settings).every);
        let curves = CURVES.iter().map(|(name, column, ..)| {
            let mut curve = curve(name, replicas, *column).rounded();
            curve.points.iter_mut().for_each(|point| point.x *= every);
            ((*name).to_owned(), curve.to_json())
        });
        let mut json = arm_json(config, *arm, replicas);
        json["curves"] = curves.collect::<Map<String, Value>>().into();
        json["last"] = replicas.iter().filter_map(|replica| replica.history().last().cloned()).collect();
        json
    };
    let arms: Vec<Value> = arms.iter().map(told).collect();
    of_result(config, &arms).expect("what has just been written has all that it takes")
}

/// Makes everything of the arms of a `result.json` with this configuration.
///
/// # Errors
/// If something is missing in it, as a sentence.
pub(super) fn of_result(config: &Config, arms: &[Value]) -> Result<Report, String> {
    let read = |(index, json): (usize, &Value)| read(config, index, json);
    let told = arms.iter().enumerate().map(read).collect::<Result<Vec<Told<'_>>, String>>()?;
    let summary = told.iter().map(|arm| (arm.name.to_owned(), summary(arm)));
    let summary: Map<String, Value> = summary.collect();
    Ok(Report {
        tables: vec![table(&told)],
        notes: vec![
            "± are 95 % intervals over replicas. Probabilities are computed over all games, for a machine that draws beads and \
             learns no more; an empty box stands for any empty cell. A perfect player takes any move that keeps the value, each \
             equally likely."
                .into(),
        ],
        json: json!({"arms": arms, "summary": summary}),
        figures: figures(&told),
        maps: Vec::new(),
    })
}

fn read<'a>(config: &'a Config, index: usize, json: &Value) -> Result<Told<'a>, String> {
    let Arm { name, settings } = &config.arms[index];
    let lacks = |what: &str| format!("the arm {name:?} of the result has no {what}");
    let row = |row: &Value| -> Option<Vec<f64>> {
        let row: Vec<f64> = row.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
        (row.len() == COLUMNS.len()).then_some(row)
    };
    let last = json["last"].as_array().and_then(|rows| rows.iter().map(row).collect());
    let curves = CURVES.iter().map(|(curve, ..)| Series::kept(name, &json["curves"][*curve]));
    Ok(Told {
        name,
        settings: Settings::of(settings),
        last: last.ok_or_else(|| lacks("last rows of its replicas"))?,
        curves: curves.collect::<Option<_>>().ok_or_else(|| lacks("curves"))?,
    })
}

impl Told<'_> {
    /// The mean of a column over replicas at the end, in percent.
    fn percent(&self, column: usize) -> Option<Estimate> {
        estimate(&self.last.iter().map(|row| 100.0 * row[column]).collect::<Vec<f64>>())
    }
}

fn table(arms: &[Told<'_>]) -> Table {
    let row = |arm: &Told<'_>| {
        let text = |column: usize| arm.percent(column).map_or_else(|| "-".into(), |estimate| estimate.percent(1));
        let shown = [column::PERFECT_DRAW, column::WIN, column::LOSS, column::LOST, column::RESIGNED];
        let mut row = vec![arm.name.to_owned(), arm.last.len().to_string()];
        row.extend(shown.map(text));
        row
    };
    let header = [
        "machines",
        "replicas",
        "draw % (perfect)",
        "win % (random)",
        "loss % (random)",
        "lost % (last games)",
        "given up %",
    ];
    Table {
        title:
            "What the machines are worth at the end, against a perfect player and a random mover: mean over replicas \
                ± 95 % interval"
                .into(),
        header: header.map(String::from).to_vec(),
        rows: arms.iter().map(row).collect(),
    }
}

fn summary(arm: &Told<'_>) -> Value {
    let json = |column: usize| {
        arm.percent(column).map(|estimate| json!({"mean": estimate.mean, "half_width": estimate.half_width}))
    };
    json!({
        "perfect_draw_percent": json(column::PERFECT_DRAW),
        "win_percent": json(column::WIN),
        "loss_percent": json(column::LOSS),
    })
}

/// What perfect play has in this curve, and a mover that draws one of all empty cells.
fn references(curve: &str, arms: &[Told<'_>]) -> Vec<Reference> {
    if curve == "lost" {
        // What random play loses depends on the opponent.
        return vec![Reference::new("perfect play, 0", 0.0)];
    }
    let random = |side: Side| {
        let settings = arms.iter().map(|arm| &arm.settings).find(|settings| Side::from(settings.side) == side)?;
        let even = Machine::fresh(side, &Rules { all_moves: true, ..settings.rules() });
        let [_, draw, _] = Walk::new().odds(&even, true);
        Some(Reference::new(format!("random play as {}, {draw:.2}", side.letter()), draw))
    };
    std::iter::once(Reference::new("perfect play, 1", 1.0)).chain(Side::BOTH.into_iter().filter_map(random)).collect()
}

fn figures(arms: &[Told<'_>]) -> Vec<Figure> {
    let figure = |(number, (name, _, title, y_label)): (usize, &(&str, usize, &str, &str))| {
        let drawn = |arm: &Told<'_>| Series { name: arm.name.into(), points: arm.curves[number].points.clone() };
        let series: Vec<Series> = arms.iter().map(drawn).filter(|series| !series.points.is_empty()).collect();
        (!series.is_empty()).then(|| Figure {
            name: (*name).into(),
            title: (*title).into(),
            x_label: "games".into(),
            y_label: (*y_label).into(),
            y_range: None,
            drawn: Drawn::Means,
            references: references(name, arms),
            series,
        })
    };
    CURVES.iter().enumerate().filter_map(figure).collect()
}
