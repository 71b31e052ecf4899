//! `evoxo ancestry`, through the real program.

use std::{collections::BTreeMap, fs, path::Path};

use evoxo_tests::programs::{evoxo, said};
use serde_json::Value;

const FILE: &str = "experiment = \"evolve\"\nreplicas = 2\n[settings]\nproblem = \"onemax\"\nlength = 30\nevaluations = 1500\n\
    population = 40\n[arms.ga]\n[arms.islands]\nislands = 4\nmigration = 3\n[arms.random]\nalgorithm = \"random\"\n";

fn ancestry(desk: &Path, arguments: &[&str]) -> Value {
    let output = evoxo(desk, &[&["ancestry", "out", "--json"], arguments].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {errors}"))
}

/// A whole number of the JSON.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// A list of the JSON.
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// Every ancestor is older than its child and has parents in the list, and every gene can be followed to where it was made.
fn check(found: &Value) {
    let members: BTreeMap<u64, &Value> =
        list(&found["ancestors"]).iter().map(|member| (number(&member["individual"]), member)).collect();
    let mut founders = 0.0;
    for (child, member) in &members {
        let parents = list(&member["parents"]);
        for parent in parents.iter().map(number) {
            assert!(parent < *child && number(&members[&parent]["generation"]) < number(&member["generation"]));
        }
        if parents.is_empty() {
            assert_eq!(member["generation"], 0);
            founders += member["share"].as_f64().expect("a share");
        }
    }
    assert!((founders - 1.0_f64).abs() < 1e-9, "{founders}");
    let champion = number(&found["champion"]["individual"]);
    for (place, gene) in list(&found["genes"]).iter().enumerate() {
        let (mut at, mut passed) = (champion, 0);
        while let Some(parent) = members[&at]["origins"][place].as_u64() {
            at = number(&members[&at]["parents"][parent as usize]);
            passed += 1;
        }
        assert_eq!((number(&gene["individual"]), number(&gene["passed"])), (at, passed));
        assert_eq!(gene["by"], members[&at]["origins"][place]);
        assert_eq!(gene["value"], 1, "the best of these has only ones");
    }
}

#[test]
fn the_ancestors_of_a_champion_are_found_and_drawn() {
    let desk = tempfile::tempdir().expect("a directory");
    let desk = desk.path();
    fs::write(desk.join("ones.toml"), FILE).expect("a file");
    let made = evoxo(desk, &["run", "ones.toml", "--no-page", "--out", "out"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let found = ancestry(desk, &["--svg", "a.svg", "--dot", "a.dot", "--threads", "2"]);
    assert_eq!((found["arm"].as_str(), found["genes"].as_array().map(Vec::len)), (Some("ga"), Some(30)));
    check(&found);
    check(&ancestry(desk, &["--arm", "islands", "--replica", "1"]));
    let (svg, dot) = ["a.svg", "a.dot"].map(|name| fs::read_to_string(desk.join(name)).expect("a file")).into();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
    assert!(dot.starts_with("digraph") && dot.contains(" -> "), "{dot}");
    let (text, status) = said(desk, &["ancestry", "out"]);
    assert!(text.contains("Where each gene of the champion was made") && status == Some(0), "{text}");

    let refused = |arguments: &[&str], sentence: &str| {
        let output = evoxo(desk, &[&["ancestry", "out"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(sentence), "{errors}");
    };
    refused(&["--arm", "random"], "the candidates of random have no parents");
    refused(&["--arm", "nobody"], "there is no arm \"nobody\": give one of ga, islands, random");
    refused(&["--replica", "2"], "there is no replica 2: they are 0 to 1");
    // A result that is not what this build computes has no known ancestors.
    let path = desk.join("out/result.json");
    let text = fs::read_to_string(&path).expect("a result");
    fs::write(&path, text.replacen("\"seed\": 1", "\"seed\": 2", 1)).expect("a result");
    refused(&["--arm", "ga", "--replica", "0"], "is not as this build computes it");
}
