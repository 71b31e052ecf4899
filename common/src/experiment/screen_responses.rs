//! The responses of a screen, by arm of its file, treatment and replica. Everything that a screen reports is made from them.

use serde_json::Value;

use super::{At, Config, Goal, Replica, Screen};
use crate::screen::Effects;

/// "percent at the end", or "greatest percent".
pub(super) fn response_text(config: &Config, screen: &Screen) -> String {
    let name = config.kind.columns[screen.response].name;
    match (screen.at, screen.goal) {
        (At::End, _) => format!("{name} at the end"),
        (At::Peak, Goal::Maximize) => format!("greatest {name}"),
        (At::Peak, Goal::Minimize) => format!("least {name}"),
    }
}

/// The findings for one arm of the file.
pub(super) struct Screened<'a> {
    pub(super) arm: &'a str,
    /// By treatment and replica. `None` if the replica is unfinished, ended early, or found no solution.
    pub(super) responses: Vec<Vec<Option<f64>>>,
    /// The same responses, for only those replicas that have one in all treatments.
    pub(super) whole: Vec<Vec<f64>>,
    pub(super) effects: Option<Effects>,
}

impl<'a> Screened<'a> {
    fn new(screen: &Screen, arm: &'a str, responses: Vec<Vec<Option<f64>>>) -> Self {
        let replicas = responses.iter().map(Vec::len).min().unwrap_or(0);
        let whole = |replica: &usize| responses.iter().all(|list| list[*replica].is_some());
        let kept: Vec<usize> = (0..replicas).filter(whole).collect();
        let of_treatment = |list: &Vec<Option<f64>>| kept.iter().filter_map(|replica| list[*replica]).collect();
        let whole: Vec<Vec<f64>> = responses.iter().map(of_treatment).collect();
        let effects = Effects::of(&screen.design, &whole);
        Self { arm, responses, whole, effects }
    }

    /// The number of replicas that are left out because they lack a response in some treatment.
    pub(super) fn left_out(&self) -> usize {
        let most = self.responses.iter().map(Vec::len).max().unwrap_or(0);
        most - self.whole.first().map_or(0, Vec::len)
    }
}

/// The responses, by arm of the configuration and replica.
pub(super) type Responses = Vec<Vec<Option<f64>>>;

/// The responses of these replicas.
pub(super) fn responses(config: &Config, screen: &Screen, replicas: &[Replica]) -> Responses {
    // The primary metric is meaningful only for a solution.
    let value = |row: &[f64]| match screen.response == config.kind.primary_metric {
        true => config.kind.metric(row),
        false => row.get(screen.response).copied(),
    };
    let of = |replica: &Replica| {
        let whole = replica.is_finished() && replica.failure().is_none();
        whole.then(|| screen.response_of(replica.history(), value)).flatten()
    };
    let of_arm = |name: &str| replicas.iter().filter(|replica| replica.arm() == name).map(of).collect();
    config.arms.iter().map(|arm| of_arm(&arm.name)).collect()
}

/// The responses in a `result.json`.
pub(super) fn responses_of_result(screen: &Screen, told: &Value) -> Option<Responses> {
    let list = |value: &Value| Some(value.as_array()?.iter().map(Value::as_f64).collect());
    let arms = told["arms"].as_array()?.iter().map(|arm| arm["responses"].as_array()?.iter().map(list).collect());
    let arms = arms.collect::<Option<Vec<Vec<Vec<Option<f64>>>>>>()?;
    let fits = |arm: &Vec<_>| arm.len() == screen.design.treatments();
    (arms.len() == screen.arms.len() && arms.iter().all(fits)).then(|| arms.concat())
}

/// The findings for each arm of the file.
pub(super) fn screened(screen: &Screen, responses: Responses) -> Vec<Screened<'_>> {
    let mut lists = responses.into_iter();
    let of = |arm| Screened::new(screen, arm, lists.by_ref().take(screen.design.treatments()).collect());
    screen.arms.iter().map(String::as_str).map(of).collect()
}
