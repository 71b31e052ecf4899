//! The report of `evolve`: the best that each arm found, the evaluations it took, and the curves.

use std::cmp::Ordering;

use evoxo_common::{
    experiment::{self, Config, Replica, ReplicaTold, file_name},
    headline::Headline,
    math::order,
    report::{self, Figure, Map, Report, Series, Table},
    rng::Stream,
    settings::Values,
    stats::{estimate, odds_interval, quantile},
    text::{counted, rounded},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    algorithm::{BASELINE, Leaves},
    contests::{self, Entry, Outcome},
    curves::{self, Curves},
    headline,
    optimism::{self, Noisy},
    pareto::is_exact,
    pictures::{self, Cell, Fronts},
    rows::{
        BEST, CONFIRMED, ERROR, EVALUATIONS, FAILURES, HYPERVOLUME, KEPT, OUTSIDE, QUALITY, REACHED, SEEN, VIOLATION,
        deciding,
    },
    settings::Settings,
};

/// From this size on, a number is shown with an exponent, because nobody reads so many digits.
const LONG: f64 = 1e15;

/// What a result keeps of an arm. Lists have an entry for each replica with a row that counts, in the order of the replicas.
#[derive(Serialize, Deserialize)]
pub(super) struct Arm {
    replicas: Vec<ReplicaTold>,
    /// The objective of the best candidate.
    pub(super) best: Vec<f64>,
    /// By how much it breaks its constraints.
    pub(super) violations: Vec<f64>,
    /// Evaluations. Replicas in which every evaluation failed come last.
    evaluations: Vec<f64>,
    /// Failed evaluations of all replicas.
    failures: f64,
    /// Empty without a reference point.
    pub(super) hypervolume: Vec<f64>,
    /// The number of candidates that each replica keeps.
    pub(super) kept: Vec<f64>,
    /// Empty if no value is declared worthless.
    pub(super) qd_score: Vec<f64>,
    /// Candidates of all replicas whose measures lay outside the grid.
    outside: f64,
    /// The evaluation that reached the target, for the same replicas as `evaluations`; 0 if none did.
    pub(super) reached: Vec<f64>,
    /// Only for noisy problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<Noise>,
    /// Means and the middle 80 %. A small result may leave them out.
    #[serde(default)]
    curves: report::Curves,
    /// Medians and quartiles.
    #[serde(default)]
    medians: report::Curves,
    /// The share of targets that are reached, over the logarithm of evaluations.
    runtimes: Option<Series>,
    /// The objectives of the candidates in the fronts of all replicas.
    front: Option<Vec<Vec<f64>>>,
    /// Only with two objectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    attainment: Option<Series>,
    /// IGD+ of each replica with a front, if the best front is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    igd_plus: Option<Vec<f64>>,
    /// The archive of the first replica, if it can be drawn.
    map: Option<Vec<Cell>>,
}

/// What noisy searches saw as their best, and the answer with fresh seeds.
#[derive(Serialize, Deserialize)]
struct Noise {
    /// The best value that the search saw.
    seen: Vec<f64>,
    /// Half the width of the interval of the answer's value.
    errors: Vec<f64>,
    /// Evaluations with fresh seeds.
    confirmed: Vec<f64>,
}

impl experiment::Told for Arm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let (settings, replicas) = (Settings::of(&config.arms[arm].settings), &replicas[arm]);
        // A value that a noisy search saw is not a result until it is confirmed.
        let counts = |row: &&Vec<f64>| !settings.is_noisy() || row[CONFIRMED] > 0.0;
        let last = |column: usize| -> Vec<f64> {
            replicas.iter().filter_map(|it| it.history().last().filter(counts)).map(|row| row[column]).collect()
        };
        // If every evaluation of a replica failed, none of its rows counts.
        let ended = |replica: &&&Replica| replica.is_finished() && replica.failure().is_none();
        let without = |replica: &&&Replica| replica.history().last().filter(counts).is_none();
        let valueless = replicas.iter().filter(ended).filter(without).count();
        let spent = vec![settings.evaluations as f64; valueless];
        // A value that does not exist must not appear as 0.
        let known = |is: bool, column: usize| if is { last(column) } else { Vec::new() };
        let noise = || Noise { seen: last(SEEN), errors: last(ERROR), confirmed: last(CONFIRMED) };
        let (curves, medians) = Curves::of(&settings, replicas).kept(&settings);
        let Fronts { front, attainment, igd_plus } = Fronts::of(&settings, replicas);
        Self {
            replicas: ReplicaTold::of_all(config, arm, replicas, |_| None),
            best: last(BEST),
            violations: last(VIOLATION),
            evaluations: [last(EVALUATIONS), spent.clone()].concat(),
            failures: [last(FAILURES), spent].concat().iter().sum(),
            hypervolume: known(settings.reference_point().is_some(), HYPERVOLUME),
            kept: last(KEPT),
            qd_score: known(settings.worthless().is_some(), QUALITY),
            outside: last(OUTSIDE).iter().sum(),
            reached: [last(REACHED), vec![0.0; valueless]].concat(),
            noise: settings.is_noisy().then(noise),
            curves,
            medians,
            runtimes: pictures::runtimes(&settings, replicas, [EVALUATIONS, BEST, VIOLATION, REACHED]),
            front,
            attainment,
            igd_plus,
            map: pictures::archive(&settings, replicas),
        }
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        Ok(report(config, arms))
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}

