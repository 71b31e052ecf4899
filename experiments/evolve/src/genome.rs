//! What is searched: genomes, which consist of parts, and candidates, which are the points of a genome's space.

use evoxo_common::{
    evolve::integer,
    rng::{Generator, below, chance, shuffle, unit},
    text::counted,
};

use super::messages;

/// The type of the genes of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    /// Real numbers from `low` to `high`, both included; see [`Genome::bounded`].
    Real {
        /// The lower bound.
        low: f64,
        /// The upper bound, not less than the lower one.
        high: f64,
    },
    /// Whole numbers from `low` to `high`, both included.
    Integer {
        /// The lower bound.
        low: i64,
        /// The upper bound, not less than the lower one.
        high: i64,
    },
    /// Bits.
    Bits,
    /// A permutation of the numbers from 0 to the part's length - 1.
    Permutation,
    /// Symbols of an alphabet of this size, each as its index from 0.
    Symbols {
        /// The number of symbols, 1 or more.
        alphabet: u32,
    },
}

/// A named part of a genome: genes of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The name by which the problem knows the part.
    pub name: String,
    /// The number of genes, 1 or more.
    pub length: usize,
    /// The type of the genes.
    pub of: Type,
}

/// A search space: the product of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Genome {
    /// The parts, one or more.
    pub parts: Vec<Part>,
    /// Whether real genes stay within their bounds. If not, the bounds only say where searches start, and any finite number
    /// is a gene.
    pub bounded: bool,
}

/// The genes of one part of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Genes {
    /// Genes of [`Type::Real`].
    Real(Vec<f64>),
    /// Genes of [`Type::Integer`].
    Integer(Vec<i64>),
    /// Genes of [`Type::Bits`].
    Bits(Vec<bool>),
    /// Genes of [`Type::Permutation`].
    Permutation(Vec<u32>),
    /// Genes of [`Type::Symbols`].
    Symbols(Vec<u32>),
}

/// A point of the search space.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The genes of each part, in the order of the genome.
    pub parts: Vec<Genes>,
}

impl Type {
    /// The name of the type in experiment files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Real { .. } => "real",
            Self::Integer { .. } => "integer",
            Self::Bits => "bits",
            Self::Permutation => "permutation",
            Self::Symbols { .. } => "symbols",
        }
    }
}

