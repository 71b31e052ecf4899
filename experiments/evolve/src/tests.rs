//! Tests of whole searches, and of the parts of a run.

use std::collections::BTreeSet;

use evoxo_common::{
    card::Card,
    experiment::{Config, Goal, Replica},
    promises,
    report::Reference,
    rng::Stream,
};
use prost::Message as _;
use serde_json::json;

use super::{
    KIND,
    algorithm::BASELINE,
    card::{CARD, Found},
    messages::{EvaluateTask, Evaluation, PopulationState, SearchState},
    rows::{HYPERVOLUME, VIOLATION},
    settings::Settings,
};
use crate::{
    registry,
    testing::{digest, parse, problems, run, states_are_checked},
};

#[test]
fn every_algorithm_meets_the_contract() {
    let files = [
        "algorithm = \"random\"\nproblem = \"onemax\"\nlength = 12\nevaluations = 250\n",
        "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\nevaluations = 130\npopulation = 20\nslice = 7\n",
        "problem = \"tsp\"\nlength = 9\nevaluations = 60\npopulation = 20\nelite = 3\n",
        "algorithm = \"ga\"\nproblem = \"g06\"\nevaluations = 90\npopulation = 20\non_failure = \"worst\"\n",
        "algorithm = \"cma-es\"\nproblem = \"rosenbrock\"\nlength = 3\nevaluations = 900\n",
        "algorithm = \"cma-es\"\nproblem = \"sphere\"\nlength = 3\nevaluations = 500\ncovariance = \"separable\"\nrestarts = \"none\"\n",
        "algorithm = \"nsga2\"\nproblem = \"zdt1\"\nlength = 4\nevaluations = 200\npopulation = 20\n",
        "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\nevaluations = 200\npopulation = 20\ninitial = 30\n",
        "algorithm = \"openai-es\"\nproblem = \"sphere\"\nlength = 4\nevaluations = 200\npopulation = 20\n",
        "problem = \"onemax\"\nlength = 8\nevaluations = 2000\npopulation = 20\ntarget = \"8\"\n",
        "problem = \"tsp\"\nlength = 9\nevaluations = 61\npopulation = 20\nislands = 4\nmigration = 2\n",
        "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\nevaluations = 70\npopulation = 20\nwindow = 7\n",
        "problem = \"onemax\"\nlength = 8\nevaluations = 200\npopulation = 10\nwindow = 5\ntarget = \"8\"\n",
        "algorithm = \"random\"\nproblem = \"sphere\"\nlength = 2\nevaluations = 20\nwindow = 30\n",
        "algorithm = \"nsga2\"\nproblem = \"zdt1\"\nlength = 4\nevaluations = 60\npopulation = 10\nwindow = 4\n",
        "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\nevaluations = 60\ninitial = 20\nwindow = 3\n",
        "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\nevaluations = 200\ncentroids = 30\n",
        "algorithm = \"cma-es\"\nproblem = \"rosenbrock\"\nlength = 3\nevaluations = 900\nbounds = \"begin\"\n",
        "algorithm = \"ga\"\nproblem = \"noisy-sphere\"\nlength = 3\nevaluations = 90\npopulation = 20\nslice = 7\n",
        "algorithm = \"openai-es\"\nproblem = \"growing-noise\"\nlength = 3\nevaluations = 90\npopulation = 20\nfinalists = 2\n",
        "algorithm = \"cma-es\"\nproblem = \"noisy-sphere\"\nlength = 3\nevaluations = 200\nconfirmations = 5\n",
        "algorithm = \"ga\"\nproblem = \"noisy-sphere\"\nlength = 3\nevaluations = 50\npopulation = 20\nwindow = 7\nconfirmations = 3\n",
        "algorithm = \"nsga2\"\nproblem = \"zdt1\"\nlength = 4\nevaluations = 60\npopulation = 10\nnoise = \"yes\"\nconfirmations = 2\n",
        "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\nevaluations = 60\nnoise = \"yes\"\nconfirmations = 2\n",
        "algorithm = \"l-shade\"\nproblem = \"g06\"\nevaluations = 200\n",
        "algorithm = \"l-shade\"\nproblem = \"noisy-sphere\"\nlength = 3\nevaluations = 200\nconfirmations = 3\n",
        "algorithm = \"pso\"\nproblem = \"g06\"\nevaluations = 200\ninformed = 2\n",
        "algorithm = \"pso\"\nproblem = \"noisy-sphere\"\nlength = 3\nevaluations = 200\npopulation = 15\nconfirmations = 3\n",
        "algorithm = \"cma-mae\"\nproblem = \"arm\"\nlength = 4\nevaluations = 200\npopulation = 10\ninitial = 30\n",
        "algorithm = \"cma-mae\"\nproblem = \"arm\"\nevaluations = 150\nemitters = 2\ncentroids = 30\nreference = []\nnoise = \"yes\"\n\
         confirmations = 2\n",
        "algorithm = \"nsga3\"\nproblem = \"dtlz2\"\nlength = 5\nevaluations = 200\npopulation = 20\n",
        "algorithm = \"nsga3\"\nproblem = \"zdt1\"\nlength = 4\nevaluations = 60\npopulation = 10\nwindow = 4\n",
        "algorithm = \"sms-emoa\"\nproblem = \"dtlz2\"\nlength = 5\nevaluations = 200\npopulation = 20\n",
        "algorithm = \"sms-emoa\"\nproblem = \"zdt1\"\nlength = 4\nevaluations = 60\npopulation = 10\nwindow = 4\n",
    ];
    let digests = files.map(|settings| {
        promises::check(&registry(), &format!("experiment = \"evolve\"\nreplicas = 2\n[settings]\n{settings}"))
    });
    insta::assert_snapshot!(digests.join("\n"));
}

