//! Screens of the kinds that come with evoxo: every mistake has its error message, and a screened run is an ordinary run of
//! its arms with another report.

mod files;

use evoxo_common::{
    experiment::{Config, screen_files},
    local,
};
use evoxo_experiments::registry;
use files::{parse, problems};
use serde_json::{Value, json};

/// A screen of three factors in four treatments, for two arms.
const SMALL: &str = r#"experiment = "ternary"
replicas = 3
[settings]
generations = 3
[screen]
generators = ["C = -AB"]
response = "fitness"
[screen.factors]
A.population = [10, 20]
B = { opponents = [4, 0], random_games = [4, 8] }
C.crossover = ["two-point", "none"]
[arms.first]
side = "X"
[arms."second, O"]
side = "O"
"#;

/// The same screen, written as a run of arms.
const ARMS: [(&str, &str, [&str; 5]); 8] = [
    ("first, (1)", "X", ["10", "4", "4", "two-point", ""]),
    ("first, ac", "X", ["20", "4", "4", "none", ""]),
    ("first, bc", "X", ["10", "0", "8", "none", ""]),
    ("first, ab", "X", ["20", "0", "8", "two-point", ""]),
    ("second, O, (1)", "O", ["10", "4", "4", "two-point", ""]),
    ("second, O, ac", "O", ["20", "4", "4", "none", ""]),
    ("second, O, bc", "O", ["10", "0", "8", "none", ""]),
    ("second, O, ab", "O", ["20", "0", "8", "two-point", ""]),
];

#[test]
fn a_screen_runs_its_treatments() {
    let mut text = "experiment = \"ternary\"\nreplicas = 3\n[settings]\ngenerations = 3\n".to_owned();
    for (name, side, [population, opponents, games, crossover, _]) in ARMS {
        text += &format!(
            "[arms.\"{name}\"]\nside = \"{side}\"\npopulation = {population}\nopponents = {opponents}\n\
             random_games = {games}\ncrossover = \"{crossover}\"\n"
        );
    }
    let (screened, plain) = (parse(SMALL, &[]).unwrap(), parse(&text, &[]).unwrap());
    assert_eq!((&screened.arms, screened.hash()), (&plain.arms, plain.hash()));
    // The configuration as TOML gives the same run again, also for a single arm.
    assert_eq!(parse(&screened.to_toml(), &[]).unwrap(), screened);
    let one = Config::parse_arms(&registry(), "x.toml", SMALL, &[], &["first".into()]).unwrap();
    assert_eq!(one.arms, screened.arms[..4]);
    assert_eq!(parse(&one.to_toml(), &[]).unwrap(), one);
    // Without arms, the treatments are the arms. The choice of response does not change what is computed.
    let alone = SMALL.split("[arms.first]").next().unwrap();
    let alone = parse(alone, &[]).unwrap();
    let names: Vec<&str> = alone.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["(1)", "ac", "bc", "ab"]);
    assert_eq!(parse(&alone.to_toml(), &[]).unwrap(), alone);
    let other = parse(&SMALL.replace("\"fitness\"", "\"win\"\nat = \"peak\"\ngoal = \"minimize\""), &[]).unwrap();
    assert_eq!(other.hash(), screened.hash());
    assert_eq!(parse(&other.to_toml(), &[]).unwrap(), other);
}

