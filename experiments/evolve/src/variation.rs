//! How a child is made from its parents, for every type of part: crossover, then mutation.

use evoxo_common::{
    evolve::{cross, integer, order, real},
    rng::{Generator, below, chance, unit},
};

use super::{
    genome::{Candidate, Genes, Genome, Part, Type},
    wrong::Wrong,
};

/// Mutation of real genes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RealMutation {
    /// Polynomial, see [`real::polynomial`].
    Polynomial {
        /// The greater, the shorter the steps; 0 or more.
        eta: f64,
    },
    /// Gaussian, see [`real::gaussian`].
    Gaussian {
        /// The standard deviation as a share of the width of the bounds, above 0.
        deviation: f64,
    },
}

/// Mutation of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IntegerMutation {
    /// A step up or down, see [`integer::step`].
    Step {
        /// The mean of how much longer a step is than 1, as a share of the width of the bounds, above 0.
        mean: f64,
    },
    /// A new number; all others are equally likely.
    Redraw,
    /// A step up or down of any length, see [`integer::harmonic`].
    Harmonic,
}

/// Crossover of bits and symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringCrossover {
    /// See [`cross::uniform`].
    Uniform,
    /// See [`cross::one_point`].
    OnePoint,
    /// See [`cross::two_point`].
    TwoPoint,
}

/// Crossover of permutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderCrossover {
    /// See [`order::order_crossover`].
    Order,
    /// See [`order::edge_recombination`].
    Edge,
    /// One of the two for each child, with equal probability.
    Mixed,
}

/// Mutation of permutations: a single move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderMutation {
    /// See [`order::swap`].
    Swap,
    /// See [`order::invert`].
    Inversion,
    /// See [`order::insert`].
    Insertion,
    /// One of the three for each child, with equal probability.
    Mixed,
}

/// The operators. Each part is crossed and mutated by those for its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// The probability that a child has two parents, 0 to 1. Otherwise it is a mutated copy of the first.
    pub crossover: f64,
    /// How many genes of a child are mutated on average. Each gene mutates with this number divided by the number of genes,
    /// where genes of permutations and fixed genes do not count. Textbooks and Deb's program use 1.
    pub mutations: f64,
    /// The index of simulated binary crossover of real genes, 0 or more: the greater, the closer children are to their
    /// parents.
    pub crossover_eta: f64,
    /// Whether a real gene that is not crossed stays that of the first parent, as in Deb's program. Otherwise it comes from
    /// either parent.
    pub stays_near: bool,
    /// Mutation of real genes.
    pub real_mutation: RealMutation,
    /// Mutation of whole numbers. Their crossover is uniform.
    pub integer_mutation: IntegerMutation,
    /// Crossover of bits and symbols. A mutated bit flips; a mutated symbol becomes another one.
    pub string_crossover: StringCrossover,
    /// Crossover of permutations.
    pub order_crossover: OrderCrossover,
    /// Mutation of permutations.
    pub order_mutation: OrderMutation,
    /// The probability that a permutation is mutated, 0 to 1.
    pub order_rate: f64,
}

impl Default for Variation {
    /// Crossover 0.9, one gene mutated, SBX with eta 15 and polynomial mutation with eta 20 (Deb et al. 2002, section V, has
    /// 20 for both; Deb's later papers and pymoo have 15 and 20); harmonic steps of whole numbers; two-point crossover; both
    /// crossovers and all three mutations of permutations, with every other child mutated. The operators of whole numbers,
    /// bits, symbols and permutations are the best in `docs/benchmarks/suite.md`: round trips need edge recombination and
    /// inversions, schedules need order crossover and insertions, and nothing tells one kind of permutation from the other.
    fn default() -> Self {
        Self {
            crossover: 0.9,
            mutations: 1.0,
            crossover_eta: 15.0,
            stays_near: false,
            real_mutation: RealMutation::Polynomial { eta: 20.0 },
            integer_mutation: IntegerMutation::Harmonic,
            string_crossover: StringCrossover::TwoPoint,
            order_crossover: OrderCrossover::Mixed,
            order_mutation: OrderMutation::Mixed,
            order_rate: 0.5,
        }
    }
}