/// The number of candidates of a task does not change a result.
#[test]
fn results_do_not_depend_on_the_slice() {
    let file = |slice| {
        format!(
            "experiment = \"evolve\"\nreplicas = 2\n[settings]\nalgorithm = \"ga\"\nevaluations = 400\npopulation = 40\n\
             slice = {slice}\n"
        )
    };
    let digests = [0, 1, 7, 400].map(|slice| digest(&run(&parse(&file(slice)))));
    assert!(digests.iter().all(|other| *other == digests[0]), "{digests:?}");
}

#[test]
fn the_size_of_a_task_limits_its_candidates() {
    let settings = "algorithm = \"ga\"\nevaluations = 10000\npopulation = 10000\nslice = 10000\nproblem = \"sphere\"\n\
                    length = 1000\n";
    let config = parse(&format!("experiment = \"evolve\"\nreplicas = 1\n[settings]\n{settings}"));
    let replica = Replica::start(&config, &config.arms[0], 0);
    assert_eq!(replica.tasks(), 20, "80 MB of genes");
    let tasks = replica.plan(0..20);
    assert!(tasks.iter().all(|task| task.body.len() < 5 << 20), "a task may have 8 MiB");
    let candidates = tasks.into_iter().map(|task| EvaluateTask::decode(task.body).unwrap().items.len());
    assert_eq!(candidates.sum::<usize>(), 10_000);
}

/// Whatever is computed together, a replica with a window moves on candidate by candidate.
#[test]
fn windowed_results_do_not_depend_on_the_slice() {
    let file = |slice| {
        format!(
            "experiment = \"evolve\"\nreplicas = 2\n[settings]\nevaluations = 90\npopulation = 9\nwindow = 6\nslice = {slice}\n"
        )
    };
    let replicas = run(&parse(&file(0)));
    assert_eq!(digest(&replicas), digest(&run(&parse(&file(7)))));
    assert!(replicas.iter().all(|replica| replica.rounds() == 90));
}

#[test]
fn a_target_ends_a_replica() {
    let text = "experiment = \"evolve\"\nreplicas = 3\n[settings]\nalgorithm = \"ga\"\nproblem = \"onemax\"\nlength = 10\n\
         target = \"10\"\n";
    let replicas = run(&parse(text));
    for replica in &replicas {
        let last = replica.history().last().unwrap();
        assert!(last[0] < 10_000.0 && last[1] == 10.0, "{last:?}");
    }
    let config = parse(text);
    let report = config.report(&replicas);
    insta::assert_snapshot!(format!("{}\n{}", report.tables[0], report.notes.join("\n")));
    assert_eq!(report.figures[0].references, [Reference::new("target", 10.0)], "the target is the optimum");
    let lower = parse(&text.replace("\"10\"", "\"9\""));
    let lines = lower.report(&run(&lower)).figures.swap_remove(0).references;
    assert_eq!(lines, [Reference::new("target", 9.0), Reference::new("optimum", 10.0)]);
    let arms = report.json["arms"].as_array().unwrap();
    let again = (KIND.report)(&config, arms).unwrap();
    assert_eq!((&again.tables, &again.notes), (&report.tables, &report.notes));
}

