//! The card of the best candidate: its genes, and its values.
//!
//! ```json
//! {"kind": "candidate", "problem": "sphere", "objectives": {"min value": 0.25}, "genes": {"x": [0.5, 0.0]}}
//! ```
//!
//! For a program or a module there is its version too: the first 16 digits of its signature, or of the SHA-256 of its bytes.

use std::sync::Arc;

use evoxo_common::{
    candidates::{Candidate, Quantity, Role},
    card::{Answer, CardKind, Champion, Entries, FileBeside, Load, Showing},
    report::Sheet,
    text::{rounded, wrapped},
};
use serde_json::{Map, Value, json};

use super::{
    confirm::Confirmed,
    evaluation::Evaluation,
    genome::{self, Genes, Genome, Part, Type},
    notation::Notation,
    settings::Settings,
};

/// The kind of card.
pub(super) const CARD: CardKind = CardKind {
    name: NAME,
    keys: &["kind", "problem", "version", "objectives", "violation", "constraints", "measures", "confirmed", "genes"],
    about: &[],
    read,
    file: None,
};

const NAME: &str = "candidate";

/// A candidate with its values, as they are on its card.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    problem: String,
    /// The version of a program or module, else empty.
    version: String,
    /// Objectives by "min NAME" or "max NAME".
    objectives: Map<String, Value>,
    /// The sum of the broken constraints.
    violation: f64,
    /// Constraints by name. A constraint is satisfied if its number is at most 0.
    constraints: Map<String, Value>,
    /// Behaviour measures by name, in the problem's order.
    measures: Map<String, Value>,
    /// For a noisy problem, else empty: the number of evaluations with fresh seeds whose means are on the card, how many of
    /// them had no value, and the 95 % interval of the first objective.
    confirmed: Map<String, Value>,
    /// Genes by the names of their parts, without the parts that are not there.
    genes: Map<String, Value>,
}

impl Found {
    pub(super) fn new(settings: &Settings, candidate: &genome::Candidate, evaluation: &Evaluation) -> Self {
        let by_name =
            |names: Vec<String>, numbers: &[f64]| names.into_iter().zip(numbers.iter().map(|it| json!(it))).collect();
        let objective = |(index, (maximised, name)): (usize, (bool, String))| {
            let direction = if maximised { "max" } else { "min" };
            (format!("{direction} {name}"), settings.said(index, evaluation.objective(index)).into())
        };
        Self {
            problem: settings.problem.clone(),
            // As many digits as messages show.
            version: settings.signature.chars().take(16).collect(),
            objectives: settings.objectives().into_iter().enumerate().map(objective).collect(),
            violation: evaluation.violation(),
            constraints: by_name(settings.constraints_by_name(), &evaluation.constraints),
            measures: by_name(settings.measures_by_name(), &evaluation.measures),
            confirmed: Map::new(),
            genes: settings.activity().values(&settings.genome(), &settings.notations(), candidate),
        }
    }

    /// A candidate from the answer of a noisy search.
    pub(super) fn confirmed(settings: &Settings, answer: &Confirmed) -> Self {
        let Confirmed { candidate, mean, half_width, draws, failures } = answer;
        let first = settings.said(0, mean.objective(0));
        let said: [(&str, Value); 4] = [
            ("evaluations", (*draws).into()),
            ("failures", (*failures).into()),
            ("low", (first - half_width).max(f64::MIN).into()),
            ("high", (first + half_width).min(f64::MAX).into()),
        ];
        let confirmed = said.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { confirmed, ..Self::new(settings, candidate, mean) }
    }

    /// The values in a table's columns: objectives, constraints, measures and, if wanted, genes. Those of a part that is not
    /// there are null.
    fn row(&self, genome: &Genome, notations: &[Notation], with_genes: bool) -> Vec<Value> {
        let numbers = [&self.objectives, &self.constraints, &self.measures];
        let mut row: Vec<Value> = numbers.into_iter().flat_map(Map::values).cloned().collect();
        for (part, notation) in genome.parts.iter().zip(notations).filter(|_| with_genes) {
            match self.genes.get(&part.name) {
                Some(Value::Array(bits)) if part.of == Type::Bits => {
                    row.push(bits.iter().map(Value::to_string).collect::<String>().into());
                }
                Some(Value::Array(genes)) => row.extend_from_slice(genes),
                Some(word) => row.push(word.clone()),
                None => row.resize(row.len() + if is_word(part, notation) { 1 } else { part.length }, Value::Null),
            }
        }
        row
    }
}

/// The most characters in a line of genes.
const WIDTH: usize = 100;