#[test]
fn the_report_of_a_screen_is_pinned_and_repeatable() {
    let config = parse(SMALL, &[]).unwrap();
    let replicas = local::run(&config).unwrap();
    let report = config.report(&replicas);
    let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(format!("{}\n{}", tables.join("\n"), report.notes.join("\n")));
    let mut result = json!({"experiment": "ternary", "seed": config.seed, "replicas": config.replicas});
    let keys = result.as_object_mut().unwrap();
    keys.extend(report.json.as_object().unwrap().clone());
    assert_eq!(Config::of_result(&registry(), &result).unwrap(), config);
    let again = registry().report_of_result(&result).unwrap();
    assert_eq!((&again.tables, &again.notes, &again.json), (&report.tables, &report.notes, &report.json));
    let files = screen_files(&config, &report.json);
    let names: Vec<&str> = files.pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["half-normal-first", "main-effects-first", "half-normal-second-O", "main-effects-second-O"]);
    assert_eq!(files.effects.len(), 1 + 2 * 3, "a header, and three contrasts of two arms");
    // A result that lacks something is rejected.
    for key in ["factors", "arms", "generators"] {
        let mut cut = result.clone();
        cut["screen"].as_object_mut().unwrap().remove(key);
        assert!(registry().report_of_result(&cut).unwrap_err().starts_with("it is not the result"), "{key}");
    }
    result["screen"]["arms"][1]["responses"] = Value::Null;
    assert!(registry().report_of_result(&result).unwrap_err().contains("lacks responses"));
}

/// With one arm, the levels come with a prediction and with a warning about it.
#[test]
fn the_levels_of_a_single_arm_are_a_prediction() {
    // The number of repairs has large effects, so the screen finds something.
    let text = SMALL.split("[arms.first]").next().unwrap().replace("fitness", "repairs");
    let config = parse(&text.replace("C = -AB", "C = AB").replace("replicas = 3", "replicas = 5"), &[]).unwrap();
    let report = config.report(&local::run(&config).unwrap());
    insta::assert_snapshot!(format!("{}\n{}", report.tables.last().unwrap(), report.notes.join("\n")));
}

/// An effect is the difference of the means of its levels. The test computes it from the history, for each arm.
#[test]
fn effects_are_differences_of_means_of_the_response() {
    for (at, goal) in [("end", "maximize"), ("peak", "maximize"), ("peak", "minimize")] {
        let text = SMALL.replace("\"fitness\"", &format!("\"mean\"\nat = \"{at}\"\ngoal = \"{goal}\""));
        let config = parse(&text, &[]).unwrap();
        let replicas = local::run(&config).unwrap();
        let report = config.report(&replicas);
        let response = |arm: usize| {
            let of_arm = replicas.iter().filter(|replica| replica.arm() == config.arms[arm].name);
            let values = of_arm.map(|replica| {
                let mut rows = replica.history().iter().map(|row| row[2]);
                match (at, goal) {
                    ("end", _) => rows.next_back().unwrap(),
                    (_, "maximize") => rows.fold(f64::NEG_INFINITY, f64::max),
                    _ => rows.fold(f64::INFINITY, f64::min),
                }
            });
            values.sum::<f64>() / 3.0
        };
        for arm in 0..2 {
            let [low, a, b, ab] = [0, 1, 2, 3].map(|treatment| response(4 * arm + treatment));
            let known = [(a + ab - low - b) / 2.0, (b + ab - low - a) / 2.0, (a + b - low - ab) / 2.0];
            for (place, known) in known.into_iter().enumerate() {
                let found = report.json["screen"]["arms"][arm]["effects"][place]["estimate"].as_f64().unwrap();
                assert!((found - known).abs() < 1e-12, "{at} {goal} {arm} {place}: {found} and {known}");
            }
        }
    }
}

/// Unfinished replicas are left out, in all treatments of their arm.
#[test]
fn an_unfinished_screen_names_its_omissions() {
    let config = parse(SMALL, &[]).unwrap();
    let mut replicas = local::run(&config).unwrap();
    let fresh = local::start(&config).nth(4).unwrap();
    assert_eq!(fresh.index(), 1);
    replicas[4] = fresh;
    let report = config.report(&replicas);
    let arms = &report.json["screen"]["arms"];
    assert_eq!([&arms[0]["replicas"], &arms[1]["replicas"]], [2, 3]);
    let says = "1 replica in arm \"first\" is left out of the effects: not every treatment has a response of it (not finished, ended \
                early, or without a solution).";
    assert!(report.notes.iter().any(|note| note == says), "{:?}", report.notes);
    let nothing = config.report(&local::start(&config).collect::<Vec<_>>());
    assert_eq!(nothing.tables.len(), 1, "only the design is shown");
}

