//! Two runs of kinds that come with evoxo are compared by a test where one applies.

use evoxo_common::{
    comparison::{Measured, compare},
    experiment::Config,
    local,
};
use evoxo_experiments::registry;
use serde_json::Value;

/// Runs of `evolve` are compared if both have arms that search the same problem, and one column tells which replica is
/// better.
#[test]
fn searches_of_one_problem_are_tested() {
    let measured = |seed: u64, settings: &str| {
        let text = format!("experiment = \"evolve\"\nseed = {seed}\nreplicas = 3\n[settings]\n{settings}\n");
        let config = Config::parse(&registry(), "t", &text, &[]).unwrap();
        let replicas = local::run(&config).unwrap();
        let mut result = config.report(&replicas).json;
        result["digest"] = "of a finished run".into();
        Measured::of_replicas(&config, &result, &replicas)
    };
    let sphere = "algorithm = \"ga\"\nlength = 3\nevaluations = 200\npopulation = 20\n";
    let told = compare(&measured(1, sphere), &measured(2, &format!("{sphere}mutations = 2\n")));
    assert_eq!((&told["why"], &told["metric"]), (&Value::Null, &Value::from("best")), "{told}");
    assert_eq!(told["tests"][0]["one"]["replicas"], 3, "{told}");
    let front = "problem = \"zdt1\"\nlength = 3\nalgorithm = \"nsga2\"\nevaluations = 100\npopulation = 20\n";
    let told = compare(&measured(1, front), &measured(2, front));
    assert_eq!((&told["why"], &told["metric"]), (&Value::Null, &Value::from("hypervolume")), "{told}");
    let fork = format!("{sphere}mutations = 2\n[[fork]]\nat = 5\n[fork.settings]\nmutations = 1\n");
    let told = compare(&measured(1, sphere), &measured(1, &fork));
    assert!(told["test"].as_str().unwrap().starts_with("a paired t-test") && told["why"].is_null(), "{told}");
    let dispatch = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 2\ntasks = 2\n";
    let config = Config::parse(&registry(), "t", dispatch, &[]).unwrap();
    let replicas = local::run(&config).unwrap();
    let other = Measured::of_replicas(&config, &config.report(&replicas).json, &replicas);
    let why = compare(&measured(1, sphere), &other)["why"].clone();
    assert!(why.as_str().unwrap().starts_with("the runs are of different experiments"), "{why}");
    for (other, why) in [
        (front, "the metric that ranks replicas differs between the runs"),
        ("length = 4\nevaluations = 200\n", "no common arm searches the same problem"),
        ("length = 3\nevaluations = 200\ntarget = \"1e-3\"\n", "no single metric ranks the replicas"),
    ] {
        let told = compare(&measured(1, sphere), &measured(2, other));
        assert!(told["why"].as_str().unwrap().starts_with(why), "{told}");
    }
}