#[test]
fn mistakes_have_messages() {
    let all = [
        "problem = \"spere\"",
        "problem = \"program:a b\"",
        "problem = \"sphere\"\nobjectives = \"min x\"",
        "problem = \"sphere\"\nlength = 10000",
        "problem = \"zdt1\"\nalgorithm = \"ga\"",
        "problem = \"zdt1\"\nalgorithm = \"nsga2\"\nreference = [1]",
        "algorithm = \"map-elites\"",
        "problem = \"tsp\"\nalgorithm = \"cma-es\"",
        "algorithm = \"cma-es\"\npopulation = 2",
        "problem = \"program:p\"\nobjectives = \"cost\"",
        "problem = \"program:p\"\nsignature = \"abc\"",
        "problem = \"program:p\"\nanswers = \"abc\"",
        "target = \"low\"",
        "algorithm = \"ga\"\npopulation = 10\nelite = 10",
        "algorithm = \"cma-es\"\nwindow = 4",
        "algorithm = \"ga\"\nbounds = \"begin\"",
        "algorithm = \"ga\"\nislands = 4\nwindow = 4",
        "algorithm = \"ga\"\nislands = 60",
        "algorithm = \"random\"\nislands = 2",
        "genome = [{ length = 3 }]",
        "problem = \"program:p\"\ngenome = [{ name = \"a b\" }]",
        "problem = \"program:p\"\ngenome = [{ low = 2 }]",
        "problem = \"program:p\"\ngenome = [{ type = \"symbols\", alphabet = \"ABA\" }]",
        "problem = \"program:p\"\ngenome = [{ type = \"integer\", high = 2.5 }]",
    ];
    let sentence = |text: &&str| problems(&format!("experiment = \"evolve\"\n[settings]\n{text}\n")).to_string();
    insta::assert_snapshot!(all.iter().map(sentence).collect::<Vec<_>>().join("\n"));
}

/// Each candidate of a replica has its own seed, which does not depend on how batches are cut up.
#[test]
fn every_candidate_has_its_own_seed() {
    let seeds = |slice: u32| {
        let file = format!(
            "experiment = \"evolve\"\nreplicas = 1\n[settings]\nalgorithm = \"ga\"\nevaluations = 60\npopulation = 20\n\
             slice = {slice}\n"
        );
        let config = parse(&file);
        let mut replica = Replica::start(&config, &config.arms[0], 0);
        let mut seeds = Vec::new();
        while !replica.is_finished() {
            let tasks = replica.plan(0..replica.tasks());
            for task in &tasks {
                let task = EvaluateTask::decode(task.body.clone()).unwrap();
                seeds.extend(task.items.iter().map(|item| item.seed));
            }
            let outputs: Vec<_> = tasks.iter().map(|task| task.run().unwrap()).collect();
            replica.absorb(&outputs);
        }
        seeds
    };
    let all = seeds(0);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (60, 60));
    assert_eq!(seeds(7), all);
}

/// The arms of a person's file with these settings, as the client completes them.
fn completed(text: &str) -> Config {
    parse(&format!("experiment = \"evolve\"\nreplicas = 2\n{text}\n")).completed(true)
}

