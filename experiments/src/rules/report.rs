//! The report of `rules`, together with the page's words. The page has only words, and no figures of its own.
//!
//! Figures of the beginning and of the end are means over the first and the last tenth of the cycles, so one lucky cycle
//! decides nothing. Strength is exact. The report is computed from what `result.json` keeps, so it can be computed again.

use std::iter::once;

use serde_json::{Map, Value, json};

use super::{
    Row,
    facts::{self, Curves, Facts},
    figures::{FIGURES, Figure},
};
use evoxo_common::{
    experiment::Config,
    report::{Drawn, Figure as Plot, Reference, Report, Table},
    settings::Scope,
    stats::{Estimate, estimate, share_text},
};

/// An arm with the figures of those of its replicas that have a history.
struct Arm<'a> {
    name: &'a str,
    /// Whether the arm is the page's example, in one of its readings.
    page: bool,
    facts: Vec<&'a Facts>,
    unfinished: usize,
    curves: &'a Curves,
}

/// Settings that the page leaves open, or whose value only decides how long a run takes.
const OPEN: [&str; 6] = ["mutation", "cycles", "random_rules", "agent_weights", "newborn", "inherited_weights"];

/// Whether an arm's settings are the page's example.
fn is_page(config: &Config, arm: usize) -> bool {
    let mut settings = config.arms[arm].settings.iter();
    settings.all(|(field, value)| {
        field.scope == Scope::Execution
            || OPEN.contains(&field.name)
            || value.to_string().trim_matches('"') == field.default.trim_matches('"')
    })
}

impl<'a> Arm<'a> {
    fn new(config: &'a Config, index: usize, told: &'a facts::Arm) -> Self {
        Self {
            name: config.arms[index].name.as_str(),
            page: is_page(config, index),
            facts: told.replicas.iter().filter_map(|replica| replica.figures.as_ref()).collect(),
            unfinished: told.replicas.iter().filter(|replica| !replica.finished).count(),
            curves: &told.curves,
        }
    }

    fn count(&self, holds: impl Fn(&Facts) -> bool) -> usize {
        self.facts.iter().filter(|facts| holds(facts)).count()
    }

    fn estimate(&self, value: impl Fn(&Facts) -> f64) -> Option<Estimate> {
        estimate(&self.facts.iter().copied().map(value).collect::<Vec<f64>>())
    }

    fn text(&self, decimals: usize, value: impl Fn(&Facts) -> f64) -> String {
        self.estimate(value).map_or_else(|| "-".into(), |estimate| estimate.text(decimals))
    }

    fn share(&self, holds: impl Fn(&Facts) -> bool) -> String {
        share_text(self.count(holds), self.facts.len())
    }

    /// From a replica's first sought rule on, the share of cycles that had one.
    fn kept(&self) -> String {
        let kept: Vec<f64> = self.facts.iter().filter_map(|facts| facts.sought.cycles_alive_since_percent).collect();
        estimate(&kept).map_or_else(|| "-".into(), |estimate| format!("{} % of the cycles", estimate.text(0)))
    }
}

/// Tables, notes, numbers and figures of all arms.
pub(super) fn report(config: &Config, arms: &[facts::Arm]) -> Report {
    let told: Vec<Arm<'_>> = arms.iter().enumerate().map(|(index, told)| Arm::new(config, index, told)).collect();
    let summary = told.iter().map(|arm| (arm.name.to_owned(), summary_json(arm)));
    Report {
        tables: [learning_table(&told), sought_table(&told)].into_iter().chain(page_table(&told)).collect(),
        notes: notes(&told),
        json: json!({"summary": summary.collect::<Map<_, _>>()}),
        figures: plots(&told),
        maps: Vec::new(),
    }
}

fn table(title: &str, header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table { title: title.into(), header: header.iter().map(|name| (*name).to_owned()).collect(), rows }
}

/// The difference between the games of the first and of the last tenth of the cycles.
fn learning_table(arms: &[Arm<'_>]) -> Table {
    let learnt = || Figure::shown().into_iter().filter_map(|figure| Some((figure.column, figure.learnt?)));
    let row = |arm: &Arm<'_>| {
        let mut row = vec![arm.name.to_owned()];
        for (column, _) in learnt() {
            row.push(arm.text(1, |facts| facts.ends(column).first));
            row.push(arm.text(1, |facts| facts.ends(column).last));
        }
        row
    };
    let heads = learnt().flat_map(|(_, name)| [format!("{name}, first"), "last".into()]);
    Table {
        title: "From the first to the last tenth of the cycles: mean over replicas ± 95 % interval".into(),
        header: once("arm".into()).chain(heads).collect(),
        rows: arms.iter().map(row).collect(),
    }
}