/// How often a child that equals its first parent is mutated again at most, and how often a child that is already known is
/// drawn again.
const TRIES: usize = 10;

/// A child that is not `known` yet, unless [`TRIES`] draws give only known ones.
pub(super) fn new_child(known: &dyn Fn(&Candidate) -> bool, mut draw: impl FnMut() -> Candidate) -> Candidate {
    let mut child = draw();
    for _ in 1..TRIES {
        if !known(&child) {
            break;
        }
        child = draw();
    }
    child
}

impl Variation {
    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self) -> Result<(), Wrong> {
        let sensible = |setting: &'static str, name: &str, value: f64, fits: bool, range: &str| match fits {
            true => Ok(()),
            false => Err(Wrong::new(setting, format!("{name} is {value:?}, but it must be {range}"))),
        };
        let probability =
            |setting, name, value: f64| sensible(setting, name, value, (0.0..=1.0).contains(&value), "from 0 to 1");
        let eta = |setting, name, value: f64| {
            sensible(setting, name, value, (0.0..=1000.0).contains(&value), "from 0 to 1,000")
        };
        let share =
            |name, value: f64| sensible("deviation", name, value, 0.0 < value && value <= 1.0, "above 0 and at most 1");
        probability("crossover", "the probability of crossover", self.crossover)?;
        probability("order_rate", "the probability that a permutation is mutated", self.order_rate)?;
        let finite = self.mutations >= 0.0 && self.mutations.is_finite();
        sensible("mutations", "the number of mutated genes", self.mutations, finite, "0 or more")?;
        eta("crossover_eta", "the eta of crossover", self.crossover_eta)?;
        match self.real_mutation {
            RealMutation::Polynomial { eta: value } => eta("mutation_eta", "the eta of mutation", value)?,
            RealMutation::Gaussian { deviation } => share("the deviation of mutation", deviation)?,
        }
        match self.integer_mutation {
            IntegerMutation::Step { mean } => share("the mean step of whole numbers", mean),
            IntegerMutation::Redraw | IntegerMutation::Harmonic => Ok(()),
        }
    }

    /// A child of two candidates of this genome. If it equals its first parent it is mutated again, a few times at most,
    /// because evaluating the same point twice would teach nothing.
    pub fn child(&self, genome: &Genome, rng: &mut Generator, mother: &Candidate, father: &Candidate) -> Candidate {
        self.watched(genome, rng, [mother, father], &mut |_| ())
    }

    /// [`Self::child`] of mother and father. `crossed` sees it after crossover, before mutation.
    pub fn watched(
        &self,
        genome: &Genome,
        rng: &mut Generator,
        [mother, father]: [&Candidate; 2],
        crossed: &mut dyn FnMut(&Candidate),
    ) -> Candidate {
        let mut child = mother.clone();
        if unit(rng) < self.crossover {
            for (index, part) in genome.parts.iter().enumerate() {
                child.parts[index] = self.cross(rng, part.of, &mother.parts[index], &father.parts[index]);
            }
        }
        crossed(&child);
        let counts = |part: &&Part| part.of != Type::Permutation && part.fixed().is_none();
        let counted = genome.parts.iter().filter(counts).map(|part| part.length);
        let rate = self.mutations / counted.sum::<usize>().max(1) as f64;
        for _ in 0..TRIES {
            for (part, genes) in genome.parts.iter().zip(&mut child.parts).filter(|(part, _)| part.fixed().is_none()) {
                self.mutate(rng, part.of, genes, rate);
            }
            if child != *mother {
                break;
            }
        }
        child
    }

    fn cross(&self, rng: &mut Generator, of: Type, mother: &Genes, father: &Genes) -> Genes {
        match (of, mother, father) {
            (Type::Real { low, high }, Genes::Real(mother), Genes::Real(father)) => {
                let [mut child, other] = real::simulated_binary(rng, mother, father, (low, high), self.crossover_eta);
                // As in uniform crossover. In Deb's program the first child keeps the first parent's genes:
                // docs/benchmarks/suite.md has what that costs with one objective, and fronts.md what it gains with many.
                for ((gene, other), mother) in child.iter_mut().zip(other).zip(mother) {
                    if !self.stays_near && *gene == *mother && chance(rng, 1, 2) {
                        *gene = other;
                    }
                }
                Genes::Real(child)
            }
            (Type::Integer { .. }, Genes::Integer(mother), Genes::Integer(father)) => {
                let [child, _] = cross::uniform(rng, mother, father);
                Genes::Integer(child)
            }
            (Type::Bits, Genes::Bits(mother), Genes::Bits(father)) => Genes::Bits(self.strings(rng, mother, father)),
            (Type::Symbols { .. }, Genes::Symbols(mother), Genes::Symbols(father)) => {
                Genes::Symbols(self.strings(rng, mother, father))
            }
            (Type::Permutation, Genes::Permutation(mother), Genes::Permutation(father)) if mother.len() > 1 => {
                Genes::Permutation(match self.order_crossover {
                    OrderCrossover::Order => order::order_crossover(rng, mother, father),
                    OrderCrossover::Edge => order::edge_recombination(rng, mother, father),
                    OrderCrossover::Mixed if chance(rng, 1, 2) => order::order_crossover(rng, mother, father),
                    OrderCrossover::Mixed => order::edge_recombination(rng, mother, father),
                })
            }
            // A permutation of one element.
            _ => mother.clone(),
        }
    }

    fn strings<G: Copy>(&self, rng: &mut Generator, mother: &[G], father: &[G]) -> Vec<G> {
        let [child, _] = match self.string_crossover {
            StringCrossover::OnePoint if mother.len() > 1 => cross::one_point(rng, mother, father),
            StringCrossover::TwoPoint if mother.len() > 1 => cross::two_point(rng, mother, father),
            _ => cross::uniform(rng, mother, father),
        };
        child
    }

    /// Mutates genes that are not fixed.
    fn mutate(&self, rng: &mut Generator, of: Type, genes: &mut Genes, rate: f64) {
        match (of, genes) {
            (Type::Real { low, high }, Genes::Real(genes)) => {
                match self.real_mutation {
                    RealMutation::Polynomial { eta } => real::polynomial(rng, genes, (low, high), eta, rate),
                    RealMutation::Gaussian { deviation } => real::gaussian(rng, genes, (low, high), deviation, rate),
                };
            }
            (Type::Integer { low, high }, Genes::Integer(genes)) => match self.integer_mutation {
                IntegerMutation::Step { mean } => {
                    let mean = 1.0 + mean * high.abs_diff(low) as f64;
                    integer::step(rng, genes, (low, high), mean, rate);
                }
                IntegerMutation::Redraw => {
                    for gene in genes.iter_mut() {
                        if unit(rng) < rate {
                            // The greatest number stands for the old one, which must not be drawn.
                            let other = integer::draw(rng, (low, high - 1));
                            *gene = if other == *gene { high } else { other };
                        }
                    }
                }
                IntegerMutation::Harmonic => {
                    integer::harmonic(rng, genes, (low, high), rate);
                }
            },
            (Type::Bits, Genes::Bits(genes)) => {
                genes.iter_mut().filter(|_| unit(rng) < rate).for_each(|bit| *bit = !*bit);
            }
            (Type::Symbols { alphabet }, Genes::Symbols(genes)) => {
                for gene in genes.iter_mut() {
                    if unit(rng) < rate {
                        let step = 1 + below(rng, u64::from(alphabet) - 1);
                        *gene = ((u64::from(*gene) + step) % u64::from(alphabet)) as u32;
                    }
                }
            }
            (Type::Permutation, Genes::Permutation(order)) if unit(rng) < self.order_rate => {
                let kinds = [OrderMutation::Swap, OrderMutation::Inversion, OrderMutation::Insertion];
                let kind = match self.order_mutation {
                    OrderMutation::Mixed => kinds[below(rng, 3) as usize],
                    kind => kind,
                };
                match kind {
                    OrderMutation::Swap => order::swap(rng, order),
                    OrderMutation::Inversion => order::invert(rng, order),
                    OrderMutation::Insertion | OrderMutation::Mixed => order::insert(rng, order),
                }
            }
            // This permutation is not mutated.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        math::pow,
        rng::{Stream, chance},
    };
    use proptest::prelude::*;

    fn genome(length: usize, types: &[Type]) -> Genome {
        let part = |of: &Type| Part { name: of.name().into(), length, of: *of };
        Genome { parts: types.iter().map(part).collect(), bounded: true }
    }

    /// A variation with random choices, each by a coin toss.
    fn drawn(rng: &mut Generator) -> Variation {
        let mut coin = || chance(rng, 1, 2);
        Variation {
            real_mutation: if coin() {
                RealMutation::Polynomial { eta: 5.0 }
            } else {
                RealMutation::Gaussian { deviation: 0.3 }
            },
            integer_mutation: if coin() { IntegerMutation::Redraw } else { IntegerMutation::Step { mean: 0.5 } },
            string_crossover: if coin() { StringCrossover::OnePoint } else { StringCrossover::TwoPoint },
            order_crossover: if coin() { OrderCrossover::Order } else { OrderCrossover::Edge },
            order_mutation: if coin() { OrderMutation::Swap } else { OrderMutation::Insertion },
            ..Variation::default()
        }
    }

    const TYPES: [Type; 5] = [
        Type::Real { low: -5.0, high: 10.0 },
        Type::Integer { low: -3, high: 3 },
        Type::Bits,
        Type::Symbols { alphabet: 4 },
        Type::Permutation,
    ];

    proptest! {
        #[test]
        fn children_belong_to_the_genome_and_differ_from_their_first_parent(seed: u64, length in 1..30_usize) {
            let mut rng = Stream::root(seed).rng();
            let genome = genome(length, &TYPES);
            let (mother, father) = (genome.random(&mut rng), genome.random(&mut rng));
            for variation in [Variation::default(), drawn(&mut rng)] {
                let child = variation.child(&genome, &mut rng, &mother, &father);
                prop_assert_eq!(genome.check(&child), Ok(()));
                prop_assert!(child != mother);
            }
        }
    }

    /// Without crossover, only mutation makes a difference. The share of changed genes is 1/n, plus the contribution of
    /// children that would otherwise not have changed at all.
    #[test]
    fn one_gene_is_mutated_on_average() {
        let length = 50;
        for of in &TYPES[..4] {
            let (genome, mut rng) = (genome(length, &[*of]), Stream::root(1).rng());
            let variation = Variation { crossover: 0.0, ..Variation::default() };
            let mother = genome.random(&mut rng);
            let changed: usize = (0..4000)
                .map(|_| differences(&mother.parts[0], &variation.child(&genome, &mut rng, &mother, &mother).parts[0]))
                .sum();
            let none = pow(1.0 - 1.0 / length as f64, length as f64);
            let mean = changed as f64 / 4000.0 * (1.0 - none);
            assert!((mean - 1.0).abs() < 0.05, "{of:?}: {mean}");
        }
    }

    /// Crossed or not, as many real genes of a child come from one parent as from the other.
    #[test]
    fn real_genes_come_from_either_parent() {
        let of = Type::Real { low: -1e9, high: 1e9 };
        let (genome, mut rng) = (genome(10_000, &[of]), Stream::root(7).rng());
        let variation = Variation { crossover: 1.0, mutations: 0.0, ..Variation::default() };
        let parent = |gene: f64| Candidate { parts: vec![Genes::Real(vec![gene; 10_000])] };
        let child = variation.child(&genome, &mut rng, &parent(-1.0), &parent(1.0));
        let Genes::Real(genes) = &child.parts[0] else { unreachable!() };
        for crossed in [false, true] {
            let those: Vec<&f64> = genes.iter().filter(|gene| (gene.abs() != 1.0) == crossed).collect();
            let of_father = those.iter().filter(|gene| ***gene > 0.0).count() as i32;
            assert!((those.len() as i32 - 5000).abs() < 250, "{crossed}: {}", those.len());
            assert!((of_father - those.len() as i32 / 2).abs() < 150, "{crossed}: {of_father} of {}", those.len());
        }
    }

    fn differences(one: &Genes, two: &Genes) -> usize {
        fn count<G: PartialEq>(one: &[G], two: &[G]) -> usize {
            one.iter().zip(two).filter(|(one, two)| one != two).count()
        }
        match (one, two) {
            (Genes::Real(one), Genes::Real(two)) => count(one, two),
            (Genes::Integer(one), Genes::Integer(two)) => count(one, two),
            (Genes::Bits(one), Genes::Bits(two)) => count(one, two),
            (Genes::Permutation(one), Genes::Permutation(two)) | (Genes::Symbols(one), Genes::Symbols(two)) => {
                count(one, two)
            }
            _ => panic!("genes of different types"),
        }
    }

    #[test]
    fn a_fully_fixed_genome_has_one_child() {
        let fixed = [
            Type::Permutation,
            Type::Symbols { alphabet: 1 },
            Type::Integer { low: 7, high: 7 },
            Type::Real { low: 0.1, high: 0.1 },
        ];
        let genome = genome(1, &fixed);
        let mut rng = Stream::root(2).rng();
        let mother = genome.random(&mut rng);
        for variation in [Variation::default(), drawn(&mut rng)] {
            assert_eq!(variation.child(&genome, &mut rng, &mother, &mother), mother);
        }
    }

    /// Fixed genes take no mutations from the others: of 50 free genes one is mutated, however many fixed genes there are.
    #[test]
    fn fixed_genes_are_not_mutated_and_not_counted() {
        let types =
            [Type::Integer { low: -3, high: 3 }, Type::Real { low: 0.1, high: 0.1 }, Type::Integer { low: 7, high: 7 }];
        let (genome, mut rng) = (genome(50, &types), Stream::root(6).rng());
        let variation = Variation { crossover: 0.0, ..Variation::default() };
        let mother = genome.random(&mut rng);
        let mut changed = 0;
        for _ in 0..4000 {
            let child = variation.child(&genome, &mut rng, &mother, &mother);
            assert_eq!(child.parts[1..], [Genes::Real(vec![0.1; 50]), Genes::Integer(vec![7; 50])]);
            let (Genes::Integer(one), Genes::Integer(two)) = (&mother.parts[0], &child.parts[0]) else {
                unreachable!()
            };
            changed += one.iter().zip(two).filter(|(one, two)| one != two).count();
        }
        // Children without a mutation are mutated again, so the mean is 1 / (1 - 1/e) genes.
        let mean = f64::from(changed as u32) / 4000.0;
        assert!((mean / 1.572 - 1.0).abs() < 0.04, "{mean}");
    }

    #[test]
    fn invalid_variation_settings_are_rejected_with_a_reason() {
        let good = Variation::default;
        let wrong = [
            Variation { crossover: 1.5, ..good() },
            Variation { mutations: f64::NAN, ..good() },
            Variation { crossover_eta: -1.0, ..good() },
            Variation { real_mutation: RealMutation::Gaussian { deviation: 0.0 }, ..good() },
            Variation { integer_mutation: IntegerMutation::Step { mean: 2.0 }, ..good() },
            Variation { order_rate: -0.5, ..good() },
        ];
        let sentences: Vec<String> = wrong.iter().map(|variation| variation.check().unwrap_err().sentence).collect();
        insta::assert_snapshot!(sentences.join("\n"));
        assert_eq!(good().check(), Ok(()));
    }
}