#[test]
fn random_search_is_added_once_if_no_arm_has_it() {
    let names = |config: &Config| config.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<String>>();
    let alone =
        completed("[settings]\nalgorithm = \"ga\"\nevaluations = 300\npopulation = 20\nislands = 4\nbounds = \"kept\"");
    assert_eq!(names(&alone), ["main", "random search"]);
    let added = Settings::of(&alone.arms[1].settings);
    assert_eq!((added.algorithm, added.evaluations, added.population), (BASELINE, 300, 20));
    let written = parse(&alone.to_toml());
    assert_eq!(
        (&written, written.clone().completed(true)),
        (&alone, alone.clone()),
        "the written configuration is complete"
    );
    let settings = |config: &Config| config.arms[0].settings.to_text();
    assert_eq!(
        settings(&alone),
        settings(&parse(&alone.to_toml().replace("baseline = \"none\"", "baseline = \"random\""))),
        "the setting is not in tasks"
    );
    // The added arm is an ordinary search: any arm with this name and these settings finds the same.
    assert_eq!(run(&alone).len(), 4);

    let two = "[arms.a]\n[arms.\"random search\"]\nlength = 4\n[arms.c]\nproblem = \"onemax\"\nalgorithm = \"random\"";
    assert_eq!(names(&completed(two)), ["a", "random search", "c", "random search 2", "random search 3"]);
    assert_eq!(names(&completed("[settings]\nproblem = \"zdt1\"\nalgorithm = \"nsga2\"")), ["main", "random search"]);
    let strategy = completed("[settings]\nalgorithm = \"cma-es\"\nbounds = \"begin\"");
    assert!(Settings::of(&strategy.arms[1].settings).genome().bounded);

    let none = [
        "[settings]\nbaseline = \"none\"",
        "[settings]\nproblem = \"program:p\"",
        "[settings]\n[arms.a]\nalgorithm = \"random\"\n[arms.b]",
        "[settings]\nalgorithm = \"ga\"\n[screen]\n[screen.factors.A]\nmutations = [1, 2]\n[screen.factors.B]\nelite = [1, 2]",
    ];
    for text in none {
        let before = parse(&format!("experiment = \"evolve\"\nreplicas = 2\n{text}\n"));
        let after = before.clone().completed(true);
        assert_eq!((names(&after), after.hash()), (names(&before), before.hash()), "{text}");
    }
    let chosen = parse("experiment = \"evolve\"\n").completed(false);
    assert_eq!(names(&chosen.completed(true)), ["main"], "its file was complete too, with the arm that was chosen");
    let many: String = (0..64).map(|arm| format!("[arms.a{arm}]\n")).collect();
    assert_eq!(completed(&many).arms.len(), 64, "a file has no room for more");
}

/// The table, `result.json` and the headline say which of two arms is better. A report that is made again says the same.
#[test]
fn arms_are_tested_against_each_other() {
    let config = completed(
        "[settings]\nalgorithm = \"ga\"\nevaluations = 400\npopulation = 20\n[arms.ga]\n[arms.infeasible]\nproblem = \"g06\"",
    );
    let config = Config { replicas: 6, ..config };
    let mut replicas = run(&config);
    let report = config.report(&replicas);
    insta::assert_snapshot!(format!("{}\n{}", report.tables[1], report.notes.join("\n")));
    let contests = report.json["contests"].as_array().unwrap();
    assert_eq!((&contests[0]["better"], &contests[0]["worse"]), (&json!("ga"), &json!("random search")));
    let arms = report.json["arms"].as_array().unwrap();
    let again = (KIND.report)(&config, arms).unwrap();
    assert_eq!((&again.tables, &again.json["contests"]), (&report.tables, &report.json["contests"]));
    let mut result = report.json.clone();
    result["digest"] = "of a finished run".into();
    let sentence = evoxo_common::conclusion::sentence(&config, &result);
    assert!(sentence.contains("\"ga\" is better than \"random search\""), "{sentence}");
    assert!(sentence.contains(" In \"random search 2\": 4 of 6 replicas found no feasible candidate."), "{sentence}");
    // A replica that is still running has no result yet.
    replicas[0] = Replica::start(&config, &config.arms[0], 0);
    assert_eq!(config.report(&replicas).json["contests"].as_array().map(Vec::len), Some(contests.len() - 1));
}

/// With several objectives, the figures in the headline are those that are tested.
#[test]
fn several_objectives_are_compared_by_their_hypervolume() {
    let arms = "[arms.short]\nevaluations = 100\n[arms.long]\nevaluations = 400";
    let settings = "[settings]\nproblem = \"zdt1\"\nalgorithm = \"nsga2\"\nlength = 3\npopulation = 20";
    let config = parse(&format!("experiment = \"evolve\"\nreplicas = 6\n{settings}\n{arms}\n"));
    let replicas = run(&config);
    let mut result = config.report(&replicas).json;
    result["digest"] = "of a finished run".into();
    let sentence = evoxo_common::conclusion::sentence(&config, &result);
    let values = (KIND.headline)(&config, result["arms"].as_array().unwrap()).questions[0].arms[1].figures();
    let volumes = result["arms"][1]["hypervolume"].as_array().unwrap();
    assert_eq!(values, volumes.iter().filter_map(serde_json::Value::as_f64).collect::<Vec<_>>());
    let ends: Vec<f64> = replicas[6..].iter().filter_map(|it| KIND.figure(HYPERVOLUME, it.history())).collect();
    assert_eq!(values, ends);
    assert!(sentence.starts_with("Which arm searches better? At the end the hypervolume is "), "{sentence}");
    assert!(sentence.contains("test of the hypervolume") && sentence.contains("\"long\" is better"), "{sentence}");
}

