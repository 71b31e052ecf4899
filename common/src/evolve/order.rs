//! Crossover and mutation of permutations of 0 to n - 1.

use crate::rng::{Generator, below};

/// Two different positions, the lower one first.
///
/// # Panics
/// If there are fewer than two.
fn places(rng: &mut Generator, length: usize) -> (usize, usize) {
    assert!(length >= 2, "two places of {length} were asked for");
    let one = below(rng, length as u64) as usize;
    let other = below(rng, length as u64 - 1) as usize;
    let two = if other < one { other } else { other + 1 };
    (one.min(two), one.max(two))
}

/// Order crossover: the child has the mother's part between two random positions. The rest follows in the order in which it
/// comes after that part in the father, wrapping around the end (L. Davis, "Applying Adaptive Algorithms to Epistatic
/// Domains", IJCAI 1985; Eiben and Smith 2015, section 4.5.1).
///
/// # Panics
/// If the parents are not permutations of equal length, of two or more.
pub fn order_crossover(rng: &mut Generator, mother: &[u32], father: &[u32]) -> Vec<u32> {
    assert_eq!(mother.len(), father.len(), "crossover needs parents of equal length");
    let length = mother.len();
    let (start, last) = places(rng, length);
    let mut kept = vec![false; length];
    mother[start..=last].iter().for_each(|gene| kept[*gene as usize] = true);
    let mut child = mother.to_vec();
    let around = (0..length).map(|offset| (last + 1 + offset) % length);
    let others = around.clone().map(|place| father[place]).filter(|gene| !kept[*gene as usize]);
    around.zip(others).for_each(|(place, gene)| child[place] = gene);
    child
}

/// Edge recombination: the child is a round trip in which nearly all edges come from its parents. From each city it goes to
/// one of the neighbours that the city has in the parents: to a neighbour in both parents if there is one, else to the one
/// with the fewest neighbours left, else (very rarely) to any city.
///
/// D. Whitley, T. Starkweather and D. Fuquay, "Scheduling Problems and Traveling Salesmen: The Genetic Edge Recombination
/// Operator", ICGA 1989; edges of both parents first: K. Mathias and D. Whitley, "Genetic Operators, the Fitness Landscape
/// and the Traveling Salesman Problem", PPSN II, 1992; Eiben and Smith 2015, section 4.5.1.
///
/// # Panics
/// If the parents are not permutations of equal length.
pub fn edge_recombination(rng: &mut Generator, mother: &[u32], father: &[u32]) -> Vec<u32> {
    assert_eq!(mother.len(), father.len(), "crossover needs parents of equal length");
    let length = mother.len();
    if length < 2 {
        return mother.to_vec();
    }
    // For each city, its neighbours that are not visited yet, each with whether both parents have the edge.
    let mut neighbours: Vec<Vec<(u32, bool)>> = vec![Vec::with_capacity(4); length];
    for parent in [mother, father] {
        for (place, city) in parent.iter().enumerate() {
            for other in [parent[(place + 1) % length], parent[(place + length - 1) % length]] {
                let list = &mut neighbours[*city as usize];
                match list.iter_mut().find(|(known, _)| *known == other) {
                    Some((_, both)) => *both = true,
                    None => list.push((other, false)),
                }
            }
        }
    }
    // The unvisited cities, and the position of each among them.
    let (mut open, mut place): (Vec<u32>, Vec<usize>) = ((0..length as u32).collect(), (0..length).collect());
    let mut child = Vec::with_capacity(length);
    let mut next = mother.first().copied();
    while let Some(city) = next {
        child.push(city);
        open.swap_remove(place[city as usize]);
        if let Some(moved) = open.get(place[city as usize]) {
            place[*moved as usize] = place[city as usize];
        }
        let around = std::mem::take(&mut neighbours[city as usize]);
        around.iter().for_each(|(other, _)| neighbours[*other as usize].retain(|(back, _)| *back != city));
        next = choose(rng, &around, &neighbours)
            .or_else(|| (!open.is_empty()).then(|| open[below(rng, open.len() as u64) as usize]));
    }
    child
}

/// The next city of [`edge_recombination`]; ties are broken at random.
fn choose(rng: &mut Generator, around: &[(u32, bool)], neighbours: &[Vec<(u32, bool)>]) -> Option<u32> {
    let worth = |(city, both): &(u32, bool)| (!both, neighbours[*city as usize].len());
    let best = around.iter().map(worth).min()?;
    let equal: Vec<u32> = around.iter().filter(|entry| worth(entry) == best).map(|(city, _)| *city).collect();
    Some(equal[below(rng, equal.len() as u64) as usize])
}

/// Swaps two different genes (Eiben and Smith 2015, section 4.5.2).
///
/// # Panics
/// If there are fewer than two genes.
pub fn swap<G>(rng: &mut Generator, genome: &mut [G]) {
    let (one, two) = places(rng, genome.len());
    genome.swap(one, two);
}

