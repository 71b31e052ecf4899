//! Tables, notes and figures of small runs.

use super::*;
use crate::{
    registry,
    testing::{parse, run},
};
use evoxo_common::{experiment::Replica, local};

const CONFIG: &str = "experiment = \"invincible\"\nreplicas = 3\n[settings]\npopulation = 60\nfathers = 5\n\
    generations = 6\nfitness = \"exact\"\n[arms.\"O, 1\"]\npenalty = 1\n[arms.\"O, 6.5\"]\n[arms.X]\nside = \"X\"\n";

#[test]
fn the_report_of_a_small_run_is_readable() {
    let config = parse(CONFIG);
    let replicas = run(&config);
    let report = config.report(&replicas);
    let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(format!("{}\n{}", tables.join("\n"), report.notes.join("\n")));
    insta::assert_snapshot!("json", format!("{:#}", report.json));
    assert_eq!(report.figures.len(), 1 + 3);
    let last = report.figures[1].series[0].points.last().unwrap();
    assert!(last.x == 6.0 && last.low <= last.mean && last.mean <= last.high, "{last:?}");
    // The figure shows all arms side by side, on an axis from 0 to the greatest optimum, each arm with its own optimum.
    let all = &report.figures[0];
    let names: Vec<&str> = all.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!((all.name.as_str(), names), ("all_arms", vec!["O, 1", "O, 6.5", "X"]));
    assert_eq!((all.series[0].points.last(), all.drawn), (Some(last), Drawn::Panels));
    let optima: Vec<f64> = all.references.iter().map(|known| known.value).collect();
    assert_eq!(
        all.references.iter().map(|known| all.number_of(known)).collect::<Vec<_>>(),
        [Some(0), Some(1), Some(2)]
    );
    assert_eq!(all.y_range, Some((0.0, optima[2])));
    assert!(0.26 < optima[1] && optima[1] < optima[0] && optima[0] < optima[2], "{optima:?}");
}

/// No player is worth more than the optimum, whatever sampled games say about the luckiest one, and no figure claims so.
#[test]
fn the_fittest_is_not_better_than_the_optimum() {
    let config = parse(
        "experiment = \"invincible\"\nreplicas = 2\n[settings]\npopulation = 300\nfathers = 5\ngames = 100\n\
         generations = 12\n[arms.O]\n[arms.exact]\nfitness = \"exact\"\n",
    );
    let report = config.report(&run(&config));
    let optimum = optimum(Side::O, Ratio::new(13, 2)).fitness.to_f64();
    let [sampled, exact] = [1, 2].map(|arm| &report.figures[arm].series);
    let names = |series: &[Series]| series.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let [worth, mean] = ["exact worth of the fittest player", "mean fitness of the population"];
    assert_eq!(names(sampled), [worth, mean, "sampled fitness of the fittest player"]);
    assert_eq!(names(exact), [worth, mean]);
    assert!(
        report.figures[1..].iter().all(|figure| figure.references == [Reference::new("the optimum, 0.2603", optimum)])
    );
    assert!(sampled[0].points.iter().all(|point| point.high <= optimum));
    assert!(sampled[2].points.last().unwrap().mean > optimum, "{:?}", sampled[2]);
    let replica = &report.json["arms"][0]["replicas"][0];
    let odds = serde_json::from_value::<Odds>(replica.clone()).unwrap();
    assert_eq!(replica["worth"].as_f64(), Some(Points::from(Ratio::new(13, 2)).worth(odds).to_f64()));
    assert!(replica["fitness"].as_f64() > Some(optimum), "{replica}");
    let fittest = report.tables.iter().find(|table| table.header[0] == "fittest player").unwrap();
    assert_eq!((fittest.rows.len(), &*fittest.rows[0][1]), (1, "0.2603"));
}

/// The report can be computed again from a `result.json`. A result that lacks something is rejected with the reason.
#[test]
fn a_report_can_be_made_from_a_result_alone() {
    let config = parse(CONFIG);
    let replicas = run(&config);
    for replicas in [replicas, local::start(&config).collect()] {
        let report = config.report(&replicas);
        let mut result = json!({"experiment": "invincible", "seed": config.seed, "replicas": config.replicas});
        result.as_object_mut().unwrap().extend(report.json.as_object().unwrap().clone());
        let result: Value = serde_json::from_str(&result.to_string()).unwrap();
        assert_eq!(registry().report_of_result(&result), Ok(report));
        let lacks = |change: &dyn Fn(&mut Value), says: &str| {
            let mut result = result.clone();
            change(&mut result["arms"][1]);
            let sentence = registry().report_of_result(&result).unwrap_err();
            assert!(sentence.starts_with("the arm \"O, 6.5\" of the result cannot be read: "), "{sentence}");
            assert!(sentence.contains(says), "{sentence}");
        };
        lacks(&|arm| arm["replicas"] = 3.into(), "expected a sequence");
        lacks(&|arm| arm["curves"]["mean"]["low"] = json!([0.5]), "the curve \"mean\": ");
        let begun = json!({"replica": 1, "rows": 1, "finished": false, "champion": "champions/O.json"});
        lacks(&|arm| arm["replicas"][1] = begun.clone(), "replica 1: missing field");
        lacks(&|arm| arm["replicas"][1] = json!({"replica": 1, "rows": 0}), "missing field `finished`");
    }
}

/// Points for all three outcomes have their own optimum and note. They rank players in the same way as a penalty, so the same
/// players survive.
#[test]
fn points_for_wins_and_draws_count() {
    let text = |points: &str| {
        format!(
            "experiment = \"invincible\"\n[settings]\npopulation = 60\nfathers = 5\ngenerations = 5\ngames = 50\n\
             [arms.O]\n{points}\n"
        )
    };
    let champion = |points: &str| {
        let champion = run(&parse(&text(points)))[0].champion().unwrap();
        champion.champion_as::<evoxo_games::table::TableGenome>().unwrap().clone()
    };
    let football = "win = 3\ndraw = 1\npenalty = 0";
    assert_eq!(champion(football), champion("penalty = 0.5"));
    assert_ne!(champion(football), champion("penalty = 100"));
    let config = parse(&text(football));
    let report = config.report(&run(&config));
    let note =
        "Points of 3, 1, 0 (win, draw, loss) rank players as 1 for a win, 0 for a draw and a loss that costs 1/2.";
    assert!(report.notes.iter().any(|other| other == note), "{:?}", report.notes);
    assert_eq!(report.tables[1].rows[0][0], "O at 3, 1, 0");
    let best = optimum(Side::O, Points { win: 3.into(), draw: Ratio::ONE, penalty: Ratio::ZERO });
    assert_eq!(report.tables[1].rows[0][4], format!("{} = {:.4}", best.fitness, best.fitness.to_f64()));
    let settings = &report.json["arms"][0]["settings"];
    assert_eq!((&settings["win"], &settings["draw"]), (&"3".into(), &"1".into()));
}

#[test]
fn an_unfinished_run_has_a_report() {
    let config = parse(CONFIG);
    let replicas: Vec<Replica> = local::start(&config).collect();
    let report = config.report(&replicas);
    assert!(report.notes.iter().any(|note| note.contains("Not finished yet: 9 of")), "{:?}", report.notes);
}

#[test]
fn the_optimum_is_called_optimal() {
    let best = optimum(Side::O, Ratio::ONE);
    let score = evoxo_games::table::exact::Scorer::of(Side::O).score(best.player.genes());
    assert_eq!(Points::from(Ratio::ONE).worth(score.odds(945)), best.fitness);
}