/// The sheet of what nsga2 and map-elites keep has objectives, measures and genes.
#[test]
fn fronts_and_maps_are_tables() {
    let sheet = |settings: &str| {
        let config = parse(&format!("experiment = \"evolve\"\nreplicas = 1\n[settings]\n{settings}\n"));
        let replica = run(&config).swap_remove(0);
        (replica.sheet(), replica.population().len())
    };
    let (front, kept) =
        sheet("problem = \"zdt1\"\nalgorithm = \"nsga2\"\nlength = 3\nevaluations = 100\npopulation = 20");
    let front = front.unwrap();
    assert_eq!((front.name, front.rows.len(), front.header.join(",")), ("front", kept, "f1,f2,x[0],x[1],x[2]".into()));
    // The first objective of zdt1 is the first gene.
    assert!(front.rows.iter().all(|row| row.len() == 5 && row[0] == row[2]), "{front:?}");
    let (map, kept) =
        sheet("problem = \"arm\"\nalgorithm = \"map-elites\"\nlength = 2\nevaluations = 200\ninitial = 50");
    let map = map.unwrap();
    assert_eq!((map.name, map.rows.len(), map.header.len()), ("map", kept, 5), "{:?}", map.header);
    assert_eq!(sheet("problem = \"sphere\"\nevaluations = 200").0, None, "there are only champions");
}

#[test]
fn a_failure_has_no_value() {
    let failed = Evaluation { failure: "why".into(), ..Evaluation::default() };
    assert!(super::evaluation::Evaluation::minimised(&failed, &[true]).failed);
}

/// A replica whose candidates have all failed has no row, but still counts as a replica.
#[test]
fn a_replica_without_a_value_counts() {
    let settings = "problem = \"onemax\"\nlength = 8\nevaluations = 60\npopulation = 10\ntarget = \"0\"\n";
    let config = parse(&format!("experiment = \"evolve\"\nreplicas = 2\n[settings]\n{settings}"));
    let mut arms = config.report(&run(&config)).json["arms"].as_array().unwrap().clone();
    for key in ["best", "violations"] {
        arms[0][key].as_array_mut().unwrap().pop();
    }
    let report = (KIND.report)(&config, &arms).unwrap();
    let row = &report.tables[0].rows[0];
    assert!(row[1] == "1 of 2" && row[6] == "1 of 2", "{row:?}");
    let mut last = [60.0, 7.0, 7.0, 0.0, 0.0, 0.0, 10.0];
    assert_eq!((KIND.metric(&[]), KIND.metric(&last)), (None, Some(7.0)));
    last[VIOLATION] = 0.5;
    assert_eq!(KIND.metric(&last), None, "the candidate breaks a constraint");
    assert!(report.json["summary"]["main"]["compared"].is_null(), "{}", report.json["summary"]);
}

#[test]
fn a_target_is_for_one_objective() {
    let file = "experiment = \"evolve\"\nreplicas = 1\n[settings]\nalgorithm = \"nsga2\"\nproblem = \"zdt1\"\ntarget = \"0.5\"\n";
    let found = problems(file).to_string();
    assert!(found.contains("a target needs a problem with one objective"), "{found}");
}

/// A file whose problem is a program with this signature, objective and number of real genes.
fn of_program(objectives: &str, genes: usize, settings: &str) -> String {
    let signature = "0".repeat(64);
    format!(
        "experiment = \"evolve\"\nreplicas = 1\n[settings]\nproblem = \"program:p\"\nsignature = \"{signature}\"\n\
         objectives = \"{objectives}\"\ngenome = [{{ length = {genes} }}]\n{settings}\n"
    )
}