/// What is kept of an arm, with its name and settings, and what follows from these.
struct Told<'a> {
    name: &'a str,
    settings: Settings,
    arm: &'a Arm,
    /// The best objective of each replica that has a feasible candidate.
    bests: Vec<f64>,
    /// Replicas that have a row, or have ended, without a feasible candidate.
    infeasible: usize,
    /// The outcome of each replica, by its best candidate.
    ends: Vec<Outcome>,
    curves: Curves,
}

/// The column by which replicas are ranked. See [`evoxo_common::experiment::Ranking`].
pub(super) fn deciding_column(values: &Values) -> usize {
    deciding(&Settings::of(values))
}

/// Which of two rows is better: the one with the greater hypervolume, QD score or number of cells, if that ranks replicas.
/// Otherwise the one with the better candidate: less constraint violation, then the better objective.
pub(super) fn compare(values: &Values, one: &[f64], other: &[f64]) -> Ordering {
    let settings = Settings::of(values);
    let column = deciding(&settings);
    let greater = if column == BEST { Ordering::Equal } else { order(other[column], one[column]) };
    let maximised = settings.objectives().first().is_some_and(|(maximised, _)| *maximised);
    let best = order(one[BEST], other[BEST]);
    let violation = order(one[VIOLATION], other[VIOLATION]);
    // The value of a noisy problem is luck until it is confirmed.
    let confirmed = (other[CONFIRMED] > 0.0).cmp(&(one[CONFIRMED] > 0.0));
    confirmed.then(greater).then(violation).then(if maximised { best.reverse() } else { best })
}

