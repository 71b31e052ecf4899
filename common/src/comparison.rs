//! Whether two finished runs differ in their primary metric, as far as a test can say. The test is the one by which a report
//! tells its best arm from the next (except for `evolve`, whose reports rank replicas). It is used only where it applies.
//!
//! Replicas of the same number in two runs with the same seed may use the same random numbers: those of a fork and of the run
//! from which it forks have the same past. Then pairs of replicas are tested.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    conclusion::state,
    experiment::{Config, Kind, Replica},
    headline::{Entry, Question, difference},
    stats::{Estimate, holm},
};

/// The values of a run that are compared with another run's.
#[derive(Debug)]
pub struct Measured {
    kind: &'static Kind,
    seed: u64,
    /// "unfinished", "finished" or "in doubt".
    state: String,
    /// The column whose last values tell this run's arms apart, if it is the same for all arms.
    column: Option<usize>,
    arms: Vec<Arm>,
}

/// An arm of a run.
#[derive(Debug)]
struct Arm {
    name: String,
    /// What the arm's values measure, if that may differ between arms. Only arms with the same text are compared.
    of: String,
    /// The value of the column in each replica's last row.
    values: Entry,
}

impl Measured {
    /// The values of these replicas; `result` is the run's `result.json`.
    #[must_use]
    pub fn of_replicas(config: &Config, result: &Value, replicas: &[Replica]) -> Self {
        let last = |arm: &str, column: usize| {
            let of_arm = replicas.iter().filter(|replica| replica.arm() == arm);
            of_arm.filter_map(|replica| Some((replica.index(), replica.history().last()?[column]))).collect()
        };
        Self::of(config, result, last)
    }

    /// The values of a run with this `result.json`. `last` gives the value of a column in the last row of each replica of an
    /// arm, with the replica's number.
    #[must_use]
    pub fn of(config: &Config, result: &Value, last: impl Fn(&str, usize) -> Vec<(u32, f64)>) -> Self {
        let said = |arm: &str, key: &str| result["summary"][arm]["compared"][key].as_str();
        if config.kind.ranking.is_none() {
            return Self::of_headline(config, result);
        }
        let columns: Option<BTreeSet<usize>> = {
            // The metric may mean something else in each arm. The kind says by which column an arm can be compared, and with
            // which arms.
            let column = |name: &str| config.kind.columns.iter().position(|column| column.name == name);
            config.arms.iter().map(|arm| column(said(&arm.name, "by")?)).collect()
        };
        let column = columns.filter(|columns| columns.len() == 1).and_then(|columns| columns.first().copied());
        let arm = |name: &str| Arm {
            name: name.to_owned(),
            of: said(name, "of").unwrap_or_default().to_owned(),
            values: Entry { arm: name.to_owned(), values: column.map_or(Vec::new(), |column| last(name, column)) },
        };
        Self {
            kind: config.kind,
            seed: config.seed,
            state: state(result).to_owned(),
            column,
            arms: config.arms.iter().map(|it| arm(&it.name)).collect(),
        }
    }
}

impl Measured {
    /// The figures from which the kind's headline is made. Only arms with the same figure are compared.
    fn of_headline(config: &Config, result: &Value) -> Self {
        let arms = result["arms"].as_array().map_or(&[][..], Vec::as_slice);
        let questions = match arms.len() == config.arms.len() {
            true => (config.kind.headline)(config, arms).questions,
            false => Vec::new(),
        };
        let arm = |question: &Question, entry: &Entry| Arm {
            name: entry.arm.clone(),
            of: question.figure.clone(),
            values: entry.clone(),
        };
        let measured = questions.iter().flat_map(|question| question.arms.iter().map(move |it| arm(question, it)));
        let arms: Vec<Arm> = measured.collect();
        Self {
            kind: config.kind,
            seed: config.seed,
            state: state(result).to_owned(),
            column: (!arms.is_empty()).then_some(config.kind.primary_metric),
            arms,
        }
    }
}