/// Files are parsed before anyone knows how much memory their runs need, and each task reads its settings. Neither may start
/// anything.
#[test]
fn settings_are_checked_by_their_figures() {
    let found = problems(&of_program("min f", 100_000, "algorithm = \"cma-es\"\ncovariance = \"full\"")).to_string();
    assert!(found.starts_with("t:9: ") && found.contains("set covariance = \"limited\""), "{found}");
    for settings in ["algorithm = \"cma-es\"\ncovariance = \"separable\"", "window = 1000"] {
        assert_eq!(parse(&of_program("min f", 100_000, settings)).arms.len(), 1);
    }
    // Values of operators that no gene needs do not matter; others are checked and named.
    assert_eq!(parse("experiment = \"evolve\"\n[settings]\nalgorithm = \"ga\"\ndeviation = 0\n").arms.len(), 1);
    let wrong =
        "experiment = \"evolve\"\n[settings]\nreal_mutation = \"gaussian\"\nalgorithm = \"ga\"\ndeviation = 0\n";
    assert!(problems(wrong).to_string().starts_with("t:5: "), "{}", problems(wrong));
}

/// A configuration has every setting of each arm, and can be read again.
#[test]
fn written_configurations_can_be_read() {
    let parts: Vec<String> = (0..40).map(|part| format!("{{ name = \"x{part}\" }}")).collect();
    let arms: String = (0..40).map(|arm| format!("[arms.a{arm}]\npopulation = {}\n", 10 + arm)).collect();
    let file = of_program("min f", 1, &arms).replace("{ length = 1 }", &parts.join(", "));
    let config = parse(&file);
    assert_eq!(parse(&config.to_toml()), config);
    assert!(problems(&"a=1\n".repeat(200_000)).to_string().contains("keys"));
}

#[test]
fn duplicate_names_are_rejected() {
    let found = problems(&of_program("min a, max a", 1, "algorithm = \"nsga2\"")).to_string();
    assert!(found.contains("two objectives are called a"), "{found}");
    let found = problems(&of_program("min a", 1, "measures = 2\nmeasure_names = \"b, b\"")).to_string();
    assert!(found.contains("two measures are called b"), "{found}");
    // The second constraint has no name and is called by its number.
    let found = problems(&of_program("min a", 1, "constraints = 2\nconstraint_names = \"constraint 2\"")).to_string();
    assert!(found.contains("two constraints are called constraint 2"), "{found}");
}

#[test]
fn an_estimated_hypervolume_is_reported() {
    let notes = |objectives: &str, reference: &str| {
        let config = parse(&of_program(objectives, 1, &format!("algorithm = \"nsga2\"\nreference = {reference}")));
        let report = config.report(&[Replica::start(&config, &config.arms[0], 0)]);
        report.notes.join("\n")
    };
    let four = notes("min a, min b, min c, min d", "[1, 1, 1, 1]");
    assert!(!four.contains("estimated"), "{four}");
    let six = notes("min a, min b, min c, min d, min e, max f", "[1, 1, 1, 1, 1, -1]");
    assert!(six.contains("with 6 objectives and up to 0 candidates, hypervolumes are estimated"), "{six}");
}

/// Arms with different problems share neither a direction nor a name.
#[test]
fn different_objectives_are_described_in_neutral_words() {
    let settings = "algorithm = \"ga\"\nlength = 4\nevaluations = 100\n[arms.a]\n[arms.b]\nproblem = \"onemax\"\n";
    let config = parse(&format!("experiment = \"evolve\"\nreplicas = 1\n[settings]\n{settings}"));
    let report = config.report(&run(&config));
    assert!(report.tables[0].title.starts_with("The best objective of a replica"), "{:?}", report.tables[0]);
    assert_eq!(report.figures[0].y_label, "objective");
}

/// A replica that ended early says nothing about its candidates.
#[test]
fn a_replica_that_ended_early_has_no_failures() {
    let config = parse("experiment = \"evolve\"\nreplicas = 1\n");
    let mut saved = Replica::start(&config, &config.arms[0], 0).save();
    saved.failure = "ended: violation is not a finite number in row 1".into();
    let report = config.report(&[Replica::restore(&config, &saved).unwrap()]);
    assert_eq!(report.json["arms"][0]["failures"].as_f64(), Some(0.0));
}

