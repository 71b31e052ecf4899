//! Whether two finished runs differ in their primary metric, as far as a test can say: the test by which a report tells
//! its best arm from the next, and only where it applies.
//!
//! Pure: what was measured of two runs comes in, JSON goes out.

use evoxo_common::{
    conclusion::{last_values, own_words, state},
    experiment::{Config, Kind, Replica},
    stats::{Estimate, Sample, estimate, holm, t_test},
};
use serde_json::{Value, json};

/// What of a run is compared with another one.
#[derive(Debug)]
pub(super) struct Measured {
    kind: &'static Kind,
    seed: u64,
    /// "unfinished", "finished" or "in doubt".
    state: String,
    /// Whether arms of this run can be told apart by their primary metric.
    comparable: bool,
    arms: Vec<Arm>,
}

/// The name of an arm, and the primary metric of its replicas in their last rows.
type Arm = (String, Vec<f64>);

impl Measured {
    /// Of these replicas, whose `result.json` says this.
    pub(super) fn of(config: &Config, result: &Value, replicas: &[Replica]) -> Self {
        let names = config.arms.iter().map(|arm| arm.name.clone());
        Self {
            kind: config.kind,
            seed: config.seed,
            state: state(result).to_owned(),
            // As for a report's conclusion: elsewhere the metric may mean something else in each arm, or not be what counts.
            comparable: config.kind.compare.is_none() && own_words(config, result).is_none(),
            arms: names.zip(last_values(config, replicas)).collect(),
        }
    }
}

/// The tests of arms that both runs have, by name; or of the only arms of both. `why` says why there is none.
pub(super) fn compare(one: &Measured, two: &Measured) -> Value {
    let unfinished = [one, two].iter().any(|run| run.state == "unfinished");
    let tests = if untested(one, two).is_some() { Vec::new() } else { tests(one, two) };
    let none = "no arm of both runs has two replicas in each, and one replica says nothing about chance".to_owned();
    let why = untested(one, two).or_else(|| tests.is_empty().then_some(none));
    let column = &one.kind.columns[one.kind.primary_metric];
    json!({
        "state": if unfinished { "unfinished" } else { "finished" },
        "metric": column.name,
        "doc": column.doc,
        "why": why,
        "tests": tests,
    })
}

/// Why the two runs are not tested, if so.
fn untested(one: &Measured, two: &Measured) -> Option<String> {
    let is = |state: &str| [one, two].iter().any(|run| run.state == state);
    let why = if one.kind != two.kind {
        "the runs are of different experiments, which have no metric in common"
    } else if !one.comparable || !two.comparable {
        "in this experiment the primary metric alone does not tell which arm is better"
    } else if is("unfinished") {
        "the ends of all replicas are compared, so both runs must be finished"
    } else if is("in doubt") {
        "a run whose results are in doubt is not compared"
    } else if one.seed == two.seed {
        return Some(format!(
            "both runs have the seed {}, so replicas of the same number may have used the same random numbers, and the \
             test needs independent ones: give one of the runs another seed",
            one.seed
        ));
    } else {
        return None;
    };
    Some(why.into())
}