impl Genes {
    /// The number of genes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Real(genes) => genes.len(),
            Self::Integer(genes) => genes.len(),
            Self::Bits(genes) => genes.len(),
            Self::Permutation(genes) | Self::Symbols(genes) => genes.len(),
        }
    }

    /// Whether there are no genes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Part {
    /// Checks that the part is valid.
    ///
    /// # Errors
    /// If it has no genes, or its bounds are crossed or not finite; the sentence says which.
    fn valid(&self) -> Result<(), String> {
        let name = &self.name;
        if self.length == 0 || u32::try_from(self.length).is_err() {
            return Err(format!("part \"{name}\" has {} genes: it needs 1 to {}", self.length, u32::MAX));
        }
        match self.of {
            Type::Real { low, high } if !(low <= high && (high - low).is_finite()) => {
                Err(format!("part \"{name}\": its bounds are {low:?} and {high:?}, but the lower must not be greater"))
            }
            Type::Integer { low, high } if low > high => {
                Err(format!("part \"{name}\": its bounds are {low} and {high}, but the lower must not be greater"))
            }
            Type::Symbols { alphabet: 0 } => Err(format!("part \"{name}\": its alphabet has no symbols")),
            _ => Ok(()),
        }
    }

    /// The genes of the part, if every candidate has the same.
    #[must_use]
    pub fn fixed(&self) -> Option<Genes> {
        match self.of {
            Type::Real { low, high } if low == high => Some(Genes::Real(vec![low; self.length])),
            Type::Integer { low, high } if low == high => Some(Genes::Integer(vec![low; self.length])),
            Type::Permutation if self.length == 1 => Some(Genes::Permutation(vec![0])),
            Type::Symbols { alphabet: 1 } => Some(Genes::Symbols(vec![0; self.length])),
            _ => None,
        }
    }

    /// Genes in the middle of their range.
    pub(super) fn middle(&self) -> Genes {
        let each = 0..self.length;
        match self.of {
            Type::Real { low, high } => Genes::Real(vec![low + (high - low) / 2.0; self.length]),
            Type::Integer { low, high } => Genes::Integer(vec![low + (high - low) / 2; self.length]),
            Type::Bits => Genes::Bits(each.map(|gene| gene % 2 == 1).collect()),
            Type::Permutation => {
                Genes::Permutation(each.map(|gene| ((gene + self.length / 2) % self.length) as u32).collect())
            }
            Type::Symbols { alphabet } => Genes::Symbols(each.map(|gene| gene as u32 % alphabet).collect()),
        }
    }

    fn random(&self, rng: &mut Generator) -> Genes {
        let each = 0..self.length;
        match self.of {
            Type::Real { low, high } => {
                Genes::Real(each.map(|_| (low + unit(rng) * (high - low)).clamp(low, high)).collect())
            }
            Type::Integer { low, high } => Genes::Integer(each.map(|_| integer::draw(rng, (low, high))).collect()),
            Type::Bits => Genes::Bits(each.map(|_| chance(rng, 1, 2)).collect()),
            Type::Permutation => {
                let mut order: Vec<u32> = each.map(|gene| gene as u32).collect();
                shuffle(rng, &mut order);
                Genes::Permutation(order)
            }
            Type::Symbols { alphabet } => Genes::Symbols(each.map(|_| below(rng, alphabet.into()) as u32).collect()),
        }
    }

    /// A single gene of this part, from its bits: those of a real number, or a whole number.
    #[must_use]
    pub fn gene(&self, bits: u64) -> Genes {
        match self.of {
            Type::Real { .. } => Genes::Real(vec![f64::from_bits(bits)]),
            Type::Integer { .. } => Genes::Integer(vec![bits.cast_signed()]),
            Type::Bits => Genes::Bits(vec![bits != 0]),
            Type::Permutation => Genes::Permutation(vec![bits as u32]),
            Type::Symbols { .. } => Genes::Symbols(vec![bits as u32]),
        }
    }

    /// How different genes of this part are, see [`Genome::distance`].
    fn distance(&self, one: &Genes, two: &Genes) -> f64 {
        let share = |difference: f64, width: f64| if width > 0.0 { difference.abs() / width } else { 0.0 };
        match (self.of, one, two) {
            (Type::Real { low, high }, Genes::Real(one), Genes::Real(two)) => {
                one.iter().zip(two).map(|(one, two)| share(one - two, high - low)).sum()
            }
            (Type::Integer { low, high }, Genes::Integer(one), Genes::Integer(two)) => {
                let width = high as f64 - low as f64;
                one.iter().zip(two).map(|(one, two)| share(*one as f64 - *two as f64, width)).sum()
            }
            (_, Genes::Bits(one), Genes::Bits(two)) => unequal(one, two),
            (_, Genes::Permutation(one) | Genes::Symbols(one), Genes::Permutation(two) | Genes::Symbols(two)) => {
                unequal(one, two)
            }
            _ => panic!("part \"{}\" has genes of another type", self.name),
        }
    }

    /// Checks genes of this part. `bounded` is that of the genome.
    fn check(&self, genes: &Genes, bounded: bool) -> Result<(), String> {
        let name = &self.name;
        if genes.len() != self.length {
            return Err(format!("part \"{name}\" has {}, not {}", counted(genes.len(), "gene"), self.length));
        }
        let outside = |place: usize, gene: String, low: String, high: String| {
            Err(format!("part \"{name}\": gene {} is {gene}, but it must be from {low} to {high}", place + 1))
        };
        match (self.of, genes) {
            (Type::Real { .. }, Genes::Real(genes)) if !bounded => {
                let wrong = genes.iter().position(|gene| !gene.is_finite());
                wrong.map_or(Ok(()), |place| {
                    let (number, gene) = (place + 1, genes[place]);
                    Err(format!("part \"{name}\": gene {number} is {gene:?}, but it must be finite"))
                })
            }
            (Type::Real { low, high }, Genes::Real(genes)) => {
                let wrong = genes.iter().position(|gene| !(low..=high).contains(gene));
                wrong.map_or(Ok(()), |place| {
                    outside(place, format!("{:?}", genes[place]), format!("{low:?}"), format!("{high:?}"))
                })
            }
            (Type::Integer { low, high }, Genes::Integer(genes)) => {
                let wrong = genes.iter().position(|gene| !(low..=high).contains(gene));
                wrong
                    .map_or(Ok(()), |place| outside(place, genes[place].to_string(), low.to_string(), high.to_string()))
            }
            (Type::Bits, Genes::Bits(_)) => Ok(()),
            (Type::Permutation, Genes::Permutation(order)) => {
                let mut seen = vec![false; order.len()];
                for (place, gene) in order.iter().enumerate() {
                    match seen.get_mut(*gene as usize) {
                        Some(seen) if !*seen => *seen = true,
                        Some(_) => return Err(format!("part \"{name}\" has {gene} twice, so it is not a permutation")),
                        None => return outside(place, gene.to_string(), "0".into(), (self.length - 1).to_string()),
                    }
                }
                Ok(())
            }
            (Type::Symbols { alphabet }, Genes::Symbols(symbols)) => {
                let wrong = symbols.iter().position(|symbol| *symbol >= alphabet);
                wrong.map_or(Ok(()), |place| {
                    outside(place, symbols[place].to_string(), "0".into(), (alphabet - 1).to_string())
                })
            }
            (of, _) => Err(format!("part \"{name}\" has genes whose type is not {}", of.name())),
        }
    }

    /// Reads the genes of this part from a message. Values are checked only as far as reading needs it.
    fn genes(&self, message: &messages::Genes) -> Result<Genes, String> {
        let messages::Genes { reals, integers, bits, order, symbols } = message;
        let used = [!reals.is_empty(), !integers.is_empty(), !bits.is_empty(), !order.is_empty(), !symbols.is_empty()];
        let (genes, own) = match self.of {
            Type::Real { .. } => (Genes::Real(reals.clone()), 0),
            Type::Integer { .. } => (Genes::Integer(integers.clone()), 1),
            Type::Bits => (Genes::Bits(self.unpack(bits)?), 2),
            Type::Permutation => (Genes::Permutation(order.clone()), 3),
            Type::Symbols { .. } => (Genes::Symbols(symbols.clone()), 4),
        };
        match used.iter().enumerate().any(|(field, used)| *used && field != own) {
            true => Err(format!("part \"{}\" has genes whose type is not {}", self.name, self.of.name())),
            false => Ok(genes),
        }
    }

    /// Unpacks bits from bytes.
    fn unpack(&self, bytes: &[u8]) -> Result<Vec<bool>, String> {
        let all: Vec<bool> = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1)).collect();
        if bytes.len() != self.length.div_ceil(8) || all[self.length..].contains(&true) {
            return Err(format!("part \"{}\" does not have {} bits", self.name, self.length));
        }
        Ok(all[..self.length].to_vec())
    }
}

