//! Who descends from whom: the individuals of a round with their parents, for those who trace a champion back.

use serde_json::Value;

use crate::settings::Values;

/// An individual that the next round evaluates for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Which individual it is: those with equal genes have equal marks, and hardly any others.
    pub mark: u64,
    /// The marks of its parents, which were evaluated before; empty if its genes are drawn at random or were given.
    pub parents: Vec<u64>,
    /// Its genes, as [`Lineage::value`] reads them.
    pub genes: Vec<u64>,
    /// Where each gene comes from.
    pub origins: Vec<Origin>,
}

/// Where a gene of an individual comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was drawn at random, or given, for an individual without parents.
    First,
    /// It is the same gene of a parent, by its place among the parents.
    Parent(usize),
    /// Crossover made a value that no parent has in this place.
    Crossover,
    /// Mutation.
    Mutation,
}

impl Origin {
    /// The name of what made the gene, or "parent".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first population",
            Self::Parent(_) => "parent",
            Self::Crossover => "crossover",
            Self::Mutation => "mutation",
        }
    }
}

/// What the genes of [births](Birth) mean, for a kind whose individuals have parents.
#[derive(Clone, Copy)]
pub struct Lineage {
    /// The name of each gene with these settings.
    ///
    /// # Errors
    /// A sentence if individuals have no parents with these settings.
    pub genes: fn(&Values) -> Result<Vec<String>, String>,
    /// The value of the gene with this number, as cards have it.
    pub value: fn(&Values, usize, u64) -> Value,
}
