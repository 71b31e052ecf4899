//! The report of `menace`: the odds of each arm's machines, computed over all games, and their course over time.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use evoxo_common::{
    experiment::{Config, Replica, ReplicaTold, Row as _, Told, curve},
    headline::Headline,
    report::{Curves, Drawn, Figure, Reference, Report, Series, Table},
    stats::{Estimate, estimate},
};
use evoxo_games::board::Side;

use super::{Row, Settings, headline, machine::Machine, messages::Rules, odds::Walk};

/// Columns that are shown as curves, with their titles and axes.
const CURVES: [(usize, &str, &str); 2] = [
    (Row::perfect_draw, "How often the machine draws against a perfect player", "probability to draw"),
    (Row::lost, "How many games it loses while it learns", "share of games lost"),
];

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
pub(super) struct Arm {
    replicas: Vec<ReplicaTold>,
    #[serde(default)]
    curves: Curves,
    /// The last row of each replica that has one.
    pub(super) last: Vec<[f64; Row::COLUMNS.len()]>,
}

impl Told for Arm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let every = f64::from(Settings::of(&config.arms[arm].settings).every);
        let replicas = &replicas[arm];
        let curves = CURVES.map(|(column, ..)| {
            let mut curve = curve(Row::name(column), replicas, column).rounded();
            curve.points.iter_mut().for_each(|point| point.x *= every);
            curve
        });
        let last = |replica: &&Replica| replica.history().last()?.as_slice().try_into().ok();
        Self {
            replicas: ReplicaTold::of_all(config, arm, replicas, |_| None),
            curves: Curves(curves.into()),
            last: replicas.iter().filter_map(last).collect(),
        }
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        let named = || config.arms.iter().map(|arm| arm.name.as_str()).zip(arms);
        let summary = named().map(|(name, arm)| (name.to_owned(), arm.summary()));
        Ok(Report {
            tables: vec![table(named())],
            notes: vec![
                "± are 95 % intervals over replicas. Probabilities are computed over all games, for a machine that \
                 draws beads but does not learn, and takes any empty cell at an empty box. A perfect player takes any \
                 move that keeps the value, with equal probability."
                    .into(),
            ],
            json: json!({"summary": summary.collect::<Map<String, Value>>()}),
            figures: CURVES.iter().filter_map(|shown| figure(config, arms, shown)).collect(),
            maps: Vec::new(),
        })
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}

impl Arm {
    /// The mean of a column over replicas at the end, in percent.
    fn percent(&self, column: usize) -> Option<Estimate> {
        estimate(&self.last.iter().map(|row| 100.0 * row[column]).collect::<Vec<f64>>())
    }

    fn summary(&self) -> Value {
        let json = |column: usize| {
            self.percent(column).map(|estimate| json!({"mean": estimate.mean, "half_width": estimate.half_width}))
        };
        json!({
            "perfect_draw_percent": json(Row::perfect_draw),
            "win_percent": json(Row::win),
            "loss_percent": json(Row::loss),
        })
    }
}

fn table<'a>(arms: impl Iterator<Item = (&'a str, &'a Arm)>) -> Table {
    let row = |(name, arm): (&str, &Arm)| {
        let text = |column: usize| arm.percent(column).map_or_else(|| "-".into(), |estimate| estimate.percent(1));
        let shown = [Row::perfect_draw, Row::win, Row::loss, Row::lost, Row::resigned];
        let mut row = vec![name.to_owned(), arm.last.len().to_string()];
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
        title: "Odds of the machines at the end, against a perfect player and a random mover: mean over replicas \
                ± 95 % interval"
            .into(),
        header: header.map(String::from).to_vec(),
        rows: arms.map(row).collect(),
    }
}

/// The values of perfect play and of a random mover in this curve.
fn references(config: &Config, column: usize) -> Vec<Reference> {
    if column == Row::lost {
        // How often random play loses depends on the opponent.
        return vec![Reference::new("perfect play, 0", 0.0)];
    }
    let random = |side: Side| {
        let mut settings = config.arms.iter().map(|arm| Settings::of(&arm.settings));
        let settings = settings.find(|settings| Side::from(settings.side) == side)?;
        let even = Machine::fresh(side, &Rules { all_moves: true, ..settings.rules() });
        let [_, draw, _] = Walk::new().odds(&even, true);
        Some(Reference::new(format!("random play as {}, {draw:.2}", side.letter()), draw))
    };
    std::iter::once(Reference::new("perfect play, 1", 1.0)).chain(Side::BOTH.into_iter().filter_map(random)).collect()
}

fn figure(config: &Config, arms: &[Arm], (column, title, y_label): &(usize, &str, &str)) -> Option<Figure> {
    let names = config.arms.iter().map(|arm| arm.name.as_str());
    let shown = |(name, arm): (&str, &Arm)| arm.curves.shown(Row::name(*column), name);
    let series: Vec<Series> = names.zip(arms).filter_map(shown).collect();
    (!series.is_empty()).then(|| Figure {
        name: Row::name(*column).into(),
        title: (*title).into(),
        x_label: "games".into(),
        y_label: (*y_label).into(),
        y_range: None,
        drawn: Drawn::Means,
        references: references(config, *column),
        series,
    })
}