/// The number of places in which two lists differ.
fn unequal<T: PartialEq>(one: &[T], two: &[T]) -> f64 {
    one.iter().zip(two).filter(|(one, two)| one != two).count() as f64
}

impl Genome {
    /// Checks that the genome has parts with genes, and that no bounds are crossed.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn valid(&self) -> Result<(), String> {
        if self.parts.is_empty() {
            return Err("the genome has no parts".into());
        }
        self.parts.iter().try_for_each(Part::valid)
    }

    /// A candidate, each equally likely; real genes are uniform between their bounds.
    ///
    /// # Panics
    /// If the genome is not [valid](Self::valid).
    pub fn random(&self, rng: &mut Generator) -> Candidate {
        Candidate { parts: self.parts.iter().map(|part| part.random(rng)).collect() }
    }

    /// How different two candidates are: the sum over all genes of 0 (equal) to 1. Numbers count by the share of their range that
    /// lies between them, which may exceed 1 in a genome without bounds; other genes are equal or not.
    ///
    /// # Panics
    /// If a candidate is not of this genome.
    pub fn distance(&self, one: &Candidate, two: &Candidate) -> f64 {
        let genes = one.parts.iter().zip(&two.parts);
        self.parts.iter().zip(genes).map(|(part, (one, two))| part.distance(one, two)).sum()
    }

    /// Checks that a candidate belongs to this genome.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn check(&self, candidate: &Candidate) -> Result<(), String> {
        let (parts, own) = (candidate.parts.len(), self.parts.len());
        if parts != own {
            return Err(format!("a candidate has {parts} parts, but the genome has {own}"));
        }
        self.parts.iter().zip(&candidate.parts).try_for_each(|(part, genes)| part.check(genes, self.bounded))
    }

    /// The number of genes in all parts.
    #[must_use]
    pub fn genes(&self) -> usize {
        self.parts.iter().map(|part| part.length).sum()
    }

    /// The number of genes that are not [fixed](Part::fixed).
    #[must_use]
    pub fn free_genes(&self) -> usize {
        self.parts.iter().filter(|part| part.fixed().is_none()).map(|part| part.length).sum()
    }

    /// Reads a candidate from its message.
    ///
    /// # Errors
    /// If the message is not a candidate of this genome; the sentence says why.
    pub fn candidate(&self, message: &messages::Candidate) -> Result<Candidate, String> {
        let (parts, own) = (message.parts.len(), self.parts.len());
        if parts != own {
            return Err(format!("a candidate has {parts} parts, but the genome has {own}"));
        }
        let parts: Result<_, String> =
            self.parts.iter().zip(&message.parts).map(|(part, genes)| part.genes(genes)).collect();
        let candidate = Candidate { parts: parts? };
        self.check(&candidate)?;
        Ok(candidate)
    }

    /// The most bytes of a candidate's message.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        let part = |part: &Part| {
            let length = part.length as u64;
            16 + match part.of {
                Type::Real { .. } => 8 * length,
                Type::Integer { .. } => 10 * length,
                Type::Bits => length.div_ceil(8),
                Type::Permutation | Type::Symbols { .. } => 5 * length,
            }
        };
        16 + self.parts.iter().map(part).sum::<u64>()
    }
}