fn report(config: &Config, arms: &[Arm]) -> Report {
    let told: Vec<Told<'_>> = config.arms.iter().zip(arms).map(|(arm, kept)| Told::new(arm, kept)).collect();
    let (direction, name) = objective_of_all(&told);
    // The column that ranks the replicas of every arm. If arms differ in this, they are compared by their best candidates.
    let first = told.first().map_or(BEST, Told::deciding);
    let decides = if told.iter().all(|arm| arm.deciding() == first) { first } else { BEST };
    let several = decides == HYPERVOLUME;
    let mut tables: Vec<Table> = archives_table(&told).into_iter().collect();
    if !several {
        tables.push(Table {
            title: format!("The {direction} {name} of a replica: mean ± 95 % interval, median and quartiles, range"),
            header: ["arm", "replicas", "mean", "median (quartiles)", "range", "evaluations", "target reached", "ERT"]
                .map(String::from)
                .to_vec(),
            rows: told.iter().map(Told::row).collect(),
        });
    }
    tables.extend(kept_table(&told));
    let noisy: Vec<Noisy<'_>> = told.iter().filter_map(Told::noisy).collect();
    tables.extend(optimism::table(&noisy));
    let mut notes: Vec<String> = told.iter().filter_map(Told::failures).collect();
    notes.extend(told.iter().filter_map(Told::learnt_nothing));
    notes.extend(optimism::note(&noisy));
    notes.extend(about_distances(&told));
    notes.extend(told.iter().find_map(|arm| about_reference(arm, &told)));
    notes.extend(told.iter().filter_map(Told::estimated_hypervolume));
    notes.extend(told.iter().any(Told::lacks_reference).then(missing_reference));
    // The results of a screen are its effects, so its arms are not tested against each other.
    let entries = told.iter().filter(|_| config.screen.is_none()).filter_map(Told::entry).collect::<Vec<_>>();
    let contests = contests::contests(&entries);
    tables.extend(contests::table(&contests));
    notes.extend(contests::notes(&contests));
    notes.extend(contests::note_of_many(&entries));
    let contests: Vec<Value> = contests.iter().map(contests::Contest::to_json).collect();
    if let Some(settings) = told.first().map(|arm| &arm.settings).filter(|_| !several) {
        let optimum = settings.built_in().and_then(|problem| {
            let genes = settings.genome().genes();
            let name = problem.objectives.first()?.name;
            Some(format!("The best {name} of {} of this length is {}.", problem.name, (problem.optimum)(genes)?))
        });
        notes.extend(optimum);
    }
    let is_baseline = |arm: &Told<'_>| arm.settings.algorithm == BASELINE;
    if told.iter().all(|arm| arm.settings.has_order()) && !told.iter().any(is_baseline) {
        let name = BASELINE.name;
        notes.push(format!(
            "No arm is random search: add one with algorithm = \"{name}\" to see what the search is worth."
        ));
    }
    let summary = told.iter().map(|arm| (arm.name.to_owned(), arm.summary())).collect::<serde_json::Map<_, _>>();
    let (figures, maps) = pictures(config, &told);
    let seen = if noisy.is_empty() { "" } else { ", as the searches saw it" };
    let lines: Vec<(&Settings, &Curves)> = told.iter().map(|arm| (&arm.settings, &arm.curves)).collect();
    let first = [
        (decides != BEST).then(|| curves::deciding_figure(decides, &lines, seen)),
        (!several).then(|| curves::best_figure(&lines, &format!("The {direction} {name} so far{seen}"), name)),
    ];
    Report {
        tables,
        notes,
        json: json!({"summary": summary, "contests": contests}),
        figures: first.into_iter().flatten().filter(|figure| !figure.series.is_empty()).chain(figures).collect(),
        maps,
    }
}