/// The sought rules: found, kept, lost.
fn sought_table(arms: &[Arm<'_>]) -> Table {
    let row = |arm: &Arm<'_>| {
        vec![
            arm.name.to_owned(),
            arm.text(1, |facts| facts.sought.found),
            arm.text(1, |facts| facts.sought.alive),
            arm.text(1, |facts| facts.sought.most_at_once),
            arm.text(1, |facts| facts.ends(Row::good).first),
            arm.text(1, |facts| facts.ends(Row::good).last),
            arm.text(1, |facts| facts.best_agent_percent.x.loss),
            arm.text(1, |facts| facts.best_agent_percent.o.loss),
        ]
    };
    table(
        "The 48 sought rules, other good rules, and how often the best agent still loses",
        &["arm", "found", "alive at the end", "most at once", "other good, first", "last", "X loses %", "O loses %"],
        arms.iter().map(row).collect(),
    )
}

/// The page's statements, one by one, for the arms that are its example.
fn page_table(arms: &[Arm<'_>]) -> Option<Table> {
    let mut rows = Vec::new();
    let mut row = |what: String, ours: String, page: &str| rows.push(vec![what, ours, page.to_owned()]);
    for arm in arms.iter().filter(|arm| arm.page && !arm.facts.is_empty()) {
        let found = arm.share(|facts| facts.sought.found >= 1.0);
        row(format!("{}: replicas that ever had a sought rule", arm.name), found, "one is reached,");
        let moments = arm.share(|facts| facts.sought.most_at_once >= 2.0);
        row("  replicas with two at once at some moment".into(), moments, "in moments two;");
        row("  after the first, one was alive in".into(), arm.kept(), "once found it stays");
        let reach = arm.share(|facts| facts.sought.alive >= 1.0);
        row("  replicas with one alive at the end".into(), reach, "");
        let change = |column: usize| move |facts: &Facts| facts.ends(column).last - facts.ends(column).first;
        let good = arm.text(1, change(Row::good));
        row("  change of the number of other good rules".into(), good, "more or less constant");
        let growth = format!("{} points of 100", arm.text(1, change(Row::rule_share)));
        row("  growth of the share of moves made by a rule".into(), growth, "slow but identifiable");
    }
    (!rows.is_empty()).then(|| table("Our results and the page's words", &["what", "ours", "the page"], rows))
}

fn notes(arms: &[Arm<'_>]) -> Vec<String> {
    let mut notes = vec![
        "± and brackets are 95 % intervals over replicas. First and last are means over a tenth of the cycles each."
            .into(),
        "Strength: the best agent's exact share of points against a random mover, over both sides; a draw is half a \
         win, and random play has 50. Losses are those of the last cycle's best agent, also exact; random play loses \
         28.8 % as X and 58.5 % as O."
            .into(),
        "Sought rules complete a line with two own stones, or block one with two of the opponent's, and have * \
         elsewhere. Other good rules do so too, but with more conditions."
            .into(),
    ];
    let unfinished: usize = arms.iter().map(|arm| arm.unfinished).sum();
    if unfinished > 0 {
        notes.push(format!("Not finished yet: {unfinished} of the replicas. The figures are of the cycles so far."));
    }
    notes
}

fn summary_json(arm: &Arm<'_>) -> Value {
    let estimate = |value: &dyn Fn(&Facts) -> f64| {
        arm.estimate(value).map(|estimate| {
            let [low, high] = estimate.ends();
            json!({"mean": estimate.mean, "low": low, "high": high})
        })
    };
    let mut json = json!({"replicas": arm.facts.len()});
    for figure in FIGURES.iter().filter(|figure| figure.ends) {
        let ends = |facts: &Facts| facts.ends(figure.column);
        json[figure.name()] =
            json!({"first": estimate(&|facts| ends(facts).first), "last": estimate(&|facts| ends(facts).last)});
    }
    json["sought"] = json!({
        "found": estimate(&|facts| facts.sought.found),
        "alive": estimate(&|facts| facts.sought.alive),
        "most_at_once": estimate(&|facts| facts.sought.most_at_once),
        "replicas_with_one_alive": arm.count(|facts| facts.sought.alive >= 1.0),
        "replicas_with_two_at_once": arm.count(|facts| facts.sought.most_at_once >= 2.0),
    });
    json
}

/// A plot of each figure, with a curve for each arm.
fn plots(arms: &[Arm<'_>]) -> Vec<Plot> {
    let plot = |figure: &Figure| Plot {
        name: figure.plot.into(),
        title: figure.title.into(),
        x_label: "cycle".into(),
        y_label: figure.axis.into(),
        y_range: None,
        drawn: Drawn::Means,
        references: figure.random.iter().map(|(name, value)| Reference::new(*name, *value)).collect(),
        series: arms.iter().filter_map(|arm| arm.curves.shown(figure, arm.name)).collect(),
    };
    Figure::shown().into_iter().map(plot).filter(|plot| !plot.series.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{parse, run};
    use evoxo_common::{experiment::Replica, local};

    const CONFIG: &str = "experiment = \"rules\"\nseed = 1\nreplicas = 3\n[settings]\ncycles = 30\n\
        [arms.page]\n[arms.\"weak rules go\"]\nagents = 12\nweak = \"replace\"\ngenerator = \"rigged\"\n";

    fn result_of(report: &Report) -> Value {
        let mut result = json!({"experiment": "rules", "seed": 1, "replicas": 3});
        result["arms"] = report.json["arms"].clone();
        result
    }

    fn told_again(result: &Value) -> Result<Report, String> {
        crate::registry().report_of_result(result)
    }

    #[test]
    fn a_small_run_has_a_readable_and_repeatable_report() {
        let config = parse(CONFIG);
        let report = config.report(&run(&config));
        let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(format!("{}\n{}", tables.join("\n"), report.notes.join("\n")));
        insta::assert_snapshot!(
            "json",
            format!("{:#}", json!([report.json["summary"], report.json["arms"][1]["replicas"]]))
        );
        let names: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["strength", "rule-share", "draws", "sought-found", "sought-alive", "good"]);
        assert_eq!(report.figures[0].series.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [30, 30]);
        let text = result_of(&report).to_string();
        assert_eq!(told_again(&serde_json::from_str(&text).unwrap()), Ok(report));
    }

    /// If there are many cycles, a point of a curve is the mean over some of them.
    #[test]
    fn curves_have_few_points() {
        let text = "experiment = \"rules\"\nreplicas = 2\n[settings]\nagents = 4\nrules = 5\ncycles = 250\n";
        let config = parse(text);
        let replicas = run(&config);
        let points = config.report(&replicas).figures[2].series[0].points.clone();
        assert_eq!((points.len(), points[0].x, points[83].x), (84, 3.0, 250.0));
        let mean =
            |replica: &Replica| replica.history()[3..6].iter().map(|row| row[super::super::Row::draws]).sum::<f64>();
        assert!((points[1].mean - replicas.iter().map(mean).sum::<f64>() / 6.0).abs() < 1e-3);
    }

    #[test]
    fn an_unfinished_run_has_a_report() {
        let config = parse(CONFIG);
        let replicas: Vec<Replica> = local::start(&config).collect();
        let report = config.report(&replicas);
        assert!(report.notes.iter().any(|note| note.contains("Not finished yet: 6 of")), "{:?}", report.notes);
        assert!(report.figures.is_empty() && report.tables.len() == 2);
        assert_eq!(told_again(&result_of(&report)), Ok(report));
    }

    #[test]
    fn a_result_without_its_numbers_is_rejected() {
        let config = parse(CONFIG);
        let whole = result_of(&config.report(&run(&config)));
        let cases = [
            ("/arms/0/replicas/1/strength/last", "replica 1: the ends of strength: "),
            ("/arms/1/replicas/0/sought/found", "replica 0: "),
            ("/arms/1/replicas/0/best_agent_percent/O", "replica 0: "),
            ("/arms/0/curves/good/p90/29", "the curve \"good\": "),
            ("/arms/0/curves/cycle", "the cycles of the curves: "),
            ("/arms/0/replicas", "expected a sequence"),
        ];
        for (place, part) in cases {
            let mut result = whole.clone();
            *result.pointer_mut(place).unwrap() = Value::Null;
            let sentence = told_again(&result).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