impl Candidate {
    /// A hash by which copies are found: candidates with equal genes share it, and hardly any others. FNV-1a over words, with
    /// a final mix so that each bit counts (G. Fowler, L. C. Noll, K.-P. Vo and D. Eastlake, draft-eastlake-fnv).
    #[must_use]
    pub fn mark(&self) -> u64 {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let add = |mark: u64, word: u64| {
            let mixed = (mark ^ word).wrapping_mul(PRIME);
            mixed ^ mixed >> 29
        };
        let of = |mark: u64, genes: &Genes| match genes {
            // Adding 0.0 turns -0.0 into 0.0: the two are equal, but their bits are not.
            Genes::Real(genes) => genes.iter().fold(mark, |mark, gene| add(mark, (gene + 0.0).to_bits())),
            Genes::Integer(genes) => genes.iter().fold(mark, |mark, gene| add(mark, gene.cast_unsigned())),
            Genes::Bits(genes) => genes.iter().fold(mark, |mark, gene| add(mark, u64::from(*gene))),
            Genes::Permutation(genes) | Genes::Symbols(genes) => {
                genes.iter().fold(mark, |mark, gene| add(mark, u64::from(*gene)))
            }
        };
        self.parts.iter().fold(0xcbf2_9ce4_8422_2325, of)
    }

