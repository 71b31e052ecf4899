//! How much the agents' rules differ from each other, and how many are not valid.

use std::collections::BTreeSet;

use evoxo_common::{experiment::Config, report::Table};
use evoxo_experiments::rules::{agent::Agent, rule::Rule};

use super::{figure, replicas, step};

/// The cycles that the table shows.
const SHOWN: [usize; 3] = [10, 100, 500];

/// The variety of a population, in percent.
struct Variety {
    /// Different rules, as a share of all rules.
    different: f64,
    /// The share of places at which two agents have the same rule, averaged over all pairs.
    shared: f64,
    /// The share of rules that move to a stone.
    invalid: f64,
    /// The best agent's points against a random mover.
    strength: f64,
}

fn variety(agents: &[&Agent], strength: f64) -> Variety {
    let rules = || agents.iter().flat_map(|agent| &agent.rules);
    let count = rules().count() as f64;
    let same = |one: &Agent, other: &Agent| {
        let pairs = one.rules.iter().zip(&other.rules);
        pairs.filter(|(one, other)| one == other).count()
    };
    let pairs = agents.iter().enumerate().flat_map(|(at, one)| agents[..at].iter().map(move |other| same(one, other)));
    let (mut shared, mut places) = (0, 0);
    for same in pairs {
        shared += same;
        places += agents[0].rules.len();
    }
    Variety {
        different: 100.0 * rules().collect::<BTreeSet<&Rule>>().len() as f64 / count,
        shared: 100.0 * shared as f64 / places as f64,
        invalid: 100.0 * rules().filter(|rule| !rule.is_valid()).count() as f64 / count,
        strength,
    }
}

pub(super) fn table(config: &Config) -> Table {
    let column = config.kind.columns.iter().position(|column| column.name == "strength").expect("`rules` has it");
    let mut seen: Vec<Vec<Vec<Variety>>> =
        config.arms.iter().map(|_| SHOWN.iter().map(|_| Vec::new()).collect()).collect();
    for (arm, mut replica) in replicas(config) {
        while step(&mut replica) {
            // A round may have several cycles.
            let history = replica.history();
            if let Some(place) = SHOWN.iter().position(|shown| *shown == history.len()) {
                let strength = history[history.len() - 1][column];
                let cards = replica.population();
                let agents: Vec<&Agent> =
                    cards.iter().map(|card| card.champion_as().expect("a player of `rules` is an agent")).collect();
                seen[arm][place].push(variety(&agents, strength));
            }
        }
    }
    let row = |arm: usize, place: usize| {
        let of = |part: fn(&Variety) -> f64| figure(&seen[arm][place].iter().map(part).collect::<Vec<f64>>(), 1);
        let figures = [of(|it| it.different), of(|it| it.shared), of(|it| it.invalid), of(|it| it.strength)];
        [config.arms[arm].name.clone(), SHOWN[place].to_string()].into_iter().chain(figures).collect()
    };
    let rows = (0..config.arms.len()).flat_map(|arm| (0..SHOWN.len()).map(move |place| (arm, place)));
    Table {
        title: "Rules of all agents after a cycle, in %: mean over replicas ± 95 % interval".into(),
        header: ["arm", "cycle", "different", "the same in two agents", "not valid", "strength"]
            .map(String::from)
            .into(),
        rows: rows.filter(|(arm, place)| !seen[*arm][*place].is_empty()).map(|(arm, place)| row(arm, place)).collect(),
    }
}