/// How the report names the first objective: its direction and name if all arms have the same, else words that fit all of
/// them.
fn objective_of_all(told: &[Told<'_>]) -> (&'static str, String) {
    let of = |arm: &Told<'_>| arm.settings.objectives().into_iter().next();
    match told.first().and_then(of).filter(|first| told.iter().all(|arm| of(arm).as_ref() == Some(first))) {
        Some((maximised, name)) => (if maximised { "greatest" } else { "least" }, name),
        None => ("best", "objective".into()),
    }
}

/// The figures other than curves, and the maps.
fn pictures(config: &Config, told: &[Told<'_>]) -> (Vec<Figure>, Vec<Map>) {
    let curves = |pick: fn(&Arm) -> Option<&Series>| -> Vec<(&Settings, Series)> {
        let named = |arm: &'_ Told<'_>| pick(arm.arm).map(|curve| Series { name: arm.name.into(), ..curve.clone() });
        told.iter().filter_map(|arm| Some((&arm.settings, named(arm)?))).collect()
    };
    let fronts: Vec<(&str, &[Vec<f64>])> =
        told.iter().filter_map(|arm| Some((arm.name, arm.arm.front.as_deref()?))).collect();
    let figures = [
        pictures::runtimes_figure(curves(|arm| arm.runtimes.as_ref())),
        told.first().and_then(|arm| pictures::attainment_figure(&arm.settings, curves(|arm| arm.attainment.as_ref()))),
        told.first().and_then(|arm| pictures::front_figure(&arm.settings, &fronts)),
    ];
    let map = |(index, arm): (usize, &Told<'_>)| {
        pictures::archive_map(&file_name(config, index), arm.name, &arm.settings, arm.arm.map.as_ref()?)
    };
    (figures.into_iter().flatten().collect(), told.iter().enumerate().filter_map(map).collect())
}

/// A mean with its interval, or a dash.
fn text(numbers: &[f64]) -> String {
    estimate(numbers).map_or_else(|| "-".into(), |it| it.text(it.decimals()))
}

/// The table of the fronts that arms leave, if any arm leaves one.
fn kept_table(told: &[Told<'_>]) -> Option<Table> {
    let any_known = told.iter().any(|arm| !arm.distances().is_empty());
    let row = |arm: &Told<'_>| {
        let hypervolume = arm.settings.reference_point().map_or_else(|| "-".into(), |_| text(&arm.arm.hypervolume));
        let kept = [arm.name.to_owned(), hypervolume, text(&arm.arm.kept)].into_iter();
        kept.chain(any_known.then(|| text(arm.distances()))).collect()
    };
    let of = told.iter().filter(|arm| arm.settings.leaves() == Leaves::Front);
    let rows: Vec<Vec<String>> = of.map(row).collect();
    let header = ["arm", "hypervolume", "candidates"].into_iter().chain(any_known.then_some("IGD+"));
    (!rows.is_empty()).then(|| Table {
        title: "The candidates kept, including dominated and infeasible ones: mean ± 95 % interval".into(),
        header: header.map(String::from).collect(),
        rows,
    })
}

/// A note on the reference point of the hypervolumes, and on the best value of each objective in all fronts.
fn about_reference(arm: &Told<'_>, told: &[Told<'_>]) -> Option<String> {
    let reference = arm.settings.reference_point().filter(|_| arm.settings.leaves() == Leaves::Front)?;
    let objectives = arm.settings.objectives();
    let points = || told.iter().filter_map(|arm| arm.arm.front.as_ref()).flatten();
    let best = |(place, (maximised, _)): (usize, &(bool, String))| {
        points().filter_map(|point| point.get(place).copied()).reduce(if *maximised { f64::max } else { f64::min })
    };
    let list = |numbers: Vec<f64>| {
        let named = objectives.iter().zip(numbers).map(|((_, name), number)| format!("{name} {}", rounded(number)));
        named.collect::<Vec<String>>().join(", ")
    };
    let reference = reference.into_iter().enumerate().map(|(place, it)| arm.settings.said(place, it));
    let ideal: Option<Vec<f64>> = objectives.iter().enumerate().map(best).collect();
    let ideal =
        ideal.map(|ideal| format!(" The best of each objective in any front, the ideal point: {}.", list(ideal)));
    Some(format!(
        "Hypervolumes go up to the reference point: {}.{}",
        list(reference.collect()),
        ideal.unwrap_or_default()
    ))
}

/// A note that explains IGD+, if the table has it.
fn about_distances(told: &[Told<'_>]) -> Option<String> {
    told.iter().any(|arm| !arm.distances().is_empty()).then(|| {
        "IGD+: the mean distance from points of the known front to the nearest candidate, in the units of the objectives, counting \
         only objectives in which the candidate is worse (Ishibuchi et al. 2015). Less is better."
            .into()
    })
}

/// The table of archives, if any arm leaves one.
fn archives_table(told: &[Told<'_>]) -> Option<Table> {
    let row = |arm: &Told<'_>| {
        let cells = match arm.settings.regions() {
            0 => arm.settings.axes().iter().map(|axis| axis.cells).product(),
            regions => regions,
        };
        let shares: Vec<f64> = arm.arm.kept.iter().map(|kept| 100.0 * kept / cells as f64).collect();
        let share = estimate(&shares).map_or_else(|| "-".into(), |it| it.percent(it.decimals()));
        let score = arm.settings.worthless().map_or_else(|| "-".into(), |_| text(&arm.arm.qd_score));
        let outside = format!("{}", arm.arm.outside);
        vec![arm.name.to_owned(), score, text(&arm.arm.kept), cells.to_string(), share, outside]
    };
    let of = told.iter().filter(|arm| arm.settings.leaves() == Leaves::Archive);
    let rows: Vec<Vec<String>> = of.map(row).collect();
    let header = ["arm", "QD score", "cells filled", "of", "coverage, %", "candidates outside the grid"];
    (!rows.is_empty()).then(|| Table {
        title: "The archive of a replica: mean ± 95 % interval".into(),
        header: header.map(String::from).to_vec(),
        rows,
    })
}

impl<'a> Told<'a> {
    fn new(config: &'a experiment::Arm, arm: &'a Arm) -> Self {
        let settings = Settings::of(&config.settings);
        let maximised = settings.objectives().first().is_some_and(|(maximised, _)| *maximised);
        let end = |((best, violation), reached): ((&f64, &f64), &f64)| match (*violation, *reached) {
            (broken, _) if broken > 0.0 => Outcome::Broken(broken),
            (_, reached) if reached > 0.0 => Outcome::Reached(reached),
            _ => Outcome::Ended(if maximised { -best } else { *best }),
        };
        let mut ends: Vec<Outcome> = arm.best.iter().zip(&arm.violations).zip(&arm.reached).map(end).collect();
        // A replica whose candidates have all failed has evaluations, but no best candidate.
        ends.resize(arm.evaluations.len(), Outcome::Broken(f64::INFINITY));
        let feasible = arm.best.iter().zip(&arm.violations).filter(|(_, violation)| **violation == 0.0);
        let bests: Vec<f64> = feasible.map(|(best, _)| *best).collect();
        Self {
            name: &config.name,
            infeasible: arm.evaluations.len().saturating_sub(bests.len()),
            curves: Curves::read(&config.name, &settings, &arm.curves, &arm.medians),
            settings,
            arm,
            bests,
            ends,
        }
    }

    /// Replicas that have started.
    fn replicas(&self) -> usize {
        self.arm.replicas.len()
    }

    /// IGD+ of each replica with a front; empty if the best front is not known.
    fn distances(&self) -> &[f64] {
        self.arm.igd_plus.as_deref().unwrap_or_default()
    }

    fn maximised(&self) -> bool {
        self.settings.objectives().first().is_some_and(|(maximised, _)| *maximised)
    }

    /// Whether a value is as good as the target; `None` without a target.
    fn reaches(&self, best: f64) -> Option<bool> {
        let target = self.settings.target_number()?;
        Some(if self.maximised() { best >= target } else { best <= target })
    }

    /// The number of replicas that are as good as the target; `None` without a target.
    fn reached(&self) -> Option<usize> {
        self.settings.target_number()?;
        Some(self.bests.iter().filter(|best| self.reaches(**best) == Some(true)).count())
    }

    /// What the tests compare for this arm. `None` unless all its replicas are finished and each has an outcome, and one
    /// number says which of two replicas is better.
    fn entry(&self) -> Option<Entry<'_>> {
        let complete = self.ends.len() == self.replicas() && self.arm.replicas.iter().all(|replica| replica.finished);
        let objectives = self.settings.objectives().len();
        let greater = |values: &[f64]| values.iter().map(|value| Outcome::Ended(-value)).collect::<Vec<Outcome>>();
        let bests = self.ends.clone();
        let (outcomes, of) = match self.deciding() {
            HYPERVOLUME => (greater(&self.arm.hypervolume), "the hypervolume"),
            QUALITY => (greater(&self.arm.qd_score), "the QD score"),
            KEPT => (greater(&self.arm.kept), "the number of cells filled"),
            _ if objectives > 1 => return None,
            _ => (bests.clone(), ""),
        };
        // The best value of one of several objectives does not measure a front.
        let bests = if objectives == 1 { bests } else { Vec::new() };
        let entry = Entry { name: self.name, settings: &self.settings, outcomes, of, bests };
        (complete && !entry.outcomes.is_empty()).then_some(entry)
    }

    fn deciding(&self) -> usize {
        deciding(&self.settings)
    }

    /// What the noisy searches of this arm saw, and what of it is confirmed.
    fn noisy(&self) -> Option<Noisy<'_>> {
        let Noise { seen, errors, .. } = self.arm.noise.as_ref()?;
        Some(Noisy { name: self.name, settings: &self.settings, seen, confirmed: &self.bests, errors })
    }

    fn row(&self) -> Vec<String> {
        let failed = |end: &Outcome| matches!(end, Outcome::Broken(by) if by.is_infinite());
        let infeasible = || match self.infeasible {
            0 => "-".to_owned(),
            _ if self.ends.iter().all(failed) => "none has a value".into(),
            _ => "none is feasible".into(),
        };
        let mean = estimate(&self.bests).map_or_else(infeasible, |estimate| match estimate.half_width {
            half_width if estimate.mean.abs() >= LONG => {
                short(estimate.mean) + &half_width.map_or_else(String::new, |it| format!(" ± {}", short(it)))
            }
            // With decimals, small means would show only zeros.
            Some(half_width) if estimate.mean.abs() < 1e-3 && estimate.mean != 0.0 => {
                format!("{} ± {}", short(estimate.mean), short(half_width))
            }
            _ => estimate.text(estimate.decimals()),
        });
        let ends = |pick: fn(f64, f64) -> f64| self.bests.iter().copied().reduce(pick);
        let range = ends(f64::min).zip(ends(f64::max)).map_or_else(
            || "-".into(),
            |(low, high)| match low == high {
                true => short(low),
                false => format!("{} to {}", short(low), short(high)),
            },
        );
        let quartile = |p: f64| short(quantile(&self.bests, p));
        let median = match self.bests.is_empty() {
            true => "-".into(),
            false => format!("{} ({} to {})", quartile(0.5), quartile(0.25), quartile(0.75)),
        };
        let evaluations =
            estimate(&self.arm.evaluations).map_or_else(|| "-".into(), |estimate| format!("{:.0}", estimate.mean));
        let reached = self.reached().map_or_else(|| "-".into(), |reached| format!("{reached} of {}", self.replicas()));
        let replicas = match self.bests.len() {
            feasible if self.infeasible > 0 => format!("{feasible} of {}", self.replicas()),
            _ => self.replicas().to_string(),
        };
        vec![
            self.name.to_owned(),
            replicas,
            mean,
            median,
            range,
            evaluations,
            reached,
            self.runtime().unwrap_or_else(|| "-".into()),
        ]
    }

    /// The expected runtime of the arm, from the evaluations that each replica took to reach the target, or all its
    /// evaluations if it missed it.
    fn runtime(&self) -> Option<String> {
        let ends = self.arm.evaluations.iter().zip(&self.arm.reached);
        let pair = |(all, first): (&f64, &f64)| if *first > 0.0 { (1.0, *first) } else { (0.0, *all) };
        expected_runtime(&ends.map(pair).collect::<Vec<(f64, f64)>>()).filter(|_| self.reached() > Some(0))
    }

    fn summary(&self) -> Value {
        let mean = estimate(&self.bests).map(|estimate| {
            let [low, high] = estimate.ends();
            json!({"mean": estimate.mean, "low": low, "high": high})
        });
        json!({
            "best": mean,
            "reached": self.reached(),
            "feasible": self.bests.len(),
            "failures": self.arm.failures,
            "compared": self.compared(),
            "without_solution": self.without_solution(),
        })
    }

    /// Which column of the last rows ranks the replicas, and for which problem. Arms of other runs with the same answer can
    /// be compared with this one. `None` with a target, because then it matters how soon it is reached.
    fn compared(&self) -> Option<Value> {
        self.entry().filter(|_| self.settings.target_number().is_none() && self.infeasible == 0)?;
        let by = match self.deciding() {
            HYPERVOLUME => "hypervolume",
            QUALITY => "qd_score",
            KEPT => "kept",
            _ => "best",
        };
        Some(json!({"by": by, "of": self.settings.problem_hash().to_string()}))
    }

    fn without_solution(&self) -> Option<String> {
        let (infeasible, all) = (self.infeasible, self.replicas());
        (infeasible > 0).then(|| format!("{infeasible} of {all} replicas found no feasible candidate"))
    }

    fn estimated_hypervolume(&self) -> Option<String> {
        let objectives = self.settings.reference_point()?.len();
        let most = self.arm.kept.iter().copied().fold(0.0, f64::max);
        (!is_exact(most as usize, objectives)).then(|| {
            format!(
                "Arm {:?}: with {objectives} objectives and up to {most} candidates, hypervolumes are estimated from random points, with \
                 a standard error of at most 0.2 % (0.8 % with 4,096 candidates or more) of the box from the least of each objective to \
                 the reference point.",
                self.name
            )
        })
    }

    /// Whether the candidates have several objectives but no hypervolume, because there is no reference point.
    fn lacks_reference(&self) -> bool {
        let objectives = self.settings.objectives().len();
        objectives > 1 && self.settings.reference_point().is_none()
    }

    /// A note if all evaluations belong to a first batch, which an algorithm draws before it has learnt anything.
    fn learnt_nothing(&self) -> Option<String> {
        let settings = &self.settings;
        let searches = settings.algorithm != BASELINE && settings.window == 0;
        (searches && settings.algorithm.most(&settings.given()).batches == 1).then(|| {
            format!(
                "Arm {:?}: the {} of a replica are no more than its first batch, so it has learnt nothing from them: set more \
                 `evaluations`, or a smaller `population`.",
                self.name,
                counted(settings.evaluations as usize, "evaluation")
            )
        })
    }

    fn failures(&self) -> Option<String> {
        let count = self.arm.failures as usize;
        (count > 0).then(|| {
            format!("Arm {:?}: {} had no value, and counted as the worst.", self.name, counted(count, "candidate"))
        })
    }
}

