//! Who descends from whom in a search: the individuals of each batch with their parents. Nothing of this is stored, because
//! births follow from the state.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Birth, Growth, Lineage, mark},
    settings::Values,
};
use serde_json::Value;

use super::{
    algorithm::{Algorithm, Descent, having, listed},
    genome::{Candidate, Genes, Part},
    settings::Settings,
};

pub(super) const LINEAGE: Lineage = Lineage { genes, value };

/// The names of all genes.
fn genes(values: &Values) -> Result<Vec<String>, String> {
    let settings = Settings::of(values);
    let name = settings.algorithm.name;
    if !settings.algorithm.has_parents {
        let others = listed(&having(|kind| kind.has_parents), "and");
        return Err(format!("the candidates of {name} have no parents that are followed: those of {others} have"));
    }
    let named = |part: &Part| match part.length {
        1 => vec![part.name.clone()],
        length => (0..length).map(|gene| format!("{}[{gene}]", part.name)).collect(),
    };
    Ok(settings.genome().parts.iter().flat_map(named).collect())
}

/// The value of a gene, as cards have it.
fn value(values: &Values, mut gene: usize, bits: u64) -> Value {
    let settings = Settings::of(values);
    for (part, notation) in settings.genome().parts.iter().zip(settings.notations()) {
        if gene < part.length {
            let json = notation.json(&part.gene(bits));
            return json.as_array().and_then(|list| list.first().cloned()).unwrap_or(json);
        }
        gene -= part.length;
    }
    panic!("the genome has no gene {gene} more");
}

/// The genes of a candidate as bits.
pub(super) fn bits(candidate: &Candidate) -> Vec<u64> {
    let of = |genes: &Genes| -> Vec<u64> {
        match genes {
            // Adding 0.0 turns -0.0 into 0.0: the two are equal, but their bits are not.
            Genes::Real(genes) => genes.iter().map(|gene| (gene + 0.0).to_bits()).collect(),
            Genes::Integer(genes) => genes.iter().map(|gene| gene.cast_unsigned()).collect(),
            Genes::Bits(genes) => genes.iter().map(|gene| u64::from(*gene)).collect(),
            Genes::Permutation(genes) | Genes::Symbols(genes) => genes.iter().map(|gene| u64::from(*gene)).collect(),
        }
    };
    candidate.parts.iter().flat_map(of).collect()
}

/// The births of the next batch; with a window, that of the newest candidate. A candidate that the algorithm keeps already is
/// none, nor is a copy of another one.
pub(super) fn births(algorithm: &dyn Algorithm) -> Vec<Birth> {
    let kept: Vec<Vec<u64>> = algorithm.population().iter().map(|individual| bits(&individual.candidate)).collect();
    let mut known: BTreeSet<u64> = kept.iter().map(|genes| mark(genes)).collect();
    let born = |(candidate, descent): (Candidate, Option<Descent>)| {
        let genes = bits(&candidate);
        let parents = descent.iter().flat_map(|descent| descent.parents).map(|place| &kept[place][..]);
        let crossed = descent.as_ref().map_or_else(|| genes.clone(), |descent| bits(&descent.crossed));
        Birth::of(&parents.collect::<Vec<_>>(), &Growth { crossed: &crossed, mutated: &genes, repaired: &genes })
    };
    algorithm.newest().into_iter().map(born).filter(|birth| known.insert(birth.mark)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use evoxo_common::experiment::Origin;

    use super::*;
    use crate::algorithm::tests::{next, with_parents};

    /// The program that evaluates candidates sees the same individuals, in the same order; parents were evaluated before; and
    /// a gene that comes from a parent is the parent's.
    #[test]
    fn births_agree_with_what_is_evaluated() {
        for (name, mut algorithm, problem) in with_parents() {
            let (mut evaluated, mut of_mutation, mut of_crossover) = (BTreeMap::new(), 0, 0);
            while algorithm.size() > 0 {
                let candidates = next(&*algorithm);
                let made: Vec<Candidate> = algorithm.newest().into_iter().map(|(candidate, _)| candidate).collect();
                assert!(!algorithm.has_barrier() || made == candidates, "{name}");
                let mut kept: Vec<&Candidate> = algorithm.population().iter().map(|kept| &kept.candidate).collect();
                let mut new = Vec::new();
                for candidate in &made {
                    if !kept.contains(&candidate) {
                        kept.push(candidate);
                        new.push(bits(candidate));
                    }
                }
                let births = births(&*algorithm);
                assert_eq!(births.len(), new.len(), "{name}");
                for (Birth { mark: own, parents, origins }, genes) in births.iter().zip(&new) {
                    assert_eq!(*own, mark(genes), "{name}");
                    // With a window, the first candidates come one after another.
                    assert!(name == "windowed" || parents.is_empty() == (algorithm.births() == 0), "{name}");
                    let parents: Vec<&Vec<u64>> = parents.iter().map(|mark| &evaluated[mark]).collect();
                    for (gene, origin) in origins.iter().enumerate() {
                        match origin {
                            Origin::First => assert!(parents.is_empty(), "{name}"),
                            Origin::Parent(place) => {
                                assert_eq!(parents[usize::from(*place)][gene], genes[gene], "{name}");
                            }
                            Origin::Crossover => of_crossover += 1,
                            Origin::Mutation => of_mutation += 1,
                            Origin::Repair => panic!("{name}"),
                        }
                    }
                }
                evaluated.extend(made.iter().map(bits).map(|genes| (mark(&genes), genes)));
                let evaluations: Vec<_> = candidates.iter().map(|one| problem.minimised(one)).collect();
                algorithm.tell(&evaluations);
            }
            // Bits are never blended.
            let blends = !["restricted-ga", "islands"].contains(&name);
            assert!((of_mutation > 0 || name == "map-elites") && (of_crossover > 0) == blends, "{name}");
        }
    }
}