#[test]
fn unreachable_states_are_rejected() {
    let of_algorithm = |state: &mut SearchState, change: &dyn Fn(&mut PopulationState)| {
        let mut own = PopulationState::decode(&state.algorithm[..]).unwrap();
        change(&mut own);
        state.algorithm = own.encode_to_vec().into();
    };
    let evaluation = |state: &mut PopulationState| state.individuals[1].evaluation.clone().unwrap();
    let changes: [&dyn Fn(&mut SearchState); 9] = [
        &|state| state.evaluations -= 1,
        &|state| state.failures = state.evaluations,
        &|state| state.best = None,
        &|state| state.best_evaluation.as_mut().unwrap().constraints.push(0.0),
        &|state| state.best_evaluation.as_mut().unwrap().objectives[0] = f64::NAN,
        &|state| of_algorithm(state, &|own| own.births += 1),
        &|state| {
            of_algorithm(state, &|own| {
                let changed = Evaluation { measures: vec![1.0], ..evaluation(own) };
                own.individuals[1].evaluation = Some(changed);
            });
        },
        &|state| {
            of_algorithm(state, &|own| {
                let changed = Evaluation { objectives: vec![f64::INFINITY], ..evaluation(own) };
                own.individuals[1].evaluation = Some(changed);
            });
        },
        &|state| {
            of_algorithm(state, &|own| {
                let changed = Evaluation { failure: "failed".into(), ..evaluation(own) };
                own.individuals[1].evaluation = Some(changed);
            });
        },
    ];
    let config = parse("experiment = \"evolve\"\nreplicas = 1\n[settings]\nalgorithm = \"ga\"\nevaluations = 300\n");
    states_are_checked(&config, &run(&config), &changes);
}

/// Without a goal, a screen uses the objective of the first arm's search.
#[test]
fn the_goal_of_a_screen_is_its_searchs_goal() {
    let goal = |settings: &str| {
        let factors = "[screen.factors.A]\nmutations = [1, 2]\n[screen.factors.B]\nelite = [1, 2]\n";
        let head = "experiment = \"evolve\"\n[settings]\nalgorithm = \"ga\"";
        parse(&format!("{head}\n{settings}\n{factors}")).screen.unwrap().goal
    };
    assert_eq!(goal("problem = \"sphere\"\n[screen]"), Goal::Minimize);
    assert_eq!(goal("problem = \"onemax\"\n[screen]"), Goal::Maximize);
    assert_eq!(goal("problem = \"onemax\"\n[screen]\nresponse = \"violation\""), Goal::Minimize);
    assert_eq!(goal("problem = \"sphere\"\n[screen]\ngoal = \"maximize\""), Goal::Maximize);
}

/// The longest possible genome has a card that can be read.
#[test]
fn a_card_has_room_for_every_gene() {
    let genome = |text: &str| Settings::of(&parse(text).arms[0].settings);
    let settings = genome(&of_program("min f", 100_000, ""));
    let candidate = settings.genome().random(&mut Stream::root(1).rng());
    let known = super::evaluation::Evaluation { objectives: vec![1.0], ..Default::default() };
    let found = Found::new(&settings, &candidate, &known);
    let text = Card::new(found).write("c").0;
    assert!(Card::read(&[&CARD], &text, &mut |_| Err("there is no file".into())).is_ok(), "{} bytes", text.len());
}

/// All values of a candidate are on its card by name, and in the columns of a table.
#[test]
fn constraints_and_measures_are_reported_by_name() {
    let of = "constraints = 2\nconstraint_names = \"late, heavy\"\nmeasures = 1";
    let settings = Settings::of(&parse(&of_program("min f", 1, of)).arms[0].settings);
    let candidate = settings.genome().random(&mut Stream::root(1).rng());
    let known = super::evaluation::Evaluation {
        objectives: vec![1.0],
        constraints: vec![-0.5, 2.0],
        measures: vec![0.25],
        ..Default::default()
    };
    let found = Found::new(&settings, &candidate, &known);
    let table = super::card::sheet("front", &settings, std::slice::from_ref(&found));
    assert_eq!(table.header, ["f", "late", "heavy", "measure 1", "x"]);
    assert_eq!(table.rows[0][..4], ["1.0", "-0.5", "2.0", "0.25"]);
    let card = Card::new(found);
    let text = card.write("c").0;
    let again = Card::read(&[&CARD], &text, &mut |_| Err("there is no file".into())).unwrap();
    assert_eq!(again.write("c").0, text);
    let shown = again.champion.show(10).text;
    for line in ["late: -0.5 (a constraint, kept)", "heavy: 2 (a constraint, broken)", "measure 1: 0.25 (a measure)"] {
        assert!(shown.contains(line), "{shown}");
    }
}
