//! Who descends from whom in a search: the individuals of each batch with their parents. Nothing of this is stored, because
//! births follow from the state.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Birth, Lineage, Origin},
    settings::Values,
};
use serde_json::Value;

use super::{
    algorithm::{Algorithm, Descent, Individual},
    genome::{Candidate, Genes, Part},
    settings::Settings,
};

pub(super) const LINEAGE: Lineage = Lineage { genes, value };

/// The names of all genes.
fn genes(values: &Values) -> Result<Vec<String>, String> {
    let settings = Settings::of(values);
    let name = settings.algorithm.name;
    if !settings.algorithm.has_parents {
        return Err(format!(
            "the candidates of {name} have no parents: it does not make them from others that it keeps"
        ));
    }
    if settings.window > 0 {
        return Err("parents are followed through whole generations only: the run has window > 0".into());
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
fn bits(candidate: &Candidate) -> Vec<u64> {
    let of = |genes: &Genes| -> Vec<u64> {
        match genes {
            Genes::Real(genes) => genes.iter().map(|gene| gene.to_bits()).collect(),
            Genes::Integer(genes) => genes.iter().map(|gene| gene.cast_unsigned()).collect(),
            Genes::Bits(genes) => genes.iter().map(|gene| u64::from(*gene)).collect(),
            Genes::Permutation(genes) | Genes::Symbols(genes) => genes.iter().map(|gene| u64::from(*gene)).collect(),
        }
    };
    candidate.parts.iter().flat_map(of).collect()
}

/// The births of the next batch. A candidate that the algorithm keeps already is none, nor is a copy of another one.
pub(super) fn births(algorithm: &dyn Algorithm) -> Vec<Birth> {
    let kept = algorithm.population();
    let mut known: BTreeSet<u64> = kept.iter().map(|individual| individual.candidate.mark()).collect();
    let candidates = algorithm.ask(0..algorithm.size()).into_iter().zip(algorithm.descents());
    let new = candidates.filter(|(candidate, _)| known.insert(candidate.mark()));
    new.map(|(candidate, descent)| birth(kept, &candidate, descent)).collect()
}

fn birth(kept: &[Individual], candidate: &Candidate, descent: Option<Descent>) -> Birth {
    let (mark, genes) = (candidate.mark(), bits(candidate));
    let Some(descent) = descent else {
        let origins = vec![Origin::First; genes.len()];
        return Birth { mark, parents: Vec::new(), genes, origins };
    };
    let parents = descent.parents.map(|place| &kept[place].candidate);
    let (of_parents, crossed) = (parents.map(bits), bits(&descent.crossed));
    let origin = |place: usize| match of_parents.iter().position(|parent| parent[place] == crossed[place]) {
        _ if crossed[place] != genes[place] => Origin::Mutation,
        Some(parent) => Origin::Parent(parent),
        None => Origin::Crossover,
    };
    let origins = (0..genes.len()).map(origin).collect();
    Birth { mark, parents: parents.map(Candidate::mark).to_vec(), genes, origins }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::evolve::algorithm::tests::with_parents;

    /// The program that evaluates candidates sees the same individuals, in the same order; parents were evaluated before; and
    /// a gene that comes from a parent is the parent's.
    #[test]
    fn births_agree_with_what_is_evaluated() {
        for (name, mut algorithm, problem) in with_parents() {
            let (mut evaluated, mut of_mutation, mut of_crossover) = (BTreeMap::new(), 0, 0);
            while algorithm.size() > 0 {
                let candidates = algorithm.ask(0..algorithm.size());
                let mut kept: Vec<&Candidate> = algorithm.population().iter().map(|kept| &kept.candidate).collect();
                let mut new = Vec::new();
                for candidate in &candidates {
                    if !kept.contains(&candidate) {
                        kept.push(candidate);
                        new.push(candidate.mark());
                    }
                }
                let births = births(&*algorithm);
                assert_eq!(births.iter().map(|birth| birth.mark).collect::<Vec<u64>>(), new, "{name}");
                for Birth { parents, genes, origins, .. } in &births {
                    assert_eq!(parents.is_empty(), algorithm.births() == 0, "{name}");
                    let parents: Vec<&Vec<u64>> = parents.iter().map(|mark| &evaluated[mark]).collect();
                    for (gene, origin) in origins.iter().enumerate() {
                        match origin {
                            Origin::First => assert!(parents.is_empty(), "{name}"),
                            Origin::Parent(place) => assert_eq!(parents[*place][gene], genes[gene], "{name}"),
                            Origin::Crossover => of_crossover += 1,
                            Origin::Mutation => of_mutation += 1,
                        }
                    }
                }
                evaluated.extend(candidates.iter().map(|one| (one.mark(), bits(one))));
                let evaluations: Vec<_> = candidates.iter().map(|one| problem.minimised(one)).collect();
                algorithm.tell(&evaluations);
            }
            // Bits are never blended.
            let blends = !["restricted-ga", "islands"].contains(&name);
            assert!((of_mutation > 0 || name == "map-elites") && (of_crossover > 0) == blends, "{name}");
        }
    }
}