/// The expected runtime (Hansen et al. 2022): the evaluations needed to reach the target once, including failed attempts,
/// with its 95 % interval by the bootstrap over replicas. The interval is that of the rate at which the target is reached. If
/// no replica of a resample reaches it, the rate is 0 and the upper end is "never". `ends` has for each replica 1 or 0, for
/// reaching the target or not, and the evaluations that it spent.
fn expected_runtime(ends: &[(f64, f64)]) -> Option<String> {
    let (reached, spent) = ends.iter().fold((0.0, 0.0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
    let expected = (reached > 0.0).then_some(spent / reached)?;
    let decimals = usize::from(expected < 1000.0);
    let evaluations = |rate: f64| if rate > 0.0 { format!("{:.decimals$}", 1.0 / rate) } else { "never".into() };
    let interval = odds_interval(ends, Stream::root(0).text("expected runtime"));
    let interval = interval.map(|(slow, fast)| format!(" ({} to {})", evaluations(fast), evaluations(slow)));
    Some(format!("{expected:.decimals$}{}", interval.unwrap_or_default()))
}

/// A note on how to measure and test arms with several objectives.
fn missing_reference() -> String {
    "Without a reference point there is no hypervolume, and arms are not tested: set `reference` to a number for each objective, in the \
     objective's own unit, that each candidate worth keeping is better than."
        .into()
}

/// A number in few digits: whole numbers without decimals, others with at least five significant digits or an exponent.
fn short(number: f64) -> String {
    let size = number.abs();
    match size {
        // This also matches -0.0, which equals 0.0.
        0.0 => "0".into(),
        _ if size < 1e6 && size.fract() == 0.0 => format!("{number:.0}"),
        1e3..1e6 => format!("{number:.1}"),
        1e1..1e3 => format!("{number:.3}"),
        1e-3..1e1 => format!("{number:.4}"),
        _ => format!("{number:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::expected_runtime;
    use evoxo_common::rng::{Stream, unit};

    #[test]
    fn an_expected_runtime_has_its_interval() {
        let text = |ends: &[(f64, f64)]| expected_runtime(ends).unwrap_or_default();
        assert_eq!(text(&[(1.0, 78.0); 12]), "78.0 (78.0 to 78.0)");
        assert_eq!(text(&[(1.0, 2500.0); 3]), "2500", "too few replicas for an interval");
        assert_eq!(text(&[(0.0, 500.0); 12]), "");
        // One of twelve replicas reached it: a third of all resamples have none that did.
        let seldom: Vec<(f64, f64)> = (0..12).map(|it| if it == 0 { (1.0, 100.0) } else { (0.0, 500.0) }).collect();
        assert!(text(&seldom).starts_with("5600 (") && text(&seldom).ends_with(" to never)"), "{}", text(&seldom));
    }

    /// If searches find the target with the same probability in each evaluation, the interval covers the true runtime about
    /// as often as it claims.
    #[test]
    fn the_interval_covers() {
        let (truth, most) = (200.0, 400.0);
        let held = |run: u64| {
            let mut rng = Stream::root(run).rng();
            let mut replica = || {
                let first = 1 + (1..400).take_while(|_| unit(&mut rng) > 1.0 / truth).count();
                if (first as f64) < most { (1.0, first as f64) } else { (0.0, most) }
            };
            let ends: Vec<(f64, f64)> = (0..20).map(|_| replica()).collect();
            let text = expected_runtime(&ends).unwrap_or_default();
            let ends = text.split_once(" (").map(|(_, ends)| ends.trim_end_matches(')')).unwrap_or_default();
            let (low, high) = ends.split_once(" to ").expect("twenty replicas have an interval");
            let number = |text: &str| text.parse().unwrap_or(f64::INFINITY);
            number(low) <= truth && truth <= number(high)
        };
        let count = (0..200).filter(|run| held(*run)).count();
        // A bootstrap of twenty replicas covers slightly less often than 95 %.
        assert!((176..=200).contains(&count), "{count} of 200");
    }
}