/// A row that violates constraints is not a response, neither at the end nor as the best of all rounds.
#[test]
fn replicas_without_a_feasible_candidate_are_omitted() {
    let screen = "experiment = \"evolve\"\nreplicas = 6\n[settings]\nalgorithm = \"ga\"\nproblem = \"g06\"\n[screen]\nat = \"end\"\n\
                  [screen.factors]\nA.evaluations = [100, 2000]\n";
    for at in ["end", "peak"] {
        let config = parse(&screen.replace("end", at), &[]).unwrap();
        let replicas = local::run(&config).unwrap();
        let columns = config.kind.columns;
        let violation = columns.iter().position(|column| column.name == "violation").unwrap();
        let last = |place: usize| replicas[place].history().last().unwrap();
        let responses = &config.report(&replicas).json["screen"]["arms"][0]["responses"];
        let mut left_out = 0;
        for place in 0..replicas.len() {
            let infeasible = last(place)[violation] > 0.0;
            assert_eq!(responses[place / 6][place % 6].is_null(), infeasible, "{at} {place}: {responses}");
            left_out += usize::from(infeasible);
        }
        assert!((1..12).contains(&left_out), "{left_out}");
    }
}

#[test]
fn each_mistake_has_a_message() {
    let file = |screen: &str| format!("experiment = \"ternary\"\n[screen]\n{screen}");
    let factors = "[screen.factors]\nA.population = [10, 20]\nB.elite = [1, 2]\nC.mutations = [1, 2]\n";
    let with = |top: &str| file(&format!("{top}\n{factors}"));
    let many: String =
        ["A.population = [10, 20]", "B.elite = [1, 2]", "C.mutations = [1, 2]", "D.penalty = [1, 2]"].join("\n");
    let arms: String = (0..40).map(|arm| format!("[arms.a{arm}]\n")).collect();
    let cases: Vec<(String, Vec<(&str, &str)>)> = vec![
        (file(""), vec![]),
        ("experiment = \"ternary\"\nscreen = 1".into(), vec![]),
        (file("factors = 1\ngenerators = \"C = AB\""), vec![]),
        (with("generators = [1]\nrespons = \"win\""), vec![]),
        (with("response = \"wins\"\nat = \"start\"\ngoal = \"maximise\""), vec![]),
        (with("generators = [\"C = AD\"]"), vec![]),
        (with("generators = [\"C = A\"]"), vec![]),
        (with("generators = [\"C == AB\"]"), vec![]),
        (
            file("[screen.factors]\nA.populaton = [10, 20]\nB.elite = [1, 1]\nC.elite = [1, 2]\nD.slice = [0, 5]"),
            vec![],
        ),
        (file("[screen.factors]\nI.population = [10, 20]\nab.elite = [1, 2]\nC = 1\nD.penalty = [1, 2, 3]"), vec![]),
        (
            file(
                "[screen.factors]\nA.population = [1, 20]\nB.crossover = [\"none\", \"twopoint\"]\nC.elite = [true, 2]",
            ),
            vec![],
        ),
        (format!("{}[settings]\nelite = 3\n[arms.a]\npopulation = 7\n", with("")), vec![]),
        (with(""), vec![("elite", "3"), ("screen", "1"), ("arms.main.elite", "1")]),
        (file("[screen.factors]\nA.population = [10, 20]\nB.elite = [2, 15]\n"), vec![]),
        (format!("{}{arms}", file(&format!("[screen.factors]\n{many}\n"))), vec![]),
        (format!("{}[arms.\"{}\"]", with(""), "x".repeat(62)), vec![]),
    ];
    let messages: Vec<String> = cases.iter().map(|(text, overrides)| problems(text, overrides)).collect();
    insta::assert_snapshot!(messages.join("\n\n"));
}