/// A number of a card, formatted for people: whole numbers whole, others rounded.
fn read_number(number: &Value) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => rounded(value),
        _ => exact(number),
    }
}

/// A number of a card with all digits, or a word.
fn exact(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(word) => word.clone(),
        number => number.to_string(),
    }
}

/// The genes of a part, formatted for people.
fn read_genes(genes: &Value) -> String {
    match genes {
        Value::String(word) => word.clone(),
        other => other.as_array().into_iter().flatten().map(read_number).collect::<Vec<_>>().join(" "),
    }
}

/// The most genes in a table.
const SHEET_GENES_MAX: usize = 1_000_000;
/// The most genes of a candidate in the page's table. A longer genome is left out there.
const GENES_MAX: usize = 2000;

/// Candidates as a table: objectives, constraints, measures and genes. Genes are left out if there are more than
/// [`SHEET_GENES_MAX`].
pub(super) fn sheet(name: &'static str, settings: &Settings, found: &[Found]) -> Sheet {
    let genome = settings.genome();
    let with_genes = genome.genes().saturating_mul(found.len()) <= SHEET_GENES_MAX;
    let objectives = settings.objectives().into_iter().map(|(_, name)| name);
    let mut header: Vec<String> =
        objectives.chain(settings.constraints_by_name()).chain(settings.measures_by_name()).collect();
    if with_genes {
        header.extend(gene_columns(settings, &genome).into_iter().map(|(name, _)| name));
    }
    let notations = settings.notations();
    let row = |found: &Found| found.row(&genome, &notations, with_genes).iter().map(exact).collect();
    Sheet { name, header, rows: found.iter().map(row).collect() }
}

/// The columns of the genes, each with its bounds if it has numbers. Bits and texts have one column for the whole part.
fn gene_columns(settings: &Settings, genome: &Genome) -> Vec<(String, Option<(f64, f64)>)> {
    let columns = |(part, notation): (&Part, Notation)| {
        let bounds = bounds(part, &notation);
        match part.of {
            _ if is_word(part, &notation) => vec![(part.name.clone(), None)],
            _ if part.length == 1 => vec![(part.name.clone(), bounds)],
            _ => (0..part.length).map(|gene| (format!("{}[{gene}]", part.name), bounds)).collect(),
        }
    };
    genome.parts.iter().zip(settings.notations()).flat_map(columns).collect()
}

/// Whether a part has one column for all its genes.
fn is_word(part: &Part, notation: &Notation) -> bool {
    part.of == Type::Bits || notation.is_text()
}

/// The least and the greatest value of a part's genes, if they are numbers.
fn bounds(part: &Part, notation: &Notation) -> Option<(f64, f64)> {
    let ends = match part.of {
        Type::Real { low, high } => Genes::Real(vec![low, high]),
        Type::Integer { low, high } => Genes::Integer(vec![low, high]),
        Type::Permutation => return Some((0.0, part.length as f64 - 1.0)),
        Type::Bits | Type::Symbols { .. } => return None,
    };
    let ends = notation.json(&ends);
    Some((ends[0].as_f64()?, ends[1].as_f64()?))
}

/// What a candidate consists of, with at most [`GENES_MAX`] genes.
pub(super) fn quantities(settings: &Settings) -> Vec<Quantity> {
    let genome = settings.genome();
    let objectives = settings.objectives().into_iter().map(|(maximised, name)| (name, Role::Objective { maximised }));
    let constraints = settings.constraints_by_name().into_iter().map(|name| (name, Role::Constraint));
    let measures = settings.measures_by_name().into_iter().map(|name| (name, Role::Measure));
    let genes = if genome.genes() <= GENES_MAX { gene_columns(settings, &genome) } else { Vec::new() };
    let genes = genes.into_iter().map(|(name, bounds)| (name, Role::Gene { bounds }));
    let all = objectives.chain(constraints).chain(measures).chain(genes);
    all.map(|(name, role)| Quantity { name, role }).collect()
}

/// Candidates with a value for each of the [quantities].
pub(super) fn candidates(settings: &Settings, found: &[Found]) -> Vec<Candidate> {
    let (genome, notations) = (settings.genome(), settings.notations());
    found.iter().map(|found| found.row(&genome, &notations, genome.genes() <= GENES_MAX)).collect()
}

