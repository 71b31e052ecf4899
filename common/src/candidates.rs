//! What the candidates of a search consist of, for tables and pictures of any problem: objectives, constraints, measures and
//! genes, each with a name and with what is known about its values.

use serde_json::{Value, json};

/// A candidate's values, one for each [`Quantity`] of its arm: numbers, words or texts. Null stands for a missing value.
pub type Candidate = Vec<Value>;

/// A column of a table of candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The name. No two quantities of an arm have the same name and role.
    pub name: String,
    /// What the values mean.
    pub role: Role,
}

/// What a value of a candidate means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// What the search improves.
    Objective {
        /// Whether greater values are better.
        maximised: bool,
    },
    /// A number that should be at most 0.
    Constraint,
    /// A number that describes the candidate's behaviour.
    Measure,
    /// A gene, or a part of the genome that is one text.
    Gene {
        /// The least and the greatest value, if the gene is a number.
        bounds: Option<(f64, f64)>,
    },
}

impl Quantity {
    /// The quantity as JSON, for the page.
    #[must_use]
    pub fn json(&self) -> Value {
        let role = match self.role {
            Role::Objective { .. } => "objective",
            Role::Constraint => "constraint",
            Role::Measure => "measure",
            Role::Gene { .. } => "gene",
        };
        let mut json = json!({"name": self.name, "role": role});
        match self.role {
            Role::Objective { maximised } => json["best"] = if maximised { "greatest" } else { "least" }.into(),
            Role::Gene { bounds: Some((low, high)) } => (json["low"], json["high"]) = (low.into(), high.into()),
            Role::Constraint | Role::Measure | Role::Gene { bounds: None } => {}
        }
        json
    }
}
