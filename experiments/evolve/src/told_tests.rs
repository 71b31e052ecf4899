//! Tests of what reports say about searches, whatever their budgets and batches, and about archives.

use serde_json::{Value, json};

use super::{
    pareto::hypervolume,
    rows::{BEST, EVALUATIONS, HYPERVOLUME, KEPT, OUTSIDE, QUALITY, REACHED},
    settings::Settings,
};
use crate::testing::{parse, run};

/// The rows of a longer search begin with those of a shorter one, whatever the algorithm and its batches, except for the last
/// row of the shorter one, which has no counterpart in the longer one.
#[test]
fn a_longer_search_has_the_rows_of_a_shorter_one() {
    for settings in [
        "algorithm = \"random\"\npopulation = 37",
        "algorithm = \"ga\"\npopulation = 20",
        "algorithm = \"cma-es\"",
        "algorithm = \"openai-es\"\npopulation = 30",
        "population = 20\nwindow = 7",
    ] {
        let rows = |evaluations: u64| {
            let text = format!(
                "experiment = \"evolve\"\nreplicas = 1\n[settings]\nlength = 3\nevaluations = {evaluations}\n{settings}\n"
            );
            run(&parse(&text))[0].history().to_vec()
        };
        let (short, long) = (rows(700), rows(2000));
        // The batch that the short search cuts off ends later in the long one, so only its median may differ.
        let told = |row: &Vec<f64>| [row[EVALUATIONS], row[BEST]];
        let same = short.len() - 1;
        assert_eq!(
            short[..same].iter().map(told).collect::<Vec<_>>(),
            long[..same].iter().map(told).collect::<Vec<_>>(),
            "{settings}"
        );
        assert!(short.is_sorted_by(|one, two| one[EVALUATIONS] < two[EVALUATIONS]), "{settings}");
        assert!(long.len() > 110 && long.len() < 190, "{}", long.len());
    }
}

/// Uniform search is the same search in batches of 1 and of 1000, and the evaluations that it takes to reach a target are
/// counted by candidate.
#[test]
fn statistics_do_not_depend_on_batches() {
    let config = parse(
        "experiment = \"evolve\"\nseed = 3\nreplicas = 400\n[settings]\nproblem = \"sphere\"\nlength = 2\nalgorithm = \"random\"\n\
         evaluations = 2000\ntarget = \"0.5\"\n[arms.by-one]\npopulation = 1\n[arms.by-thousand]\npopulation = 1000\n",
    );
    let replicas = run(&config);
    let report = config.report(&replicas);
    for row in &report.tables[0].rows {
        let runtime: f64 = row[7].split(" (").next().unwrap().parse().unwrap();
        // The expected number is 100 / (0.5 pi) = 63.7; the mean of 400 has a standard deviation of 3.2.
        assert!((63.7 - runtime).abs() < 10.0, "{:?}", report.tables[0].rows);
    }
    assert!(report.json["contests"][0]["p"].as_f64().unwrap() > 0.05, "{}", report.json["contests"]);
    let whole = replicas[400..].iter().map(|replica| replica.history().last().unwrap());
    assert!(whole.clone().all(|row| row[EVALUATIONS] == 1000.0 && row[REACHED] > 0.0 && row[REACHED] < 1000.0));
    // The curve of an arm goes on with the last values of its ended replicas, and x never decreases.
    let xs = report.json["arms"][1]["curves"]["best"]["x"].as_array().unwrap();
    assert!(xs.is_sorted_by(|one, two| one.as_f64() < two.as_f64()));
}

/// Arms of MAP-Elites are compared by the QD score, or by their cells if no value is known to be worth nothing. They are
/// compared with another algorithm by their best candidates.
#[test]
fn archives_are_compared_by_their_purpose() {
    let of = |more: &str| {
        let config = parse(&format!(
            "experiment = \"evolve\"\nreplicas = 5\n[settings]\nproblem = \"arm\"\nlength = 5\nalgorithm = \"map-elites\"\n\
             evaluations = 600\n{more}"
        ));
        let replicas = run(&config);
        let report = config.report(&replicas);
        let decides: Vec<String> =
            report.json["contests"].as_array().unwrap().iter().map(|it| it["of"].to_string()).collect();
        let sum: f64 = replicas[0].history().last().unwrap()[QUALITY];
        let elites = replicas[0].population();
        let worth = |card: &evoxo_common::card::Card| {
            let card: Value = serde_json::from_str(&card.write("").0).unwrap();
            10.0 - card["objectives"]["min variance"].as_f64().unwrap()
        };
        let kept = replicas[0].history().last().unwrap()[KEPT];
        assert!((elites.iter().map(worth).sum::<f64>() - sum).abs() < 1e-9 && elites.len() as f64 == kept);
        (decides, report.tables[0].to_string(), report.figures[0].name.clone())
    };
    let (decides, table, figure) = of("[arms.wide]\niso = 0.1\n[arms.narrow]\niso = 0.001\n");
    assert_eq!((decides[0].as_str(), figure.as_str()), ("\"the QD score\"", "QD-score"));
    assert!(table.contains("QD score") && table.contains("400"), "{table}");
    let (decides, ..) = of("[arms.elites]\n[arms.random]\nalgorithm = \"random\"\n");
    assert_eq!(decides, ["\"the best value\""]);
    let config = parse(
        "experiment = \"evolve\"\nreplicas = 1\n[settings]\nproblem = \"arm\"\nalgorithm = \"map-elites\"\nevaluations = 200\n\
         grid = [{ low = 0, high = 1 }, { low = -1, high = 1 }]\n",
    );
    let replicas = run(&config);
    let outside = replicas[0].history().last().unwrap()[OUTSIDE];
    assert!(outside > 20.0, "half of the arms point to the left: {outside}");
    assert!(config.report(&replicas).tables[0].to_string().contains(&format!("  {outside}\n")));
}