/// Reverses the part between two different genes, including both. In a round trip this exchanges two edges, a 2-opt move (G.
/// A. Croes, "A Method for Solving Traveling-Salesman Problems", Operations Research 6, 1958; Eiben and Smith 2015, section
/// 4.5.2).
///
/// # Panics
/// If there are fewer than two genes.
pub fn invert<G>(rng: &mut Generator, genome: &mut [G]) {
    let (start, last) = places(rng, genome.len());
    genome[start..=last].reverse();
}

/// Takes a gene out and inserts it at another position; the genes in between move by one (D. B. Fogel 1988; Eiben and Smith
/// 2015, section 4.5.2).
///
/// # Panics
/// If there are fewer than two genes.
pub fn insert<G>(rng: &mut Generator, genome: &mut [G]) {
    let (start, last) = places(rng, genome.len());
    match below(rng, 2) {
        0 => genome[start..=last].rotate_left(1),
        _ => genome[start..=last].rotate_right(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, shuffle};
    use proptest::prelude::*;

    fn permutation(rng: &mut Generator, length: usize) -> Vec<u32> {
        let mut genome: Vec<u32> = (0..length as u32).collect();
        shuffle(rng, &mut genome);
        genome
    }

    fn is_permutation(genome: &[u32]) -> bool {
        let mut sorted = genome.to_vec();
        sorted.sort_unstable();
        sorted.iter().copied().eq(0..genome.len() as u32)
    }

    /// The edges of a round trip, each with its lower city first.
    fn edges(genome: &[u32]) -> Vec<(u32, u32)> {
        let next = genome.iter().cycle().skip(1);
        genome.iter().zip(next).map(|(one, two)| (*one.min(two), *one.max(two))).collect()
    }

    proptest! {
        #[test]
        fn children_are_permutations(seed: u64, length in 2..40_usize) {
            let mut rng = Stream::root(seed).rng();
            let (mother, father) = (permutation(&mut rng, length), permutation(&mut rng, length));
            prop_assert!(is_permutation(&order_crossover(&mut rng, &mother, &father)));
            prop_assert!(is_permutation(&edge_recombination(&mut rng, &mother, &father)));
            prop_assert_eq!(order_crossover(&mut rng, &mother, &mother), mother.clone());
            let mut genome = mother.clone();
            for mutate in [swap, invert, insert] {
                let before = genome.clone();
                mutate(&mut rng, &mut genome);
                prop_assert!(is_permutation(&genome) && genome != before);
            }
        }

        /// An inversion exchanges two edges of a round trip, a swap at most four, an insertion three.
        #[test]
        fn moves_exchange_few_edges(seed: u64, length in 2..40_usize) {
            let mut rng = Stream::root(seed).rng();
            for (mutate, most) in [(invert as fn(&mut Generator, &mut [u32]), 2), (insert, 3), (swap, 4)] {
                let mut genome = permutation(&mut rng, length);
                let before = edges(&genome);
                mutate(&mut rng, &mut genome);
                let new = edges(&genome).iter().filter(|edge| !before.contains(edge)).count();
                prop_assert!(new <= most, "{new} edges are new");
            }
        }
    }

    /// The example of Eiben and Smith, figure 4.10: the part 4 5 6 7 of 1 to 9 and the father 9 3 7 8 2 6 5 1 4 give
    /// 3 8 2 4 5 6 7 1 9.
    #[test]
    fn order_crossover_follows_the_textbook() {
        let (mother, father) = ([0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 2, 6, 7, 1, 5, 4, 0, 3]);
        let mut rng = Stream::root(1).rng();
        let seen = (0..1000).any(|_| order_crossover(&mut rng, &mother, &father) == [2, 7, 1, 3, 4, 5, 6, 0, 8]);
        assert!(seen, "the example's segment is one of 36");
    }

    /// The paper measured that 1 to 1.5 % of the edges are in neither parent. The edge back to the start is not counted,
    /// because nobody chooses it.
    #[test]
    fn edge_recombination_keeps_edges() {
        let mut rng = Stream::root(2).rng();
        let (mut foreign, mut lost) = (0, 0);
        for _ in 0..200 {
            let (mother, father) = (permutation(&mut rng, 30), permutation(&mut rng, 30));
            let child = edges(&edge_recombination(&mut rng, &mother, &father));
            let (mother, father) = (edges(&mother), edges(&father));
            foreign += child[..29].iter().filter(|edge| !mother.contains(edge) && !father.contains(edge)).count();
            lost += mother.iter().filter(|edge| father.contains(edge) && !child.contains(edge)).count();
        }
        assert!(foreign < 200 * 29 / 60, "{foreign} of 5,800 edges are in neither parent");
        assert!(lost < 80, "{lost} of some 400 edges of both parents were lost");
    }

    #[test]
    fn equal_parents_have_the_same_tour_as_child() {
        let mut rng = Stream::root(3).rng();
        let mother = permutation(&mut rng, 20);
        let child = edge_recombination(&mut rng, &mother, &mother);
        assert!(edges(&child).iter().all(|edge| edges(&mother).contains(edge)));
    }
}