/// Tests the arms that both runs have, by name, or the only arm of each. If there are no tests, `why` says why.
#[must_use]
pub fn compare(one: &Measured, two: &Measured) -> Value {
    let unfinished = [one, two].iter().any(|run| run.state == "unfinished");
    let tests = if untested(one, two).is_some() { Vec::new() } else { tests(one, two) };
    let none = || {
        let mut alike = pairs(one, two).map(|(first, second)| first.of == second.of).peekable();
        if alike.peek().is_none() {
            "the runs have no arm of the same name"
        } else if !alike.any(|same| same) && one.kind.ranking.is_none() {
            "no common arm is measured by the same figure in both runs"
        } else if !pairs(one, two).any(|(first, second)| first.of == second.of) {
            "no common arm searches the same problem in both runs"
        } else {
            "no common arm has two replicas in both runs, and one replica says nothing about chance"
        }
        .to_owned()
    };
    let why = untested(one, two).or_else(|| tests.is_empty().then(none));
    let column = &one.kind.columns[one.column.unwrap_or(one.kind.primary_metric)];
    json!({
        "state": if unfinished { "unfinished" } else { "finished" },
        "metric": column.name,
        "doc": column.doc,
        "why": why,
        "test": if paired(one, two) { PAIRED } else { "Welch's test" },
        "tests": tests,
    })
}

/// Why the two runs cannot be tested; `None` if they can.
fn untested(one: &Measured, two: &Measured) -> Option<String> {
    let is = |state: &str| [one, two].iter().any(|run| run.state == state);
    let why = if one.kind != two.kind {
        "the runs are of different experiments, which have no metric in common"
    } else if one.column.is_none() || two.column.is_none() {
        match one.kind.ranking {
            None => "in this experiment the primary metric alone does not tell which arm is better",
            Some(_) => {
                "no single metric ranks the replicas in all arms of both runs, for example because of a target, \
                 several objectives, or replicas without a feasible candidate"
            }
        }
    } else if one.column != two.column {
        "the metric that ranks replicas differs between the runs"
    } else if is("unfinished") {
        "the final values of all replicas are compared, so both runs must be finished"
    } else if is("in doubt") {
        "a run whose results are in doubt is not compared"
    } else {
        return None;
    };
    Some(why.into())
}

const PAIRED: &str =
    "a paired t-test, because both runs have the same seed, so replicas of the same number may share random numbers";

/// Whether replicas of the same number are compared.
fn paired(one: &Measured, two: &Measured) -> bool {
    one.seed == two.seed
}

/// Pairs of arms with the same name, or the only arm of each run.
fn pairs<'a>(one: &'a Measured, two: &'a Measured) -> impl Iterator<Item = (&'a Arm, &'a Arm)> {
    let only = one.arms.len() == 1 && two.arms.len() == 1;
    one.arms.iter().flat_map(move |first| {
        let same = two.arms.iter().filter(move |second| only || second.name == first.name);
        same.map(move |second| (first, second))
    })
}

