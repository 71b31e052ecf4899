//! Who descends from whom: the individuals of a round with their parents, for those who trace a champion back.

use serde_json::Value;

use crate::settings::Values;

/// An individual that is evaluated for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The [mark] of its genes.
    pub mark: u64,
    /// The marks of its parents, which were evaluated before; empty if its genes are drawn at random or were given.
    pub parents: Vec<u64>,
    /// Where each gene comes from.
    pub origins: Vec<Origin>,
}

/// Where a gene of an individual comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was drawn at random, or given, for an individual without parents.
    First,
    /// It is the same gene of a parent, by its place among the parents.
    Parent(u8),
    /// Crossover made a value that no parent has in this place.
    Crossover,
    /// Mutation.
    Mutation,
    /// It changed in the individual's own life: a decision that a game showed to be impossible, or a rule without success.
    Repair,
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
            Self::Repair => "repair",
        }
    }
}

/// How an individual came to its genes.
pub struct Growth<'a> {
    /// After crossover, or as they were drawn if there are no parents.
    pub crossed: &'a [u64],
    /// After mutation.
    pub mutated: &'a [u64],
    /// In the end.
    pub repaired: &'a [u64],
}

impl Birth {
    /// The birth of an individual with these parents.
    #[must_use]
    pub fn of(parents: &[&[u64]], genes: &Growth<'_>) -> Self {
        let Growth { crossed, mutated, repaired } = genes;
        let origin = |place: usize| {
            if repaired[place] != mutated[place] {
                return Origin::Repair;
            }
            if mutated[place] != crossed[place] {
                return Origin::Mutation;
            }
            match (0..).zip(parents).find(|(_, parent)| parent[place] == crossed[place]) {
                Some((parent, _)) => Origin::Parent(parent),
                None if parents.is_empty() => Origin::First,
                None => Origin::Crossover,
            }
        };
        Self {
            mark: mark(repaired),
            parents: parents.iter().map(|parent| mark(parent)).collect(),
            origins: (0..repaired.len()).map(origin).collect(),
        }
    }
}

/// Genes of one byte each as the genes of a birth.
#[must_use]
pub fn words(genome: &[u8]) -> Vec<u64> {
    genome.iter().map(|gene| u64::from(*gene)).collect()
}

/// A hash of genes: individuals with equal genes share it, and hardly any others.
#[must_use]
pub fn mark(genes: &[u64]) -> u64 {
    let add = |mark: u64, gene: &u64| (mark ^ gene).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    genes.iter().fold(0xcbf2_9ce4_8422_2325 ^ genes.len() as u64, add)
}

/// The individuals of one or several rounds' generations, and the champion so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Births {
    /// The individuals of each generation of the next round that are evaluated for the first time, in order.
    pub generations: Vec<Vec<Birth>>,
    /// The genes of the champion so far.
    pub champion: Option<Vec<u64>>,
}

/// What the genes of [births](Births) mean, for a kind whose individuals have parents.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_that_changed_a_gene_made_it() {
        let parents: [&[u64]; 2] = [&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]];
        let genes = Growth { crossed: &[1, 7, 0, 4, 5], mutated: &[1, 7, 0, 0, 5], repaired: &[1, 7, 0, 0, 0] };
        let birth = Birth::of(&parents, &genes);
        let origins =
            [Origin::Parent(0), Origin::Parent(1), Origin::Crossover, Origin::Mutation, Origin::Repair].to_vec();
        let marks = parents.map(mark).to_vec();
        assert_eq!(birth, Birth { mark: mark(&[1, 7, 0, 0, 0]), parents: marks, origins });
        let alone = Birth::of(&[], &Growth { crossed: &[1, 2], mutated: &[1, 2], repaired: &[1, 3] });
        assert_eq!((alone.parents, alone.origins), (Vec::new(), vec![Origin::First, Origin::Repair]));
    }

    #[test]
    fn marks_tell_genes_apart() {
        let different: [&[u64]; 6] = [&[], &[0], &[0, 0], &[0, 1], &[1, 0], &[1]];
        let marks: std::collections::BTreeSet<u64> = different.map(mark).into();
        assert_eq!(marks.len(), different.len());
    }
}