    /// The candidate as a message; [`Genome::candidate`] is the inverse.
    #[must_use]
    pub fn message(&self) -> messages::Candidate {
        let part = |genes: &Genes| match genes {
            Genes::Real(reals) => messages::Genes { reals: reals.clone(), ..Default::default() },
            Genes::Integer(integers) => messages::Genes { integers: integers.clone(), ..Default::default() },
            Genes::Bits(bits) => {
                let pack = |bits: &[bool]| bits.iter().rev().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit));
                messages::Genes { bits: bits.chunks(8).map(pack).collect(), ..Default::default() }
            }
            Genes::Permutation(order) => messages::Genes { order: order.clone(), ..Default::default() },
            Genes::Symbols(symbols) => messages::Genes { symbols: symbols.clone(), ..Default::default() },
        };
        messages::Candidate { parts: self.parts.iter().map(part).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;
    use proptest::prelude::*;
    use prost::Message as _;

    fn part(name: &str, length: usize, of: Type) -> Part {
        Part { name: name.into(), length, of }
    }

    fn mixed(length: usize) -> Genome {
        let of = [
            Type::Real { low: -1.5, high: 2.0 },
            Type::Integer { low: i64::MIN, high: i64::MAX },
            Type::Bits,
            Type::Permutation,
            Type::Symbols { alphabet: 3 },
        ];
        Genome { parts: of.into_iter().map(|of| part(of.name(), length, of)).collect(), bounded: true }
    }

    proptest! {
        #[test]
        fn candidates_survive_their_messages(seed: u64, length in 1..40_usize) {
            let genome = mixed(length);
            let candidate = genome.random(&mut Stream::root(seed).rng());
            prop_assert_eq!(genome.check(&candidate), Ok(()));
            let message = candidate.message();
            prop_assert!(message.encoded_len() as u64 <= genome.bytes_max());
            prop_assert_eq!(genome.candidate(&message).map(|again| again.mark()), Ok(candidate.mark()));
            let other = genome.random(&mut Stream::root(seed).word(1).rng());
            prop_assert_eq!(other.mark() == candidate.mark(), other == candidate);
            prop_assert_eq!(genome.candidate(&message), Ok(candidate));
            prop_assert_eq!(genome.genes(), 5 * length);
        }
    }

    #[test]
    fn invalid_genomes_are_rejected_with_a_reason() {
        let wrong = [
            part("x", 0, Type::Bits),
            part("x", 1, Type::Real { low: 2.0, high: 1.0 }),
            part("x", 1, Type::Real { low: f64::NAN, high: 1.0 }),
            part("x", 1, Type::Real { low: -f64::MAX, high: f64::MAX }),
            part("x", 1, Type::Integer { low: 2, high: 1 }),
            part("x", 1, Type::Symbols { alphabet: 0 }),
        ];
        let sentence = |part: &Part| Genome { parts: vec![part.clone()], bounded: true }.valid().unwrap_err();
        let mut sentences: Vec<String> = wrong.iter().map(sentence).collect();
        sentences.push(Genome { parts: Vec::new(), bounded: true }.valid().unwrap_err());
        insta::assert_snapshot!(sentences.join("\n"));
        assert_eq!(mixed(1).valid(), Ok(()));
    }

    #[test]
    fn invalid_candidate_messages_are_rejected_with_a_reason() {
        let genome = mixed(3);
        let good = genome.random(&mut Stream::root(1).rng()).message();
        let changes: [fn(&mut messages::Candidate); 12] = [
            |message| drop(message.parts.pop()),
            |message| message.parts[0].reals[1] = 2.5,
            |message| message.parts[0].reals[1] = f64::NAN,
            |message| message.parts[0].reals.push(0.0),
            |message| message.parts[0].symbols.push(0),
            |message| message.parts[1].integers.clear(),
            |message| message.parts[2].bits = vec![8].into(),
            |message| message.parts[2].bits = vec![1, 0].into(),
            |message| message.parts[3].order = vec![0, 1, 3],
            |message| message.parts[3].order = vec![0, 1, 1],
            |message| message.parts[4].symbols[0] = 3,
            |message| message.parts.swap(3, 4),
        ];
        let sentence = |change: &fn(&mut messages::Candidate)| {
            let mut message = good.clone();
            change(&mut message);
            genome.candidate(&message).unwrap_err()
        };
        insta::assert_snapshot!(changes.iter().map(sentence).collect::<Vec<String>>().join("\n"));
    }

    #[test]
    fn a_candidate_of_another_type_is_rejected() {
        let genome = Genome { parts: vec![part("x", 2, Type::Symbols { alphabet: 4 })], bounded: true };
        assert!(genome.check(&Candidate { parts: vec![Genes::Permutation(vec![0, 1])] }).is_err());
        assert_eq!(genome.check(&Candidate { parts: vec![Genes::Symbols(vec![3, 3])] }), Ok(()));
    }
}