/// A test for each pair of arms that have two replicas, corrected for their number.
fn tests(one: &Measured, two: &Measured) -> Vec<Value> {
    let only = one.arms.len() == 1 && two.arms.len() == 1;
    let pairs = one.arms.iter().flat_map(|first| {
        let same = two.arms.iter().filter(move |second| only || second.0 == first.0);
        same.map(move |second| (first, second))
    });
    let test = |((name, values), (_, others)): (&Arm, &Arm)| {
        let [first, second] = [estimate(values)?, estimate(others)?];
        let difference = t_test(Sample::of(others)?, Sample::of(values)?).filter(|test| test.p.is_finite())?;
        let side =
            |it: Estimate, count: usize| json!({"mean": it.mean, "half_width": it.half_width, "replicas": count});
        let json = json!({
            "arm": name,
            "one": side(first, values.len()),
            "two": side(second, others.len()),
            "difference": {"mean": difference.mean, "half_width": difference.half_width},
        });
        Some((json, difference.p))
    };
    let (mut tests, probabilities): (Vec<Value>, Vec<f64>) = pairs.filter_map(test).unzip();
    for (test, p) in tests.iter_mut().zip(holm(&probabilities)) {
        test["p"] = p.into();
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, arms: &[(&str, &[f64])]) -> Measured {
        let registry = evoxo_experiments::registry();
        let arms = arms.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
        let kind = registry.kind("invincible").unwrap();
        Measured { kind, seed, state: "finished".into(), comparable: true, arms }
    }

    const LOW: [f64; 3] = [1.0, 1.1, 1.2];
    const HIGH: [f64; 3] = [5.0, 5.1, 5.2];

    #[test]
    fn arms_of_the_same_name_are_tested_and_corrected_for_their_number() {
        let one = run(1, &[("a", &LOW), ("b", &LOW), ("only here", &LOW), ("short", &[1.0])]);
        let two = run(2, &[("short", &HIGH), ("b", &[1.0, 1.2, 1.4]), ("a", &HIGH)]);
        let told = compare(&one, &two);
        let tests = told["tests"].as_array().unwrap();
        assert_eq!(tests.iter().map(|test| test["arm"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"], "{told}");
        assert_eq!(
            (&told["why"], &told["metric"], &told["state"]),
            (&Value::Null, &json!("worth"), &json!("finished"))
        );
        let alone =
            |values: &[f64], others: &[f64]| t_test(Sample::of(others).unwrap(), Sample::of(values).unwrap()).unwrap();
        let (a, b) = (alone(&LOW, &HIGH), alone(&LOW, &[1.0, 1.2, 1.4]));
        assert_eq!([&tests[0]["p"], &tests[1]["p"]], [&json!(2.0 * a.p), &json!(b.p)]);
        assert_eq!(tests[0]["difference"], json!({"mean": a.mean, "half_width": a.half_width}));
        assert!(a.mean > 3.9 && tests[0]["one"]["replicas"] == 3, "{told}");
        // The other way round the difference has the other sign.
        assert_eq!(compare(&two, &one)["tests"][1]["difference"]["mean"], json!(-a.mean));
    }

    #[test]
    fn the_only_arms_of_two_runs_are_tested_whatever_their_names() {
        let told = compare(&run(1, &[("main", &LOW)]), &run(2, &[("other", &HIGH)]));
        assert_eq!(told["tests"][0]["arm"], "main", "{told}");
    }

    #[test]
    fn where_the_test_does_not_apply_there_is_none_and_a_reason() {
        let good = || run(1, &[("a", &LOW)]);
        let other = || run(2, &[("a", &HIGH)]);
        let dispatch = evoxo_experiments::registry().kind("dispatch").unwrap();
        for (one, two, why) in [
            (good(), run(1, &[("a", &HIGH)]), "both runs have the seed 1, so"),
            (good(), Measured { kind: dispatch, ..other() }, "the runs are of different experiments"),
            (good(), Measured { state: "unfinished".into(), ..other() }, "the ends of all replicas are compared"),
            (Measured { state: "in doubt".into(), ..good() }, other(), "a run whose results are in doubt"),
            (Measured { comparable: false, ..good() }, other(), "in this experiment the primary metric alone"),
            (good(), run(2, &[("a", &[1.0])]), "no arm of both runs has two replicas"),
            (good(), run(2, &[("b", &HIGH), ("c", &HIGH)]), "no arm of both runs has two replicas"),
        ] {
            for told in [compare(&one, &two), compare(&two, &one)] {
                assert!(told["why"].as_str().unwrap().starts_with(why), "{told}");
                assert_eq!(told["tests"], json!([]));
            }
        }
    }
}