/// A test for each pair of arms with at least two replicas each, corrected for the number of tests.
fn tests(one: &Measured, two: &Measured) -> Vec<Value> {
    let in_pairs = paired(one, two);
    let test = |(Arm { name, values, .. }, Arm { values: others, .. }): (&Arm, &Arm)| {
        let [first, second] = [values.estimate()?, others.estimate()?];
        let difference = difference([others, values], in_pairs).filter(|test| test.p.is_finite())?;
        let side =
            |it: Estimate, count: usize| json!({"mean": it.mean, "half_width": it.half_width, "replicas": count});
        let json = json!({
            "arm": name,
            "one": side(first, values.values.len()),
            "two": side(second, others.values.len()),
            "difference": {"mean": difference.mean, "half_width": difference.half_width},
        });
        Some((json, difference.p))
    };
    let alike = pairs(one, two).filter(|(first, second)| first.of == second.of);
    let (mut tests, probabilities): (Vec<Value>, Vec<f64>) = alike.filter_map(test).unzip();
    for (test, p) in tests.iter_mut().zip(holm(&probabilities)) {
        test["p"] = p.into();
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        stats::{Sample, paired_t_test, t_test},
        testing,
    };

    fn run(seed: u64, arms: &[(&str, &[f64])]) -> Measured {
        let arm = |(name, values): &(&str, &[f64])| Arm {
            name: (*name).to_owned(),
            of: String::new(),
            values: Entry { arm: (*name).to_owned(), values: (0..).zip(values.iter().copied()).collect() },
        };
        let kind = testing::registry().kind("sums").unwrap();
        let (column, arms) = (Some(kind.primary_metric), arms.iter().map(arm).collect());
        Measured { kind, seed, state: "finished".into(), column, arms }
    }

    const LOW: [f64; 3] = [1.0, 1.1, 1.2];
    const HIGH: [f64; 3] = [5.0, 5.1, 5.2];

    #[test]
    fn arms_of_the_same_name_are_tested_with_correction() {
        let one = run(1, &[("a", &LOW), ("b", &LOW), ("only here", &LOW), ("short", &[1.0])]);
        let two = run(2, &[("short", &HIGH), ("b", &[1.0, 1.2, 1.4]), ("a", &HIGH)]);
        let told = compare(&one, &two);
        let tests = told["tests"].as_array().unwrap();
        assert_eq!(tests.iter().map(|test| test["arm"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"], "{told}");
        assert_eq!(
            (&told["why"], &told["metric"], &told["state"]),
            (&Value::Null, &json!(one.kind.columns[one.kind.primary_metric].name), &json!("finished"))
        );
        let alone =
            |values: &[f64], others: &[f64]| t_test(Sample::of(others).unwrap(), Sample::of(values).unwrap()).unwrap();
        let (a, b) = (alone(&LOW, &HIGH), alone(&LOW, &[1.0, 1.2, 1.4]));
        assert_eq!([&tests[0]["p"], &tests[1]["p"]], [&json!(2.0 * a.p), &json!(b.p)]);
        assert_eq!(tests[0]["difference"], json!({"mean": a.mean, "half_width": a.half_width}));
        assert!(a.mean > 3.9 && tests[0]["one"]["replicas"] == 3, "{told}");
        // With the runs exchanged, the difference changes its sign.
        assert_eq!(compare(&two, &one)["tests"][1]["difference"]["mean"], json!(-a.mean));
    }

    #[test]
    fn the_only_arms_of_two_runs_are_tested_whatever_their_names() {
        let told = compare(&run(1, &[("main", &LOW)]), &run(2, &[("other", &HIGH)]));
        assert_eq!(told["tests"][0]["arm"], "main", "{told}");
    }

    #[test]
    fn an_inapplicable_test_is_replaced_by_a_reason() {
        let good = || run(1, &[("a", &LOW)]);
        let other = || run(2, &[("a", &HIGH)]);
        for (one, two, why) in [
            (
                good(),
                Measured { state: "unfinished".into(), ..other() },
                "the final values of all replicas are compared",
            ),
            (Measured { state: "in doubt".into(), ..good() }, other(), "a run whose results are in doubt"),
            (Measured { column: None, ..good() }, other(), "in this experiment the primary metric alone"),
            (good(), run(2, &[("a", &[1.0])]), "no common arm has two replicas"),
            (good(), run(2, &[("b", &HIGH), ("c", &HIGH)]), "the runs have no arm of the same name"),
        ] {
            for told in [compare(&one, &two), compare(&two, &one)] {
                assert!(told["why"].as_str().unwrap().starts_with(why), "{told}");
                assert_eq!(told["tests"], json!([]));
            }
        }
    }

    /// Two futures of one past differ by less than two runs with other seeds.
    #[test]
    fn replicas_of_one_seed_are_compared_in_pairs() {
        let later: Vec<f64> = LOW.iter().zip([0.11, 0.1, 0.09]).map(|(low, more)| low + more).collect();
        let (one, two) = (run(1, &[("a", &LOW)]), run(1, &[("a", &later)]));
        let told = compare(&one, &two);
        let test = paired_t_test(&[later[0] - LOW[0], later[1] - LOW[1], later[2] - LOW[2]]).unwrap();
        assert_eq!(told["tests"][0]["p"], json!(test.p), "{told}");
        assert!(test.p < 0.01 && told["test"].as_str().unwrap().starts_with("a paired t-test"), "{told}");
        let other = compare(&one, &run(2, &[("a", &later)]));
        assert!(other["tests"][0]["p"].as_f64() > Some(0.2) && other["test"] == "Welch's test", "{other}");
        // A replica that is only in one run has no partner.
        let more = run(1, &[("a", &[LOW[0] + 0.11, LOW[1] + 0.1, LOW[2] + 0.09, 90.0])]);
        assert_eq!(compare(&one, &more)["tests"][0]["difference"], told["tests"][0]["difference"]);
    }
}