/// Random search is also the baseline with several objectives, by the hypervolume of as many candidates as nsga2 keeps.
#[test]
fn random_search_has_a_front() {
    let settings = "problem = \"zdt1\"\nalgorithm = \"nsga2\"\nlength = 4\nevaluations = 1000\npopulation = 20\n";
    let config = parse(&format!("experiment = \"evolve\"\nreplicas = 6\n[settings]\n{settings}")).completed(true);
    let replicas = run(&config);
    let report = config.report(&replicas);
    let contest = &report.json["contests"][0];
    assert_eq!((&contest["better"], &contest["worse"]), (&json!("main"), &json!("random search")));
    assert!(report.tables.iter().any(|table| table.title.starts_with("The candidates kept") && table.rows.len() == 2));
    assert_eq!(report.figures.iter().find(|it| it.name == "front").map(|it| it.series.len()), Some(2));
    for replica in &replicas[6..] {
        let front = replica.sheet().unwrap();
        let number = |text: &String| text.parse().unwrap();
        let points: Vec<Vec<f64>> = front.rows.iter().map(|row| row[..2].iter().map(number).collect()).collect();
        let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let volume = hypervolume(&points, &Settings::of(&config.arms[1].settings).reference_point().unwrap());
        let row = replica.history().last().unwrap();
        assert!((row[HYPERVOLUME] - volume).abs() < 1e-12 && volume > 0.0, "{volume} {row:?}");
        assert!(row[KEPT] == 20.0 && points.len() <= 20 && front.name == "front");
    }
}

/// How soon precisions are reached is known exactly and does not depend on the size of batches: random search draws the same
/// candidates with any.
#[test]
fn runtimes_do_not_depend_on_batches() {
    let of = |population: u32| {
        let config = parse(&format!(
            "experiment = \"evolve\"\nreplicas = 3\n[settings]\nproblem = \"sphere\"\nlength = 2\nalgorithm = \"random\"\n\
             evaluations = 2000\npopulation = {population}\n"
        ));
        let replicas = run(&config);
        let moments = |replica: &evoxo_common::experiment::Replica| -> Vec<(f64, f64)> {
            replica.history().iter().map(|row| (row[0], row[1])).collect()
        };
        (config.report(&replicas).json["arms"][0]["runtimes"].clone(), replicas.iter().map(moments).collect::<Vec<_>>())
    };
    let (one, many) = (of(1), of(1000));
    assert_eq!(one, many);
    // Between rows there is no new best that is ten times better than the one before.
    let at: Vec<f64> = one.1[0].iter().map(|(evaluations, _)| *evaluations).collect();
    assert!(at.iter().any(|at| *at > 64.0 && at % 4.0 != 0.0), "rows at targets: {at:?}");
}

/// A front has its distance from known points, in the table and in the result.
#[test]
fn known_fronts_are_reported() {
    let text = |more: &str| {
        format!(
            "experiment = \"evolve\"\nreplicas = 3\n[settings]\nproblem = \"zdt1\"\nlength = 4\nalgorithm = \"nsga2\"\n\
             evaluations = 2000\npopulation = 20\n{more}"
        )
    };
    let config = parse(&text(""));
    let replicas = run(&config);
    let report = config.report(&replicas);
    let distances: Vec<f64> =
        report.json["arms"][0]["igd_plus"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(distances.len() == 3 && distances.iter().all(|it| *it > 0.0 && *it < 0.2), "{distances:?}");
    assert!(report.tables.iter().any(|table| table.header.last().is_some_and(|it| it == "IGD+")));
    assert!(report.notes.iter().any(|note| note.starts_with("IGD+")));
    let reference = report.notes.iter().find(|note| note.starts_with("Hypervolumes go up to")).unwrap();
    assert!(reference.contains("reference point: f1 1.1, f2 1.1. The best of each objective"), "{reference}");
    assert_eq!(
        (&report.json["arms"][0]["qd_score"], report.json["arms"][0]["hypervolume"].as_array().unwrap().len()),
        (&json!([]), 3)
    );
    let names: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert!(names.contains(&"attainment") && names.contains(&"front"), "{names:?}");
    // No candidate reaches the point in one objective; every candidate reaches it in the other.
    let own = parse(&text("known_front = \"-1 9\"\n"));
    let least = |replica: &evoxo_common::experiment::Replica| {
        let sheet = replica.sheet().unwrap();
        1.0 + sheet.rows.iter().map(|row| row[0].parse::<f64>().unwrap()).fold(f64::INFINITY, f64::min)
    };
    let expected: Vec<f64> = replicas.iter().map(least).collect();
    let told = own.report(&run(&own)).json["arms"][0]["igd_plus"].clone();
    assert_eq!(told, json!(expected), "the setting changes no result");
}

/// A search whose budget ends with the first batch has learnt nothing.
#[test]
fn a_first_batch_is_not_a_search() {
    for (settings, told) in [
        ("algorithm = \"ga\"\npopulation = 50\nevaluations = 5", true),
        ("algorithm = \"ga\"\npopulation = 50\nevaluations = 51", false),
        ("algorithm = \"cma-es\"\nlength = 3\nevaluations = 6", true),
        ("algorithm = \"random\"\npopulation = 50\nevaluations = 5", false),
    ] {
        let config = parse(&format!("experiment = \"evolve\"\nreplicas = 1\n[settings]\n{settings}\n"));
        let notes = config.report(&run(&config)).notes;
        assert_eq!(notes.iter().any(|note| note.contains("learnt nothing from them")), told, "{settings}: {notes:?}");
    }
}