fn read(entries: &Entries, _: &str, _: &mut Load<'_>) -> evoxo_common::card::Found {
    let missing = |key: &str| format!("the card's {key:?} is missing, or of another type");
    let object = |key: &str| entries.get(key).and_then(Value::as_object).cloned().ok_or_else(|| missing(key));
    let problem = entries.get("problem").and_then(Value::as_str).ok_or_else(|| missing("problem"))?.to_owned();
    let version = entries.get("version").map_or(Some(""), Value::as_str).ok_or_else(|| missing("version"))?.to_owned();
    let numbers = |key: &str| {
        object(key).and_then(|all| if all.values().all(Value::is_number) { Ok(all) } else { Err(missing(key)) })
    };
    let some_numbers = |key: &str| entries.get(key).map_or_else(|| Ok(Map::new()), |_| numbers(key));
    let objectives = numbers("objectives")?;
    let violation = entries.get("violation").map_or(Some(0.0), Value::as_f64).ok_or_else(|| missing("violation"))?;
    let (constraints, measures) = (some_numbers("constraints")?, some_numbers("measures")?);
    let confirmed = some_numbers("confirmed")?;
    let genes = object("genes")?;
    let plain = |genes: &Value| match genes {
        Value::String(_) => true,
        Value::Array(list) => !list.iter().any(|gene| gene.is_array() || gene.is_object()),
        _ => false,
    };
    if !genes.values().all(plain) {
        return Err(missing("genes"));
    }
    Ok(Arc::new(Found { problem, version, objectives, violation, constraints, measures, confirmed, genes }))
}

impl Champion for Found {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<FileBeside>) {
        let mut card = Map::new();
        card.insert("kind".into(), NAME.into());
        card.insert("problem".into(), self.problem.as_str().into());
        if !self.version.is_empty() {
            card.insert("version".into(), self.version.as_str().into());
        }
        card.insert("objectives".into(), self.objectives.clone().into());
        if self.violation > 0.0 {
            card.insert("violation".into(), self.violation.into());
        }
        for (key, numbers) in
            [("constraints", &self.constraints), ("measures", &self.measures), ("confirmed", &self.confirmed)]
        {
            if !numbers.is_empty() {
                card.insert(key.into(), numbers.clone().into());
            }
        }
        card.insert("genes".into(), self.genes.clone().into());
        (card, None)
    }

    fn show(&self, first: usize) -> Showing {
        let version = if self.version.is_empty() { String::new() } else { format!(", version {}", self.version) };
        let mut text = format!("A candidate of {}{version}\n", self.problem);
        for (objective, value) in &self.objectives {
            text += &format!("  {objective}: {}\n", read_number(value));
        }
        if let [Some(evaluations), Some(low), Some(high)] =
            ["evaluations", "low", "high"].map(|key| self.confirmed.get(key))
        {
            let (low, high) = (read_number(low), read_number(high));
            text +=
                &format!("  the means of {evaluations} evaluations with fresh seeds; 95 % interval {low} to {high}\n");
        }
        if self.violation > 0.0 {
            text += &format!("  constraints are broken by {} together\n", rounded(self.violation));
        }
        for (name, value) in &self.constraints {
            let kept = if value.as_f64() <= Some(0.0) { "kept" } else { "broken" };
            text += &format!("  {name}: {} (a constraint, {kept})\n", read_number(value));
        }
        for (name, value) in &self.measures {
            text += &format!("  {name}: {} (a measure)\n", read_number(value));
        }
        let mut shown = Map::new();
        for (part, genes) in &self.genes {
            let genes: Value = match genes {
                Value::String(word) => word.chars().take(first).collect::<String>().into(),
                other => other.as_array().into_iter().flatten().take(first).cloned().collect::<Vec<_>>().into(),
            };
            text += &format!("\n{part}\n{}\n", wrapped(&read_genes(&genes), WIDTH, ""));
            shown.insert(part.clone(), genes);
        }
        let json = json!({
            "problem": self.problem,
            "version": self.version,
            "objectives": self.objectives,
            "violation": self.violation,
            "constraints": self.constraints,
            "measures": self.measures,
            "confirmed": self.confirmed,
            "genes": shown,
        });
        Showing { text, json }
    }
    fn answer(&self) -> Option<Answer> {
        let of_front = self.objectives.keys().next().filter(|_| self.objectives.len() > 1);
        let what = of_front.map_or_else(
            || "The best candidate".to_owned(),
            |first| format!("One candidate of the front, the best by {first}"),
        );
        let named = |(name, value): (&String, &Value)| (name.clone(), read_number(value));
        let numbers = [&self.objectives, &self.constraints, &self.measures];
        let values = numbers.into_iter().flatten().map(named).collect();
        let parts = self.genes.iter().map(|(part, genes)| (part.clone(), read_genes(genes))).collect();
        Some(Answer { what, values, parts })
    }
}
